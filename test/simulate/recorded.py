# SPDX-License-Identifier: Apache-2.0
"""Compares the events of daemons and nodes in the simulated world with those of a real cluster: recorded.py PLAY FOLDER

FOLDER has a file for each event. test/long/recorded.bats has written it, and compares it with a real cluster again. A file lists the
changes of each object that a program can see, in their order, and then the order of changes of different objects.

recorded.py --normalize <LINES writes such a file from the lines of play or of test/cluster/record.py."""

import os
import subprocess
import sys

SEEDS = range(1, 13)
SKIPPED = 77

# Changes of two objects whose order our programs rely on. Other changes may come in any order.
PAIRS = [
    ("pod B: created", "claim B: created"),
    ("pod A: created", "claim A: created"),
    ("claim A: allocated", "pod A: bound"),
    ("claim B: allocated", "pod B: bound"),
    ("claim A: gone", "claim B: allocated"),
    ("node: gone", "pod A: gone"),
    ("node: not ready", "pod A: not ready"),
    ("node: another boot", "pod A: container started"),
]


def normalize(lines):
    """The lines, grouped by object, and the order of PAIRS."""
    objects, found = {}, []
    for line in lines:
        objects.setdefault(line.split(":")[0], []).append(line)
    for first, second in PAIRS:
        if first in lines and second in lines:
            found.append(f"{first}, then {second}" if lines.index(first) < lines.index(second) else f"{second}, then {first}")
    return [line for name in sorted(objects) for line in objects[name]] + found


def played(play, event):
    """The lines of the simulated world, by seed."""
    for seed in SEEDS:
        done = subprocess.run([play, event, str(seed)], capture_output=True, text=True)
        if done.returncode == SKIPPED:
            continue
        if done.returncode:
            sys.exit(f"play {event} {seed}: {done.returncode}: {done.stderr}")
        yield seed, normalize(done.stdout.splitlines())


def differences(event, seed, simulated, real):
    return [f"{event}, seed {seed}: only simulated: {line}" for line in simulated if line not in real] + \
           [f"{event}, seed {seed}: only recorded: {line}" for line in real if line not in simulated] or \
           ([] if simulated == real else [f"{event}, seed {seed}: simulated in the order {simulated}, recorded {real}"])


def main():
    if sys.argv[1:] == ["--normalize"]:
        print("\n".join(normalize(sys.stdin.read().splitlines())))
        return
    play, folder = sys.argv[1:]
    events = subprocess.run([play], capture_output=True, text=True).stderr.split()[3:]
    texts = []
    for event in events:
        real = [line for line in open(os.path.join(folder, event)).read().splitlines() if not line.startswith("#")]
        runs = list(played(play, event))
        if not runs:
            texts.append(f"{event}: it applies with no seed")
        for seed, simulated in runs:
            texts += differences(event, seed, simulated, real)
    texts += [f"{name}: not an event of play" for name in os.listdir(folder) if name not in events]
    print("\n".join(texts))
    sys.exit(bool(texts))


main()
