// Particle files: what is written comes back, in the layout promised, whole or not at all.
#include <fmt/format.h>

#include <cstring>

#include "apps/geometry/mesh.h"
#include "apps/output/particle_ply.h"
#include "tests/apps/geometry_test_files.h"
#include "tests/apps/output_file_size_limit.h"

namespace coppice {
namespace {

struct Particles {
  explicit Particles(int n) : position(3 * n), stress(9 * n), material(n), id(n) {
    for (int i = 0; i < 3 * n; ++i) position[i] = 0.1f * static_cast<float>(i);
    for (int i = 0; i < 9 * n; ++i) stress[i] = -static_cast<float>(i) / 3;
    for (int i = 0; i < n; ++i) material[i] = static_cast<uint8_t>(250 + i);
    for (int i = 0; i < n; ++i) id[i] = i - 1000000;
  }
  std::vector<PlyAttribute> attributes() const {
    return {{"position", PlyType::kFloat32, 3, position.data()},
            {"material", PlyType::kUint8, 1, material.data()},
            {"stress", PlyType::kFloat32, 9, stress.data()},
            {"id", PlyType::kInt32, 1, id.data()}};
  }
  std::vector<float> position, stress;
  std::vector<uint8_t> material;
  std::vector<int32_t> id;
};

template <class T>
void expect_column(const ParticleTable& table, const std::string& name, int components,
                   const std::vector<T>& values) {
  const ParticleColumn* column = table.find(name);
  ASSERT_NE(column, nullptr) << name;
  EXPECT_EQ(column->components, components);
  ASSERT_EQ(column->bytes.size(), values.size() * sizeof(T)) << name;
  if (values.empty()) return;  // memcmp takes no null pointer, not even for no bytes
  EXPECT_EQ(std::memcmp(column->bytes.data(), values.data(), column->bytes.size()), 0) << name;
}

TEST(ParticlePly, ComesBackAsItWasWritten) {
  const TemporaryFolder folder;
  const std::string path = folder / "p.ply";
  // The last one is longer than the writer's buffer of a mebibyte.
  for (const int n : {0, 1, 5, 40000}) {
    const Particles particles(n);
    write_particles_ply(path, particles.attributes(), n);
    EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"p.ply"});
    const ParticleTable table = read_particles_ply(path);
    EXPECT_EQ(table.n_particles, n);
    ASSERT_EQ(table.columns.size(), 4u);
    expect_column(table, "position", 3, particles.position);
    expect_column(table, "material", 1, particles.material);
    expect_column(table, "stress", 9, particles.stress);
    expect_column(table, "id", 1, particles.id);
    EXPECT_EQ(table.floats("stress").size(), 9u * n);
  }
}

TEST(ParticlePly, HasTheHeaderThatViewersExpect) {
  const TemporaryFolder folder;
  const Particles particles(2);
  const std::vector<PlyAttribute> all = particles.attributes();
  write_particles_ply(folder / "p.ply", std::vector<PlyAttribute>{all[0], all[1]}, 2);
  const std::string text = read_text(folder / "p.ply");
  const std::string header =
      "ply\nformat binary_little_endian 1.0\ncomment written by coppice\ncomment attribute position 3\n"
      "comment attribute material 1\nelement vertex 2\nproperty float x\nproperty float y\nproperty float z\n"
      "property uchar material\nend_header\n";
  ASSERT_EQ(text.substr(0, header.size()), header);
  ASSERT_EQ(text.size(), header.size() + 2 * 13);
  EXPECT_EQ(static_cast<uint8_t>(text.back()), 251);
}

TEST(ParticlePly, TakesStridedDataAndFlatPositions) {
  struct Row {
    float x, y;
    int32_t id;
  };
  const std::vector<Row> rows{{1, 2, 7}, {3, 4, 8}};
  const std::vector<float> by_component{10, 11, 20, 21};  // component 0 of both, then component 1
  const std::vector<PlyAttribute> attributes{
      {"position", PlyType::kFloat32, 2, &rows[0].x, sizeof(Row)},
      {"id", PlyType::kInt32, 1, &rows[0].id, sizeof(Row)},
      {"velocity", PlyType::kFloat32, 2, by_component.data(), sizeof(float), 2 * sizeof(float)}};
  const TemporaryFolder folder;
  write_particles_ply(folder / "p.ply", attributes, 2);
  const ParticleTable table = read_particles_ply(folder / "p.ply");
  expect_column(table, "position", 3, std::vector<float>{1, 2, 0, 3, 4, 0});
  expect_column(table, "id", 1, std::vector<int32_t>{7, 8});
  expect_column(table, "velocity", 2, std::vector<float>{10, 20, 11, 21});
}

TEST(ParticlePly, ReadsFilesOfOthers) {
  const TemporaryFolder folder;
  std::string text =
      "ply\nformat binary_little_endian 1.0\nelement vertex 1\nproperty uchar red\nproperty float32 x\n"
      "property float32 y\nproperty float32 z\nend_header\n";
  const float position[3] = {1, 2, 3};
  text.push_back('\x07');
  text.append(reinterpret_cast<const char*>(position), sizeof(position));
  write_text(folder / "p.ply", text);
  const ParticleTable table = read_particles_ply(folder / "p.ply");
  ASSERT_EQ(table.columns.size(), 2u);
  expect_column(table, "red", 1, std::vector<uint8_t>{7});
  expect_column(table, "position", 3, std::vector<float>{1, 2, 3});
}

TEST(ParticlePly, RefusesWhatItCannotRead) {
  const TemporaryFolder folder;
  const std::string path = folder / "p.ply";
  expect_error(ErrorCode::kNotFound, {"p.ply", "no such particle file"}, [&] { read_particles_ply(path); });
  const Particles particles(3);
  write_particles_ply(path, particles.attributes(), 3);
  const std::string whole = read_text(path);
  for (const std::string& damaged : {whole.substr(0, whole.size() - 1), whole + "x"}) {
    write_text(path, damaged);
    expect_error(ErrorCode::kDataLoss, {"p.ply", "bytes of particles, expected 3 rows of 53 bytes"},
                 [&] { read_particles_ply(path); });
  }
  const auto refuses = [&](const std::string& text, const std::string& part) {
    write_text(path, text);
    expect_error(ErrorCode::kInvalidArgument, {"p.ply", part}, [&] { read_particles_ply(path); });
  };
  refuses("ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nend_header\n1\n",
          "binary_little_endian");
  const std::string start = "ply\nformat binary_little_endian 1.0\nelement ";
  refuses(start + "face 0\nproperty int x\nend_header\n", "the one element 'vertex'");
  refuses(start + "vertex 0\nproperty double x\nend_header\n",
          "property 'x' is none of float, uchar and int");
  write_particles_ply(path, particles.attributes(), 3);
  const ParticleTable table = read_particles_ply(path);
  expect_error(ErrorCode::kNotFound, {"no attribute 'mass'"}, [&] { table.floats("mass"); });
  expect_error(ErrorCode::kInvalidArgument, {"'id' is not of type float"}, [&] { table.floats("id"); });
}

TEST(ParticlePly, LeavesNothingBehindWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  const std::string path = folder / "p.ply";
  const Particles few(3), many(20000);
  write_particles_ply(path, few.attributes(), 3);
  const std::string before = read_text(path);
  expect_error(ErrorCode::kIo, {"p.ply"}, [&] {
    const FileSizeLimit limit(100000);
    write_particles_ply(path, many.attributes(), 20000);
  });
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"p.ply"});
  EXPECT_EQ(read_text(path), before);
  expect_error(ErrorCode::kIo, {"none/p.ply"},
               [&] { write_particles_ply(folder / "none/p.ply", few.attributes(), 3); });
}

TEST(ParticlePly, RefusesWhatAFileCannotHave) {
  const TemporaryFolder folder;
  const std::string path = folder / "p.ply";
  const Particles particles(1);
  const auto refuses = [&](std::vector<PlyAttribute> attributes, const std::string& part,
                           const std::string& of = {}) {
    expect_error(ErrorCode::kInvalidArgument, {"p.ply: ", part},
                 [&] { write_particles_ply(path, attributes, 1, of); });
  };
  const std::vector<PlyAttribute> all = particles.attributes();
  const float* f = particles.stress.data();
  refuses({}, "particles need an attribute 'position'");
  refuses({all[1]}, "particles need an attribute 'position'");
  refuses({{"position", PlyType::kFloat32, 1, f}}, "a position is 1 of type float, expected 2 or 3 of type");
  refuses({{"position", PlyType::kInt32, 3, f}}, "a position is 3 of type int");
  for (const char* name : {"", "two words", "a\nb"})
    refuses({all[0], {name, PlyType::kFloat32, 1, f}}, "expected one word");
  refuses({all[0], all[1], all[1]},
          "attribute 'material' has the property 'material', which another one has");
  refuses({all[0], {"y", PlyType::kFloat32, 1, f}}, "attribute 'y' has the property 'y'");
  refuses({all[0], {"v_1", PlyType::kFloat32, 1, f}, {"v", PlyType::kFloat32, 2, f}},
          "attribute 'v' has the property 'v_1'");
  refuses(all, "has several lines", "one\ntwo");
  EXPECT_TRUE(names_in(folder.path()).empty());
}

}  // namespace
}  // namespace coppice
