// KernelCache by system calls: mkostemp, rename, unlink, the mtime as the time of last use, and Linux's locks
// of open files (not POSIX's, which belong to a process and so would not keep two of its threads apart).
#include "gpu/jit/kernel_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/output_target.h"

namespace coppice::jit {
namespace {

namespace fs = std::filesystem;

constexpr std::array<char, 8> kMagic = {'C', 'O', 'P', 'P', 'K', 'E', 'R', 'N'};
constexpr uint32_t kFormatVersion = 1;
constexpr std::string_view kSuffix = ".kernel";
constexpr std::string_view kTemporarySuffix = ".kernel.tmp.";  // then six characters of mkostemp's choice
constexpr std::string_view kLockName = "compiling.lock";
constexpr size_t kMaxKeyDigits = 128;
// Writing an entry takes milliseconds. Age, not a process id, tells that its writer is gone: ids repeat in
// containers that share a home.
constexpr time_t kTemporaryLifetime_s = 3600;
constexpr uint64_t kMaxMib = uint64_t{1} << 20;  // a bound of 1 TiB

struct EntryHeader {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kFormatVersion;
  uint32_t reserved = 0;
  uint64_t length_bytes = 0;
  uint64_t checksum_low = 0;
  uint64_t checksum_high = 0;

  bool operator==(const EntryHeader&) const = default;
};
static_assert(sizeof(EntryHeader) == 40 && std::has_unique_object_representations_v<EntryHeader>);

// The key counts, so that an entry renamed or copied to another key is refused.
EntryHeader header_for(std::string_view key_hex, std::string_view bytes) {
  const Hash128 checksum = Hasher().update(key_hex).update(bytes).digest();
  EntryHeader header;
  header.length_bytes = bytes.size();
  header.checksum_low = checksum.low;
  header.checksum_high = checksum.high;
  return header;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  explicit operator bool() const { return number_ >= 0; }
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  // Returns 0 or the error number: some file systems report a failed write only here.
  int close() { return ::close(std::exchange(number_, -1)) < 0 ? errno : 0; }

 private:
  int number_;
};

bool read_all(int descriptor, void* data, size_t size_bytes) {
  auto* next = static_cast<char*>(data);
  while (size_bytes > 0) {
    const ssize_t got = ::read(descriptor, next, size_bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    size_bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool is_key(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return !text.empty() && text.size() <= kMaxKeyDigits && std::all_of(text.begin(), text.end(), is_digit);
}

bool is_entry_name(std::string_view name) {
  return name.ends_with(kSuffix) && is_key(name.substr(0, name.size() - kSuffix.size()));
}

bool is_temporary_name(std::string_view name) {
  const size_t at = name.find(kTemporarySuffix);
  return at != name.npos && is_key(name.substr(0, at)) && name.size() == at + kTemporarySuffix.size() + 6;
}

struct EntryFile {
  std::string path;
  uint64_t size_bytes;
  timespec used;

  // The least recently used entry is first; the path makes the order total where times are equal.
  bool operator<(const EntryFile& other) const {
    return std::tie(used.tv_sec, used.tv_nsec, path) <
           std::tie(other.used.tv_sec, other.used.tv_nsec, other.path);
  }
};

struct FolderContents {
  std::vector<EntryFile> entries;
  std::vector<std::string> dead_temporaries;
  uint64_t entry_bytes = 0;
};

// Leaves out what another process removes meanwhile; a folder that cannot be read counts as empty.
FolderContents look_at(const fs::path& folder) {
  FolderContents contents;
  std::error_code error;
  const time_t now = std::time(nullptr);
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool is_entry = is_entry_name(name);
    struct stat status;
    if (!is_entry && !is_temporary_name(name)) continue;
    if (::lstat(it->path().c_str(), &status) < 0 || !S_ISREG(status.st_mode)) continue;
    if (is_entry) {
      contents.entries.push_back(
          {it->path().string(), static_cast<uint64_t>(status.st_size), status.st_mtim});
      contents.entry_bytes += static_cast<uint64_t>(status.st_size);
    } else if (now - status.st_mtime > kTemporaryLifetime_s) {
      contents.dead_temporaries.push_back(it->path().string());
    }
  }
  return contents;
}

void remove_dead_temporaries(const FolderContents& contents) {
  for (const std::string& path : contents.dead_temporaries) ::unlink(path.c_str());
}

enum class Finding { kWhole, kAbsent, kDamaged };

Finding read_entry(const std::string& path, std::string_view key_hex, uint64_t max_bytes,
                   std::string& bytes) {
  // With NOFOLLOW and NONBLOCK neither a link nor a pipe of that name may lead us astray or hang us.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status;
  if (!file || ::fstat(file.number(), &status) < 0 || !S_ISREG(status.st_mode)) return Finding::kAbsent;
  if (status.st_uid != ::geteuid() && status.st_uid != 0) return Finding::kAbsent;

  EntryHeader header;
  const auto size_bytes = static_cast<uint64_t>(status.st_size);
  if (size_bytes < sizeof(header) || size_bytes > max_bytes) return Finding::kDamaged;
  if (!read_all(file.number(), &header, sizeof(header))) return Finding::kDamaged;
  if (header.length_bytes != size_bytes - sizeof(header)) return Finding::kDamaged;
  bytes.resize(header.length_bytes);
  if (!read_all(file.number(), bytes.data(), bytes.size())) return Finding::kDamaged;
  if (header != header_for(key_hex, bytes)) return Finding::kDamaged;  // magic and version too

  // Fails on a read-only file system, where nothing is evicted either.
  const timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
  (void)::futimens(file.number(), times);
  return Finding::kWhole;
}

// The leaf is for its owner only; the folders above it are the system's usual ones.
int make_folder(const fs::path& folder) {
  std::error_code error;
  if (folder.has_parent_path()) fs::create_directories(folder.parent_path(), error);
  if (error) return error.value();
  return ::mkdir(folder.c_str(), 0700) < 0 && errno != EEXIST ? errno : 0;
}

int make_temporary(const std::string& path, std::string& temporary) {
  temporary = fmt::format("{}.tmp.XXXXXX", path);
  return ::mkostemp(temporary.data(), O_CLOEXEC);
}

// Returns 0 or the error number; leaves a whole entry or nothing.
int write_entry(const fs::path& folder, const std::string& path, const EntryHeader& header,
                std::string_view bytes) {
  std::string temporary;
  int number = make_temporary(path, temporary);
  if (number < 0 && errno == ENOENT) {  // the first store, or somebody removed the folder
    if (const int error = make_folder(folder); error != 0) return error;
    number = make_temporary(path, temporary);
  }
  if (number < 0) return errno;
  Descriptor file(number);
  int error = write_all(number, {reinterpret_cast<const char*>(&header), sizeof header});
  if (error == 0) error = write_all(number, bytes);
  const int close_error = file.close();
  if (error == 0) error = close_error;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) < 0) error = errno;
  if (error != 0) ::unlink(temporary.c_str());
  return error;
}

// NOFOLLOW and NONBLOCK are given as for the entries, for no link or pipe of that name shall lead us
// astray.
int open_lock_file(const fs::path& folder) {
  const std::string path = (folder / kLockName).string();
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
}

std::string_view environment_text(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}
fs::path environment_path(const char* name) { return environment_text(name); }

}  // namespace

KernelCache::KernelCache(fs::path folder, uint64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes) {}

fs::path KernelCache::default_folder() {
  std::error_code error;
  if (const fs::path own = environment_path("COPPICE_CACHE_DIR"); !own.empty()) {
    const fs::path absolute = fs::absolute(own, error);
    return error ? own : absolute;
  }
  if (const fs::path xdg = environment_path("XDG_CACHE_HOME"); xdg.is_absolute()) return xdg / "coppice";
  if (const fs::path home = environment_path("HOME"); home.is_absolute()) return home / ".cache" / "coppice";
  const fs::path temporary = fs::temp_directory_path(error);
  return (error ? fs::path("/tmp") : temporary) / fmt::format("coppice-{}", ::geteuid());
}

uint64_t KernelCache::default_max_bytes() {
  const std::string_view text = environment_text("COPPICE_CACHE_MAX_MB");
  if (text.empty()) return kDefaultMaxBytes;
  uint64_t max_mib = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), max_mib);
  if (error != std::errc() || end != text.data() + text.size() || max_mib > kMaxMib)
    throw Error(ErrorCode::kUsage,
                fmt::format("COPPICE_CACHE_MAX_MB must be a whole number of MiB from 0 to {}, not '{}'",
                            kMaxMib, text));
  return max_mib << 20;
}

std::string KernelCache::path_of(const std::string& key_hex) const {
  COPPICE_CHECK(is_key(key_hex), "a cache key is 1 to {} lower-case hexadecimal digits, not \"{}\"",
                kMaxKeyDigits, key_hex);
  return (folder_ / key_hex).string().append(kSuffix);
}

std::optional<std::string> KernelCache::find(const std::string& key_hex) {
  const std::string path = path_of(key_hex);
  std::string bytes;
  const Finding finding = max_bytes_ == 0 ? Finding::kAbsent : read_entry(path, key_hex, max_bytes_, bytes);
  if (finding == Finding::kWhole) return bytes;
  if (finding == Finding::kDamaged) {
    log_debug("kernel cache: {} is damaged or of another version, and is removed", path);
    ::unlink(path.c_str());
  }
  return std::nullopt;
}

std::optional<std::string> KernelCache::load(const std::string& key_hex) {
  std::optional<std::string> bytes = find(key_hex);
  (bytes ? hits_ : misses_).fetch_add(1, std::memory_order_relaxed);
  return bytes;
}

std::optional<std::string> KernelCache::load_again(const std::string& key_hex) {
  std::optional<std::string> bytes = find(key_hex);
  if (bytes) {
    hits_.fetch_add(1, std::memory_order_relaxed);
    misses_.fetch_sub(1, std::memory_order_relaxed);
  }
  return bytes;
}

KernelCache::Lock::Lock(Lock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), is_elsewhere_(other.is_elsewhere_) {}
KernelCache::Lock& KernelCache::Lock::operator=(Lock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(is_elsewhere_, other.is_elsewhere_);
  return *this;
}
KernelCache::Lock::~Lock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

KernelCache::Lock KernelCache::try_lock(const std::string& key_hex) {
  Lock lock;
  if (max_bytes_ == 0 || !is_storing_.load(std::memory_order_relaxed)) return lock;
  int number = open_lock_file(folder_);
  if (number < 0 && errno == ENOENT && make_folder(folder_) == 0) number = open_lock_file(folder_);
  Descriptor file(number);
  if (!file) return lock;
  struct flock byte {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = static_cast<off_t>(Hasher().update(key_hex).digest().low >> 2);  // off_t has a sign
  byte.l_len = 1;
  if (::fcntl(file.number(), F_OFD_SETLK, &byte) == 0)
    lock.descriptor_ = file.release();
  else
    lock.is_elsewhere_ = errno == EAGAIN || errno == EACCES;
  return lock;
}

bool KernelCache::can_store() const {
  return max_bytes_ > 0 && is_storing_.load(std::memory_order_relaxed) &&
         ::access(folder_.c_str(), W_OK) == 0;
}

void KernelCache::store(const std::string& key_hex, std::string_view bytes) {
  const std::string path = path_of(key_hex);
  const uint64_t size_bytes = sizeof(EntryHeader) + bytes.size();
  if (size_bytes > max_bytes_ || !is_storing_.load(std::memory_order_relaxed)) return;
  const int error = write_entry(folder_, path, header_for(key_hex, bytes), bytes);
  if (error == 0) {
    keep_bounded(size_bytes);
  } else if (is_storing_.exchange(false, std::memory_order_relaxed)) {
    log_warning("kernel cache: cannot write to {}: {}; this run does not keep its compiled kernels",
                folder_.string(), std::generic_category().message(error));
  }
}

void KernelCache::keep_bounded(uint64_t stored_bytes) {
  std::lock_guard lock(mutex_);
  stored_since_look_bytes_ += stored_bytes;
  if (stored_since_look_bytes_ < look_after_bytes_) return;

  FolderContents contents = look_at(folder_);
  remove_dead_temporaries(contents);
  uint64_t left_bytes = contents.entry_bytes;
  if (left_bytes > max_bytes_) {
    std::sort(contents.entries.begin(), contents.entries.end());
    contents.entries.pop_back();  // the newest stays, however large
    for (const EntryFile& entry : contents.entries) {
      if (left_bytes <= max_bytes_ - max_bytes_ / 8) break;
      // An entry that is gone already is as good: another process evicts by the same order.
      if (::unlink(entry.path.c_str()) == 0 || errno == ENOENT) left_bytes -= entry.size_bytes;
    }
  }
  stored_since_look_bytes_ = 0;
  look_after_bytes_ = std::min(max_bytes_ - std::min(left_bytes, max_bytes_), max_bytes_ / 16);
}

KernelCache::Stats KernelCache::stats() const {
  const FolderContents contents = look_at(folder_);
  return {contents.entries.size(), contents.entry_bytes, hits_.load(std::memory_order_relaxed),
          misses_.load(std::memory_order_relaxed)};
}

uint64_t KernelCache::clear() {
  const FolderContents contents = look_at(folder_);
  remove_dead_temporaries(contents);
  uint64_t removed = 0;
  for (const EntryFile& entry : contents.entries) removed += ::unlink(entry.path.c_str()) == 0;
  return removed;
}

}  // namespace coppice::jit
