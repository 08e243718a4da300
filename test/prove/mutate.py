#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a source file with one mistake in it: mutate.py FILE OLD NEW. OLD must be there exactly once."""
import sys

path, old, new = sys.argv[1:]
text = open(path, encoding="utf-8").read()
if text.count(old) != 1:
    sys.exit(f"{path}: the text that a mutation replaces is there {text.count(old)} times: {old}")
print(text.replace(old, new), end="")
