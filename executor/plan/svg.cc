// Plans as pictures (see svg.h).
#include "executor/plan/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/utf8.h"
#include "executor/plan/time_pieces.h"

namespace coppice::plan {
namespace {

constexpr double kWidth = 1000, kHeight = 600, kLeft = 110, kTop = 20, kRight = 20, kBottom = 40;
constexpr double kTitleHeight = 30;
constexpr size_t kMostNames = 60;
// Neighbours in the file have colours that are far apart.
constexpr const char* kColours[] = {"#a6cee3", "#fdbf6f", "#b2df8a", "#cab2d6", "#ffee99", "#f7b6b2",
                                    "#8dd3c7", "#d9c7a8", "#bebada", "#e0e0e0", "#80b1d3", "#c5e0a0"};

std::string escaped(std::string_view text) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD, for what no XML may have
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view c = text.substr(0, std::max<size_t>(length, 1));
    if (c == "<")
      out += "&lt;";
    else if (c == ">")
      out += "&gt;";
    else if (c == "&")
      out += "&amp;";
    else if (c == "\"")
      out += "&quot;";
    else if (length == 0 || c == "\xef\xbf\xbe" || c == "\xef\xbf\xbf")
      out += kReplacement;
    else
      out += static_cast<unsigned char>(c[0]) < ' ' ? std::string_view("?") : c;
    text.remove_prefix(c.size());
  }
  return out;
}

class Drawing {
 public:
  Drawing(const Problem& problem, const Plan& plan) : problem_(problem), plan_(plan), pieces_(problem) {
    for (const Buffer& b : problem.buffers) begin_ = std::min(begin_, b.begin), end_ = std::max(end_, b.end);
    if (begin_ >= end_) begin_ = 0, end_ = 1;
  }

  // Returns elements that take kWidth by kHeight.
  std::string draw() {
    for (size_t i = 0; i < problem_.buffers.size(); ++i) draw_buffer(i);
    draw_need();
    draw_axes();
    return std::move(out_);
  }

 private:
  double x(int64_t time) const {
    return kLeft + (kWidth - kLeft - kRight) * (static_cast<double>(time) - static_cast<double>(begin_)) /
                       (static_cast<double>(end_) - static_cast<double>(begin_));
  }
  double y(int64_t offset) const {
    const auto top = static_cast<double>(std::max<int64_t>(1, plan_.bytes));
    return kHeight - kBottom - (kHeight - kTop - kBottom) * static_cast<double>(offset) / top;
  }

  void draw_buffer(size_t i) {
    const Buffer& b = problem_.buffers[i];
    for (const TimePieces::Piece& p : pieces_.of(i)) {
      const double left = x(p.begin), width = x(p.end) - left;
      const double top = y(plan_.offsets[i] + p.high), height = y(plan_.offsets[i] + p.low) - top;
      out_ += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" "
          "stroke=\"#444\" stroke-width=\"0.5\"><title>{}: {} bytes at {}, times {} to {}</title></rect>\n",
          left, top, width, height, kColours[i % std::size(kColours)], escaped(b.id), b.bytes,
          plan_.offsets[i], b.begin, b.end);
      const bool has_room = height > 12 && width > 8.0 * static_cast<double>(b.id.size());
      if (problem_.buffers.size() <= kMostNames && has_room)
        out_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"middle\" dy=\"4\">{}</text>\n",
                            left + width / 2, top + height / 2, escaped(b.id));
    }
  }

  // The bytes that are needed at each time.
  void draw_need() {
    std::map<int64_t, int64_t> changes;
    for (size_t i = 0; i < problem_.buffers.size(); ++i) {
      for (const TimePieces::Piece& p : pieces_.of(i))
        changes[p.begin] += p.high - p.low, changes[p.end] -= p.high - p.low;
    }
    std::string points;
    int64_t now = 0;
    for (const auto& [time, change] : changes) {
      points += fmt::format("{:.2f},{:.2f} {:.2f},{:.2f} ", x(time), y(now), x(time), y(now + change));
      now += change;
    }
    out_ +=
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"#b00\" stroke-width=\"1.5\"/>\n", points);
  }

  void draw_axes() {
    out_ +=
        fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"black\"/>\n",
                    kLeft, kTop, kWidth - kLeft - kRight, kHeight - kTop - kBottom);
    const auto label = [&](double at_x, double at_y, const char* anchor, const std::string& text) {
      out_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\">{}</text>\n", at_x, at_y,
                          anchor, text);
    };
    label(kLeft - 6, y(0) + 4, "end", "0");
    label(kLeft - 6, y(plan_.bytes) + 10, "end", fmt::format("{}", plan_.bytes));
    label(kLeft - 6, (y(0) + y(plan_.bytes)) / 2, "end", "bytes");
    label(kLeft, kHeight - kBottom + 18, "middle", fmt::format("{}", begin_));
    label(kWidth - kRight, kHeight - kBottom + 18, "end", fmt::format("{}", end_));
    label((kLeft + kWidth) / 2, kHeight - kBottom + 30, "middle", "time (red: the bytes that are needed)");
  }

  const Problem& problem_;
  const Plan& plan_;
  const TimePieces pieces_;
  int64_t begin_ = INT64_MAX, end_ = INT64_MIN;
  std::string out_;
};

std::string document(double height, const std::string& elements) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "{2}</svg>\n",
      kWidth, height, elements);
}

}  // namespace

std::string svg_of(const Problem& problem, const Plan& plan) {
  return document(kHeight, Drawing(problem, plan).draw());
}

std::string svg_of(std::span<const TitledPlan> plans) {
  std::string parts;
  double top = 0;
  for (const TitledPlan& part : plans) {
    parts += fmt::format(
        "<g transform=\"translate(0 {})\">\n<text x=\"{}\" y=\"{}\" font-size=\"14\">{}</text>\n"
        "<g transform=\"translate(0 {})\">\n{}</g>\n</g>\n",
        top, kLeft, kTitleHeight - 6, escaped(part.title), kTitleHeight,
        Drawing(part.problem, part.plan).draw());
    top += kTitleHeight + kHeight;
  }
  if (!plans.empty()) return document(top, parts);
  return document(
      kTitleHeight + kTop,
      fmt::format("<text x=\"{}\" y=\"{}\">there is nothing to plan</text>\n", kRight, kTitleHeight));
}

}  // namespace coppice::plan
