// VTK files of particles: their arrays, where they lie, and what is refused.
#include <cmath>

#include "apps/output/write_vtu.h"
#include "tests/apps/geometry_test_files.h"
#include "tests/apps/output_file_size_limit.h"
#include "tests/apps/vtk_text.h"

namespace coppice::output {
namespace {

TEST(WriteVtu, HasPointsTheirValuesAndAVertexForEach) {
  const TemporaryFolder folder;
  const std::vector<Vec2f> places{{1, 2}, {3, 4}, {5, 6}};
  const std::vector<float> masses{0.5f, 0.25f, 0.125f};
  const std::vector<uint8_t> kinds{7, 8, 255};
  write_vtu(folder / "p.vtu", {{"position", places}, {"mass", masses}, {"kind", kinds}}, {.time_s = 0.125});
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"p.vtu"});
  const std::string file = read_text(folder / "p.vtu");
  EXPECT_EQ(vtk_values<float>(file, "position"), (std::vector<float>{1, 2, 0, 3, 4, 0, 5, 6, 0}));
  EXPECT_EQ(vtk_values<float>(file, "mass"), masses);
  EXPECT_EQ(vtk_values<uint8_t>(file, "kind"), kinds);
  EXPECT_EQ(vtk_values<int64_t>(file, "connectivity"), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(vtk_values<int64_t>(file, "offsets"), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(vtk_values<uint8_t>(file, "types"), (std::vector<uint8_t>{1, 1, 1}));
  EXPECT_EQ(xml_attribute(vtk_element(file, "kind"), "type"), "UInt8");
  EXPECT_EQ(xml_attribute(vtk_element(file, "position"), "NumberOfComponents"), "3");
  EXPECT_NE(file.find("<Piece NumberOfPoints=\"3\" NumberOfCells=\"3\">"), std::string::npos);
  EXPECT_NE(file.find("Name=\"TimeValue\" NumberOfTuples=\"1\" format=\"ascii\">0.125<"), std::string::npos);
  EXPECT_TRUE(file.ends_with("\n</AppendedData>\n</VTKFile>\n"));
}

// More than the writer's buffer of a mebibyte, and a member of structs.
TEST(WriteVtu, WritesManyStructs) {
  struct Particle {
    int32_t number;
    Vec3f x;
  };
  std::vector<Particle> particles;
  for (int i = 0; i < 200000; ++i) particles.push_back({-i, Vec3f(0.5f * static_cast<float>(i), 1, -1)});
  const TemporaryFolder folder;
  write_vtu(folder / "p.vtu",
            {{"number", particles, &Particle::number}, {"position", particles, &Particle::x}});
  const std::string file = read_text(folder / "p.vtu");
  const std::vector<float> x = vtk_values<float>(file, "position");
  const std::vector<int32_t> numbers = vtk_values<int32_t>(file, "number");
  const std::vector<int64_t> offsets = vtk_values<int64_t>(file, "offsets");
  ASSERT_EQ(x.size(), 3 * particles.size());
  ASSERT_EQ(numbers.size(), particles.size());
  ASSERT_EQ(offsets.size(), particles.size());
  for (size_t i = 0; i < particles.size(); ++i) {
    ASSERT_EQ(Vec3f(&x[3 * i]), particles[i].x) << i;
    ASSERT_EQ(numbers[i], particles[i].number);
    ASSERT_EQ(offsets[i], static_cast<int64_t>(i) + 1);
  }
}

TEST(WriteVtu, WritesNoParticlesAndNamesOfComponents) {
  const TemporaryFolder folder;
  const std::vector<Vec3f> none;
  write_vtu(folder / "p.vtu", {{"position", none}, {"stress", none}},
            {.component_names = {{"stress", {"a", "<", "c"}}}});
  const std::string file = read_text(folder / "p.vtu");
  EXPECT_EQ(xml_attribute(vtk_element(file, "stress"), "ComponentName1"), "&lt;");
  EXPECT_TRUE(vtk_values<float>(file, "position").empty());
  EXPECT_EQ(file.find("TimeValue"), std::string::npos);
}

TEST(WriteVtu, RefusesWhatAreNoParticles) {
  const TemporaryFolder folder;
  const std::string path = folder / "p.vtu";
  const std::vector<Vec2f> two{{1, 2}, {3, 4}}, odd{{1, 2}, {3, NAN}};
  const std::vector<float> three{1, 2, 3};
  const auto refuses = [&](ErrorCode code, const std::string& part,
                           const std::vector<ParticleValues>& attributes, const VtuOptions& options = {}) {
    expect_error(code, {"p.vtu: ", part}, [&] { write_vtu(path, attributes, options); });
  };
  refuses(ErrorCode::kInvalidArgument, "particles need an attribute 'position'", {{"mass", three}});
  refuses(ErrorCode::kInvalidArgument, "attribute 'mass' has 3 values, expected 2",
          {{"position", two}, {"mass", three}});
  refuses(ErrorCode::kNumeric, "attribute 'position' of particle 1 has the value nan", {{"position", odd}});
  refuses(ErrorCode::kInvalidArgument, "attribute 'v' has 1 names of components, expected 2",
          {{"position", two}, {"v", two}}, {.component_names = {{"v", {"x"}}}});
  refuses(ErrorCode::kInvalidArgument, "attribute 'w' has 1 names of components, expected 0",
          {{"position", two}}, {.component_names = {{"w", {"x"}}}});
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(WriteVtu, LeavesNothingBehindWithoutAFolderOrRoom) {
  const TemporaryFolder folder;
  const std::vector<Vec3f> places(1000, Vec3f(1, 2, 3));
  expect_error(ErrorCode::kIo, {"none/p.vtu"}, [&] {
    write_vtu(folder / "none/p.vtu", {{"position", places}});
  });
  expect_error(ErrorCode::kIo, {"p.vtu"}, [&] {
    const FileSizeLimit limit(1000);
    write_vtu(folder / "p.vtu", {{"position", places}});
  });
  EXPECT_TRUE(names_in(folder.path()).empty());
}

}  // namespace
}  // namespace coppice::output
