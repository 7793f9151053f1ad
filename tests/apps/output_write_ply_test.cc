// Particles of a program: arrays, lists of structs and buffers come back as they were, and what is refused.
#include <cmath>
#include <cstring>
#include <limits>

#include "apps/output/write_ply.h"
#include "gpu/host_access.h"
#include "sparse/bulk_append.h"
#include "sparse/read_back.h"
#include "tests/apps/geometry_test_files.h"
#include "tests/apps/output_file_size_limit.h"
#include "tests/sparse/test_devices.h"

namespace coppice::output {
namespace {

struct Particle {
  uint8_t kind;
  Vec2f x;
  int32_t number;
  Mat2f affine;
};

Particle make_particle(int i) {
  Particle p;
  p.kind = static_cast<uint8_t>(i + 1);
  p.x = Vec2f(0.5f * static_cast<float>(i), -1);
  p.number = 100 - i;
  p.affine << 1, 2, 3, static_cast<float>(i);
  return p;
}

template <class T>
std::vector<T> values_of(const ParticleTable& table, const std::string& name, int components) {
  const ParticleColumn* column = table.find(name);
  if (column == nullptr || column->components != components) {
    ADD_FAILURE() << "no '" << name << "' of " << components << " components";
    return {};
  }
  std::vector<T> values(column->bytes.size() / sizeof(T));
  std::memcpy(values.data(), column->bytes.data(), column->bytes.size());
  return values;
}

// Expects the two particles that the tests write.
void expect_two(const ParticleTable& table) {
  ASSERT_EQ(table.n_particles, 2);
  EXPECT_EQ(values_of<float>(table, "position", 3), (std::vector<float>{0, -1, 0, 0.5f, -1, 0}));
  EXPECT_EQ(values_of<uint8_t>(table, "kind", 1), (std::vector<uint8_t>{1, 2}));
  EXPECT_EQ(values_of<int32_t>(table, "number", 1), (std::vector<int32_t>{100, 99}));
  EXPECT_EQ(values_of<float>(table, "affine", 4), (std::vector<float>{1, 3, 2, 0, 1, 3, 2, 1}))
      << "column by column";
}

TEST(WritePly, WritesArraysOfTheHost) {
  const TemporaryFolder folder;
  const std::vector<Vec3f> places{{1, 2, 3}, {4, 5, 6}};
  const std::vector<std::array<float, 2>> velocities{{7, 8}, {9, 10}};
  const std::vector<float> masses{0.5f, 0.25f, 0.125f};
  write_ply(folder / "p.ply",
            {{"position", places}, {"velocity", velocities}, {"mass", std::span(masses).first(2)}}, "a test");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"p.ply"});
  const ParticleTable table = read_particles_ply(folder / "p.ply");
  EXPECT_EQ(table.n_particles, 2);
  EXPECT_EQ(table.of, "a test");
  EXPECT_EQ(values_of<float>(table, "position", 3), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values_of<float>(table, "velocity", 2), (std::vector<float>{7, 8, 9, 10}));
  EXPECT_EQ(values_of<float>(table, "mass", 1), (std::vector<float>{0.5f, 0.25f}));
}

class WritePlyOf : public DeviceTest {};

TEST_P(WritePlyOf, WritesMembersOfAListsAndABuffersStructs) {
  const TemporaryFolder folder;
  Tree tree(device);
  const Field<Particle> field = tree.root().pointer({4, 4}).dynamic(100).place<Particle>("particles");
  const auto values = wait_device_copy(*device, std::vector<Particle>{make_particle(0), make_particle(1)});
  const auto coords = wait_device_copy(*device, std::vector<int32_t>{0, 1, 2, 0, 1, 2});
  finish(append(field, coords->as<int32_t>(), values->as<Particle>(), 2));
  std::vector<Particle> copied(2);
  device->wait_copy(copied.data(), values->data(), 2 * sizeof(Particle));
  for (const std::vector<Particle>& particles : {wait_read_list(field, {1, 2}), copied}) {
    write_ply(folder / "p.ply", {{"position", particles, &Particle::x},
                                 {"kind", particles, &Particle::kind},
                                 {"number", particles, &Particle::number},
                                 {"affine", particles, &Particle::affine}});
    expect_two(read_particles_ply(folder / "p.ply"));
  }
}

INSTANTIATE_TEST_SUITE_P(Apps, WritePlyOf, testing::ValuesIn(test_devices()), device_test_name);

TEST(WritePly, WritesNoParticles) {
  const TemporaryFolder folder;
  const std::vector<Particle> none;
  write_ply(folder / "p.ply", {{"position", none, &Particle::x}, {"mass", std::vector<float>{}}});
  const ParticleTable table = read_particles_ply(folder / "p.ply");
  EXPECT_EQ(table.n_particles, 0);
  EXPECT_EQ(table.columns.size(), 2u);
}

TEST(WritePly, RefusesWhatAreNoParticles) {
  const TemporaryFolder folder;
  const std::string path = folder / "p.ply";
  const auto refuses = [&](ErrorCode code, const std::string& part,
                           const std::vector<ParticleValues>& attributes) {
    expect_error(code, {"p.ply: ", part}, [&] { write_ply(path, attributes); });
  };
  const std::vector<Vec2f> two{{1, 2}, {3, 4}}, odd{{1, 2}, {3, std::numeric_limits<float>::quiet_NaN()}};
  const std::vector<float> three{1, 2, 3};
  refuses(ErrorCode::kInvalidArgument, "particles need an attribute 'position'", {});
  refuses(ErrorCode::kInvalidArgument, "particles need an attribute 'position'", {{"mass", three}});
  refuses(ErrorCode::kInvalidArgument, "a position is 1 of type float", {{"position", three}});
  refuses(ErrorCode::kInvalidArgument, "attribute 'mass' has 3 values, expected 2, as many as 'position' has",
          {{"position", two}, {"mass", three}});
  refuses(ErrorCode::kInvalidArgument, "an attribute is named 'my mass', expected one word",
          {{"position", two}, {"my mass", two}});
  refuses(ErrorCode::kNumeric,
          "attribute 'position' of particle 1 has the value nan, expected finite numbers",
          {{"position", odd}});
  refuses(ErrorCode::kNumeric, "attribute 'mass' of particle 0 has the value -inf",
          {{"position", two}, {"mass", std::vector<float>{-INFINITY, 1}}});
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(WritePly, LeavesNothingBehindWithoutAFolderOrRoom) {
  const TemporaryFolder folder;
  const std::vector<Vec3f> places(1000, Vec3f(1, 2, 3));
  expect_error(ErrorCode::kIo, {"none/p.ply"}, [&] {
    write_ply(folder / "none/p.ply", {{"position", places}});
  });
  expect_error(ErrorCode::kIo, {"p.ply"}, [&] {
    const FileSizeLimit limit(1000);
    write_ply(folder / "p.ply", {{"position", places}});
  });
  EXPECT_TRUE(names_in(folder.path()).empty());
}

}  // namespace
}  // namespace coppice::output
