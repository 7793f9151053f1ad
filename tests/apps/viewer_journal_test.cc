// Journals of sessions: what was written is read again, and what is no journal gets one clear line.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "apps/viewer/journal.h"
#include "core/error.h"
#include "tests/apps/geometry_test_files.h"

namespace coppice::viewer {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view text) {
  try {
    parse_journal(text, "a.journal");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    return e.what();
  }
  return "";
}

TEST(Journal, IsReadAsItWasWritten) {
  const std::vector<JournalEntry> entries{{0, SetParameter{"gravity", "[0.0, -3.0, 0.0]"}},
                                          {96, StepOnce{2}},
                                          {98, Reset()},
                                          {5, KernelsLoaded{"my heat.kernels.cc", "0a1b"}},
                                          {7, SetParameter{"output.color", "\"speed\""}}};
  const std::string text = journal_text(entries);
  EXPECT_EQ(text,
            "coppice journal 1\n0 set gravity [0.0, -3.0, 0.0]\n96 step 2\n98 reset\n5 kernels 0a1b my "
            "heat.kernels.cc\n7 set output.color \"speed\"\n");
  EXPECT_EQ(journal_text(parse_journal(text, "a.journal")), text);
  std::string other;  // as editors elsewhere end lines
  for (const char c : text) other += c == '\n' ? "\r\n" : std::string(1, c);
  EXPECT_EQ(journal_text(parse_journal(other, "a.journal")), text);
}

TEST(Journal, KeepsEveryBitOfWhatAHandDid) {
  const Stroke stroke{Vec3f(0.1f, -1e-30f, 3), Vec3f(1.0f / 3, 16777217.0f, -0.0f), 0.7f};
  const std::vector<JournalEntry> entries{
      {0, Emit{Vec3f(0.1f, 0.2f, 0.3f), 0.25f, Vec3f(0, -1.5f, 1e9f), "emitter[0].snow"}},
      {5, Push{stroke, Vec3f(2.0f / 3, 0, 0)}},
      {5, Cut{stroke}}};
  const std::string text = journal_text(entries);
  EXPECT_THAT(text, HasSubstr("0 emit emitter[0].snow at 0.1 0.2 0.3 radius 0.25 velocity 0 -1.5 1"));
  const std::vector<JournalEntry> again = parse_journal(text, "a.journal");
  EXPECT_EQ(journal_text(again), text);
  const auto& push = std::get<Push>(again.at(1).command);
  EXPECT_EQ(push.stroke.from, stroke.from);
  EXPECT_EQ(push.stroke.to, stroke.to);
  EXPECT_EQ(push.stroke.radius_m, stroke.radius_m);
  EXPECT_EQ(push.velocity_m_s, Vec3f(2.0f / 3, 0, 0));
  EXPECT_EQ(std::get<Emit>(again.at(0).command).material, "emitter[0].snow");
  EXPECT_EQ(std::get<Cut>(again.at(2).command).stroke.to, stroke.to);
}

TEST(Journal, NamesFileAndLineOfWhatItDoesNotUnderstand) {
  EXPECT_THAT(error_of(""), HasSubstr("a.journal: not a journal: the file is empty"));
  EXPECT_THAT(error_of("hello\n"), HasSubstr("a.journal:1:1: not a journal"));
  for (const char* line :
       {"x set a 1", "1 jump", "1 set", "1 set a", "1 step", "1 step 0", "1 step -3", "1 step 2x", "-1 reset",
        "1 kernels", "1 kernels 0a1b", "1 reset now", "1 cut", "1 cut from 0 0 0 to 1 1 radius 1",
        "1 cut from 0 0 0 to 1 1 1 radius 1 2", "1 push from 0 0 0 to 1 1 1 radius 1",
        "1 emit snow at 0 0 x radius 1 velocity 0 0 0", "1 emit at 0 0 0 radius 1 velocity 0 0 0",
        "99999999999999999999999 reset"}) {
    SCOPED_TRACE(line);
    const std::string error = error_of(std::string("coppice journal 1\n\n") + line + "\n");
    EXPECT_THAT(error, HasSubstr("a.journal:3:1: '"));
    EXPECT_THAT(
        error,
        HasSubstr(
            "expected STEP and one of: set KEY VALUE, step NUMBER, reset, kernels HASH FILE, emit MATERIAL"));
  }
}

TEST(Journal, StepsDoNotGoBackButForAReset) {
  EXPECT_EQ(error_of("coppice journal 1\n5 set a 1\n5 reset\n0 set a 2\n"), "");
  EXPECT_THAT(error_of("coppice journal 1\n10 set a 1\n5 set a 2\n"),
              HasSubstr("a.journal:3:1: '5 set a 2': step 5 comes before the last line's, 10"));
}

TEST(Journal, AFolderIsNone) { EXPECT_THROW(read_journal("/"), Error); }

TEST(Journal, IsNotReadFromTheFileThatIsWritten) {
  TemporaryFolder folder;
  const std::string file = folder / "a.journal", other = folder / "b.journal";
  write_text(file, "coppice journal 1\n1 reset\n");
  std::filesystem::create_symlink(file, other);
  for (const std::string& written : {file, other})
    EXPECT_THROW(read_journal(file, written), Error) << written;
  EXPECT_EQ(read_journal(file, folder / "c.journal").size(), 1u);
}

// Seen to fail: the signal of a broken pipe ended the program, and "-" made a file of that name.
TEST(Journal, IsWrittenIntoPipesAsFarAsSomebodyReadsThem) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const int saved = dup(STDOUT_FILENO);
  dup2(ends[1], STDOUT_FILENO);
  JournalWriter terminal("-");
  terminal.add({3, Reset()});
  dup2(saved, STDOUT_FILENO);
  close(saved);
  char text[64] = {};
  EXPECT_EQ(read(ends[0], text, sizeof text - 1), 26);
  EXPECT_EQ(std::string(text), "coppice journal 1\n3 reset\n");
  close(ends[0]), close(ends[1]);
  expect_error(ErrorCode::kIo, {"cannot write the journal -: Broken pipe"}, [&] {
    terminal.add({4, Reset()});
  });
}

}  // namespace
}  // namespace coppice::viewer
