# SPDX-License-Identifier: Apache-2.0
"""Compares plain pods with plain pods on the test cluster, and appends a table: the difference of two equal Jobs on this machine."""

from bench import arguments, begin, compared, publish, table


def main():
    a = arguments(__doc__, 11).parse_args()
    bench, _, sizes = begin(a, with_domain=False)
    rows = []
    for n in sizes:
        runs = []
        for i in range(a.pairs):
            pair = []
            for _ in range(2):
                seconds, _, name = bench.form(n, False)
                pair.append(seconds)
                bench.remove(name, False)
            runs.append(pair)
            bench.log(f"plain, {n} nodes, pair {i + 1} of {a.pairs}: {pair[0]:.2f} and {pair[1]:.2f} s")
        rows.append((f"plain Jobs, {n} nodes: apply to all pods Running", compared(*zip(*runs)), "ratio 1", f"{a.pairs} pairs; quartiles in parentheses"))
    publish(table(rows), a.output)


if __name__ == "__main__":
    main()
