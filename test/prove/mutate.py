#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a source file with one mistake in it: mutate.py FILE OLD NEW. The file must contain OLD exactly once."""
import sys

path, old, new = sys.argv[1:]
text = open(path, encoding="utf-8").read()
if text.count(old) != 1:
    sys.exit(f"{path}: contains the text of the mutation {text.count(old)} times: {old}")
print(text.replace(old, new), end="")
