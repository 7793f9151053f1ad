// Parameters as the viewer writes them.
#include <gtest/gtest.h>

#include <cmath>

#include "apps/viewer/parameter_text.h"

namespace coppice::viewer {
namespace {

Parameter changed(const char* path, const char* value) {
  Parameter p;
  p.path = path;
  p.value = value;
  p.is_changed = true;
  return p;
}

TEST(ParameterText, WritesNumbersThatTomlReadsAsTheyAre) {
  const auto number = [](double v) { return toml_value(Parameter::Kind::kNumber, std::vector{v}); };
  EXPECT_EQ(number(0.3), "0.3");
  EXPECT_EQ(number(3), "3.0");
  EXPECT_EQ(number(1e-20), "1e-20");
  EXPECT_EQ(number(-1.0 / 3), "-0.3333333333333333");
  EXPECT_EQ(number(-HUGE_VAL), "-inf");
  EXPECT_EQ(toml_value(Parameter::Kind::kInteger, std::vector{7.0}), "7");
  EXPECT_EQ(toml_value(Parameter::Kind::kVector, std::vector{0.0, -9.81}), "[0.0, -9.81]");
}

TEST(ParameterText, EscapesText) { EXPECT_EQ(toml_text("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\""); }

TEST(ParameterText, CopiesOutWhatWasChanged) {
  Parameter same = changed("grid.resolution", "64");
  same.is_changed = false;
  const std::vector<Parameter> all{changed("gravity", "[0.0, -3.0]"), same,
                                   changed("emitter[1].jelly.E", "10.0"), changed("name", "\"it's\"")};
  EXPECT_EQ(changed_as_toml(all),
            "gravity = [0.0, -3.0]\n# in emitter[1]: jelly.E = 10.0\nname = \"it's\"\n");
  EXPECT_EQ(changed_as_arguments(all),
            "--set 'gravity=[0.0, -3.0]' --set 'emitter[1].jelly.E=10.0' --set 'name=\"it'\\''s\"'");
  EXPECT_EQ(changed_as_arguments(std::vector{same}), "");
}

}  // namespace
}  // namespace coppice::viewer
