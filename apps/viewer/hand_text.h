// This writes and reads the act of a hand as words of a journal's line:
//
//   emit emitter[0].snow at 0.5 0.7 0.5 radius 0.1 velocity 0 -2 0
//   push from 0.5 0.5 0.5 to 0.55 0.5 0.5 radius 0.1 velocity 3 0 0
//   cut from 0.5 0.5 0.5 to 0.55 0.5 0.5 radius 0.1
//
// Numbers are written so that the same bits are read.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "apps/viewer/command.h"

namespace coppice::viewer {

// Messages show these forms of such a line.
inline constexpr std::string_view kHandForms =
    "emit MATERIAL at X Y Z radius R velocity X Y Z, push from X Y Z to X Y Z radius R velocity X Y Z, "
    "cut from X Y Z to X Y Z radius R";

// Returns nothing for any other command.
std::string hand_text(const Command& command);
// `verb` is the first word. Returns none where it is no such command, or its words are not understood.
std::optional<Command> parse_hand(std::string_view verb, std::string_view words);

}  // namespace coppice::viewer
