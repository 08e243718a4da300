# SPDX-License-Identifier: Apache-2.0
"""CPU time by cgroups, so that ended children count: of each process of the control plane, of kubelets and container runtimes, and of our Pods
on each node, with the nvidia-imex of their daemons."""

import collections
import glob
import os

from bench import CONTROLLER, PLUGIN, is_daemon, labels

CONTROL_PLANE = ("etcd", "apiserver", "scheduler", "controller-manager")
CONTROLLERS, PLUGINS, DAEMONS, NODES = "our controllers", "our plugins", "our daemons and nvidia-imex", "kubelets and containerd"
OURS = (CONTROLLERS, PLUGINS, DAEMONS)


class Cgroups:
    """`state` is the folder of the test cluster; the cgroups of its nodes have the same name. Each process of the control plane gets a cgroup
    until leave(). With cgroup v1, kubelets and container runtimes are only in the hierarchy by which processes are found, and are moved into
    this one."""

    def __init__(self, state):
        self.state, self.root = state, hierarchy()
        self.top = os.path.join(self.root, os.path.basename(state.rstrip("/")))
        if not os.path.isdir(self.top):
            raise FileNotFoundError(f"{self.top}: the test cluster has no cgroup here")
        for service in CONTROL_PLANE:
            os.makedirs(self.of_service(service), exist_ok=True)
            move(self.pid_of(service), self.of_service(service))
        for path in glob.glob(os.path.join(state, "nodes", "*", "*.pid")):
            if os.path.basename(path) in ("kubelet.pid", "containerd.pid"):
                move(path, os.path.join(self.top, "node-" + path.split(os.sep)[-2], "system"))

    def of_service(self, service):
        return os.path.join(self.top, "control-" + service)

    def pid_of(self, service):
        return os.path.join(self.state, "control", service + ".pid")

    def leave(self):
        for service in CONTROL_PLANE:
            move(self.pid_of(service), self.root)
            os.rmdir(self.of_service(service))

    def seconds(self, folder):
        if os.path.exists(os.path.join(folder, "cpuacct.usage")):
            return int(open(os.path.join(folder, "cpuacct.usage")).read()) / 1e9
        fields = dict(line.split() for line in open(os.path.join(folder, "cpu.stat")))
        return int(fields["usage_usec"]) / 1e6

    def pods(self):
        """{UID of a Pod: its cgroup} of all nodes."""
        found = {}
        for depth in ("", "*/"):
            for path in glob.glob(os.path.join(self.top, "node-*", "kubepods", depth + "pod*")):
                found[os.path.basename(path)[len("pod"):]] = path
        return found

    def read(self, our_pods):
        """{part: {cgroup: seconds}}"""
        parts, cgroups = collections.defaultdict(dict), self.pods()
        for service in CONTROL_PLANE:
            parts[service][service] = self.seconds(self.of_service(service))
        for path in glob.glob(os.path.join(self.top, "node-*", "system")):
            parts[NODES][path] = self.seconds(path)
        for pod in our_pods:
            part = DAEMONS if is_daemon(pod) else {CONTROLLER: CONTROLLERS, PLUGIN: PLUGINS}.get(labels(pod).get("app"))
            uid = pod["metadata"]["uid"]
            if part and uid in cgroups:
                parts[part][uid] = self.seconds(cgroups[uid])
        return parts


def move(pidfile, folder):
    pid = open(pidfile).read().strip()
    with open(os.path.join(folder, "cgroup.procs"), "w") as f:
        f.write(pid)


def used(before, after):
    """{part: seconds} between two readings. The CPU time of a Pod that has ended in the meantime is unknown."""
    lost = [f"{part}: {which}" for part, list_ in before.items() for which in list_ if which not in after[part]]
    if lost:
        raise RuntimeError(f"ended while CPU time was measured: {', '.join(lost)}")
    return {part: sum(now - before.get(part, {}).get(which, 0) for which, now in list_.items()) for part, list_ in after.items()}


def hierarchy():
    """The cgroup hierarchy that accounts for CPU time: that of v2, or cpuacct."""
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        return "/sys/fs/cgroup"
    for line in open("/proc/mounts"):
        _, path, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpuacct" in options.split(","):
            return path
    raise FileNotFoundError("no cgroup hierarchy accounts for CPU time")
