// Problems as text (see csv.h).
#include "executor/plan/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/nearest_name.h"

namespace coppice::plan {
namespace {

constexpr std::string_view kSpace = " \t\r";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

// Returns how it is written in a message: not too long, and in one line.
std::string in_quotes(std::string_view text) {
  std::string shown(text.substr(0, 40));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
  }
  return fmt::format("'{}{}'", shown, text.size() > 40 ? "..." : "");
}

struct Field {
  std::string_view text;
  int line, column;  // for errors, from 1
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);  // a byte order mark
  }

  ProblemText read() {
    std::vector<Field> names;
    while (names.empty() && !is_at_end()) names = next_line();
    if (names.empty()) refuse({"", 1, 1}, "there is no line of column names, such as id,lower,upper,size");
    find_columns(names);
    while (!is_at_end()) {
      const std::vector<Field> fields = next_line();
      if (!fields.empty()) read_buffer(fields);
    }
    return std::move(read_);
  }

 private:
  enum Column { kId, kBegin, kEnd, kLast, kSize, kAlignment, kGaps, kOffset, kHint, kPool, kNumColumns };

  [[noreturn]] void refuse(const Field& at, const std::string& what) const {
    throw Error(ErrorCode::kInvalidArgument, what, InputLocation{file_, at.line, at.column});
  }
  bool is_at_end() const { return text_.empty(); }

  // Returns no fields of an empty line.
  std::vector<Field> next_line() {
    ++line_;
    const size_t end = text_.find('\n');
    const std::string_view line = text_.substr(0, end);
    text_.remove_prefix(end == text_.npos ? text_.size() : end + 1);
    std::vector<Field> fields;
    if (trimmed(line).empty()) return fields;
    for (size_t at = 0; at <= line.size();) {
      const size_t comma = std::min(line.find(',', at), line.size());
      fields.push_back({trimmed(line.substr(at, comma - at)), line_, static_cast<int>(at) + 1});
      at = comma + 1;
    }
    return fields;
  }

  void find_columns(const std::vector<Field>& names) {
    static constexpr std::pair<std::string_view, Column> kKnown[] = {
        {"id", kId},     {"buffer", kId},     {"lower", kBegin}, {"start", kBegin},         {"begin", kBegin},
        {"upper", kEnd}, {"end", kLast},      {"size", kSize},   {"alignment", kAlignment}, {"gaps", kGaps},
        {"hint", kHint}, {"offset", kOffset}, {"pool", kPool}};
    num_columns_ = names.size();
    std::fill_n(columns_, kNumColumns, num_columns_);
    for (size_t c = 0; c < names.size(); ++c) {
      read_.names.emplace_back(names[c].text);
      for (const auto& [name, column] : kKnown) {
        if (name != names[c].text) continue;
        if (has(column)) refuse(names[c], fmt::format("the column {} is there twice", in_quotes(name)));
        columns_[column] = c;
      }
    }
    read_.has_pools = has(kPool);
    if (!has(kPool)) pool_of({"", 1, 1});
    if (has(kEnd) && has(kLast))
      refuse(names[columns_[kLast]], "both columns upper and end are there; one says when a buffer ends");
    const std::pair<bool, const char*> needed[] = {
        {has(kId), "id"}, {has(kBegin), "lower"}, {has(kEnd) || has(kLast), "upper"}, {has(kSize), "size"}};
    for (const auto& [is_there, name] : needed) {
      if (is_there) continue;
      const auto near = nearest_name(name, read_.names);
      refuse(names[0],
             fmt::format("there is no column '{}'{}", name, near ? fmt::format("; is it '{}'?", *near) : ""));
    }
  }
  bool has(Column column) const { return columns_[column] < num_columns_; }

  void read_buffer(const std::vector<Field>& fields) {
    if (fields.size() != num_columns_)
      refuse(fields.back(),
             fmt::format("{} fields in a line; the first one names {} columns", fields.size(), num_columns_));
    Buffer b;
    b.id = needed(fields, kId).text;
    const auto [other, is_new] = lines_.try_emplace(b.id, line_);
    if (!is_new)
      refuse(fields[columns_[kId]],
             fmt::format("there is a buffer {} in line {}", in_quotes(b.id), other->second));
    b.begin = number(needed(fields, kBegin), "its first time");
    b.end = has(kEnd) ? number(needed(fields, kEnd), "its end")
                      : number(needed(fields, kLast), "its last time") + 1;
    b.bytes = number(needed(fields, kSize), "its size");
    b.alignment = optional_number(fields, kAlignment, "its alignment").value_or(1);
    b.offset = optional_number(fields, kOffset, "its offset");
    b.hint = optional_number(fields, kHint, "its hint");
    if (has(kGaps)) read_gaps(fields[columns_[kGaps]], b);
    read_.problem.buffers.push_back(std::move(b));
    check_last(fields);
    read_pools(fields);
    std::vector<std::string>& kept = read_.fields.emplace_back();
    for (const Field& field : fields) kept.emplace_back(field.text);
  }

  // Gives its place to what is wrong with the buffer itself.
  void check_last(const std::vector<Field>& fields) const {
    try {
      check({{read_.problem.buffers.back()}});
    } catch (const Error& error) {
      refuse(fields[columns_[kId]], error.message());
    }
  }

  const Field& needed(const std::vector<Field>& fields, Column column) const {
    const Field& field = fields[columns_[column]];
    if (field.text.empty())
      refuse(field, fmt::format("the {} is empty", in_quotes(read_.names[columns_[column]])));
    return field;
  }
  std::optional<int64_t> optional_number(const std::vector<Field>& fields, Column column,
                                         const char* what) const {
    if (!has(column) || fields[columns_[column]].text.empty()) return {};
    return number(fields[columns_[column]], what);
  }
  // A number between -2^60 and 2^60.
  int64_t number(const Field& field, std::string_view what) const {
    const char* const end = field.text.data() + field.text.size();
    int64_t value = 0;
    const auto [stopped, error] = std::from_chars(field.text.data(), end, value);
    const bool is_number = error == std::errc() && stopped == end;
    if (!is_number || value < -kMostBytes || value > kMostBytes)
      refuse(field, fmt::format("{} is {}; expected a whole number{}", what, in_quotes(field.text),
                                is_number || error == std::errc::result_out_of_range ? " up to 2^60" : ""));
    return value;
  }

  void read_pools(const std::vector<Field>& fields) {
    std::vector<uint32_t>& choices = read_.pools.choices.emplace_back();
    const Field field = has(kPool) ? fields[columns_[kPool]] : Field{"", line_, 1};
    const std::string_view all = field.text;
    for (size_t at = 0; at <= all.size();) {
      const size_t bar = std::min(all.find('|', at), all.size());
      const Field name{trimmed(all.substr(at, bar - at)), field.line, field.column + static_cast<int>(at)};
      if (name.text.empty() && !all.empty())
        refuse(name, fmt::format("a name is empty in {}; expected POOL, or POOL|POOL", in_quotes(all)));
      const uint32_t pool = pool_of(name);
      if (std::find(choices.begin(), choices.end(), pool) != choices.end())
        refuse(name, fmt::format("the pool {} is there twice", in_quotes(name.text)));
      choices.push_back(pool);
      at = bar + 1;
    }
    if (read_.problem.buffers.back().offset && choices.size() > 1)
      refuse(field, fmt::format("a buffer that has an offset needs one pool, not {}", choices.size()));
  }
  uint32_t pool_of(const Field& name) {
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; };
    if (std::any_of(name.text.begin(), name.text.end(), is_control))
      refuse(name, fmt::format("there is a control character in the pool's name {}", in_quotes(name.text)));
    const auto [known, is_new] =
        pools_.try_emplace(std::string(name.text), static_cast<uint32_t>(read_.pools.all.size()));
    if (is_new) read_.pools.all.push_back({known->first, {}});
    if (read_.pools.all.size() > kMostPools) refuse(name, fmt::format("more than {} pools", kMostPools));
    return known->second;
  }

  void read_gaps(const Field& field, Buffer& b) const {
    std::string_view rest = field.text;
    while (!(rest = trimmed(rest)).empty()) {
      const std::string_view gap = rest.substr(0, rest.find_first_of(kSpace));
      b.gaps.push_back(
          read_gap({gap, field.line, field.column + static_cast<int>(gap.data() - field.text.data())}));
      rest.remove_prefix(gap.size());
    }
  }
  Gap read_gap(const Field& field) const {
    const size_t at = field.text.find('@');
    const auto [begin, end] = read_pair({field.text.substr(0, at), field.line, field.column}, '-');
    if (at == field.text.npos) return {begin, end, {}};
    const auto [low, high] = read_pair({field.text.substr(at + 1), field.line, field.column}, ':');
    return {begin, end, Gap::Window{low, high}};
  }
  std::pair<int64_t, int64_t> read_pair(const Field& field, char between) const {
    const size_t at = field.text.find(between, 1);  // the first may be below 0
    if (field.text.empty() || at == field.text.npos)
      refuse(field,
             fmt::format("{} is no gap; expected BEGIN-END, or BEGIN-END@LOW:HIGH", in_quotes(field.text)));
    return {number({field.text.substr(0, at), field.line, field.column}, "a gap's part"),
            number({field.text.substr(at + 1), field.line, field.column}, "a gap's part")};
  }

  std::string_view text_;
  const std::string& file_;
  int line_ = 0;
  size_t columns_[kNumColumns] = {}, num_columns_ = 0;
  std::unordered_map<std::string, int> lines_;       // in which buffers are, by their ids
  std::unordered_map<std::string, uint32_t> pools_;  // by their names
  ProblemText read_;
};

// Returns the index of the column, or that behind the last one where there is none.
size_t column_of(const ProblemText& text, std::string_view name) {
  return static_cast<size_t>(std::find(text.names.begin(), text.names.end(), name) - text.names.begin());
}

// Prints the pools only where there are any, and a column for them.
std::string print(const ProblemText& text, const std::vector<int64_t>& offsets,
                  const std::vector<uint32_t>& pools) {
  const size_t column = column_of(text, "offset"), pool_column = column_of(text, "pool");
  const bool is_new = column == text.names.size();
  std::string printed = fmt::format("{}{}\n", fmt::join(text.names, ","), is_new ? ",offset" : "");
  for (size_t i = 0; i < text.fields.size(); ++i) {
    std::vector<std::string> fields = text.fields[i];
    fields.resize(text.names.size() + (is_new ? 1 : 0));
    fields[column] = std::to_string(offsets[i]);
    if (!pools.empty() && pool_column < text.names.size())
      fields[pool_column] = text.pools.all[pools[i]].name;
    printed += fmt::format("{}\n", fmt::join(fields, ","));
  }
  return printed;
}

}  // namespace

ProblemText parse_problem(std::string_view text, const std::string& file) {
  ProblemText read = Reader(text, file).read();
  try {
    check(read.problem);
  } catch (const Error& error) {  // of all buffers together
    throw error.with_location({file, 0, 0});
  }
  return read;
}

std::string print_plan(const ProblemText& text, const Plan& plan) { return print(text, plan.offsets, {}); }

std::string print_plan(const ProblemText& text, const PooledPlan& plan) {
  return print(text, plan.offsets, plan.pools);
}

}  // namespace coppice::plan
