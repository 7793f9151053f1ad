// Random ways in which a program ends, at a random moment, while a world of its own is at work
// (ending_program.cc, ending_host_program.cc). A world is made from a std::mt19937 and has
//
//     work(random)                          gives some work, and waits for nothing
//     let_go(random)                        drops its handles in a random order
//     on_its_threads(random, deed)          has one of the library's threads do this, once
#pragma once
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace coppice {

template <class World>
class Ending {
  using Random = std::mt19937;

 public:
  // main's arguments: the seed is the only one. Returns main's exit status, 0, or calls exit().
  static int run(int count, char** words) {
    Random random(count == 2 ? static_cast<unsigned>(std::stoul(words[1])) : 0);
    world_ = std::make_shared<World>(random);
    for (uint32_t n = random() % 8; n > 0; --n) world_->work(random);
    end(random);
    return 0;
  }

 private:
  static void end(Random& random) {
    switch (random() % 7) {
      case 0:  // the handles are main's
        pass_time(random);
        world_.reset();
        return;
      case 1:  // a static object's
        return pass_time(random);
      case 2: {  // nobody's, whom only a leak checker finds
        static auto* const found = new std::vector<std::shared_ptr<World>>;
        found->push_back(world_);
        return pass_time(random);
      }
      case 3:  // of a thread that nobody waits for
        std::thread(last_deed(random, false)).detach();
        return pass_time(random);
      case 4:  // a continuation's or a task's
      case 5: {
        const bool calls_exit = random() % 2 == 0;
        World& world = *world_;
        const auto keep = world_;
        world.on_its_threads(random, last_deed(random, calls_exit));
        pass_time(random);
        for (; calls_exit;) pause();
        return;
      }
      default:  // those of a thread that goes on to use them
        std::thread([kept = world_, seed = random()] {
          Random what(seed);
          for (;;) kept->work(what);
        }).detach();
        pass_time(random);
        std::exit(0);
    }
  }

  // Chance chooses the moment: nothing happens that could be waited for.
  static void pass_time(Random& random) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30000));
  }
  // Returns what ends the process, or lets the handles go.
  static std::function<void()> last_deed(Random& random, bool calls_exit) {
    if (calls_exit) return [] { std::exit(0); };
    return [world = std::exchange(world_, {}), seed = random()]() mutable {
      Random order(seed);
      world->let_go(order);
    };
  }

  static inline std::shared_ptr<World> world_;  // destroyed after all that is made later
};

}  // namespace coppice
