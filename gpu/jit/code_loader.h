// Loads compiled objects into the process and removes them again.
//
// Thread-safe. A LoadedCode keeps its machine code mapped; dropping the last reference unmaps it, so a hot reload can
// replace a kernel while older launches still run the old one.
#pragma once
#include <memory>
#include <string>

#include "core/intrusive_ptr.h"
#include "gpu/launch_block.h"

namespace coppice::jit {

struct CodeSession;

class LoadedCode : public RefCounted {
 public:
  LoadedCode();
  ~LoadedCode() override;
  KernelEntry entry() const { return entry_; }

 private:
  friend class CodeLoader;
  struct Tracker;
  std::unique_ptr<Tracker> tracker_;
  KernelEntry entry_ = nullptr;
};

class CodeLoader {
 public:
  // With `for_debugger`, code is shown to debuggers through the interface that GDB defines for this, and stays mapped
  // until the process ends: a debugger cannot take its breakpoints out of what is gone.
  explicit CodeLoader(bool for_debugger = false);
  ~CodeLoader();
  // Maps an ELF object and finds `entry` in it. Errors: kCompile when the object does not link (it may call only the
  // C math library and memory functions).
  IntrusivePtr<LoadedCode> load(const std::string& object, const std::string& entry, const std::string& id);

 private:
  std::shared_ptr<CodeSession> session_;
};

}  // namespace coppice::jit
