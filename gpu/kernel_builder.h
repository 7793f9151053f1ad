// Compiles a kernel file again, as its build did, for a program that takes over changed kernels while it
// runs.
//
// coppice_add_kernels() leaves a recipe in the build's folder (x.kernels.recipe): the commands and their
// paths. Nothing of it is in an installed package or a bundle; a program that was built elsewhere finds no
// recipe, and says so.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace coppice {

struct KernelRecipe {
  std::string name;                      // of the file in C++: "heat"
  std::filesystem::path source, folder;  // the kernel file; the one that relative paths of the build are from
  std::filesystem::path bitcode;         // that the build made of them last
  std::filesystem::path dependencies;    // what clang wrote about included headers; may be absent
  std::string clang, opt, passes, kernelgen;  // programs, and what opt is to do
  std::string library, eigen;                 // folders of headers
  std::vector<std::string> flags;             // of clang
};

// Errors: kUnavailable, one line that says what is missing: the recipe, the kernel file, its bitcode,
// clang, opt or coppice-kernelgen.
KernelRecipe read_kernel_recipe(const std::filesystem::path& file);

// Returns the kernel file and those that it includes, but for the system's and Eigen's, which do not
// change. `dependencies`: a file in the form of make that clang wrote.
std::vector<std::filesystem::path> kernel_sources(const KernelRecipe& recipe,
                                                  const std::filesystem::path& dependencies);

struct BuiltKernels {
  std::vector<std::byte> bitcode;
  std::string interface;  // gpu/jit/kernel_interface.h
  // "file:line:column: what is wrong", the first one of clang or coppice-kernelgen, all of whose words are
  // logged (debug); empty where nothing is, and the above is there.
  std::string why_not;
  // This is empty where a file is missing that one of them includes.
  std::vector<std::filesystem::path> sources;
};
// Builds in a temporary folder that is gone afterwards. Blocks for as long as clang needs, 0.2 to 2 s, and
// opt beside coppice-kernelgen, which together take as long again. `known`: lines of earlier interfaces,
// of kernels that need no more than to be known again. Errors: kCancelled when `must_stop()`, which the
// calling thread asks 20 times a second, said so; kIo for the temporary folder; kUnavailable where a
// program cannot be started.
BuiltKernels wait_build_kernels(const KernelRecipe& recipe, const std::string& known,
                                const std::function<bool()>& must_stop);
// Removes temporary folders of processes that ended while they compiled.
void remove_dead_build_folders();

}  // namespace coppice
