// Films of the window: pictures at a fixed rate, whatever the window drew.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "apps/output/output_folder.h"
#include "apps/render/image.h"
#include "apps/viewer/film.h"
#include "apps/viewer/run_viewer.h"
#include "core/error.h"
#include "tests/apps/geometry_test_files.h"
#include "tests/apps/still_simulation.h"

namespace coppice::viewer {
namespace {

// Two pixels wide, two high: the lower row has the number, the upper one twice of it.
std::vector<uint8_t> picture(uint8_t number) {
  const uint8_t n = number, m = static_cast<uint8_t>(2 * number);
  return {n, 0, 0, 0, n, 0, 0, 0, m, 0, 0, 0, m, 0, 0, 0};
}

std::vector<int> written(const std::string& folder) {
  std::vector<int> all;
  for (int64_t i = 0; std::filesystem::exists(frame_png_path(folder, i)); ++i) {
    const render::Image image = render::read_png(frame_png_path(folder, i));
    EXPECT_EQ(image.width(), 2);
    EXPECT_EQ(image.pixel(0, 0)[0], 2 * image.pixel(0, 1)[0]) << "rows are from the bottom";
    EXPECT_EQ(image.pixel(0, 0)[3], 255);
    all.push_back(image.pixel(0, 1)[0]);
  }
  return all;
}

TEST(Films, APictureIsSeenUntilTheNextOne) {
  TemporaryFolder folder;
  const std::string film = folder / "film";
  {
    FilmWriter writer(film);
    for (const auto& [frame, number] :
         std::vector<std::pair<double, uint8_t>>{{1.5, 10}, {2, 20}, {2.9, 30}, {6.5, 40}, {7, 50}})
      writer.add(frame / Film::kFps, picture(number), 2, 2);
    EXPECT_FALSE(writer.is_due(7.9 / Film::kFps));
    EXPECT_TRUE(writer.is_due(8.1 / Film::kFps));
  }
  // The one at 2.9 came while 2 was there already.
  EXPECT_EQ(written(film), (std::vector<int>{10, 10, 20, 20, 20, 20, 40, 50}));
}

TEST(Films, NothingIsWrittenBehindTheEnd) {
  TemporaryFolder folder;
  const std::string film = folder / "film";
  {
    FilmWriter writer(film);
    writer.add(0, picture(1), 2, 2);
    writer.end();
    writer.add(1, picture(2), 2, 2);
  }
  EXPECT_EQ(written(film), (std::vector<int>{1}));
}

// Whoever adds is not held up for ever by a film that cannot be written.
TEST(Films, AnErrorEndsIt) {
  TemporaryFolder folder;
  const std::string film = folder / "film";
  {
    FilmWriter writer(film);
    std::filesystem::remove(film);
    write_text(film, "in the way");
    for (int i = 0; i < 100; ++i) writer.add(i, picture(1), 2, 2);
  }
  EXPECT_EQ(read_text(film), "in the way");
  EXPECT_THROW(FilmWriter(folder / "film"), Error);
}

// Asks for pictures once, as a window does.
class Photographer final : public ViewerBackend {
 public:
  bool wants_snapshot() const override { return false; }
  void show(std::shared_ptr<const Snapshot>) override {}
  bool poll(Session& session) override {
    picture = session.write_screenshot(Snapshot(), render::Camera(), ViewOptions(), 8, 8);
    for (Film*& film : films) film = session.begin_film(why);
    return false;
  }
  void wake() override {}

  std::string picture, why;
  std::array<Film*, 2> films{};
};

// Seen to fail: nobody asked whose the folder is.
TEST(Films, AndScreenshotsKeepOutOfAFolderThatIsAnothersNow) {
  TemporaryFolder folder;
  OutputFolder other(folder / "out", false);
  other.prepare();
  ViewerRun run;
  run.make = [] { return std::make_unique<StillSimulation>(); };
  run.screenshot_folder = folder / "out";
  Photographer backend;
  run_viewer(run, backend, false);
  EXPECT_NE(backend.picture.find("no picture: "), std::string::npos) << backend.picture;
  EXPECT_NE(backend.picture.find("another run is writing into this folder"), std::string::npos)
      << backend.picture;
  for (const Film* film : backend.films) EXPECT_NE(film, nullptr) << backend.why;
  EXPECT_EQ(names_in(folder / "out"), (std::vector<std::string>{"film_0000", "film_0001"}));
}

// Seen to fail: the first picture took the journal's place.
TEST(Journals, AreNoPictureOfTheirOwnRun) {
  TemporaryFolder folder;
  ViewerRun run;
  run.make = [] { return std::make_unique<StillSimulation>(); };
  run.screenshot_folder = folder.path();
  run.journal = folder / "frame_0000.png";
  Photographer backend;
  expect_error(ErrorCode::kUsage, {"--journal " + run.journal.string(), folder.path()},
               [&] { run_viewer(run, backend, false); });
  EXPECT_TRUE(names_in(folder.path()).empty());
}

}  // namespace
}  // namespace coppice::viewer
