// Tokens of the text form (text.h), and its string literals in both directions; for the parser and the
// printer.
#pragma once
#include <string>
#include <string_view>

#include "executor/module.h"

namespace coppice::executor {

struct Token {
  enum class Kind {
    kEnd,
    kWord,         // add.i32
    kNumber,       // what starts with a digit or '-': 12, -1e-5, -inf, also 2d
    kString,       // "..."
    kRegister,     // %name
    kFunction,     // @name
    kBinding,      // $name
    kPunctuation,  // one of ( ) [ ] { } , : = ->
  };
  Kind kind = Kind::kEnd;
  std::string_view text;  // as written, with '%', '@', '$' or the quotes
  Position position;

  bool is(std::string_view punctuation) const { return kind == Kind::kPunctuation && text == punctuation; }
  bool is_word(std::string_view word) const { return kind == Kind::kWord && text == word; }
  std::string_view name() const { return text.substr(1); }  // of kRegister, kFunction and kBinding
};

// Returns the token as an error message shows it: in quotes, in one line, not too long.
std::string describe(const Token& token);

// `text` and `file` must outlive the lexer and, the text, its tokens. Errors: kInvalidArgument.
class Lexer {
 public:
  Lexer(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  // The next token; kEnd for ever after the last.
  Token next();
  // The bytes that a kString token stands for.
  std::string unescape(const Token& token) const;
  [[noreturn]] void fail(Position position, std::string message) const;

 private:
  void skip_blanks();
  Token take(Token::Kind kind, size_t size);
  Token take_named(Token::Kind kind);
  Token take_number();
  Token take_string();
  char at(size_t offset) const { return next_ + offset < text_.size() ? text_[next_ + offset] : '\0'; }
  Position position() const;

  std::string_view text_;
  const std::string& file_;
  size_t next_ = 0, line_start_ = 0;
  uint32_t line_ = 1;
};

// Appends `value` as a string literal: with escapes for what is no printable ASCII, but
// bytes from 0x80 on as they are.
void append_literal(std::string& out, std::string_view value);

}  // namespace coppice::executor
