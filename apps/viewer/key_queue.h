// This queues keys for a library that looks once a frame at which are down, and takes text apart from
// them.
//
// Such a library sees nothing of a key that is pressed and let go of between two frames, and takes text
// as typed before the other keys of a frame, whatever came first. So a frame gets only as many events as
// it understands in the order that was meant, and the others wait for the next one.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

namespace coppice::viewer {

struct KeyEvent {
  enum class Kind { kPress, kRepeat, kRelease, kText, kButton };
  Kind kind;
  int key = 0, scancode = 0, mods = 0;  // the window system's
  bool is_modifier = false;             // Ctrl, Shift and the like
  uint32_t character = 0;               // of kText, which follows the press that types it
};

class KeyQueue {
 public:
  // Events come in order. A mouse button that is pressed (kButton) is seen with the modifiers that are held
  // then.
  void add(const KeyEvent& event) { events_.push_back(event); }
  // Returns the events of the next frame, in order: it has at most one key that types nothing, and nothing
  // is let go of behind it.
  std::vector<KeyEvent> take_frame();
  bool is_empty() const { return events_.empty(); }

 private:
  std::deque<KeyEvent> events_;
};

}  // namespace coppice::viewer
