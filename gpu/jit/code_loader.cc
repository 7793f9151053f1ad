// Loads compiled objects into the process (see code_loader.h).
#include "gpu/jit/code_loader.h"

#include <fmt/format.h>
#include <llvm/ExecutionEngine/Orc/DebugObjectManagerPlugin.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderGDB.h>
#include <llvm/Support/MemoryBuffer.h>
#include <sched.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "core/error.h"
#include "gpu/cpu/worker_number.h"
#include "gpu/jit/library_symbols.h"
#include "gpu/jit/llvm_module.h"
#include "gpu/jit/object_check.h"
#include "gpu/jit/perf_dump.h"
#include "gpu/jit/ptx_recorder.h"
#include "gpu/jit/sanitizer.h"
#define COPPICE_SIMT_HOST
#include "gpu/simt/symbols.h"

namespace coppice::jit {

namespace orc = llvm::orc;

struct CodeSession {
  std::unique_ptr<orc::LLJIT> jit;
  orc::JITDylib* library = nullptr;  // absolute symbols that kernels may call
  bool for_debugger = false;
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  std::string words;  // what ORC reported since it was last asked; guarded by mutex

  std::string take_words() {
    const std::lock_guard lock(mutex);
    return std::exchange(words, {});
  }
};

struct HostCode::Tracker {
  std::shared_ptr<CodeSession> session;
  orc::JITDylib* code = nullptr;
};

namespace {

[[noreturn]] void fail(const std::string& id, llvm::Error error) {
  throw Error(ErrorCode::kCompile,
              fmt::format("kernel {}: loading failed: {}", id, llvm::toString(std::move(error))));
}

template <class T>
T expect(llvm::Expected<T> value, const std::string& id) {
  if (!value) fail(id, value.takeError());
  return std::move(*value);
}

// Host functions are absolute symbols: nothing of the program is exported for kernels (no -rdynamic).
void add_library_symbols(orc::LLJIT& jit, orc::JITDylib& library) {
  orc::SymbolMap symbols;
  auto add = [&](const char* name, auto* function) {
    symbols[jit.mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(function),
                                          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  };
  add("sched_yield", &::sched_yield);  // of coppice_pause()
  add("coppice_cpu_worker", &worker_number);
  for (const LibrarySymbol& symbol : library_symbols()) {
    symbols[jit.mangleAndIntern(symbol.name)] = {
        orc::ExecutorAddr::fromPtr(symbol.function),
        llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  }
  for (const simt::Symbol& symbol : simt::symbols()) {
    symbols[jit.mangleAndIntern(symbol.name)] = {
        orc::ExecutorAddr::fromPtr(symbol.function),
        llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  }
  llvm::cantFail(library.define(orc::absoluteSymbols(std::move(symbols))));
}

// Instrumented kernels call the sanitizer's runtime library, which this program is linked with.
void add_sanitizer_symbols(orc::LLJIT& jit, orc::JITDylib& library) {
  if (kSanitizer == Sanitizer::kThread) {
    orc::SymbolMap symbols;  // LLVM's names for what GCC's library does in memcpy itself
    auto add = [&](const char* name, auto* function) {
      symbols[jit.mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(function),
                                            llvm::JITSymbolFlags::Exported};
    };
    add("__tsan_memcpy", &std::memcpy), add("__tsan_memmove", &std::memmove),
        add("__tsan_memset", &std::memset);
    llvm::cantFail(library.define(orc::absoluteSymbols(std::move(symbols))));
  }
  library.addGenerator(expect(orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
                                  jit.getDataLayout().getGlobalPrefix(),
                                  [](const orc::SymbolStringPtr& name) {
                                    return (*name).starts_with("__asan_") || (*name).starts_with("__tsan_");
                                  }),
                              "(session)"));
}

orc::ObjectLinkingLayer& linking_layer(CodeSession& session) {
  return static_cast<orc::ObjectLinkingLayer&>(session.jit->getObjLinkingLayer());
}

// The registration function's address is taken here, not looked up by name as LLVM's own helper does: a
// program with a static LLVM exports no names.
void show_to_debuggers(const std::shared_ptr<CodeSession>& session) {
  orc::ExecutionSession& execution = session->jit->getExecutionSession();
  linking_layer(*session).addPlugin(std::make_unique<orc::DebugObjectManagerPlugin>(
      execution,
      std::make_unique<orc::EPCDebugObjectRegistrar>(
          execution, orc::ExecutorAddr::fromPtr(&llvm_orc_registerJITLoaderGDBAllocAction)),
      true, true));
  session->for_debugger = true;
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::shared_ptr<CodeSession>>;  // never destroyed, as what it holds
  const std::lock_guard lock(mutex);
  kept.push_back(session);
}

}  // namespace

HostCode::HostCode() : tracker_(std::make_unique<Tracker>()) {}
HostCode::~HostCode() {
  if (tracker_->code == nullptr || tracker_->session->for_debugger) return;
  if constexpr (kSanitizer != Sanitizer::kNone) forget_lines_of(reinterpret_cast<uintptr_t>(entry_));
  // Nothing can be done about a failure here, and none is possible for a library of our own session.
  llvm::consumeError(tracker_->session->jit->getExecutionSession().removeJITDylib(*tracker_->code));
}

CodeLoader::CodeLoader(bool for_debugger) : session_(std::make_shared<CodeSession>()) {
  initialize_llvm();
  // It links in place: the default would start a thread for every step of linking.
  orc::LLJITBuilder builder;
  builder.setExecutorProcessControl(
      expect(orc::SelfExecutorProcessControl::Create(nullptr, std::make_unique<orc::InPlaceTaskDispatcher>()),
             "(session)"));
  session_->jit = expect(builder.create(), "(session)");
  // ORC would print to stderr; the words belong into the Error of the kernel that failed.
  session_->jit->getExecutionSession().setErrorReporter([session = session_.get()](llvm::Error error) {
    const std::lock_guard lock(session->mutex);
    session->words += llvm::toString(std::move(error)) + "; ";
  });
  if (for_debugger) show_to_debuggers(session_);
  show_to_perf(linking_layer(*session_));
  session_->library = &session_->jit->getExecutionSession().createBareJITDylib("coppice.library");
  add_library_symbols(*session_->jit, *session_->library);
  if (kSanitizer != Sanitizer::kNone) add_sanitizer_symbols(*session_->jit, *session_->library);
}
CodeLoader::~CodeLoader() = default;

IntrusivePtr<HostCode> CodeLoader::load(const std::string& object, const std::string& entry,
                                        const std::string& id) {
  auto& session = session_->jit->getExecutionSession();
  const std::string name = fmt::format("{}.{}", id, session_->next.fetch_add(1));
  auto code = make_intrusive<HostCode>();
  orc::JITDylib& dylib = session.createBareJITDylib(name);
  code->tracker_->session = session_;
  code->tracker_->code = &dylib;
  dylib.addToLinkOrder(*session_->library);
  if (auto error = session_->jit->addObjectFile(dylib, llvm::MemoryBuffer::getMemBufferCopy(object, name))) {
    fail(id, std::move(error));
  }
  auto found = session_->jit->lookup(dylib, entry);
  if (!found) {
    const std::string why = llvm::toString(found.takeError());
    throw Error(ErrorCode::kCompile,
                fmt::format("kernel {}: loading failed: {}{}", id, session_->take_words(), why));
  }
  code->entry_ = found->toPtr<KernelEntry>();
  if constexpr (kSanitizer != Sanitizer::kNone) report_lines_of(object, entry, found->getValue(), id);
  return code;
}

namespace {

class HostBackend final : public CodeBackend {
 public:
  std::string compile(const SpecializeRequest& request) override { return compile_x86(request); }
  std::string why_not_loadable(const std::string& image, const SpecializeRequest& request) override {
    return jit::why_not_loadable(image, request.entry);
  }
  IntrusivePtr<LoadedCode> load(const std::string& image, const SpecializeRequest& request) override {
    return loader_.load(image, request.entry, request.id);
  }

 private:
  CodeLoader loader_{codegen_options().step};
};

}  // namespace

std::unique_ptr<CodeBackend> host_backend() { return with_ptx_recorded(std::make_unique<HostBackend>()); }

}  // namespace coppice::jit
