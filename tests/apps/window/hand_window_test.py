#!/usr/bin/env python3
"""Pushes, cuts and emits with the mouse in the window of a real simulation, and does it again from the journal.

    hand_window_test.py COPPICE PLUGIN [PICTURES]

Particles and speeds are those that the window publishes. Skipped where Xvfb, xdotool, the plugin or OpenGL is missing.
"""
import os
import subprocess
import sys

from window_session_test import ENVIRONMENT, PATIENCE_S, Session, check, on_a_display

SCENE = """
dim = 3
gravity = [0.0, 0.0, 0.0]
[grid]
resolution = 24
[output]
color = "speed"
[[emitter]]
shape = "sphere"
center = [0.5, 0.5, 0.5]
radius = 0.2
material = "snow"
"""


def particles(p):
    return int(float(p["state"].get("reading:particles", "-1")))


def speed(p):
    return float(p["state"].get("reading:largest speed", "nan"))


def drag(s, middle, way):
    """From the middle of the picture, where the ball is."""
    s.do("mousemove", *middle)
    s.settle()
    s.do("mousedown", 1)
    s.settle()
    for x, y in way:
        s.do("mousemove", middle[0] + x, middle[1] + y)
        s.settle()
    s.do("mouseup", 1)
    s.settle()


def hand_works(s):
    first = particles(s.wait_until("the paused scene", lambda p: p["state"].get("run") == "paused" and particles(p) > 0))
    # At rest it is drawn as files have it, until something happens.
    s.wait_until("a still picture", lambda p: p["state"].get("still") == "shown")
    s.picture("still")
    box = s.published()["widgets"]["window"]
    middle = int((box[0] + box[2]) / 2), int((box[1] + box[3]) / 2)
    s.do("mousemove", *middle)
    s.do("key", "u")
    place = s.wait_until("the ring", lambda p: "ring" in p["widgets"] and "hand at" in p["state"])["state"]["hand at"]
    away = sum((float(x) - 0.5) ** 2 for x in place.split()) ** 0.5
    check(0.15 < away < 0.22, f"the ring is on the ball: {place}")
    check(speed(s.published()) == 0, "nothing moves")
    drag(s, middle, [(20, 0), (40, 0)])
    pushed = s.wait_until("a push that is seen while it is paused", lambda p: speed(p) > 0.3)
    check(pushed["state"]["still"] == "none", "what is new is seen at once")
    check(pushed["state"]["steps"] == "0" and particles(pushed) == first, f"{pushed['state']}")
    s.picture("pushed")
    s.do("key", "period")
    s.wait_until("a step", lambda p: p["state"]["steps"] == "1" and speed(p) > 0.1)
    s.do("key", "c")
    drag(s, middle, [(0, -30), (0, -60)])
    cut = particles(s.wait_until("a cut", lambda p: 0 < particles(p) < first))
    s.picture("cut")
    s.do("key", "m")
    drag(s, (middle[0], middle[1] - 40), [])
    s.wait_until("new particles", lambda p: particles(p) > cut)
    s.picture("emitted")
    # What cannot be is said, and changes nothing: a ball smaller than a particle's share of a cell.
    s.do("keydown", "shift", "click", "--repeat", 60, 5, "keyup", "shift")
    now = particles(s.published())
    s.do("mousemove", middle[0], middle[1] - 150)
    s.settle()
    s.do("click", 1)
    refused = s.wait_until("a refusal", lambda p: "refused" in p["state"])
    check(refused["state"]["refused"].startswith("emit: ") and particles(refused) == now, f"{refused['state']}")
    # While it runs a body follows the mouse.
    s.do("key", "r")
    s.wait_until("the beginning", lambda p: particles(p) == first and speed(p) == 0 and p["state"]["steps"] == "0")
    s.do("key", "u")
    s.do("keydown", "shift", "click", "--repeat", 40, 4, "keyup", "shift")
    s.do("key", "space")
    s.wait_until("running", lambda p: p["state"]["run"] == "running")
    drag(s, middle, [(30, 0), (60, 0)])
    # Snow stops what moves in it: the body as a whole drifts on.
    s.wait_until("a push while it runs", lambda p: speed(p) > 0.01)
    s.do("key", "space")
    s.wait_until("paused", lambda p: p["state"]["run"] == "paused")
    s.do("key", "Escape")
    check(s.process.wait(timeout=PATIENCE_S) == 0, "the program ends well")


def journal_is_done_again(coppice, scene, journal, folder):
    with open(journal, encoding="utf-8") as file:
        lines = file.read().splitlines()[1:]
    verbs = [line.split()[1] for line in lines]
    check({"push", "cut", "emit", "step", "reset"} <= set(verbs), f"{verbs}")
    again = os.path.join(folder, "again.journal")
    done = subprocess.run([coppice, "view", scene, "--view", "null", "--replay", journal, "--journal", again, "--frames", "1"],
                          env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE_S)
    check(done.returncode == 0, done.stderr)
    with open(again, encoding="utf-8") as file:
        check(file.read().splitlines()[1:] == lines, "the same commands behind the same steps")


def main(coppice, plugin, pictures=None):
    def test(display, folder):
        scene, journal = os.path.join(folder, "ball.toml"), os.path.join(folder, "a.journal")
        with open(scene, "w", encoding="utf-8") as file:
            file.write(SCENE)
        command = [coppice, "view", scene, "--paused", "--journal", journal, "-o", os.path.join(folder, "out")]
        hand_works(Session(command, display, folder, pictures))
        journal_is_done_again(coppice, scene, journal, folder)

    return on_a_display(plugin, test)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
