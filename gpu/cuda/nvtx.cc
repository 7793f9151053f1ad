// NVTX ranges (see nvtx.h).
#include "gpu/cuda/nvtx.h"

#ifdef COPPICE_HAS_NVTX
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <array>

#include "core/trace.h"
#endif

namespace coppice::cuda {

#ifdef COPPICE_HAS_NVTX

namespace {

class NvtxRanges final : public TraceListener {
 public:
  explicit NvtxRanges(nvtxDomainHandle_t domain) : domain_(domain) {}
  void begin(std::string_view name) noexcept override {
    std::array<char, 256> text;  // names are copied by the call, and need an end
    const size_t length = std::min(name.size(), text.size() - 1);
    std::copy_n(name.data(), length, text.data());
    text[length] = '\0';
    nvtxEventAttributes_t range{};
    range.version = NVTX_VERSION;
    range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    range.messageType = NVTX_MESSAGE_TYPE_ASCII;
    range.message.ascii = text.data();
    nvtxDomainRangePushEx(domain_, &range);
  }
  void end() noexcept override { nvtxDomainRangePop(domain_); }

 private:
  const nvtxDomainHandle_t domain_;
};

}  // namespace

// No profiler gives no domain.
bool trace_to_nvtx() {
  static const bool is_attached = [] {
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("coppice");
    // The listener is never destroyed: threads may outlive main().
    if (domain != nullptr) Trace::set_listener(new NvtxRanges(domain));
    return domain != nullptr;
  }();
  return is_attached;
}
bool has_nvtx() { return true; }

#else

bool trace_to_nvtx() { return false; }
bool has_nvtx() { return false; }

#endif

}  // namespace coppice::cuda
