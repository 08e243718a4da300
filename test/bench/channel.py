# SPDX-License-Identifier: Apache-2.0
"""Compares host-managed IMEX with assigned channels (imex.isolation=channel) with plain pods on the test cluster, and appends a table.

As in bench.py, each duration is compared with that of the same Job without claims in the same run, in turns. ./run sets up the cluster,
the hosts' IMEX, the image and the chart, and calls this program."""

import statistics
import threading
import time

from bench import CD_GROUP, DRIVER_NS, NS, arguments, begin, domain, job, percentile, prepare_times, publish, running, table
from kubeapi import Watch

ASSIGNED = 100


def spread_job(name, nodes, template):
    """One pod on each node, beside other pods. It uses no GPU, because a second pod on a node would get none."""
    body = job(name, nodes, template)
    pod = body["spec"]["template"]["spec"]
    pod["containers"][0]["resources"].pop("limits")
    pod["topologySpreadConstraints"] = [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
                                         "labelSelector": {"matchLabels": {"bench": name}}}]
    return body


class Channels:
    """Jobs of existing ComputeDomains without a channel, and the time when the fabric object lists one."""

    def __init__(self, bench):
        self.bench, self.k = bench, bench.k
        self.assigned, self.known = {}, threading.Condition()
        self.fabrics = Watch(self.k, f"{CD_GROUP}/computedomainfabrics", self.see_fabric)
        self.templates = Watch(self.k, f"/apis/resource.k8s.io/v1/namespaces/{NS}/resourceclaimtemplates")

    def see_fabric(self, kind, o, arrived):
        with self.known:
            for channel in o.get("channels", []):
                self.assigned.setdefault(channel["owner"]["uid"], arrived)
            self.known.notify_all()

    def stand(self):
        """Creates a ComputeDomain with its claim template; returns name and UID."""
        name = self.bench.name("own")
        uid = self.k.create(f"{CD_GROUP}/namespaces/{NS}/computedomains", domain(name))["metadata"]["uid"]
        self.templates.wait(lambda ts: any(t["metadata"]["name"] == name for t in ts), 30, f"claim template of {name}")
        return name, uid

    def launch(self, nodes, template):
        name = self.bench.name("spread")
        self.k.create(f"/apis/batch/v1/namespaces/{NS}/jobs", spread_job(name, nodes, template))
        return name

    def wait_running(self, name, nodes):
        mine = lambda pods: [p for p in pods if p["metadata"].get("labels", {}).get("bench") == name]
        return self.bench.pods.wait(lambda pods: sum(running(p) for p in mine(pods)) == nodes, 240, f"{name} on {nodes} nodes")

    def start(self, nodes, template):
        """Seconds until one pod on each node runs, and the Job's name."""
        start = time.monotonic()
        name = self.launch(nodes, template)
        return self.wait_running(name, nodes) - start, name

    def first_and_second(self, nodes):
        """Seconds of a first pod on each node, and of a second one beside it: plain, and of one ComputeDomain."""
        took, jobs = [], []
        own, _ = self.stand()
        for template in (None, None, own, own):
            seconds, name = self.start(nodes, template)
            took.append(seconds)
            jobs.append(name)
            if len(jobs) % 2 == 0:
                self.clear(jobs)
                jobs = []
        self.drop(own)
        return took

    def clear(self, jobs):
        for name in jobs:
            self.k.delete(f"/apis/batch/v1/namespaces/{NS}/jobs/{name}")
        self.bench.pods.wait(lambda pods: not any(p["metadata"].get("labels", {}).get("bench") in jobs for p in pods), 120, "pods deleted")
        self.bench.claims.wait(lambda claims: all(c["metadata"]["namespace"] == DRIVER_NS for c in claims), 120, "claims deleted")

    def drop(self, name):
        self.k.delete(f"{CD_GROUP}/namespaces/{NS}/computedomains/{name}")
        self.bench.domains.wait(lambda ds: not any(d["metadata"]["name"] == name for d in ds), 60, f"{name} deleted")

    def assignment(self, trips):
        """Milliseconds from the watch event of the first allocated claim of a ComputeDomain to the watch event of its channel, as a node sees
        both, and of a round trip that begins at the same time: the start of a pod loads the machine in the same way for both."""
        name, uid = self.stand()
        self.bench.marks.clear()
        self.bench.seen.clear()
        pods = self.launch(1, name)
        self.bench.claims.wait(lambda claims: any(c.get("status", {}).get("allocation") for c in claims), 60, f"claim of {name} allocated")
        trip = trips.go()
        self.wait_running(pods, 1)
        with self.known:
            if not self.known.wait_for(lambda: uid in self.assigned, 30):
                raise TimeoutError(f"a channel for {name}: not within 30 s")
        took = (self.assigned[uid] - self.bench.marks["workload claim allocated"][0]) * 1000
        self.clear([pods])
        self.drop(name)
        return took, trip


class Trips:
    """Measures the time from a write to its watch event."""

    def __init__(self, k):
        self.k, self.path, self.n, self.arrivals = k, f"/api/v1/namespaces/{NS}/configmaps", 0, {}
        k.create(self.path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "trip", "namespace": NS}})
        self.seen = Watch(k, self.path, lambda kind, o, arrived: self.arrivals.setdefault((o.get("data") or {}).get("n"), arrived))

    def go(self):
        """Milliseconds of one write."""
        self.n += 1
        start = time.monotonic()
        self.k.patch(f"{self.path}/trip", {"data": {"n": str(self.n)}})
        self.seen.wait(lambda _: str(self.n) in self.arrivals, 30, "the watch event of a write")
        return (self.arrivals[str(self.n)] - start) * 1000

    def end(self):
        self.seen.stop()
        self.k.delete(f"{self.path}/trip")


def main():
    a = arguments(__doc__, 11).parse_args()
    bench, audit, sizes = begin(a)
    channels, rows = Channels(bench), []
    row = lambda what, value, bar="", note="": rows.append((what, value, bar, note))

    for n in sizes:
        runs = []
        for i in range(a.pairs):
            runs.append(channels.first_and_second(n))
            bench.log("channel, {} nodes, {} of {}: plain {:.2f} and {:.2f} s, own channel {:.2f} and {:.2f} s".format(n, i + 1, a.pairs, *runs[-1]))
        for what, plain, own in (("first pod of a ComputeDomain on each node", 0, 2), ("a second pod on each of them", 1, 3)):
            ratio = statistics.median(r[own] / r[plain] for r in runs)
            row(f"channel, host, {n} nodes: {what}", f"{statistics.median(r[own] for r in runs):.2f} s; plain "
                f"{statistics.median(r[plain] for r in runs):.2f} s; ratio {ratio:.2f}", "<= 1.15", f"median of {a.pairs} interleaved pairs")

    round_trips = Trips(bench.k)
    took, trips = zip(*(channels.assignment(round_trips) for _ in range(ASSIGNED)))
    round_trips.end()
    row("channel, host: claim allocated to channel id known at the node: p50 / p99", f"{percentile(took, .5):.1f} / {percentile(took, .99):.1f} ms",
        f"p50 <= 30, p99 <= {3 * percentile(trips, .99):.1f} ms",
        f"{len(took)} ComputeDomains; a write and its watch event at the same time: p50 {percentile(trips, .5):.1f}, p99 {percentile(trips, .99):.1f} ms")

    name, _ = channels.stand()
    writes = {}
    for n in sizes:
        since = audit.position()
        _, jobs = channels.start(n, name)
        # The plugins collect their reports for a second.
        time.sleep(2)
        writes[n], conflicts = audit.writes(since)
        for (who, resource), v in sorted(writes[n].items()):
            bench.log(f"channel, writes with {n} nodes: {who} {resource}: {v}")
        channels.clear([jobs])
        time.sleep(2)
    few, many = (sum(writes[n].values()) for n in (sizes[0], sizes[-1]))
    span = max(1, sizes[-1] - sizes[0])
    row(f"channel, host: API writes per joining node, ({sizes[-1]} - {sizes[0]} nodes) / {span}", f"{(many - few) / span:.2f}", "<= 1",
        f"{many} writes in all while {sizes[-1]} nodes join, {conflicts} conflicts")
    channels.drop(name)

    times = prepare_times(a.kubectl, f"{NS}/spread-")
    row("channel, host, Prepare inside the plugin without the claim's GET: p50 / p99", f"{percentile(times, .5):.2f} / {percentile(times, .99):.2f} ms", "",
        f"{len(times)} claims")
    publish(table(rows), a.output)


if __name__ == "__main__":
    main()
