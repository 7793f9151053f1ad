// Threads for stress tests.
#pragma once
#include <barrier>
#include <thread>
#include <vector>

namespace coppice {

// Runs body(thread) on each of n threads, all starting together.
template <class Body>
void on_threads(int n, const Body& body) {
  std::barrier start(n);
  std::vector<std::thread> threads;
  for (int t = 0; t < n; ++t)
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      body(t);
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace coppice
