// Progress of a run: one line that redraws itself on a terminal, plain lines elsewhere.
//
//     frame  12/120 [###-------------]  10%  3.2 frames/s  ETA 0:34  1.2 M particles          (terminal)
//     frame 12/120 (10%), 3.2 frames/s, ETA 0:34, 1.2 M particles                            (log file)
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

namespace coppice {

// The progress is drawn on this stream, and timed by this clock: tests bring their own.
struct ProgressOutput {
  std::ostream* stream = nullptr;
  bool is_terminal = false;
  std::function<int()> width;     // columns; asked at each drawing, because windows are resized
  std::function<double()> now_s;  // monotonic
};

// stderr, with its width and whether it is a terminal (and TERM is not "dumb"), and the steady clock.
ProgressOutput stderr_progress_output();

// Not thread-safe: the thread that runs the frames calls it.
class Progress {
 public:
  static constexpr double kTerminalInterval_s = 0.1;  // redraws are no closer than this
  static constexpr double kPlainInterval_s = 2.0;     // lines are no closer than this, but for the last

  Progress(int64_t n_frames, ProgressOutput output);
  ~Progress();  // ends the terminal's line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` frames are finished. `detail` is shown at the end of the line.
  void update(int64_t done, std::string_view detail = {});
  // Ends the line with what was reached, drawn even when the last update was too close to be.
  void finish();
  // Takes the bar off the terminal, so that another line can be printed; the next update draws it anew.
  void clear_line();

 private:
  void draw();
  std::string terminal_line() const;
  std::string plain_line() const;
  std::string rate_text() const;
  std::string eta_text() const;

  int64_t n_frames_;
  ProgressOutput output_;
  int64_t done_ = 0;
  int64_t drawn_ = -1;  // `done_` of the last drawing
  std::string detail_;
  double last_frame_s_;
  double last_draw_s_ = -1e300;
  double s_per_frame_ = 0;  // moving average; 0 until the first frame
  bool is_line_open_ = false;
};

// "0:07", "12:34", "1:02:03"; "?" when not finite or negative.
std::string duration_text(double seconds);

}  // namespace coppice
