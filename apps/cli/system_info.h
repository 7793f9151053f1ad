// Describes this build and this machine, as far as the operating system tells: the part of `coppice info`
// that needs no other library.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/commands.h"

namespace coppice::cli {

std::string version_text();  // "coppice 0.1.0"

// Version, build, compiler, CPU, threads, CUDA driver, CUB, EGL library, ffmpeg,
// assets. What is absent says so.
std::vector<InfoLine> system_info();

// The executable `name` in $PATH.
std::optional<std::filesystem::path> find_program(const std::string& name);

}  // namespace coppice::cli
