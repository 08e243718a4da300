#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A wrong template stops the build with its file and line: test_templates.py TEMPLATES.PY"""
import os
import subprocess
import sys
import tempfile
import unittest

MAKER = sys.argv.pop()
HEAD = "--- # f(const char *a, const struct x *l, const char *const *w, size_t n_w)\n"
USES = "a: ${a}\nl: ${l.m}\nw:\n- ${w[]}\n"
REFUSED = {
    "a name that is no parameter": ("b: ${b}", "b is no parameter, and no member of one"),
    "a parameter that is not used": (None, "f() does not use a, l, n_w, w"),
    "what only looks like a placeholder": ("b: ${ a }", "${ a } is no placeholder"),
    "a type that there is not": ("b: ${a:float}", "${a:float} is no placeholder"),
    "a placeholder in a key": ("${a}: b", "a key is plain text, and is there once"),
    "a key that is there twice": ("b: 1\nb: 2", "a key is plain text, and is there once"),
    "JSON in a text": ("b: x${a:json}", "a json stands alone"),
    "a time in quotes": ('b: "${a:time}"', "a time stands alone"),
    "what YAML takes for something else": ("b: no", "no is a bool: put it in quotes"),
    "a number of base eight": ("b: 010", "010 is a int: put it in quotes"),
    "a number with a point": ("b: 1.5", "1.5 is a float: put it in quotes"),
    "a tag that is no mark": ("b: !when(a) c", "!when(a) is no mark of a template"),
    "a mark of nothing": ("b: !if c", "!if is no mark of a template"),
    "a mark of an unknown name": ("b: !if(z) c", "z is no parameter"),
    "an item's member outside of the list": ("b: ${l.m[].n}", "l.m[].n is in no item of its list"),
    "an item of two lists": ("b:\n- c: ${l.m[].n}\n  d: ${w[]}", "an item of more than one list: l.m, w"),
    "a list in an item": ("b:\n- c: ${l.m[].n}\n  d:\n    <<: ${l.o[]}", "l.o is a list in an item of l.m"),
    "a list in an item in an item": ("b:\n- c:\n  - d:\n    - ${l.m[].n[].o[].p}", "l.m[].n[].o is a list in an item of l.m[].n"),
    "an inner list's member outside of it": ("b:\n- c: ${l.m[].n}\n  d: ${l.m[].o[].p}", "l.m[].o[].p is in no item of its list"),
    "a list whose number is not known": ("b:\n- ${a[]}", "n_a is no parameter"),
    "pairs that are no list": ("b:\n  <<: ${a}", "<< wants a list of pairs"),
    "a repeated member": ("b: !each(w) ${w[]}", "!each(w) is no mark of a template"),
    "a list in a text": ('b: "x${l.m:list(t)}"', "a list(t) stands alone"),
    "no YAML": ("b: [", "while parsing a flow node"),
    "a second document without a name": ("---\nb: 1", "a document is an object, and begins with ---"),
}


def make(text):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.yaml")
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        return subprocess.run([sys.executable, MAKER, path], capture_output=True, text=True, check=False)


class Templates(unittest.TestCase):
    def test_what_is_right_is_made(self):
        done = make(HEAD + USES)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("static void f(const char *a, const struct x *l, const char *const *w, size_t n_w, struct buf *out)", done.stdout)

    def test_what_is_wrong_is_refused(self):
        for name, (text, why) in REFUSED.items():
            with self.subTest(name):
                done = make(HEAD + (USES + text if text else "b: c"))
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stdout, "")
                self.assertIn(why, done.stderr)

    def test_an_anchor_is_known_in_a_later_document(self):
        done = make(HEAD + USES + "x: &x\n- c\n" + HEAD.replace("f(", "g(") + USES + "x: *x\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count('jw_arr(&w, "x");'), 2)

    def test_the_line_is_named(self):
        self.assertIn("t.yaml:6: z is no parameter", make(HEAD + USES + "b: ${z}").stderr)


unittest.main()
