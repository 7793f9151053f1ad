// Formatting and handing over what kernels print (see messages.h).
#include "gpu/messages.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <variant>
#include <vector>

namespace coppice {
namespace {

// A width in a format may make any length of a short message.
constexpr size_t kMostText = size_t{64} << 10;

using FormatArguments = fmt::dynamic_format_arg_store<fmt::format_context>;

template <class T>
T read_as(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Holds the numbers of a vector or a matrix, row by row.
struct MessageMatrix {
  std::vector<std::variant<uint64_t, int64_t, float, double>> numbers;
  size_t rows = 0, cols = 0;
};

}  // namespace
}  // namespace coppice

// Formats each number as the braces say: [1.00, 2.50], and [[1, 0], [0, 1]] of more than one column.
template <>
struct fmt::formatter<coppice::MessageMatrix> {
  auto parse(format_parse_context& context) {
    const auto end = std::find(context.begin(), context.end(), '}');
    if (end != context.begin()) each_ = "{:" + std::string(context.begin(), end) + "}";
    return end;
  }
  auto format(const coppice::MessageMatrix& m, format_context& context) const {
    std::string text;
    const bool is_vector = m.rows == 1 || m.cols == 1;
    for (size_t i = 0; i < m.numbers.size(); ++i) {
      const bool begins = i % m.cols == 0 && !is_vector;
      text += i == 0 ? (begins ? "[[" : "[") : begins ? "], [" : ", ";
      std::visit([&](const auto& number) { text += fmt::vformat(each_, fmt::make_format_args(number)); },
                 m.numbers[i]);
    }
    return fmt::format_to(context.out(), "{}{}", text, is_vector ? "]" : "]]");
  }

 private:
  std::string each_ = "{}";
};

namespace coppice {
namespace {

// Walks a record's arguments.
class Arguments {
 public:
  explicit Arguments(const unsigned char* record)
      : at_(record + sizeof(MessageHeader) + padded_to_8(read_as<MessageHeader>(record).text_bytes)) {}

  std::string_view next_string() {
    const size_t bytes = read_as<uint64_t>(at_) >> 8;
    const std::string_view text(reinterpret_cast<const char*>(at_ + 8), bytes);
    at_ += 8 + padded_to_8(bytes);
    return text;
  }
  int64_t next_int() {
    at_ += 16;
    return read_as<int64_t>(at_ - 8);
  }
  MessageMatrix next_matrix() {
    const auto tag = read_as<uint64_t>(at_);
    MessageMatrix m;
    m.rows = tag >> 8 & 0xffff, m.cols = tag >> 24 & 0xffff;
    at_ += 8;
    for (size_t i = 0; i < m.rows * m.cols; ++i, at_ += 16) {
      const auto kind = static_cast<MessageValue>(read_as<uint64_t>(at_) & 0xff);
      const unsigned char* value = at_ + 8;
      if (kind == MessageValue::kFloat)
        m.numbers.emplace_back(read_as<float>(value));
      else if (kind == MessageValue::kDouble)
        m.numbers.emplace_back(read_as<double>(value));
      else if (kind == MessageValue::kInt)
        m.numbers.emplace_back(read_as<int64_t>(value));
      else
        m.numbers.emplace_back(read_as<uint64_t>(value));
    }
    return m;
  }
  void next(FormatArguments& to) {
    const auto kind = static_cast<MessageValue>(read_as<uint64_t>(at_) & 0xff);
    if (kind == MessageValue::kString) return to.push_back(std::string(next_string()));
    if (kind == MessageValue::kMatrix) return to.push_back(next_matrix());
    const unsigned char* value = at_ + 8;
    at_ += 16;
    switch (kind) {
      case MessageValue::kBool:
        return to.push_back(read_as<uint64_t>(value) != 0);
      case MessageValue::kChar:
        return to.push_back(read_as<char>(value));
      case MessageValue::kInt:
        return to.push_back(read_as<int64_t>(value));
      case MessageValue::kFloat:
        return to.push_back(read_as<float>(value));
      case MessageValue::kDouble:
        return to.push_back(read_as<double>(value));
      default:
        return to.push_back(read_as<uint64_t>(value));
    }
  }

 private:
  const unsigned char* at_;
};

std::string_view text_of(const unsigned char* record) {
  return {reinterpret_cast<const char*>(record + sizeof(MessageHeader)),
          read_as<MessageHeader>(record).text_bytes};
}

std::string format_rest(const unsigned char* record, Arguments arguments, uint32_t count) {
  FormatArguments values;
  for (uint32_t i = 0; i < count; ++i) arguments.next(values);
  const std::string_view text = text_of(record);
  try {
    std::string line;
    const auto written = fmt::vformat_to_n(std::back_inserter(line), kMostText, text, values);
    if (written.size > kMostText) line += fmt::format("... ({} characters)", written.size);
    return line;
  } catch (const fmt::format_error& error) {
    return fmt::format("print(\"{}\"): {}", text, error.what());
  }
}

// Returns "item 7" or "cell (3, 4)".
std::string place_of(const MessageHeader& h) {
  if (h.dims == 0) return fmt::format("item {}", h.place[0]);
  std::string text = "cell (";
  for (int axis = 0; axis < h.dims; ++axis) text += fmt::format("{}{}", axis > 0 ? ", " : "", h.place[axis]);
  return text + ")";
}

void write_line(std::string_view line) {
  const std::string whole = fmt::format("{}\n", line);
  std::fwrite(whole.data(), 1, whole.size(), stdout);
}

void hand_over(const MessageHandler& handler, std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  for (;;) {
    const size_t end = text.find('\n');
    handler(text.substr(0, end));
    if (end == text.npos) return;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string format_message(const unsigned char* record) {
  return format_rest(record, Arguments(record), read_as<MessageHeader>(record).num_arguments);
}

std::string format_assertion(const unsigned char* record) {
  const auto header = read_as<MessageHeader>(record);
  Arguments arguments(record);
  const std::string_view condition = arguments.next_string(), file = arguments.next_string();
  const int64_t line = arguments.next_int();
  const std::string message = format_rest(record, arguments, header.num_arguments - 3);
  return fmt::format("{} ({}:{}){}{}, {}", condition, file, line, message.empty() ? "" : ": ", message,
                     place_of(header));
}

MessageLog::MessageLog(MessageArea& area) : area_(area), handler_(write_line) { area.end = ~uint64_t{0}; }

void MessageLog::set_handler(MessageHandler handler) {
  std::lock_guard lock(mutex_);
  handler_ = handler ? std::move(handler) : write_line;
}

void MessageLog::collect() {
  uint64_t at = begin_;
  while (at + sizeof(MessageHeader) <= MessageArea::kCapacity) {
    unsigned char* record = area_.records + at;
    const uint32_t bytes = __atomic_load_n(reinterpret_cast<uint32_t*>(record), __ATOMIC_ACQUIRE);
    if (bytes == 0) break;  // the end, or one that another launch is writing
    waiting_.push_back({read_as<MessageHeader>(record), format_message(record)});
    std::memset(record, 0, bytes);
    at += bytes;
  }
  begin_ = at;
  // Room is given back when nobody has any in use; a launch that reserves some
  // meanwhile makes the exchange fail.
  uint64_t used = __atomic_load_n(&area_.used, __ATOMIC_ACQUIRE);
  const bool full = used > MessageArea::kCapacity;
  if (full) {
    uint64_t* end = &area_.end;
    if (__atomic_load_n(end, __ATOMIC_ACQUIRE) != at) return;
    __atomic_store_n(end, ~uint64_t{0}, __ATOMIC_RELAXED);
  }
  while (used == at || full) {
    if (__atomic_compare_exchange_n(&area_.used, &used, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      begin_ = 0;
      return;
    }
  }
}

void MessageLog::hold(uint64_t launch) {
  const std::lock_guard lock(mutex_);
  held_.push_back(launch);
}

void MessageLog::let_through(uint64_t launch) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(held_.begin(), held_.end(), launch);
  if (found != held_.end()) held_.erase(found);
}

void MessageLog::let_all_through() {
  const std::lock_guard lock(mutex_);
  held_.clear();
}

void MessageLog::read() {
  std::lock_guard one_at_a_time(handing_over_);
  std::vector<Message> messages;
  uint64_t dropped;
  MessageHandler handler;
  {
    std::lock_guard lock(mutex_);
    collect();
    const auto is_held = [&](const Message& message) {
      return std::find(held_.begin(), held_.end(), message.header.launch) != held_.end();
    };
    const auto kept = std::find_if(waiting_.begin(), waiting_.end(), is_held);
    messages.assign(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(kept));
    waiting_.erase(waiting_.begin(), kept);
    has_kept_.store(!waiting_.empty(), std::memory_order_relaxed);
    dropped = __atomic_exchange_n(&area_.dropped, 0, __ATOMIC_RELAXED);
    handler = handler_;
  }
  std::stable_sort(messages.begin(), messages.end(), [](const Message& a, const Message& b) {
    return std::lexicographical_compare(a.header.place, a.header.place + 3, b.header.place,
                                        b.header.place + 3);
  });
  for (const Message& message : messages) hand_over(handler, message.text);
  if (dropped > 0)
    handler(fmt::format("{} messages of kernels were dropped: those of a launch have room for {} bytes",
                        dropped, MessageArea::kCapacity));
  std::fflush(stdout);
}

void MessageLog::forget(const LaunchBlock& launch) {
  if (is_empty()) return;
  std::lock_guard lock(mutex_);
  collect();
  std::erase_if(waiting_, [&](const Message& message) { return message.header.launch == launch_id(launch); });
  __atomic_store_n(&area_.dropped, 0, __ATOMIC_RELAXED);
}

}  // namespace coppice
