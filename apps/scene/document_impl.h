// The toml++ side of a Document: included by the sources that read it, never by a header.
#pragma once

#include <toml++/toml.h>

#include <string>

#include "apps/scene/document.h"

namespace coppice::scene {

struct Document::Impl {
  std::string file_name;
  std::string text;
  toml::table root;

  // Returns where `node` was written; `key` gives a better column when there is one. If an override wrote
  // it, that is line 0, with the override's origin as the file.
  InputLocation locate(const toml::node& node, const toml::key* key = nullptr) const {
    const toml::source_region& own = node.source();
    if (own.path && *own.path != file_name) return {*own.path, 0, 0};
    const toml::source_region& region = key && key->source().begin ? key->source() : own;
    return {file_name, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
  }
};

}  // namespace coppice::scene
