# SPDX-License-Identifier: Apache-2.0
"""The visible part of the demo: runs a workload and shows what the cluster does.

Everything on the screen comes from watches of the API. A terminal shows one table, which is redrawn; otherwise each change is a line."""

import argparse
import os
import queue
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
from kubeapi import Cluster, Watch  # noqa: E402

NS, OTHER_NS, DRIVER_NS = "demo", "demo-other", "nvidia-compute-domains"
DOMAIN, WORKLOAD = "compute-domain-0", "example-mnnvl-workload"
DOMAIN_LABEL, CLIQUE_LABEL = "resource.nvidia.com/computeDomain", "nvidia.com/gpu.clique"
IMEX = "imex.resource.nvidia.com/"
BOLD, DIM, GREEN, YELLOW, OFF = "\033[1m", "\033[2m", "\033[32m", "\033[33m", "\033[0m"
COLUMNS = (("node", 8), ("partition", 16), ("daemon", 12), ("index", 6), ("IMEX", 24), ("peers", 6), ("workload", 0))
RACK_COLUMNS = (("node", 8), ("partition", 16), ("rack", 20), ("one team's pods", 16), ("another's", 0))
RACKS = ("s0-011-us-west-01a", "s0-012-us-west-01a")
HOST_COLUMNS = (("node", 8), ("partition", 16), ("IMEX of the host", 18), ("workload", 0))


def phase_of(pod):
    """The status of a pod as kubectl prints it."""
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    status = pod.get("status", {})
    for container in status.get("containerStatuses", []):
        waiting = container["state"].get("waiting")
        if waiting and waiting.get("reason"):
            return waiting["reason"]
    return status.get("phase", "Pending")


def is_running(pod):
    return phase_of(pod) == "Running"


class View:
    """A ComputeDomain that the driver's daemons serve; one daemon runs on each node."""
    columns = COLUMNS

    def __init__(self, cluster):
        self.events = queue.Queue()
        self.terminal, self.drawn = sys.stdout.isatty(), 0
        self.rows, self.headline = {}, ""

        def follow(path):
            return Watch(cluster, path, lambda *_: self.events.put(True))

        self.nodes = follow("/api/v1/nodes")
        self.pods = follow(f"/api/v1/namespaces/{NS}/pods")
        self.daemons = follow(f"/api/v1/namespaces/{DRIVER_NS}/pods?labelSelector=app=imex-daemon")
        self.domains = follow(f"/apis/resource.nvidia.com/v1beta1/namespaces/{NS}/computedomains")
        self.fabrics = follow("/apis/resource.nvidia.com/v1beta1/computedomainfabrics")

    @staticmethod
    def all(watch):
        with watch.changed:
            return list(watch.objects.values())

    def domain(self):
        return next(iter(self.all(self.domains)), None)

    def ready(self, n):
        """Whether n pods run, n nodes are in the ComputeDomain, and it is Ready."""
        domain = self.domain() or {}
        status = domain.get("status", {})
        return (sum(map(is_running, self.all(self.pods))) == n == len(self.all(self.pods)) == status.get("nodesReady")
                and status.get("status") == "Ready")

    def states(self):
        """The state that each daemon reports: a state of IMEX, or IDLE."""
        return [p["metadata"].get("annotations", {}).get(IMEX + "state", "-") for p in self.all(self.daemons)]

    def daemon_uids(self):
        return sorted(p["metadata"]["uid"] for p in self.all(self.daemons) if "deletionTimestamp" not in p["metadata"])

    def idle(self):
        return not self.all(self.pods) and self.states() == ["IDLE"] * len(self.all(self.nodes))

    def deleted(self):
        rows = (d for f in self.all(self.fabrics) for d in f.get("domains") or [])
        return (self.idle() and not self.domain() and not any(d["owner"]["kind"] == "ComputeDomain" for d in rows)
                and not any(DOMAIN_LABEL in n["metadata"].get("labels", {}) for n in self.all(self.nodes)))

    def snapshot(self):
        domain = self.domain()
        members = {n["name"]: n for n in (domain or {}).get("status", {}).get("nodes", []) or []}
        rows = {}
        for node in sorted(self.all(self.nodes), key=lambda n: n["metadata"]["name"]):
            name, labels = node["metadata"]["name"], node["metadata"].get("labels", {})
            daemon = next((p for p in self.all(self.daemons) if p["spec"].get("nodeName") == name), None)
            noted = daemon["metadata"].get("annotations", {}) if daemon else {}
            workload = [phase_of(p) for p in self.all(self.pods) if p["spec"].get("nodeName") == name]
            rows[name] = {
                "node": name,
                "partition": "…" + labels[CLIQUE_LABEL][-12:] if CLIQUE_LABEL in labels else "-",
                "daemon": phase_of(daemon) if daemon else "-",
                "index": str(members[name].get("index", "-")) if name in members else "-",
                "IMEX": noted.get(IMEX + "state", "-"),
                "peers": noted.get(IMEX + "peers", "-"),
                "workload": ", ".join(workload) or "-",
            }
        if domain:
            status = domain.get("status", {})
            headline = (f"ComputeDomain {DOMAIN}: {status.get('status', 'new')}, "
                        f"{status.get('nodesReady', 0)} of {status.get('nodesWanted', 0)} nodes ready")
        else:
            headline = "no ComputeDomain"
        return headline, rows

    def log_changes(self, headline, rows, clock):
        """For logs: one line per change."""
        if headline != self.headline:
            print(f"{clock:6.1f} s  {headline}", flush=True)
        for name, row in rows.items():
            before = self.rows.get(name, {})
            changes = [f"{title} {row[title]}" for title, _ in self.columns[1:] if row[title] != before.get(title, "-")]
            if changes:
                print(f"{clock:6.1f} s  {name}: " + ", ".join(changes), flush=True)

    def draw(self, headline, rows, clock):
        colour = GREEN if ": Ready" in headline else YELLOW
        lines = [f"{colour}{headline}{OFF}   {DIM}{clock:.1f} s{OFF}",
                 BOLD + "  ".join(title.ljust(width) for title, width in self.columns) + OFF]
        for row in rows.values():
            cells = []
            for title, width in self.columns:
                good = row[title] in ("Running", "READY", "UP")
                cells.append((GREEN if good else "") + row[title][:width or None].ljust(width) + (OFF if good else ""))
            lines.append("  ".join(cells))
        sys.stdout.write((f"\033[{self.drawn}A" if self.drawn else "") + "".join(f"\033[K{line}\n" for line in lines))
        sys.stdout.flush()
        self.drawn = len(lines)

    def until(self, condition, seconds):
        """Shows what happens until the condition holds. Returns how long that took."""
        begin = time.monotonic()
        self.drawn = 0
        while True:
            clock = time.monotonic() - begin
            headline, rows = self.snapshot()
            (self.draw if self.terminal else self.log_changes)(headline, rows, clock)
            self.headline, self.rows = headline, rows
            if condition():
                return clock
            if clock > seconds:
                raise TimeoutError(f"this should have taken less than {seconds} s")
            try:
                self.events.get(timeout=0.2 if self.terminal else 1)  # the time-out only updates the clock on the screen
                while True:
                    self.events.get_nowait()
            except queue.Empty:
                pass


class HostView(View):
    """The same if the hosts run IMEX: the driver creates a claim template, and nothing else."""
    columns = HOST_COLUMNS

    def __init__(self, cluster):
        super().__init__(cluster)
        self.plugins = Watch(cluster, f"/api/v1/namespaces/{DRIVER_NS}/pods?labelSelector=app=compute-domain-kubelet-plugin",
                             lambda *_: self.events.put(True))
        self.templates = Watch(cluster, f"/apis/resource.k8s.io/v1/namespaces/{NS}/resourceclaimtemplates", lambda *_: self.events.put(True))

    def condition(self, kind):
        conditions = (self.domain() or {}).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), {"status": "Unknown", "reason": "", "message": ""})

    def host(self, node):
        """The state of the host's IMEX, as the kubelet plugin of a node reports it."""
        plugin = next((p for p in self.all(self.plugins) if p["spec"].get("nodeName") == node), None)
        return plugin["metadata"].get("annotations", {}).get(IMEX + "host-state", "-") if plugin else "-"

    def ready(self, n):
        return (sum(map(is_running, self.all(self.pods))) == n == len(self.all(self.pods))
                and (self.domain() or {}).get("status", {}).get("status") == "Ready" and self.healthy("True"))

    def healthy(self, status):
        return self.condition("HostIMEXHealthy")["status"] == status

    def deleted(self):
        return not self.all(self.pods) and not self.domain() and not self.all(self.templates)

    def snapshot(self):
        rows = {}
        for node in sorted(self.all(self.nodes), key=lambda n: n["metadata"]["name"]):
            name, labels = node["metadata"]["name"], node["metadata"].get("labels", {})
            rows[name] = {
                "node": name,
                "partition": "…" + labels[CLIQUE_LABEL][-12:] if CLIQUE_LABEL in labels else "-",
                "IMEX of the host": self.host(name),
                "workload": ", ".join(phase_of(p) for p in self.all(self.pods) if p["spec"].get("nodeName") == name) or "-",
            }
        domain = self.domain()
        if not domain:
            return "no ComputeDomain", rows
        health = self.condition("HostIMEXHealthy")
        return f"ComputeDomain {DOMAIN}: {domain.get('status', {}).get('status', 'new')}, HostIMEXHealthy {health['status']} {health['reason']}", rows


class GpuView(View):
    """The same if the driver also allocates GPUs: how many GPUs of each node have been allocated."""
    columns = (("node", 8), ("partition", 16), ("index", 6), ("IMEX", 14), ("GPUs in use", 12), ("workload", 0))

    def __init__(self, cluster):
        super().__init__(cluster)
        follow = lambda path: Watch(cluster, path, lambda *_: self.events.put(True))
        self.slices = follow("/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.driver=gpu.nvidia.com")
        self.claims = follow(f"/apis/resource.k8s.io/v1/namespaces/{NS}/resourceclaims")

    def allocated(self, node):
        """The devices of a node that are allocated to claims."""
        results = (r for c in self.all(self.claims) for r in c.get("status", {}).get("allocation", {}).get("devices", {}).get("results", []))
        return {r["device"] for r in results if r["driver"] == "gpu.nvidia.com" and r["pool"] == node}

    def snapshot(self):
        headline, rows = super().snapshot()
        for name, row in rows.items():
            offered = sum(len(s["spec"].get("devices") or []) for s in self.all(self.slices) if s["spec"].get("nodeName") == name)
            row["GPUs in use"] = f"{len(self.allocated(name))} of {offered}"
        return headline, rows

    def beside(self, names):
        """Whether these pods, which are in no ComputeDomain, run."""
        return all(any(p["metadata"]["name"] == name and is_running(p) for p in self.all(self.pods)) for name in names)

    def deleted(self):
        return super().deleted() and not self.all(self.claims)


class RackView(View):
    """The same with racks: the rack of each node, and the ComputeDomains of the racks in the namespaces of two teams."""
    columns = RACK_COLUMNS

    def __init__(self, cluster):
        super().__init__(cluster)
        follow = lambda path: Watch(cluster, path, lambda *_: self.events.put(True))
        self.slices = follow("/apis/resource.k8s.io/v1/resourceslices")
        self.other_pods = follow(f"/api/v1/namespaces/{OTHER_NS}/pods")
        self.other_domains = follow(f"/apis/resource.nvidia.com/v1beta1/namespaces/{OTHER_NS}/computedomains")

    def rack(self, node):
        devices = next((s["spec"].get("devices") or [] for s in self.all(self.slices) if s["spec"].get("nodeName") == node), [])
        return next((d["attributes"]["rack"]["string"] for d in devices if "rack" in d["attributes"]), "-")

    def snapshot(self):
        rows = {}
        for node in sorted(self.all(self.nodes), key=lambda n: n["metadata"]["name"]):
            name, labels = node["metadata"]["name"], node["metadata"].get("labels", {})
            phases = lambda watch: ", ".join(phase_of(p) for p in self.all(watch) if p["spec"].get("nodeName") == name) or "-"
            rows[name] = {
                "node": name,
                "partition": "…" + labels[CLIQUE_LABEL][-12:] if CLIQUE_LABEL in labels else "-",
                "rack": self.rack(name),
                "one team's pods": phases(self.pods),
                "another's": phases(self.other_pods),
            }
        racks = sorted(self.all(self.domains), key=lambda d: d["metadata"]["name"])
        states = [f"{d['metadata']['name']} {d.get('status', {}).get('status', 'new')}" for d in racks]
        used = sum(f.get("channelsInUse", 0) for f in self.all(self.fabrics))
        return f"ComputeDomains: {'; '.join(states) or 'none'}; channels in use on all racks: {used}", rows

    @staticmethod
    def both(domains):
        return {d["metadata"]["name"] for d in domains if d.get("status", {}).get("status") == "Ready"} == set(RACKS)

    def joined(self):
        return self.both(self.all(self.domains)) and self.both(self.all(self.other_domains))

    def ready(self, n, other=0):
        """Whether n pods run, and `other` pods of the other team, each on a node of the rack that it requests."""
        on_rack = lambda pods: all(is_running(p) and self.rack(p["spec"]["nodeName"]) == p["metadata"]["labels"]["rack"] for p in pods)
        pods, others = self.all(self.pods), self.all(self.other_pods)
        return len(pods) == n and len(others) == other and on_rack(pods) and on_rack(others)

    def empty(self, rack):
        domain = next(d for d in self.all(self.domains) if d["metadata"]["name"] == rack)
        return "resource.nvidia.com/rack-empty-since" in domain["metadata"].get("annotations", {})

    def deleted(self):
        return not any(map(self.all, (self.pods, self.other_pods, self.domains, self.other_domains)))


class Demo:
    view_class, replicas, manifest = View, 2, "deployment.yaml"

    def __init__(self, folder, keep):
        self.folder, self.keep = folder, keep
        self.kubectl = os.path.join(folder, "kubectl")
        self.cluster = Cluster(self.kubectl)
        self.view = None
        self.terminal = sys.stdout.isatty()

    def title(self, text):
        print(f"\n{BOLD}{text}{OFF}" if self.terminal else f"\n== {text}", flush=True)

    def run(self, *args, stdin=None, show=True, ns=NS):
        if show:
            print(f"$ kubectl {' '.join(args)}", flush=True)
        subprocess.run([self.kubectl, "-n", ns, *args], input=stdin, text=True, check=True, stdout=subprocess.DEVNULL)

    def channels(self, *more):
        self.title("Inside each pod: the IMEX channel")
        pods = [p for watch in (self.view.pods, *more) for p in View.all(watch)]
        for pod in sorted(pods, key=lambda p: (p["spec"].get("nodeName", ""), p["metadata"]["namespace"])):
            ns, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
            listed = subprocess.check_output([self.kubectl, "-n", ns, "exec", name, "--", "ls", "-l", "/dev/nvidia-caps-imex-channels"], text=True)
            device = [line for line in listed.splitlines() if "channel" in line]
            print(f"{pod['spec']['nodeName']}  {ns + '/' if more else ''}{name}:  " + "; ".join(device), flush=True)

    def begin(self):
        self.run("create", "namespace", NS, show=False)
        self.view = self.view_class(self.cluster)

    def tool(self, *args):
        """Runs the kubectl plugin of this build. It exits with 1 if it names a problem."""
        print(f"$ kubectl compute-domains {' '.join(args)}", flush=True)
        status = subprocess.run([self.kubectl, "compute-domains", *args], check=False).returncode
        if status not in (0, 1):
            raise RuntimeError(f"kubectl compute-domains ended with status {status}")
        print(flush=True)

    def unscheduled(self, name):
        """Whether the scheduler finds no node for the pod."""
        conditions = (c for p in self.view.all(self.view.pods) if p["metadata"]["name"] == name for c in p.get("status", {}).get("conditions", []))
        return any(c["type"] == "PodScheduled" and c["status"] == "False" for c in conditions)

    def explain(self):
        """One pod more than there are nodes, and the cause that the kubectl plugin names."""
        self.title("Each node runs one pod with a channel, so a fifth pod cannot start: kubectl compute-domains names the cause")
        self.run("scale", "deployment", WORKLOAD, "--replicas=4")
        self.view.until(lambda: self.view.ready(4), 90)
        print("$ kubectl apply -f ...    # the pod \"fifth\", with the same claim template", flush=True)
        self.run("apply", "-f", "-", stdin=FIFTH, show=False)
        self.view.until(lambda: self.unscheduled("fifth"), 60)
        self.tool("status")
        self.tool("why", "fifth", "-n", NS)
        self.tool("racks")
        self.run("delete", "pod", "fifth")
        self.run("scale", "deployment", WORKLOAD, "--replicas=3")
        self.view.until(lambda: self.view.ready(3), 90)

    def apply(self):
        with open(os.path.join(self.folder, "manifests", self.manifest)) as f:
            manifest = f.read()
        print(f"$ kubectl apply -f test/cluster/manifests/{self.manifest}    # with {self.replicas} replicas", flush=True)
        self.run("apply", "-f", "-", stdin=manifest.replace("replicas: 4", f"replicas: {self.replicas}"), show=False)

    def no_pod_started(self, before):
        """The reason for the speed: no daemon starts, because the existing daemons run IMEX for the ComputeDomain."""
        if self.view.daemon_uids() != before:
            raise RuntimeError("the Pod of a daemon started or ended in the meantime")
        print(f"daemons: {len(before)} Pods, the same as before: none was started for the ComputeDomain", flush=True)

    def life(self):
        self.begin()
        self.title("A daemon waits on each node, without IMEX, before a workload needs it")
        self.view.until(self.view.idle, 60)
        before = self.view.daemon_uids()

        self.title("A workload of two pods that share GPU memory: the ComputeDomain forms")
        self.apply()
        took = [("formed with 2 nodes", self.view.until(lambda: self.view.ready(2), 90))]
        self.no_pod_started(before)
        self.channels()

        self.title("It grows to four pods: two nodes join the running ComputeDomain")
        self.run("scale", "deployment", WORKLOAD, "--replicas=4")
        took.append(("grew from 2 to 4", self.view.until(lambda: self.view.ready(4), 90)))
        self.channels()

        self.title("It shrinks to three pods: a node leaves, and the others are not disturbed")
        self.run("scale", "deployment", WORKLOAD, "--replicas=3")
        took.append(("shrank from 4 to 3", self.view.until(lambda: self.view.ready(3), 90)))

        self.explain()
        if not self.keep:
            self.title("The workload ends: the daemons stop IMEX, and wait for the next ComputeDomain")
            self.run("delete", "deployment", WORKLOAD)
            took.append(("IMEX stopped", self.view.until(self.view.idle, 90)))
            self.run("delete", "computedomain", DOMAIN, "--wait=false")
            took.append(("deleted", self.view.until(self.view.deleted, 90)))
            self.no_pod_started(before)
        return took


FIFTH = """
apiVersion: v1
kind: Pod
metadata: {name: fifth}
spec:
  terminationGracePeriodSeconds: 0
  resourceClaims: [{name: channel, resourceClaimTemplateName: compute-domain-0-rct}]
  containers:
  - {name: main, image: "compute-domains/busybox:test", imagePullPolicy: Never, command: [sleep, "1000000"],
     resources: {claims: [{name: channel}]}}
"""


class HostDemo(Demo):
    view_class, replicas = HostView, 4

    def host_imex(self, *args):
        print(f"$ test/cluster/host-imex {' '.join(args)}    # on the host: systemctl {args[-1]} nvidia-imex", flush=True)
        subprocess.run([os.path.join(self.folder, "host-imex"), *args], check=True)

    def print_health(self):
        health = self.view.condition("HostIMEXHealthy")
        print(f"HostIMEXHealthy {health['status']} ({health['reason']}): {health['message']}", flush=True)

    def life(self):
        self.begin()
        self.title("One pod on each node, and no daemon anywhere: the hosts run nvidia-imex themselves")
        self.apply()
        took = [("started on 4 nodes", self.view.until(lambda: self.view.ready(4), 90))]
        self.channels()
        self.print_health()

        self.title("IMEX of a host stops under a running pod: the driver reports it, and only the host can restart it")
        self.host_imex("2", "stop")
        took.append(("reported as down", self.view.until(lambda: self.view.healthy("False"), 90)))
        self.print_health()
        restarts = [c["restartCount"] for p in View.all(self.view.pods) for c in p["status"]["containerStatuses"]]
        print(f"restarts of the workload's containers: {sum(restarts)}; the ComputeDomain is {self.view.domain()['status']['status']}, "
              "which does not include the state of the hosts", flush=True)
        self.host_imex("2", "start")
        took.append(("reported as up", self.view.until(lambda: self.view.healthy("True"), 90)))

        if not self.keep:
            self.title("The workload and the ComputeDomain are deleted, and so is the claim template")
            self.run("delete", "deployment", WORKLOAD)
            self.run("delete", "computedomain", DOMAIN, "--wait=false")
            took.append(("deleted", self.view.until(self.view.deleted, 90)))
        return took


class GpuDemo(Demo):
    view_class, manifest = GpuView, "gpus.yaml"

    def devices(self):
        self.title("Inside each container: the GPUs that nvidia-smi finds, and the channel")
        for pod in sorted(View.all(self.view.pods), key=lambda p: (p["spec"].get("nodeName", ""), p["metadata"]["name"])):
            for container in pod["spec"]["containers"]:
                listed = subprocess.check_output([self.kubectl, "-n", NS, "exec", pod["metadata"]["name"], "-c", container["name"], "--", "sh", "-c",
                                                "nvidia-smi -L; ls /dev/nvidia-caps-imex-channels 2>/dev/null || true"], text=True)
                print(f"{pod['spec']['nodeName']}  {pod['metadata']['name']}, {container['name']}:  " + "; ".join(listed.split("\n")[:-1]), flush=True)

    def life(self):
        self.begin()
        self.title("Two pods, each with two GPUs below one PCIe root and a channel: the ComputeDomain forms")
        self.apply()
        took = [("formed with 2 nodes", self.view.until(lambda: self.view.ready(2), 90))]
        self.devices()

        self.title("Four pods, with eight of the sixteen GPUs")
        self.run("scale", "deployment", WORKLOAD, "--replicas=4")
        took.append(("grew from 2 to 4", self.view.until(lambda: self.view.ready(4), 90)))

        self.title("Beside them: two containers that share one GPU, and a pod that requests nvidia.com/gpu without a claim")
        self.run("apply", "-f", "-", stdin=BESIDE, show=False)
        took.append(("beside them", self.view.until(lambda: self.view.beside(("shares", "counts")), 90)))
        self.devices()

        if not self.keep:
            self.title("The workloads are deleted, and all devices are free again")
            self.run("delete", "pods", "shares", "counts")
            self.run("delete", "deployment", WORKLOAD)
            self.run("delete", "computedomain", DOMAIN, "--wait=false")
            took.append(("deleted", self.view.until(self.view.deleted, 90)))
        return took


BESIDE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: shares}
spec:
  terminationGracePeriodSeconds: 0
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
  containers:
  - {name: one, image: "compute-domains/glibc:test", imagePullPolicy: Never, command: [sleep, "1000000"], resources: {claims: [{name: gpu}]}}
  - {name: two, image: "compute-domains/glibc:test", imagePullPolicy: Never, command: [sleep, "1000000"], resources: {claims: [{name: gpu}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: counts}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: main, image: "compute-domains/glibc:test", imagePullPolicy: Never, command: [sleep, "1000000"], resources: {limits: {nvidia.com/gpu: 1}}}
"""


class RackDemo(Demo):
    view_class = RackView

    def deploy(self, rack, ns=NS, replicas=2):
        print(f"$ kubectl -n {ns} apply -f ...    # a Deployment of {replicas} pods with the claim template imex-channel-{rack}, without affinity", flush=True)
        self.run("apply", "-f", "-", stdin=RACK_DEPLOYMENT.replace("RACK", rack).replace("REPLICAS", str(replicas)), show=False, ns=ns)

    def begin(self):
        self.run("create", "namespace", OTHER_NS, show=False)
        super().begin()

    def life(self):
        self.begin()
        self.title("The namespaces of two teams get a label, and then have a ComputeDomain for each rack")
        self.run("label", "namespace", NS, OTHER_NS, "resource.nvidia.com/rack-domains=enabled")
        took = [("both racks have one", self.view.until(self.view.joined, 60))]

        self.title("Pods with the claim template of a rack run on that rack only")
        self.deploy(RACKS[0])
        took.append(("started on one rack", self.view.until(lambda: self.view.ready(2), 90)))
        self.deploy(RACKS[1])
        took.append(("and on the other", self.view.until(lambda: self.view.ready(4), 90)))

        self.title("Another team on the same nodes of the first rack, with several pods per node: each team has its own channel")
        self.deploy(RACKS[0], OTHER_NS, 6)
        took.append(("side by side", self.view.until(lambda: self.view.ready(4, 6), 90)))
        self.channels(self.view.other_pods)

        if not self.keep:
            self.title("A rack is removed: its ComputeDomain records since when, and would be deleted a day later")
            self.run("delete", "deployment", RACKS[1])
            self.view.until(lambda: self.view.ready(2, 6), 60)
            print("$ test/cluster/up 2    # node-2 and node-3 are removed from the cluster", flush=True)
            subprocess.run([os.path.join(self.folder, "up"), "2"], check=True, stderr=subprocess.DEVNULL)
            took.append(("recorded as empty", self.view.until(lambda: self.view.empty(RACKS[1]), 60)))

            self.title("The workloads are deleted, and without the label of the namespaces also the ComputeDomains")
            self.run("delete", "deployment", RACKS[0])
            self.run("delete", "deployment", RACKS[0], ns=OTHER_NS)
            self.run("label", "namespace", NS, OTHER_NS, "resource.nvidia.com/rack-domains-")
            took.append(("deleted", self.view.until(self.view.deleted, 90)))
        return took


RACK_DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: RACK}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {rack: RACK}}
  template:
    metadata: {labels: {rack: RACK}}
    spec:
      terminationGracePeriodSeconds: 0
      resourceClaims: [{name: channel, resourceClaimTemplateName: imex-channel-RACK}]
      containers:
      - {name: main, image: "compute-domains/busybox:test", imagePullPolicy: Never, command: [sleep, "1000000"],
         resources: {claims: [{name: channel}]}}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--mode", choices=("driver", "host", "rack", "gpus"), default="driver",
                        help="what runs nvidia-imex; or racks; or GPUs as well")
    parser.add_argument("--keep", action="store_true", help="leave the workload running")
    args = parser.parse_args()
    demo = {"driver": Demo, "host": HostDemo, "rack": RackDemo, "gpus": GpuDemo}[args.mode](args.folder, args.keep)
    try:
        took = demo.life()
    except (TimeoutError, RuntimeError) as e:
        print(f"\ndemo: {e}; state of the cluster:", file=sys.stderr)
        subprocess.run([demo.kubectl, "-n", NS, "get", "computedomains,pods,events"], check=False, stdout=sys.stderr)
        subprocess.run([demo.kubectl, "-n", DRIVER_NS, "get", "pods", "-o", "wide"], check=False, stdout=sys.stderr)
        return 1
    demo.title("Time from each command to its result")
    for what, seconds in took:
        print(f"{what:22} {seconds:5.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
