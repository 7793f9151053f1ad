// Journals as text (see journal.h).
#include "apps/viewer/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <system_error>

#include "apps/viewer/hand_text.h"
#include "core/error.h"
#include "core/output_target.h"
#include "core/read_file.h"

namespace coppice::viewer {
namespace {

constexpr std::string_view kFirstLine = "coppice journal 1";

// The first word, which is taken from `text`.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return word;
}

template <class T>
bool read_number(std::string_view text, T& number) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failed == std::errc() && end == text.data() + text.size();
}

JournalEntry parse_line(std::string_view line, const InputLocation& at) {
  const auto refuse = [&](std::string_view what) -> Error {
    return {
        ErrorCode::kUsage,
        fmt::format(
            "'{}': {}; expected STEP and one of: set KEY VALUE, step NUMBER, reset, kernels HASH FILE, {}",
            line, what, kHandForms),
        at};
  };
  std::string_view rest = line;
  JournalEntry entry;
  if (!read_number(take_word(rest), entry.steps)) throw refuse("does not begin with the number of a step");
  const std::string_view what = take_word(rest);
  if (what == "set") {
    const std::string_view path = take_word(rest);
    if (path.empty() || rest.empty()) throw refuse("no key, or no value");
    entry.command = SetParameter{std::string(path), std::string(rest)};
  } else if (what == "step") {
    StepOnce step;
    if (!read_number(rest, step.steps) || step.steps < 1) throw refuse("not a number of steps");
    entry.command = step;
  } else if (what == "kernels") {
    const std::string_view hash = take_word(rest);
    if (hash.empty() || rest.empty()) throw refuse("no hash, or no file");
    entry.command = KernelsLoaded{std::string(rest), std::string(hash)};
  } else if (what == "reset" && rest.empty()) {
    entry.command = Reset();
  } else if (const std::optional<Command> hand = parse_hand(what, rest)) {
    entry.command = *hand;
  } else {
    throw refuse("not understood");
  }
  return entry;
}

std::string line_of(const JournalEntry& entry) {
  if (const auto* set = std::get_if<SetParameter>(&entry.command))
    return fmt::format("{} set {} {}\n", entry.steps, set->path, set->value);
  if (const auto* step = std::get_if<StepOnce>(&entry.command))
    return fmt::format("{} step {}\n", entry.steps, step->steps);
  if (const auto* kernels = std::get_if<KernelsLoaded>(&entry.command))
    return fmt::format("{} kernels {} {}\n", entry.steps, kernels->hash, kernels->file);
  if (const std::string hand = hand_text(entry.command); !hand.empty())
    return fmt::format("{} {}\n", entry.steps, hand);
  return fmt::format("{} reset\n", entry.steps);
}

[[noreturn]] void refuse(const std::filesystem::path& file, int error_number) {
  throw Error(ErrorCode::kIo, fmt::format("cannot write the journal {}: {}", file.string(),
                                          std::generic_category().message(error_number)));
}

}  // namespace

std::string journal_text(const std::vector<JournalEntry>& entries) {
  std::string text(kFirstLine);
  text += '\n';
  for (const JournalEntry& e : entries) text += line_of(e);
  return text;
}

std::vector<JournalEntry> parse_journal(std::string_view text, const std::string& file_name) {
  std::vector<JournalEntry> entries;
  InputLocation at{file_name, 0, 1};
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);  // as editors elsewhere end lines
    if (++at.line == 1) {
      if (line != kFirstLine)
        throw Error(ErrorCode::kUsage,
                    fmt::format("not a journal: expected '{}' in the first line", kFirstLine), at);
    } else if (line.find_first_not_of(' ') != std::string_view::npos) {
      JournalEntry entry = parse_line(line, at);
      // A reset counts from 0 again.
      const bool is_after = entries.empty() || std::holds_alternative<Reset>(entries.back().command) ||
                            entry.steps >= entries.back().steps;
      if (!is_after)
        throw Error(ErrorCode::kUsage,
                    fmt::format("'{}': step {} comes before the last line's, {}", line, entry.steps,
                                entries.back().steps),
                    at);
      entries.push_back(std::move(entry));
    }
  }
  if (at.line == 0) throw Error(ErrorCode::kUsage, "not a journal: the file is empty", {file_name, 0, 0});
  return entries;
}

std::vector<JournalEntry> read_journal(const std::filesystem::path& file,
                                       const std::filesystem::path& written) {
  std::error_code status;
  if (std::filesystem::equivalent(file, written, status)) {
    throw Error(ErrorCode::kUsage,
                fmt::format("the journal {} cannot be done again and written anew at once", file.string()));
  }
  std::string text;
  if (read_file(file.string(), text) != 0)
    throw Error(ErrorCode::kIo, fmt::format("cannot read the journal {}", file.string()));
  return parse_journal(text, file.string());
}

JournalWriter::JournalWriter(std::filesystem::path file) : file_(std::move(file)) {}

JournalWriter::~JournalWriter() {
  if (descriptor_ >= 0) close(descriptor_);
}

void JournalWriter::begin() {
  if (descriptor_ >= 0 || file_.empty()) return;
  const OutputTarget target = open_output(file_.string());
  descriptor_ = target.descriptor;
  if (descriptor_ < 0)
    descriptor_ = open(target.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) refuse(file_, errno);
  append(fmt::format("{}\n", kFirstLine));
}

void JournalWriter::add(const JournalEntry& entry) {
  begin();
  if (!file_.empty()) append(line_of(entry));
}

void JournalWriter::append(std::string_view line) {
  if (const int error = write_all(descriptor_, line); error != 0) refuse(file_, error);
}

}  // namespace coppice::viewer
