// Divides keys among frames (see key_queue.h).
#include "apps/viewer/key_queue.h"

#include <algorithm>

namespace coppice::viewer {

std::vector<KeyEvent> KeyQueue::take_frame() {
  using Kind = KeyEvent::Kind;
  std::vector<KeyEvent> frame;
  bool has_text = false, has_command = false;
  for (; !events_.empty(); events_.pop_front()) {
    const KeyEvent& e = events_.front();
    const bool types = events_.size() > 1 && events_[1].kind == Kind::kText;
    const bool is_press = e.kind == Kind::kPress && !types;
    const bool is_command = (is_press && !e.is_modifier) || e.kind == Kind::kButton;
    // A frame sees a command together with what was held when it came.
    if (has_command && (e.kind == Kind::kRelease || e.kind == Kind::kText)) break;
    if ((has_command || has_text) && (is_press || is_command)) break;
    // A key that is up for no frame was never let go of.
    const bool was_up = std::ranges::any_of(
        frame, [&](const KeyEvent& f) { return f.kind == Kind::kRelease && f.key == e.key; });
    if (is_command && e.kind == Kind::kPress && was_up) break;
    has_command |= is_command;
    has_text |= e.kind == Kind::kText;
    frame.push_back(e);
  }
  return frame;
}

}  // namespace coppice::viewer
