// A profiler puts such a library into a process that has NVTX: this one notes domains and ranges, for
// nvtx_test.cc to read.
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>

#include <array>
#include <mutex>
#include <string>
#include <utility>

namespace {

std::mutex mutex;
std::string log_text;  // "thread: what\n"
int coppice_domain;    // its address is the domain

void note(const std::string& what) {
  std::array<char, 32> thread{};
  pthread_getname_np(pthread_self(), thread.data(), thread.size());
  const std::lock_guard lock(mutex);
  log_text += std::string(thread.data()) + ": " + what + "\n";
}
std::string name_of(nvtxDomainHandle_t domain) {
  return domain == reinterpret_cast<nvtxDomainHandle_t>(&coppice_domain) ? "" : " in another domain";
}

nvtxDomainHandle_t NVTX_API create_domain(const char* name) {
  note(std::string("domain ") + name);
  return reinterpret_cast<nvtxDomainHandle_t>(&coppice_domain);
}
int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* range) {
  const bool is_text = range->version == NVTX_VERSION && range->size == sizeof(nvtxEventAttributes_t) &&
                       range->messageType == NVTX_MESSAGE_TYPE_ASCII;
  note("push " + (is_text ? std::string(range->message.ascii) : "no text") + name_of(domain));
  return 0;
}
int NVTX_API pop(nvtxDomainHandle_t domain) {
  note("pop" + name_of(domain));
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned count = 0;
  if (callbacks == nullptr || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &functions, &count) ||
      count <= NVTX_CBID_CORE2_DomainCreateA)
    return 0;
  *functions[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(&create_domain);
  *functions[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(&push);
  *functions[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(&pop);
  return 1;
}

// Gives what was noted since the last call.
extern "C" __attribute__((visibility("default"))) void coppice_test_take_nvtx_log(std::string* to) {
  const std::lock_guard lock(mutex);
  *to = std::exchange(log_text, {});
}
