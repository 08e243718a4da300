# SPDX-License-Identifier: Apache-2.0
"""Records each change of a node's daemon Pods, of their claims, of the Node and of its ResourceSlice, as a program can see it, one per
line: record.py KUBECTL NAMESPACE NODE OUTPUT. After SIGTERM it ends when nothing has changed for five seconds. test/simulate/play prints
the same lines for the simulated world."""

import os
import signal
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
from kubeapi import Cluster, Watch  # noqa: E402

DAEMONS = "labelSelector=app.kubernetes.io/component%3Dcompute-domain-daemon"
DRIVER = "compute-domain.nvidia.com"


def target(pod):
    """The node for which the DaemonSet controller has created the Pod."""
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return terms[0]["matchFields"][0]["values"][0]


def owner(claim):
    return next((o["name"] for o in claim["metadata"].get("ownerReferences") or [] if o["kind"] == "Pod"), None)


def ready(o):
    return next((c["status"] for c in o.get("status", {}).get("conditions") or [] if c["type"] == "Ready"), None)


def became_ready(was, now):
    if ready(was) != ready(now) and "True" in (ready(was), ready(now)):
        yield "ready" if ready(now) == "True" else "not ready"


def container(pod):
    return (pod.get("status", {}).get("containerStatuses") or [{}])[0]


def of_pod(was, now):
    def ip(pod):
        return (pod.get("status", {}).get("podIPs") or [{}])[0].get("ip")

    def running(pod):
        return container(pod).get("containerID") if "running" in container(pod).get("state", {}) else None

    def waiting(pod):
        return container(pod).get("state", {}).get("waiting", {}).get("reason")

    if not was:
        yield "created"
    if now["spec"].get("nodeName") and not was.get("spec", {}).get("nodeName"):
        yield "bound"
    if ip(now) and ip(now) != ip(was):
        yield "an address"
    if running(now) and running(now) != running(was):
        yield "container started"
    if waiting(now) == "CrashLoopBackOff" and waiting(was) != waiting(now):
        yield "container waits"
    yield from became_ready(was, now)


def of_claim(was, now):
    def allocated(claim):
        return bool(claim.get("status", {}).get("allocation"))

    if not was:
        yield "created"
    if allocated(now) and not allocated(was):
        yield "allocated"


def of_node(was, now):
    def boot(node):
        return node["status"]["nodeInfo"]["bootID"]

    if not was:
        yield "created"
    elif boot(was) != boot(now):
        yield "another boot"
    yield from became_ready(was, now)


def of_slice(was, now):
    if not was:
        yield "created"


def main():
    kubectl, namespace, node, output = sys.argv[1:]
    cluster, changed = Cluster(kubectl), threading.Condition()
    before, mine, seen = {}, [], []  # objects by UID; the node's Pods in the order of their versions; (version, what, Pod, change)

    def follow(path, what, facts, pod_of):
        def on_change(kind, o, arrived):
            with changed:
                was = before.get(o["metadata"]["uid"], {})
                before[o["metadata"]["uid"]] = o
                changes = ["gone"] if kind == "DELETED" else list(facts(was, o))
                if kind != "DELETED" and "deletionTimestamp" in o["metadata"] and "deletionTimestamp" not in was.get("metadata", {}):
                    changes.append("deleted")
                # All kinds are in one etcd, so the resource versions give the order.
                seen.extend((int(o["metadata"]["resourceVersion"]), what, pod_of(o), change) for change in changes)
                if changes:
                    changed.notify()

        for o in cluster.get(path)["items"]:
            before[o["metadata"]["uid"]] = o
        Watch(cluster, path, on_change)

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    pods = f"/api/v1/namespaces/{namespace}/pods?{DAEMONS}"
    mine = [name for name in (o["metadata"]["name"] for o in cluster.get(pods)["items"] if target(o) == node)]
    follow(pods, "pod", of_pod, lambda o: o["metadata"]["name"] if target(o) == node else "")
    follow(f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims", "claim", of_claim, owner)
    follow(f"/api/v1/nodes?fieldSelector=metadata.name%3D{node}", "node", of_node, lambda o: None)
    follow(f"/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3D{node},spec.driver%3D{DRIVER}", "slice", of_slice, lambda o: None)
    print("recording", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    with changed, open(output, "w") as f:
        while changed.wait(5):
            pass
        for _, what, pod, change in sorted(seen, key=lambda line: line[0]):
            if what == "pod" and pod and pod not in mine:
                mine.append(pod)
        for _, what, pod, change in sorted(seen, key=lambda line: line[0]):
            if pod is None:
                f.write(f"{what}: {change}\n")
            elif pod in mine:
                f.write(f"{what} {chr(ord('A') + mine.index(pod))}: {change}\n")


main()
