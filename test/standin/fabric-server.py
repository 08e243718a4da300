#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabric-server ADDRESS PORT FOLDER: the part of an API server that daemons need. It has one ComputeDomainFabric, which PUT /fabric replaces,
and the daemons' Pods, whose annotations are in FOLDER/pod-NAME.json. It lists no Pods."""
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

folder = sys.argv[3]
changed = threading.Condition()
state = {"rv": 1, "object": None}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, what):
        text = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def body(self):
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def do_GET(self):
        if "watch=" in self.path:
            self.watch()
            return
        with changed:
            items = [state["object"]] if state["object"] and "/pods" not in self.path else []
            rv = str(state["rv"])
        self.answer({"kind": "ComputeDomainFabricList", "apiVersion": "resource.nvidia.com/v1beta1", "metadata": {"resourceVersion": rv}, "items": items})

    def watch(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        seen = int(self.path.split("resourceVersion=")[1].split("&")[0])
        first = seen == 1
        while True:
            with changed:
                changed.wait_for(lambda: state["rv"] > seen and "/pods" not in self.path)
                seen = state["rv"]
                event = json.dumps({"type": "ADDED" if first else "MODIFIED", "object": state["object"]}) + "\n"
            first = False
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event.encode()))
            self.wfile.flush()

    def do_PUT(self):
        domains = self.body()
        with changed:
            state["rv"] += 1
            state["object"] = {
                "apiVersion": "resource.nvidia.com/v1beta1",
                "kind": "ComputeDomainFabric",
                "metadata": {"name": "f0000000-0000-0000-0000-000000000000.1", "uid": "fa000000-0000-4000-8000-000000000000", "resourceVersion": str(state["rv"])},
                "tableOf": "fa000000-0000-4000-8000-000000000000",
                "domains": domains,
            }
            changed.notify_all()
        self.answer({})

    def do_PATCH(self):
        name = self.path.split("?")[0].rsplit("/", 1)[1]
        path = os.path.join(folder, "pod-%s.json" % name)
        kept = {}
        if os.path.exists(path):
            with open(path) as f:
                kept = json.load(f)
        kept.update(self.body()["metadata"]["annotations"])
        with open(path + ".new", "w") as f:
            json.dump(kept, f)
        os.rename(path + ".new", path)
        self.answer({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "annotations": kept}})


ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
