// The XML of VTK's files whose values are appended as raw bytes, little endian and with UInt64 sizes.
//
//     <?xml ...?><VTKFile ...>  ...  <DataArray ... format="appended" offset="0"/> ...
//     <AppendedData encoding="raw">_ | u64 size | bytes | u64 size | bytes | ... </AppendedData></VTKFile>
//
// An offset counts from behind the underscore to an array's size. Source: "VTK File Formats", Kitware.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coppice {

// Describes an array of a file.
struct VtkArray {
  std::string name;
  std::string_view type;  // "Float32", "Int64", ...
  int components = 1;
  uint64_t size_bytes = 0;
  std::vector<std::string> component_names = {};  // none, or one for each
};

// Returns a text as it stands in an attribute's quotes.
std::string escape_xml(std::string_view text);

// Collects the text in front of the values. Arrays follow in the order in which their elements were added.
class VtkHeader {
 public:
  // `type`: "UnstructuredGrid" or "ImageData"; `attributes`: further ones of that element.
  VtkHeader(std::string_view type, std::string_view attributes = {});

  void add(std::string_view text) { text_ += text; }
  void add_array(const VtkArray& array);
  // Adds the frame's time, where there is one, by which readers know a step: a field of the data set.
  void add_time(std::optional<double> time_s);
  // Returns all up to the underscore; nothing is added afterwards.
  std::string finish();

 private:
  std::string_view type_;
  std::string text_;
  uint64_t offset_ = 0;  // of the next array
};

// Returns what stands in front of an array's bytes, and what ends a file.
std::string vtk_size(uint64_t size_bytes);
std::string vtk_end();

}  // namespace coppice
