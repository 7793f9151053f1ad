// Frames that wait, as their request knows them: what they say, and how they are cancelled.
#include "executor/frame.h"
#include "executor/waiting_texts.h"

namespace coppice::executor {

using coppice::detail::RefAccess;

constinit const Suspended::Type Frame::kType = {
    [](const Suspended& self, std::string& text) { static_cast<const Frame&>(self).describe_waiting(text); },
    [](Suspended& self) { return RefAccess::count(&static_cast<Frame&>(self)).try_add_strong(); },
    [](Suspended& self) { IntrusivePtr<Frame>::reclaim(&static_cast<Frame&>(self))->cancel_waiting(); }};

void Frame::describe_waiting(std::string& text) const {
  for (uint32_t op = 0; op < function_.operations.size(); ++op) {
    // This is an exchange and no load, as frame.h explains.
    if (waits_[op].fetch_add(0, std::memory_order_acq_rel) == 0) continue;
    describe_operation(text, function_, function_.operations[op], registers_, false);
  }
}

}  // namespace coppice::executor
