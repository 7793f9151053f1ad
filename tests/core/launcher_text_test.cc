// Lines of mpiexec, as Open MPI 4.1 writes them.
#include "core/launcher_text.h"

#include <gtest/gtest.h>

namespace coppice {
namespace {

const std::string kRule(74, '-');

std::string shown(const std::string& text, size_t piece) {
  LauncherText words;
  std::string all;
  for (size_t at = 0; at < text.size(); at += piece)
    all += words.take(std::string_view(text).substr(at, piece));
  return all + words.rest();
}

TEST(LauncherText, KeepsWhatRanksSayAndWhoDied) {
  const std::string text =
      "coppice: error: a\n" + kRule +
      "\nPrimary job  terminated normally, but 1 process returned\na non-zero exit code. "
      "Per user-direction, the job has been aborted.\n" +
      kRule + "\n" + kRule +
      "\nmpiexec detected that one or more processes exited with non-zero status, thus "
      "causing\nthe job to be terminated.\n\n  Exit code:    2\n" +
      kRule + "\nmpiexec: Forwarding signal 10 to job\n" + kRule +
      "\nmpiexec noticed that process rank 1 exited on signal 9 (Killed).\n" + kRule +
      "\n------ no rule\nframe 3/6";
  for (const size_t piece : {size_t{1}, size_t{7}, text.size()})
    EXPECT_EQ(
        shown(text, piece),
        "coppice: error: a\nmpiexec noticed that process rank 1 exited on signal 9 (Killed).\n------ no "
        "rule\nframe 3/6");
}
TEST(LauncherText, LosesNothingOfABlockWithoutAnEnd) {
  EXPECT_EQ(shown("a\n" + kRule + "\nsomething else\n", 5), "a\nsomething else\n");
  EXPECT_EQ(shown("", 5), "");
}

}  // namespace
}  // namespace coppice
