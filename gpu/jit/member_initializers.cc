// Initializers of members from the source (see member_initializers.h).
#include "gpu/jit/member_initializers.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/DebugInfoMetadata.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "gpu/jit/source_path.h"

namespace coppice::kernelgen {
namespace {

bool is_in_names(char c) { return llvm::isAlnum(c) || c == '_'; }

// Returns the place behind a comment, string, character or number that begins at `at`; `at` where none does.
size_t behind_what_is_no_name(const std::string& source, size_t at) {
  const auto behind = [&](size_t found, size_t size) {
    return found == source.npos ? source.size() : found + size;
  };
  if (source.compare(at, 2, "//") == 0) return behind(source.find('\n', at), 0);
  if (source.compare(at, 2, "/*") == 0) return behind(source.find("*/", at + 2), 2);
  if (source.compare(at, 2, "R\"") == 0) {
    const size_t open = source.find('(', at);
    const std::string close = open == source.npos ? "" : ")" + source.substr(at + 2, open - at - 2) + "\"";
    return behind(close.empty() ? source.npos : source.find(close, open), close.size());
  }
  const char c = source[at];
  size_t end = at;
  if (c == '"' || c == '\'') {
    for (end = at + 1; end < source.size() && source[end] != c && source[end] != '\n'; ++end)
      if (source[end] == '\\') ++end;
    return std::min(end + 1, source.size());
  }
  if (!llvm::isDigit(c)) return at;
  while (end < source.size() && (is_in_names(source[end]) || source[end] == '.' || source[end] == '\''))
    ++end;
  return end;
}

}  // namespace

std::vector<MemberInitializers::Token> MemberInitializers::tokens_of(const std::string& source) {
  std::vector<Token> tokens;
  unsigned line = 1;
  for (size_t at = 0; at < source.size();) {
    size_t end = behind_what_is_no_name(source, at);
    if (end == at) {
      while (end < source.size() && is_in_names(source[end])) ++end;
      if (end == at) end += source.compare(at, 2, "->") == 0 || source.compare(at, 2, "::") == 0 ? 2 : 1;
      if (!llvm::isSpace(source[at])) tokens.push_back({source.substr(at, end - at), line});
    }
    line += static_cast<unsigned>(std::count(source.begin() + at, source.begin() + end, '\n'));
    at = end;
  }
  return tokens;
}

std::optional<std::vector<std::string>> MemberInitializers::names(const llvm::DIDerivedType& member) {
  const std::string path = jit::path_of(&member);
  auto file = files_.find(path);
  if (file == files_.end()) {
    std::ifstream stream(path, std::ios::binary);
    const std::string source{std::istreambuf_iterator<char>(stream), {}};
    file = files_.emplace(path, tokens_of(source)).first;
  }
  const std::vector<Token>& tokens = file->second;
  const auto text = [&](size_t i) { return i < tokens.size() ? std::string_view(tokens[i].text) : ";"; };
  const auto is_one_of = [&](size_t i, std::string_view punctuators) {
    return text(i).size() == 1 && punctuators.find(text(i)[0]) != punctuators.npos;
  };
  const auto first_in = [&](unsigned line) {
    return static_cast<size_t>(
        std::lower_bound(tokens.begin(), tokens.end(), line,
                         [](const Token& token, unsigned l) { return token.line < l; }) -
        tokens.begin());
  };
  // Members of a struct that stands before this one on its line may have the same name.
  const llvm::DIScope& record = *member.getScope();
  size_t at = first_in(llvm::cast<llvm::DIType>(record).getLine());
  while (at < tokens.size() && tokens[at].line <= member.getLine() &&
         text(at) != std::string_view(record.getName()))
    ++at;
  at = std::max(at, first_in(member.getLine()));
  const auto declares = [&](size_t i) {
    return text(i) == std::string_view(member.getName()) && is_one_of(i + 1, "={;,[");
  };
  while (at < tokens.size() && tokens[at].line == member.getLine() && !declares(at)) ++at;
  if (at >= tokens.size() || tokens[at].line != member.getLine()) return {};

  int depth = 0;                                                             // of brackets of all kinds
  for (++at; at < tokens.size() && (is_one_of(at, "[") || depth > 0); ++at)  // an array's length
    depth += is_one_of(at, "[") ? 1 : is_one_of(at, "]") ? -1 : 0;
  if (!is_one_of(at, "={")) return {};
  std::vector<std::string> names;
  for (; at < tokens.size() && (depth > 0 || !is_one_of(at, ";,")); ++at) {
    depth += is_one_of(at, "([{") ? 1 : is_one_of(at, ")]}") ? -1 : 0;
    const bool is_of_another = is_one_of(at - 1, ".") || text(at - 1) == "::" || text(at + 1) == "::" ||
                               (text(at - 1) == "->" && text(at - 2) != "this");
    if (is_in_names(text(at)[0]) && !is_of_another) names.emplace_back(text(at));
  }
  return names;
}

}  // namespace coppice::kernelgen
