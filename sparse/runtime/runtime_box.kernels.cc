// Activation of the cells in a box, which a loop over it begins with (sparse/box_loop.cc).
#include "coppice/kernel.h"
#include "sparse/device/box.h"

using namespace coppice;
using namespace coppice::device;

// Item i is the i-th container that the box meets.
COPPICE_KERNEL(activate_box, Topology cells, Item i, LoopBox box)
{
  const uint32_t binding = HandleAccess::id_of(cells).field;
  const NodeLayout& node = coppice_nodes[coppice_fields[binding].node];
  activate_part(i.launch, binding, box_in_container(node, box, static_cast<uint64_t>(i.index)));
}
