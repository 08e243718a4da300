# SPDX-License-Identifier: Apache-2.0
"""A build folder in which one object is replaced by a changed one, to run the tests that are linked with it. The object has all mutants of
a file, and the environment variable MUTANT selects one."""
import json
import os
import pathlib
import resource
import shlex
import shutil
import signal
import subprocess
import time

import find

LIMIT_S = 20  # of processor time, for each test of a mutant
WAIT_S = 60  # for all tests of a mutant, on a machine with other work
SANITIZE = "-fsanitize=address,undefined"
SETUP = ["--buildtype=plain", "-Doptimization=1", "-Ddebug=false", "-Dwerror=false", "-Db_sanitize=address,undefined"]
ENV = {
    "ASAN_OPTIONS": "strict_string_checks=1:detect_stack_use_after_return=1:hard_rss_limit_mb=2048:symbolize=0",
    "UBSAN_OPTIONS": "halt_on_error=1",
    "CMOCKA_TEST_ABORT": "1",  # The first failure ends the test.
    # A tenth of the histories of `make unit`.
    "HISTORIES": "500",
    "CHANNELS_HISTORIES": "1000",
}


def set_limits():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))


def compile_commands(root, folder):
    """{source file: arguments of its compiler}. The kubectl plugin and the hook compile files again, without the sanitizers."""
    commands, ranks = {}, {}
    for command in json.loads((folder / "compile_commands.json").read_text()):
        path = os.path.relpath(folder / command["file"], root)
        args = shlex.split(command["command"])
        rank = (SANITIZE in args, pathlib.Path(command["output"]).parent.parent == pathlib.Path(path).parent)
        if rank >= ranks.get(path, rank):
            commands[path], ranks[path] = args, rank
    return commands


class Build:
    def __init__(self, root, folder):
        self.root, self.folder = pathlib.Path(root), pathlib.Path(root, folder)
        if not (self.folder / "build.ninja").exists():
            subprocess.run(["meson", "setup", str(self.folder), *SETUP], cwd=self.root, check=True)
        # The lists of tests and commands follow a changed meson.build.
        subprocess.run(["ninja", "-C", str(self.folder), "build.ninja"], stdout=subprocess.DEVNULL, check=True)
        shutil.rmtree(self.folder / "mutants", ignore_errors=True)
        self.links = {}
        self.seconds = {}  # duration of each test without a change
        self.tests = {t["name"]: t for t in self.read("meson-info/intro-tests.json")}
        self.commands = compile_commands(self.root, self.folder)

    def read(self, name):
        return json.loads((self.folder / name).read_text())

    def target(self, test):
        return os.path.relpath(self.tests[test]["cmd"][0], self.folder)

    def prepare(self, names):
        """Builds the tests, and runs them without a change: they must pass."""
        ninja = ["ninja", "-C", str(self.folder)]
        targets = [self.target(name) for name in names]
        subprocess.run([*ninja, "-j", os.environ.get("JOBS", "1"), *targets], stdout=subprocess.DEVNULL, check=True)
        for name, target in zip(names, targets):
            command = subprocess.run([*ninja, "-t", "commands", "-s", target], stdout=subprocess.PIPE, text=True, check=True)
            self.links[name] = shlex.split(command.stdout.splitlines()[-1])
            began = time.monotonic()
            if not self.passes(name, self.folder / target, self.folder, WAIT_S):
                raise SystemExit(f"{name} fails, or takes more than {LIMIT_S} s, without a change of the code")
            self.seconds[name] = time.monotonic() - began

    def mutants(self, path, text, bounds_only):
        return find.mutants(text, os.path.relpath(self.root / path, self.folder), self.commands[path], self.folder, bounds_only)

    def compile(self, path, text, out, plain=False):
        """Compiles a text instead of a source file; plain: optimized, and without anything that depends on lines or columns."""
        args = self.commands[path]
        where = args.index("-o")
        flags = [arg for arg in args[args.index("cc") + 1 : where] if not arg.startswith(("-M", "-W", "src/"))]
        if plain:
            flags = [flag for flag in flags if flag != SANITIZE] + ["-O2"]
        source = out.with_suffix(".c")
        source.write_text(f'#line 1 "{args[-1]}"\n{text}', encoding="latin-1")
        folder = os.path.dirname(args[-1])
        subprocess.run(["cc", "-w", *flags, "-iquote", folder, "-o", str(out), "-c", str(source)], cwd=self.folder, check=True)

    def link(self, test, objects, out):
        """The changed object is the first, so the linker takes none of its functions from a library."""
        args = list(self.links[test])
        where = args.index("-o")
        args[where : where + 2] = ["-o", str(out), str(objects)]
        subprocess.run(args, cwd=self.folder, check=True)

    def passes(self, test, program, scratch, limit_s, number=0):
        spec = self.tests[test]
        env = {**os.environ, **spec["env"], **ENV, "TMPDIR": str(scratch), "MUTANT": str(number)}
        child = subprocess.Popen([str(program), *spec["cmd"][1:]], cwd=spec["workdir"] or self.folder, env=env, preexec_fn=set_limits,
                                 start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        try:
            return child.wait(limit_s) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()

    def programs(self, path, text, tests, out):
        """{test: its program with this text instead of the source file}"""
        out.mkdir(parents=True)
        self.compile(path, text, out / "changed.o")
        for test in tests:
            self.link(test, out / "changed.o", out / test)
        return {test: out / test for test in tests}

    def survives(self, programs, number, scratch):
        """True if all tests pass with the mutant of this number."""
        scratch.mkdir(parents=True)
        try:
            until = time.monotonic() + WAIT_S
            for test, program in programs.items():
                limit_s = min(until - time.monotonic(), 2 + 10 * self.seconds[test])
                if limit_s <= 0 or not self.passes(test, program, scratch, limit_s, number):
                    return False
            return True
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def code(self, path, text, scratch):
        scratch.mkdir(parents=True)
        try:
            self.compile(path, text, scratch / "plain.o", plain=True)
            return (scratch / "plain.o").read_bytes()
        finally:
            shutil.rmtree(scratch)
