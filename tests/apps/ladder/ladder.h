// The ladder that `./dev gpu` climbs first on a machine with a GPU: one rung asks for one thing more of the
// device than those that it needs. Each is run in a process of its own, since a GPU's error ends all work of
// its process.
//
//     coppice-gpu-ladder --list             one line per rung: "shared barrier", its name and what it needs
//     coppice-gpu-ladder RUNG [DEVICE]      cuda unless named; simt; fake (the recording driver of the tests)
//     coppice-gpu-ladder compile [DEVICE]   compiles the kernels of all rungs on all cores, and runs none
//
// A rung prints one line, what it found, and ends with one of ExitCode.
// COPPICE_LADDER_PLANT=hang:barrier,wrong:atomics (hang, wrong or sticky, and a rung) plants a fault, so that
// what reports about rungs can be tested.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "gpu/cuda/driver.h"
#include "gpu/device.h"
#include "sparse/program.h"
#include "sparse/tree.h"

namespace coppice::ladder {

enum ExitCode { kPassed = 0, kWrong = 1, kUsage = 2, kError = 3, kNotRun = 77 };

// The device did what it was asked without a complaint, and the result is not what it must be.
struct WrongResult : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Why the rung cannot be asked of this device.
struct NotRun : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The device under test; its plants go off here.
class Bench {
 public:
  // Errors: kUsage for an unknown device.
  Bench(std::string device, std::string_view rung);
  ~Bench();
  const std::string& name() const { return name_; }
  // Made at the first call. What is planted happens then, but for wrong results. Errors: kUnavailable.
  IntrusivePtr<Device> device();
  // Null for simt. Errors: kUnavailable.
  const cuda::Driver* driver();
  Program& program();
  // Added to one value by kernels that take it.
  uint32_t wrong() const { return plant_ == "wrong" ? 1 : 0; }
  // The emulated GPU takes a thousand times as long, and the fake has little memory.
  bool is_real() const { return name_ == "cuda"; }
  int scaled(int real, int rehearsed) const { return is_real() ? real : rehearsed; }
  // Lets the device go. Errors: WrongResult when the fake driver saw something done wrong.
  void close();

 private:
  void plant();

  const std::string name_;
  std::string plant_;
  struct Fake;
  std::unique_ptr<Fake> fake_;
  IntrusivePtr<Device> device_;
  std::unique_ptr<Program> program_;
};

struct Rung {
  std::string_view name;
  std::string_view needs;  // names with blanks
  // Returns what was found, in one line. Throws WrongResult, NotRun, Error.
  std::string (*run)(Bench&);
  bool takes_wrong = false;  // has a place for a planted wrong result
};
std::span<const Rung> rungs();

void expect(bool is_right, const std::string& what);

std::string run_driver(Bench&), run_memory(Bench&), run_copy(Bench&);
std::string run_kernel(Bench&), run_barrier(Bench&), run_shared(Bench&), run_atomics(Bench&);
std::string run_litmus(Bench&);
std::string run_activation(Bench&), run_list(Bench&), run_collection(Bench&), run_recording(Bench&);
std::string run_mpm(Bench&);
void compile_mpm(Bench&);

// The trees of the rungs, whose layout is part of their kernels' code.
struct LineTree {
  explicit LineTree(const IntrusivePtr<Device>& device);
  static constexpr int kBlocks = 64, kBlockCells = 256, kCells = kBlocks * kBlockCells;
  Tree tree;
  Node block, leaf;  // pointer and dense
  Field<int> x, y;
};
struct ListTree {
  explicit ListTree(const IntrusivePtr<Device>& device);
  static constexpr int kLists = 32;
  Tree tree;
  Node lists;
  Field<int> items;
};

}  // namespace coppice::ladder
