// The rows that every benchmark reports: one table on standard output, one JSON file.
//
// A row stands beside a peer measured in the same run, and beside its floor: what the machine allows for the
// same work, from bytes moved at the measured speed of a copy. Used by one thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace coppice::bench {

struct Options {
  bool quick = false;           // all benchmarks together within 40 s
  bool tiny = false;            // smallest sizes, for the tests: the numbers mean nothing
  std::string device = "cuda";  // of the benchmark gpu
  bool instructions = false;    // count instructions under valgrind as well
  std::string json;             // empty: none
  std::string only;             // a benchmark's name; empty: all
};

// A row should reach this.
struct Target {
  enum class Of { kRatio, kOurs } of = Of::kRatio;
  enum class Is { kAtLeast, kAtMost } is = Is::kAtMost;
  double value = 0;

  bool is_met_by(double measured) const { return is == Is::kAtLeast ? measured >= value : measured <= value; }
  std::string text() const;  // "ratio >= 4"
};
inline Target ratio_at_least(double value) { return {Target::Of::kRatio, Target::Is::kAtLeast, value}; }
inline Target ratio_at_most(double value) { return {Target::Of::kRatio, Target::Is::kAtMost, value}; }
inline Target ours_at_least(double value) { return {Target::Of::kOurs, Target::Is::kAtLeast, value}; }
inline Target ours_at_most(double value) { return {Target::Of::kOurs, Target::Is::kAtMost, value}; }

struct Row {
  std::string name;  // "benchmark/case"
  double ours = 0;
  std::string unit;
  std::optional<double> peer;
  std::string peer_name;  // without a peer: why it is absent, or empty
  std::optional<Target> target;
  std::optional<double> floor;                            // in the same unit
  std::optional<double> instructions, peer_instructions;  // per unit of work
  std::string detail;                                     // what else a reader must know

  std::optional<double> ratio() const;  // ours / peer
  bool is_rate() const { return unit.ends_with("/s"); }
  std::optional<double> share_of_floor() const;  // 1: at the floor
  std::optional<bool> meets_target() const;
};

class Report {
 public:
  explicit Report(const Options& options) : options_(options) {}
  const Options& options() const { return options_; }
  // Tells on standard error what is being measured, as rows take seconds.
  void begin(const std::string& what) const;
  // Tells the row there, too: what was measured before a crash is not lost.
  void add(Row row);
  // A part that could not be measured; the others are.
  void add_failure(const std::string& what, const std::string& why);
  const std::vector<std::string>& failures() const { return failures_; }
  // Names the machine that ran, when it is not the CPU.
  void set_machine(std::string text) { machine_ = std::move(text); }
  const std::string& machine() const { return machine_; }
  const std::vector<Row>& rows() const { return rows_; }

  std::string table() const;
  std::string json() const;

 private:
  Options options_;
  std::vector<Row> rows_;
  std::vector<std::string> failures_;
  std::string machine_;
};

}  // namespace coppice::bench
