// Nearest names: the distance's four edits, and when no name is near enough.
#include "core/nearest_name.h"

#include <gtest/gtest.h>

#include <vector>

namespace coppice {
namespace {

TEST(Nearest, CountsEachKindOfEditOnce) {
  EXPECT_EQ(edit_distance("frames", "frames"), 0u);
  EXPECT_EQ(edit_distance("frmes", "frames"), 1u);
  EXPECT_EQ(edit_distance("framess", "frames"), 1u);
  EXPECT_EQ(edit_distance("fromes", "frames"), 1u);
  EXPECT_EQ(edit_distance("farmes", "frames"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
}

TEST(Nearest, DoesNotEditWithinASwap) { EXPECT_EQ(edit_distance("ca", "abc"), 3u); }

TEST(Nearest, IgnoresCase) { EXPECT_EQ(edit_distance("Youngs_Modulus_pa", "youngs_modulus_Pa"), 0u); }

TEST(Nearest, PrefersTheClosestAndThenTheEarlier) {
  const std::vector<std::string> names{"radius", "friction", "fraction"};
  EXPECT_EQ(nearest_name("fricton", names), "friction");
  EXPECT_EQ(nearest_name("frxction", names), "friction");
}

TEST(Nearest, FindsNothingAmongStrangers) {
  const std::vector<std::string> names{"radius", "center"};
  EXPECT_EQ(nearest_name("colour", names), std::nullopt);
  EXPECT_EQ(nearest_name("xyz", names), std::nullopt);
  EXPECT_EQ(nearest_name("y", std::vector<std::string>{"x"}), std::nullopt);
  EXPECT_EQ(nearest_name("", names), std::nullopt);
  EXPECT_EQ(nearest_name("radius", std::vector<std::string>{}), std::nullopt);
}

}  // namespace
}  // namespace coppice
