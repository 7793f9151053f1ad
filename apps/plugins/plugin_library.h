// Finds and loads a plugin: a shared object of the same build that alone links what
// the program must start without.
#pragma once
#include <string>
#include <vector>

namespace coppice {

struct PluginKind {
  const char* file_name;         // "libcoppice_vdb.so"
  const char* name;              // "OpenVDB", in "the OpenVDB plugin does not load"
  const char* needs;             // what it was not built without: "OpenVDB"
  const char* version_function;  // int(void), in the plugin
  int version;                   // what it must return
};

class PluginLibrary {
 public:
  // A plugin is looked for beside the program, in ../lib and in ../lib/coppice; last by its name
  // alone, which the system's loader looks for on the program's run path (coppice::output puts the
  // package's folder there) and its own.
  static std::vector<std::string> candidates(const PluginKind& kind);

  // Loads the first candidate that is there. Does not throw: without one, or when it does not load,
  // is_loaded() is false and why_not() says why in one line. The library stays loaded until the process ends.
  PluginLibrary(const PluginKind& kind, const std::vector<std::string>& candidates);

  bool is_loaded() const { return library_ != nullptr; }
  const std::string& why_not() const { return why_not_; }
  // An entry point of a loaded plugin. It is our fault when there is none: the version has been compared.
  void* entry_point(const char* name) const;

 private:
  // Returns whether there is such a file, also where it could not be loaded.
  bool load(const PluginKind& kind, const std::string& path);

  void* library_ = nullptr;
  std::string path_, why_not_;
};

}  // namespace coppice
