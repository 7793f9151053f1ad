// Time spent per operation name on a stream, printed when the stream ends: COPPICE_PROFILE=1.
//
// Used by one thread. Costs two clock reads per operation when on, one branch when off.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace coppice {

class LaunchProfile {
 public:
  LaunchProfile();   // on when COPPICE_PROFILE is set and not empty
  ~LaunchProfile();  // logs one line per name, most time first
  bool is_on() const { return is_on_; }
  void add(std::string_view name, std::chrono::steady_clock::duration time);

  // Adds its own life time.
  class Timer {
   public:
    Timer(LaunchProfile& profile, std::string_view name) : profile_(profile), name_(name) {
      if (profile_.is_on()) start_ = std::chrono::steady_clock::now();
    }
    ~Timer() {
      if (profile_.is_on()) profile_.add(name_, std::chrono::steady_clock::now() - start_);
    }

   private:
    LaunchProfile& profile_;
    std::string_view name_;
    std::chrono::steady_clock::time_point start_;
  };

 private:
  struct Row {
    uint64_t calls = 0;
    std::chrono::steady_clock::duration time{};
  };
  bool is_on_;
  std::map<std::string, Row, std::less<>> rows_;
};

}  // namespace coppice
