// The log's last lines for a panel: order, bounds, levels, and two threads.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "apps/viewer/log_ring.h"

namespace coppice::viewer {
namespace {

std::vector<std::string> texts(const LogRing& ring, uint64_t after = 0) {
  std::vector<std::string> all;
  for (const auto& line : ring.lines(after)) all.push_back(line->text);
  return all;
}

TEST(LogRings, GiveLinesThatAreNew) {
  LogRing ring;
  EXPECT_TRUE(ring.lines(0).empty());
  ring.add(LogLevel::kInfo, "a");
  ring.add(LogLevel::kError, "b");
  const auto lines = ring.lines(0);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]->number, 1u);
  EXPECT_EQ(lines[1]->level, LogLevel::kError);
  EXPECT_LE(lines[0]->time_s, lines[1]->time_s);
  ring.add(LogLevel::kDebug, "c");
  EXPECT_EQ(texts(ring, 2), std::vector<std::string>{"c"});
  EXPECT_TRUE(ring.lines(3).empty());
  EXPECT_TRUE(ring.lines(1000).empty()) << "of a number that there is not yet";
}

TEST(LogRings, KeepTheLastLines) {
  LogRing ring;
  for (size_t i = 1; i <= LogRing::kMostLines + 10; ++i) ring.add(LogLevel::kInfo, std::to_string(i));
  const std::vector<std::string> all = texts(ring);
  ASSERT_EQ(all.size(), LogRing::kMostLines);
  EXPECT_EQ(all.front(), "11");
  EXPECT_EQ(all.back(), std::to_string(LogRing::kMostLines + 10));
  EXPECT_EQ(texts(ring, 5).size(), LogRing::kMostLines) << "some of what was asked for is gone";
  ring.add(LogLevel::kInfo, std::string(5000, 'x'));
  EXPECT_EQ(texts(ring).back(), std::string(LogRing::kLongestLine, 'x'));
}

TEST(LogRings, AreCopiesOfTheLog) {
  std::vector<std::string> seen;
  set_log_sink([&](LogLevel, std::string_view line) { seen.emplace_back(line); });
  const LogLevel before = log_level();
  set_log_level(LogLevel::kWarning);
  LogRing ring;
  {
    const LogCopy copy(ring);
    log_debug("a detail");
    log_warning("a warning");
  }
  log_warning("later");
  set_log_level(before);
  set_log_sink({});
  EXPECT_EQ(texts(ring), (std::vector<std::string>{"a detail", "a warning"}));
  EXPECT_EQ(seen, (std::vector<std::string>{"a warning", "later"}));
}

// Two threads add while a third reads what is new: nothing comes twice, and each thread's lines come in
// order.
TEST(LogRings, LoseNothingThatIsReadInTime) {
  LogRing ring;
  std::atomic<uint64_t> read{0};
  std::vector<std::thread> threads;
  constexpr uint64_t kLines = 3000;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kLines; ++i) {
        // As far ahead of the reader as the ring has room for.
        while (2 * i > read + LogRing::kMostLines / 2) std::this_thread::yield();
        ring.add(LogLevel::kInfo, std::to_string(t) + " " + std::to_string(i));
      }
    });
  }
  uint64_t next[2] = {0, 0}, last = 0;
  while (next[0] + next[1] < 2 * kLines) {
    for (const auto& line : ring.lines(last)) {
      ASSERT_EQ(line->number, last + 1);
      last = line->number;
      uint64_t& expected = next[line->text[0] - '0'];
      ASSERT_EQ(line->text.substr(2), std::to_string(expected));
      ++expected;
    }
    read = 2 * std::min(next[0], next[1]);
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(last, 2 * kLines);
}

}  // namespace
}  // namespace coppice::viewer
