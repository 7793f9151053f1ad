// A TOML file in memory together with the overrides put on top of it; remembers where each value came from.
//
// Immutable after construction. Errors: kIo when the file cannot be read; kUsage with file, line and column
// when it is not TOML; kUsage naming the override when that is malformed or does not fit the file's
// structure.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"

namespace coppice::scene {

// One change made from outside the file. `origin` is how errors call it ("--set time.frames=10"),
// `assignment` is KEY.PATH=VALUE. The value is TOML; a bare word is taken as a string. An element of an array
// is addressed by its index: emitter.0.radius or emitter[0].radius; that behind the last one adds a table.
// KEY.PATH+=VALUE adds the value to a list: collider+={shape="sphere", ...}.
struct SceneOverride {
  std::string origin;
  std::string assignment;

  static SceneOverride set(std::string_view assignment);  // origin "--set ASSIGNMENT"
};

class Document {
 public:
  struct Impl;  // holds the toml++ tree; defined in document_impl.h for the parser only

  static Document load(const std::filesystem::path& path, std::span<const SceneOverride> overrides = {});
  static Document parse(std::string_view text, std::string file_name,
                        std::span<const SceneOverride> overrides = {});

  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  ~Document();

  const Impl& impl() const { return *impl_; }
  // It is what was parsed, without the overrides.
  const std::string& text() const;

 private:
  explicit Document(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// kUsage: a mistake in what the user wrote at `where`, which is a line of the file or an override (then
// without a line).
Error input_error(const InputLocation& where, const std::string& message);

}  // namespace coppice::scene
