// libFuzzer target of packets between workers: any bytes, as they are and with the checksum that they should have,
// are the one encoding of a packet, or are refused in order; reading them takes memory by their number only; and a
// worker that takes them goes on.
#include <sanitizer/allocator_interface.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/remote/packet_properties.h"

namespace {

using Bytes = std::span<const std::byte>;

// packet.h promises the first bound; the second one is room for an exception.
constexpr size_t kMostPerByte = 100, kMostBesides = 4096;

bool is_counting = false;
size_t live_bytes = 0, most_live_bytes = 0;

void on_malloc(const volatile void*, size_t size) {
  if (!is_counting) return;
  live_bytes += size;
  most_live_bytes = std::max(most_live_bytes, live_bytes);
}

void on_free(const volatile void* block) {
  if (is_counting && block != nullptr)
    live_bytes -= __sanitizer_get_allocated_size(const_cast<const void*>(block));
}

// Returns the most bytes that decode_packet() holds at once.
size_t memory_of_decode(Bytes packet) {
  live_bytes = most_live_bytes = 0;
  is_counting = true;
  try {
    coppice::executor::remote::decode_packet(packet);
  } catch (const coppice::Error&) {
  }
  is_counting = false;
  return most_live_bytes;
}

void must_hold(const std::string& broken) {
  if (broken.empty()) return;
  std::fprintf(stderr, "%s\n", broken.c_str());
  std::abort();
}

void must_hold(Bytes packet) {
  const size_t memory = memory_of_decode(packet);
  must_hold(coppice::executor::remote::broken_packet(packet));
  if (memory > kMostPerByte * packet.size() + kMostBesides)
    must_hold(std::to_string(memory) + " bytes of memory for " + std::to_string(packet.size()) + " bytes");
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0 ? 0 : 1;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  must_hold(bytes);
  std::vector<std::byte> repaired(bytes.begin(), bytes.end());
  coppice::executor::remote::repair_checksum(repaired);
  must_hold(repaired);
  coppice::executor::remote::HostileTarget target;
  must_hold(target.take(repaired));
  must_hold(target.end());
  return 0;
}
