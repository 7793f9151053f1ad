// Tractions on colliders: weight by area, drag, the sums of the sides, and columns where a key asks for them.
#include <algorithm>
#include <cmath>
#include <string>

#include "apps/run/stats_columns.h"
#include "apps/run/tractions.h"
#include "tests/apps/mpm_physics_util.h"

namespace coppice::mpm {
namespace {

double value_of(const std::vector<StatsColumn>& columns, const std::string& name) {
  const auto found = std::ranges::find(columns, name, &StatsColumn::name);
  if (found != columns.end()) return found->value;
  ADD_FAILURE() << "no column " << name;
  return NAN;
}

// Means of a scene's columns over its frames from `first` on.
class Means {
 public:
  Means(const std::string& text, int first, int frames) : scene_(parse_physics_scene(text)) {
    const auto solver = wait_start(scene_);
    for (int frame = 1; frame <= frames; ++frame) {
      solver->wait_advance_frame();
      if (frame < first) continue;
      const std::vector<StatsColumn> columns = stats_columns(scene_, solver->wait_stats(), {});
      if (means_.empty()) means_ = columns;
      for (size_t c = 0; c < columns.size(); ++c)
        means_[c].value = (frame == first ? 0 : means_[c].value) + columns[c].value / (frames - first + 1);
    }
  }
  double operator()(const std::string& name) const { return value_of(means_, name); }

 private:
  scene::SceneConfig scene_;
  std::vector<StatsColumn> means_;
};

// A column of jelly that covers the whole top of a box, between walls that let it slide.
std::string column_on(const std::string& collider) {
  return fmt::format(
      "dim = 2\n[domain]\nmax = [0.5, 1]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = 0.08\n[walls]\n"
      "all = \"slip\"\n[[emitter]]\nshape = \"box\"\ncenter = [0.25, 0.605]\nhalf_size = [0.25, 0.2]\n"
      "material = \"jelly\"\njelly = {{ youngs_modulus_Pa = 1e5 }}\n[[collider]]\ntractions = true\n{}",
      collider);
}

TEST(Traction, IsTheWeightByTheAreaThatCarriesIt) {
  const Means box(column_on("shape = \"box\"\ncenter = [0.25, 0.2]\nhalf_size = [0.25, 0.205]\n"), 1, 15);
  const double expected = box("mass_kg") * 9.81 / 0.5;  // by the side's length
  fmt::print("top {:.1f} Pa, weight {:.1f} Pa\n", box("collider0_y_max_normal_Pa"), expected);
  EXPECT_NEAR(box("collider0_y_max_normal_Pa"), expected, 0.02 * expected);
  EXPECT_NEAR(box("collider0_y_max_shear_x_Pa"), 0, 0.02 * expected);
  EXPECT_EQ(box("collider0_y_min_normal_Pa"), 0);
  const Means plane(column_on("shape = \"plane\"\ncenter = [0, 0.405]\nnormal = [0, 1]\n"), 1, 15);
  EXPECT_NEAR(plane("collider0_normal_Pa"), expected, 0.02 * expected);
  EXPECT_NEAR(plane("collider0_shear_x_Pa"), 0, 0.02 * expected);
}

// Jelly is thrown onto the side x_max of a box that is turned by 90 degrees: that side looks up.
TEST(Traction, IsAlongTheBoxsOwnAxes) {
  const std::string text =
      "dim = 2\ngravity = [0, 0]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = 0.1\n[[emitter]]\n"
      "shape = \"box\"\ncenter = [0.5, 0.62]\nhalf_size = [0.1, 0.1]\nvelocity = [0.5, -2]\n"
      "material = \"jelly\"\n[[collider]]\nshape = \"box\"\ncenter = [0.5, 0.3]\nhalf_size = [0.2, 0.3]\n"
      "rotate_deg = 90\nfriction = 0.3\ntractions = true\n";
  const scene::SceneConfig scene = parse_physics_scene(text);
  const auto solver = wait_start(scene);
  solver->wait_advance_frame();
  const FrameStats stats = solver->wait_stats();
  const std::vector<StatsColumn> columns = stats_columns(scene, stats, {});
  const double normal = value_of(columns, "collider0_x_max_normal_Pa"),
               shear = value_of(columns, "collider0_x_max_shear_y_Pa");
  const Vec3d force = stats.colliders[0].force_N;
  // The side is 0.6 m long; its normal is the world's y, and the box's y is the world's -x.
  EXPECT_LT(force.y(), 0);
  EXPECT_NEAR(normal, -force.y() / 0.6, 1e-3 * normal);
  EXPECT_NEAR(shear, -force.x() / 0.6, 1e-3 * normal);
  // Coulomb's friction is the most that drags along; it turns the block, too, whose foot then moves on.
  EXPECT_LT(shear, -0.05 * normal);
  EXPECT_GE(shear, -0.3001 * normal);
}

// All sides together have the whole force, whatever turns; sums do not depend on the threads.
void expect_whole_force(int dim, const std::string& z, const std::string& more) {
  const std::string text = fmt::format(
      "dim = {}\n[grid]\nresolution = 32\n[time]\nframe_dt_s = 0.02\n[[emitter]]\nshape = \"box\"\n"
      "center = [0.5, 0.62{}]\nhalf_size = [0.25, 0.15{}]\nvelocity = [1, -2{}]\nmaterial = \"sand\"\n"
      "[[collider]]\nshape = \"box\"\ncenter = [0.5, 0.3{}]\nhalf_size = [0.15, 0.1{}]\nfriction = 0.4\n"
      "tractions = true\n{}",
      dim, z, dim == 3 ? ", 0.2" : "", dim == 3 ? ", 0" : "", z, dim == 3 ? ", 0.15" : "", more);
  const scene::SceneConfig scene = parse_physics_scene(text);
  const auto one = wait_start(scene, 1), four = wait_start(scene, 4);
  double largest = 0;
  for (int frame = 0; frame < 4; ++frame) {
    one->wait_advance_frame(), four->wait_advance_frame();
    const ColliderForce force = one->wait_stats().colliders[0], same = four->wait_stats().colliders[0];
    Vec3d sum = Vec3d::Zero();
    for (size_t side = 0; side < 6; ++side) {
      sum += force.side_force_N[side];
      EXPECT_EQ(force.side_force_N[side], same.side_force_N[side]);
    }
    largest = std::max(largest, force.force_N.norm());
    // Turning keeps the length; the box turns within a frame by a thousandth of a radian at most.
    EXPECT_NEAR(sum.norm(), force.force_N.norm(), 2e-3 * largest);
  }
  EXPECT_GT(largest, 0);
}

TEST(Traction, OfAllSidesIsTheWholeForce) {
  expect_whole_force(2, "", "rotate_deg = 20\nangular_velocity_rad_s = 0.05\n");
  expect_whole_force(3, ", 0.5", "rotate_deg = [10, 30, 20]\n");
}

TEST(Traction, IsTheSameOnAnEmulatedGpu) {
  const std::string text =
      "[domain]\nmax = [1, 1, 1]\n[grid]\nresolution = 8\n[time]\nframe_dt_s = 0.01\n[[emitter]]\n"
      "shape = \"box\"\ncenter = [0.55, 0.6, 0.5]\nhalf_size = [0.15, 0.15, 0.15]\nvelocity = [0, -4, 0]\n"
      "material = \"jelly\"\n[[collider]]\nshape = \"box\"\ncenter = [0.5, 0.3, 0.5]\n"
      "half_size = [0.3, 0.15, 0.3]\nfriction = 0.3\ntractions = true\n";
  const std::array<ColliderForce, 2> forces = wait_forces_on_cpu_and_simt(text);
  EXPECT_LT(forces[0].side_force_N[3].y(), 0);
  for (size_t side = 0; side < 6; ++side) {
    EXPECT_NEAR((forces[0].side_force_N[side] - forces[1].side_force_N[side]).norm(), 0,
                1e-3 * forces[0].force_N.norm());
  }
}

TEST(Traction, HasColumnsWhereTheKeyIsOn) {
  const auto names = [](int dim, const std::string& collider) {
    const std::string z = dim == 3 ? ", 0.5" : "";
    const scene::SceneConfig scene = parse_physics_scene(
        fmt::format("dim = {}\n[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.5{}]\nradius = 0.1\n"
                    "material = \"sand\"\n[[collider]]\ncenter = [0.5, 0.1{}]\n{}",
                    dim, z, z, collider));
    std::string all;
    for (const StatsColumn& column : stats_columns(scene, {}, {}))
      if (column.name.ends_with("_Pa")) all += column.name + " ";
    return all;
  };
  const std::string box2 = "shape = \"box\"\nhalf_size = [0.1, 0.1]\n",
                    plane = "shape = \"plane\"\nnormal = [0, 1, 0]\n";
  EXPECT_EQ(names(2, box2), "");
  EXPECT_EQ(names(2, box2 + "tractions = true\n"),
            "collider0_x_min_normal_Pa collider0_x_min_shear_y_Pa collider0_x_max_normal_Pa "
            "collider0_x_max_shear_y_Pa collider0_y_min_normal_Pa collider0_y_min_shear_x_Pa "
            "collider0_y_max_normal_Pa collider0_y_max_shear_x_Pa ");
  EXPECT_EQ(names(3, plane + "tractions = true\n"),
            "collider0_normal_Pa collider0_shear_x_Pa collider0_shear_y_Pa collider0_shear_z_Pa ");
  EXPECT_THROW(names(2, "shape = \"sphere\"\nradius = 0.1\ntractions = true\n"), Error);
}

TEST(Traction, KnowsThePartOfAPlaneThatIsInTheDomain) {
  const auto area = [](const std::string& head, const Vec3d& point, const Vec3d& normal) {
    return plane_area_in_domain(
        parse_physics_scene(head + "[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.5" +
                            (head.starts_with("dim = 2") ? "" : ", 0.5") +
                            "]\nradius = 0.1\nmaterial = \"sand\"\n"),
        point, normal.normalized());
  };
  const std::string plane = "dim = 2\n[domain]\nmax = [2, 1]\n",
                    space = "dim = 3\n[domain]\nmax = [2, 1, 3]\n";
  EXPECT_NEAR(area(plane, {9, 0.25, 0}, {0, 1, 0}), 2, 1e-12);
  EXPECT_NEAR(area(plane, {0.5, 0.5, 0}, {1, -1, 0}), std::sqrt(2.0), 1e-12);
  EXPECT_EQ(area(plane, {0, -0.1, 0}, {0, 1, 0}), 0);
  EXPECT_NEAR(area(space, {0, 0.5, 0}, {0, -1, 0}), 6, 1e-12);
  EXPECT_NEAR(area(space, {0, 0, 0}, {1, -1, 0}), 3 * std::sqrt(2.0), 1e-12);
  // The triangle of a corner that is cut off.
  EXPECT_NEAR(area(space, {0.3, 0, 0}, {1, 1, 1}), 0.5 * std::sqrt(3.0) / 2 * 0.3 * 0.6, 1e-12);
}

}  // namespace
}  // namespace coppice::mpm
