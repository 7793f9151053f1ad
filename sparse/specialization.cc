// Collects what launches' code is made from (see specialization.h).
#include "sparse/specialization.h"

#include <fmt/format.h>

#include <span>
#include <utility>
#include <vector>

#include "sparse/launch_errors.h"
#include "sparse/tree_storage.h"

namespace coppice {

using detail::HandleUse;
using detail::LaunchRequest;

jit::SpecializeRequest specialization(const LaunchRequest& r, const Binding& b, const CodegenOptions& options,
                                      bool makes_room) {
  jit::SpecializeRequest s;
  s.id = kernel_id(r) + (makes_room ? "_room" : "");
  s.makes_room = makes_room;
  s.guards_memory = guards_memory(r, options);
  s.has_slots = !r.slots.empty();
  s.file = r.file;
  s.entry = fmt::format("coppice_kernel_{}", r.name);
  s.shared_bytes = b.shared_bytes;
  s.options = options;
  std::vector<HandleFacts> handles;
  for (const HandleUse& h : std::span(r.handles, r.num_handles)) handles.push_back(facts_of(h, r.loop));
  s.why_misused = [handles = std::move(handles),
                   loop = r.loop.tree ? r.loop.tree->layout().path(r.loop.node) : std::string("a range")](
                      uint32_t what, uint32_t binding, uint32_t given) {
    return binding < handles.size()
               ? misuse_text(static_cast<DeviceStatus>(what), handles[binding], given, loop)
               : std::string();
  };
  s.constants = {{"coppice_nodes", std::as_bytes(std::span(b.nodes))},
                 {"coppice_fields", std::as_bytes(std::span(b.fields))},
                 {"coppice_loop", std::as_bytes(std::span(&b.loop, 1))}};
  return s;
}

LaunchRequest at_version(LaunchRequest r, const KernelVersion* version, const CodegenOptions& options) {
  if (version == nullptr) return r;
  const KernelVersion::Facts& facts = version->facts.find(r.name)->second;
  const auto before = version->as_before.find(r.name);
  const bool is_new = before == version->as_before.end() || lines_count(options);
  r.file = is_new ? &version->code : before->second;
  r.active_only = facts.active_only, r.effects = facts.effects;
  return r;
}
LaunchRequest at_current_version(const LaunchRequest& r, const CodegenOptions& options) {
  return at_version(r, current_kernel_version(*r.file), options);
}

}  // namespace coppice
