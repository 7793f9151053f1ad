#!/usr/bin/env python3
"""The window goes on drawing while a step takes a second on all cores.

    slow_window_test.py PROGRAM PLUGIN [PICTURES]

PROGRAM is slow_program. Prints how many pictures a second there were; a busy machine has fewer, so that only one that waits
for steps fails.
"""
import subprocess
import sys
import time

from window_session_test import PATIENCE_S, Session, check, on_a_display

SECONDS = 6


def draws_beside_a_step(s):
    s.wait_until("a step", lambda p: int(p["state"].get("steps", 0)) > 0)
    s.picture("slow")
    s.do("mousemove", 560, 640, "mousedown", 1)
    # One process that moves the mouse, for each new one would take a third of a frame's time.
    way = "\n".join(f"mousemove_relative -- {4 if i // 60 % 2 else -4} 0\nsleep 0.016" for i in range(60 * SECONDS))
    hand = subprocess.Popen(["xdotool", "-"], stdin=subprocess.PIPE, env=s.environment, text=True)
    before, begin, longest = s.published(), time.monotonic(), 0.0
    hand.stdin.write(way + "\n")
    hand.stdin.close()
    frame, last = before["frame"], begin
    while hand.poll() is None:
        time.sleep(0.004)
        now = s.published()["frame"]
        if now != frame:
            longest, last, frame = max(longest, time.monotonic() - last), time.monotonic(), now
    s.do("mouseup", 1)
    seconds = time.monotonic() - begin
    frames, steps = frame - before["frame"], int(s.published()["state"]["steps"]) - int(before["state"]["steps"])
    print(f"{frames / seconds:.1f} frames a second, at most {longest * 1e3:.0f} ms apart, beside {steps} steps in {seconds:.1f} s")
    check( frames > 4 * steps, f"{frames} frames, {steps} steps")
    s.do("key", "Escape")
    check(s.process.wait(timeout=PATIENCE_S) == 0, "it ends well")


def main(program, plugin, pictures=None):
    return on_a_display(plugin, lambda display, folder: draws_beside_a_step(
        Session([program, "--view", "window"], display, folder, pictures)))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
