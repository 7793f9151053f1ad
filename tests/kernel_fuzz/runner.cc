// Runs batches of generated kernels as their plans say, and compares each kernel with its reference.
//
//     kernel_fuzz_runner LOOPS
//
// LOOPS is the folder of the shapes' loops (loops.h). Every line of standard input is the folder of a batch
// (batch_kernels.h) with a file `plan`, of which a line is one run. Devices and trees serve all batches.
//
//     run ID KERNEL SHAPE DEVICE OPTIONS TREE SEED BEGIN END [FIELD...]
//
// KERNEL numbers the batch's kernels; DEVICE is cpu1, cpu2, simt or ptx; OPTIONS plain, checks or step; TREE
// one of forest.h's; SEED that of the values; BEGIN and END the range of an Item kernel; FIELD, per handle, a
// type and a number such as i32:2. Two handles may name one field. A number of 50 and more starts with small
// whole values, whose sums are exact in any order. Output, a line each, as it goes:
//
//     start ID       before a run, so that a crash has a name
//     ok ID          the same bits
//     differ ID ...  where they differ first, and in how many values
//     error ID ...   the launch's error
//     ptx ID FILE    the kernel's PTX, in a file beside the plan
//     end [WHAT SECONDS...]   the batch's; of a processor, for its assembly and each device
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>

#include "core/error.h"
#include "gpu/host_access.h"
#include "gpu/simt/machine.h"
#include "tests/kernel_fuzz/batch_kernels.h"
#include "tests/kernel_fuzz/forest.h"
#include "tests/kernel_fuzz/growing.h"
#include "tests/kernel_fuzz/launch.h"
#include "tests/kernel_fuzz/values.h"

namespace coppice::kernel_fuzz {
namespace {

std::map<int, std::unique_ptr<Shape>>& shapes() {
  static std::map<int, std::unique_ptr<Shape>> all;
  return all;
}

}  // namespace

void add_shape(int number, std::unique_ptr<Shape> shape) { shapes()[number] = std::move(shape); }
const Shape* find_shape(int number) {
  const auto found = shapes().find(number);
  return found == shapes().end() ? nullptr : found->second.get();
}
void add_shapes_0();
void add_shapes_1();
void add_shapes_2();
void add_shapes_3();

namespace {

using fuzz_reference::At;
using fuzz_reference::Call;

constexpr int kTableIntegers = 16;

struct FieldName {
  std::string type;
  int number;
  bool operator<(const FieldName& o) const { return std::tie(type, number) < std::tie(o.type, o.number); }
};

FieldName real_name(const FieldName& name) {
  if (name.number == kFlagField) return {"flag", 0};
  return {name.type, name.number >= kWholeFields ? name.number - kWholeFields : name.number};
}

struct Run {
  std::string id;
  int kernel, shape;
  std::string place;
  int dims;
  std::string device, options;
  int tree;
  uint64_t seed;
  int64_t begin, end;
  std::vector<FieldName> fields;
};

bool is_over_blocks(const Run& run) { return run.place == "Block" || run.place == "BlockTeam"; }
bool is_over_range(const Run& run) { return run.place == "Item" || run.place == "Team"; }

Run parse_run(const std::string& line) {
  std::istringstream words(line);
  std::string verb, word;
  Run run;
  words >> verb >> run.id >> run.kernel >> run.shape >> run.place >> run.dims >> run.device >> run.options >>
      run.tree >> run.seed >> run.begin >> run.end;
  if (!words || verb != "run") throw Error(ErrorCode::kUsage, "not a run: " + line);
  while (words >> word) {
    const size_t colon = word.find(':');
    run.fields.push_back({word.substr(0, colon), std::stoi(word.substr(colon + 1))});
  }
  return run;
}

// A device with its programs and trees, made when first asked for.
class World {
 public:
  explicit World(const std::string& name)
      : device_(name == "simt" ? Device::simt(simt::Options{.threads_per_block = 32})
                               : Device::cpu(name == "cpu2" ? 2 : 1)),
        fills_(device_, CodegenOptions{}) {}

  // Returns the program that launches the batch's kernels.
  Program& program(const std::string& options) {
    std::unique_ptr<Program>& program = programs_[options];
    if (!program) {
      CodegenOptions asked;
      asked.checks = options == "checks", asked.step = options == "step";
      program = std::make_unique<Program>(device_, asked);
    }
    return *program;
  }
  // A program knows kernels by address, which those of the next batch may have.
  void end_batch() { programs_.clear(); }
  Grown& tree(const Run& run) {
    const bool lists = run.place == "Entry", blocks = is_over_blocks(run);
    std::unique_ptr<Grown>& tree = trees_[{run.dims, run.tree, lists, blocks}];
    if (!tree) tree = std::make_unique<Grown>(fills_, run.dims, run.tree, lists, blocks);
    return *tree;
  }
  Device& device() { return *device_; }
  Program& fills() { return fills_; }

 private:
  IntrusivePtr<Device> device_;
  Program fills_;  // the kernels that fill the trees' fields
  std::map<std::string, std::unique_ptr<Program>> programs_;
  std::map<std::tuple<int, int, bool, bool>, std::unique_ptr<Grown>> trees_;
};

std::map<std::string, std::unique_ptr<World>>& worlds() {
  static std::map<std::string, std::unique_ptr<World>> all;
  return all;
}
World& world(const std::string& device) {
  const std::string name = device == "ptx" ? "cpu1" : device;
  std::unique_ptr<World>& found = worlds()[name];
  if (!found) found = std::make_unique<World>(name);
  return *found;
}

void finish(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}

std::vector<int32_t> table_of(const Run& run) {
  std::vector<int32_t> table(kTableIntegers);
  for (int i = 0; i < kTableIntegers; ++i) table[i] = fuzz_value<int32_t>(mix(run.seed, i, 3));
  return table;
}
Arguments arguments_of(const Run& run) {
  Arguments a{};
  a.p0 = fuzz_value<int32_t>(mix(run.seed, 1)), a.p1 = fuzz_value<float>(mix(run.seed, 2));
  return a;
}

// One array or field with what the device must have made of it.
struct Compared {
  std::string name, type;
  std::vector<unsigned char> before, want, got;
  bool whole = false;  // sums in any order: a zero may have either sign
};

// Says where they differ first; empty where they do not.
std::string difference(const std::vector<Compared>& all, const std::function<std::string(size_t)>& place) {
  std::string first;
  size_t count = 0, total = 0;
  for (const Compared& c : all) {
    const uint32_t bytes = bytes_of(c.type);
    for (size_t i = 0; i * bytes < c.want.size(); ++i) {
      ++total;
      if (same_value(c.type, &c.got[i * bytes], &c.want[i * bytes], c.whole)) continue;
      if (count++ == 0)
        first = fmt::format("{} at {}: got {}, want {}, before {}", c.name, place(i),
                            value_text(c.type, &c.got[i * bytes]), value_text(c.type, &c.want[i * bytes]),
                            value_text(c.type, &c.before[i * bytes]));
    }
  }
  return count == 0 ? "" : fmt::format("{}; {} of {} values", first, count, total);
}

std::string run_over_tree(const Run& run, const Shape& shape, Batch& batch, std::string& ptx) {
  World& w = world(run.device);
  Grown& tree = w.tree(run);
  const std::vector<HandleInfo> handles = shape.handles();
  if (handles.size() != run.fields.size())
    throw Error(ErrorCode::kUsage, "the run names not as many fields as there are handles");
  std::map<FieldName, Compared> by_name;
  std::vector<FieldId> ids;
  for (const FieldName& name : run.fields) {
    const FieldName real = real_name(name);
    ids.push_back(tree.field(real.type, real.number));
    Compared& c = by_name[real];
    if (!c.before.empty()) continue;
    c.name = fmt::format("{}:{}", real.type, real.number), c.type = real.type;
    const uint32_t bytes = bytes_of(real.type);
    const uint64_t seed = mix(run.seed, real.number, real.type[0], real.type[1]);
    c.before = name.number >= kWholeFields ? whole_values(real.type, tree.values_per_field(), seed)
                                           : fuzz_values(real.type, tree.values_per_field(), seed);
    for (uint64_t i = 0; run.place != "Entry" && i < tree.box_cells(); ++i) {
      const int32_t one = tree.active()[i];
      if (real.type == "flag")
        std::memcpy(&c.before[i * 4], &one, 4);
      else if (one == 0)
        std::memset(&c.before[i * bytes], 0, bytes);
    }
    c.want = c.before, c.whole = name.number >= kWholeFields && name.number != kFlagField;
  }
  Arguments a = arguments_of(run);
  if (is_over_blocks(run)) a.p0 = tree.block_cells();
  const std::vector<int32_t> table = table_of(run);
  const IntrusivePtr<Buffer> device_table = wait_device_copy(w.device(), table);
  a.table = device_table->as<int32_t>();
  Program& program = w.program(run.options);
  const AnyKernel& kernel = batch.kernel(run.kernel);
  const fuzz_reference::Reference reference = batch.reference(run.kernel);
  if (run.device == "ptx") {
    ptx = shape.ptx(program, kernel, over(tree.node()), ids.data(), a);
    return "";
  }
  for (auto& [name, c] : by_name)
    tree.wait_fill(tree.field(name.type, name.number), bytes_of(name.type), c.before.data());
  finish(shape.launch(program, kernel, over(tree.node()), ids.data(), a));

  std::vector<fuzz_reference::Field> fields;
  for (const FieldName& name : run.fields) {
    const FieldName real = real_name(name);
    fuzz_reference::Field f{by_name[real].want.data(), {}, {}};
    for (int d = 0; d < 3; ++d) f.begin[d] = tree.box().begin[d], f.extent[d] = tree.box().extent[d];
    fields.push_back(f);
  }
  Call call{};
  call.fields = fields.data(), call.a = a, call.a.table = table.data();
  const std::vector<At>& places = run.place == "Cell"   ? tree.cells()
                                  : is_over_blocks(run) ? tree.blocks()
                                                        : tree.elements();
  for (const At& at : places) {
    call.at = at;
    reference(call);
  }
  std::vector<Compared> all;
  for (auto& [name, c] : by_name) {
    c.got.resize(c.want.size());
    tree.wait_read(tree.field(name.type, name.number), bytes_of(name.type), c.got.data());
    all.push_back(c);
  }
  const FuzzBox& box = tree.box();
  std::string words = difference(all, [&](size_t i) {
    if (run.place == "Entry") return fmt::format("element {}", i);
    const auto [x, y, z] = box.extent;
    return fmt::format("({}, {}, {})", box.begin[0] + int(i / z / y), box.begin[1] + int(i / z % y),
                       box.begin[2] + int(i % z));
  });
  if (!words.empty()) words += " on " + tree.description();
  return words;
}

std::string run_over_range(const Run& run, const Shape& shape, Batch& batch, std::string& ptx) {
  World& w = world(run.device);
  std::vector<Compared> all;
  std::vector<IntrusivePtr<Buffer>> buffers;
  const char* const types[] = {"i32", "f32", "f64"};
  const int64_t per_item = run.place == "Team" ? fuzz::kTeamItems : 1;
  for (int k = 0; k < 6; ++k) {
    Compared c{fmt::format("{} {}", k < 3 ? "in" : "out", types[k % 3]), types[k % 3], {}, {}, {}, false};
    c.before = fuzz_values(c.type, static_cast<uint64_t>(run.end * per_item) + 3, mix(run.seed, k));
    c.want = c.got = c.before;
    buffers.push_back(wait_device_copy(w.device(), c.before));
    all.push_back(std::move(c));
  }
  // Trees of this run's own, and their fields by handle.
  std::vector<std::unique_ptr<GrowingTree>> trees;
  std::vector<FieldId> ids;
  std::vector<fuzz_reference::Field> fields;
  const std::vector<HandleInfo> handles = shape.handles();
  for (size_t k = 0; k < handles.size(); ++k) {
    const uint64_t seed = mix(run.seed, k, 17);
    const std::string& type = run.fields.at(k).type;
    trees.push_back(handles[k].role == Role::kAppend
                        ? make_lists(w.fills(), run.dims, run.tree, type, k > 0, seed)
                        : make_cells(w.fills(), run.dims, run.tree, type, seed));
    ids.push_back(trees.back()->field());
    fields.push_back({nullptr, {}, {}, trees.back().get()});
  }
  Arguments a = arguments_of(run);
  a.in_i = buffers[0]->as<int32_t>(), a.in_f = buffers[1]->as<float>(), a.in_d = buffers[2]->as<double>();
  a.out_i = buffers[3]->as<int32_t>(), a.out_f = buffers[4]->as<float>(), a.out_d = buffers[5]->as<double>();
  Program& program = w.program(run.options);
  const AnyKernel& kernel = batch.kernel(run.kernel);
  const fuzz_reference::Reference reference = batch.reference(run.kernel);
  const Loop loop = range(run.begin, run.end);
  if (run.device == "ptx") {
    ptx = shape.ptx(program, kernel, loop, ids.data(), a);
    return "";
  }
  finish(shape.launch(program, kernel, loop, ids.data(), a));
  Call call{};
  const auto host = [&]<class T>(T*, int k) { return reinterpret_cast<T*>(all[k].want.data()); };
  call.a = a, call.fields = fields.data();
  call.a.in_i = host((int32_t*)nullptr, 0), call.a.in_f = host((float*)nullptr, 1),
  call.a.in_d = host((double*)nullptr, 2);
  call.a.out_i = host((int32_t*)nullptr, 3), call.a.out_f = host((float*)nullptr, 4),
  call.a.out_d = host((double*)nullptr, 5);
  for (int64_t i = run.begin; i < run.end; ++i) {
    call.at.index = i;
    reference(call);
  }
  for (int k = 0; k < 6; ++k) w.device().wait_copy(all[k].got.data(), buffers[k]->data(), all[k].got.size());
  std::string words = difference(all, [](size_t i) { return fmt::format("item {}", i); });
  for (const auto& tree : trees) {
    if (words.empty()) words = tree->wait_difference();
  }
  return words;
}

void one(const Run& run, Batch& batch, const std::string& folder) {
  const Shape* shape = find_shape(run.shape);
  if (shape == nullptr) throw Error(ErrorCode::kUsage, fmt::format("no shape {}", run.shape));
  std::string ptx;
  try {
    const std::string words =
        is_over_range(run) ? run_over_range(run, *shape, batch, ptx) : run_over_tree(run, *shape, batch, ptx);
    if (!ptx.empty()) {
      const std::string file = fmt::format("{}/{}.ptx", folder, run.id);
      std::ofstream(file) << ptx;
      fmt::print("ptx {} {}\n", run.id, file);
    } else {
      fmt::print("{} {} {}\n", words.empty() ? "ok" : "differ", run.id, words);
    }
  } catch (const Error& e) {
    world(run.device).device().default_stream().clear_error();
    std::string words = e.what();
    std::replace(words.begin(), words.end(), '\n', ' ');
    fmt::print("error {} {}\n", run.id, words);
  }
}

void run_plan(Loops& loops, const std::string& folder) {
  std::clock_t last = std::clock();
  std::map<std::string, std::clock_t> spent;
  const auto count_for = [&](const std::string& what) {
    const std::clock_t now = std::clock();
    spent[what] += now - last, last = now;
  };
  Batch batch(loops, folder);
  count_for("assembly");
  std::ifstream lines(folder + "/plan");
  for (std::string line; std::getline(lines, line);) {
    const Run run = parse_run(line);
    fmt::print("start {}\n", run.id);
    std::fflush(stdout);
    one(run, batch, folder);
    std::fflush(stdout);
    count_for(run.device);
  }
  for (auto& [name, world] : worlds()) world->end_batch();
  fmt::print("end");
  for (const auto& [what, clocks] : spent) fmt::print(" {} {}", what, double(clocks) / CLOCKS_PER_SEC);
  fmt::print("\n");
  std::fflush(stdout);
}

int run_batches(const char* loops_folder) {
  add_shapes_0(), add_shapes_1(), add_shapes_2(), add_shapes_3();
  Loops loops(loops_folder);
  for (std::string folder; std::getline(std::cin, folder);) run_plan(loops, folder);
  return 0;
}

}  // namespace
}  // namespace coppice::kernel_fuzz

int main(int count, char** words) try {
  if (count != 2) return 2;
  return coppice::kernel_fuzz::run_batches(words[1]);
} catch (const std::exception& error) {
  std::cerr << "kernel_fuzz_runner: error: " << error.what() << "\n";
  return 1;
}
