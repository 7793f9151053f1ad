// Helpers of the geometry and output tests: temporary folders, files, log capture, expected errors.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/log.h"

namespace coppice {

// A folder of its own for one test, removed at its end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "coppice_test_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed for " + pattern);
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// Expects `body` to throw an Error of `code` whose what() contains every one of `parts`.
inline void expect_error(ErrorCode code, const std::vector<std::string>& parts,
                         const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << "no '" << part << "' in: " << error.what();
    }
    return;
  }
  ADD_FAILURE() << "no error; expected one that says: " << (parts.empty() ? "anything" : parts[0]);
}

// Collects log lines while it lives.
class LogCapture {
 public:
  LogCapture() {
    set_log_sink([this](LogLevel level, std::string_view line) {
      lines.push_back({level, std::string(line)});
    });
  }
  ~LogCapture() { set_log_sink({}); }
  std::vector<std::pair<LogLevel, std::string>> lines;
};

// The folder of the scanned meshes; empty when they are not there.
inline std::string data_folder() {
  const char* variable = std::getenv("COPPICE_DATA_DIR");
  const std::string folder =
      variable != nullptr ? variable : std::string(COPPICE_SOURCE_DIR) + "/../shared/data";
  return std::filesystem::is_directory(folder + "/meshes") ? folder : "";
}

}  // namespace coppice
