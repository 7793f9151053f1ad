// Threads that do what asynchronous operations have put off, in random order.
#pragma once
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "executor/task.h"

namespace coppice::executor {

// Work that asynchronous operations have put off, done in random order by threads of its own, or by the
// test's.
class Completer {
 public:
  explicit Completer(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Completer() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_) thread.join();
  }
  void add(Task task) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(task));
    ++added_, ++unfinished_;
    changed_.notify_all();
  }
  uint64_t added() {
    const std::lock_guard lock(mutex_);
    return added_;
  }
  void wait_idle() {
    std::unique_lock lock(mutex_);
    if (threads_.empty()) {
      while (!work_.empty()) run_one(lock);
    }
    changed_.wait(lock, [&] { return unfinished_ == 0; });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return is_over_ || !work_.empty(); });
      if (work_.empty()) return;
      run_one(lock);
    }
  }
  void run_one(std::unique_lock<std::mutex>& lock) {
    std::swap(work_[random_() % work_.size()], work_.back());
    Task task = std::move(work_.back());
    work_.pop_back();
    lock.unlock();
    task();
    lock.lock();
    if (--unfinished_ == 0) changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Task> work_;
  std::mt19937 random_{1};
  uint64_t added_ = 0, unfinished_ = 0;
  bool is_over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace coppice::executor
