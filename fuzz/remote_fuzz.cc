// libFuzzer target of packets between workers: any bytes, as they are and with the checksum that they should
// have, are the one encoding of a packet, or are refused in order; reading them takes memory by their number
// only; and a worker that takes them goes on.
#include <vector>

#include "fuzz/decode_memory.h"
#include "tests/remote/packet_properties.h"

namespace {

using Bytes = std::span<const std::byte>;
using coppice::fuzz::must_hold;

void must_hold(Bytes packet) {
  coppice::fuzz::must_decode_within_bounds(packet.size(),
                                           [&] { coppice::executor::remote::decode_packet(packet); });
  must_hold(coppice::executor::remote::broken_packet(packet));
}

}  // namespace

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
