// Tells where a kernel file's parts come from: the file itself, headers that have kernels, the library's
// headers, Eigen's, the system's, or others of the user's. Part of coppice-kernelgen.
//
// Folders are told apart by where they lie, which the build knows, and never by how a path ends: a user's may
// end alike.
#pragma once
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "gpu/jit/source_path.h"

namespace coppice::kernelgen {

using jit::path_of;

class SourceFolders {
 public:
  SourceFolders(const std::string& kernel_file, const std::string& library, const std::string& eigen)
      : kernel_file_(resolved(kernel_file)),
        library_(resolved(library) + "/"),
        eigen_(resolved(eigen) + "/") {}

  // Says that a header that the kernel file includes defines kernels: the host cannot include it.
  void add_kernel_header(const std::string& file) { kernel_headers_.insert(resolved(file)); }

  bool is_kernel_file(const std::string& file) const { return resolved(file) == kernel_file_; }
  bool is_kernel_header(const std::string& file) const {
    return !is_kernel_file(file) && kernel_headers_.contains(resolved(file));
  }
  bool is_eigen(const std::string& file) const { return resolved(file).rfind(eigen_, 0) == 0; }
  // Returns true for headers that the host's compiler has without being told.
  bool is_system(const std::string& file) const {
    const std::string path = resolved(file);
    return (path.rfind("/usr/include/", 0) == 0 || path.rfind("/usr/lib/", 0) == 0) &&
           path.rfind(library_, 0) != 0;
  }
  // Returns its name as it is included, "core/math.h"; empty for what is not in the library's folder.
  std::string library_header(const std::string& file) const {
    const std::string path = resolved(file);
    return path.rfind(library_, 0) == 0 ? path.substr(library_.size()) : "";
  }
  // Returns whether it is one of the library's own headers: in its repository that folder has users of it,
  // too.
  bool is_library(const std::string& file) const {
    const std::string header = library_header(file);
    if (header.empty() || is_kernel_file(file)) return false;
    for (const std::string_view folder : {"coppice/", "core/", "gpu/", "sparse/"})
      if (header.rfind(folder, 0) == 0) return true;
    return false;
  }
  // Returns whether it was written by who wrote the kernel: a message should point there.
  bool is_users(const std::string& file) const {
    return !is_library(file) && !is_eigen(file) && !is_system(file);
  }

 private:
  // This is asked for every type and many instructions, of a few dozen files.
  const std::string& resolved(const std::string& path) const {
    std::string& known = resolved_[path];
    std::error_code ignored;
    if (known.empty()) known = std::filesystem::weakly_canonical(path, ignored).string();
    return known;
  }

  mutable std::map<std::string, std::string> resolved_;
  std::string kernel_file_, library_, eigen_;
  std::set<std::string> kernel_headers_;
};

}  // namespace coppice::kernelgen
