// Default values of members of a kernel file's structs, which the host's structs have, too. Part of
// coppice-kernelgen.
//
// Debug information has none. So the headers of kernels make a constant of each struct that a kernel takes
// and that has any (sparse/device/default_values.h), and these are read here. Where code makes one, as for
// structs with a member of Eigen's, LLVM evaluates that code.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace llvm {
class DICompositeType;
class DIType;
class Module;
}  // namespace llvm

namespace coppice::kernelgen {

class DefaultValues {
 public:
  // `debug` has debug information for all types.
  explicit DefaultValues(const llvm::Module& debug);

  // Returns the bytes of a struct that nobody has set; null where nothing is known of its defaults.
  const std::vector<unsigned char>* find(const llvm::DICompositeType& record) const;
  // Returns whether the struct's default values are made by code that cannot be run here.
  bool is_unknown(const llvm::DICompositeType& record) const { return unknown_.contains(&record); }

 private:
  std::map<const llvm::DICompositeType*, std::vector<unsigned char>> bytes_;
  std::set<const llvm::DICompositeType*> unknown_;
};

// Returns what stands in a header behind a member of this type: " = 0.5f". `name` is how the header calls the
// type, `bytes` are the member's. Nothing: it is, or holds, an address.
std::optional<std::string> default_text(const llvm::DIType& type, const std::string& name,
                                        const unsigned char* bytes);

}  // namespace coppice::kernelgen
