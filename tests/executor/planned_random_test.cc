// Random functions, with bodies within bodies, give the same bytes planned and not: with one instance run
// many times with other sizes, and outputs that are looked at when later runs have ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/executor/bytes_operations.h"

namespace coppice::executor {
namespace {

// Writes the text of a function, and of those that its operations run.
class RandomFunction {
 public:
  explicit RandomFunction(uint32_t seed, bool with_later) : random_(seed), with_later_(with_later) {}

  std::string run() {
    write("main", 0, 2);
    return text_;
  }

 private:
  uint32_t below(uint32_t n) { return random_() % n; }
  // Takes `num_bytes` values of bytes and two numbers, and returns as many bytes, and a number where it is
  // main.
  std::string write(const std::string& name, int depth, uint32_t num_bytes) {
    std::vector<std::string> bytes, numbers{"%n", "%m"};
    std::string signature, body;
    for (uint32_t i = 0; i < num_bytes && depth > 0; ++i) {
      bytes.push_back("%x" + std::to_string(i));
      signature += bytes.back() + ": bytes, ";
    }
    if (depth == 0) body += "%a0 = iota (%n, %m)\n%a1 = iota (%m, %n)\n", bytes = {"%a0", "%a1"};
    signature += "%n: i32, %m: i32";
    const uint32_t num_operations = depth == 0 ? 8 + below(10) : 1 + below(6);
    std::vector<std::string> lists;
    for (uint32_t i = 0; i < num_operations; ++i) {
      const std::string v = "%v" + std::to_string(i);
      const auto any = [&](const std::vector<std::string>& from) {
        return from[below(uint32_t(from.size()))];
      };
      const auto any_bytes = [&] { return any(bytes); };
      switch (below(depth < 2 ? 17 : 13)) {
        case 0:
          body += v + " = iota (" + size(body, v, any(numbers)) + ", " + any(numbers) + ")\n";
          break;
        case 1:
        case 2:
          body += v + " = mix (" + any_bytes() + ", " + any_bytes() + ")\n";
          break;
        case 3:
        case 4:
          body += v + " = shift " + std::to_string(i + 1) + " (" + any_bytes() + ")\n";
          break;
        case 5:
          body += v + " = both (" + any_bytes() + ", " + any_bytes() + ")\n";
          break;
        case 6:
          body += v + " = half (" + any_bytes() + ")\n";
          break;
        case 7:
          body += v + " = keep (" + any_bytes() + ")\n";
          break;
        case 8:
          body += v + " = " + (with_later_ ? "later" : "shift 3") + " (" + any_bytes() + ")\n";
          break;
        case 9:
          body += v + "l = pair (" + any_bytes() + ", " + any_bytes() + ")\n";
          body += v + " = first (" + v + "l)\n";
          break;
        case 10:
          body +=
              v + " = " + (below(3) == 0 ? "fail_odd" : "mix (" + any_bytes() + ", " + any_bytes() + ")\n#");
          if (body.back() == '#')
            body.pop_back();
          else
            body += " (" + any_bytes() + ")\n";
          break;
        case 11:
          body += v + "s = sum (" + any_bytes() + ")\n";
          numbers.push_back(v + "s");
          body += v + " = shift 2 (" + any_bytes() + ")\n";
          break;
        case 12:
          body += v + "s = note (" + any_bytes() + ")\n";
          numbers.push_back(v + "s");
          body += v + " = mix (" + any_bytes() + ", " + any_bytes() + ")\n";
          break;
        case 13: {
          const std::string f = write(name + "c" + std::to_string(i), depth + 1, 1);
          body += v + " = call @" + f + " (" + any_bytes() + ", " + any(numbers) + ", %m)\n";
          break;
        }
        case 14: {
          const std::string f = write(name + "t" + std::to_string(i), depth + 1, 1);
          const std::string g = write(name + "e" + std::to_string(i), depth + 1, 1);
          body += v + "c = is_even (" + any(numbers) + ")\n";
          body += v + " = if @" + f + ", @" + g + " (" + v + "c, " + any_bytes() + ", %n, " + any(numbers) +
                  ")\n";
          break;
        }
        default: {
          const std::string f = write_round(name + "r" + std::to_string(i), depth + 1);
          body += v + "k = constant.i32 " + std::to_string(below(4)) + "\n";
          body += v + ", " + v + "y, " + v + "z = repeat @" + f + " (" + v + "k, " + any_bytes() + ", " +
                  any_bytes() + ", " + any(numbers) + ")\n";
          bytes.push_back(v + "y");
          numbers.push_back(v + "z");
        }
      }
      bytes.push_back(v);
    }
    std::string results, values;
    for (uint32_t i = 0; i < num_bytes; ++i) {
      results += (i > 0 ? ", " : "") + std::string("bytes");
      values += (i > 0 ? ", " : "") +
                bytes[bytes.size() - 1 - below(std::min<uint32_t>(4, uint32_t(bytes.size())))];
    }
    if (depth == 0) {
      body += "%sum = sum (" + bytes.back() + ")\n";
      results += ", i32", values += ", %sum";
    }
    text_ += "func @" + name + "(" + signature + ") -> (" + results + ") {\n" + body + "return " + values +
             "\n}\n";
    return name;
  }
  // A body of a loop that carries two values of bytes and a number.
  std::string write_round(const std::string& name, int depth) {
    const std::string f = write(name + "b", depth, 2);
    std::string body = "%u, %w = call @" + f + " (%x, %y, %n, %n)\n%s = sum (%u)\n%k = to_size (%s)\n";
    const char* const returns[] = {"%u, %w, %k", "%w, %u, %k", "%u, %y, %k",
                                   "%y, %u, %n", "%x, %w, %k", "%u, %x, %n"};
    text_ += "func @" + name + "(%x: bytes, %y: bytes, %n: i32) -> (bytes, bytes, i32) {\n" + body +
             "return " + returns[below(6)] + "\n}\n";
    return name;
  }
  std::string size(std::string& body, const std::string& v, const std::string& of) {
    body += v + "n = to_size (" + of + ")\n";
    return v + "n";
  }

  std::mt19937 random_;
  const bool with_later_;
  std::string text_;
};

using Seen = std::vector<std::string>;
Seen seen(const std::vector<RCReference<AsyncValue>>& results) {
  Seen all;
  for (const auto& result : results) {
    if (result->is_error()) {
      all.push_back("error " + std::string(result->error().what()));
    } else if (result->is_type<HostBytes>()) {
      std::string text;
      for (const int32_t item : items_of(*result)) text += std::to_string(item) + " ";
      all.push_back(text);
    } else {
      all.push_back(std::to_string(result->get<int32_t>()));
    }
  }
  return all;
}

void compare(uint32_t seed, const PlanOptions& options, bool with_later, IntrusivePtr<WorkQueue> queue) {
  const std::string text = RandomFunction(seed, with_later).run();
  PlannedProgram p(text, options, queue);
  std::mt19937 random(seed + 1000);
  std::vector<std::vector<RCReference<AsyncValue>>> all;
  std::vector<Seen> expected;
  std::vector<std::vector<HostBytes>> notes;
  std::vector<std::vector<std::vector<int32_t>>> expected_notes;
  const auto finish = [&](const std::vector<RCReference<AsyncValue>>& results) {
    if (!queue) return p.later().run_all();
    for (const auto& result : results) wait(*result);
  };
  for (int run = 0; run < 5; ++run) {
    const int32_t n = run == 2 ? 60 : int32_t(random() % 40), m = int32_t(random() % 50);
    const auto executed = p.run_executor({number(n), number(m)});
    finish(executed);
    expected.push_back(seen(executed));
    expected_notes.push_back(items_of(noted_bytes().take()));
    all.push_back(p.run({number(n), number(m)}));
    finish(all.back());
    notes.push_back(noted_bytes().take());
    for (const auto& result : all.back()) ASSERT_TRUE(result->is_available()) << text;
    ASSERT_EQ(seen(all.back()), expected.back()) << "seed " << seed << " run " << run << "\n"
                                                 << text << p.plan->explain();
  }
  for (size_t run = 0; run < all.size(); ++run)
    ASSERT_EQ(seen(all[run]), expected[run]) << "seed " << seed << ", later; run " << run << "\n" << text;
  // On a queue, operations that no result needs may still be under way.
  for (size_t run = 0; run < all.size() && !queue; ++run)
    ASSERT_THAT(items_of(notes[run]), testing::UnorderedElementsAreArray(expected_notes[run]))
        << "seed " << seed << ", copies of run " << run << "\n"
        << text << p.plan->explain();
  (void)p.host->shared<KeptBytes>().take();
}

TEST(PlannedRandom, GivesTheExecutorsBytes) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    const PlanOptions options{.placement = seed % 2 == 0 ? Placement::kOffsets : Placement::kGroups,
                              .manages_outputs = seed % 3 != 0};
    compare(seed, options, seed % 4 == 1, nullptr);
    if (HasFatalFailure()) return;
  }
}

TEST(PlannedRandom, GivesTheExecutorsBytesOnAQueue) {
  const auto queue = WorkQueue::create({.threads = 2});
  for (uint32_t seed = 1000; seed < 1200; ++seed) {
    compare(seed, {}, true, queue);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace coppice::executor
