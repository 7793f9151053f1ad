#!/usr/bin/env python3
"""Films the viewer's window, for the moving picture of README.

    film_window.py OUT.gif SECONDS COMMAND...      COMMAND opens a window: build/release/bin/coppice view snow_3d

Starts the command on a display of its own, turns the camera with the mouse, pushes what is there, and has ffmpeg make a film of what the screen
shows. Needs Xvfb and xdotool, too. Not part of the tests.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from window_session_test import Display

RATE = 10  # pictures per second
WIDTH = 720  # of the film, pixels


def has_begun(state):
    try:
        with open(state, encoding="utf-8") as file:
            return int(json.load(file)["state"].get("steps", 0)) > 100
    except (OSError, ValueError):
        return False


def main(out, seconds, *command):
    with tempfile.TemporaryDirectory() as folder:
        display = Display(folder)
        state = os.path.join(folder, "state.json")
        environment = dict(os.environ, DISPLAY=display.name, COPPICE_VIEW_TEST=state)
        window = subprocess.Popen(command, env=environment)

        def do(*arguments):
            subprocess.run(["xdotool", *map(str, arguments)], env=environment, check=True)

        try:
            while not has_begun(state):
                time.sleep(0.1)
                if window.poll() is not None:
                    sys.exit(f"the command has ended with exit code {window.returncode}")
            for act in [("mousemove", 862, 20), ("mousedown", 1), ("mouseup", 1)]:  # folds the parameters
                do(*act)
                time.sleep(0.3)
            n, begin, seconds = 0, time.monotonic(), float(seconds)
            for action, way in [(["mousemove", 500, 640, "mousedown", 1], (5, 0)),
                                (["mouseup", 1, "key", "u", "mousemove", 420, 620, "mousedown", 1], (16, -5))]:
                do(*action)
                end = time.monotonic() + seconds / 2
                while time.monotonic() < end:
                    shutil.copy(os.path.join(folder, "Xvfb_screen0"), os.path.join(folder, f"picture_{n:04}.xwd"))
                    n += 1
                    do("mousemove_relative", "--", *way)
                    time.sleep(max(0.0, begin + n / RATE - time.monotonic()))
            do("mouseup", 1)
            subprocess.run(["ffmpeg", "-v", "error", "-y", "-framerate", str(RATE), "-i", os.path.join(folder, "picture_%04d.xwd"), "-vf",
                            f"crop=1280:800:0:0,scale={WIDTH}:-1:flags=area,split[a][b];[a]palettegen=max_colors=64[p];"
                            "[b][p]paletteuse=dither=none:diff_mode=rectangle", out], check=True)
        finally:
            window.terminate()
            window.wait()
            display.stop()


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__.strip())
    main(*sys.argv[1:])
