// Writes the elements (see vtk_xml.h).
#include "apps/output/vtk_xml.h"

#include <fmt/format.h>

#include <bit>

#include "core/check.h"

namespace coppice {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

std::string escape_xml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else
      escaped += c;
  }
  return escaped;
}

VtkHeader::VtkHeader(std::string_view type, std::string_view attributes) : type_(type) {
  text_ = fmt::format(
      "<?xml version=\"1.0\"?>\n<!-- written by coppice -->\n"
      "<VTKFile type=\"{}\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n<{}{}{}>\n",
      type, type, attributes.empty() ? "" : " ", attributes);
}

void VtkHeader::add_array(const VtkArray& array) {
  COPPICE_CHECK(array.component_names.empty() ||
                array.component_names.size() == static_cast<size_t>(array.components));
  std::string names;
  for (size_t c = 0; c < array.component_names.size(); ++c)
    names += fmt::format(" ComponentName{}=\"{}\"", c, escape_xml(array.component_names[c]));
  text_ += fmt::format(
      "<DataArray type=\"{}\" Name=\"{}\" NumberOfComponents=\"{}\"{} format=\"appended\" offset=\"{}\"/>\n",
      array.type, escape_xml(array.name), array.components, names, offset_);
  offset_ += sizeof(uint64_t) + array.size_bytes;
}

void VtkHeader::add_time(std::optional<double> time_s) {
  if (!time_s) return;
  text_ += fmt::format(
      "<FieldData>\n<DataArray type=\"Float64\" Name=\"TimeValue\" NumberOfTuples=\"1\" "
      "format=\"ascii\">{}</DataArray>\n</FieldData>\n",
      *time_s);
}

std::string VtkHeader::finish() {
  text_ += fmt::format("</{}>\n<AppendedData encoding=\"raw\">\n_", type_);
  return std::move(text_);
}

std::string vtk_size(uint64_t size_bytes) {
  return {reinterpret_cast<const char*>(&size_bytes), sizeof size_bytes};
}

std::string vtk_end() { return "\n</AppendedData>\n</VTKFile>\n"; }

}  // namespace coppice
