// Where in memory a tree's values lie: for the checks of pointers (memory_uses.h), and for messages.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/memory_uses.h"
#include "sparse/tree_memory.h"

namespace coppice {

// Describes memory without any structure.
MemoryUse whole_memory(uint64_t begin, uint64_t bytes, uint32_t effects);
// Returns where a field's values lie; in an array of structs, with what lies between them.
MemoryUse memory_of_field(const TreeMemory& memory, uint32_t field);
// Returns the zeros that refused reads get.
MemoryUse zeros_of(const TreeMemory& memory);
// Returns all memory of the tree.
std::vector<KnownBuffer> buffers_of(const TreeMemory& memory);
// Returns "'now' on grid.pointer[64].dense[8]", or "the tree 'grid', beside its values"; empty for an address
// that is not in the tree's memory.
std::string name_in_tree(const TreeMemory& memory, uint64_t address);

}  // namespace coppice
