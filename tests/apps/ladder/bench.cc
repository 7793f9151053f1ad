// The device that a rung asks, and what is planted in it (see ladder.h).
#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

#include "core/error.h"
#include "gpu/cuda/cuda_device.h"
#include "gpu/cuda/driver_error.h"
#include "gpu/kernel_store.h"
#include "ladder.kernels.h"
#include "tests/apps/ladder/ladder.h"
#include "tests/sparse/fake_gpu.h"
#include "tests/sparse/staging.h"

namespace coppice::ladder {
namespace {

// "hang" of COPPICE_LADDER_PLANT=hang:barrier,wrong:atomics, for the rung "barrier".
std::string plant_of(std::string_view rung) {
  const char* all = std::getenv("COPPICE_LADDER_PLANT");
  std::istringstream words(all != nullptr ? all : "");
  for (std::string word; std::getline(words, word, ',');) {
    const size_t colon = word.find(':');
    if (colon != word.npos && std::string_view(word).substr(colon + 1) == rung) return word.substr(0, colon);
  }
  return {};
}

}  // namespace

// Device memory of the size of small tests. Its blocks hold back no thread: CPU code runs in place of the
// GPU's.
struct Bench::Fake {
  fake::FakeDriver driver{fake::Options{.memory_bytes = size_t{256} << 20}};
  fake::LaunchedBlocks blocks;
};

Bench::Bench(std::string device, std::string_view rung) : name_(std::move(device)), plant_(plant_of(rung)) {
  if (name_ != "cuda" && name_ != "simt" && name_ != "fake")
    throw Error(ErrorCode::kUsage, fmt::format("no device '{}': cuda, simt or fake", name_));
  if (!plant_.empty() && plant_ != "hang" && plant_ != "wrong" && plant_ != "sticky")
    throw Error(ErrorCode::kUsage, fmt::format("no plant '{}': hang, wrong or sticky", plant_));
  if (name_ == "fake") fake_ = std::make_unique<Fake>();
}

Bench::~Bench() = default;

const cuda::Driver* Bench::driver() {
  if (fake_) return &fake_->driver.table();
  return name_ == "cuda" ? &cuda::load_driver() : nullptr;
}

IntrusivePtr<Device> Bench::device() {
  if (device_) return device_;
  if (fake_) {
    device_ = cuda::make_device(fake_->driver.table(), {.wrap_backend = [this](auto ptx) {
                                  return std::make_shared<fake::RunningBackend>(std::move(ptx), fake_->driver,
                                                                                fake_->blocks);
                                }});
  } else {
    device_ = Device::named(name_);
  }
  program_ = std::make_unique<Program>(device_);
  plant();
  return device_;
}

Program& Bench::program() {
  device();
  return *program_;
}

void Bench::plant() {
  if (plant_ == "hang") {
    uint32_t flag = 0;
    run_on(*program_, spin_for_ever, range(1), inout(flag));
  } else if (plant_ == "sticky") {
    // On the fake driver the kernel itself would end the process.
    if (fake_) fake_->driver.fault_in("ladder_store_nowhere", cuda::Result::kIllegalAddress);
    program_->launch(store_nowhere, range(1), uint64_t{16});
  }
}

void Bench::close() {
  program_.reset();
  device_.reset();
  if (!fake_) return;
  const std::string report = fake_->driver.report();
  if (!report.empty())
    throw WrongResult("the driver was used wrongly: " + report.substr(0, report.find('\n')));
}

void expect(bool is_right, const std::string& what) {
  if (!is_right) throw WrongResult(what);
}

}  // namespace coppice::ladder
