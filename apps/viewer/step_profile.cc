// Adding up a live trace, step by step (see step_profile.h).
#include "apps/viewer/step_profile.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace coppice::viewer {
namespace {

constexpr size_t kMostShown = 400;  // events of a timeline
constexpr uint32_t kStreamRoot = 0, kHostRoot = 1;

float ms_of(int64_t ns) { return static_cast<float>(1e-6 * static_cast<double>(ns)); }
float ms_of(const TraceEvent& e) { return ms_of(e.end_ns - e.begin_ns); }

// Places by rows' numbers.
class Places {
 public:
  explicit Places(const TraceRecord& record) {
    for (const TraceRecord::Row& row : record.rows) places_[row.id] = place_of_row(row.name);
  }
  // Neighbours are in the same row mostly.
  TracePlace of(uint32_t row) {
    if (row != last_row_) last_row_ = row, last_ = places_[row];
    return last_;
  }

 private:
  std::unordered_map<uint32_t, TracePlace> places_;
  uint32_t last_row_ = 0;
  TracePlace last_ = TracePlace::kHost;
};

// Finds the event that another lies in. Events come from the last to the first: one that ends later comes
// earlier.
template <class What>
class Nesting {
 public:
  struct Outer {
    int64_t begin_ns, end_ns;
    What what;
  };
  // Returns null where the event lies in no other. The number of those around it is its depth.
  const Outer* around(const TraceEvent& e) {
    while (!open_.empty() && !(open_.back().begin_ns <= e.begin_ns && e.end_ns <= open_.back().end_ns))
      open_.pop_back();
    return open_.empty() ? nullptr : &open_.back();
  }
  int depth() const { return static_cast<int>(open_.size()); }
  void enter(const TraceEvent& e, What what) { open_.push_back({e.begin_ns, e.end_ns, what}); }

 private:
  std::vector<Outer> open_;
};

// A batch has the launches that a step has least often `per_batch` times; `first` is the one of them that
// begins first. per_batch is zero where no launch came at least once a step.
struct Rhythm {
  uint64_t per_batch = 0;
  std::string_view first;
  std::unordered_map<std::string_view, uint64_t> counts;  // by name, of streams
};
Rhythm rhythm_of(const TraceRecord& record, uint64_t steps) {
  Rhythm r;
  Places places(record);
  std::unordered_map<std::string_view, int64_t> begins_ns;
  for (const TraceEvent& e : record.events) {
    if (places.of(e.row) != TracePlace::kStream) continue;
    ++r.counts[e.name];
    const auto [at, is_new] = begins_ns.emplace(e.name, e.begin_ns);
    if (!is_new) at->second = std::min(at->second, e.begin_ns);
  }
  // A step may launch something several times, and a batch more launches than it had steps to make.
  for (const auto& [name, count] : r.counts) {
    if (count >= steps && (r.per_batch == 0 || count < r.per_batch)) r.per_batch = count;
  }
  for (const auto& [name, count] : r.counts) {
    if (count == r.per_batch && (r.first.empty() || begins_ns[name] < begins_ns[r.first])) r.first = name;
  }
  return r;
}

// The last step goes from its first launch to the end of its last one.
struct Span {
  int64_t begin_ns = 0, end_ns = 0;
};
Span last_step_of(const TraceRecord& record, uint64_t steps) {
  const Rhythm r = rhythm_of(record, steps);
  Places places(record);
  Span all{INT64_MAX, INT64_MIN};
  std::vector<Span> spans;
  for (const TraceEvent& e : record.events) {
    const TracePlace place = places.of(e.row);
    if (place == TracePlace::kWorker) continue;
    all = {std::min(all.begin_ns, e.begin_ns), std::max(all.end_ns, e.end_ns)};
    if (r.per_batch <= 1 || place != TracePlace::kStream || r.counts.at(e.name) != r.per_batch) continue;
    if (e.name == r.first) spans.push_back({e.begin_ns, e.end_ns});
    if (!spans.empty()) spans.back().end_ns = std::max(spans.back().end_ns, e.end_ns);
  }
  int64_t sum_ns = 0;
  for (const Span& s : spans) sum_ns += s.end_ns - s.begin_ns;
  // When a batch stops early, what was launched behind that does nothing: no step is as short.
  while (spans.size() > 1 &&
         spans.back().end_ns - spans.back().begin_ns < sum_ns / static_cast<int64_t>(2 * steps))
    spans.pop_back();
  return spans.empty() ? all : spans.back();
}

uint32_t number_of(std::vector<std::string>& names, std::string_view name) {
  const auto number = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  if (number == names.size()) names.emplace_back(name);
  return static_cast<uint32_t>(number);
}

}  // namespace

TracePlace place_of_row(std::string_view name) {
  if (name.starts_with("coppice.")) return TracePlace::kStream;
  return name.starts_with("worker ") ? TracePlace::kWorker : TracePlace::kHost;
}

void StepProfile::clear() { *this = StepProfile(); }

uint32_t StepProfile::child(uint32_t parent, std::string_view name) {
  for (const uint32_t c : series_[parent].children)
    if (series_[c].name == name) return c;
  const auto number = static_cast<uint32_t>(series_.size());
  Series fresh;
  fresh.name = name, fresh.place = series_[parent].place;
  series_.push_back(std::move(fresh));
  series_[parent].children.push_back(number);
  return number;
}

void StepProfile::add(const TraceRecord& record, const ProfiledTime& time) {
  if (series_.empty()) {
    series_.resize(2);
    series_[kHostRoot].place = TracePlace::kHost;
  }
  const size_t at = entries_++ % kHistory;
  times_[at] = time;
  for (Series& s : series_) s.ms[at] = s.longest_ms[at] = s.calls[at] = 0;
  dropped_ += record.dropped;
  Places places(record);
  std::unordered_map<uint32_t, Nesting<uint32_t>> rows;
  uint32_t last_row = 0;
  Nesting<uint32_t>* nesting = nullptr;
  for (auto e = record.events.rbegin(); e != record.events.rend(); ++e) {
    const TracePlace place = places.of(e->row);
    if (place == TracePlace::kWorker) continue;
    if (nesting == nullptr || e->row != last_row) nesting = &rows[e->row], last_row = e->row;
    const auto* const outer = nesting->around(*e);
    const uint32_t root = place == TracePlace::kStream ? kStreamRoot : kHostRoot;
    const uint32_t number = child(outer != nullptr ? outer->what : root, e->name);
    nesting->enter(*e, number);
    Series& s = series_[number];
    s.ms[at] += ms_of(*e), s.calls[at] += 1;
    s.longest_ms[at] = std::max(s.longest_ms[at], ms_of(*e));
  }
  if (time.steps > 0 && !record.events.empty()) find_last_step(record, time.steps);
}

void StepProfile::find_last_step(const TraceRecord& record, uint64_t steps) {
  const Span span = last_step_of(record, steps);
  last_step_ = {};
  last_step_.length_ms = ms_of(span.end_ns - span.begin_ns);
  std::unordered_map<uint32_t, Nesting<char>> rows;
  for (auto e = record.events.rbegin(); e != record.events.rend(); ++e) {
    if (e->end_ns < span.begin_ns || e->begin_ns > span.end_ns) continue;
    Nesting<char>& nesting = rows[e->row];
    nesting.around(*e);
    // An event that goes on around the step, such as its batch, is cut to begin and end where the step
    // does.
    const auto in_span = [&](int64_t ns) {
      return ms_of(std::clamp(ns, span.begin_ns, span.end_ns) - span.begin_ns);
    };
    last_step_.events.push_back({e->row, number_of(last_step_.names, e->name), nesting.depth(),
                                 in_span(e->begin_ns), in_span(e->end_ns)});
    nesting.enter(*e, {});
  }
  std::vector<Timeline::Event>& events = last_step_.events;
  const auto is_longer = [](const Timeline::Event& a, const Timeline::Event& b) {
    return a.end_ms - a.begin_ms > b.end_ms - b.begin_ms;
  };
  if (events.size() > kMostShown) {
    std::nth_element(events.begin(), events.begin() + kMostShown, events.end(), is_longer);
    last_step_.left_out = events.size() - kMostShown;
    events.resize(kMostShown);
  }
  // Rows by place, then by name; those of nothing are not shown.
  std::vector<std::pair<std::pair<TracePlace, std::string>, uint32_t>> order;
  for (const TraceRecord::Row& row : record.rows) {
    if (std::any_of(events.begin(), events.end(), [&](const auto& e) { return e.row == row.id; }))
      order.push_back({{place_of_row(row.name), row.name}, row.id});
  }
  std::sort(order.begin(), order.end());
  std::unordered_map<uint32_t, uint32_t> shown_as;
  for (const auto& [what, id] : order) {
    shown_as[id] = static_cast<uint32_t>(last_step_.rows.size());
    last_step_.rows.push_back(what.second);
  }
  for (Timeline::Event& e : events) e.row = shown_as[e.row];
}

// Adds the children that a graph has any time of; means are those of the last `from` entries, which have
// so many steps.
void StepProfile::add_timings(std::vector<Timing>& to, uint32_t parent, int depth, size_t from,
                              uint64_t steps) const {
  const size_t shown = std::min<uint64_t>(entries_, kHistory);
  const auto all_ms = [&](uint32_t number) {
    float sum = 0;
    for (size_t age = 0; age < shown; ++age) sum += series_[number].ms[entry_of_age(age)];
    return sum;
  };
  std::vector<std::pair<float, uint32_t>> children;
  for (const uint32_t number : series_[parent].children) children.emplace_back(-all_ms(number), number);
  std::sort(children.begin(), children.end());
  for (const auto& [minus_ms, number] : children) {
    if (minus_ms == 0) break;
    const Series& s = series_[number];
    Timing t;
    t.name = s.name, t.place = s.place, t.depth = depth;
    double ms = 0, calls = 0;
    for (size_t age = 0; age < from; ++age) {
      const size_t at = entry_of_age(age);
      ms += s.ms[at], calls += s.calls[at];
      t.longest_ms = std::max<double>(t.longest_ms, s.longest_ms[at]);
    }
    for (size_t age = shown; age-- > 0;) {
      const size_t at = entry_of_age(age);
      t.history.push_back(s.ms[at] / std::max(1.0f, static_cast<float>(times_[at].steps)));
    }
    t.mean_ms = ms / static_cast<double>(steps), t.calls = calls / static_cast<double>(steps);
    to.push_back(std::move(t));
    add_timings(to, number, depth + 1, from, steps);
  }
}

TimeReport StepProfile::report() const {
  TimeReport r;
  const size_t shown = std::min<uint64_t>(entries_, kHistory);
  size_t from = 0;
  double elapsed_s = 0, simulated_s = 0;
  for (; from < shown && r.steps < kMeanSteps; ++from) {
    const ProfiledTime& t = times_[entry_of_age(from)];
    r.steps += t.steps, elapsed_s += t.elapsed_s, simulated_s += t.simulated_s;
    if (t.steps > 0) r.longest_ms = std::max(r.longest_ms, 1e3 * t.elapsed_s / static_cast<double>(t.steps));
  }
  if (r.steps > 0) r.step_ms = 1e3 * elapsed_s / static_cast<double>(r.steps);
  if (elapsed_s > 0) {
    r.steps_per_s = static_cast<double>(r.steps) / elapsed_s;
    r.pace = simulated_s / elapsed_s;
  }
  for (size_t age = shown; age-- > 0;) {
    const ProfiledTime& t = times_[entry_of_age(age)];
    r.step_ms_history.push_back(
        static_cast<float>(1e3 * t.elapsed_s / std::max(1.0, static_cast<double>(t.steps))));
    r.pace_history.push_back(static_cast<float>(t.elapsed_s > 0 ? t.simulated_s / t.elapsed_s : 0));
  }
  if (!series_.empty()) {
    const uint64_t steps = std::max<uint64_t>(r.steps, 1);
    add_timings(r.timings, kStreamRoot, 0, from, steps);
    add_timings(r.timings, kHostRoot, 0, from, steps);
  }
  r.last_step = last_step_;
  r.dropped = dropped_;
  return r;
}

}  // namespace coppice::viewer
