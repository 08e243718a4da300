# SPDX-License-Identifier: Apache-2.0
"""The soak's view of the cluster: watches, processes and files, and queries about them."""

import base64
import collections
import datetime
import glob
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
TEST = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(TEST, "bench"))
from kinds import COMMENT, DAEMON, DRIVER_NS, NS, UID_LABEL, name  # noqa: E402
from kubeapi import Cluster, Watch  # noqa: E402

DRIVER, GPU_DRIVER = "compute-domain.nvidia.com", "gpu.nvidia.com"
CD_GROUP = "/apis/resource.nvidia.com/v1beta1"
DRA_GROUP = "/apis/resource.k8s.io/v1"
CLIQUE_LABEL = "nvidia.com/gpu.clique"
CONTROLLER, PLUGIN, GPU_PLUGIN = "compute-domain-controller", "compute-domain-kubelet-plugin", "gpu-kubelet-plugin"
# Exit codes of a workload's container without its channel, or with other GPUs than requested.
NO_CHANNEL, NO_GPUS = 77, 78
# The reason of a container whose program containerd has not started, for example because a restarted kubelet cancelled its request.
NOT_STARTED = "StartError"
# Valid exit codes of our containers: after an end by themselves, by a signal of the soak, or with their node. If a container gets SIGTERM
# before our program has replaced runc's own process, it ends with 2 and no message.
HARMLESS_ENDS = (0, 137, 143, 255)
ENDED_AS_RUNC = 2
ANY_ID = re.compile(r"(?<=kube-api-access-)\w+|[0-9a-f]{64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Folders of a node with mounts of pods and containers. Other mounts in /run/netns belong to the machine and to nodes that have lost power.
MOUNTS = ("/run/containerd/", "/run/netns/cni-", "/run/nvidia", "/var/lib/kubelet/")
JUST_NOW_S, LONG_AGO_S = 30, 600  # the ages of backups that are restored
FDS_OF_WORKER = 3  # of a plugin for its worker: a socket and two pipes
LOST_THE_LEASE = "leadership is lost"  # the only valid reason for which our program ends by itself, and only if a fault explains it


def workers_of(pid):
    """The number of this process's workers that call NVML."""
    n = 0
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            parent = int(open(stat).read().rpartition(")")[2].split()[1])
            n += parent == int(pid) and b"\0nvml-worker\0" in open(stat[:-len("stat")] + "cmdline", "rb").read()
        except OSError:
            continue
    return n


def alive(o):
    return "deletionTimestamp" not in o["metadata"]


def containers(pod):
    return pod.get("status", {}).get("containerStatuses", [])


def runs(pod):
    return alive(pod) and bool(containers(pod)) and all(c.get("ready") for c in containers(pod)) and pod["status"]["phase"] == "Running"


def node_of(pod):
    return pod["spec"].get("nodeName")


def container_ids(pod):
    return {c.get("containerID") for c in containers(pod)}


def condition(o, kind):
    return next((c["status"] for c in o.get("status", {}).get("conditions", []) if c["type"] == kind), None)


class Audit:
    """The driver's requests to the API server, from its audit log. An informer is identified by its pod, its path and its selectors."""

    def __init__(self, path):
        self.path, self.offset = path, 0
        self.watches = {}     # id of an open request: informer
        self.listed = {}      # informer: time of its first list since the API server started
        self.first = None     # time of the API server's first answer
        self.lock = threading.Lock()

    def watching(self):
        self.read()
        with self.lock:
            return set(self.watches.values())

    def server_ended(self):
        """Call it when the API server has ended: the server does not record the end of each watch that it aborts."""
        self.read()
        with self.lock:
            self.watches, self.listed, self.first = {}, {}, None

    def read(self):
        with self.lock, open(self.path, "rb") as f:
            f.seek(self.offset)
            for line in f:
                if not line.endswith(b"\n"):
                    break
                self.offset += len(line)
                self.take(line)

    @staticmethod
    def seconds(stamp):
        return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()

    def take(self, line):
        if self.first is not None and b'"verb":"list"' not in line and b'"verb":"watch"' not in line:
            return
        event = json.loads(line)
        self.first = self.first or self.seconds(event["stageTimestamp"])
        user, verb = event["user"], event["verb"]
        if verb not in ("list", "watch") or not user["username"].startswith(f"system:serviceaccount:{DRIVER_NS}:"):
            return
        pod = user.get("extra", {}).get("authentication.kubernetes.io/pod-name", ["?"])[0]
        uri = urllib.parse.urlsplit(event["requestURI"])
        query = urllib.parse.parse_qs(uri.query)
        # A process that started behind an error page may use an older version of an API than its successor.
        path = re.sub(r"^(/apis/[^/]+)/[^/]+", r"\1", uri.path)
        informer = pod, path, *(query.get(selector, [""])[0] for selector in ("labelSelector", "fieldSelector"))
        if verb == "watch" and event["stage"] == "ResponseStarted":
            self.watches[event["auditID"]] = informer
        elif verb == "watch":
            self.watches.pop(event["auditID"], None)
        elif event["stage"] == "ResponseComplete" and event["responseStatus"]["code"] == 200:
            self.listed.setdefault(informer, self.seconds(event["requestReceivedTimestamp"]))


class World:
    def __init__(self, state, nodes, kind):
        self.state, self.n_nodes, self.kind = state, nodes, kind
        self.commands = os.path.join(TEST, "cluster")
        self.k = Cluster(os.path.join(self.commands, "kubectl"))
        self.news = threading.Event()
        self.violations = []
        self.lease_may_be_lost = lambda: True
        self.imex_may_end = lambda node: True
        self.domain_may_go = lambda cd: True
        self.ends = set()  # ids of our containers whose end was seen
        self.api_up = True
        self.audit = Audit(os.path.join(state, "control", "audit.log"))
        self.mounts_at_start = None
        self.snapshots, self.restores = [], 0  # (time, file) of etcd, oldest first
        self.chart_mark = None  # annotation of the driver's pods since the last upgrade of the chart

        def follow(path, look=None):
            def on_event(kind, o, arrived):
                if look:
                    look(kind, o)
                self.news.set()
            return Watch(self.k, path, on_event)

        self.indices = {}  # (UID of a fabric object, epoch): the (domain, node, index) of the assignment
        self.pods = follow(f"/api/v1/namespaces/{NS}/pods", self.look_at_workload)
        self.ours = follow(f"/api/v1/namespaces/{DRIVER_NS}/pods", self.look_at_ours)
        self.nodes = follow("/api/v1/nodes")
        self.domains = follow(f"{CD_GROUP}/computedomains")
        self.fabrics = follow(f"{CD_GROUP}/computedomainfabrics", self.look_at_fabric)
        self.claims = follow(f"{DRA_GROUP}/resourceclaims")
        self.templates = follow(f"{DRA_GROUP}/resourceclaimtemplates")
        self.slices = follow(f"{DRA_GROUP}/resourceslices")
        self.sets = follow(f"/apis/apps/v1/namespaces/{DRIVER_NS}/daemonsets")
        self.leases = follow(f"/apis/coordination.k8s.io/v1/namespaces/{DRIVER_NS}/leases")

    # ---- violations ----

    def violation(self, text):
        if text not in self.violations:
            self.violations.append(text)
            print("VIOLATED: " + text, flush=True)
            self.news.set()

    def look_at_workload(self, kind, pod):
        for c in containers(pod):
            for when in ("state", "lastState"):
                code = c.get(when, {}).get("terminated", {}).get("exitCode")
                if code in (NO_CHANNEL, NO_GPUS):
                    self.violation(f"pod {name(pod)} ran on {node_of(pod)} without its {'channel' if code == NO_CHANNEL else 'GPUs'}")

    def look_at_ours(self, kind, pod):
        for c in containers(pod):
            end = c.get("lastState", {}).get("terminated") or c.get("state", {}).get("terminated")
            if not end or end["exitCode"] in HARMLESS_ENDS or (end["exitCode"] == ENDED_AS_RUNC and not end.get("message")):
                continue
            if end.get("reason") == NOT_STARTED:
                continue
            if end.get("containerID") in self.ends:
                continue  # reported again at each later change of the pod
            self.ends.add(end.get("containerID"))
            if LOST_THE_LEASE in end.get("message", ""):
                if not self.lease_may_be_lost():
                    self.violation(f"{name(pod)} lost its Lease although no fault prevented the renewal")
            else:
                self.violation(f"container {c['name']} of {name(pod)} on {node_of(pod)} ended with {end['exitCode']}: {end.get('message', '')[-300:]}")

    def look_at_fabric(self, kind, fabric):
        """No index is assigned twice, no node is active in two domains, and an epoch always has the same meaning."""
        uid, active = fabric["metadata"]["uid"], {}
        if kind == "DELETED" or fabric.get("tableOf") != uid:
            return
        for domain in fabric.get("domains") or []:
            whose, taken = domain["owner"].get("name") or domain["owner"]["uid"], {}
            for a in domain.get("assignments") or []:
                node, index, state = a["node"], a["index"], a.get("state") or ""
                # Two leaving nodes may have run with the same index before etcd was restored.
                if state in ("", "Reserved") and taken.setdefault(index, node) != node:
                    self.violation(f"fabric object {name(fabric)}: index {index} of {whose} is assigned to {taken[index]} and {node}")
                if not state and active.setdefault(node, whose) != whose:
                    self.violation(f"fabric object {name(fabric)}: {node} is active in {active[node]} and {whose}")
                if state == "Reserved":
                    continue  # its epoch has ended
                given = self.indices.setdefault((uid, a["epoch"]), (domain["owner"]["uid"], node, index))
                if given != (domain["owner"]["uid"], node, index):
                    self.violation(f"fabric object {name(fabric)}: epoch {a['epoch']} was assigned to {given}, and now belongs to {node} with index {index} of {whose}")

    def look_at_claims(self):
        """No claim is unprepared while its container runs. The file exists longer than the container, so the container is checked after the file."""
        for pod in self.all(self.pods):
            node, uid = node_of(pod), pod["metadata"]["uid"]
            if not node or not runs(pod):
                continue
            for claim in self.all(self.claims):
                if not any(o["uid"] == uid for o in claim["metadata"].get("ownerReferences") or []):
                    continue
                files = os.path.join(self.state, "nodes", node.rsplit("-", 1)[1], "run/cdi", f"*claim_{claim['metadata']['uid']}*")
                if not glob.glob(files) and self.processes("sleep", uid):
                    self.violation(f"the claim {name(claim)} of {name(pod)} is unprepared on {node} while its container runs")

    # ---- queries ----

    @staticmethod
    def all(watch):
        with watch.changed:
            return list(watch.objects.values())

    def of_app(self, app):
        return [p for p in self.all(self.ours) if p["metadata"].get("labels", {}).get("app") == app]

    def daemons(self):
        return [p for p in self.of_app("imex-daemon") if runs(p)]

    def controller_account(self):
        spec = self.k.get(f"/apis/apps/v1/namespaces/{DRIVER_NS}/deployments/compute-domains-controller")["spec"]
        return spec["template"]["spec"]["serviceAccountName"]

    def plugin_on(self, node):
        return next((p for p in self.of_app(PLUGIN) if node_of(p) == node and alive(p)), None)

    def lease(self):
        return next((lease for lease in self.all(self.leases) if "controller" in name(lease)), {"spec": {}})["spec"]

    def leader(self):
        holder = self.lease().get("holderIdentity") or ""
        return next((p for p in self.of_app(CONTROLLER) if holder.startswith(name(p))), None)

    def domain(self, cd):
        return next((d for d in self.all(self.domains) if name(d) == cd and d["metadata"]["namespace"] == NS), None)

    def workload_pods(self, workload):
        return [p for p in self.all(self.pods) if p["metadata"].get("labels", {}).get("workload") == workload]

    def clique_of(self, node):
        """The clique ID of each device in the node's slice, None for a device without one."""
        return [d.get("attributes", {}).get("cliqueID", {}).get("string")
                for s in self.all(self.slices) if s["spec"].get("nodeName") == node and s["spec"]["driver"] == DRIVER for d in s["spec"].get("devices") or []]

    def outdated(self, cd, workload):
        """Pods that wait with a claim of a ComputeDomain that was deleted, and recreated with its name. Kubernetes can still create such a claim
        shortly after, from a template in its cache. The plugin's message asks the owner to recreate the pod."""
        living = self.domain(cd)
        if not living or not alive(living):
            return []
        uids = {d["metadata"]["uid"] for d in self.all(self.domains)}
        old = {owner["uid"] for claim in self.all(self.claims) for config in claim["spec"]["devices"].get("config") or []
               if config["opaque"]["parameters"].get("domainID") not in uids | {None}
               for owner in claim["metadata"].get("ownerReferences") or []}
        return [p for p in self.workload_pods(workload) if alive(p) and not runs(p) and p["metadata"]["uid"] in old]

    def delete_pod(self, pod):
        self.k.delete(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{name(pod)}")

    def missing(self, cd, workload, replicas):
        """What is missing for a workload to run, None if nothing."""
        pods = [p for p in self.workload_pods(workload) if alive(p)]
        running = [p for p in pods if runs(p)]
        if len(running) != replicas or len(pods) != replicas:
            return f"{workload}: {len(running)} of {replicas} pods run ({', '.join(sorted(name(p) + ' on ' + str(node_of(p)) for p in pods if not runs(p)))})"
        o = self.domain(cd)
        if not o or not alive(o):
            return f"{cd}: the ComputeDomain does not exist"
        return self.kind.is_well(o, sorted(map(node_of, running)), condition, self)

    def prepared(self):
        """{node: {claim: (ComputeDomain, channel, clique)}} of workloads' channels, from their CDI files; without an assigned channel the last two
        are None."""
        found = {}
        for path in glob.glob(os.path.join(self.state, "nodes", "*", "run/cdi", f"*{DRIVER}-claim_*")):
            try:
                said = COMMENT.match(open(path).readline())
            except OSError:
                continue
            if said:
                claim = re.search(r"claim_([^.]*)", os.path.basename(path)).group(1)
                found.setdefault("node-" + path.split(os.sep)[-4], {})[claim] = said.groups()
        return found

    # ---- processes ----

    @staticmethod
    def processes(program, pod_uid=None):
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            folder = os.path.dirname(path)
            try:
                words = open(path, "rb").read().split(b"\0")
                # The daemon asks its nvidia-imex for the version before it starts it.
                if os.path.basename(words[0].decode(errors="replace")) != program or b"--version" in words:
                    continue
                if pod_uid and pod_uid not in open(folder + "/cgroup").read():
                    continue
            except OSError:
                continue
            found.append(int(os.path.basename(folder)))
        return found

    def of_pod(self, pod, program):
        return self.processes(program, pod["metadata"]["uid"])

    def plugins_of_pod(self, pod):
        """The PIDs of both plugins."""
        return self.of_pod(pod, PLUGIN) + self.of_pod(pod, GPU_PLUGIN)

    def figures(self):
        """{(program, pod): (private dirty MB, descriptors)} of controllers, plugins and daemons. Workers that call NVML start and end all the time, so
        a plugin's descriptors for them do not count."""
        found = {}
        for program, app in ((CONTROLLER, CONTROLLER), (PLUGIN, PLUGIN), (GPU_PLUGIN, PLUGIN), (DAEMON, "imex-daemon")):
            for pod in self.of_app(app):
                for pid in self.of_pod(pod, program):
                    try:
                        text = open(f"/proc/{pid}/smaps_rollup").read()
                        fds = len(os.listdir(f"/proc/{pid}/fd")) - FDS_OF_WORKER * workers_of(pid)
                    except OSError:
                        continue
                    found[(program, name(pod))] = (int(re.search(r"^Private_Dirty:\s+(\d+) kB", text, re.M).group(1)) / 1024, fds)
        return found

    # ---- commands of the test cluster ----

    def command(self, what, *args):
        path = os.path.join(self.commands, what)
        done = subprocess.run([path, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{what} {' '.join(map(str, args))}: {done.stdout}{done.stderr}")
        return done.stdout

    def knob(self, node, *pairs):
        program = os.path.join(os.path.dirname(TEST), "build", "test", "standin", "standin-knob")
        k = node.rsplit("-", 1)[1]
        subprocess.run([program, os.path.join(self.state, "nodes", k, "run/nvidia/driver/usr/bin/nvidia-imex"), *pairs], check=True, capture_output=True)

    def etcd(self, call, body):
        url = urllib.request.Request("http://127.0.0.1:23790/v3/kv/" + call, json.dumps(body).encode())
        return json.loads(urllib.request.urlopen(url, timeout=10).read())

    def compact(self):
        """Compacts etcd up to the last version, as the API server does every five minutes."""
        self.etcd("compaction", {"revision": self.revision(), "physical": True})

    def revision(self):
        return int(self.etcd("range", {"key": base64.b64encode(b"x").decode()})["header"]["revision"])

    def take_snapshot(self):
        """Makes a backup of etcd. Keeps those of the last ten minutes, and one older backup."""
        folder, now = os.path.join(self.state, "snapshots"), time.monotonic()
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"{now:.0f}.db")
        self.command("etcd", "snapshot", path)
        self.snapshots.append((now, path))
        while len(self.snapshots) > 1 and now - self.snapshots[1][0] > LONG_AGO_S:
            os.remove(self.snapshots.pop(0)[1])

    def snapshot_of(self, seconds_ago):
        """(age, file) of the newest backup with at least this age, otherwise of the oldest."""
        now = time.monotonic()
        when, path = ([s for s in self.snapshots if now - s[0] >= seconds_ago] or self.snapshots[:1])[-1]
        return now - when, path

    def pass_revision(self, newest):
        """Makes writes until the version is higher than this one."""
        conn = http.client.HTTPConnection("127.0.0.1", 23790, timeout=10)
        body = json.dumps({"key": base64.b64encode(b"soak").decode(), "value": ""})
        for _ in range(newest - self.revision() + 1):
            conn.request("POST", "/v3/kv/put", body)
            conn.getresponse().read()

    # ---- leftovers after everything was deleted ----

    def leftovers(self):
        def of(kind, watch):
            return (o for o in self.all(watch) if not self.kind.excuses(kind, o, self))

        left = [f"ComputeDomain {name(o)}" for o in of("ComputeDomain", self.domains)]
        left += [f"ResourceClaim {o['metadata']['namespace']}/{name(o)}" for o in of("ResourceClaim", self.claims)]
        left += [f"ResourceClaimTemplate {o['metadata']['namespace']}/{name(o)} (finalizers {o['metadata'].get('finalizers')})"
                 for o in of("ResourceClaimTemplate", self.templates)]
        left += [f"pod {name(o)}" for o in self.all(self.pods)]
        left += [f"daemon pod {name(o)} on {node_of(o)}" for o in self.of_app("imex-daemon") if not self.kind.excuses("pod", o, self)]
        left += [f"label of {name(o)}" for o in self.all(self.nodes) if UID_LABEL in o["metadata"].get("labels", {})]
        left += self.kind.left(self)
        kept = {o["metadata"]["uid"] for o in self.all(self.claims) if self.kind.excuses("ResourceClaim", o, self)}
        for k in range(self.n_nodes):
            left += [f"node-{k}: {text}" for text in self.files_on(k, kept)]
        if self.mounts_at_start is not None:
            left += [f"{n} more mounts on {path} than at the start" for path, n in (self.mounts() - self.mounts_at_start).items()]
        for program in self.kind.ends_with_the_last:
            left += [f"process {pid} ({program})" for pid in self.processes(program) if self.is_of_cluster(pid)]
        return left

    def mounts(self):
        """The number of each mount point in the nodes' namespaces, without ids of pods and containers."""
        found = collections.Counter()
        for k in range(self.n_nodes):
            try:
                pid = open(os.path.join(self.state, "nodes", str(k), "kubelet.pid")).read().strip()
                lines = open(f"/proc/{pid}/mountinfo").read().splitlines()
            except OSError:
                continue
            points = (line.split()[4] for line in lines)
            found.update(ANY_ID.sub("*", point) for point in points if point.startswith(MOUNTS))
        return found

    def is_of_cluster(self, pid):
        try:
            return f"/{os.path.basename(self.state)}/" in open(f"/proc/{pid}/cgroup").read()
        except OSError:
            return False

    def files_on(self, k, kept):
        """Files and entries that do not belong to these claims."""
        plugins = os.path.join(self.state, "nodes", str(k), "kubelet/plugins")
        plugin = os.path.join(plugins, DRIVER)
        stays = self.kind.stays_in_folder(f"node-{k}", self)
        left = [f"CDI file {os.path.basename(p)}" for p in glob.glob(os.path.join(self.state, "nodes", str(k), "run/cdi", "*claim_*"))
                if not any(uid in p for uid in kept)]
        left += [f"folder of domain {os.path.basename(p)}" for p in glob.glob(os.path.join(plugin, "domains", "*"))
                 if os.path.basename(p) not in stays]
        for driver in (DRIVER, GPU_DRIVER):
            left += [f"temporary file {os.path.basename(p)}" for p in glob.glob(os.path.join(plugins, driver, ".*tmp*"))]
            try:
                claims = json.load(open(os.path.join(plugins, driver, "checkpoint.json")))["v2"].get("preparedClaims") or {}
            except (OSError, ValueError, KeyError) as e:
                left.append(f"checkpoint.json of {driver}: {e!r}")
                continue
            left += [f"checkpoint entry {uid} of {driver} ({c.get('checkpointState')})" for uid, c in claims.items() if uid not in kept]
        return left
