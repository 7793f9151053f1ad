// These are the panels of the window, and what they share. All of it is drawn between
// GlfwWindow::begin_ui() and end_ui().
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/viewer/backend.h"
#include "apps/viewer/camera_control.h"
#include "apps/viewer/window/widget_log.h"

namespace coppice::viewer {

// A point had these values at the moment when it was clicked.
struct PickedPoint {
  std::string set, attribute, unit;
  Picked where;
  uint64_t steps = 0;
  Vec3f position = Vec3f::Zero();
  float value = 0, radius_m = 0;
  bool is_categorical = false;
};

// One of these views of the simulation's own work is shown at a time.
enum class Instrument { kNone, kTime, kMemory, kGraph, kLog };

// The tool says what a drag with the left button does.
enum class Tool { kLook, kEmit, kPush, kCut };
bool offers(const Hands& hands, Tool tool);

// These are the choices for the mouse as a hand.
struct HandChoice {
  Tool tool = Tool::kLook, last = Tool::kPush;  // last: of those that are not looking
  size_t material_number = 0;                   // of Hands::materials
  float radius_m = 0, speed_m_s = 0;            // 0: nothing yet
  Vec3f velocity_m_s = Vec3f::Zero();           // of what is emitted

  // Choosing the same tool again goes back to looking.
  void choose(Tool wanted);
  // Returns the tool of a drag: while looking, with Ctrl, it is the last tool.
  Tool tool_for(bool has_control, const Hands& hands) const;
  // Chooses what was not chosen yet, and keeps the radius within what suits the domain.
  void begin(const Hands& hands, const Aabb3f& domain);
  std::string material(const Hands& hands) const;
};

struct Ui;

// This panel shows what the program logs, and what the window has to say.
class LogPanel {
 public:
  void draw(Ui& ui);
  // Takes the window's own notices and errors, when they are new.
  void keep(Ui& ui);

 private:
  void take(Ui& ui);
  bool passes(const LogLine& line) const;

  std::vector<std::shared_ptr<const LogLine>> lines_;
  uint64_t last_ = 0;  // number
  int least_ = static_cast<int>(LogLevel::kInfo);
  char filter_[128] = {};
  std::string notice_, picture_error_;
};

struct Ui {
  Session& session;
  SimulationStatus status;
  Reports reports;
  std::vector<Parameter> parameters;
  std::shared_ptr<const Snapshot> shown;
  std::vector<ShownRange> ranges, volume_ranges;  // of the shown point sets and volumes, once they were drawn
  CameraControl camera;
  std::vector<render::CameraKey> camera_keys;  // that were put down so far
  bool follows_path = false;                   // the camera goes through keyframes until a hand leads it
  ViewOptions view;
  HandChoice hand;
  WidgetLog widgets;
  std::optional<PickedPoint> picked;
  std::string notice;               // what the window itself has to say
  std::string picture_error;        // why there is no picture
  std::string copied;               // last, into the clipboard
  std::optional<bool> wants_pause;  // posted, and not looked at yet
  uint64_t pause_number = 0;        // of that one
  uint64_t posted = 0;              // commands
  std::optional<double> edited_pace;
  Instrument instrument = Instrument::kNone;
  bool sees_instrument = false;  // in this frame
  Watch watched;                 // posted last
  LogPanel log;
  size_t graph = 0;  // that is shown
  bool has_panels = true, is_frozen = false;
  bool wants_stills = true;     // pictures in the quality of files, at rest
  uint64_t restart_number = 0;  // of the command that changed a parameter which acts after a reset
  float scale = 1;
  int slice_axis = 2;  // that [ and ] move

  // Keyframes that were put down go before the scene's.
  bool has_path() const { return !camera_keys.empty() || session.has_camera_path(); }
  // Shows points alone, or beside what is shown already.
  void show_points(bool alone);
  // Shows volumes in this mode. If it is to be alone, and is so already, this is show_own_volumes(), if
  // they have styles of their own.
  void show_volumes(render::VolumeMode mode, bool alone);
  void show_own_volumes();  // each as the simulation has it
  void show_slice(int axis, bool is_shown);
  void toggle_trees();
  // Makes it the only slice; or shows it beside the others if it was not shown, and else hides it.
  void choose_slice(int axis, bool beside);
  void move_slice(int axis, float cells);
  bool post(Command command);  // false: there were too many, which is said
  bool is_paused() const;
  void toggle_pause();
  void step();
  void reset();
  void copy(const std::string& what, const std::string& text);
  // Goes to this frame of a recorded run, or the nearest that there is. Returns false where nothing is
  // played, or there were too many commands.
  bool go_to_frame(int64_t frame);
};

// This bar shows where a recorded run stands, while it is played; `low`, `high`: the room that it may
// take.
class TimelinePanel {
 public:
  // Returns its height.
  float draw(Ui& ui, const Vec2f& low, const Vec2f& high);

 private:
  std::optional<int64_t> dragged_, posted_;  // frames
  uint64_t number_ = 0;                      // of the command that was posted
};

// Keeps a parameter while somebody changes it, and until the simulation has taken it.
class ParameterPanel {
 public:
  void draw(Ui& ui);

 private:
  struct Value {
    std::vector<double> numbers;
    std::string text;  // TOML
  };
  struct Posted {
    Value value;
    std::string before, notice;  // the parameter's value and the status's notice then
    double time_s = 0;
  };
  void draw_row(Ui& ui, const Parameter& p);
  // Returns whether the value is to be posted now.
  bool draw_widget(const Parameter& p, Value& value);
  bool draw_numbers(const Parameter& p, Value& value);
  bool draw_text(const Parameter& p, Value& value);
  void draw_tooltip(const Parameter& p) const;

  std::string edited_;  // path
  Value edit_;
  char buffer_[512] = {};
  std::map<std::string, Posted> posted_;
};

// Sets when the simulation is to pause: numbers that are typed here stay while a breakpoint is off.
class BreakpointPanel {
 public:
  void draw(Ui& ui);

 private:
  bool draw_row(Ui& ui, const char* name, bool& is_on, const char* tip);
  // Returns the breakpoints that the simulation has, or was told and has not looked at yet.
  SetBreakpoints wanted(const Ui& ui);

  double time_s_ = 1, max_speed_m_s_ = 100;
  uint64_t step_ = 1000;
  std::optional<SetBreakpoints> posted_;
  uint64_t number_ = 0;  // of what was posted
};

void draw_status(Ui& ui);
// Draws messages over the picture between `low` and `high`, so that nothing that one may click on moves
// when they come and go.
void draw_messages(Ui& ui, const Vec2f& low, const Vec2f& high);
// Draws a button for each instrument, which opens it, or closes it again.
void draw_instrument_switches(Ui& ui);
// Has the simulation measure what the open instrument shows, and nothing while the instrument is not
// seen: hidden, folded or iconified.
void post_watch(Ui& ui);
// Draws the open instrument between the other panels. `low`, `high`: the room that it may take, in the
// screen's units; `is_new`: it was opened since the last frame.
void draw_instrument(Ui& ui, const Vec2f& low, const Vec2f& high, bool is_new);
void draw_time(Ui& ui);
void draw_memory(Ui& ui);
void draw_graphs(Ui& ui);
void draw_log(Ui& ui);
void draw_hand(Ui& ui);  // nothing where the simulation offers none
void draw_readings(Ui& ui);
void draw_picked(Ui& ui);
void draw_cells(Ui& ui);
void draw_view(Ui& ui);
// Draws a round length at the depth of the pivot, in the lower left corner of the room that panels leave
// free.
void draw_scale(Ui& ui, const Vec2f& low, const Vec2f& high);
void draw_volumes(Ui& ui);  // how they are drawn, and where slices are
void draw_trees(Ui& ui);    // what is shown of the tree, when it is
// Draws a bar with ticks; `what` stands below it.
void draw_color_bar(render::ColorMap map, const render::ScalarRange& range, bool is_logarithmic,
                    const std::string& what);
// Draws what is shown of a set's or a volume's values, by its color_key(), and widgets for what can be
// chosen of it. `is_given`: the simulation gives a range; `is_given_logarithmic`: it shows them on a
// logarithmic scale.
void draw_colors(Ui& ui, const std::string& key, const ShownRange& shown, bool is_given,
                 bool is_given_logarithmic);

}  // namespace coppice::viewer
