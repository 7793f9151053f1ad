// The host's reader of what a device's kernels print (gpu/message_record.h; written by
// sparse/device/messages.h).
//
// A stream reads when a launch has ended: what is being written by another stream's launch is left
// for that one's end. Thread-safe.
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/launch_block.h"
#include "gpu/message_record.h"

namespace coppice {

// Gets one line at a time, of all streams, without its end, on a stream's thread; must neither
// throw nor wait for the device.
using MessageHandler = std::function<void(std::string_view)>;

class MessageLog {
 public:
  // Reads the area, as the host reaches it, and prepares it: zeros until now.
  explicit MessageLog(MessageArea& area);
  void set_handler(MessageHandler handler);
  // Hands over what launches printed, ordered by item and, for one item, by time; of dropped messages
  // their number. What is held back stays, with all behind it.
  void read();
  bool is_empty() const {
    return __atomic_load_n(&area_.used, __ATOMIC_RELAXED) == 0 && !has_kept_.load(std::memory_order_relaxed);
  }
  // Holds back what the launch of this launch_id() prints: it may be repeated. Until it is let through, or
  // everything is.
  void hold(uint64_t launch);
  void let_through(uint64_t launch);
  void let_all_through();
  // Forgets what this launch printed, because it is repeated.
  void forget(const LaunchBlock& launch);

 private:
  struct Message {
    MessageHeader header;
    std::string text;
  };
  void collect();  // finished records to waiting_; frees their room

  MessageArea& area_;
  std::mutex handing_over_;  // locked before mutex_, which is free while the handler runs
  std::mutex mutex_;
  uint64_t begin_ = 0;                  // records before it have been collected
  std::vector<Message> waiting_;        // in the order of the buffer
  std::deque<uint64_t> held_;           // launches, in their order
  std::atomic<bool> has_kept_ = false;  // messages were held back when last some were handed over
  MessageHandler handler_;
};

// Reads a device's messages when there are any; one load when there are none.
inline void read_messages(MessageLog& log) {
  if (!log.is_empty()) log.read();
}

// Returns a record's text. A wrong format gives the text and what is wrong with it.
std::string format_message(const unsigned char* record);

// Returns what failed where: "i < n (heat.kernels.cc:31), item 7", or "i < n (heat.kernels.cc:31): the
// message, cell (3, 4)".
std::string format_assertion(const unsigned char* record);

}  // namespace coppice
