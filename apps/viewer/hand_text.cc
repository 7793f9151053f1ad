// Writes and reads the words (see hand_text.h).
#include "apps/viewer/hand_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace coppice::viewer {
namespace {

std::string text_of(const Vec3f& v) { return fmt::format("{} {} {}", v.x(), v.y(), v.z()); }
std::string text_of(const Stroke& s) {
  return fmt::format("from {} to {} radius {}", text_of(s.from), text_of(s.to), s.radius_m);
}

// Takes words from the front; once one is not as expected, all that follow are not either.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) { skip_blanks(); }
  bool is_at_end() const { return is_good_ && rest_.empty(); }

  std::string_view take() {
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(word.size());
    skip_blanks();
    is_good_ &= !word.empty();
    return word;
  }
  Words& expect(std::string_view word) {
    is_good_ &= take() == word;
    return *this;
  }
  Words& read(float& number) {
    const std::string_view word = take();
    const char* const end = word.data() + word.size();
    const auto [at, failed] = std::from_chars(word.data(), end, number);
    is_good_ &= failed == std::errc() && at == end;
    return *this;
  }
  Words& read(Vec3f& v) { return read(v.x()).read(v.y()).read(v.z()); }
  Words& read(Stroke& s) {
    return expect("from").read(s.from).expect("to").read(s.to).expect("radius").read(s.radius_m);
  }

 private:
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  std::string_view rest_;
  bool is_good_ = true;
};

}  // namespace

std::string hand_text(const Command& command) {
  if (const auto* e = std::get_if<Emit>(&command)) {
    return fmt::format("emit {} at {} radius {} velocity {}", e->material, text_of(e->center), e->radius_m,
                       text_of(e->velocity_m_s));
  }
  if (const auto* p = std::get_if<Push>(&command))
    return fmt::format("push {} velocity {}", text_of(p->stroke), text_of(p->velocity_m_s));
  if (const auto* c = std::get_if<Cut>(&command)) return fmt::format("cut {}", text_of(c->stroke));
  return {};
}

std::optional<Command> parse_hand(std::string_view verb, std::string_view text) {
  Words words(text);
  Command command;
  if (verb == "emit") {
    Emit e;
    e.material = words.take();
    words.expect("at").read(e.center).expect("radius").read(e.radius_m);
    words.expect("velocity").read(e.velocity_m_s);
    command = e;
  } else if (verb == "push") {
    Push p;
    words.read(p.stroke).expect("velocity").read(p.velocity_m_s);
    command = p;
  } else if (verb == "cut") {
    Cut c;
    words.read(c.stroke);
    command = c;
  } else {
    return std::nullopt;
  }
  return words.is_at_end() ? std::optional(command) : std::nullopt;
}

}  // namespace coppice::viewer
