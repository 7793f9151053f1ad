// Numbers of bytes for people.
#pragma once

#include <cstdint>
#include <string>

namespace coppice {

// Returns "17 B", "1.5 KiB", "20.0 MiB", "3.2 GiB", "1.0 TiB".
std::string size_text(uint64_t size_bytes);

}  // namespace coppice
