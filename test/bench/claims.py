# SPDX-License-Identifier: Apache-2.0
"""Compares ways in which the pods of a Job can share one device, on the test cluster. ./claims sets up the cluster and calls this program.

The forms of a Job with one pod per node:

    plain             without a claim
    template          a claim for each pod, from a template
    named-unused      all pods name one claim, which nothing uses: the first pod lets the scheduler allocate it
    named-used        the same, but another pod uses the claim
    named-allocated   the same, but a controller has allocated the claim in advance, and no pod uses it
    named-gated       the same, and the pods have a scheduling gate; the controller reserves the claim for all pods that it has seen, with one
                      write, and then removes their gates
    gang              pods of a PodGroup with gang scheduling, without a claim
    group-unused      the PodGroup names the claim, and nothing uses it
    group-allocated   the same, but a controller has allocated the claim
    group-reserved    the same, and the controller has reserved it for the PodGroup before the pods are created
    group-kept        the same, but the controller reserves the claim when its watch shows the PodGroup, beside the user's next request; and
                      again, after a pause, each time that the scheduler removes the reservation
    group-template    the PodGroup names a template
    group-template-kept   the same, and the controller allocates and reserves the claim when its watch shows it
    job-gang          a Job with spec.scheduling, without a claim   (1.37, with the gate WorkloadWithJob)
    job-group         a Job with spec.scheduling that names the claim

A gang that has to wait until nodes are free is measured separately ("late").

Each round measures all forms in turns. Ratios compare a run with the plain run of the same round. A pod is "delayed by a race" if the
scheduler reported FailedScheduling for a pod of its Job; the delay is the time of the last bind, less that of the plain run of the same round."""

import argparse
import atexit
import collections
import json
import queue
import re
import statistics
import sys
import threading
import time
import uuid

from bench import DRIVER_NS, IMAGE, NS, job, labels, own_namespace, publish, quartiles, running
from cpu import CONTROL_PLANE, NODES, OURS, Cgroups, used
from kubeapi import Cluster, NotFound, Watch

# ---- The limits, stated before the first run. RATIO is for the time from the first request until all pods are Running.
RATIO = {
    "template": 1.10,
    "named-unused": 1.08, "group-unused": 1.08,  # the first pods since the claim was last unused
    "named-used": 1.05, "named-allocated": 1.05, "named-gated": 1.05, "group-allocated": 1.05, "group-reserved": 1.05,
    "group-kept": 1.05, "group-template-kept": 1.05,
}
# No Job may be delayed by more than this by a race.
DELAY_S = 1.0
# Successful writes about claims by the resourceclaim controller and the garbage collector, per pod: before all pods run, and until the Job
# and its claims are deleted. The last pod of a claim may cost one more.
WRITES = {
    "named-unused": (0, 1), "named-used": (0, 1), "named-allocated": (0, 1), "named-gated": (0, 1),
    "group-unused": (0, 0), "group-allocated": (0, 0), "group-reserved": (0, 0), "group-kept": (0, 0),
    "group-template": (1, 1), "group-template-kept": (1, 1),
}
# ----

ALL = ("plain", "template", "named-unused", "named-used", "named-allocated", "named-gated", "gang", "group-unused", "group-allocated", "group-reserved",
       "group-kept", "group-template", "group-template-kept")
JOBS = ("job-gang", "job-group")
LATE = ("gang", "group-reserved", "group-kept")
# Forms whose claim a controller allocates in advance.
IN_ADVANCE = ("named-allocated", "named-gated", "group-allocated", "group-reserved", "group-kept", "job-group")
# How long a late gang waits for nodes.
LATE_S = 6
DRA = "/apis/resource.k8s.io/v1"
CLAIMS, PODS = f"{DRA}/namespaces/{NS}/resourceclaims", f"/api/v1/namespaces/{NS}/pods"
# interop_server answers a claim without devices if its name begins with "none". The names of claims from templates begin with the Job's.
TEMPLATE = "none"
DRIVER, CLASS, POOL, DEVICE, REQUEST = "test.example.com", "shared.test.example.com", "shared", "channel", "channel"
# Every kubelet of the test cluster sets this label.
SELECTOR = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "nvidia.com/gpu.present", "operator": "In", "values": ["true"]}]}]}
CONTROLLER = f"system:serviceaccount:{NS}:controller"
CLAIM_SPEC = {"devices": {"requests": [{"name": REQUEST, "exactly": {"deviceClassName": CLASS}}]}}
COUNTED = ("resourceclaim controller", "garbage collector")
COMPONENTS = {
    "system:kube-scheduler": "scheduler",
    "system:serviceaccount:kube-system:resource-claim-controller": "resourceclaim controller",
    "system:serviceaccount:kube-system:generic-garbage-collector": "garbage collector",
    "system:serviceaccount:kube-system:job-controller": "Job controller",
    CONTROLLER: "our controller",
    f"system:serviceaccount:{DRIVER_NS}:compute-domains-service-account-controller": "our controller",
}


class Controller(Cluster):
    """Sends requests as the service account of a driver's controller, with no more rights than it needs."""

    def headers(self):
        return {**super().headers(), "Impersonate-User": CONTROLLER}


def claim_of(form):
    return f"none-{form}"


class Claims:
    def __init__(self, kubectl, audit_log, cgroups, forms, log, pause=0):
        self.pause, self.cgroups = pause, cgroups
        self.k, self.controller, self.audit_log, self.log = Cluster(kubectl), Controller(kubectl), audit_log, log
        self.serial, self.when, self.notes = 0, {}, []
        self.gated, self.users = queue.Queue(), []
        threading.Thread(target=self.open_gates, daemon=True).start()
        own_namespace(self.k)
        versions = [v["groupVersion"] for v in self.k.get("/apis/scheduling.k8s.io")["versions"]]
        self.group = next(v for v in ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2") if v in versions)
        self.groups = f"/apis/{self.group}/namespaces/{NS}/podgroups"
        self.pods = Watch(self.k, PODS, self.see_pod)
        self.kept, self.reserved = None, 0
        self.claims = Watch(self.k, CLAIMS, self.see_claim)
        self.podgroups = Watch(self.k, self.groups, self.see_podgroup)
        self.events = Watch(self.k, f"/api/v1/namespaces/{NS}/events")
        self.set_up(forms)

    def see_pod(self, kind, o, arrived):
        seen = self.when.setdefault(o["metadata"]["name"], {})
        seen.setdefault("created", arrived)
        if o["spec"].get("nodeName"):
            seen.setdefault("bound", arrived)
        if running(o):
            seen.setdefault("running", arrived)
        if kind == "ADDED" and o["spec"].get("schedulingGates"):
            self.gated.put(o["metadata"])

    def open_gates(self):
        """Reserves the claim for pods with a gate, and removes their gates: several at a time if several have arrived."""
        while True:
            new = [self.gated.get()]
            while not self.gated.empty():
                new.append(self.gated.get())
            self.users += [{"resource": "pods", "name": pod["name"], "uid": pod["uid"]} for pod in new]
            self.controller.patch(f"{CLAIMS}/{claim_of('named-gated')}/status", {"status": {"reservedFor": self.users}})
            for pod in new:
                self.controller.patch(f"{PODS}/{pod['name']}", {"spec": {"schedulingGates": None}})

    def see_podgroup(self, kind, o, arrived):
        if kind == "ADDED" and any(c.get("resourceClaimName") == claim_of("group-kept") for c in o["spec"].get("resourceClaims") or []):
            self.kept = o["metadata"]
            self.keep(lambda: self.reserve(claim_of("group-kept"), self.kept))

    def see_claim(self, kind, o, arrived):
        owner = next(iter(o["metadata"].get("ownerReferences") or []), {})
        if kind == "ADDED" and owner.get("kind") == "PodGroup" and owner["name"].startswith("none-group-template-kept-"):
            self.keep(lambda: self.allocate(o["metadata"]["name"], owner))
        if kind != "DELETED" and o["metadata"]["name"] == claim_of("group-kept") and self.kept and not o.get("status", {}).get("reservedFor"):
            threading.Timer(self.pause, self.reserve_again, [self.kept]).start()

    def reserve_again(self, group):
        if self.kept is group:
            self.keep(lambda: self.reserve(claim_of("group-kept"), group))

    def keep(self, write):
        """Reserves a claim for a PodGroup. If the scheduler was faster, this fails."""
        try:
            write()
            self.reserved += 1
        except RuntimeError as e:
            self.log(f"not reserved: {e}")

    def reserve(self, claim, group):
        self.controller.patch(f"{CLAIMS}/{claim}/status", {"status": {"reservedFor": [self.reference(group)]}})

    @staticmethod
    def reference(group):
        return {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": group["name"], "uid": group["uid"]}

    def make(self, path, body):
        """Creates an object that an earlier run on this cluster may have created."""
        try:
            self.k.get(f"{path}/{body['metadata']['name']}")
        except NotFound:
            self.k.create(path, body)

    def set_up(self, forms):
        self.make(f"{DRA}/deviceclasses", {"metadata": {"name": CLASS}, "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}})
        self.make(f"{DRA}/resourceslices", {"metadata": {"name": "shared"}, "spec": {
            "driver": DRIVER, "nodeSelector": SELECTOR, "pool": {"name": POOL, "generation": 1, "resourceSliceCount": 1},
            # Without a capacity: without a request policy, the first claim would consume all of it.
            "devices": [{"name": DEVICE, "allowMultipleAllocations": True}]}})
        self.make(f"{DRA}/namespaces/{NS}/resourceclaimtemplates", {"metadata": {"name": TEMPLATE}, "spec": {"spec": CLAIM_SPEC}})
        for form in forms:
            if form.startswith("named-") or form == "group-unused" or form in IN_ADVANCE:
                self.make(CLAIMS, {"metadata": {"name": claim_of(form)}, "spec": CLAIM_SPEC})
        if allocated := [f for f in forms if f in IN_ADVANCE]:
            self.allow(allocated)
        if "named-used" in forms:
            holder = {"restartPolicy": "Never", "resourceClaims": [{"name": "channel", "resourceClaimName": claim_of("named-used")}],
                      "containers": [{"name": "holder", "image": IMAGE, "imagePullPolicy": "Never", "command": ["sleep", "86400"],
                                      "resources": {"claims": [{"name": "channel"}]}}]}
            self.make(PODS, {"metadata": {"name": "holder"}, "spec": holder})
            self.pods.wait(lambda pods: any(p["metadata"]["name"] == "holder" and running(p) for p in pods), 60, "the pod that uses the claim")

    def allow(self, forms):
        """Allocates claims as a driver's controller, and notes which permissions it needs."""
        rules = lambda *resources: [{"apiGroups": ["resource.k8s.io"], "resources": list(resources), "verbs": ["get", "update", "patch"]}]
        roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
        self.make(roles, {"metadata": {"name": "bench-controller"}, "rules": rules("resourceclaims", "resourceclaims/status")})
        self.make("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
            "metadata": {"name": "bench-controller"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bench-controller"},
            "subjects": [{"kind": "ServiceAccount", "name": "controller", "namespace": NS}]})
        time.sleep(2)  # the authorizer sees the role when its watch delivers it
        try:
            self.allocate(claim_of(forms[0]))
            self.notes.append("the status of a claim can be allocated without the permission resourceclaims/binding")
        except RuntimeError as e:
            self.notes.append(f"without the permission resourceclaims/binding: {e}")
        self.k.patch(f"{roles}/bench-controller", {"rules": rules("resourceclaims", "resourceclaims/status", "resourceclaims/binding") + [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]}]})
        time.sleep(2)
        for form in forms:
            self.allocate(claim_of(form))

    def allocate(self, claim, group=None):
        """Allocates a claim, and reserves it if a PodGroup is given. Without the scheduler's finalizer, Kubernetes does not deallocate an unused claim.
        Without a time stamp, the scheduler would add one when it reserves the claim, and the API server would refuse to change an allocation."""
        if not group and self.k.get(f"{CLAIMS}/{claim}").get("status", {}).get("allocation"):
            return
        result = {"request": REQUEST, "driver": DRIVER, "pool": POOL, "device": DEVICE, "shareID": str(uuid.uuid4())}
        self.controller.patch(f"{CLAIMS}/{claim}/status", {"status": {
            "reservedFor": [self.reference(group)] if group else None,
            "allocation": {"devices": {"results": [result]}, "nodeSelector": SELECTOR,
                           "allocationTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}}})

    def named(self, form):
        """What a pod or a PodGroup of a form names."""
        return {"resourceClaimTemplateName": TEMPLATE} if "template" in form else {"resourceClaimName": claim_of(form)}

    def start(self, form, n, name):
        """Sends the requests of a user, and of our controller, that start a Job of a form."""
        body = job(name, n)
        pod = body["spec"]["template"]["spec"]
        claim = {"name": "channel", **self.named(form)}
        if form not in ("plain", "gang", "job-gang"):
            pod["resourceClaims"] = [claim]
            pod["containers"][0]["resources"]["claims"] = [{"name": "channel"}]
        if form == "named-gated":
            pod["schedulingGates"] = [{"name": f"{DRIVER}/reserved"}]
        if form == "gang" or form.startswith("group-"):
            pod["schedulingGroup"] = {"podGroupName": name}
            spec = {"schedulingPolicy": {"gang": {"minCount": n}}}
            if form != "gang":
                spec["resourceClaims"] = [claim]
            made = self.k.create(self.groups, {"apiVersion": self.group, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec})
            if form == "group-reserved":
                self.reserve(claim_of(form), made["metadata"])
        if form in JOBS:
            body["spec"]["scheduling"] = {"schedulingPolicy": {"gang": {"minCount": n}}}
            if form == "job-group":
                body["spec"]["scheduling"]["resourceClaims"] = [claim]
        self.k.create(f"/apis/batch/v1/namespaces/{NS}/jobs", body)

    def remove(self, form, name):
        self.kept, self.users = None, []
        self.k.delete(f"/apis/batch/v1/namespaces/{NS}/jobs/{name}")
        self.pods.wait(lambda pods: not self.of(name, pods), 120, "pods deleted")
        if form == "gang" or form.startswith("group-"):
            self.k.delete(f"{self.groups}/{name}")
        self.podgroups.wait(lambda groups: not groups, 120, "PodGroup deleted")
        self.claims.wait(lambda claims: all(map(self.idle, claims)), 120, "claims unused")

    def idle(self, claim):
        """The claim is as it was before the first Job."""
        name, status = claim["metadata"]["name"], claim.get("status", {})
        users = [r["name"] for r in status.get("reservedFor") or []]
        if name == claim_of("named-used"):
            return users == ["holder"]
        if name in (claim_of("named-unused"), claim_of("group-unused")):
            return not users and not status.get("allocation") and not claim["metadata"].get("finalizers")
        return name in map(claim_of, IN_ADVANCE) and not users

    @staticmethod
    def of(name, pods):
        return [p for p in pods if labels(p).get("bench") == name]

    def our_pods(self):
        """The Pods of a driver whose CPU time is measured."""
        return []

    def position(self):
        with open(self.audit_log, "rb") as f:
            return f.seek(0, 2)

    def writes(self, since, until):
        """The writes between two positions of the audit log: {(component, "VERB RESOURCE"): count} about claims, and about PodGroups; and
        conflicts by component."""
        claims, groups, conflicts = collections.Counter(), collections.Counter(), collections.Counter()
        with open(self.audit_log, "rb") as f:
            f.seek(since)
            for line in f.read(until - since).splitlines():
                e = json.loads(line)
                ref, code = e.get("objectRef", {}), e.get("responseStatus", {}).get("code", 0)
                if e["stage"] != "ResponseComplete" or e["verb"] not in ("create", "update", "patch", "delete") or ref.get("namespace") != NS:
                    continue
                user = e.get("impersonatedUser", e["user"])["username"]
                who = COMPONENTS.get(user, "kubelet" if user.startswith("system:node:") else user.rsplit(":", 1)[-1])
                resource = ref["resource"]
                what = f"{e['verb']} {resource}" + (f"/{ref['subresource']}" if ref.get("subresource") else "")
                about_claims = resource == "resourceclaims" or (who in ("resourceclaim controller", "our controller") and resource in ("pods", "podgroups"))
                if code == 409:
                    conflicts[who] += about_claims
                elif code < 300 and about_claims:
                    claims[(who, what)] += 1
                elif code < 300 and resource in ("podgroups", "workloads"):
                    groups[(who, what)] += 1
        return claims, groups, conflicts

    def failures(self, name):
        """{pod: [message, ...]} of the FailedScheduling Events of a Job's pods."""
        found = collections.defaultdict(list)
        with self.events.changed:
            events = list(self.events.objects.values())
        for e in events:
            pod = e["involvedObject"].get("name", "")
            if e.get("reason") == "FailedScheduling" and pod.startswith(name + "-"):
                times = max(e.get("count") or 0, (e.get("series") or {}).get("count", 0), 1)
                found[pod] += [e.get("message", "").replace(pod, "POD")] * times
        return dict(found)

    def run(self, form, n):
        """Starts a Job of a form and removes it. Returns what was seen."""
        self.serial += 1
        name = f"none-{form}-{self.serial}"
        cpu, before, start = self.cgroups.read(self.our_pods()), self.position(), time.monotonic()
        self.start(form, n, name)
        end = self.pods.wait(lambda pods: sum(map(running, self.of(name, pods))) == n, 240, f"{name} with {n} pods")
        at_start, cpu = self.position(), used(cpu, self.cgroups.read(self.our_pods()))
        seen = [{k: t - start for k, t in times.items()} for pod, times in self.when.items() if pod.startswith(name + "-")]
        self.remove(form, name)
        time.sleep(0.5)  # the last writes
        at_end = self.position()
        claims_before, groups_before, conflicts = self.writes(before, at_start)
        claims_life, groups_life, conflicts_life = self.writes(before, at_end)
        failed = self.failures(name)
        self.when.clear()
        text = lambda counts: {" ".join(k) if isinstance(k, tuple) else k: v for k, v in counts.items()}
        counted = lambda counts: sum(v for (who, _), v in counts.items() if who in COUNTED)
        return {"form": form, "pods": n, "seconds": end - start, "last_bound": max(t["bound"] for t in seen),
                "bound": sorted(t["bound"] for t in seen), "running": sorted(t["running"] for t in seen),
                "counted": (counted(claims_before), counted(claims_life)), "scheduler": sum(v for (who, _), v in claims_before.items() if who == "scheduler"),
                "ours": sum(v for (who, _), v in claims_before.items() if who == "our controller"),
                "claims_before": text(claims_before), "claims_life": text(claims_life),
                "groups_before": text(groups_before), "groups_life": text(groups_life),
                "conflicts_before": text(conflicts), "conflicts_life": text(conflicts_life), "failed": failed, "cpu": cpu}

    def late(self, form, n):
        """Starts a gang while another Job has all nodes, and then deletes that Job. Returns what was seen."""
        self.serial += 1
        before, name, self.reserved = f"none-before-{self.serial}", f"none-{form}-{self.serial}", 0
        self.start("plain", n, before)
        self.pods.wait(lambda pods: sum(map(running, self.of(before, pods))) == n, 240, before)
        self.start(form, n, name)
        time.sleep(LATE_S)
        reserved = form != "gang" and bool(self.k.get(f"{CLAIMS}/{claim_of(form)}")["status"].get("reservedFor"))
        self.k.delete(f"/apis/batch/v1/namespaces/{NS}/jobs/{before}")
        free = self.pods.wait(lambda pods: not self.of(before, pods), 120, "nodes free")
        end = self.pods.wait(lambda pods: sum(map(running, self.of(name, pods))) == n, 240, f"{name} with {n} pods")
        self.remove(form, name)
        bind = {pod: texts for pod, texts in self.failures(name).items() if any("PreBind" in text for text in texts)}
        self.when.clear()
        return {"form": form, "seconds": end - free, "reserved": reserved, "writes": self.reserved, "bind_failed": bind}


def verdict(met):
    return "met" if met else "**missed**"


def times_table(runs, forms, sizes):
    lines = ["| form | " + " | ".join(f"{n} pod{'s' * (n > 1)}: s | ratio to plain" for n in sizes) + " | limit | |",
             "|---|" + "---|---|" * len(sizes) + "---|---|"]
    for form in forms:
        cells, met = [], True
        for n in sizes:
            seconds, plain = ([r["seconds"] for r in runs if r["form"] == f and r["pods"] == n] for f in (form, "plain"))
            ratios = [s / p for s, p in zip(seconds, plain)]
            cells += [quartiles(seconds), quartiles(ratios) if form != "plain" else ""]
            met = met and (form not in RATIO or round(statistics.median(ratios), 2) <= RATIO[form])
        limit = f"{RATIO[form]:.2f} | {verdict(met)}" if form in RATIO else " | "
        lines.append(f"| {form} | {' | '.join(cells)} | {limit} |")
    return lines


def writes_table(runs, forms, n):
    """Medians per pod."""
    per_pod = lambda values: f"{statistics.median(values) / n:.2f}"
    lines = [f"| form, {n} pods | resourceclaim controller and garbage collector, per pod: before / life | limit | | scheduler, per pod | our controller, per "
             "Job | conflicts per Job | about PodGroups, per Job |", "|---|---|---|---|---|---|---|---|"]
    for form in forms:
        mine = [r for r in runs if r["form"] == form and r["pods"] == n]
        before, life = ([r["counted"][i] for r in mine] for i in (0, 1))
        limit = " | "
        if form in WRITES:
            # The last pod of the claim may cost one more.
            met = statistics.median(before) <= WRITES[form][0] * n and statistics.median(life) <= WRITES[form][1] * n + 1
            limit = f"{WRITES[form][0]} / {WRITES[form][1]} | {verdict(met)}"
        conflicts = [sum(r["conflicts_life"].values()) for r in mine]
        groups = [sum(r["groups_life"].values()) for r in mine]
        lines.append(f"| {form} | {per_pod(before)} / {per_pod(life)} | {limit} | {per_pod([r['scheduler'] for r in mine])} | "
                     f"{statistics.median(r['ours'] for r in mine):g} | {statistics.median(conflicts):g} | "
                     f"{statistics.median(groups):g} |")
    return lines


def cpu_table(runs, forms, n):
    """Medians from the first request until all pods are Running."""
    parts = [part for part in (*CONTROL_PLANE, NODES, *OURS) if any(part in r["cpu"] for r in runs)]
    lines = [f"| form, {n} pods: CPU time, ms per pod | {' | '.join(parts)} |", "|---|" + "---|" * len(parts)]
    for form in forms:
        mine = [r["cpu"] for r in runs if r["form"] == form and r["pods"] == n]
        lines.append(f"| {form} | " + " | ".join(f"{statistics.median(cpu.get(part, 0) for cpu in mine) / n * 1000:.1f}" for part in parts) + " |")
    return lines


def races_table(runs, forms, n):
    lines = [f"| form, {n} pods | Jobs with FailedScheduling | pods with it, of all | delay of such Jobs: median, longest | limit | |", "|---|---|---|---|---|---|"]
    plain = [r["last_bound"] for r in runs if r["form"] == "plain" and r["pods"] == n]
    for form in forms:
        mine = [r for r in runs if r["form"] == form and r["pods"] == n]
        delays = [r["last_bound"] - p for r, p in zip(mine, plain) if r["failed"]]
        shown = f"{statistics.median(delays):.2f} s, {max(delays):.2f} s" if delays else "-"
        limit = f"{DELAY_S:g} s | {verdict(max(delays, default=0) <= DELAY_S)}" if form in RATIO or form in WRITES else " | "
        lines.append(f"| {form} | {len(delays)} of {len(mine)} | {sum(len(r['failed']) for r in mine)} of {len(mine) * n} | {shown} | {limit} |")
    return lines


def late_table(runs, n):
    lines = [f"| gang of {n} that waits {LATE_S} s | still reserved then | times reserved by watch, per Job | Jobs with failed binds | pods with them, of all | "
             "nodes free to all Running |", "|---|---|---|---|---|---|"]
    for form in LATE:
        mine = [r for r in runs if r["form"] == form]
        lines.append(f"| {form} | {sum(r['reserved'] for r in mine)} of {len(mine)} | {statistics.median(r['writes'] for r in mine):g} | "
                     f"{sum(bool(r['bind_failed']) for r in mine)} of {len(mine)} | {sum(len(r['bind_failed']) for r in mine)} of {len(mine) * n} | "
                     f"{quartiles([r['seconds'] for r in mine])} s |")
    return lines


def messages(runs):
    found = collections.Counter()
    for r in runs:
        for texts in r["failed"].values():
            for text in texts:
                found[(r["form"], re.sub(rf"({NS}/)?none-{r['form']}(-[0-9]+-channel-[a-z0-9]+)?", "CLAIM", text)[:160])] += 1
    return [f"* {form}, {count} times: {text}" for (form, text), count in found.most_common()]


def main(kind=Claims, all_forms=ALL, description=__doc__):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--kubectl", required=True)
    p.add_argument("--audit-log", required=True)
    p.add_argument("--state", required=True, help="the folder of the test cluster")
    p.add_argument("--version", required=True)
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--sizes", default="1,12")
    p.add_argument("--forms", default=",".join(all_forms))
    p.add_argument("--late", type=int, default=0, help="how often late gangs are measured")
    p.add_argument("--pause", type=float, default=3, help="seconds from the removal of a reservation until group-kept reserves again")
    p.add_argument("--output", required=True, help="beginning of the names of the written files")
    a = p.parse_args()
    log = lambda text: print(f"claims: {text}", file=sys.stderr, flush=True)
    forms, sizes = a.forms.split(","), [int(s) for s in a.sizes.split(",")]
    cgroups = Cgroups(a.state)
    atexit.register(cgroups.leave)
    b = kind(a.kubectl, a.audit_log, cgroups, forms + ["group-reserved", "group-kept"] * (a.late > 0), log, a.pause)
    runs, late = [], []
    for i in range(-1, a.rounds) if a.rounds else ():
        for n in sizes:
            line = []
            # Another form is the first in each round.
            for form in forms[i % len(forms):] + forms[:i % len(forms)]:
                seen = b.run(form, n)
                seen["round"] = i
                line.append(f"{form} {seen['seconds']:.2f}" + (f" ({len(seen['failed'])} failed)" if seen["failed"] else ""))
                if i >= 0:
                    runs.append(seen)
            log(f"{f'round {i + 1} of {a.rounds}' if i >= 0 else 'not measured'}, {n} pods, seconds: " + ", ".join(line))
    for i in range(a.late):
        for form in LATE:
            late.append(b.late(form, sizes[-1]))
            log(f"late, {i + 1} of {a.late}: {form} {late[-1]['seconds']:.2f} s, {len(late[-1]['bind_failed'])} failed")
    with open(a.output + ".json", "w") as f:
        json.dump({"version": a.version, "notes": b.notes, "runs": runs, "late": late}, f, indent=1)
    lines = [f"Kubernetes {a.version}, {a.rounds} rounds; medians, quartiles in parentheses.", ""]
    if runs:
        lines += times_table(runs, forms, sizes) + [""] + writes_table(runs, forms, sizes[-1]) + [""] + cpu_table(runs, forms, sizes[-1]) + [""] + races_table(runs, forms, sizes[-1]) + [""]
    if late:
        lines += late_table(late, sizes[-1]) + [""]
    lines += messages(runs) + [f"* {note}" for note in b.notes]
    open(a.output + ".md", "w").close()
    publish(lines, a.output + ".md")


if __name__ == "__main__":
    main()
