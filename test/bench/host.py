# SPDX-License-Identifier: Apache-2.0
"""Compares host-managed IMEX, which is READY, with plain pods on the test cluster, and appends a table.

As in bench.py, each duration is compared with that of the same Job without claims in the same run, in turns. ./run sets up the
cluster, the hosts' IMEX, the image and the chart, and calls this program."""

import statistics

from bench import CD_GROUP, NS, arguments, begin, domain, percentile, prepare_times, publish, table

STANDING = "stands"


def healthy(bench, name, status):
    """Waits until the condition HostIMEXHealthy of a ComputeDomain is `status`: then all writes that a change of its nodes causes are done."""
    def holds(domains):
        found = next((d for d in domains if d["metadata"]["name"] == name), {})
        return any(c["type"] == "HostIMEXHealthy" and c["status"] == status for c in found.get("status", {}).get("conditions", []))
    bench.domains.wait(holds, 90, f"HostIMEXHealthy {status} of {name}")


def main():
    a = arguments(__doc__, 11).parse_args()
    bench, audit, sizes = begin(a)
    k, log = bench.k, bench.log
    rows, writes = [], {}
    row = lambda what, value, bar="", note="": rows.append((what, value, bar, note))

    k.create(f"{CD_GROUP}/namespaces/{NS}/computedomains", domain(STANDING))
    healthy(bench, STANDING, "Unknown")

    for n in sizes:
        plain, into, new = [], [], []
        for i in range(a.pairs):
            seconds, _, name = bench.form(n, False)
            plain.append(seconds)
            bench.remove(name, False)
            seconds, _, name = bench.form(n, False, STANDING)
            into.append(seconds)
            bench.remove(name, False)
            seconds, _, name = bench.form(n, True)
            new.append(seconds)
            bench.remove(name, True)
            log(f"host-managed, {n} nodes, {i + 1} of {a.pairs}: plain {plain[-1]:.2f} s, ready domain {into[-1]:.2f} s (ratio "
                f"{into[-1] / plain[-1]:.2f}), new domain {new[-1]:.2f} s (ratio {new[-1] / plain[-1]:.2f})")
        for what, times, bar in ((f"host-managed, ready host daemon, {n} nodes: apply to all pods Running", into, "<= 1.15"),
                                 (f"the same with a new ComputeDomain, {n} nodes", new, "")):
            ratio = statistics.median(t / q for t, q in zip(times, plain))
            row(what, f"{statistics.median(times):.2f} s; plain {statistics.median(plain):.2f} s; ratio {ratio:.2f}", bar,
                f"median of {a.pairs} interleaved pairs")

    for n in sizes:
        healthy(bench, STANDING, "Unknown")
        since = audit.position()
        _, _, name = bench.form(n, False, STANDING)
        healthy(bench, STANDING, "True")
        writes[n], conflicts = audit.writes(since)
        for (who, resource), v in sorted(writes[n].items()):
            log(f"host-managed, writes with {n} nodes: {who} {resource}: {v}")
        bench.remove(name, False)
    few, many = (sum(writes[n].values()) for n in (sizes[0], sizes[-1]))
    span = max(1, sizes[-1] - sizes[0])
    row(f"host-managed, API writes per joining node, ({sizes[-1]} - {sizes[0]} nodes) / {span}", f"{(many - few) / span:.2f}", "0",
        f"{many} writes in all while {sizes[-1]} nodes join, {conflicts} conflicts")

    times = prepare_times(a.kubectl, f"{NS}/standing-")
    row("host-managed, Prepare inside the plugin without the claim's GET: p50 / p99", f"{percentile(times, .5):.2f} / {percentile(times, .99):.2f} ms", "",
        f"{len(times)} claims")
    k.delete(f"{CD_GROUP}/namespaces/{NS}/computedomains/{STANDING}")
    bench.domains.wait(lambda domains: not domains, 60, "ComputeDomain gone")

    publish(table(rows), a.output)


if __name__ == "__main__":
    main()
