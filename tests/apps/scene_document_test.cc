// Documents: files that cannot be read, text that is not TOML, and overrides that do not fit.
#include <gtest/gtest.h>

#include "apps/scene/document.h"
#include "apps/scene/schema.h"
#include "tests/apps/scene_test_util.h"

namespace coppice::scene {
namespace {

struct Point {
  double x = 0.0;
  TableOrigin origin;
};
struct Example {
  int count = 1;
  std::string label;
  std::vector<Point> points;
  Vec3d place = Vec3d::Zero();
};

Schema<Example> example_schema() {
  Schema<Point> point("A point.");
  point.field("x", &Point::x, "where");
  Schema<Example> schema("An example.");
  schema.field("count", &Example::count, "how many")
      .field("label", &Example::label, "what it says")
      .field("place", &Example::place, "where")
      .tables("point", &Example::points, point);
  return schema;
}

constexpr const char* kText = "count = 2\nplace = [1, 2, 3]\n[[point]]\nx = 1.5\n[[point]]\nx = 2.5\n";

Example read_with(const std::string& assignment) {
  const SceneOverride overrides[] = {SceneOverride::set(assignment)};
  return example_schema().read(Document::parse(kText, "a.toml", overrides));
}
std::string error_with(const std::string& assignment) {
  return error_of([&] { read_with(assignment); });
}

TEST(Document, NamesAFileThatIsNotThere) {
  EXPECT_EQ(error_of([] { Document::load("/nowhere/a.toml"); }),
            "input/output: cannot read scene '/nowhere/a.toml': No such file or directory");
}

TEST(Document, RefusesAFolder) {
  EXPECT_EQ(error_of([] { Document::load("/"); }), "input/output: cannot read scene '/': it is a folder");
  EXPECT_EQ(error_of([] { Document::load("/dev/zero"); }),
            "input/output: cannot read scene '/dev/zero': it has more than 16 MiB");
}

TEST(Document, PointsAtBrokenToml) {
  const std::string error = error_of([] { Document::parse("a = 1\nb = = 2\n", "a.toml"); });
  EXPECT_TRUE(error.starts_with("usage: a.toml:2:5: not valid TOML: ")) << error;
}

TEST(Document, SaysThatAStringIsNotClosed) {
  for (const std::string_view text :
       {"a = 1\nb = \"jelly\nc = \"x\"\n", "a = 1\nb = 'jelly\n", "a = 1\nb = \"jell\u00fd\n"}) {
    const std::string error = error_of([&] { Document::parse(text, "a.toml"); });
    EXPECT_TRUE(error.starts_with("usage: a.toml:2:")) << error;
    EXPECT_TRUE(error.ends_with(": not valid TOML: a string that is not closed on its line")) << error;
  }
}

TEST(Document, SaysThatAStringOfManyLinesIsNotClosed) {
  const std::string error = error_of([&] { Document::parse("a = 1\nb = \"\"\"jelly\n", "a.toml"); });
  EXPECT_TRUE(error.starts_with("usage: a.toml:")) << error;
  EXPECT_EQ(error.find("on its line"), std::string::npos) << error;
}

TEST(Override, ReplacesAddsAndReachesIntoLists) {
  EXPECT_EQ(read_with("count=7").count, 7);
  EXPECT_EQ(read_with(" count = 7 ").count, 7);
  EXPECT_EQ(read_with("label=\"two words\"").label, "two words");
  EXPECT_EQ(read_with("point[1].x=9").points.at(1).x, 9.0);
  EXPECT_EQ(read_with("point.0.x=8").points.at(0).x, 8.0);
  EXPECT_EQ(read_with("place[2]=5").place, Vec3d(1, 2, 5));
  EXPECT_EQ(read_with("point=[{x=4}]").points.size(), 1u);
}

TEST(Override, AddsToAListWithPlus) {
  EXPECT_EQ(read_with("point+={x=4}").points.size(), 3u);
  EXPECT_EQ(read_with(" point += {x=4} ").points.at(2).x, 4.0);
  EXPECT_EQ(error_with("count+=1"), "usage: --set count+=1: 'count' is no list, and += adds to lists");
  EXPECT_EQ(error_with("point[0]+=1"),
            "usage: --set point[0]+=1: 'point.0' is no list, and += adds to lists");
  EXPECT_EQ(error_with("point+=4"), "usage: --set point+=4: 'point[2]' must be a table, not the integer 4");
  EXPECT_EQ(error_with("point+="), "usage: --set point+=: no value after '='");
  EXPECT_EQ(error_with("point+={y=4, xx=3}"),
            "usage: --set point+={y=4, xx=3}: 2 unknown keys: 'point[2].xx' (did you mean 'point[2].x'?), "
            "'point[2].y' (the keys here are x)");
  EXPECT_EQ(error_with("point+={y=4}"),
            "usage: --set point+={y=4}: unknown key 'point[2].y'; the keys here are x");
  const SceneOverride overrides[] = {SceneOverride::set("point+={x=1}"), SceneOverride::set("point+={x=2}")};
  const Example example = example_schema().read(Document::parse("count = 2", "a.toml", overrides));
  ASSERT_EQ(example.points.size(), 2u);
  EXPECT_EQ(example.points[1].x, 2.0);
}

TEST(Override, TakesABareWordAsAString) {
  EXPECT_EQ(read_with("label=hello").label, "hello");
  EXPECT_EQ(read_with("label=../a/b.obj").label, "../a/b.obj");
}

TEST(Override, LaterOnesWin) {
  const SceneOverride overrides[] = {SceneOverride::set("count=3"), SceneOverride::set("count=4")};
  EXPECT_EQ(example_schema().read(Document::parse(kText, "a.toml", overrides)).count, 4);
}

TEST(Override, NamesItselfInEveryError) {
  EXPECT_EQ(error_with("count"), "usage: --set count: expected KEY.PATH=VALUE");
  EXPECT_EQ(error_with("count="), "usage: --set count=: no value after '='");
  EXPECT_EQ(error_with("co unt=1"),
            "usage: --set co unt=1: 'co unt' is not a key path such as time.frames or emitter.0.radius");
  for (const std::string key :
       {"point[1.x", "point1].x", "point[1]x", "point[[1]].x", "point[].x", "point[x]"})
    EXPECT_TRUE(error_with(key + "=1")
                    .ends_with("'" + key + "' is not a key path such as time.frames or emitter.0.radius"))
        << error_with(key + "=1");
  EXPECT_EQ(error_with("count.more=1"),
            "usage: --set count.more=1: 'count' is a plain value and has no key 'more'");
  EXPECT_EQ(
      error_with("point.3.x=1"),
      "usage: --set point.3.x=1: 'point' has 2 elements; '3' is not the index of one, nor 2, which adds one");
  EXPECT_EQ(
      error_with("point.x=1"),
      "usage: --set point.x=1: 'point' has 2 elements; 'x' is not the index of one, nor 2, which adds one");
  EXPECT_EQ(error_with("count=abc"),
            "usage: --set count=abc: 'count' must be an integer, not the string \"abc\"");
  EXPECT_EQ(error_with("cuont=1"), "usage: --set cuont=1: unknown key 'cuont'; did you mean 'count'?");
  EXPECT_EQ(error_with("point.1.y.z=1"),
            "usage: --set point.1.y.z=1: unknown key 'point[1].y'; the keys here are x");
}

TEST(Override, RefusesAValueThatIsNotToml) {
  const std::string error = error_with("count=[1,");
  EXPECT_TRUE(error.starts_with("usage: --set count=[1,: the value '[1,' is not TOML: ")) << error;
}

TEST(Override, CannotSmuggleInAnotherKey) {
  EXPECT_EQ(error_with("count=1\nlabel='x'"), "usage: --set count=1\nlabel='x': the value spans lines");
}

TEST(Document, KeepsThePlacesOfWhatWasNotOverridden) {
  const SceneOverride overrides[] = {SceneOverride::set("point[0].x=9")};
  const Example example = example_schema().read(Document::parse(kText, "a.toml", overrides));
  EXPECT_EQ(example.points[0].origin.of("x").file, "--set point[0].x=9");
  EXPECT_EQ(example.points[0].origin.of("x").line, 0);
  EXPECT_EQ(example.points[1].origin.of("x").file, "a.toml");
  EXPECT_EQ(example.points[1].origin.of("x").line, 6);
  EXPECT_EQ(example.points[1].origin.of("x").column, 1);
  EXPECT_EQ(example.points[1].origin.of("not given").line, 5);
}

}  // namespace
}  // namespace coppice::scene
