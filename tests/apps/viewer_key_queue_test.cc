// Keys reach a library that looks once a frame at which are down.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "apps/viewer/key_queue.h"

namespace coppice::viewer {
namespace {

using Kind = KeyEvent::Kind;
constexpr int kCtrl = 1, kReturn = 2, kLeft = 3, kA = 4;

// Such a library makes this of frames: "Ctrl+A" selects, letters are typed, "<" is Left, "!" is Return.
class Field {
 public:
  void press(int key) { queue_.add({.kind = Kind::kPress, .key = key, .is_modifier = key == kCtrl}); }
  void release(int key) { queue_.add({.kind = Kind::kRelease, .key = key, .is_modifier = key == kCtrl}); }
  void tap(int key) { press(key), release(key); }
  void type(char character) {
    press(character);
    queue_.add({.kind = Kind::kText, .character = static_cast<uint32_t>(character)});
    release(character);
  }
  void click() { queue_.add({.kind = Kind::kButton}); }

  // All frames; what was seen in them, with a blank between two.
  std::string see() {
    std::string seen;
    for (int frame = 0; !queue_.is_empty(); ++frame) {
      if (frame == 100) return seen + " and never ends";
      if (frame > 0) seen += ' ';
      seen += see_frame();
    }
    return seen;
  }

 private:
  std::string see_frame() {
    const std::set<int> before = down_;
    std::string seen, text;
    bool is_clicked = false;
    for (const KeyEvent& e : queue_.take_frame()) {
      if (e.kind == Kind::kPress) down_.insert(e.key);
      if (e.kind == Kind::kRelease) down_.erase(e.key);
      if (e.kind == Kind::kText) text += static_cast<char>(e.character);
      is_clicked |= e.kind == Kind::kButton;
    }
    const bool has_ctrl = down_.contains(kCtrl);
    const auto is_pressed = [&](int key) { return down_.contains(key) && !before.contains(key); };
    if (is_clicked) seen += has_ctrl ? "ctrl+click" : "click";
    if (!has_ctrl) seen += text;  // else it is thrown away
    if (is_pressed(kA) && has_ctrl) seen += "ctrl+a";
    if (is_pressed(kLeft)) return seen + '<';  // one of them
    if (is_pressed(kReturn)) return seen + '!';
    return seen;
  }

  KeyQueue queue_;
  std::set<int> down_;
};

// Seen to fail: which keys are down was looked at when a frame began, and one that was up again was lost.
TEST(KeyQueue, AKeyThatIsTappedBetweenTwoFramesIsSeen) {
  Field field;
  field.tap(kReturn);
  EXPECT_EQ(field.see(), "! ");
  field.press(kReturn);
  EXPECT_EQ(field.see(), "!");
  field.release(kReturn), field.tap(kReturn);
  EXPECT_EQ(field.see(), " ! ") << "it is up for a frame, so that it is pressed again";
}

TEST(KeyQueue, AWholeLineInOneFrameIsSeenInItsOrder) {
  Field field;
  field.press(kCtrl), field.tap(kA), field.release(kCtrl);
  field.type('5'), field.type('0'), field.tap(kLeft), field.type('1'), field.tap(kReturn);
  EXPECT_EQ(field.see(), "ctrl+a 50 < 1 ! ");
}

// Text is taken before other keys, and of those one.
TEST(KeyQueue, WhatIsPressedWhileAnotherKeyIsDownComesBehindIt) {
  Field field;
  field.press(kLeft), field.press(kReturn);
  EXPECT_EQ(field.see(), "< !");
  field.release(kLeft), field.press(kLeft), field.type('1');
  EXPECT_EQ(field.see(), " < 1");
}

TEST(KeyQueue, TextAloneNeedsOneFrame) {
  Field field;
  for (const char c : std::string("aa hare.")) field.type(c);
  EXPECT_EQ(field.see(), "aa hare.");
}

TEST(KeyQueue, ModifiersAreHeldForWhatTheyWereHeldFor) {
  Field field;
  field.press(kCtrl), field.click(), field.release(kCtrl), field.type('7');
  EXPECT_EQ(field.see(), "ctrl+click 7");
  field.type('7'), field.press(kCtrl), field.tap(kA), field.release(kCtrl);
  EXPECT_EQ(field.see(), "7 ctrl+a ");
}

}  // namespace
}  // namespace coppice::viewer
