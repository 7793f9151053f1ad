// The primary contexts of a process: each GPU's is retained once, at its first use, and kept to the end.
//
// A context takes a tenth of a second and some hundred MiB to make, and a program that makes a device, drops
// it and makes the next (as tests do) would pay that each time. A context that was lost is given back when
// its last user has gone, so that the next device gets a fresh one. Thread-safe.
#pragma once
#include <map>
#include <mutex>
#include <utility>

#include "gpu/cuda/driver.h"

namespace coppice::cuda {

class PrimaryContexts {
 public:
  static PrimaryContexts& of_process();

  // Takes the context of a device, whose user the caller is from now on. Returns the driver's answer.
  Result acquire(const Driver& driver, DeviceId device, ContextHandle* context);
  // Counts one user less; `is_lost` says that it met a fatal answer.
  void let_go(const Driver& driver, DeviceId device, bool is_lost);
  // Returns how many users a driver's contexts have: one for each Context.
  int users(const Driver& driver) const;
  // Gives a driver's contexts back, none of which has a user: for a table of functions that ends before
  // the process.
  void release_all(const Driver& driver);

 private:
  struct Entry {
    ContextHandle context = nullptr;
    int users = 0;
    bool is_lost = false;
  };
  mutable std::mutex mutex_;
  std::map<std::pair<const Driver*, DeviceId>, Entry> entries_;
};

}  // namespace coppice::cuda
