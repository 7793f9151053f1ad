// The MPM solver over ranks, for the benchmark `remote`; mpiexec starts it:
//
//   coppice-bench-solver-ranks weak|strong CELLS STEPS ROUNDS [LATER]
//
// With LATER the blocks' values that ranks exchange come as many microseconds later, as over a network, while
// the ranks have their cores: what runs beside messages is seen by it.
//
// A block of jelly, CELLS cells high and wide, lies in a long box; with `weak` it is as many times as long as
// there are ranks. Each rank has a cpu device of one thread. Rank 0 prints a line: how many particles all
// ranks together advance by a step in a second; how many one rank alone does, of the whole for `strong` and
// of its part for `weak`, while the others sleep; the share of the time that rank 0 was in exchanges;
// exchanges and bytes sent in a step; blocks and particles of all ranks. Rates are medians of rounds of STEPS
// steps.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "apps/mpm/rank_solver.h"
#include "apps/scene/scene.h"
#include "executor/remote/mpi/mpi_rank_link.h"
#include "executor/remote/mpi/mpi_session.h"

namespace coppice::bench {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

scene::SceneConfig make_scene(int cells, int length) {
  return scene::parse_scene(
      fmt::format("dim = 3\n[domain]\nmax = [{0}, 1, 1]\n[grid]\nresolution = {1}\n[time]\nframe_dt_s = 10\n"
                  "[[emitter]]\nshape = \"box\"\ncenter = [{2}, 0.3, 0.5]\nhalf_size = [{3}, 0.25, 0.45]\n"
                  "material = \"jelly\"\n",
                  length, cells * length, 0.5 * length, 0.45 * length),
      "solver_ranks.toml");
}

class LateLink final : public RankLink {
 public:
  LateLink(std::shared_ptr<RankLink> link, int later_us) : link_(std::move(link)), later_(later_us) {}
  int rank() const override { return link_->rank(); }
  int n_ranks() const override { return link_->n_ranks(); }
  std::vector<Bytes> wait_exchange(std::vector<Bytes> parts) override {
    return link_->wait_exchange(std::move(parts));
  }
  std::vector<Bytes> wait_exchange_known(std::vector<Bytes> parts, std::span<const uint64_t> sizes,
                                         std::span<uint32_t> most) override {
    if (std::ranges::any_of(sizes, [](uint64_t bytes) { return bytes > 0; }))
      std::this_thread::sleep_for(later_);
    return link_->wait_exchange_known(std::move(parts), sizes, most);
  }

 private:
  const std::shared_ptr<RankLink> link_;
  const std::chrono::microseconds later_;
};

// Returns particle steps per second.
double measure(mpm::Solver& solver, int steps, int rounds) {
  const auto advance = [&] {
    for (const uint64_t end = solver.steps() + static_cast<uint64_t>(steps); solver.steps() < end;)
      solver.wait_advance(static_cast<int>(end - solver.steps()));
  };
  advance();  // compiles
  std::vector<double> rates;
  for (int round = 0; round < rounds; ++round) {
    const double begin = seconds_now();
    advance();
    rates.push_back(steps * static_cast<double>(solver.num_particles()) / (seconds_now() - begin));
  }
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

int run(int argc, char** argv) {
  if (argc != 5 && argc != 6) return 2;
  const bool is_weak = std::string_view(argv[1]) == "weak";
  const int cells = std::atoi(argv[2]), steps = std::atoi(argv[3]), rounds = std::atoi(argv[4]);
  const executor::remote::MpiSession session;
  std::shared_ptr<RankLink> link = std::make_shared<executor::remote::MpiRankLink>(session.world());
  if (argc == 6) link = std::make_shared<LateLink>(std::move(link), std::atoi(argv[5]));
  const Cluster cluster(std::move(link));
  const scene::SceneConfig scene = make_scene(cells, is_weak ? cluster.n_ranks() : 1);
  const auto device = [] { return Device::cpu(1); };
  if (cluster.rank() != 0) {
    cluster.wait_all();
    mpm::follow(device(), scene, {.cluster = cluster});
    return 0;
  }
  double alone = 0;
  {
    const auto solver = mpm::Solver::create(device(), is_weak ? make_scene(cells, 1) : scene);
    alone = measure(*solver, steps, rounds);
  }
  cluster.wait_all();
  const auto solver = mpm::Solver::create(device(), scene, {.cluster = cluster});
  measure(*solver, steps, 1);
  const Cluster::Traffic before = cluster.traffic();
  const uint64_t steps_before = solver->steps();
  const double begin = seconds_now(), together = measure(*solver, steps, rounds),
               seconds = seconds_now() - begin;
  const Cluster::Traffic& behind = cluster.traffic();
  const auto n_steps = static_cast<double>(solver->steps() - steps_before);
  std::printf("%s %.6g %.6g %.4g %.4g %.6g %lu %lu\n", argv[1], together, alone,
              (behind.seconds - before.seconds) / seconds,
              static_cast<double>(behind.rounds - before.rounds) / n_steps,
              static_cast<double>(behind.bytes_sent - before.bytes_sent) / n_steps,
              solver->wait_stats().active_blocks, solver->num_particles());
  return 0;
}

}  // namespace
}  // namespace coppice::bench

int main(int argc, char** argv) try {
  return coppice::bench::run(argc, argv);
} catch (const std::exception& error) {
  std::fprintf(stderr, "coppice-bench-solver-ranks: %s\n", error.what());
  return 1;
}
