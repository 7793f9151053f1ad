#include "executor/lexer.h"

#include <fmt/format.h>

#include <cctype>

#include "core/error.h"
#include "executor/names.h"

namespace coppice::executor {
namespace {

constexpr size_t kLongestShown = 40;
constexpr std::string_view kEscapes = "\"\\'?abfnrtv";
constexpr std::string_view kEscaped = "\"\\'?\a\b\f\n\r\t\v";

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_octal_digit(char c) { return c >= '0' && c <= '7'; }
bool is_printable(unsigned char c) { return c >= 0x20 && c != 0x7f; }

// Reads the escape whose backslash is text[i - 1], in C's syntax, and leaves i behind it. -1: none of C's;
// from 256 on: too large for a byte.
int read_escape(std::string_view text, size_t& i) {
  const char c = text[i++];
  if (const size_t known = kEscapes.find(c); known != kEscapes.npos) return kEscaped[known];
  int value = 0;
  if (c == 'x') {
    if (hex_digit(text[i]) < 0) return -1;
    for (; hex_digit(text[i]) >= 0; ++i) value = value > 255 ? value : value * 16 + hex_digit(text[i]);
    return value;
  }
  if (!is_octal_digit(c)) return -1;
  value = c - '0';
  for (int more = 0; more < 2 && is_octal_digit(text[i]); ++more) value = value * 8 + (text[i++] - '0');
  return value;
}

}  // namespace

std::string describe(const Token& token) {
  if (token.kind == Token::Kind::kEnd) return "the end of the text";
  std::string shown(token.text.substr(0, kLongestShown));
  if (shown.size() < token.text.size()) {
    while (!shown.empty() && (static_cast<unsigned char>(shown.back()) & 0x80) != 0) shown.pop_back();
    shown += "...";
  }
  for (char& c : shown)
    if (!is_printable(static_cast<unsigned char>(c))) c = '?';
  return token.kind == Token::Kind::kString ? "the string " + shown : "'" + shown + "'";
}

void Lexer::fail(Position position, std::string message) const {
  throw Error(ErrorCode::kInvalidArgument, std::move(message),
              {file_, static_cast<int>(position.line), static_cast<int>(position.column)});
}

Position Lexer::position() const { return {line_, static_cast<uint32_t>(next_ - line_start_) + 1}; }

void Lexer::skip_blanks() {
  for (; next_ < text_.size(); ++next_) {
    const char c = text_[next_];
    if (c == '\n') {
      ++line_;
      line_start_ = next_ + 1;
    } else if (c == '/' && at(1) == '/') {
      next_ = std::min(text_.find('\n', next_), text_.size()) - 1;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      return;
    }
  }
}

Token Lexer::take(Token::Kind kind, size_t size) {
  const Token token{kind, text_.substr(next_, size), position()};
  next_ += size;
  return token;
}

Token Lexer::take_named(Token::Kind kind) {
  size_t size = 1;
  while (is_name_char(at(size))) ++size;
  if (size == 1)
    fail(position(), fmt::format("expected a name behind '{}': letters, digits, '_' and '.'", at(0)));
  return take(kind, size);
}

Token Lexer::take_number() {
  size_t size = 1;
  for (;; ++size) {
    const char c = at(size), before = at(size - 1);
    const bool is_exponent_sign =
        (c == '-' || c == '+') && (before == 'e' || before == 'E') && is_digit(at(size + 1));
    if (!is_name_char(c) && !is_exponent_sign) break;
  }
  return take(Token::Kind::kNumber, size);
}

Token Lexer::take_string() {
  size_t end = next_ + 1;
  while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
  // A backslash before the line's end does not continue the string.
  const bool closed =
      end < text_.size() && text_[end] == '"' && text_.substr(next_, end - next_).find('\n') == text_.npos;
  if (!closed) fail(position(), "unterminated string: expected '\"' in the same line");
  return take(Token::Kind::kString, end + 1 - next_);
}

Token Lexer::next() {
  skip_blanks();
  if (next_ >= text_.size()) return {Token::Kind::kEnd, {}, position()};
  const char c = text_[next_];
  if (c == '%') return take_named(Token::Kind::kRegister);
  if (c == '@') return take_named(Token::Kind::kFunction);
  if (c == '$') return take_named(Token::Kind::kBinding);
  if (c == '"') return take_string();
  if (is_digit(c) || (c == '-' && is_name_char(at(1)))) return take_number();
  if (is_name_char(c)) {
    size_t size = 1;
    while (is_name_char(at(size))) ++size;
    return take(Token::Kind::kWord, size);
  }
  if (c == '-' && at(1) == '>') return take(Token::Kind::kPunctuation, 2);
  if (std::string_view("()[]{},:=").find(c) != std::string_view::npos)
    return take(Token::Kind::kPunctuation, 1);
  if (c > 0x20 && c < 0x7f) fail(position(), fmt::format("unexpected character '{}'", c));
  fail(position(), fmt::format("unexpected byte {:#04x}", static_cast<unsigned char>(c)));
}

std::string Lexer::unescape(const Token& token) const {
  std::string value;
  const std::string_view text = token.text;
  value.reserve(text.size());
  // The closing quote is no digit, so that reading an escape stops there.
  for (size_t i = 1; i + 1 < text.size();) {
    if (text[i] != '\\') {
      value += text[i++];
      continue;
    }
    const size_t start = i++;
    const int byte = read_escape(text, i);
    const Position place{token.position.line, token.position.column + static_cast<uint32_t>(start)};
    if (byte < 0)
      fail(place,
           "unknown escape: expected one of \\\" \\\\ \\' \\? \\a \\b \\f \\n \\r \\t \\v, \\ooo or \\xhh");
    if (byte > 255) fail(place, "this escape is no byte: expected at most \\377 or \\xff");
    value += static_cast<char>(byte);
  }
  return value;
}

void append_literal(std::string& out, std::string_view value) {
  out += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      out += '\\', out += c;
    } else if (is_printable(static_cast<unsigned char>(c))) {
      out += c;
    } else if (c == '\n' || c == '\t' || c == '\r') {
      out += '\\', out += kEscapes[kEscaped.find(c)];
    } else {
      fmt::format_to(std::back_inserter(out), "\\{:03o}", static_cast<unsigned char>(c));
    }
  }
  out += '"';
}

}  // namespace coppice::executor
