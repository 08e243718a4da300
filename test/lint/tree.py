# SPDX-License-Identifier: Apache-2.0
"""Trees of files on which the tests of this folder run a script."""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def write(root, files):
    """Writes the texts of files, which are named by their paths below the root."""
    for path, text in files.items():
        path = os.path.join(root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


def run(script, *args):
    """Runs a script of this repository, and returns its exit status and output."""
    p = subprocess.run([os.path.join(ROOT, script), *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return p.returncode, p.stdout


def run_in(files, script, *args):
    """Runs a script with the root of a new tree of files as its last argument."""
    with tempfile.TemporaryDirectory() as root:
        write(root, files)
        return run(script, *args, root)


def end(wrong):
    """Ends the test, which has found these differences."""
    print("\n".join(wrong), file=sys.stderr)
    sys.exit(1 if wrong else 0)
