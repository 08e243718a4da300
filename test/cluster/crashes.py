# SPDX-License-Identifier: Apache-2.0
"""Writes a line for each container of the driver, in any namespace, that ended by a sanitizer's report or by an abort, with its termination
message, until SIGTERM: crashes.py KUBECTL OUTPUT. The kubelet keeps the message in the status of the pod, and the watch gets it before the
pod is deleted."""

import os
import signal
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
from kubeapi import Cluster, Watch  # noqa: E402

# The exit code of a sanitizer (scripts/image), and 128 plus SIGILL, SIGABRT, SIGBUS, SIGFPE and SIGSEGV.
CRASHES = (99, 132, 134, 135, 136, 139)
# The labels of the chart and of the daemons. The pods of the Go driver's stand-in do not have them.
PODS = "app in (compute-domain-controller,compute-domain-kubelet-plugin,compute-domain-uninstall,imex-daemon)"


def main():
    kubectl, output = sys.argv[1:]
    seen = set()

    def on_change(kind, pod, arrived):
        for status in pod.get("status", {}).get("containerStatuses", []) + pod.get("status", {}).get("initContainerStatuses", []):
            for when in ("state", "lastState"):
                end = status.get(when, {}).get("terminated")
                if end and end["exitCode"] in CRASHES and end.get("containerID") not in seen:
                    seen.add(end.get("containerID"))
                    with open(output, "a") as f:
                        f.write(f"{pod['metadata']['name']} on {pod['spec'].get('nodeName')}: container {status['name']} ended with "
                                f"{end['exitCode']}:\n{end.get('message', '')}\n")

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    Watch(Cluster(kubectl), "/api/v1/pods?labelSelector=" + urllib.parse.quote(PODS), on_change)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


main()
