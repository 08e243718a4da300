# SPDX-License-Identifier: Apache-2.0
"""Compares pods with a claim of one GPU with plain pods on the test cluster, and appends a table.

As in bench.py, each duration is compared with that of the same Job without claims in the same run, in turns. ./run sets up the
cluster, the image and the chart with GPUs, and calls this program."""

import statistics
import time

from bench import NS, arguments, begin, publish, running, table
from channel import spread_job

TEMPLATE = "one-gpu"


def template():
    return {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": TEMPLATE, "namespace": NS},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}},
    }


def form(bench, nodes, claim):
    """Seconds until one pod on each node runs, and the Job's name, which the caller removes."""
    name = bench.name("gpu" if claim else "plain")
    start = time.monotonic()
    bench.k.create(f"/apis/batch/v1/namespaces/{NS}/jobs", spread_job(name, nodes, claim))
    mine = lambda pods: [p for p in pods if p["metadata"].get("labels", {}).get("bench") == name]
    end = bench.pods.wait(lambda pods: sum(running(p) for p in mine(pods)) == nodes, 240, f"{name} on {nodes} nodes")
    return end - start, name


def main():
    a = arguments(__doc__, 11).parse_args()
    # If nodes have nvidia.com/gpu and a device class has that name, too, the scheduler of 1.36 cannot bind a pod that requests it and has
    # another claim (docs/how-to/troubleshoot.md).
    bench, _, sizes = begin(a, with_domain=False)
    rows = []
    templates = f"/apis/resource.k8s.io/v1/namespaces/{NS}/resourceclaimtemplates"
    bench.k.create(templates, template())
    for n in sizes:
        plain, gpu = [], []
        for i in range(a.pairs):
            for claim, times in ((None, plain), (TEMPLATE, gpu)):
                seconds, name = form(bench, n, claim)
                times.append(seconds)
                bench.remove(name, False)
            bench.log(f"GPUs, {n} nodes, {i + 1} of {a.pairs}: plain {plain[-1]:.2f} s, GPU {gpu[-1]:.2f} s (ratio {gpu[-1] / plain[-1]:.2f})")
        ratio = statistics.median(t / q for t, q in zip(gpu, plain))
        rows.append((f"a GPU for each pod, {n} nodes: apply to all pods Running",
                     f"{statistics.median(gpu):.2f} s; plain {statistics.median(plain):.2f} s; ratio {ratio:.2f}", "<= 1.15",
                     f"median of {a.pairs} interleaved pairs"))
    bench.k.delete(f"{templates}/{TEMPLATE}")
    publish(table(rows), a.output)


if __name__ == "__main__":
    main()
