# SPDX-License-Identifier: Apache-2.0
"""Shared by the measurements: Jobs with and without a ComputeDomain, watches, the audit log, memory, tables.

Each duration is compared with that of the same Job without claims in the same run, in turns, because machines are noisy: the ratio counts."""

import argparse
import collections
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import time

from kubeapi import Cluster, NotFound, Watch

NS, DRIVER_NS = "bench", "nvidia-compute-domains"
IMAGE = "compute-domains/busybox:test"
CD_GROUP = "/apis/resource.nvidia.com/v1beta1"
CONTROLLER, PLUGIN, DAEMON = "compute-domain-controller", "compute-domain-kubelet-plugin", "compute-domain-daemon"
OURS = (CONTROLLER, PLUGIN, DAEMON)
UID_LABEL, COMPONENT_LABEL = "resource.nvidia.com/computeDomain", "app.kubernetes.io/component"
STATE, READY = "imex.resource.nvidia.com/state", "imex.resource.nvidia.com/ready"


def job(name, nodes, template=None):
    pod = {
        "restartPolicy": "Never",
        # With 0 the API server deletes a pod before the kubelet has unprepared its claim, and the next pod on that node waits.
        "terminationGracePeriodSeconds": 1,
        "containers": [{
            "name": "worker", "image": IMAGE, "imagePullPolicy": "Never", "command": ["sleep", "3600"],
            "resources": {"limits": {"nvidia.com/gpu": "4"}},
        }],
    }
    if template:
        pod["resourceClaims"] = [{"name": "channel", "resourceClaimTemplateName": template}]
        pod["containers"][0]["resources"]["claims"] = [{"name": "channel"}]
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": NS},
        "spec": {"completions": nodes, "parallelism": nodes, "completionMode": "Indexed", "backoffLimit": 100,
                 "template": {"metadata": {"labels": {"bench": name}}, "spec": pod}},
    }


def domain(name):
    return {
        "apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "metadata": {"name": name, "namespace": NS},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": name}}},
    }


def running(o):
    return o.get("status", {}).get("phase") == "Running"


def labels(o):
    return o["metadata"].get("labels", {})


def annotations(o):
    return o["metadata"].get("annotations", {})


def is_daemon(o):
    return labels(o).get(COMPONENT_LABEL) == DAEMON


def assigned(fabrics):
    """(fabric object, epoch) of each assignment of a ComputeDomain, without those of standing domains."""
    return [(f["metadata"]["name"], a["epoch"]) for f in fabrics for d in f.get("domains") or [] if d["owner"].get("kind") != "ComputeDomainFabric"
            for a in d.get("assignments") or []]


class Bench:
    def __init__(self, cluster, log):
        self.k, self.log, self.serial = cluster, log, 0
        self.marks = collections.OrderedDict()
        self.pods = Watch(cluster, f"/api/v1/namespaces/{NS}/pods", self.see_pod)
        self.ours = Watch(cluster, f"/api/v1/namespaces/{DRIVER_NS}/pods", self.see_daemon)
        self.domains = Watch(cluster, f"{CD_GROUP}/namespaces/{NS}/computedomains")
        self.claims = Watch(cluster, "/apis/resource.k8s.io/v1/resourceclaims", self.see_claim)
        self.nodes = Watch(cluster, "/api/v1/nodes", self.see_node)
        self.fabrics = Watch(cluster, f"{CD_GROUP}/computedomainfabrics", self.see_fabric)

    # The timeline: when each step was first and last seen in the current run.
    def mark(self, step, arrived):
        first, _, n = self.marks.get(step, (arrived, arrived, 0))
        self.marks[step] = (first, arrived, n + 1)

    def once(self, step, who, arrived):
        if (step, who) not in self.seen:
            self.seen.add((step, who))
            self.mark(step, arrived)

    seen = set()

    def see_pod(self, kind, o, arrived):
        who = o["metadata"]["name"]
        self.once("workload pod created", who, arrived)
        if o["spec"].get("nodeName"):
            self.once("workload pod bound", who, arrived)
        if running(o):
            self.once("workload pod Running", who, arrived)

    def see_daemon(self, kind, o, arrived):
        if is_daemon(o) and annotations(o).get(READY) == "true":
            self.once("daemon reports READY", o["metadata"]["uid"], arrived)

    def see_claim(self, kind, o, arrived):
        if o.get("status", {}).get("allocation") and o["metadata"]["namespace"] != DRIVER_NS:
            self.once("workload claim allocated", o["metadata"]["uid"], arrived)

    def see_node(self, kind, o, arrived):
        if uid := labels(o).get(UID_LABEL):
            self.once("node labelled", (o["metadata"]["name"], uid), arrived)

    def see_fabric(self, kind, o, arrived):
        for which in assigned([o]):
            self.once("node assigned", which, arrived)

    def timeline(self, start):
        return [(step, first - start, last - start, n) for step, (first, last, n) in self.marks.items()]

    def name(self, kind):
        self.serial += 1
        return f"{kind}-{self.serial}"

    def form(self, nodes, with_domain, standing=None):
        """Seconds from the first request until all pods are Running, and the name, which the caller removes. `standing` is the name of an
        existing ComputeDomain for the pods."""
        name = self.name("domain" if with_domain else "standing" if standing else "plain")
        self.marks.clear()
        self.seen.clear()
        start = time.monotonic()
        if with_domain:
            self.k.create(f"{CD_GROUP}/namespaces/{NS}/computedomains", domain(name))
        self.k.create(f"/apis/batch/v1/namespaces/{NS}/jobs", job(name, nodes, name if with_domain else standing))
        return self.wait_running(name, nodes) - start, start, name

    def of(self, name):
        return [p for p in self.pods.objects.values() if labels(p).get("bench") == name]

    def wait_running(self, name, nodes):
        return self.pods.wait(lambda _: sum(map(running, self.of(name))) == nodes, 240, f"{name} on {nodes} nodes")

    def wait_daemons(self, state, count):
        """Waits until `count` daemons are in that state."""
        self.ours.wait(lambda pods: sum(is_daemon(p) and annotations(p).get(STATE) == state for p in pods) >= count, 120, f"{count} daemons {state}")

    def wait_status(self, name, nodes):
        """Waits until the ComputeDomain reports all nodes as ready."""
        self.domains.wait(lambda ds: any(d["metadata"]["name"] == name and d.get("status", {}).get("nodesReady") == nodes for d in ds), 60,
                          "status complete")

    def remove(self, name, with_domain):
        """Returns the seconds until the pods are gone, and until nothing is left: also no claims, and with a domain no object of it, no
        assignments and no labels."""
        start = time.monotonic()
        self.k.delete(f"/apis/batch/v1/namespaces/{NS}/jobs/{name}")
        if with_domain:
            self.k.delete(f"{CD_GROUP}/namespaces/{NS}/computedomains/{name}")
        self.pods.wait(lambda _: not self.of(name), 120, "pods gone")
        pods_gone = time.monotonic() - start
        self.claims.wait(lambda claims: all(c["metadata"]["namespace"] == DRIVER_NS for c in claims), 120, "claims deleted")
        if with_domain:
            self.domains.wait(lambda all_: not any(d["metadata"]["name"] == name for d in all_), 120, "ComputeDomain deleted")
            self.fabrics.wait(lambda fabrics: not assigned(fabrics), 120, "assignments gone")
            self.nodes.wait(lambda ns: not any(UID_LABEL in labels(n) for n in ns), 60, "labels gone")
        return pods_gone, time.monotonic() - start

    def follow(self, nodes, with_domain):
        """Seconds from the deletion of a Job on the nodes, with its domain, until all pods of the next one run there."""
        _, _, first = self.form(nodes, with_domain)
        name = self.name("next")
        start = time.monotonic()
        self.k.delete(f"/apis/batch/v1/namespaces/{NS}/jobs/{first}")
        if with_domain:
            self.k.delete(f"{CD_GROUP}/namespaces/{NS}/computedomains/{first}")
            self.k.create(f"{CD_GROUP}/namespaces/{NS}/computedomains", domain(name))
        self.k.create(f"/apis/batch/v1/namespaces/{NS}/jobs", job(name, nodes, name if with_domain else None))
        took = self.wait_running(name, nodes) - start
        self.remove(name, with_domain)
        return took

    def ready_channels(self, count):
        """Starts pods one after the other that get the channel of an existing domain, with admin access, because channel-0 is in use.
        Returns the beginning of their claims' names."""
        _, _, name = self.form(2, True)
        k = self.k
        cd = k.get(f"{CD_GROUP}/namespaces/{NS}/computedomains/{name}")
        node = next(p["spec"]["nodeName"] for p in self.pods.objects.values() if labels(p).get("bench") == name)
        k.patch(f"/api/v1/namespaces/{NS}", {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}})
        k.create(f"/apis/resource.k8s.io/v1/namespaces/{NS}/resourceclaimtemplates", {
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "ready", "namespace": NS},
            "spec": {"spec": {"devices": {
                "requests": [{"name": "channel", "exactly": {"deviceClassName": "compute-domain-default-channel.nvidia.com", "adminAccess": True}}],
                "config": [{"requests": ["channel"], "opaque": {"driver": "compute-domain.nvidia.com", "parameters": {
                    "apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainChannelConfig", "domainID": cd["metadata"]["uid"]}}}]}}}})
        for i in range(count):
            pod = job("ready", 1, "ready")["spec"]["template"]["spec"]
            pod["nodeSelector"] = {"kubernetes.io/hostname": node}
            pod["containers"][0]["resources"].pop("limits")
            k.create(f"/api/v1/namespaces/{NS}/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"ready-{i}", "namespace": NS}, "spec": pod})
            self.pods.wait(lambda pods: any(p["metadata"]["name"] == f"ready-{i}" and running(p) for p in pods), 60, f"pod ready-{i}")
            k.delete(f"/api/v1/namespaces/{NS}/pods/ready-{i}")
        k.delete(f"/apis/resource.k8s.io/v1/namespaces/{NS}/resourceclaimtemplates/ready")
        self.pods.wait(lambda pods: not any(p["metadata"]["name"].startswith("ready-") for p in pods), 60, "ready pods deleted")
        self.remove(name, True)
        return f"{NS}/ready-"

    def leader(self):
        leases = self.k.get(f"/apis/coordination.k8s.io/v1/namespaces/{DRIVER_NS}/leases")["items"]
        holder = next(l["spec"]["holderIdentity"] for l in leases if "controller" in l["metadata"]["name"])
        return next(n for (_, n) in self.ours.objects if holder.startswith(n))

    def join_without_leader(self, kill):
        """A pod joins at the moment when the leading controller is killed."""
        leader = self.leader()
        kill(leader)
        seconds, _, name = self.form(2, True)
        self.remove(name, True)
        return seconds


def processes(programs):
    """{program: [pid]}. The first fifteen characters of the names are equal, so /proc/PID/comm does not distinguish them."""
    found = collections.defaultdict(list)
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            words = open(path, "rb").read().split(b"\0")
        except OSError:
            continue
        program = os.path.basename(words[0].decode(errors="replace"))
        if program in programs:
            found[program].append(int(path.split("/")[2]))
    return found


def memory(pid):
    text = open(f"/proc/{pid}/smaps_rollup").read()
    kb = lambda key: int(re.search(rf"^{key}:\s+(\d+) kB", text, re.M).group(1))
    return kb("Private_Dirty") / 1024, kb("Pss") / 1024, kb("Rss") / 1024


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Audit:
    """The requests of our programs, from the API server's audit log."""

    def __init__(self, path):
        self.path = path

    def position(self):
        return os.path.getsize(self.path)

    def requests(self, since):
        with open(self.path, "rb") as f:
            f.seek(since)
            for line in f:
                try:
                    e = json.loads(line)
                except ValueError:
                    continue
                user = e["user"]["username"]
                if e.get("stage") != "ResponseComplete" or f":{DRIVER_NS}:" not in user:
                    continue
                ref = e.get("objectRef", {})
                yield user.rsplit(":", 1)[1], e["verb"], ref.get("resource", ""), ref.get("subresource", ""), e.get("responseStatus", {}).get("code")

    def writes(self, since):
        """{(program, resource): count} without Events and Leases, and the number of conflicts."""
        counts, conflicts = collections.Counter(), 0
        for who, verb, resource, sub, code in self.requests(since):
            if verb not in ("create", "update", "patch", "delete") or resource in ("events", "leases"):
                continue
            counts[(who, f"{resource}/{sub}" if sub else resource)] += 1
            conflicts += code == 409
        return counts, conflicts

    def reads(self, since):
        counts = collections.Counter()
        for who, verb, resource, _, _ in self.requests(since):
            if verb in ("get", "list"):
                counts[(who, verb, resource)] += 1
        return counts


def quartiles(values, form="{:.2f}"):
    """The median, with the first and the third quartile."""
    if len(values) < 2:
        return form.format(values[0])
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{form.format(middle)} ({form.format(low)} to {form.format(high)})"


def compared(plain, other):
    """The seconds of plain Jobs and of others, in turns, and the ratio of each to its plain one."""
    return f"{quartiles(other)} s; plain {quartiles(plain)} s; ratio {quartiles([o / p for o, p in zip(other, plain)])}"


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))] if values else float("nan")


def prepare_times(kubectl, claims):
    """Milliseconds inside the plugin, without the claim's GET and without waits, for each claim whose name begins with `claims` (from the plugins' logs)."""
    text = subprocess.run([kubectl, "-n", DRIVER_NS, "logs", "-l", "app=compute-domain-kubelet-plugin", "-c", "compute-domains", "--tail=-1", "--ignore-errors"],
                          capture_output=True, text=True, check=True).stdout
    times = []
    for line in text.splitlines():
        if '"prepared claim"' in line and f'claim="{claims}' in line:
            us = {key: int(value) for key, value in re.findall(r"\b(total_us|get_us|wait_us)=(\d+)", line)}
            times.append((us["total_us"] - us["get_us"] - us["wait_us"]) / 1000)
    return times


def three_writes(folder):
    """For comparison: milliseconds for three atomic writes (write, fsync, rename, fsync of the folder) on the plugin's disk."""
    times = []
    for _ in range(50):
        start = time.monotonic()
        for _ in range(3):
            tmp, path = os.path.join(folder, ".bench.tmp"), os.path.join(folder, "bench")
            fd = os.open(tmp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.write(fd, b"x" * 4096)
            os.fsync(fd)
            os.close(fd)
            os.rename(tmp, path)
            d = os.open(folder, os.O_RDONLY)
            os.fsync(d)
            os.close(d)
        times.append((time.monotonic() - start) * 1000)
    os.unlink(path)
    return times


def table(rows):
    return ["| what | measured | bar | note |", "|---|---|---|---|"] + [f"| {' | '.join(r)} |" for r in rows]


def own_namespace(k):
    try:
        k.get(f"/api/v1/namespaces/{NS}")
    except NotFound:
        k.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})


def arguments(description, pairs):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--kubectl", required=True)
    p.add_argument("--audit-log", required=True)
    p.add_argument("--pairs", type=int, default=pairs)
    p.add_argument("--sizes", default="2,12")
    p.add_argument("--output", help="file to which the table is appended as Markdown")
    return p


def begin(a, kind=Bench, with_domain=True):
    """Returns a Bench, or a class that is based on it, on the cluster of the arguments, after one formation or plain Job that is not measured; its
    Audit; and the sizes to measure."""
    log = lambda text: print(f"bench: {text}", file=sys.stderr, flush=True)
    k = Cluster(a.kubectl)
    own_namespace(k)
    bench, sizes = kind(k, log), [int(s) for s in a.sizes.split(",")]
    log("one formation first, not measured" if with_domain else "one plain Job first, not measured")
    _, _, name = bench.form(sizes[0], with_domain)
    bench.remove(name, with_domain)
    return bench, Audit(a.audit_log), sizes


def publish(lines, path):
    """Prints the lines and an empty line, and appends them to a file, if there is one."""
    text = "\n".join(lines) + "\n\n"
    print(text, end="")
    if path:
        with open(path, "a") as f:
            f.write(text)
