#!/usr/bin/env python3
"""Plays an earlier run in the window of `coppice view`, with mouse and keys through XTEST on a display of its own.

    play_window_test.py COPPICE PLUGIN [PICTURES]

Seen to fail: when ',' went forward, and when a keyframe did not take the place of the one of its time; with switches of trees and volumes that
are not there; with the numbers of what was read instead of the frame's; with a camera that stood still between keyframes.
"""
import os
import subprocess
import sys

from window_session_test import ENVIRONMENT, Session, check, on_a_display

SCENE = """dim = 3
[grid]
resolution = 16
[time]
frames = 12
fps = 100
[output]
vdb = false
png = false
[[emitter]]
shape = "sphere"
center = [0.5, 0.5, 0.5]
radius = 0.12
material = "snow"
"""


def goes_anywhere(s):
    s.wait_until("the first frame", lambda p: p["state"].get("frame") == "0")
    s.wait_until("the frame's number", lambda p: p["state"].get("frame row") == "0 of 12")
    widgets = s.wait_until("the panel", lambda p: "points" in p["widgets"])["widgets"]
    check("tree" not in widgets and "volumes" not in widgets, "what is played has particles alone")
    s.do("key", "b")
    s.wait_until("why there is no tree", lambda p: p["state"].get("notice") == "there is no tree to show")
    s.settle()  # panels have their size then
    s.picture("played")
    # By the bar, which is dragged to its end and let go there.
    s.do("mousemove", *s.middle("timeline", 0.02))
    s.settle()
    s.do("mousedown", 1)
    for x in [0.1, 0.3, 0.5, 0.7, 0.9, 1.0]:
        s.do("mousemove", *s.middle("timeline", x))
        s.settle()
    s.picture("dragged")
    s.do("mouseup", 1)
    state = s.wait_until("the last frame", lambda p: p["state"].get("frame") == "12")["state"]
    check(state["run"] == "paused" and state["steps"] == "0" and state["frame row"] == "12 of 12", state)
    # By keys: back, and forward beyond the end, where it begins anew.
    s.do("key", "comma")
    s.wait_until("a frame back", lambda p: p["state"].get("frame") == "11")
    s.do("key", "period")
    s.wait_until("the last one", lambda p: p["state"].get("frame") == "12")
    s.do("key", "period")
    s.wait_until("the first one", lambda p: p["state"].get("frame") == "0")
    s.do("key", "comma")
    s.settle()
    check(s.published()["state"]["frame"] == "0", "there is none before the first")


def turns(s):
    s.do("mousemove", 640, 500)
    s.settle()  # the panel that the mouse was over has the buttons until then
    s.do("mousedown", 1)
    s.settle()
    s.do("mousemove_relative", 80, 0)
    s.settle()
    s.do("mouseup", 1)
    s.settle()


def keyframes_are_put_down(s):
    s.click("add keyframe")
    s.do("key", "period")
    s.wait_until("another frame", lambda p: p["state"].get("frame") == "1")
    turns(s)
    s.click("add keyframe")
    s.click("add keyframe")  # of the same time: in its place
    s.click("copy keyframes")
    state = s.wait_until("keyframes in the clipboard", lambda p: "keyframe" in p["state"].get("copied", ""))["state"]
    check(state["copied"].count("[[output.camera.keyframe]]") == 2 and "time = 0.01\n" in state["copied"], state["copied"])
    s.picture("keyframes")
    return state["copied"]


def camera_of(s):
    return [float(x) for x in s.published()["state"]["camera"].split()]


def follows_keyframes(s):
    """The scene has those that were put down: the camera is where they have it, until a hand leads it."""
    s.wait_until("the camera is led", lambda p: p["state"].get("camera is led by") == "keyframes" and p["state"].get("frame") == "0")
    s.settle()
    first = camera_of(s)
    s.do("key", "period")
    s.wait_until("another frame", lambda p: p["state"].get("frame") == "1")
    s.settle()
    second = camera_of(s)
    check(max(abs(a - b) for a, b in zip(first, second)) > 0.05, f"it turns: {first} {second}")
    s.picture("followed")
    turns(s)
    s.wait_until("a hand leads it", lambda p: p["state"].get("camera is led by") == "hand")
    third = camera_of(s)
    s.do("key", "comma")
    s.wait_until("a frame back", lambda p: p["state"].get("frame") == "0")
    s.settle()
    check(camera_of(s) == third, "and keyframes do not")
    s.click("follow keyframes", 0.1)
    s.wait_until("keyframes lead it again", lambda p: p["state"].get("camera is led by") == "keyframes"
                 and [float(x) for x in p["state"]["camera"].split()] == first)
    s.picture("followed again")
    s.do("key", "Escape")
    check(s.process.wait(timeout=60) == 0, "it ends well")


def plays(s):
    s.do("key", "space")
    s.wait_until("frames pass", lambda p: int(p["state"]["steps"]) > 30)  # more than twice through
    s.do("key", "Escape")
    check(s.process.wait(timeout=60) == 0, "it ends well")


def main(program, plugin, pictures=None):
    def test(display, folder):
        scene, out = os.path.join(folder, "played.toml"), os.path.join(folder, "out")
        with open(scene, "w", encoding="utf-8") as file:
            file.write(SCENE)
        subprocess.run([program, "run", scene, "-o", out], env=ENVIRONMENT, check=True)
        session = Session([program, "view", scene, "--play", out, "--paused"], display, folder, pictures=pictures)
        goes_anywhere(session)
        keys = keyframes_are_put_down(session)
        plays(session)
        # The scene takes them as they were copied.
        with open(scene, "a", encoding="utf-8") as file:
            file.write(keys)
        subprocess.run([program, "view", scene, "--play", out, "--view", "null"], env=ENVIRONMENT, check=True)
        os.remove(session.state_file)
        follows_keyframes(Session([program, "view", scene, "--play", out, "--paused"], display, folder, pictures=pictures))

    return on_a_display(plugin, test)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
