# SPDX-License-Identifier: Apache-2.0
"""The text files of this folder: targets, scores and survivors."""
import pathlib

HERE = pathlib.Path(__file__).parent


def lines(name):
    path = HERE / name
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")] if path.exists() else []


def targets():
    """{source file: (only its bounds?, its tests)}"""
    found = {}
    for line in lines("targets"):
        path, what, *tests = line.split()
        found[path] = (what == "bounds", tests)
    return found


def scores():
    """{source file: (killed, mutants)}"""
    return {path: (int(killed), int(of)) for path, killed, of in (line.split() for line in lines("scores"))}


def write_score(path, killed, of):
    known = {**scores(), path: (killed, of)}
    head = "# File, number of mutants that a test killed, number of all mutants. RECORD=yes make mutate writes it.\n"
    (HERE / "scores").write_text(head + "".join(f"{p} {k} {n}\n" for p, (k, n) in sorted(known.items())))


def reasons():
    """{(source file, name of the mutant): reason why it survives}. A line has the file and the mutant, the indented lines below have the reason."""
    found = {}
    key = None
    for line in lines("survivors"):
        if line.startswith("\t"):
            if key is None:
                raise SystemExit(f"survivors: a reason without a mutant: {line.strip()}")
            found[key] = (found[key] + " " + line.strip()).strip()
        else:
            key = tuple(line.split(" ", 1))
            found[key] = ""
    return found
