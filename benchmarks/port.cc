// The benchmark port: a program of Taichi's, mpm88 with a million particles, ported loop by loop, beside the
// original.
//
// Sides take turns. On one thread both count CPU time, on all threads the wall clock. peers/mpm88_taichi.py
// is the other side; docs/benchmarks.md lists what differs.
#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <random>

#include "benchmarks/benchmarks.h"
#include "benchmarks/measure.h"
#include "benchmarks/peer_program.h"
#include "core/error.h"
#include "core/math.h"
#include "gpu/host_access.h"
#include "port.kernels.h"
#include "sparse/program.h"
#include "sparse/read_back.h"
#include "sparse/tree.h"

namespace coppice::bench {
namespace {

struct Sizes {
  int32_t grid;  // cells per axis
  int64_t particles;
  int steps;  // per timed frame
  int repetitions;
};
Sizes sizes(const Options& options) {
  if (options.tiny) return {64, 1 << 10, 2, 1};
  if (options.quick) return {512, 1 << 18, 4, 3};
  return {1024, 1 << 20, 4, 9};
}
// Sound, at 20 m/s, crosses two fifths of a cell in a step.
PortCase port_case(const Sizes& s) { return {s.grid, 0.02f / static_cast<float>(s.grid)}; }

constexpr int kListSteps = 16;  // between which particles go to other lists

// Where particles are and how fast, on average.
struct Fluid {
  double height = 0, speed = 0;
};

struct Nodes {
  Tree tree;
  int32_t n;
  Node blocks = tree.root().pointer({n / 8, n / 8}), leaf = blocks.dense({8, 8});
  Field<PortNode> field = leaf.place<PortNode>("node");
};

std::vector<Vec2f> places(int64_t n) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> side(0.2f, 0.6f);
  std::vector<Vec2f> x(static_cast<size_t>(n));
  for (Vec2f& p : x) p = Vec2f(side(random), side(random));
  return x;
}

class Port {
 public:
  virtual ~Port() = default;
  virtual void step() = 0;
  virtual Fluid wait_fluid() = 0;
  void wait_steps(int count) {
    for (int i = 0; i < count; ++i) step();
    program_.wait();
  }

 protected:
  Port(const IntrusivePtr<Device>& device, const Sizes& s)
      : program_(device),
        case_(port_case(s)),
        count_(s.particles),
        nodes_{Tree(device, {.name = "nodes"}), s.grid} {}
  void clear_nodes() { program_.launch(port_clear, over(nodes_.leaf), nodes_.field); }
  void move_nodes() { program_.launch(port_move_nodes, over(nodes_.leaf), nodes_.field, case_); }

  Program program_;
  PortCase case_;
  int64_t count_;
  Nodes nodes_;
};

// Arrays of particles, as Taichi's fields are, in random order, and all nodes active.
class BufferPort final : public Port {
 public:
  BufferPort(const IntrusivePtr<Device>& device, const Sizes& s)
      : Port(device, s),
        x_(wait_device_copy(*device, places(count_))),
        v_(wait_device_copy(*device, std::vector<Vec2f>(static_cast<size_t>(count_), Vec2f(0, -1)))),
        affine_(wait_device_copy(*device, std::vector<Mat2f>(static_cast<size_t>(count_), Mat2f::Zero()))),
        ratio_(wait_device_copy(*device, std::vector<float>(static_cast<size_t>(count_), 1.0f))) {
    program_.launch(port_clear, over_box(nodes_.leaf, {0, 0}, {s.grid, s.grid}), nodes_.field);
  }
  void step() override {
    clear_nodes();
    program_.launch(port_add_items, range(count_), nodes_.field, case_, *x_, *v_, *affine_, *ratio_);
    move_nodes();
    program_.launch(port_move_items, range(count_), nodes_.field, case_, *x_, *v_, *affine_, *ratio_);
  }
  Fluid wait_fluid() override {
    std::vector<Vec2f> x(static_cast<size_t>(count_)), v(x.size());
    program_.wait();
    program_.device().wait_copy(x.data(), x_->data(), x.size() * sizeof(Vec2f));
    program_.device().wait_copy(v.data(), v_->data(), v.size() * sizeof(Vec2f));
    Fluid fluid;
    for (const Vec2f& p : x) fluid.height += p.y() / static_cast<double>(count_);
    for (const Vec2f& p : v) fluid.speed += p.norm() / static_cast<double>(count_);
    return fluid;
  }

 private:
  IntrusivePtr<Buffer> x_, v_, affine_, ratio_;
};

// A list of particles for each block, and nodes where there are particles.
class ListPort final : public Port {
 public:
  ListPort(const IntrusivePtr<Device>& device, const Sizes& s)
      : Port(device, s), now_{Tree(device), s.grid}, next_{Tree(device), s.grid}, sum_tree_(device) {
    sum_ = sum_tree_.root().dense({2}).place<double>("sum");
    const IntrusivePtr<Buffer> x = wait_device_copy(*device, places(count_));
    program_.launch(port_list_items, range(count_), now_.particles, case_, *x);
    program_.launch(port_cover, over(now_.blocks), nodes_.blocks.topology(), case_);
    program_.wait();
  }
  void step() override {
    if (++steps_ % kListSteps == 0) sort();
    clear_nodes();
    program_.launch(port_add_entries, over(now_.lists), nodes_.field, case_, now_.particles);
    move_nodes();
    program_.launch(port_move_entries, over(now_.lists), nodes_.field, case_, now_.particles);
  }
  Fluid wait_fluid() override {
    program_.launch(port_sum_heights, over(now_.lists), now_.particles, sum_);
    const auto n = static_cast<double>(count_);
    return {wait_read(sum_, {0}) / n, wait_read(sum_, {1}) / n};
  }

 private:
  struct Lists {
    Tree tree;
    int32_t n;
    Node blocks = tree.root().pointer({n / 8, n / 8}), lists = blocks.dynamic(1 << 20, 64);
    Field<PortParticle> particles = lists.place<PortParticle>("particles");
  };
  void sort() {
    program_.launch(port_list_entries, over(now_.lists), next_.particles, case_, now_.particles);
    now_.tree.deactivate_all();
    std::swap(now_, next_);
    nodes_.tree.deactivate_all();
    program_.launch(port_cover, over(now_.blocks), nodes_.blocks.topology(), case_);
  }

  Lists now_, next_;
  Tree sum_tree_;
  Field<double> sum_;
  int steps_ = 0;
};

class Taichi : public OptionalPeer {
 public:
  Taichi(const Options& options, const Sizes& s, int threads)
      : OptionalPeer("taichi 1.7.4", "taichi left out") {
    if (options.tiny) return;
    start("taichi", "mpm88_taichi.py",
          {"--grid", std::to_string(s.grid), "--particles", std::to_string(s.particles), "--dt",
           fmt::format("{}", port_case(s).dt), "--threads", std::to_string(threads)});
  }
};

double cpu_seconds() {
  timespec t;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Seconds per step, of each timed frame.
struct Times {
  std::vector<double> wall, cpu;
};

// The arrays, the lists and Taichi on so many threads, frame by frame in turns.
class Turns {
 public:
  Turns(const Options& options, int threads)
      : sizes_(sizes(options)),
        threads_(threads),
        device_(Device::cpu(threads)),
        buffers_(device_, sizes_),
        lists_(device_, sizes_),
        taichi_(options, sizes_, threads) {}

  void run(Report& report) {
    for (int r = -1; r < sizes_.repetitions; ++r) {  // the first to warm up
      Times none;
      run_frame(buffers_, r < 0 ? none : of_buffers_);
      run_frame(lists_, r < 0 ? none : of_lists_);
      run_peer(r < 0 ? none : of_taichi_);
    }
    const std::optional<double> height = taichi_.ask("state", "height"),
                                speed = taichi_.ask("state", "speed");
    for (Port* port : {static_cast<Port*>(&buffers_), static_cast<Port*>(&lists_)}) {
      const Fluid fluid = port->wait_fluid();
      compare("height", fluid.height, height), compare("speed", fluid.speed, speed);
    }
    report.add(row("mpm88", of_buffers_));
    report.add(row("mpm88_lists", of_lists_));
  }

 private:
  void run_frame(Port& port, Times& times) const {
    const double cpu = cpu_seconds();
    const Clock::time_point wall = Clock::now();
    port.wait_steps(sizes_.steps);
    times.wall.push_back(seconds_since(wall) / sizes_.steps);
    times.cpu.push_back((cpu_seconds() - cpu) / sizes_.steps);
  }
  void run_peer(Times& times) {
    const std::optional<std::string> line = taichi_.ask_line(fmt::format("steps {}", sizes_.steps));
    if (!line) return;
    times.wall.push_back(number_of(*line, "seconds") / sizes_.steps);
    times.cpu.push_back(number_of(*line, "cpu_seconds") / sizes_.steps);
  }
  // Errors: kInternal when they do not compute the same. Particles are drawn by different generators.
  static void compare(const char* what, double ours, std::optional<double> theirs) {
    if (theirs && !(std::abs(ours - *theirs) <= 0.01 * std::abs(*theirs)))
      throw Error(ErrorCode::kInternal,
                  fmt::format("port: our fluid's mean {} is {:.4f}, taichi's {:.4f}", what, ours, *theirs));
  }
  Row row(const std::string& name, const Times& ours) const {
    const bool is_alone = threads_ == 1;
    const auto ms = [&](const Times& t) { return 1e3 * median(is_alone ? t.cpu : t.wall); };
    Row row;
    row.name = "port/" + name + (is_alone ? "_1_thread" : ""), row.unit = "ms/step", row.ours = ms(ours);
    row.target = ratio_at_most(0.7), row.peer_name = taichi_.name();
    if (taichi_.is_there()) row.peer = ms(of_taichi_);
    // Places, velocities, affine parts and ratios are read once, and all written once.
    const double bytes = 2.0 * 36 * static_cast<double>(sizes_.particles);
    row.floor = 1e3 * bytes / copy_bytes_per_s(threads_, static_cast<size_t>(bytes / 2));
    row.detail = fmt::format("{} particles, grid {}^2, {} thread{}", sizes_.particles, sizes_.grid, threads_,
                             is_alone ? "" : "s");
    if (!is_alone) {
      row.detail += fmt::format("; CPU time {:.0f} ms", 1e3 * median(ours.cpu));
      if (taichi_.is_there()) row.detail += fmt::format(", taichi {:.0f} ms", 1e3 * median(of_taichi_.cpu));
    }
    return row;
  }

  Sizes sizes_;
  int threads_;
  IntrusivePtr<Device> device_;
  BufferPort buffers_;
  ListPort lists_;
  Taichi taichi_;
  Times of_buffers_, of_lists_, of_taichi_;
};

}  // namespace

void run_port(Report& report) {
  const int all = Device::cpu()->threads();
  for (const int threads : all > 1 ? std::vector<int>{1, all} : std::vector<int>{1}) {
    report.begin(fmt::format("port, mpm88 on {} thread{}", threads, threads > 1 ? "s" : ""));
    Turns(report.options(), threads).run(report);
  }
}

}  // namespace coppice::bench
