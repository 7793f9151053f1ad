// Types of kernel arguments as the host is to declare them, from clang's debug information, and how the
// generated headers write declarations. Part of coppice-kernelgen.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "gpu/jit/default_values.h"
#include "gpu/jit/kernel_source.h"
#include "gpu/jit/member_initializers.h"

namespace llvm {
class DIBasicType;
class DICompositeType;
class DIScope;
class DISubprogram;
class DIType;
}  // namespace llvm

namespace coppice::kernelgen {

// Puts declarations into a namespace, "n::m::"; "" is none.
std::string in_namespace(const std::string& space, const std::string& text);
// Lets a source have several generated headers with a declaration of one header: the first one declares it.
// `what` is "kernel n::f", and two whose `identity` differs are an error of the host's compiler, in one line.
std::string shared_by_headers(const std::string& what, const std::string& header, uint64_t identity,
                              const std::string& text);

// Collects what the header must hold. Errors: std::runtime_error, "file:line: argument type <name> <must be
// what>, or be defined in a header without kernels that the host includes, too".
class TypeDeclarations {
 public:
  TypeDeclarations(const SourceFolders& folders, const llvm::Module& debug)
      : folders_(folders), defaults_(debug) {}

  // Returns the type of argument `number` of a kernel as C++ text; a constant reference becomes the value
  // that the host gives.
  std::string argument(const llvm::DISubprogram& kernel, const llvm::DIType* type, unsigned number);
  // Returns the namespaces and classes around something: "n::" or "".
  static std::string scope_of(const llvm::DIScope* scope);

  std::set<std::string> includes;       // headers that define argument types
  std::vector<std::string> structs;     // definitions, in dependency order
  std::vector<std::string> assertions;  // sizes and offsets

 private:
  // Says whose type is named, for messages: an argument's, or a member's of one.
  struct Owner {
    std::string what;      // "kernel f: argument 2"
    std::string position;  // "file:line"
    bool may_hold_handles = false;

    Owner without_handles() const { return {what, position}; }
  };

  std::string name_of(const llvm::DIType* type, const Owner& owner);
  static void refuse_handles(const llvm::DIType* type, const Owner& owner);
  static std::string name_of_number(const llvm::DIBasicType& number, const Owner& owner);
  std::string name_of_array(const llvm::DICompositeType& array, const Owner& owner);
  void declare(const llvm::DIType* type, const Owner& owner);
  void include_header_of(const std::string& file);
  void redeclare_struct(const llvm::DICompositeType& record, const std::string& name);
  void check_initializers(const llvm::DICompositeType& record, const std::string& name, bool are_known);
  void redeclare_enumeration(const llvm::DICompositeType& record, const std::string& name);
  void add_definition(const llvm::DICompositeType& record, const std::string& text);
  void assert_layout(const llvm::DICompositeType& record, const std::string& name);

  const SourceFolders& folders_;
  const DefaultValues defaults_;
  MemberInitializers initializers_;
  std::set<const llvm::DIType*> seen_;
};

}  // namespace coppice::kernelgen
