# SPDX-License-Identifier: Apache-2.0
"""Compares driver-managed with host-managed IMEX on the test cluster, and appends a table: the cost of running IMEX beside that of the claim.

Each triple is a plain Job, a new ComputeDomain with the host's IMEX, and one with the IMEX of our daemons. Between the two the driver is installed in
the other mode, so each half of a triple has its own plain Job, and begins with one formation that is not measured. The first mode alternates from
triple to triple. ./run sets up the cluster and the image, and calls this program."""

import subprocess

from bench import arguments, begin, publish, quartiles, table

MODES = ("host", "daemon")


def half(bench, n):
    """Seconds of a plain Job and of a new ComputeDomain."""
    took = []
    for with_domain in (False, True):
        seconds, _, name = bench.form(n, with_domain)
        took.append(seconds)
        bench.remove(name, with_domain)
    return took


def main():
    p = arguments(__doc__, 11)
    p.add_argument("--switch", required=True, help="a command that installs the driver in the mode of its last argument: host or daemon")
    a = p.parse_args()
    now = "daemon"
    bench, _, sizes = begin(a)
    n, runs = sizes[-1], []

    def switch(mode):
        subprocess.run([*a.switch.split(), mode], check=True)
        _, _, name = bench.form(n, True)
        bench.remove(name, True)

    for i in range(a.pairs):
        found = {now: half(bench, n)}
        now = next(mode for mode in MODES if mode != now)
        switch(now)
        found[now] = half(bench, n)
        runs.append(found)
        bench.log("triple {} of {}: host {:.2f} s (plain {:.2f} s), daemon {:.2f} s (plain {:.2f} s), ratio {:.2f}".format(
            i + 1, a.pairs, found["host"][1], found["host"][0], found["daemon"][1], found["daemon"][0], found["daemon"][1] / found["host"][1]))

    seconds = lambda mode: quartiles([r[mode][1] for r in runs])
    note = f"{a.pairs} interleaved triples; quartiles in parentheses"
    rows = [(f"{n} free nodes, relative to host-managed: apply to all pods Running",
             f"{seconds('daemon')} s; host-managed {seconds('host')} s; ratio {quartiles([r['daemon'][1] / r['host'][1] for r in runs])}", "ratio <= 1.08", note)]
    for mode, what, bar in (("daemon", "driver-managed", "ratio: goal 1.25"), ("host", "host-managed", "")):
        rows.append((f"the same, {what} relative to the plain Job beside it",
                     f"ratio {quartiles([r[mode][1] / r[mode][0] for r in runs])}; plain {quartiles([r[mode][0] for r in runs])} s", bar, note))
    publish(table(rows), a.output)


if __name__ == "__main__":
    main()
