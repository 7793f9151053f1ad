// Device statuses as errors (see launch_errors.h).
#include "sparse/launch_errors.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "gpu/messages.h"
#include "sparse/memory_uses.h"
#include "sparse/tree_storage.h"
#include "sparse/uses.h"

namespace coppice {

using detail::HandleUse;
using device::kMaxDims;

namespace {

const TreeLayout& layout_of(const HandleUse& h) { return tree_of(h.id)->layout(); }

// Writes the components of the tree's own axes, which are the rightmost: "(3, 16)".
template <class T>
std::string in_axes(const T (&xyz)[kMaxDims], uint32_t dims) {
  std::string text;
  for (uint32_t d = kMaxDims - dims; d < kMaxDims; ++d)
    text += fmt::format("{}{}", text.empty() ? "(" : ", ", xyz[d]);
  return text + ")";
}

constexpr std::string_view kNoListsText =
    "it has one value per cell: lengths, and elements by index, are of fields on dynamic nodes";

std::string other_cells_text(Role role, std::string_view loop_path) {
  return fmt::format("it has no own cell for those of {}, which is looped over; {}", loop_path,
                     role == Role::kRead ? "read it by coordinate, field.at(cell, {...})"
                                         : "add to it by coordinate, with an Accumulate that has no reach");
}

// Returns what is read of a temporary that has no value in a cell; `marks` are of the fields that have one in
// some of its bytes.
std::string unwritten_text(const TreeLayout& tree, const HandleUse& h, std::string_view at, uint32_t marks) {
  for (const uint32_t other : tree.field(h.id.field).sharers) {
    if ((marks >> tree.field(other).number & 1) != 0)
      return fmt::format("the temporary has no value in cell {}, whose bytes hold '{}'", at,
                         tree.field(other).name);
  }
  return fmt::format("the temporary has no value in cell {}: nothing was written there before", at);
}

std::string about_handle(DeviceStatus status, const DeviceContext& c, const HandleUse& h,
                         std::string_view loop_path) {
  const TreeLayout& tree = layout_of(h);
  const std::string at = in_axes(c.status_coord, tree.dims());
  const std::string offset = in_axes(c.status_offset, tree.dims());
  switch (status) {
    case DeviceStatus::kOutsideDomain:
      return fmt::format("coordinate {} is outside the domain {}", at,
                         domain_text(tree.node_layout(h.id.node)));
    case DeviceStatus::kInactiveCell:
      return fmt::format("accumulated into the inactive cell {}; activate it in a launch before", at);
    case DeviceStatus::kOutOfReach:
      return fmt::format("cell {} {} at offset {}, beyond the {}<{}> that its handle declares", at,
                         h.role == Role::kRead ? "reads" : "adds", offset, h.star ? "Star" : "Box", h.radius);
    case DeviceStatus::kBlockOutOfReach:
      return fmt::format("neighbour_data() of the block at {} takes offsets from -1 to 1, not {}", at,
                         offset);
    case DeviceStatus::kOutOfValues:
      return fmt::format("index {} is not in the block at {}, which has values [0, {})", c.status_coord[0],
                         offset, c.status_coord[1]);
    case DeviceStatus::kListFull:
      return fmt::format("the list at {} is to hold element {}; {} elements are all it may have", offset,
                         c.status_coord[0], c.status_coord[1]);
    case DeviceStatus::kOutOfList:
      return fmt::format("index {} is not in the list at {}, which has elements [0, {})", c.status_coord[0],
                         offset, c.status_coord[1]);
    case DeviceStatus::kReadOfChanged:
      return fmt::format(
          "read at {} while its cells are written by the same launch; read the own cell by field[cell], or "
          "use two fields",
          at);
    case DeviceStatus::kAlwaysActive:
      return fmt::format(
          "deactivates cell {} of a dense node, which is always active; take its container "
          "from a handle of the node above",
          at);
    case DeviceStatus::kNotWritten:
      return unwritten_text(tree, h, at, static_cast<uint32_t>(c.status_offset[0]));
    case DeviceStatus::kWrongAxes:
      return wrong_count_text(static_cast<uint32_t>(c.status_coord[0]), tree.options().name, tree.dims());
    case DeviceStatus::kOtherCells:
      return other_cells_text(h.role, loop_path);
    case DeviceStatus::kNoLists:
      return std::string(kNoListsText);
    case DeviceStatus::kNotBeside:
      return fmt::format("data() needs a field on the node looped over, {}, or beside it", loop_path);
    case DeviceStatus::kNoNeighbourTable:
      return "neighbour_data() needs a node right below a pointer node";
    default:
      return "data() needs values side by side, not those of a pointer node or an array of structs";
  }
}

std::string handle_text(const HandleUse& h) {
  return (h.id.field == kNoField ? "" : "field ") + field_name(h);
}

// Returns what a handle does that the launch's uses do not say.
std::string about_use(const DeviceContext& c, const LaunchedKernel& kernel) {
  const auto effects = static_cast<uint32_t>(c.status_coord[0]);
  const std::string does = words_of_effects(effects);
  if (c.status_detail >= kernel.handles.size())
    return fmt::format("it {} through a handle that is none of its arguments", does);
  const LaunchUse& use = kernel.uses.all[c.status_detail];
  const std::string said = words_of_effects(use.effects);
  return fmt::format("{}: it {} it{}; its uses say: {}", handle_text(kernel.handles[c.status_detail]), does,
                     (use.effects & effects) == effects ? " further away, or as another type" : "",
                     said.empty() ? "nothing" : said);
}

// Returns what a pointer leads to that the launch's uses do not say.
std::string about_memory(InStream& s, const DeviceContext& in_memory, const DeviceContext& c,
                         const LaunchedKernel& kernel) {
  std::string place(c.status_detail, ' ');
  s.wait_copy(place.data(), in_memory.assertion, place.size());
  const std::string_view does = c.status_tree == effect::kReads    ? "reads"
                                : c.status_tree == effect::kStores ? "stores"
                                                                   : "changes";
  return fmt::format(
      "{}: a pointer {} {} bytes of {}, which its uses do not say", place, does, c.status_coord[1],
      name_of_address(static_cast<uint64_t>(c.status_coord[0]), kernel.trees, kernel.temporaries));
}

bool is_kernel_error(DeviceStatus status) {
  return is_final_status(static_cast<uint32_t>(status)) && status != DeviceStatus::kStop;
}

}  // namespace

std::string domain_text(const device::NodeLayout& layout) {
  std::string text;
  for (uint32_t d = kMaxDims - layout.dims; d < kMaxDims; ++d)
    text += fmt::format("{}[{}, {})", text.empty() ? "" : " x ", layout.origin[d],
                        int64_t{layout.origin[d]} + layout.domain[d]);
  return text;
}

std::string field_name(const HandleUse& h) {
  const TreeLayout& tree = layout_of(h);
  return h.id.field == kNoField
             ? tree.path(h.id.node)
             : fmt::format("'{}' on {}", tree.field(h.id.field).name, tree.path(h.id.node));
}

bool has_same_cells(const device::NodeLayout& a, const device::NodeLayout& b) {
  return std::equal(a.origin, a.origin + kMaxDims, b.origin) &&
         std::equal(a.domain, a.domain + kMaxDims, b.domain);
}

HandleFacts facts_of(const HandleUse& h, const Loop& loop) {
  const TreeLayout& tree = layout_of(h);
  const bool is_same_tree = loop.tree.get() == tree_of(h.id);
  return {(h.id.field == kNoField ? "" : "field ") + field_name(h),
          tree.options().name,
          tree.dims(),
          h.role,
          is_same_tree && has_same_cells(tree.node_layout(h.id.node), tree.node_layout(loop.node)),
          tree.node(h.id.node).kind == device::NodeKind::kDynamic};
}

std::string wrong_count_text(uint32_t given, std::string_view tree, uint32_t dims) {
  return fmt::format("{} coordinate{} given, tree '{}' has {} dimension{}", given, given == 1 ? "" : "s",
                     tree, dims, dims == 1 ? "" : "s");
}

std::string misuse_text(DeviceStatus what, const HandleFacts& handle, uint32_t given,
                        std::string_view loop_path) {
  std::string why;
  if (what == DeviceStatus::kWrongAxes && given != handle.dims)
    why = wrong_count_text(given, handle.tree, handle.dims);
  if (what == DeviceStatus::kOtherCells && !handle.has_same_cells)
    why = other_cells_text(handle.role, loop_path);
  if (what == DeviceStatus::kNoLists && !handle.has_lists) why = kNoListsText;
  return why.empty() ? "" : fmt::format("{}: {}", handle.name, why);
}

DeviceStatus throw_kernel_error(InStream& s, Device& device, const LaunchedKernel& kernel) {
  DeviceContext& in_memory = device.context();
  DeviceContext context;
  s.wait_copy(&context, &in_memory, offsetof(DeviceContext, sink));  // the status and what it says
  const DeviceStatus status = status_of(context.status);
  if (!is_kernel_error(status)) return status;
  const bool is_about_handle = status != DeviceStatus::kOutOfView && status != DeviceStatus::kAssertion &&
                               status != DeviceStatus::kOutOfUses && status != DeviceStatus::kOutOfMemoryUses;
  if (is_about_handle && context.status_detail >= kernel.handles.size()) return status;  // another stream's
  write_value(s, &in_memory.status, 0);
  if (status == DeviceStatus::kAssertion) {
    s.wait_copy(context.assertion, in_memory.assertion, sizeof context.assertion);
    throw Error(ErrorCode::kInvalidArgument, fmt::format("kernel {}: assertion failed: {}", kernel.name,
                                                         format_assertion(context.assertion)));
  }
  if (status == DeviceStatus::kOutOfView)
    throw Error(
        ErrorCode::kOutOfRange,
        fmt::format("kernel {}: argument {}: index {} is not in the view, which has items [0, {})",
                    kernel.name, context.status_detail, context.status_coord[0], context.status_coord[1]));
  if (status == DeviceStatus::kOutOfUses)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("kernel {}: {}", kernel.name, about_use(context, kernel)));
  if (status == DeviceStatus::kOutOfMemoryUses)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("kernel {}: {}", kernel.name, about_memory(s, in_memory, context, kernel)));
  const bool wrong_use = status == DeviceStatus::kNotBeside || status == DeviceStatus::kNoNeighbourTable ||
                         status == DeviceStatus::kNotContiguous || status == DeviceStatus::kReadOfChanged ||
                         status == DeviceStatus::kWrongAxes || status == DeviceStatus::kOtherCells ||
                         status == DeviceStatus::kNoLists || status == DeviceStatus::kNotWritten ||
                         status == DeviceStatus::kAlwaysActive;
  const HandleUse& h = kernel.handles[context.status_detail];
  throw Error(wrong_use ? ErrorCode::kInvalidArgument : ErrorCode::kOutOfRange,
              fmt::format("kernel {}: {}: {}", kernel.name, handle_text(h),
                          about_handle(status, context, h, kernel.loop_path)));
}

void check_topology_uses(InStream& s, const LaunchedKernel& kernel) {
  for (TreeStorage* tree : kernel.trees) {
    if (kernel.uses.does_to(tree, effect::kChangesTopology)) continue;
    const auto flags = wait_read(s, &tree->memory().state()->changed, 2);  // and lists_changed
    if (flags[0] == 0 && flags[1] == 0) continue;
    tree->collector().commit_topology(s);
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("kernel {}: it changed the topology of tree '{}', which its uses do not say",
                            kernel.name, tree->options().name));
  }
}

}  // namespace coppice
