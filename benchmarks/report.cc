// Rows as a table and as JSON (see report.h).
#include "benchmarks/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace coppice::bench {
namespace {

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + "\"";
}

std::string json_number(const std::optional<double>& value) {
  return value ? fmt::format("{:.6g}", *value) : "null";
}

// Three or four significant digits, with M for millions.
std::string short_number(const std::optional<double>& value) {
  if (!value) return "-";
  const double v = *value;
  if (v >= 1e6) return fmt::format("{:.2f} M", v / 1e6);
  if (v >= 1000) return fmt::format("{:.0f}", v);
  return fmt::format("{:.{}f}", v, v >= 100 ? 1 : v >= 10 ? 2 : 3);
}

constexpr std::array kHead{"name",   "ours",  "unit",     "peer",        "ratio",
                           "target", "floor", "of floor", "instructions"};
using Cells = std::array<std::string, kHead.size()>;

Cells cells_of(const Row& row) {
  const std::optional<double> ratio = row.ratio(), share = row.share_of_floor();
  std::string target = "-";
  if (row.target) {
    target = row.target->text();
    if (const std::optional<bool> met = row.meets_target()) target += *met ? " met" : " MISSED";
  }
  std::string instructions = short_number(row.instructions);
  if (row.peer_instructions) instructions += " : " + short_number(row.peer_instructions);
  return {row.name,
          short_number(row.ours),
          row.unit,
          row.peer ? short_number(row.peer) : "-",
          ratio ? fmt::format("{:.3f}", *ratio) : "-",
          target,
          short_number(row.floor),
          share ? fmt::format("{:.0f} %", 100 * *share) : "-",
          instructions};
}

}  // namespace

std::string Target::text() const {
  return fmt::format("{} {} {}", of == Of::kRatio ? "ratio" : "ours", is == Is::kAtLeast ? ">=" : "<=",
                     value >= 1e6 ? fmt::format("{:.4g} M", value / 1e6) : fmt::format("{:.4g}", value));
}

std::optional<double> Row::ratio() const {
  if (!peer) return {};
  return ours / *peer;
}

std::optional<double> Row::share_of_floor() const {
  if (!floor || ours <= 0 || *floor <= 0) return {};
  return is_rate() ? ours / *floor : *floor / ours;
}

std::optional<bool> Row::meets_target() const {
  if (!target) return {};
  if (target->of == Target::Of::kOurs) return target->is_met_by(ours);
  const std::optional<double> measured = ratio();
  if (!measured) return {};
  return target->is_met_by(*measured);
}

void Report::begin(const std::string& what) const { fmt::print(stderr, "bench: {}\n", what); }

void Report::add(Row row) {
  fmt::print(stderr, "bench: {}: {} {}, floor {}\n", row.name, short_number(row.ours), row.unit,
             short_number(row.floor));
  rows_.push_back(std::move(row));
}

void Report::add_failure(const std::string& what, const std::string& why) {
  failures_.push_back(fmt::format("{}: {}", what, why));
  fmt::print(stderr, "bench: FAILED {}\n", failures_.back());
}

std::string Report::table() const {
  std::vector<Cells> lines(1);
  std::copy(kHead.begin(), kHead.end(), lines[0].begin());
  for (const Row& row : rows_) lines.push_back(cells_of(row));
  std::array<size_t, kHead.size()> width{};
  for (const Cells& line : lines) {
    for (size_t c = 0; c < width.size(); ++c) width[c] = std::max(width[c], line[c].size());
  }
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    for (size_t c = 0; c < width.size(); ++c) {
      const bool is_text = c == 0 || c == 2 || c == 5;
      text += is_text ? fmt::format("{:<{}}  ", lines[i][c], width[c])
                      : fmt::format("{:>{}}  ", lines[i][c], width[c]);
    }
    if (i == 0) {
      text += "peer, and more\n";
      continue;
    }
    const Row& row = rows_[i - 1];
    text += row.peer_name + (row.peer_name.empty() || row.detail.empty() ? "" : "; ") + row.detail + "\n";
  }
  for (const std::string& failure : failures_) text += "FAILED " + failure + "\n";
  return text;
}

std::string Report::json() const {
  std::string text = "[\n";
  for (const Row& row : rows_) {
    text += fmt::format(
        "  {{\"name\": {}, \"ours\": {:.6g}, \"peer\": {}, \"unit\": {}, \"ratio\": {}, \"floor\": {}, "
        "\"peer_name\": {}, \"target\": {}, \"instructions\": {}, \"peer_instructions\": {}, \"detail\": "
        "{}}}{}\n",
        json_text(row.name), row.ours, json_number(row.peer), json_text(row.unit), json_number(row.ratio()),
        json_number(row.floor), row.peer_name.empty() ? "null" : json_text(row.peer_name),
        row.target ? json_text(row.target->text()) : "null", json_number(row.instructions),
        json_number(row.peer_instructions), json_text(row.detail), &row == &rows_.back() ? "" : ",");
  }
  return text + "]\n";
}

}  // namespace coppice::bench
