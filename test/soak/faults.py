# SPDX-License-Identifier: Apache-2.0
"""The faults that strike during the soak.

A fault is a generator. It does harm, yields how long that lasts, and removes the cause; the product must heal. It yields seconds, or a function that
returns a description of what it waits for, and None when the wait has ended. It returns the evidence: such a function, too, about the part that was
struck. A fault that does not apply returns before it yields."""

import json
import math
import os
import signal
import subprocess
import sys
import time

from kinds import DAEMON, DAEMON_LABEL, DRIVER_NS, NS, UID_LABEL, is_daemon, name
from world import CD_GROUP, CONTROLLER, DRA_GROUP, DRIVER, GPU_PLUGIN, JUST_NOW_S, LONG_AGO_S, PLUGIN, TEST, alive, container_ids, containers, node_of, runs

WHOLE = lambda: None  # noqa: E731
LIST_LIMIT_S = 180  # the time in which informers must list after the API server has served a restored etcd


class Hit:
    """One strike: its inputs and results."""

    def __init__(self, world, rng, workloads, busy, apply):
        self.w, self.k, self.rng, self.workloads = world, world.k, rng, workloads
        self.what = ""       # the struck part, for messages
        self.affects = None  # names of the workloads that must heal; None: all
        self.result = ""     # an additional result, for the log
        self.nodes = set()   # no other fault may strike these in the meantime
        self.busy = busy     # nodes that other faults strike
        self.apply = apply   # updates the workloads in the API server to those of workloads()

    def choose(self, things):
        things = list(things)
        return self.rng.choice(things) if things else None

    def free_node(self, spare=False):
        """A node without a fault. The plugin of one node is spared, so that its resources at the end are those of a long life."""
        nodes = sorted(name(n) for n in self.w.all(self.w.nodes) if name(n) not in self.busy)
        node = self.choose(n for n in nodes if not spare or n != f"node-{self.w.n_nodes - 1}")
        if node:
            self.on_node(node)
        return node

    def on_node(self, node):
        self.what, self.affects = node, {w for w in self.workloads() if any(node_of(p) == node for p in self.w.workload_pods(w))}
        self.nodes = {node}

    def some_daemon(self):
        pod = self.choose(sorted((p for p in self.w.daemons() if node_of(p) not in self.busy), key=name))
        if pod:
            self.on_node(node_of(pod))
        return pod

    def some_plugin(self):
        node = self.free_node(spare=True)
        return self.w.plugin_on(node) if node else None

    def some_workload(self):
        workload = self.choose(sorted(self.workloads()))
        if workload:
            self.what, self.affects = workload, {workload}
        return workload

    def delete(self, pod):
        self.w.delete_pod(pod)

    def kill(self, pids, how=signal.SIGKILL):
        for pid in pids:
            try:
                os.kill(pid, how)
            except ProcessLookupError:
                pass

    def other_container(self, watch, pod, container=None):
        """Evidence: the pod is deleted, or runs with other containers than now, or with another one of that name."""
        ended = {c.get("containerID") for c in containers(pod) if c["name"] == container}
        before, key = ended or container_ids(pod), (pod["metadata"]["namespace"], name(pod))

        def missing():
            now = watch.objects.get(key)
            return f"{name(pod)} has not restarted" if now and (container_ids(now) & before or not (runs(now) or not alive(now))) else None
        return missing

    def replaced(self, app, node):
        def missing():
            if node not in {name(n) for n in self.w.all(self.w.nodes)}:
                return None
            return None if any(runs(p) and node_of(p) == node for p in self.w.of_app(app)) else f"no {app} runs on {node}"
        return missing

    def controller_works(self):
        """Evidence: a controller has renewed the Lease since now, and leads."""
        before = self.w.lease().get("renewTime")

        def missing():
            leader = self.w.leader()
            return None if leader and runs(leader) and self.w.lease().get("renewTime") != before else "no controller leads"
        return missing


def both(*evidence):
    return lambda: next(filter(None, (e() for e in evidence)), None)


# ---- our programs ----

def controller_killed(h):
    pod = h.w.leader()
    if not pod:
        return None
    h.what = name(pod)
    h.kill(h.w.of_pod(pod, CONTROLLER))
    yield 0
    return both(h.other_container(h.w.ours, pod), h.controller_works())


# failure: a controller hangs longer than its Lease, among other faults -> the other one leads [soak]
def controller_hangs(h):
    """Sometimes longer than the duration of its Lease: then the other controller leads, and this one must notice that it no longer leads."""
    pod = h.w.leader()
    if not pod:
        return None
    h.what, pids = name(pod), h.w.of_pod(pod, CONTROLLER)
    h.kill(pids, signal.SIGSTOP)
    yield h.rng.uniform(2, 25)
    h.kill(pids, signal.SIGCONT)
    return h.controller_works()


def controllers_deleted(h):
    for pod in h.w.of_app(CONTROLLER):
        h.delete(pod)
    yield 0
    return h.controller_works()


def plugin_killed(h):
    pod = h.some_plugin()
    if not pod:
        return None
    h.kill(h.w.plugins_of_pod(pod))
    yield 0
    return h.other_container(h.w.ours, pod)


def gpu_plugin_killed(h):
    """The other plugin still runs."""
    pod = h.some_plugin()
    if not pod:
        return None
    h.kill(h.w.of_pod(pod, GPU_PLUGIN))
    yield 0
    return h.other_container(h.w.ours, pod, "gpus")


def plugin_deleted(h):
    pod = h.some_plugin()
    if not pod:
        return None
    h.delete(pod)
    yield 0
    return both(h.other_container(h.w.ours, pod), h.replaced(PLUGIN, node_of(pod)))


def plugin_finds_garbage(h):
    """The plugin is killed, and its checkpoint is damaged before it restarts."""
    pod = h.some_plugin()
    if not pod:
        return None
    path = os.path.join(h.w.state, "nodes", node_of(pod).rsplit("-", 1)[1], "kubelet/plugins", DRIVER, "checkpoint.json")
    h.kill(h.w.plugins_of_pod(pod))
    with open(path, "r+b") as f:
        whole = f.read()
        f.truncate(h.rng.randrange(len(whole)))
        if h.rng.random() < 0.5:
            f.seek(h.rng.randrange(len(whole)))
            f.write(h.rng.randbytes(20))
    yield 0
    return h.other_container(h.w.ours, pod)


# failure: the plugin's disk turns read-only, among other faults -> nothing is prepared without a record
#   [soak]
def plugin_disk_read_only(h):
    """As a file system becomes read-only after an I/O error: nothing can be recorded, so nothing may be prepared."""
    pod = h.some_plugin()
    pids = pod and h.w.of_pod(pod, PLUGIN)
    if not pids:
        return None

    folder, there = f"/var/lib/kubelet/plugins/{DRIVER}", ["-N", str(pids[0])]
    subprocess.run(["mount", *there, "--bind", "-o", "ro", folder, folder], check=True, capture_output=True)
    yield h.rng.uniform(1, 20)
    # Not with umount, which needs /proc there. If the process has ended, its mounts have, too.
    undone = subprocess.run(["mount", *there, "-o", "remount,bind,rw", folder], capture_output=True, text=True)
    if undone.returncode and os.path.exists(f"/proc/{pids[0]}/ns/mnt"):
        raise RuntimeError(f"{folder} stays read-only on {node_of(pod)}: {undone.stderr.strip()}")
    return WHOLE


# failure: a second plugin process runs on a node, among other faults -> all workloads recover [soak]
def second_plugin(h):
    """An earlier process that does not end, or one that somebody starts. Afterwards a new process serves the kubelet."""
    pod = h.some_plugin()
    if not pod:
        return None
    node, root = node_of(pod), "/run/nvidia/driver"
    program = os.path.join(os.path.dirname(TEST), "build", "src", "cd_plugin", PLUGIN)
    second = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", os.path.join(h.w.commands, "node"), node.rsplit("-", 1)[1], program, f"--node-name={node}",
         f"--namespace={DRIVER_NS}", f"--nvidia-driver-root={root}", f"--driver-root-ctr-path={root}",
         f"--alt-proc-devices-path={root}/proc/devices", "--cdi-root=/var/run/cdi", *h.w.kind.plugin_flags],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield h.rng.uniform(2, 20)
    second.send_signal(h.rng.choice([signal.SIGTERM, signal.SIGKILL]))
    second.wait()
    h.delete(pod)
    return both(h.other_container(h.w.ours, pod), h.replaced(PLUGIN, node))


def chart_upgraded(h):
    """Every controller and plugin is replaced. A daemon, whose template changes too, is replaced only while it is idle."""
    mark = str(h.rng.randrange(10 ** 9))
    h.what = f"mark {mark}"
    h.w.chart_mark = mark  # the last upgrade counts, also for earlier ones
    h.w.command("helm", "upgrade", "compute-domains", os.path.join(os.path.dirname(TEST), "deploy/chart/compute-domains"), "--namespace", DRIVER_NS,
                "--reuse-values", "--set", f"logVerbosity={h.rng.randint(1, 4)}", "--set-string",
                f"controller.podAnnotations.soak=m{mark},kubeletPlugin.podAnnotations.soak=m{mark}")
    yield 0

    def missing():
        pods = h.w.of_app(CONTROLLER) + h.w.of_app(PLUGIN)
        return next((f"{name(p)} is not of the new version, or does not run" for p in pods
                     if p["metadata"].get("annotations", {}).get("soak") != f"m{h.w.chart_mark}" or not runs(p)), None)
    return both(missing, *(h.replaced(PLUGIN, name(n)) for n in h.w.all(h.w.nodes)))


def daemon_killed(h):
    pod = h.some_daemon()
    if not pod:
        return None
    h.kill(h.w.of_pod(pod, DAEMON))
    yield 0
    return h.other_container(h.w.ours, pod)


def daemon_deleted(h):
    """The daemon serves until no claim of its domain is prepared on its node, however long that takes, and then ends."""
    pod = h.some_daemon()
    if not pod:
        return None
    key, node = (DRIVER_NS, name(pod)), node_of(pod)
    h.delete(pod)
    yield 0

    def missing():
        if key in h.w.ours.objects:
            return None if h.w.prepared().get(node) else f"{name(pod)} does not end although no claim is prepared on {node}"
        return h.replaced("imex-daemon", node)()
    return missing


def imex_again(h, pod, before):
    key = (DRIVER_NS, name(pod))

    def missing():
        if key not in h.w.ours.objects or not alive(h.w.ours.objects[key]):
            return None
        return None if set(h.w.of_pod(pod, "nvidia-imex")) - before else f"nvidia-imex of {name(pod)} has not restarted"
    return missing


def imex_killed(h):
    pod = h.some_daemon()
    pids = pod and h.w.of_pod(pod, "nvidia-imex")
    if not pids:
        return None
    h.kill(pids, h.rng.choice([signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM]))
    yield 0
    return imex_again(h, pod, set(pids))


def imex_crashes_in_a_loop(h):
    pod = h.some_daemon()
    pids = pod and h.w.of_pod(pod, "nvidia-imex")
    if not pids:
        return None
    node = node_of(pod)
    h.w.knob(node, *h.rng.choice([["CRASH_AFTER_MS=200"], ["REFUSE_START=no"]]))
    h.kill(pids)
    yield h.rng.uniform(3, 12)
    h.w.knob(node, "CRASH_AFTER_MS=", "REFUSE_START=")
    return imex_again(h, pod, set(h.w.of_pod(pod, "nvidia-imex")) | set(pids))


# ---- Kubernetes ----

def api_server_gone(h):
    """Sometimes the version from which a watch could resume is compacted, so it must list again."""
    h.w.api_up = False
    h.w.command("apiserver", h.rng.choice(["stop", "kill"]))
    h.w.audit.server_ended()
    if h.rng.random() < 0.5:
        h.w.compact()
    yield h.rng.uniform(0, 20)
    h.w.command("apiserver", "start")
    h.w.api_up = True
    return h.controller_works()


def informers_listed(h, before):
    """Evidence: each informer with a watch before or since has listed within three minutes, unless its pod has ended."""
    def missing():
        audit, since = h.w.audit, h.w.audit.watching()
        end = audit.first + LIST_LIMIT_S
        late = sorted(i for i in before | since if audit.listed.get(i, math.inf) > (end if i in before else sys.float_info.max))
        pods = {name(p) for p in h.w.all(h.w.ours) if runs(p)}
        late = [" ".join(filter(None, i)) for i in late if i[0] in pods]
        if late and time.time() > end:
            h.w.violation(f"{len(late)} informers did not list within {LIST_LIMIT_S} s after the restore of etcd: {'; '.join(late)}")
        times = [audit.listed[i] - audit.first for i in before if i[0] in pods and i in audit.listed]
        if not late:
            h.result = f"; {len(times)} of them still run and have listed, the last {max(times, default=0):.1f} s after the API server's first answer"
        return f"{len(late)} informers have not listed, for example {late[0]}" if late else None
    return missing


def age_of_backup(world):
    return (JUST_NOW_S, LONG_AGO_S)[world.restores % 2]


def ready(world, fault):
    """True if a planned fault can strike. No backup is made during actions of users that a restore must not interrupt."""
    age = age_of_backup(world)
    return bool(world.snapshots) and (age == LONG_AGO_S or age <= world.snapshot_of(age)[0] < 2 * age)


# failure: etcd is restored, among other faults -> every informer lists within three minutes [soak]
def etcd_restored(h):
    """The first backup is half a minute old, the second ten minutes. Sometimes the versions then pass those that watches have seen."""
    age, path = h.w.snapshot_of(age_of_backup(h.w))
    h.w.restores += 1
    # Pods that are younger than the backup end, and older ones restart with all their objects.
    h.nodes = set() if h.w.kind.hosts_run_imex else {name(n) for n in h.w.all(h.w.nodes)}
    newest, watching = h.w.revision(), h.w.audit.watching()
    h.w.api_up = False
    h.w.command("apiserver", h.rng.choice(["stop", "kill"]))
    h.w.audit.server_ended()
    h.w.indices.clear()
    h.w.command("etcd", "restore", path)
    h.w.api_up = True
    lost = newest - h.w.revision()
    passes = lost < 5000 and h.rng.random() < 0.5
    h.what = f"a backup of {age:.0f} s ago, {lost} versions lost{', and passed at once' if passes else ''}, {len(watching)} informers"
    yield h.rng.uniform(0, 10)
    if passes:
        h.w.pass_revision(newest)
    h.apply()
    return both(h.controller_works(), informers_listed(h, watching))


def pages(h, code):
    """Another server answers pods instead of the API server, as a load balancer without its servers. This must have no effect (World.look_at_claims)."""
    h.w.command("front", code)
    yield h.rng.uniform(1, 30)
    h.w.command("front", "off")
    return h.controller_works()


def pages_404_in_place_of_the_api_server(h):
    return (yield from pages(h, 404))


def pages_403_in_place_of_the_api_server(h):
    return (yield from pages(h, 403))


def pages_503_in_place_of_the_api_server(h):
    return (yield from pages(h, 503))


def kubelet_restarted(h):
    node = h.free_node()
    if not node:
        return None
    k = node.rsplit("-", 1)[1]
    h.w.command("kubelet", k, h.rng.choice(["stop", "kill"]))
    yield h.rng.uniform(0, 10)
    h.w.command("kubelet", k, "start")
    return WHOLE


def node_cut_off(h):
    node = h.free_node()
    if not node:
        return None
    k = node.rsplit("-", 1)[1]
    h.w.command("link", k, "down")
    yield h.rng.uniform(1, 20)
    h.w.command("link", k, "up")
    return WHOLE


# failure: a node loses its power, among other faults -> all its workloads run again [soak]
def node_loses_power(h):
    node = h.free_node(spare=True)
    if not node:
        return None
    k = node.rsplit("-", 1)[1]
    here = [(watch, p) for watch in (h.w.pods, h.w.ours) for p in h.w.all(watch) if node_of(p) == node]
    h.w.command("power", k, "off")
    yield h.rng.uniform(0, 15)
    h.w.command("power", k, "on")
    h.w.kind.joined(h.w, node)
    return both(*(h.other_container(watch, p) for watch, p in here))


# failure: a Node is deleted for good, among other faults -> the others recover, and another may join [soak]
def node_gone_for_good(h):
    """The Node is deleted, and everything that was bound to it. Later another node joins with its name."""
    node = h.free_node(spare=True)
    if not node:
        return None
    k = node.rsplit("-", 1)[1]
    h.w.command("power", k, "off")
    h.k.delete(f"/api/v1/nodes/{node}")
    yield lambda: next((f"{name(p)} is still bound to {node}" for watch in (h.w.pods, h.w.ours) for p in h.w.all(watch) if node_of(p) == node), None)
    h.w.command("power", k, "on")
    joined = lambda: None if node in {name(n) for n in h.w.all(h.w.nodes)} else f"{node} has not joined again"  # noqa: E731
    yield joined
    h.w.kind.joined(h.w, node)
    return both(joined, h.replaced(PLUGIN, node), states(h, node, h.w.kind.clique(node)))


def pod_deleted(h):
    """While the pod runs, or while its claim is being prepared."""
    pod = h.choose(sorted((p for p in h.w.all(h.w.pods) if alive(p) and node_of(p)), key=name))
    if not pod:
        return None
    h.what, h.affects = f"{name(pod)} ({pod['status']['phase']})", {pod["metadata"]["labels"]["workload"]}
    h.delete(pod)
    yield 0
    return h.other_container(h.w.pods, pod)


# ---- ComputeDomains and their objects ----

def domain_deleted(h, at_once):
    workload = h.some_workload()
    cd = workload and h.workloads()[workload].cd
    o = cd and h.w.domain(cd)
    if not o or not alive(o):
        return None
    h.what, h.affects = cd, {w for w, x in h.workloads().items() if x.cd == cd}
    path = f"{CD_GROUP}/namespaces/{NS}/computedomains"
    h.k.delete(f"{path}/{cd}")
    uid = o["metadata"]["uid"]
    living = lambda: (h.w.domain(cd) or {"metadata": {"uid": None}})["metadata"]["uid"]  # noqa: E731
    yield lambda: f"ComputeDomain {cd} is not deleted" if living() == uid else None
    if h.w.kind.makes_domains():
        yield 0 if at_once else h.rng.uniform(0, 5)
        h.k.create(path, {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "metadata": {"name": cd, "namespace": NS}, "spec": o["spec"]})
    else:
        yield lambda: None if living() else f"ComputeDomain {cd} is not recreated"
    # Pods of the deleted domain do not belong to the new one of the same name: their owner recreates them.
    h.affects = {w for w, x in h.workloads().items() if x.cd == cd}
    for pod in h.w.all(h.w.pods):
        if pod["metadata"]["labels"]["workload"] in h.affects:
            h.delete(pod)
    return WHOLE


def domain_deleted_under_its_workload(h):
    return (yield from domain_deleted(h, False))


def domain_made_again_with_its_name(h):
    return (yield from domain_deleted(h, True))


def objects_of_a_domain_deleted(h):
    """Somebody deletes objects of the ComputeDomain or of its daemons. The controller must recreate them, and no IMEX ends. Daemons without their
    DaemonSet, or on a node without its label, are deleted, and serve until no claim is prepared."""
    workload = h.some_workload()
    cd = workload and h.workloads()[workload].cd
    o = cd and h.w.domain(cd)
    if not o:
        return None
    uid, what = o["metadata"]["uid"], h.rng.choice(h.w.kind.objects)
    h.what, h.affects = f"{what} of {cd}", {w for w, x in h.workloads().items() if x.cd == cd}
    if what == "label":
        return (yield from label_deleted(h, UID_LABEL, uid, False))
    if what == "daemon label":
        return (yield from label_deleted(h, DAEMON_LABEL, "true", True))
    if what == "DaemonSet":
        return (yield from object_deleted(h, h.w.sets, f"/apis/apps/v1/namespaces/{DRIVER_NS}/daemonsets", is_daemon))
    templates = f"{DRA_GROUP}/namespaces/{{}}/resourceclaimtemplates"
    if what == "daemon template":
        return (yield from object_deleted(h, h.w.templates, templates.format(DRIVER_NS), is_daemon))
    mine = lambda x: x["metadata"]["namespace"] == NS and x["metadata"].get("labels", {}).get(UID_LABEL) == uid  # noqa: E731
    return (yield from object_deleted(h, h.w.templates, templates.format(NS), mine, lambda: (h.w.domain(cd) or o)["metadata"]["uid"] == uid))


def label_deleted(h, label, value, returns):
    """returns: the label must be restored; otherwise that depends on the use of the node in the meantime."""
    node = h.choose(sorted(name(n) for n in h.w.all(h.w.nodes) if n["metadata"].get("labels", {}).get(label) == value and name(n) not in h.busy))
    if not node:
        return None
    h.what, h.nodes = f"{h.what}: {node}", {node}
    h.k.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {label: None}}})
    yield 0

    def missing():
        now = h.w.nodes.objects.get((None, node))
        return None if not now or now["metadata"]["labels"].get(label) == value else f"{node} does not have the label {label} again"
    return missing if returns else WHOLE


def object_deleted(h, watch, path, chosen, wanted=lambda: True):
    """Evidence: another object has its name, if it is still needed."""
    old = h.choose(sorted((x for x in h.w.all(watch) if alive(x) and chosen(x)), key=name))
    if not old:
        return None
    h.k.delete(f"{path}/{name(old)}")
    yield 0

    def missing():
        now = watch.objects.get((old["metadata"]["namespace"], name(old)))
        if not wanted():
            return None
        return None if now and now["metadata"]["uid"] != old["metadata"]["uid"] and alive(now) else f"{h.what} is not recreated"
    return missing


# ---- partitions ----

def states(h, node, wanted):
    def missing():
        found = h.w.clique_of(node)
        return None if h.w.kind.offers(found) and all((c or "").endswith(wanted) for c in found) else f"the slice of {node} states {found}"
    return missing


# failure: a node changes its partition, among other faults -> all workloads recover [soak]
def node_moves_to_another_clique(h):
    node = h.free_node()
    if not node:
        return None
    k, home = node.rsplit("-", 1)[1], h.w.kind.clique(node)
    h.w.command("clique", k, 3)
    yield states(h, node, ".3")
    yield h.rng.uniform(0, 10)
    # Drained, as before a reset: a pod that starts there keeps the node in the IMEX domain of that partition.
    h.k.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
    for pod in h.w.all(h.w.pods):
        if alive(pod) and node_of(pod) == node:
            h.delete(pod)
    yield lambda: f"claims are prepared on {node}" if h.w.prepared().get(node) else None
    h.w.command("clique", k, home[1:])
    yield lambda: f"{node} still offers channels of .3" if any((c or "").endswith(".3") for c in h.w.clique_of(node)) else None
    h.k.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None}})
    return states(h, node, home)


def node_cordoned(h):
    """Nothing ends because of it. With assigned channels, the node leaves the standing domain only when it is no longer used there."""
    node = h.free_node()
    if not node:
        return None
    h.k.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
    yield h.rng.uniform(1, 40)
    h.k.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None}})
    return states(h, node, h.w.kind.clique(node))


def fabric_registers_again(h):
    """As after a reset: the registration is in progress for a while, and pods still run there."""
    node = h.free_node()
    if not node:
        return None
    k = node.rsplit("-", 1)[1]
    h.w.command("gpu", k, "FABRIC_STATE=2")
    yield h.rng.uniform(1, 40)
    h.w.command("gpu", k, "FABRIC_STATE=3")
    return states(h, node, h.w.kind.clique(node))


# ---- ComputeDomainFabrics, and the hosts' IMEX ----

def fabric_of(h):
    fabric = h.choose(sorted(h.w.all(h.w.fabrics), key=name))
    if fabric:
        h.what = name(fabric)
    return fabric


def created_again(h, fabric):
    """Evidence: if a node is in the partition, there is another fabric object, whose table is its own and complete."""
    def missing():
        now = h.w.fabrics.objects.get((None, name(fabric)))
        if not now and not any(name(fabric) in h.w.clique_of(name(n)) for n in h.w.all(h.w.nodes)):
            return None  # no node is in it any more, and a fabric object needs nodes
        if not now or now["metadata"]["uid"] == fabric["metadata"]["uid"] or now.get("tableOf") != now["metadata"]["uid"]:
            return f"fabric object {name(fabric)} does not have its own table again"
        lost = next((c for c in now.get("conditions") or [] if c["type"] in ("ChannelsIncomplete", "AssignmentsIncomplete")), None)
        return lost and f"fabric object {name(fabric)}: {lost['message']}"
    return missing


# failure: a fabric object is deleted, among other faults -> it is recreated without loss [soak]
def fabric_deleted(h):
    fabric = fabric_of(h)
    if not fabric:
        return None
    h.k.delete(f"{CD_GROUP}/computedomainfabrics/{name(fabric)}")
    yield 0
    return created_again(h, fabric)


# failure: an old fabric object is restored, among other faults -> a valid one replaces it without loss [soak]
def old_fabric_put_back(h):
    """Writes the version of some seconds ago with the controller's identity: it bypasses the policy, as a restore of etcd does."""
    fabric = fabric_of(h)
    if not fabric:
        return None
    yield h.rng.uniform(2, 20)
    copy = {**fabric, "apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainFabric", "metadata": {"name": name(fabric)}}
    h.k.delete(f"{CD_GROUP}/computedomainfabrics/{name(fabric)}")
    account = f"system:serviceaccount:{DRIVER_NS}:{h.w.controller_account()}"
    # The controller may have been faster.
    subprocess.run([os.path.join(h.w.commands, "kubectl"), f"--as={account}", "create", "-f", "-"], input=json.dumps(copy), text=True, capture_output=True)
    return created_again(h, fabric)


def hosts_imex(h, *actions):
    node = h.free_node()
    if not node:
        return None
    k = node.rsplit("-", 1)[1]
    h.w.command("host-imex", k, actions[0])
    if len(actions) > 1:
        yield h.rng.uniform(1, 40)
        h.w.command("host-imex", k, actions[1])
    else:
        yield 0
    return states(h, node, h.w.kind.clique(node))


def hosts_imex_restarted(h):
    return (yield from hosts_imex(h, "restart"))


# failure: the host's nvidia-imex stops, among other faults -> its node recovers [soak]
def hosts_imex_away(h):
    return (yield from hosts_imex(h, h.rng.choice(["stop", "kill"]), "start"))


def title(fault):
    return fault.__name__.replace("_", " ")


# Faults that need neither the API server nor a command of the test cluster that uses it.
LOCAL = [controller_killed, controller_hangs, plugin_killed, gpu_plugin_killed, plugin_finds_garbage, plugin_disk_read_only, daemon_killed, imex_killed,
         imex_crashes_in_a_loop, node_cut_off]
# One at a time: there is one front.
PAGES = [pages_404_in_place_of_the_api_server, pages_403_in_place_of_the_api_server, pages_503_in_place_of_the_api_server]
# Faults that end controllers, sometimes because of a lost Lease.
ENDS_CONTROLLERS = [etcd_restored, controller_killed, controller_hangs, controllers_deleted, chart_upgraded, api_server_gone, node_loses_power,
                    node_gone_for_good, *PAGES]
# Faults during which a leader cannot renew its Lease in time. Without one of them a lost Lease is a bug.
TAKES_THE_LEASE = [etcd_restored, controller_hangs, api_server_gone, node_cut_off, node_loses_power, node_gone_for_good, *PAGES]
# Faults that end nvidia-imex on the struck node. Without one of them it stays the same process while a claim that it serves is prepared.
ENDS_IMEX = [daemon_killed, imex_killed, imex_crashes_in_a_loop, node_loses_power, node_gone_for_good, hosts_imex_restarted,
             hosts_imex_away, etcd_restored]
# Faults that delete a ComputeDomain.
ENDS_DOMAIN = [domain_deleted_under_its_workload, domain_made_again_with_its_name]
# Faults during which no workload changes, because the API server is away.
NO_API = [api_server_gone, etcd_restored]
# Faults in which users do something in several steps: a backup between them would need the users again.
NO_BACKUP = [*ENDS_DOMAIN, chart_upgraded, node_gone_for_good, node_moves_to_another_clique, node_cordoned]
# Faults that strike alone, at these fractions of the storm.
PLANNED = {etcd_restored: (0.2, 0.6)}
# The relative frequency of each fault.
FAULTS = {
    controller_killed: 2, controller_hangs: 2, controllers_deleted: 1, plugin_killed: 3, gpu_plugin_killed: 2, plugin_deleted: 2, plugin_finds_garbage: 2,
    plugin_disk_read_only: 2, second_plugin: 1, chart_upgraded: 1, daemon_killed: 3, daemon_deleted: 3, imex_killed: 3,
    imex_crashes_in_a_loop: 2, api_server_gone: 3, **{f: 1 for f in PAGES}, kubelet_restarted: 2, node_cut_off: 2,
    node_loses_power: 2, node_gone_for_good: 1, pod_deleted: 4, domain_deleted_under_its_workload: 2, domain_made_again_with_its_name: 2,
    objects_of_a_domain_deleted: 2, node_moves_to_another_clique: 1, fabric_registers_again: 1, fabric_deleted: 2, old_fabric_put_back: 2,
    hosts_imex_restarted: 2, hosts_imex_away: 3, node_cordoned: 3,
}


def of_kind(kind):
    """The faults that can strike with workloads of that kind."""
    without = {hosts_imex_restarted, hosts_imex_away}
    if kind.hosts_run_imex:
        without = {daemon_killed, daemon_deleted, imex_killed, imex_crashes_in_a_loop, node_cordoned}
    return [f for f in [*FAULTS, *PLANNED] if f not in without]
