// A kernel ready to run: code in this process, or a module on a GPU. Dropping the last reference unloads it,
// so a hot reload can replace a kernel while older launches still run the old one.
#pragma once
#include "core/intrusive_ptr.h"

namespace coppice {

class LoadedCode : public RefCounted {
 public:
  ~LoadedCode() override = default;

 protected:
  LoadedCode() = default;
};

}  // namespace coppice
