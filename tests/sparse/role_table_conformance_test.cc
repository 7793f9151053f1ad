// Handles of one field beside each other: every pair is what docs/sparse.md's table says, and what it allows
// computes what one cell after another would.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "core/error.h"
#include "roles.kernels.h"
#include "sparse/read_back.h"
#include "sparse/role_table.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

constexpr int kCells = 128, kLeaf = 16;
enum Kind { kRead, kReach, kWrite, kUpdate, kSum, kTile, kAtomic, kSet };
constexpr RoleUse kUses[] = {{Role::kRead},       {Role::kRead, 1},       {Role::kWrite},  {Role::kUpdate},
                             {Role::kAccumulate}, {Role::kAccumulate, 1}, {Role::kAtomic}, {Role::kGrow}};
// As the table in the docs names them.
constexpr const char* kNames[] = {"`Read`",       "`Read` with a reach",       "`Write`",  "`Update`",
                                  "`Accumulate`", "`Accumulate` with a reach", "`Atomic`", "`Grow`"};
constexpr int kNumKinds = std::size(kUses);

// Calls visit(first, second, kernel) for all pairs in both orders.
template <class Visit>
void each_pair(Visit&& visit) {
#define COPPICE_TEST_ROW(kind, first)                                                         \
  visit(kind, kRead, pair_##first##_read), visit(kind, kReach, pair_##first##_reach),         \
      visit(kind, kWrite, pair_##first##_write), visit(kind, kUpdate, pair_##first##_update), \
      visit(kind, kSum, pair_##first##_sum), visit(kind, kTile, pair_##first##_tile),         \
      visit(kind, kAtomic, pair_##first##_atomic), visit(kind, kSet, pair_##first##_set)
  COPPICE_TEST_ROW(kRead, read);
  COPPICE_TEST_ROW(kReach, reach);
  COPPICE_TEST_ROW(kWrite, write);
  COPPICE_TEST_ROW(kUpdate, update);
  COPPICE_TEST_ROW(kSum, sum);
  COPPICE_TEST_ROW(kTile, tile);
  COPPICE_TEST_ROW(kAtomic, atomic);
  COPPICE_TEST_ROW(kSet, set);
#undef COPPICE_TEST_ROW
}

std::string_view why_not(Kind a, Kind b) { return why_not_together(kUses[a], kUses[b]); }

// A row's cells by column, of the first table under `## Roles beside each other`.
using Table = std::map<std::string, std::map<std::string, std::string>>;
Table documented(std::istream& in) {
  auto cells = [](const std::string& line) {
    std::vector<std::string> all;
    for (size_t at = 1, end; (end = line.find('|', at)) != line.npos; at = end + 1) {
      std::string cell = line.substr(at, end - at);
      cell.erase(0, cell.find_first_not_of(' '));
      cell.erase(cell.find_last_not_of(' ') + 1);
      all.push_back(cell);
    }
    return all;
  };
  Table table;
  std::vector<std::string> columns;
  bool is_there = false;
  for (std::string line; std::getline(in, line);) {
    is_there |= line == "## Roles beside each other";
    if (!is_there) continue;
    if (line.empty() || line[0] != '|') {
      if (!columns.empty()) break;
      continue;
    }
    const std::vector<std::string> row = cells(line);
    if (columns.empty())
      columns = row;
    else
      for (size_t i = 1; i < row.size() && i < columns.size(); ++i) table[row[0]][columns[i]] = row[i];
  }
  return table;
}

TEST(RoleTable, IsTheOneInTheDocs) {
  std::ifstream page(COPPICE_DOCS "/sparse.md");
  if (!page) GTEST_SKIP() << "the docs are not here: " << COPPICE_DOCS;
  Table table = documented(page);
  for (int a = 0; a < kNumKinds; ++a) {
    for (int b = 0; b < kNumKinds; ++b) {
      EXPECT_EQ(table[kNames[a]][kNames[b]], why_not(Kind(a), Kind(b)).empty() ? "yes" : "no")
          << kNames[a] << " and " << kNames[b];
    }
  }
}

TEST(RoleTable, IsSymmetric) {
  for (int a = 0; a < kNumKinds; ++a)
    for (int b = 0; b < kNumKinds; ++b) EXPECT_EQ(why_not(Kind(a), Kind(b)), why_not(Kind(b), Kind(a)));
}

// Says what a kernel of roles.kernels.cc does to one cell; `right` is the value beside it.
int touch(Kind kind, int& x, int right, int v) {
  switch (kind) {
    case kRead:
      return v + 3 * x;
    case kReach:
      return v + x + 5 * right;
    case kWrite:
      x = v + 2;
      return v;
    case kUpdate:
      x = 2 * x + v;
      return v;
    case kAtomic:
      return std::exchange(x, v);
    case kSet:
      x = v + 5;
      return v + 1;
    default:
      x += v;
      return v + 1;
  }
}

class Roles : public DeviceTest {
 protected:
  // Cells 0, step, 2 step ... are active, and hold the squares of their numbers.
  struct Line {
    Tree tree;
    Node leaf;
    Field<int> x, out;
    int step;
  };
  Line line(bool masked, int step) {
    Tree tree(device);
    Node blocks = tree.root().pointer({kCells / kLeaf});
    Node leaf = masked ? blocks.bitmasked({kLeaf}) : blocks.dense({kLeaf});
    Line l{tree, leaf, leaf.place<int>("x"), leaf.place<int>("out"), step};
    run(set_square, range((kCells + step - 1) / step), l.x, step);
    return l;
  }
  std::string error_of(const AsyncValueRef<Chain>& done) {
    wait(done);
    const std::string what = done.is_error() ? done.error().what() : "";
    device->default_stream().clear_error();
    return what;
  }

  template <class Kernel>
  void expect_as_in_turn(Kind a, Kind b, const Kernel& kernel, bool masked, int step) {
    Line l = line(masked, step);
    run(kernel, over(l.leaf), l.x, l.x, l.out);
    const std::vector<int> x = wait_read(l.x, {0}, {kCells}), out = wait_read(l.out, {0}, {kCells});
    auto before = [&](int at) { return at % step == 0 && at < kCells ? at / step * (at / step) : 0; };
    for (int at = 0; at < kCells; ++at) {
      int value = before(at), v = at;
      if (at % step == 0) {
        for (const Kind kind : {a, b, a, b}) v = touch(kind, value, before(at + 1), v);
      }
      ASSERT_EQ(x[at], value) << kNames[a] << ", " << kNames[b] << ", masked " << masked << ", cell " << at;
      ASSERT_EQ(out[at], at % step == 0 ? v : 0) << kNames[a] << ", " << kNames[b] << ", cell " << at;
    }
  }
};

TEST_P(Roles, PairsThatAreAllowedActAsInTurn) {
  each_pair([&](Kind a, Kind b, const auto& kernel) {
    if (!why_not(a, b).empty()) return;
    expect_as_in_turn(a, b, kernel, false, 1);
    expect_as_in_turn(a, b, kernel, true, 1);
    expect_as_in_turn(a, b, kernel, true, 3);
  });
}

TEST_P(Roles, PairsThatRaceAreRefused) {
  Line l = line(true, 3);
  int refused = 0;
  each_pair([&](Kind a, Kind b, const auto& kernel) {
    if (why_not(a, b).empty()) return;
    ++refused;
    try {
      program().launch(kernel, over(l.leaf), l.x, l.x, l.out);
      ADD_FAILURE() << kNames[a] << " and " << kNames[b] << " are accepted";
    } catch (const Error& e) {
      const std::string what = e.what();
      EXPECT_NE(what.find("kernel roles.pair_"), what.npos) << what;
      EXPECT_NE(what.find("'x' on tree.pointer[8].bitmasked[16]"), what.npos) << what;
    }
  });
  EXPECT_GE(refused, 20);
}

TEST_P(Roles, ReadingOtherCellsOfAFieldThatIsWrittenIsAnError) {
  Line l = line(false, 1);
  EXPECT_EQ(error_of(program().launch(read_other, over(l.leaf), l.x, l.out)), "");
  const std::string what = error_of(program().launch(read_other, over(l.leaf), l.x, l.x));
  EXPECT_NE(what.find("kernel roles.read_other: field 'x' on tree.pointer[8].dense[16]: read at ("),
            what.npos)
      << what;
  EXPECT_NE(what.find("while its cells are written by the same launch"), what.npos) << what;
  EXPECT_NE(error_of(program().launch(update_from_other, over(l.leaf), l.x, l.x)), "");
  EXPECT_NE(error_of(program().launch(read_other_block, over(l.leaf), l.x, l.x)), "");
  EXPECT_EQ(error_of(program().launch(read_other_block, over(l.leaf), l.x, l.out)), "");
}

TEST_P(Roles, ReadingOtherElementsOfAListThatIsWrittenIsAnError) {
  Tree tree(device);
  Node lists = tree.root().pointer({4}).dynamic(64, 16);
  Field<int> x = lists.place<int>("x"), y = lists.place<int>("y");
  run(append_squares, range(10), x);
  EXPECT_EQ(error_of(program().launch(read_other_list, over(lists), x, y)), "");
  EXPECT_NE(error_of(program().launch(read_other_list, over(lists), x, x)), "");
}

INSTANTIATE_TEST_SUITE_P(Sparse, Roles, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
