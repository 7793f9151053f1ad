// Tests of written files share this: a folder of their own, and what is in it.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "core/error.h"

namespace coppice {

class FileFolderTest : public testing::Test {
 protected:
  FileFolderTest() {
    std::string name = (std::filesystem::temp_directory_path() / "coppice_files_XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  ~FileFolderTest() override { std::filesystem::remove_all(folder); }

  std::string path(const char* name) const { return (folder / name).string(); }
  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  int files_in_folder() const {
    return static_cast<int>(
        std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
  }
  template <class Call>
  static std::string io_error_of(Call call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      return error.message();
    }
    return "no error";
  }

  std::filesystem::path folder;
};

}  // namespace coppice
