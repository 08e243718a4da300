#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a bundle with made-up objects, for `kubectl compute-domains --from`: bundle.py FOLDER [--hostile]

Two racks of 18 nodes and a node outside of them; four ComputeDomains, one of which waits; a node that withholds its channel, and one
that is not Ready. With --hostile, names and messages try to break out of a page. Prints the names of all racks and nodes, one per line."""
import json
import os
import sys

NOW, BEFORE = "2026-11-27T12:00:00Z", "2026-11-27T09:00:00Z"
DRIVER, NS = "compute-domain.nvidia.com", "nvidia-compute-domains"
CLIQUE = "6f1c3c0e-d3cb-b5ce-4e7e-98352b5a71b5."
HOSTILE = "</title></style><script src=http://127.0.0.1:9/x></script><img src=http://127.0.0.1:9/y onerror=alert(1)>\"'&lt;"


def meta(name, ns=None, **more):
    return {"name": name, **({"namespace": ns} if ns else {}), "uid": "u-" + name, "resourceVersion": "1", "creationTimestamp": BEFORE, **more}


def node(name, clique, ready=True):
    labels = {"nvidia.com/gpu.present": "true", **({"nvidia.com/gpu.clique": clique} if clique else {})}
    return {"metadata": meta(name, labels=labels), "spec": {}, "status": {"conditions": [{"type": "Ready", "status": str(ready)}]}}


def slice_of(name, clique, channel=True):
    device = {"name": "channel-0", "attributes": {"type": {"string": "channel"}, "id": {"int": 0}, "cliqueID": {"string": clique}}}
    daemon = {"name": "daemon-0", "attributes": {"type": {"string": "daemon"}, "cliqueID": {"string": clique}}}
    return {"metadata": meta(name + "-slice"), "spec": {"driver": DRIVER, "nodeName": name, "pool": {"name": name, "generation": 1},
                                                        "devices": [device, daemon] if channel else []}}


def pod(name, on, program):
    return {"metadata": meta(name, NS, labels={}), "spec": {"nodeName": on, "containers": [{"name": "x", "command": [program]}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}


def claim(ns, name, uid, on):
    config = {"requests": ["channel"], "opaque": {"driver": DRIVER, "parameters": {
        "apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainChannelConfig", "domainID": uid, "allocationMode": "Single"}}}
    return {"metadata": meta(name, ns), "spec": {"devices": {"requests": [{"name": "channel"}], "config": [config]}},
            "status": {"allocation": {"devices": {
                "results": [{"request": "channel", "driver": DRIVER, "pool": on, "device": "channel-0"}],
                "config": [{"source": "FromClaim", **config}]}}}}


def domain(ns, name, uid, nodes, wait=()):
    entries = [{"name": n, "cliqueID": c, "index": i, "status": "NotReady" if n in wait else "Ready"} for i, (n, c) in enumerate(nodes)]
    conditions = [{"type": "Ready", "status": "False" if wait else "True", "reason": "NodeFailing" if wait else "AllNodesReady",
                   "message": f"{wait[0]}: another nvidia-imex on this node owns the driver's only IMEX session" if wait else "All nodes are ready"},
                  {"type": "PeersConnected", "status": "False" if wait else "True", "reason": "PeersMissing" if wait else "AllConnected"}]
    return {"metadata": {**meta(name, ns), "uid": uid}, "spec": {"numNodes": 0},
            "status": {"status": "NotReady" if wait else "Ready", "nodesReady": len(nodes) - len(wait), "nodesWanted": len(nodes),
                       "nodes": entries, "conditions": conditions}}


def world(hostile):
    racks = {CLIQUE + "1": HOSTILE if hostile else "gb200-rack-11", CLIQUE + "2": "gb200-rack-12"}
    names = {c: [f"{'<script>' if hostile else ''}gb200-{r[-2:] if not hostile else i}-{k:02}" for k in range(1, 19)]
             for i, (c, r) in enumerate(racks.items())}
    a, b = list(racks)
    used = {"team-a/llm-70b": [(n, a) for n in names[a][:8]], "team-b/bench": [(n, a) for n in names[a][8:11]],
            "team-a/eval": [(n, b) for n in names[b][:6]], "team-c/" + (HOSTILE if hostile else "moe-pretrain"): [(n, b) for n in names[b][6:9]]}
    lists = {k: [] for k in ("nodes", "resourceslices.resource.k8s.io", "resourceclaims.resource.k8s.io", "pods", "events",
                             "computedomains.resource.nvidia.com", "computedomainfabrics.resource.nvidia.com", "deployments.apps",
                             "daemonsets.apps", "validatingadmissionpolicies.admissionregistration.k8s.io")}
    for c, rack in racks.items():
        lists["computedomainfabrics.resource.nvidia.com"].append(
            {"metadata": meta(c), "rack": rack, "tableOf": "u-" + c, "domains": [], "channels": [],
             "conditions": [{"type": "NodesWithhold", "status": "True", "reason": "DevicesWithheld", "message": f"{names[a][14]} (FabricError)"}]
             if c == a else []})
        for n in names[c]:
            lists["nodes"].append(node(n, c, ready=n != names[b][17]))
            lists["resourceslices.resource.k8s.io"].append(slice_of(n, c, channel=n != names[a][14]))
            lists["pods"].append(pod("plugin-" + n, n, "compute-domain-kubelet-plugin"))
    lists["nodes"].append(node("workstation", ""))
    lists["pods"].append(pod("plugin-workstation", "workstation", "compute-domain-kubelet-plugin"))
    lists["resourceslices.resource.k8s.io"].append(slice_of("workstation", ""))
    for i, (name, nodes) in enumerate(used.items()):
        ns, cd, uid = *name.split("/", 1), f"aa000000-0000-4000-8000-00000000000{i}"
        lists["computedomains.resource.nvidia.com"].append(domain(ns, cd, uid, nodes, wait=[nodes[2][0]] if cd == "bench" else ()))
        lists["resourceclaims.resource.k8s.io"] += [claim(ns, f"{ns}-{i}-{k}", uid, n) for k, (n, _) in enumerate(nodes)]
    lists["events"].append({"metadata": meta("withheld", "default"), "involvedObject": {"kind": "Node", "name": names[a][14]},
                            "reason": "ComputeDomainDevicesWithheld", "type": "Warning", "lastTimestamp": NOW,
                            "message": "no IMEX channel or daemon is offered on this node (FabricError): " +
                                       (HOSTILE if hostile else "GPU 2 has no NVLink fabric")})
    lists["deployments.apps"].append({"metadata": meta("compute-domains-controller", NS), "spec": {"replicas": 2, "template": {"spec": {
        "containers": [{"name": "x", "command": ["compute-domain-controller"], "env": [{"name": "IMEX_MODE", "value": "driverManaged"},
                                                                                     {"name": "IMEX_ISOLATION", "value": "domain"}]}]}}},
                                      "status": {"readyReplicas": 2}})
    condition = {"name": "is-our-controller", "expression": f"request.userInfo.username in ['system:serviceaccount:{NS}:controller']"}
    lists["validatingadmissionpolicies.admissionregistration.k8s.io"].append(
        {"metadata": meta("compute-domains-controller-nodes"), "spec": {"matchConditions": [condition]}})
    return lists, [*racks.values(), *(n for c in names for n in names[c]), "workstation"]


def main(arguments):
    if not arguments or arguments[1:] not in ([], ["--hostile"]):
        sys.exit(__doc__)
    lists, names = world(bool(arguments[1:]))
    os.makedirs(arguments[0], exist_ok=True)
    for kind, items in lists.items():
        with open(f"{arguments[0]}/{kind}.json", "w", encoding="utf-8") as f:
            json.dump({"items": items}, f)
    with open(f"{arguments[0]}/bundle.json", "w", encoding="utf-8") as f:
        json.dump({"created": NOW, "namespace": "team-b", "serverVersion": "v1.36.3", "kinds": {k: [{"state": "complete"}] for k in lists}}, f)
    print("\n".join(names))


main(sys.argv[1:])
