// Tables of names that a signal handler reads: atomics, and calls that a handler may use.
#include "core/aside_files.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/unfinished_file.h"

namespace coppice {
namespace {

constexpr int kPatienceMs = 100;  // with a thread that is renaming or removing a file

}  // namespace

struct AsideFiles::Table {
  struct File {
    const std::string name, aside;
    File* const next;
    // It is set before its thread renames or removes it.
    std::atomic<bool> is_moving{true};
  };
  const pid_t process = getpid();
  const pid_t thread = gettid();
  std::atomic<File*> first{nullptr};
  std::atomic<bool> is_removing{false};

  // Renames back, or removes.
  void settle(const File& file) const {
    if (is_removing.load())
      ::unlink(file.aside.c_str());
    else
      ::rename(file.aside.c_str(), file.name.c_str());  // where it has not got its other name, nothing
  }
};

namespace {

// These are globals, since a handler has no other way to know.
constinit std::array<std::atomic<void*>, 8> tables{};
static_assert(std::atomic<void*>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

}  // namespace

std::error_code AsideFiles::add(const std::string& file, const std::string& aside) {
  if (table_ == nullptr) {
    table_ = new Table;
    for (std::atomic<void*>& place : tables) {
      void* free = nullptr;
      if (place.compare_exchange_strong(free, table_)) break;
    }
  }
  auto* const added = new Table::File{file, aside, table_->first.load()};
  table_->first.store(added);
  // The handler says that it ends the process before it looks at the tables: one of the two sees the other.
  UnfinishedFile::stop_at_end();
  std::error_code error;
  if (std::rename(file.c_str(), aside.c_str()) != 0) error = {errno, std::generic_category()};
  added->is_moving.store(false);
  return error;
}

void AsideFiles::put_back() {
  if (table_ == nullptr) return;
  for (Table::File* f = table_->first.load(); f != nullptr; f = f->next) {
    f->is_moving.store(true);
    UnfinishedFile::stop_at_end();
    table_->settle(*f);
    f->is_moving.store(false);
  }
  forget();
}

std::pair<std::string, std::error_code> AsideFiles::remove() {
  std::pair<std::string, std::error_code> failed;
  if (table_ == nullptr) return failed;
  table_->is_removing.store(true);
  for (Table::File* f = table_->first.load(); f != nullptr; f = f->next) {
    UnfinishedFile::stop_at_end();
    if (::unlink(f->aside.c_str()) != 0 && errno != ENOENT && failed.first.empty())
      failed = {f->aside, {errno, std::generic_category()}};
  }
  forget();
  return failed;
}

void AsideFiles::forget() {
  Table* const table = std::exchange(table_, nullptr);
  for (std::atomic<void*>& place : tables) {
    void* mine = table;
    if (place.compare_exchange_strong(mine, nullptr)) break;
  }
  UnfinishedFile::stop_at_end();  // a handler that has seen the table reads it to the end
  for (Table::File* f = table->first.load(); f != nullptr;) delete std::exchange(f, f->next);
  delete table;
}

void AsideFiles::settle_all() {
  const pid_t process = getpid(), thread = gettid();
  for (const std::atomic<void*>& place : tables) {
    const auto* const table = static_cast<const Table*>(place.load());
    if (table == nullptr || table->process != process) continue;  // a forked child's files are its parent's
    for (const Table::File* f = table->first.load(); f != nullptr; f = f->next) {
      // The thread that the handler interrupts moves nothing meanwhile.
      for (int ms = 0; ms < kPatienceMs && f->is_moving.load() && table->thread != thread; ++ms)
        poll(nullptr, 0, 1);
      table->settle(*f);
    }
  }
}

}  // namespace coppice
