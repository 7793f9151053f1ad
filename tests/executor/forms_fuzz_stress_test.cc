// A million mutated texts and files through the readers of both forms, without libFuzzer: seeded, so that a
// failure repeats. The inputs start from fuzz/corpus and from whatever mutation was a module too.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/executor/forms_properties.h"

namespace coppice::executor {
namespace {

#ifdef COPPICE_DEBUG
constexpr int kRounds = 50'000;
#else
constexpr int kRounds = 500'000;
#endif
constexpr size_t kLongestInput = 600, kMostInputs = 256;

using Random = std::mt19937_64;

size_t below(Random& random, size_t bound) { return random() % bound; }

std::vector<std::string> corpus(const std::string& form) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(COPPICE_FUZZ_CORPUS "/") + form))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

const std::string kWords[] = {
    "func", "return", "@f", "@g", "%x", "%y", "%a", "(", ")", "{", "}", ",", ":", "=", "->", " ", "\n", "//",
    "\"", "\\", "\\x4", "\\12", "true", "nan", "-inf", "1e9", "0.5", "-1", ".", "op", "i32", "%x = op\n",
    "op 1, \"a\" (%x)\n", "nan:7ff8000000000001", "func @h() { return }\n", "\xff",
    // These belong to the binary form: lengths, kinds and numbers at their limits.
    std::string("\0", 1), "\1", "\2", "\3", "\4", "\5", "\x7f", "\x80\1", std::string("\x80\0", 2),
    "\xff\xff\xff\xff\x0f", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"};

void mutate_once(std::string& input, const std::vector<std::string>& others, Random& random) {
  const size_t at = below(random, input.size() + 1);
  const size_t size = std::min(below(random, 16), input.size() - at);
  switch (below(random, 7)) {
    case 0:
      input.erase(at, size);
      break;
    case 1:
      input.insert(at, kWords[below(random, std::size(kWords))]);
      break;
    case 2:
      input.replace(at, size, kWords[below(random, std::size(kWords))]);
      break;
    case 3:
      input.insert(at, input.substr(below(random, input.size() + 1), 40));
      break;
    case 4: {  // the start of this one, the end of another
      const std::string& other = others[below(random, others.size())];
      input.replace(at, input.npos, other, std::min(at, other.size()), kLongestInput);
      break;
    }
    case 5:
      if (at < input.size()) input[at] = static_cast<char>(random());
      break;
    default:
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ 1 << below(random, 8));
  }
}

// Keeps mutating a pool of inputs. `run` says what became of one; modules join the pool, so that changes add
// up. It may change the input to what shall join.
template <class Run>
void fuzz(const std::string& form, uint64_t seed, Run run) {
  std::vector<std::string> pool = corpus(form);
  ASSERT_GE(pool.size(), 4u) << "no corpus in " << COPPICE_FUZZ_CORPUS;
  const size_t n_corpus = pool.size();
  Random random(seed);
  int n_modules = 0;
  for (int round = 0; round < kRounds; ++round) {
    // Every other time one of the corpus, since the rest of the pool drifts towards what is small.
    std::string input = pool[below(random, round % 2 == 0 ? n_corpus : pool.size())];
    for (size_t n = 1 + below(random, 3); n > 0; --n) mutate_once(input, pool, random);
    if (input.size() > kLongestInput) input.resize(kLongestInput);
    const Outcome outcome = run(input);
    ASSERT_EQ(outcome.broken, "") << "seed " << seed << ", round " << round << ": "
                                  << testing::PrintToString(input);
    if (outcome.n_operations == 0) continue;
    ++n_modules;
    if (pool.size() < kMostInputs) {
      pool.push_back(std::move(input));
    } else {
      pool[n_corpus + below(random, pool.size() - n_corpus)] = std::move(input);
    }
  }
  // Many inputs got through, and many did not.
  EXPECT_GT(n_modules, kRounds / 50);
  EXPECT_LT(n_modules, kRounds / 2);
  testing::Test::RecordProperty("modules", n_modules);
}

TEST(FormsFuzz, AnyTextIsAModuleOrRefused) {
  fuzz("text", 20, [](std::string& input) {
    const Outcome outcome = try_text(input);
    // Printed, since comments would gather the more the longer it runs.
    if (outcome.n_operations > 0) input = print(parse(input));
    return outcome;
  });
}

TEST(FormsFuzz, AnyBytesAreAModuleOrRefused) {
  fuzz("binary", 21, [](std::string& input) {
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(input));
    if (Outcome raw = try_binary(bytes); !raw.broken.empty()) return raw;
    repair_header(bytes);
    return try_binary(bytes);
  });
}

}  // namespace
}  // namespace coppice::executor
