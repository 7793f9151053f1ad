// Live-object counters as text.
#include "core/live_objects.h"

#include <fmt/format.h>

#include "core/async_value_base.h"

namespace coppice {

LiveObjects LiveObjects::now() {
  const int64_t values = live_async_values();
  return {values, live_ref_counted_objects() - values, live_blocks()};
}

std::string describe(const LiveObjects& objects) {
  std::string text;
  const auto add = [&](int64_t n, const char* what) {
    if (n != 0)
      text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", n, what, n == 1 || n == -1 ? "" : "s");
  };
  add(objects.async_values, "async value");
  add(objects.ref_counted, "other reference-counted object");
  add(objects.blocks, "block");
  return text;
}

std::string LeakCheck::report() const {
  const LiveObjects now = LiveObjects::now();
  return describe({now.async_values - before_.async_values, now.ref_counted - before_.ref_counted,
                   now.blocks - before_.blocks});
}

}  // namespace coppice
