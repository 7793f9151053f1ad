// Trees' scratch memory (see tree_scratch.h).
#include "sparse/tree_scratch.h"

namespace coppice {

void TreeScratch::keep_for_recording(std::vector<IntrusivePtr<RefCounted>>& kept) {
  for (IntrusivePtr<Buffer>& buffer : replaced_) kept.emplace_back(std::move(buffer));
  replaced_.clear();
  for (const IntrusivePtr<Buffer>& buffer : {keys, cells, flags, selected}) {
    if (buffer) kept.emplace_back(buffer);
  }
}

void TreeScratch::clear() {
  for (IntrusivePtr<Buffer>* buffer : {&keys, &cells, &flags, &selected, &elements, &rows}) buffer->reset();
}

uint64_t TreeScratch::size_bytes() const {
  uint64_t bytes = 0;
  for (const IntrusivePtr<Buffer>* buffer : {&keys, &cells, &flags, &selected, &elements, &rows})
    bytes += *buffer ? (*buffer)->size_bytes() : 0;
  return bytes;
}

}  // namespace coppice
