// Launching kernels over trees and ranges (see program.h): what has been prepared is kept, by what it is of.
#include "sparse/program.h"

#include <algorithm>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/hash.h"
#include "core/process_end.h"
#include "core/work_refusal.h"
#include "gpu/kernel_store.h"
#include "gpu/kernel_versions.h"
#include "sparse/bound_launches.h"
#include "sparse/prepared_launch.h"
#include "sparse/program_ptx.h"
#include "sparse/ranks/cut_launch.h"
#include "sparse/specialization.h"
#include "sparse/temporary_buffer.h"
#include "sparse/traced_calls.h"
#include "sparse/tree_storage.h"
#include "sparse/uses.h"

namespace coppice {

using detail::LaunchRequest;

namespace {

using LaunchKey = std::vector<uint64_t>;
struct LaunchKeyHash {
  size_t operator()(const LaunchKey& key) const { return hash64(std::as_bytes(std::span(key))); }
};

LaunchKey key_of(const LaunchRequest& r) {
  // Trees count by serial number: an address may be used again by a later tree.
  LaunchKey key{reinterpret_cast<uint64_t>(r.file),
                reinterpret_cast<uint64_t>(r.name.data()),
                r.loop.tree ? r.loop.tree->serial() : 0,
                r.loop.node,
                r.box_at,
                r.slot_mask,
                r.loop.device_count != nullptr};
  if (const LaunchRequest* other = r.makes_room_for) {
    key.push_back(reinterpret_cast<uint64_t>(other->file));
    key.push_back(reinterpret_cast<uint64_t>(other->name.data()));
  }
  for (uint32_t i = 0; i < r.num_handles; ++i) {
    key.push_back(r.handles[i].id.tree != nullptr ? tree_of(r.handles[i].id)->serial() : 0);
    key.push_back(uint64_t{r.handles[i].id.node} << 32 | r.handles[i].id.field);
  }
  return key;
}

}  // namespace

struct Program::State {
  State(IntrusivePtr<Device> device, const CodegenOptions& options) : maker(std::move(device), options) {}

  LaunchMaker maker;
  const ForkGuard guard;
  std::mutex mutex;  // guards what follows
  std::unordered_map<LaunchKey, IntrusivePtr<Prepared>, LaunchKeyHash> prepared;
  size_t launches_until_pruning = 0;

  // Launches of trees that are gone can never come again; without this, whoever rebuilds trees would pile
  // them up, and with them machine code. With n live entries there are at most 2n + 1 of them, and a
  // launch looks at two on average.
  void prune() {
    if (launches_until_pruning-- > 0) return;
    const size_t gone = std::erase_if(prepared, [](const auto& entry) {
      const auto& livenesses = entry.second->livenesses;
      return std::any_of(livenesses.begin(), livenesses.end(),
                         [](const auto& tree) { return tree.expired(); });
    });
    launches_until_pruning = prepared.size();
    if (gone > 0) maker.device()->kernels().release_unused();
  }

  IntrusivePtr<Prepared> find_or_prepare(const LaunchRequest& r) {
    guard.check("launch with a program");  // before the mutex, which a thread of the parent's may have held
    const std::lock_guard lock(mutex);
    prune();
    auto [entry, fresh] = prepared.try_emplace(key_of(r));
    if (fresh) note_kernel_file(*r.file);
    if (fresh || entry->second->generation != kernel_generation()) {
      try {
        renew(r, entry->second);
      } catch (...) {
        prepared.erase(entry);
        throw;
      }
    }
    return entry->second;
  }

  void renew(const LaunchRequest& r, IntrusivePtr<Prepared>& prepared) const {
    const uint64_t generation = kernel_generation();
    const KernelVersion* const version = current_kernel_version(*r.file);
    if (!prepared || prepared->version != version) prepared = maker.wait_prepare_good(r, version);
    prepared->generation = generation;
  }
};

Program::Program(IntrusivePtr<Device> device, const CodegenOptions& options) {
  if (!device) throw Error(ErrorCode::kInvalidArgument, "a program without a device");
  state_ = std::make_unique<State>(std::move(device), options);
}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program::State& Program::state() const {
  if (state_) return *state_;
  throw Error(ErrorCode::kInvalidArgument, "a Program is used that was moved from");
}
Device& Program::device() const { return *state().maker.device(); }
void Program::wait() const {
  const AsyncValueRef<Chain> done = device().default_stream().barrier();
  coppice::wait(done);
  if (done.is_error()) throw done.error();
}

Launch Program::prepare(const LaunchRequest& r) {
  const IntrusivePtr<Prepared> prepared = state().find_or_prepare(r);
  Launch launch = state_->maker.launch_of(r, prepared);
  if (r.loop.tree && r.loop.box) activate_box_first(launch, r);
  return launch;
}

Launch Program::prepare_at(const LaunchRequest& r, const KernelVersion* version) {
  Launch launch = state_->maker.launch_of(r, state_->maker.prepare(r, version));
  if (r.loop.tree && r.loop.box) activate_box_first(launch, r);
  return launch;
}

AsyncValueRef<Chain> Program::give(const LaunchRequest& r) {
  const bool over_ranks = is_over_ranks(r);
  if (over_ranks && TracedCalls::current() != nullptr) refuse_to_keep(r);
  if (TracedCalls* const traced = TracedCalls::current()) {
    const BoundLaunch launch = [&] {
      const WorkRefusal::Scope lifted(nullptr);  // while it is made ready
      return bind_request(r);
    }();
    return traced->launch(launch);
  }
  refuse_temporaries(r);
  Launch launch = prepare(r);
  if (over_ranks) check_over_ranks(r, *launch.uses);
  note_temporary_fields(*launch.uses, launch.name);
  if (over_ranks) return give_over_ranks(r, std::move(launch), device().default_stream());
  return device().default_stream().launch(std::move(launch));
}

BoundLaunch Program::bind_request(const LaunchRequest& given) {
  if (is_over_ranks(given)) refuse_to_keep(given);
  LaunchRequest r = given;
  note_temporaries(r);
  BoundLaunch bound(state().maker.device(), prepare(r));
  BoundLaunches::add(bound.bound_, r, state().maker.options());
  return bound;
}

std::string ProgramPtx::of_request(Program& program, jit::PtxTarget target, const LaunchRequest& given) {
  const LaunchMaker& maker = program.state().maker;
  const LaunchRequest r = at_current_version(given, maker.options());
  Binding b = make_binding(r, *maker.device(), maker.options().checks);
  if (maker.options().checks) tell_uses(b, *coppice::uses_of(r));
  return jit::compile_ptx(specialization(r, b, maker.options()), target);
}

IntrusivePtr<const LaunchUses> Program::uses_of(const LaunchRequest& given) const {
  const LaunchMaker& maker = state().maker;
  const LaunchRequest r = at_current_version(given, maker.options());
  make_binding(r, *maker.device(), maker.options().checks);  // refuses what a launch would
  return coppice::uses_of(r);
}

std::string Program::explain(const LaunchRequest& r) const {
  return kernel_id(r) + "\n" + text_of(*uses_of(r));
}

}  // namespace coppice
