// Takes the arrays out of a VTK file with raw appended data, by the offsets that its XML states.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace coppice {

// Returns the value of an XML attribute in `element`; fails the test where there is none.
inline std::string xml_attribute(const std::string& element, const std::string& name) {
  const size_t at = element.find(" " + name + "=\"");
  if (at == std::string::npos) {
    ADD_FAILURE() << "no " << name << " in " << element;
    return {};
  }
  const size_t begin = at + name.size() + 3;
  return element.substr(begin, element.find('"', begin) - begin);
}

// Returns the element of the array of that name, from "<DataArray" to its end.
inline std::string vtk_element(const std::string& file, const std::string& name) {
  const size_t named = file.find(" Name=\"" + name + "\"");
  if (named == std::string::npos) {
    ADD_FAILURE() << "no array '" << name << "'";
    return {};
  }
  const size_t begin = file.rfind('<', named);
  return file.substr(begin, file.find('>', begin) - begin);
}

template <class T>
std::vector<T> vtk_values(const std::string& file, const std::string& name) {
  const std::string element = vtk_element(file, name);
  if (element.empty()) return {};
  const size_t data = file.find('_', file.find("<AppendedData encoding=\"raw\">")) + 1;
  const size_t at = data + std::stoull(xml_attribute(element, "offset"));
  uint64_t bytes = 0;
  if (at + sizeof bytes > file.size()) {
    ADD_FAILURE() << "the offset of '" << name << "' is behind the file's end";
    return {};
  }
  std::memcpy(&bytes, &file[at], sizeof bytes);
  EXPECT_EQ(bytes % sizeof(T), 0u) << name;
  EXPECT_LE(at + sizeof bytes + bytes, file.size()) << name;
  std::vector<T> values(bytes / sizeof(T));
  if (at + sizeof bytes + bytes <= file.size() && bytes > 0)
    std::memcpy(values.data(), &file[at + sizeof bytes], bytes);
  return values;
}

}  // namespace coppice
