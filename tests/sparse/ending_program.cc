// A program that ends at a random moment, in a random way, while its device is at work (endings_stress_test.cc).
//
//     ending_program SEED               exit status 0
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/sparse/lifetimes.h"

namespace {

using coppice::World;
using Random = World::Random;

std::shared_ptr<World> the_world;  // destroyed after all that is made later

// Which moment it is is drawn: nothing happens that could be waited for.
void pass_time(Random& random) { std::this_thread::sleep_for(std::chrono::microseconds(random() % 30000)); }

[[noreturn]] void wait_for_the_end() {
  for (;;) pause();
}

// What ends the process, or lets the handles go.
std::function<void()> last_deed(Random& random, bool calls_exit) {
  if (calls_exit) return [] { std::exit(0); };
  return [world = std::exchange(the_world, {}), seed = random()]() mutable {
    Random order(seed);
    world->let_go(order);
  };
}

void end_on_a_thread_of_the_library(Random& random, bool calls_exit) {
  const auto code = the_world->code();
  const auto last = the_world->last();
  const bool of_code = random() % 2 == 0;
  auto deed = last_deed(random, calls_exit);
  if (of_code)
    code.and_then(std::move(deed));
  else
    last.and_then(std::move(deed));
  pass_time(random);
}

}  // namespace

int main(int count, char** words) {
  Random random(count == 2 ? static_cast<unsigned>(std::stoul(words[1])) : 0);
  the_world = std::make_shared<World>(random);
  for (uint32_t n = random() % 8; n > 0; --n) the_world->work(random);
  switch (random() % 7) {
    case 0:  // the handles are main's
      pass_time(random);
      return std::exchange(the_world, {}), 0;
    case 1:  // a static object's
      pass_time(random);
      return 0;
    case 2:  // nobody's
      new std::shared_ptr<World>(the_world);
      pass_time(random);
      return 0;
    case 3:  // of a thread that nobody waits for
      std::thread([world = std::exchange(the_world, {}), seed = random()]() mutable {
        Random order(seed);
        world->let_go(order);
      }).detach();
      pass_time(random);
      return 0;
    case 4:  // a continuation's
      end_on_a_thread_of_the_library(random, false);
      return 0;
    case 5:
      end_on_a_thread_of_the_library(random, true);
      wait_for_the_end();
    default:  // those of a thread that goes on to use them
      std::thread([kept = the_world, seed = random()] {
        Random what(seed);
        for (;;) kept->work(what);
      }).detach();
      pass_time(random);
      std::exit(0);
  }
}
