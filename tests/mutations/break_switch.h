// The switch of planted breaks (docs/building.md), for the copy of the sources that
// mutate.py builds; nothing else has it.
//
// COPPICE_BREAK(name) is true in a process whose environment says COPPICE_BREAK=name. Kernels, whose files
// include this, too, have it as a constant that is baked when they are compiled.
#pragma once
#include <cstdint>

namespace coppice {

constexpr uint32_t break_id(const char* name) {
  uint32_t id = 2166136261u;
  for (; *name != '\0'; ++name) id = (id ^ static_cast<unsigned char>(*name)) * 16777619u;
  return id;
}
template <uint32_t kId>
struct BreakId {
  static constexpr uint32_t kValue = kId;
};

}  // namespace coppice

#if defined(__clang__)  // as core/device_macros.h tells kernels from the host

extern "C" const uint32_t coppice_break;
#define COPPICE_BREAK(name) (coppice_break == ::coppice::BreakId<::coppice::break_id(#name)>::kValue)

#else

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <utility>

namespace coppice {

inline uint32_t chosen_break() {
  static const uint32_t id = [] {
    const char* name = std::getenv("COPPICE_BREAK");
    return name == nullptr ? 0u : break_id(name);
  }();
  return id;
}

// Tells a request what coppice-kernelgen says of kernels with the break on, which was off when the program
// was built: from the headers that COPPICE_TOLD names, with spaces between.
template <class Request>
void tell_anew(Request& r) {
  static const auto told = [] {
    std::map<std::string, std::pair<bool, uint32_t>> all;
    const char* names = std::getenv("COPPICE_TOLD");
    for (std::string rest = names == nullptr ? "" : names; !rest.empty();) {
      std::ifstream header(rest.substr(0, rest.find(' ')));
      rest.erase(0, rest.find(' ') == std::string::npos ? rest.size() : rest.find(' ') + 1);
      for (std::string line; std::getline(header, line);) {  // ... name{&file_kernels, "name", true, 9u};
        const size_t at = line.find("{&"), end = line.find("_kernels, \"", at);
        if (line.rfind("constexpr coppice::Kernel<", 0) != 0 || end == std::string::npos) continue;
        const size_t name = end + 11, flag = line.find("\", ", name) + 3, effects = line.find(", ", flag) + 2;
        all[line.substr(at + 2, end - at - 2) + "." + line.substr(name, flag - 3 - name)] = {
            line[flag] == 't', static_cast<uint32_t>(std::stoul(line.substr(effects)))};
      }
    }
    return all;
  }();
  const auto found = told.find(std::string(r.file->name) + "." + std::string(r.name));
  if (found != told.end()) r.active_only = found->second.first, r.effects = found->second.second;
}

}  // namespace coppice
#define COPPICE_BREAK(name) \
  (::coppice::chosen_break() == ::coppice::BreakId<::coppice::break_id(#name)>::kValue)

#endif
