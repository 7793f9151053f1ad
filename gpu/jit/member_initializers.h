// Default values of members as they stand in the source. Part of coppice-kernelgen.
//
// Debug information says nothing of them, and what they are worth (default_values.h) does not say how they
// came to be, or that there are any where nothing was evaluated.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class DIDerivedType;
}  // namespace llvm

namespace coppice::kernelgen {

class MemberInitializers {
 public:
  // Returns the names that a member's default value uses which are not those of another scope or object's:
  // "n" of `int cells = n * grid.width`. Nothing: the member has none, as far as its source tells, which a
  // macro may hide.
  std::optional<std::vector<std::string>> names(const llvm::DIDerivedType& member);

 private:
  struct Token {
    std::string text;  // an identifier or a punctuator; numbers and strings are left out
    unsigned line;     // from 1
  };
  static std::vector<Token> tokens_of(const std::string& source);

  std::map<std::string, std::vector<Token>> files_;
};

}  // namespace coppice::kernelgen
