// The child process that runs a peer in Python (see peer_program.h).
#include "benchmarks/peer_program.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/error.h"

namespace coppice::bench {
namespace {

std::vector<std::string> command_of(const std::string& package, const std::string& python,
                                    const std::string& script, const std::vector<std::string>& arguments) {
  std::vector<std::string> command{python, COPPICE_SOURCE_DIR "/benchmarks/peers/" + script};
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.insert(command.end(), {"--cache", COPPICE_BUILD_DIR "/../bench-peers/" + package + "-cache"});
  return command;
}

}  // namespace

PeerProgram::PeerProgram(const std::string& package, const std::string& python, const std::string& script,
                         const std::vector<std::string>& arguments)
    : script_(script), child_(command_of(package, python, script, arguments)) {
  read();  // what it has set up
}

std::string PeerProgram::ask(const std::string& command) {
  child_.write_line(command);
  return read();
}

double PeerProgram::ask_number(const std::string& command, const std::string& key) {
  return number_of(ask(command), key);
}

std::string PeerProgram::read() {
  if (std::optional<std::string> line = child_.read_line()) return *line;
  child_.wait();
  throw Error(ErrorCode::kUnavailable, script_ + " ended: " + last_line(child_.errors()));
}

double number_of(const std::string& line, const std::string& key) {
  const size_t at = line.find('"' + key + "\":");
  if (at == std::string::npos)
    throw Error(ErrorCode::kInternal,
                fmt::format("a peer answered '{}', without a number for {}", line, key));
  return std::strtod(line.c_str() + at + key.size() + 3, nullptr);
}

std::optional<std::string> find_peer_python(const std::string& package, std::string& absent) {
  const std::filesystem::path folder = COPPICE_BUILD_DIR "/../bench-peers";
  if (std::filesystem::exists(folder / (package + ".ready")))
    return (folder / package / "bin" / "python").string();
  std::ifstream reason(folder / (package + ".absent"));
  std::string line;
  absent = package + " absent: ";
  absent += std::getline(reason, line) && !line.empty() ? line : "not installed; ./dev bench gpu does it";
  return {};
}

std::optional<double> OptionalPeer::ask(const std::string& command, const std::string& key) {
  std::optional<double> answer;
  if (is_there()) guard([&] { answer = program_->ask_number(command, key); });
  return answer;
}

std::optional<std::string> OptionalPeer::ask_line(const std::string& command) {
  std::optional<std::string> answer;
  if (is_there()) guard([&] { answer = program_->ask(command); });
  return answer;
}

void OptionalPeer::start(const std::string& package, const std::string& script,
                         const std::vector<std::string>& arguments) {
  const std::optional<std::string> python = find_peer_python(package, absent_);
  if (python) guard([&] { program_ = std::make_unique<PeerProgram>(package, *python, script, arguments); });
}

void OptionalPeer::guard(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable && error.code() != ErrorCode::kIo) throw;
    absent_ = fmt::format("absent: {}", error.what());
    program_.reset();
  }
}

}  // namespace coppice::bench
