# SPDX-License-Identifier: Apache-2.0
"""Creates the daemons of the Nodes that test/cluster/pretend has created, as API objects:

    pretend_daemons.py start    each node has booted, and a daemon Pod there runs and has reported that it is idle
    pretend_daemons.py left     each daemon has reported that it left the assignments in its fabric object
    pretend_daemons.py gone     deletes the Pods

The controller manager must be stopped, as for test/cluster/pretend."""

import json
import os
import sys
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "bench"))
from kubeapi import Cluster, each  # noqa: E402

NS, OBJECT = "nvidia-compute-domains", "compute-domain-daemon"
PODS = f"/api/v1/namespaces/{NS}/pods"
FABRICS = "/apis/resource.nvidia.com/v1beta1/computedomainfabrics"
COMPONENT, CLIQUE = "app.kubernetes.io/component", "resource.nvidia.com/computeDomain.cliqueID"
HASH, IMEX = "resource.nvidia.com/template-hash", "imex.resource.nvidia.com/"

k = Cluster(os.path.join(HERE, "..", "cluster", "kubectl"))


def uid_of(node, what):
    """The same UID at each call."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{what}/{node}"))


def report(node, fabric, left="", seen=0):
    return {IMEX + "state": "IDLE", IMEX + "ready": "false", IMEX + "report": json.dumps({
        "claimUID": uid_of(node, "claim"), "bootID": uid_of(node, "boot"), "fabricUID": fabric, "ready": False, "left": left,
        "seen": seen, "recount": 0, "served": False, "waitsFor": ""})}


def start():
    fabrics = {f["metadata"]["name"]: f["metadata"]["uid"] for f in k.get(FABRICS)["items"]}
    daemonset = k.get(f"/apis/apps/v1/namespaces/{NS}/daemonsets/{OBJECT}")
    template = daemonset["spec"]["template"]
    slices = k.get("/apis/resource.k8s.io/v1/resourceslices?labelSelector=pretended%3Dyes")["items"]
    cliques = {s["spec"]["nodeName"]: s["spec"]["devices"][0]["attributes"]["cliqueID"]["string"] for s in slices}

    def daemon(i_node):
        i, (node, clique) = i_node
        name, ip = f"{OBJECT}-{node}", f"10.{64 + i // 62500}.{i // 250 % 250}.{2 + i % 250}"
        k.patch(f"/api/v1/nodes/{node}/status", {"status": {"nodeInfo": {
            "bootID": uid_of(node, "boot"), "machineID": "", "systemUUID": "", "kernelVersion": "", "osImage": "", "containerRuntimeVersion": "",
            "kubeletVersion": "", "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64"},
            "conditions": [{"type": "Ready", "status": "True"}]}})
        k.create(PODS, {
            "metadata": {"name": name, "labels": {**template["metadata"]["labels"], "pretended": "yes", CLIQUE: clique},
                         "annotations": {HASH: template["metadata"]["annotations"][HASH], **report(node, fabrics.get(clique, ""))},
                         "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": OBJECT, "uid": daemonset["metadata"]["uid"],
                                              "controller": True}]},
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": 0, "tolerations": template["spec"]["tolerations"],
                     "containers": [{"name": OBJECT, "image": template["spec"]["containers"][0]["image"]}]}})
        k.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
                                                    "conditions": [{"type": "Ready", "status": "True"}]}})

    each(daemon, enumerate(sorted(cliques.items())))


def left():
    epochs, fabrics = {}, {}
    for f in k.get(FABRICS)["items"]:
        for d in f.get("domains") or []:
            for a in d.get("assignments") or []:
                epochs.setdefault(a["node"], []).append(str(a["epoch"]))
                fabrics[a["node"]] = f
    each(lambda node: k.patch(f"{PODS}/{OBJECT}-{node}", {"metadata": {"annotations": report(
        node, fabrics[node]["metadata"]["uid"], ",".join(epochs[node]), fabrics[node]["epoch"])}}),
        [node for node in sorted(epochs) if node.startswith("pretended-")])


def gone():
    k.delete_all(f"{PODS}?labelSelector=pretended%3Dyes", {"gracePeriodSeconds": 0})


if __name__ == "__main__":
    {"start": start, "left": left, "gone": gone}[sys.argv[1]]()
