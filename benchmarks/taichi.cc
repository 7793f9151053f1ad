// The child process that runs Taichi (see taichi.h).
#include "benchmarks/taichi.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/error.h"

namespace coppice::bench {
namespace {

std::vector<std::string> command_of(const std::string& python, const std::string& script,
                                    const std::vector<std::string>& arguments) {
  std::vector<std::string> command{python, COPPICE_SOURCE_DIR "/benchmarks/peers/" + script};
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.insert(command.end(), {"--cache", COPPICE_BUILD_DIR "/../bench-peers/taichi-cache"});
  return command;
}

}  // namespace

Taichi::Taichi(const std::string& python, const std::string& script,
               const std::vector<std::string>& arguments)
    : child_(command_of(python, script, arguments)) {
  read();  // what it has set up
}

std::string Taichi::ask(const std::string& command) {
  child_.write_line(command);
  return read();
}

double Taichi::ask_number(const std::string& command, const std::string& key) {
  return number_of(ask(command), key);
}

std::string Taichi::read() {
  if (std::optional<std::string> line = child_.read_line()) return *line;
  child_.wait();
  throw Error(ErrorCode::kUnavailable, "taichi's program ended: " + last_line(child_.errors()));
}

double number_of(const std::string& line, const std::string& key) {
  const size_t at = line.find('"' + key + "\":");
  if (at == std::string::npos)
    throw Error(ErrorCode::kInternal,
                fmt::format("taichi's program answered '{}', without a number for {}", line, key));
  return std::strtod(line.c_str() + at + key.size() + 3, nullptr);
}

std::optional<std::string> find_taichi_python(std::string& absent) {
  const std::filesystem::path folder = COPPICE_BUILD_DIR "/../bench-peers";
  if (std::filesystem::exists(folder / "taichi.ready")) return (folder / "taichi/bin/python").string();
  std::ifstream reason(folder / "taichi.absent");
  std::string line;
  absent = "taichi absent: ";
  absent += std::getline(reason, line) && !line.empty() ? line : "not installed; ./dev bench does it";
  return {};
}

}  // namespace coppice::bench
