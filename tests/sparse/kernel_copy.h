// Copies of reload.kernels.cc that tests change while their kernels are used.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "core/error.h"
#include "gpu/kernel_builder.h"
#include "reload.kernels.h"

namespace coppice {

inline std::string read_text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
// `text` with one piece of it, which must be there, in place of another.
inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// A copy of reload.kernels.cc and its header in a folder of its own, and a program's kernels that are watched
// there. Files and recipes are known by address as long as the process lives.
class KernelCopy {
 public:
  // Why there can be none: the build's clang is gone. Empty: nothing stands against it.
  static std::string why_none() {
    try {
      read_kernel_recipe(std::filesystem::path(reload_kernels.recipe));
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }
  KernelCopy() {
    std::string name = (std::filesystem::temp_directory_path() / "coppice_reload_test_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    const KernelRecipe built = read_kernel_recipe(std::filesystem::path(reload_kernels.recipe));
    kernels = read_text_of(built.source);
    header = read_text_of(built.source.parent_path() / "reload.h");
    std::filesystem::create_directories(folder_ / "tests/sparse");
    source_ = folder_ / "copy.kernels.cc", header_ = folder_ / "tests/sparse/reload.h";
    save(kernels);
    save_header(header);
    std::ofstream(folder_ / "sources.d") << "x: copy.kernels.cc \\\n  tests/sparse/reload.h\n";
    std::ofstream(folder_ / "copy.bc") << "its time is what counts";
    std::string recipe = read_text_of(std::filesystem::path(reload_kernels.recipe));
    recipe = replaced(recipe, "source " + built.source.string(), "source " + source_.string());
    recipe = replaced(recipe, "folder " + built.folder.string(), "folder " + folder_.string());
    recipe = replaced(recipe, "dependencies " + built.dependencies.string(),
                      "dependencies " + (folder_ / "sources.d").string());
    recipe =
        replaced(recipe, "bitcode " + built.bitcode.string(), "bitcode " + (folder_ / "copy.bc").string());
    recipe = replaced(recipe, "flag -I", "flag -I" + folder_.string() + "\nflag -I");
    save_recipe(recipe);
    static auto* const paths = new std::deque<std::string>;
    static auto* const files = new std::deque<KernelBitcode>;
    file_ = &files->emplace_back(reload_kernels);
    file_->recipe = paths->emplace_back((folder_ / "recipe").string());
  }
  ~KernelCopy() { std::filesystem::remove_all(folder_); }
  KernelCopy(const KernelCopy&) = delete;
  KernelCopy& operator=(const KernelCopy&) = delete;

  template <class Kernel>
  Kernel of(Kernel kernel) const {
    kernel.file = file_;
    return kernel;
  }
  void save(const std::string& text) const { std::ofstream(source_, std::ios::trunc) << text; }
  void save(std::string_view from, std::string_view to) const { save(replaced(kernels, from, to)); }
  void save_header(const std::string& text) const { std::ofstream(header_, std::ios::trunc) << text; }
  void save_beside(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::trunc) << text;
  }
  void save_recipe(const std::string& text) const { std::ofstream(folder_ / "recipe") << text; }
  // As if a clock that is ahead had dated them, the sources before what was built of them.
  void write_ahead(std::chrono::milliseconds by) const {
    const auto now = std::filesystem::file_time_type::clock::now() + by;
    for (const auto& file : {source_, header_}) std::filesystem::last_write_time(file, now);
    std::filesystem::last_write_time(folder_ / "copy.bc", now);
  }
  std::string recipe() const { return read_text_of(folder_ / "recipe"); }

  std::string kernels, header;  // as they were

 private:
  std::filesystem::path folder_, source_, header_;
  KernelBitcode* file_;
};

}  // namespace coppice
