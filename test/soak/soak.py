# SPDX-License-Identifier: Apache-2.0
"""Creates and deletes workloads of one to six pods in several ComputeDomains while faults strike, and checks that nothing is left at the end.

./run sets up the cluster, the image and the chart, and calls this program."""

import argparse
import collections
import concurrent.futures
import heapq
import itertools
import os
import random
import signal
import statistics
import sys
import time

import faults
from kinds import KINDS, NS
from world import CD_GROUP, DRA_GROUP, NO_CHANNEL, NO_GPUS, World

DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NS}/deployments"
OUTSTANDING = 3    # with more faults at the same time it would be unclear which of them does not heal
HEAL_LIMIT_S = 330  # the kubelet restarts a crashing container only every five minutes
LEASE_EXCUSE_S = 30  # a kubelet that did not run itself reports the end of a container late
SLOW_S = 60         # for faults that heal more slowly, the result lists what they waited for
Workload = collections.namedtuple("Workload", "cd replicas gpus")


def gpu_template(n):
    request = {"name": "gpus", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": n}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": f"gpus-{n}", "namespace": NS},
            "spec": {"spec": {"devices": {"requests": [request]}}}}


def deployment(kind, workload, cd, replicas, gpus):
    claims = [{"name": "channel", "resourceClaimTemplateName": kind.template(cd)}]
    if gpus:
        claims.append({"name": "gpus", "resourceClaimTemplateName": f"gpus-{gpus}"})
    looks = (f"{{ {kind.looks()}; }} || exit {NO_CHANNEL}; "
             f"test $(ls /dev | grep -cE '^nvidia[0-9]+$') = {gpus} || exit {NO_GPUS}; exec sleep 1000000")
    pod = {
        "terminationGracePeriodSeconds": 0,
        # If a node has room for several pods, the pods are spread over the nodes all the same.
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
                                       "labelSelector": {"matchLabels": {"workload": workload}}}],
        "resourceClaims": claims,
        "containers": [{
            "name": "worker", "image": "compute-domains/busybox:test", "imagePullPolicy": "Never",
            "resources": {"claims": [{"name": c["name"]} for c in claims]}, "command": ["sh", "-c", looks],
        }],
    }
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": workload, "namespace": NS},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"workload": workload}}, "progressDeadlineSeconds": 3600,
                 "template": {"metadata": {"labels": {"workload": workload}}, "spec": pod}},
    }


class Strike:
    """A fault in progress: first its harm, then the wait until everything has healed."""

    def __init__(self, fault, hit):
        self.fault, self.hit, self.steps = fault, hit, fault(hit)
        self.running = None     # a step in a thread
        self.waiting = None     # for seconds, or for a condition
        self.since = self.harm_ended = None
        self.struck = False     # it has done some harm
        self.evidence, self.affected = None, set()
        self.waits = []         # (since when, for what) while it heals

    def waits_for(self, text):
        if not self.waits or self.waits[-1][1] != text:
            self.waits.append((time.monotonic(), text))

    def story(self):
        """The conditions that it waited for, the longest wait first."""
        ends = [since for since, _ in self.waits[1:]] + [time.monotonic()]
        spans = sorted(((end - since, text) for (since, text), end in zip(self.waits, ends)), reverse=True)
        return "; ".join(f"{seconds:.1f} s for: {text}" for seconds, text in spans[:4])


class Soak:
    def __init__(self, world, seed, kinds):
        self.w, self.rng, self.kinds = world, random.Random(seed), kinds
        self.workloads, self.strikes, self.healed = {}, [], collections.defaultdict(list)
        self.failures, self.slow = [], []
        self.threads = concurrent.futures.ThreadPoolExecutor(8)
        self.serial, self.agenda, self.order = itertools.count(1), [], itertools.count()
        self.start, self.controllers_stay, self.looked_at_claims = time.monotonic(), float("inf"), 0
        self.lease_excused_until = 0
        self.planned, self.backing_up = [], None
        world.imex_may_end = lambda node: any(s.fault in faults.ENDS_IMEX and node in s.hit.nodes for s in self.strikes)
        world.domain_may_go = lambda cd: any(s.fault in faults.ENDS_DOMAIN and s.hit.what == cd for s in self.strikes)
        world.lease_may_be_lost = lambda: time.monotonic() < self.lease_excused_until or any(s.fault in faults.TAKES_THE_LEASE for s in self.strikes)

    def log(self, text):
        print(f"{time.monotonic() - self.start:7.1f} s  {text}", flush=True)

    def at(self, seconds, action):
        heapq.heappush(self.agenda, (time.monotonic() + seconds, next(self.order), action))

    def fail(self, text):
        self.failures.append(text)
        self.log("FAILED: " + text)

    # ---- workloads ----

    def room(self, cd):
        return self.w.kind.room(cd, self.workloads.values())

    def api_fault(self):
        return any(s.fault in faults.NO_API and s.harm_ended is None for s in self.strikes)

    def churn(self):
        """One change: a workload is created, is deleted, grows or shrinks."""
        if self.api_fault():
            return
        roomy = [cd for cd in self.w.kind.domains if self.room(cd)]
        if roomy and (not self.workloads or self.rng.random() < 0.5):
            w, cd, gpus = f"w{next(self.serial)}", self.rng.choice(roomy), self.rng.choice(self.w.kind.gpus)
            n = self.rng.randint(1, self.room(cd))
            self.w.k.create(DEPLOYMENTS, deployment(self.w.kind, w, cd, n, gpus))
            self.workloads[w] = Workload(cd, n, gpus)
            self.log(f"workload {w}: {n} pods in {cd}, with {gpus} GPUs each")
            return
        w = self.rng.choice(sorted(self.workloads))
        cd, n, gpus = self.workloads[w]
        wanted = self.rng.choice([i for i in range(n + self.room(cd) + 1) if i != n])
        if wanted == 0:
            self.w.k.delete(f"{DEPLOYMENTS}/{w}")
            del self.workloads[w]
        else:
            self.w.k.patch(f"{DEPLOYMENTS}/{w}", {"spec": {"replicas": wanted}})
            self.workloads[w] = Workload(cd, wanted, gpus)
        self.log(f"workload {w}: {n} to {wanted} pods in {cd}")

    def apply(self):
        """The cluster has lost changes of users: they apply their manifests again, and repeat their deletions."""
        found = {o["metadata"]["name"]: o for o in self.w.k.get(DEPLOYMENTS)["items"]}
        for w in sorted(found.keys() - self.workloads.keys()):
            self.w.k.delete(f"{DEPLOYMENTS}/{w}")
        for w, (cd, n, gpus) in sorted(self.workloads.items()):
            if w not in found:
                self.w.k.create(DEPLOYMENTS, deployment(self.w.kind, w, cd, n, gpus))
            elif found[w]["spec"]["replicas"] != n:
                self.w.k.patch(f"{DEPLOYMENTS}/{w}", {"spec": {"replicas": n}})

    def back_up(self):
        if self.api_fault() or any(s.fault in faults.NO_BACKUP for s in self.strikes) or (self.backing_up and not self.backing_up.done()):
            return
        if self.backing_up and self.backing_up.exception():
            self.fail(f"backup: {self.backing_up.exception()!r}")
        self.backing_up = self.threads.submit(self.w.take_snapshot)

    # ---- faults ----

    def may_strike(self, fault):
        harming = [s for s in self.strikes if s.harm_ended is None]
        if any(s.fault is fault for s in harming) or (fault in faults.ENDS_CONTROLLERS and time.monotonic() > self.controllers_stay):
            return False
        if fault in faults.PAGES and any(s.fault in faults.PAGES for s in harming):
            return False
        if any(s.fault in faults.PLANNED for s in self.strikes) or self.planned:
            return False
        if self.api_fault():
            return fault in faults.LOCAL
        return fault is not faults.api_server_gone or all(s.fault in faults.LOCAL for s in harming)

    def strike(self):
        kinds = [f for f in self.kinds if f in faults.FAULTS and self.may_strike(f)]
        if self.planned and not self.strikes and faults.ready(self.w, self.planned[0]):
            fault = self.planned.pop(0)
        elif len(self.strikes) < OUTSTANDING and kinds:
            fault = self.rng.choices(kinds, [faults.FAULTS[f] for f in kinds])[0]
        else:
            return
        busy = set().union(*(s.hit.nodes for s in self.strikes))
        hit = faults.Hit(self.w, random.Random(self.rng.random()), lambda: dict(self.workloads), busy, self.apply)
        s = Strike(fault, hit)
        s.since = time.monotonic()
        self.strikes.append(s)
        self.step(s)

    def step(self, s):
        s.waiting = None
        s.running = self.threads.submit(lambda: next(s.steps))
        s.running.add_done_callback(lambda _: self.w.news.set())

    def after_step(self, s):
        future, s.running = s.running, None
        try:
            wait = future.result()
        except StopIteration as end:
            if not s.struck:
                self.strikes.remove(s)  # the fault does not apply now
                return
            s.evidence, s.harm_ended = end.value or faults.WHOLE, time.monotonic()
            return
        except Exception as e:  # any exception fails the run
            self.fail(f"{faults.title(s.fault)} {s.hit.what}: {e!r}")
            self.strikes.remove(s)
            return
        if not s.struck:
            s.struck = True
            # If another fault struck a workload, that fault waits for it.
            ill = set().union(*(x.affected for x in self.strikes))
            s.affected = (set(self.workloads) if s.hit.affects is None else set(s.hit.affects)) - ill
            self.log(f"fault: {faults.title(s.fault)}: {s.hit.what}")
        if callable(wait):
            s.waiting = wait
        else:
            end = time.monotonic() + wait
            s.waiting = lambda: None if time.monotonic() >= end else "its time"
            self.at(wait, lambda: None)

    def missing_of(self, s):
        """The condition that a fault still waits for, None if all has healed."""
        if s.waiting:
            return s.waiting()
        text = s.evidence()
        for w in sorted(s.affected & set(self.workloads)):
            text = text or self.w.missing(self.workloads[w].cd, w, self.workloads[w].replicas)
        return text

    def look(self):
        now = time.monotonic()
        for s in list(self.strikes):
            if s.running:
                if s.running.done():
                    self.after_step(s)
                continue
            text = self.missing_of(s)
            if text and s.harm_ended:
                s.waits_for(text)
            if text and now - (s.harm_ended or s.since) > HEAL_LIMIT_S:
                self.fail(f"{faults.title(s.fault)}: {s.hit.what} is not healed after {HEAL_LIMIT_S} s: {text}")
                self.strikes.remove(s)
            elif not text and s.waiting:
                self.step(s)
            elif not text:
                self.strikes.remove(s)
                if s.fault in faults.ENDS_IMEX:
                    self.w.kind.forget_imex(s.hit.nodes)
                if s.fault in faults.TAKES_THE_LEASE:
                    self.lease_excused_until = now + LEASE_EXCUSE_S
                self.healed[s.fault].append(now - s.harm_ended)
                self.log(f"healed after {now - s.harm_ended:.1f} s: {faults.title(s.fault)}: {s.hit.what}{s.hit.result}")
                if now - s.harm_ended > SLOW_S:
                    self.slow.append(f"{faults.title(s.fault)}: {s.hit.what}: {now - s.harm_ended:.1f} s, including {s.story()}")
                    self.log("it waited " + s.story())

    def recreate_outdated(self):
        if self.api_fault():
            return
        for w, x in sorted(self.workloads.items()):
            for pod in self.w.outdated(x.cd, w):
                self.log(f"user deletes a pod with a claim of a deleted ComputeDomain: {pod['metadata']['name']}")
                self.w.delete_pod(pod)

    def state(self):
        """On kill -USR1: logs the conditions that it waits for."""
        for s in self.strikes:
            doing = "running" if s.running else "harming" if s.harm_ended is None else "healing"
            self.log(f"{doing}: {faults.title(s.fault)}: {s.hit.what}: {None if s.running else self.missing_of(s)}")

    # ---- the run ----

    def turn(self, limit=1.0):
        now = time.monotonic()
        while self.agenda and self.agenda[0][0] <= now:
            heapq.heappop(self.agenda)[2]()
        self.look()
        if now > self.looked_at_claims + 1:
            self.looked_at_claims = now
            self.w.look_at_claims()
            self.w.kind.look(self.w)
            self.recreate_outdated()
        pause = min([limit] + [at - time.monotonic() for at, _, _ in self.agenda[:1]])
        self.w.news.wait(max(0.0, pause))
        self.w.news.clear()

    def broken(self):
        return bool(self.failures or self.w.violations)

    def until(self, what, seconds):
        """Continues until what() returns nothing. what() describes what is missing."""
        end = time.monotonic() + seconds
        while (text := what()) and time.monotonic() < end:
            self.turn()
        return text

    def keep_doing(self, action, shortest, longest, end):
        def again():
            if time.monotonic() < end:
                action()
                self.at(self.rng.uniform(shortest, longest), again)
        self.at(self.rng.uniform(shortest, longest), again)

    def missing_of_any(self):
        return next(filter(None, (self.w.missing(x.cd, w, x.replicas) for w, x in sorted(self.workloads.items()))), None)

    def storm(self, seconds):
        end = time.monotonic() + seconds
        # The controllers' resources at the end must be those of a long life.
        self.controllers_stay = end - seconds / 3
        self.keep_doing(self.churn, 4, 12, end)
        self.keep_doing(self.strike, 2, 7, end)
        planned = [f for f in self.kinds if f in faults.PLANNED]
        if planned:
            self.keep_doing(self.back_up, 10, 10, end)
        for fault in planned:
            for part in faults.PLANNED[fault]:
                self.at(part * seconds, lambda fault=fault: self.planned.append(fault))
        while time.monotonic() < end and not self.broken():
            self.turn()
        self.agenda.clear()
        if self.broken():
            return
        if text := self.until(lambda: "faults" if self.strikes else self.missing_of_any(), HEAL_LIMIT_S + 30):
            self.fail(f"not healed after the storm: {text}")

    def make_domains(self):
        kind = self.w.kind
        for n in filter(None, kind.gpus):
            self.w.k.create(f"{DRA_GROUP}/namespaces/{NS}/resourceclaimtemplates", gpu_template(n))
        kind.begin(self.w)
        for cd in kind.domains if kind.makes_domains() else ():
            self.w.k.create(f"{CD_GROUP}/namespaces/{NS}/computedomains", {
                "apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "metadata": {"name": cd, "namespace": NS},
                "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": kind.template(cd)}}}})

    def delete_all(self):
        kind = self.w.kind
        for w in list(self.workloads):
            self.w.k.delete(f"{DEPLOYMENTS}/{w}")
        self.workloads.clear()
        for cd in kind.domains if kind.makes_domains() else ():
            self.w.k.delete(f"{CD_GROUP}/namespaces/{NS}/computedomains/{cd}")
        kind.end(self.w)
        for n in filter(None, kind.gpus):
            self.w.k.delete(f"{DRA_GROUP}/namespaces/{NS}/resourceclaimtemplates/gpus-{n}")
        left = self.until(self.w.leftovers, kind.left_limit_s)
        for text in left:
            self.fail("left behind: " + text)

    def warm_up(self):
        """A formation of all nodes, which runs all ordinary code. The resources of the programs after it are compared with those at the end."""
        self.make_domains()
        for i, (cd, pods) in enumerate(self.w.kind.warm_up()):
            self.workloads[f"warm-up-{i}"] = Workload(cd, pods, 1)
            self.w.k.create(DEPLOYMENTS, deployment(self.w.kind, f"warm-up-{i}", cd, pods, 1))
        if text := self.until(self.missing_of_any, 120):
            self.fail(f"warm-up: {text}")
        self.delete_all()
        self.w.mounts_at_start = self.w.mounts()
        return self.w.figures()


def worst(figures):
    """{program: (largest private dirty MB, largest number of descriptors)}"""
    found = {}
    for (program, _), (mb, fds) in figures.items():
        before = found.get(program, (0, 0))
        found[program] = (max(before[0], mb), max(before[1], fds))
    return found


def grown(before, now, spare_mb, spare_fds):
    """Descriptions of resources that have grown too much."""
    texts = []
    limits = worst(before)
    for (program, pod), (mb, fds) in now.items():
        most_mb, most_fds = limits[program]
        if mb > most_mb + spare_mb:
            texts.append(f"{program} in {pod} has {mb:.2f} MB of private memory, at most {most_mb:.2f} MB at the start")
        if fds > most_fds + spare_fds:
            texts.append(f"{program} in {pod} has {fds} descriptors, at most {most_fds} at the start")
    return texts


def report(soak, before, now):
    lines = ["| fault | survived | healed: median | worst |", "|---|---|---|---|"]
    every = []
    for fault in sorted([*faults.FAULTS, *faults.PLANNED], key=faults.title):
        times = soak.healed.get(fault)
        if times:
            every += times
            lines.append(f"| {faults.title(fault)} | {len(times)} | {statistics.median(times):.1f} s | {max(times):.1f} s |")
    if every:
        lines.append(f"| all | {len(every)} | {statistics.median(every):.1f} s | {max(every):.1f} s |")
    lines += [""] + [f"- {text}" for text in soak.slow] + [""]
    lines.append(f"{next(soak.serial) - 1} workloads were created. nvidia-imex stayed the same process during each of {len(soak.w.kind.undisturbed)} prepared claims.")
    for program, (mb, fds) in sorted(worst(now).items()):
        was = worst(before)[program]
        lines.append(f"{program}: at most {was[0]:.2f} MB private dirty and {was[1]} descriptors at the start, {mb:.2f} MB and {fds} at the end.")
    return lines


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--state", required=True, help="the folder of the test cluster")
    p.add_argument("--nodes", type=int, required=True)
    p.add_argument("--workloads", choices=sorted(KINDS), required=True, help="the isolation of ComputeDomains, and where IMEX runs: see kinds.py")
    p.add_argument("--minutes", type=float, required=True)
    p.add_argument("--seed", type=int, required=True)
    p.add_argument("--faults", default="", help="only these, by their names in faults.py, separated by commas")
    p.add_argument("--output", required=True)
    a = p.parse_args()
    kind = KINDS[a.workloads](a.nodes)
    kinds = [f for f in faults.of_kind(kind) if not a.faults or f.__name__ in a.faults.split(",")]

    world = World(a.state, a.nodes, kind)
    soak = Soak(world, a.seed, kinds)
    signal.signal(signal.SIGUSR1, lambda *_: soak.state())
    soak.log(f"seed {a.seed}, {a.minutes:g} minutes, {a.nodes} nodes, workloads of {kind.name}, {len(kinds)} kinds of faults")
    before = soak.warm_up()
    now = before
    if not soak.broken():
        soak.make_domains()
        soak.storm(a.minutes * 60)
        if not kind.undisturbed:
            soak.fail("nvidia-imex was not seen twice during any prepared claim")
        if not soak.broken():
            soak.delete_all()
            soak.until(lambda: grown(before, world.figures(), 0.5, 2), 90)
            now = world.figures()
            for text in grown(before, now, 0.5, 2):
                soak.fail(text)
    lines = report(soak, before, now)
    print("\n".join(lines))
    with open(a.output, "w") as f:
        f.write(f"seed {a.seed}, {a.minutes:g} minutes, {a.nodes} nodes, workloads of {kind.name}\n\n" + "\n".join(lines) + "\n")
    for text in soak.failures + world.violations:
        print(f"soak: {text}", file=sys.stderr)
    if soak.broken():
        print(f"soak: FAILED with seed {a.seed}", file=sys.stderr)
    os._exit(1 if soak.broken() else 0)  # threads that still wait are no longer needed


main()
