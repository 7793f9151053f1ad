// Loads compiled objects into the process and removes them again.
//
// Thread-safe. A HostCode keeps its machine code mapped; dropping the last reference unmaps it.
#pragma once
#include <memory>
#include <string>

#include "core/intrusive_ptr.h"
#include "gpu/jit/code_backend.h"
#include "gpu/launch_block.h"

namespace coppice::jit {

struct CodeSession;

class HostCode final : public LoadedCode {
 public:
  HostCode();
  ~HostCode() override;
  KernelEntry entry() const { return entry_; }

 private:
  friend class CodeLoader;
  struct Tracker;
  std::unique_ptr<Tracker> tracker_;
  KernelEntry entry_ = nullptr;
};

class CodeLoader {
 public:
  // With `for_debugger`, code is shown to debuggers through the interface that GDB defines for this, and
  // stays mapped until the process ends: a debugger cannot take its breakpoints out of what is gone.
  explicit CodeLoader(bool for_debugger = false);
  ~CodeLoader();
  // Maps an ELF object and finds `entry` in it. Errors: kCompile when the object does not link (it may call
  // only the C math library and memory functions).
  IntrusivePtr<HostCode> load(const std::string& object, const std::string& entry, const std::string& id);

 private:
  std::shared_ptr<CodeSession> session_;
};

// Makes x86-64 objects, of this machine; with CodegenOptions::simt for the emulated GPU.
std::unique_ptr<CodeBackend> host_backend();
// Returns the entry of code that such a back end loaded.
inline KernelEntry host_entry(const LoadedCode& code) { return static_cast<const HostCode&>(code).entry(); }

}  // namespace coppice::jit
