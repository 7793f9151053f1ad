// The on-disk cache of compiled kernels: ELF objects or PTX text, one file per key.
//
// An entry is `<key>.kernel` in one flat folder:
//
//     0      8         12   16        24           40
//     | magic | version | 0 | length  | checksum    | bytes...        (native byte order)
//      8       4         4   8         16 (XXH3 of key and bytes)
//
// Thread-safe, and safe with several processes on one folder, whether or not they lock:
// - An entry is written under a name of its own and appears by rename(), which is atomic. An entry is never
// changed in
//   place (only its mtime), so a reader that has it open sees one whole entry, even while it is replaced or
//   removed.
// - Removal is unlink(). Whoever removes an entry by outdated knowledge (it was replaced, or used, since it
// was looked
//   at) costs a later miss, never a wrong value: two writers of one key write the same kernel.
// - What a crash, a full disk or another program leaves behind fails the checks in load() and counts as
// absent. That is
//   why nothing is flushed to disk here.
// - The size is known by looking at the folder, at the first store and after every max_bytes / 16 stored.
// With P
//   processes storing at once it is at most max_bytes + P * max_bytes / 16 for a moment.
//
// `compiling.lock` is empty. Whoever compiles a kernel may hold a record lock on one byte of it, which the
// key chooses, so that one process compiles what several need. The system drops the lock when its owner ends,
// however it ends. A lock saves work and guards nothing: where the file system has none, everybody compiles.
//
// The bytes are code that gets run: a file of another user (root excepted) counts as absent, and new files
// and the folder are readable by their owner only.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace coppice::jit {

class KernelCache {
 public:
  static constexpr uint64_t kDefaultMaxBytes = uint64_t{256} << 20;

  // This touches nothing: the folder is made by the first try_lock() or store(). With `max_bytes` = 0
  // nothing is kept or found.
  explicit KernelCache(std::filesystem::path folder, uint64_t max_bytes = kDefaultMaxBytes);

  // Returns $COPPICE_CACHE_DIR, else $XDG_CACHE_HOME/coppice, else $HOME/.cache/coppice, else
  // coppice-<uid> in the folder for temporary files. The path is absolute; empty variables count as unset,
  // as does a relative $XDG_CACHE_HOME.
  static std::filesystem::path default_folder();
  // Returns the bytes of $COPPICE_CACHE_MAX_MB, which is in MiB, 0 (keep nothing) to 1048576;
  // kDefaultMaxBytes when unset or empty. Errors: kUsage.
  static uint64_t default_max_bytes();
  const std::filesystem::path& folder() const { return folder_; }
  uint64_t max_bytes() const { return max_bytes_; }

  // `key_hex` is 1 to 128 lower-case hexadecimal digits. A hit makes the entry the most recently used one.
  std::optional<std::string> load(const std::string& key_hex);

  // Looks again for what load() did not find, since somebody else was compiling it. A find turns the miss
  // that load() counted into a hit.
  std::optional<std::string> load_again(const std::string& key_hex);

  // This is the right to compile a kernel, among all threads and processes that use the folder; given back
  // by destruction.
  class Lock {
   public:
    Lock() = default;
    Lock(Lock&& other) noexcept;
    Lock& operator=(Lock&& other) noexcept;
    ~Lock();
    bool is_held() const { return descriptor_ >= 0; }
    bool is_elsewhere() const { return is_elsewhere_; }  // somebody else holds it now

   private:
    friend class KernelCache;
    int descriptor_ = -1;
    bool is_elsewhere_ = false;
  };
  // Does not wait. Neither held nor elsewhere where waiting for somebody's entry would be in vain: nothing is
  // kept, or the folder or its file system allows no lock. Cost: three system calls.
  Lock try_lock(const std::string& key_hex);

  // Returns whether store() has a folder to write to; try_lock() has made it.
  bool can_store() const;
  // Never fails: what cannot be written (no permission, no space) is not kept, after one warning per cache
  // object that says why; from then on nothing is stored. An entry above max_bytes is not kept either. When
  // the folder holds more than max_bytes, the least recently used entries go until 7/8 of it are left.
  void store(const std::string& key_hex, std::string_view bytes);

  struct Stats {
    uint64_t entries = 0;  // in the folder now, whoever stored them
    uint64_t bytes = 0;    // of their files
    uint64_t hits = 0;     // of this object
    uint64_t misses = 0;
  };
  Stats stats() const;

  // Removes the entries and what dead processes left, and no file of another name; returns how many entries.
  // The lock file stays: a kernel that is being compiled would be compiled twice.
  uint64_t clear();

 private:
  std::string path_of(const std::string& key_hex) const;
  std::optional<std::string> find(const std::string& key_hex);
  void keep_bounded(uint64_t stored_bytes);

  const std::filesystem::path folder_;
  const uint64_t max_bytes_;
  std::atomic<bool> is_storing_{true};  // until the first failure
  std::atomic<uint64_t> hits_{0};
  std::atomic<uint64_t> misses_{0};

  std::mutex mutex_;                      // guards what follows
  uint64_t stored_since_look_bytes_ = 0;  // by this object
  uint64_t look_after_bytes_ = 0;         // how many may be stored before the folder is looked at again
};

}  // namespace coppice::jit
