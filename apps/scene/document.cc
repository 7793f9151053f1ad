// Reads TOML text and merges KEY.PATH=VALUE overrides into it without losing where a value came from.
//
// Every node carries the name of its source in toml++'s source_region: the file's name, or the override's
// origin. Nodes are moved, never copied, because toml++ copies a node without its source.
#include "apps/scene/document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <vector>

#include "apps/scene/document_impl.h"
#include "core/read_file.h"

namespace coppice::scene {
namespace {

Error override_error(const SceneOverride& override, const std::string& message) {
  return input_error({override.origin, 0, 0}, message);
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool is_bare_key(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
}

// A value that needs no quotes on a command line: water, ../meshes/knot.obj. Numbers and dates start with
// other characters or parse as TOML, and are never offered to this.
bool is_bare_word(std::string_view text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) || std::string_view("_-./").find(c) != std::string_view::npos;
  };
  const auto starts_word = [](unsigned char c) {
    return std::isalpha(c) || c == '_' || c == '/' || c == '.';
  };
  return !text.empty() && starts_word(text.front()) && std::ranges::all_of(text, plain);
}

std::optional<std::size_t> parse_index(std::string_view text) {
  std::size_t index = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return index;
}

// "emitter[0].radius" -> emitter, 0, radius.
std::vector<std::string> split_path(const SceneOverride& override, std::string_view path) {
  std::vector<std::string> segments(1);
  bool is_index = false, was_index = false, is_whole = true;
  for (const char c : path) {
    if (c == ']') {
      is_whole = is_whole && is_index && parse_index(segments.back());
      is_index = false, was_index = true;
    } else if (c == '.' || c == '[') {
      is_whole = is_whole && !is_index;
      is_index = c == '[', was_index = false;
      segments.emplace_back();
    } else {
      is_whole = is_whole && !was_index;
      segments.back() += c;
    }
  }
  if (!is_whole || is_index || !std::ranges::all_of(segments, is_bare_key)) {
    throw override_error(override,
                         fmt::format("'{}' is not a key path such as time.frames or emitter.0.radius", path));
  }
  return segments;
}

// The parser calls what it meets in a string that is not closed a control character. Its columns count
// characters, of UTF-8.
std::string why_not_toml(std::string_view text, const toml::parse_error& error) {
  std::size_t begin = 0;
  for (toml::source_index line = 1; line < error.source().begin.line; ++line)
    begin = text.find('\n', begin) + 1;
  const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  const auto characters =
      std::ranges::count_if(line, [](unsigned char c) { return (c & 0xC0) != 0x80 && c != '\r'; });
  const bool is_at_end = error.source().begin.column > characters;
  if (is_at_end && error.description().find("control characters") != std::string_view::npos)
    return "a string that is not closed on its line";
  return std::string(error.description());
}

// A table in which `key` has the value; its nodes name the override as their source.
toml::table parse_assignment(const SceneOverride& override, const std::string& key, std::string_view value) {
  try {
    return toml::parse(fmt::format("{} = {}", key, value), override.origin);
  } catch (const toml::parse_error& error) {
    if (is_bare_word(value)) return toml::parse(fmt::format("{} = \"{}\"", key, value), override.origin);
    throw override_error(override, fmt::format("the value '{}' is not TOML: {}", value, error.description()));
  }
}

// The element of an index; that behind the last one is a new, empty table.
toml::node& element_of(const SceneOverride& override, toml::array& array, const std::string& segment,
                       const std::string& path) {
  const std::optional<std::size_t> index = parse_index(segment);
  if (!index || *index > array.size()) {
    throw override_error(
        override, fmt::format("'{}' has {} element{}; '{}' is not the index of one, nor {}, which adds one",
                              path, array.size(), array.size() == 1 ? "" : "s", segment, array.size()));
  }
  if (*index == array.size()) {
    toml::table holder = parse_assignment(override, "new", "{}");
    array.push_back(std::move(*holder["new"].as_table()));
  }
  return array[*index];
}

struct Assignment {
  std::vector<std::string> segments;
  std::string_view value;
  bool is_added = false;  // to a list, with +=
};

Assignment split_assignment(const SceneOverride& override) {
  const std::string_view text = override.assignment;
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) throw override_error(override, "expected KEY.PATH=VALUE");
  const bool is_added = equals > 0 && text[equals - 1] == '+';
  const std::string_view value = trimmed(text.substr(equals + 1));
  if (value.empty()) throw override_error(override, "no value after '='");
  // A line break would end the value and start another assignment.
  if (value.find_first_of("\r\n") != std::string_view::npos)
    throw override_error(override, "the value spans lines");
  return {split_path(override, trimmed(text.substr(0, equals - (is_added ? 1 : 0)))), value, is_added};
}

// The value goes behind the last element of the list `at`.
void append(const SceneOverride& override, const Assignment& assignment, toml::node* at) {
  toml::array* const array = at->as_array();
  if (array == nullptr) {
    throw override_error(
        override, fmt::format("'{}' is no list, and += adds to lists", fmt::join(assignment.segments, ".")));
  }
  toml::table holder = parse_assignment(override, "new", assignment.value);
  holder.begin()->second.visit([&](auto& value) { array->push_back(std::move(value)); });
}

void apply(const SceneOverride& override, toml::table& root) {
  const Assignment assignment = split_assignment(override);
  toml::node* at = &root;
  std::string path;
  for (std::size_t i = 0; i < assignment.segments.size(); ++i) {
    const std::string& segment = assignment.segments[i];
    const bool last = i + 1 == assignment.segments.size();
    if (toml::array* array = at->as_array()) {
      toml::node& element = element_of(override, *array, segment, path);
      if (last && assignment.is_added) return append(override, assignment, &element);
      if (last) {
        toml::table holder = parse_assignment(override, segment, assignment.value);
        const auto position = array->begin() + static_cast<std::ptrdiff_t>(*parse_index(segment));
        holder.begin()->second.visit([&](auto& value) { array->replace(position, std::move(value)); });
        return;
      }
      at = &element;
    } else if (toml::table* table = at->as_table()) {
      const bool is_set = last && !assignment.is_added;
      if (is_set || !table->contains(segment)) {
        // A value that is not there yet becomes a list if an index or += follows, and else a table.
        const bool is_list = last || parse_index(assignment.segments[i + 1]);
        const std::string_view value = is_set ? assignment.value : is_list ? "[]" : "{}";
        toml::table holder = parse_assignment(override, segment, value);
        holder.begin()->second.visit([&](auto& node) { table->insert_or_assign(segment, std::move(node)); });
        if (is_set) return;
      }
      at = table->get(segment);
      if (last) return append(override, assignment, at);
    } else {
      throw override_error(override, fmt::format("'{}' is a plain value and has no key '{}'", path, segment));
    }
    path += (path.empty() ? "" : ".") + segment;
  }
}

}  // namespace

Error input_error(const InputLocation& where, const std::string& message) {
  return Error(ErrorCode::kUsage, message, where);
}

SceneOverride SceneOverride::set(std::string_view assignment) {
  return {fmt::format("--set {}", assignment), std::string(assignment)};
}

Document::Document(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;
Document::~Document() = default;

const std::string& Document::text() const { return impl_->text; }

Document Document::parse(std::string_view text, std::string file_name,
                         std::span<const SceneOverride> overrides) {
  auto impl = std::make_unique<Impl>();
  impl->file_name = std::move(file_name);
  try {
    impl->text = text;
    impl->root = toml::parse(text, impl->file_name);
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw input_error({impl->file_name, static_cast<int>(at.line), static_cast<int>(at.column)},
                      fmt::format("not valid TOML: {}", why_not_toml(text, error)));
  }
  for (const SceneOverride& override : overrides) apply(override, impl->root);
  return Document(std::move(impl));
}

Document Document::load(const std::filesystem::path& path, std::span<const SceneOverride> overrides) {
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) {
    throw Error(ErrorCode::kIo, fmt::format("cannot read scene '{}': it is a folder", path.string()));
  }
  std::string text;
  constexpr size_t kMostBytes = size_t{16} << 20;
  if (const int error = read_file(path.string(), text, kMostBytes); error != 0) {
    throw Error(ErrorCode::kIo,
                fmt::format("cannot read scene '{}': {}", path.string(), why_unread(error, kMostBytes)));
  }
  return parse(text, path.string(), overrides);
}

}  // namespace coppice::scene
