# SPDX-License-Identifier: Apache-2.0
"""A small Kubernetes API client with the standard library: requests, and watches with the arrival time of each event.

A call of kubectl takes a tenth of a second of CPU, which on a small machine is as long as the measured times."""

import base64
import concurrent.futures
import http.client
import json
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

# A thread with an event waits for those that decode others. The default of 5 ms is as long as the measured times.
sys.setswitchinterval(0.0002)


class NotFound(Exception):
    pass


def each(f, things):
    """Calls f with each of the things, in twelve threads."""
    with concurrent.futures.ThreadPoolExecutor(12) as threads:
        list(threads.map(f, things))


class Cluster:
    def __init__(self, kubectl):
        view = json.loads(subprocess.check_output([kubectl, "config", "view", "--raw", "--minify", "-o", "json"]))
        cluster, user = view["clusters"][0]["cluster"], view["users"][0]["user"]
        self.host = urllib.parse.urlparse(cluster["server"])
        self.tls = ssl.create_default_context()
        if "certificate-authority-data" in cluster:
            self.tls.load_verify_locations(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        else:
            self.tls.load_verify_locations(cafile=cluster["certificate-authority"])
        self.token = user.get("token")
        if "client-certificate-data" in user:
            with tempfile.NamedTemporaryFile() as cert, tempfile.NamedTemporaryFile() as key:
                cert.write(base64.b64decode(user["client-certificate-data"]))
                key.write(base64.b64decode(user["client-key-data"]))
                cert.flush()
                key.flush()
                self.tls.load_cert_chain(cert.name, key.name)
        elif "client-certificate" in user:
            self.tls.load_cert_chain(user["client-certificate"], user["client-key"])
        self.local = threading.local()

    def connect(self, timeout=60):
        return http.client.HTTPSConnection(self.host.hostname, self.host.port or 443, context=self.tls, timeout=timeout)

    def headers(self):
        return {"Authorization": "Bearer " + self.token} if self.token else {}

    def request(self, method, path, body=None, content="application/json"):
        for attempt in (1, 2):  # the server may have closed a kept connection in the meantime
            conn = getattr(self.local, "conn", None) or self.connect()
            self.local.conn = conn
            try:
                conn.request(method, path, json.dumps(body) if body is not None else None,
                             {"Content-Type": content, **self.headers()})
                answer = conn.getresponse()
                text = answer.read()
                break
            except (http.client.HTTPException, OSError):
                conn.close()
                self.local.conn = None
                if attempt == 2:
                    raise
        if answer.status == 429:  # as right after a CustomResourceDefinition: "storage is (re)initializing"
            time.sleep(int(answer.headers.get("Retry-After", 1)))
            return self.request(method, path, body, content)
        if answer.status == 404:
            raise NotFound(path)
        if answer.status == 504:
            raise TimeoutError(f"{method} {path}: {text[:400]!r}")
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:400]!r}")
        return json.loads(text)

    def get(self, path):
        return self.request("GET", path)

    def create(self, path, body):
        return self.request("POST", path, body)

    def delete(self, path):
        try:
            return self.request("DELETE", path, {"propagationPolicy": "Background"})
        except NotFound:
            return None

    def delete_all(self, path, body=None):
        """Deletes the objects of a collection. The API server ends a request after a minute, with some of many objects deleted."""
        for left in reversed(range(20)):
            try:
                return self.request("DELETE", path, body)
            except (http.client.HTTPException, OSError):  # TimeoutError is an OSError
                if not left:
                    raise

    def patch(self, path, body):
        return self.request("PATCH", path, body, "application/merge-patch+json")


class Watch:
    """Watches a collection in a thread. `on_event(type, object, arrived)` runs there; wait(condition) sees the objects by name.
    It lists again after every end of a watch: a restarted API server may not have the version to resume from, or may serve an
    etcd that was restored from a backup."""

    def __init__(self, cluster, path, on_event=None):
        self.cluster, self.path, self.on_event = cluster, path, on_event
        self.objects, self.changed, self.ended = {}, threading.Condition(), threading.Event()
        self.list()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def list(self):
        """Reads the present objects, and returns the changes."""
        found = self.cluster.get(self.path)
        listed = {(o["metadata"].get("namespace"), o["metadata"]["name"]): o for o in found["items"]}
        with self.changed:
            before, self.objects = self.objects, listed
            self.version = found["metadata"]["resourceVersion"]
        changes = [("DELETED", o) for key, o in before.items() if key not in listed]
        return changes + [("MODIFIED" if key in before else "ADDED", o) for key, o in listed.items() if before.get(key) != o]

    def follow(self):
        joiner = "&" if "?" in self.path else "?"
        while not self.ended.is_set():
            try:
                conn = self.cluster.connect(timeout=3600)
                conn.request("GET", f"{self.path}{joiner}watch=1&resourceVersion={self.version}", headers=self.cluster.headers())
                for line in conn.getresponse():
                    self.take(json.loads(line), time.monotonic())
            except (OSError, ValueError, KeyError, http.client.HTTPException, AttributeError):
                pass
            self.start_again()

    def start_again(self):
        while not self.ended.wait(0.2):
            try:
                changes = self.list()
            except (OSError, ValueError, RuntimeError, NotFound, http.client.HTTPException):
                continue  # the server does not answer yet
            with self.changed:
                for kind, o in changes:
                    self.tell(kind, o, time.monotonic())
            return

    def tell(self, kind, o, arrived):
        if self.on_event:
            self.on_event(kind, o, arrived)
        self.changed.notify_all()

    def take(self, event, arrived):
        o = event["object"]
        if event["type"] == "ERROR":
            raise ValueError(o.get("message"))
        self.version = o["metadata"]["resourceVersion"]
        key = (o["metadata"].get("namespace"), o["metadata"]["name"])
        with self.changed:
            if event["type"] == "DELETED":
                self.objects.pop(key, None)
            else:
                self.objects[key] = o
            self.tell(event["type"], o, arrived)

    def wait(self, condition, seconds, what):
        """Waits until condition(list of objects) is true, and returns the time."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while not condition(list(self.objects.values())):
                left = deadline - time.monotonic()
                if left <= 0 or not self.changed.wait(left):
                    raise TimeoutError(f"{what}: not within {seconds} s")
            return time.monotonic()

    def stop(self):
        self.ended.set()
