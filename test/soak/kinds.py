# SPDX-License-Identifier: Apache-2.0
"""The kinds of workloads of a soak: the isolation of ComputeDomains, and where IMEX runs. The daemons run an IMEX domain for each ComputeDomain; or
each ComputeDomain has an assigned channel, in one IMEX domain that the daemons or the hosts run; or there are racks, whose ComputeDomains the
controller creates. ./run installs the chart for each kind."""

import glob
import json
import os
import re

DRIVER_NS, NS = "nvidia-compute-domains", "soak"
RACK_LABEL, RACK_NS_LABEL = "ds.coreweave.com/nvlink.domain", "resource.nvidia.com/rack-domains"
DAEMON = "compute-domain-daemon"  # program, DaemonSet, claim template and component
COMPONENT_LABEL, DAEMON_LABEL = "app.kubernetes.io/component", "resource.nvidia.com/imex-daemon"
UID_LABEL, IMEX = "resource.nvidia.com/computeDomain", "imex.resource.nvidia.com/"
# The comment in the CDI file of a claim; not of daemon claims.
COMMENT = re.compile(rf"# claim (?!{DRIVER_NS}/)\S+ domain (\S+)(?: channel \S+?=(\d+) clique (\S+))?")


def name(o):
    return o["metadata"]["name"]


def index_of(node):
    return int(node.rsplit("-", 1)[1])


def assignment_of(pod):
    """What a daemon reports to run: "<clique ID>/<UID>/<index>/<epoch>", or ""."""
    report = pod["metadata"].get("annotations", {}).get(IMEX + "report")
    return (json.loads(report).get("assignment") or "") if report else ""


def label_of(o):
    """The UID of its ComputeDomain, None if it has none."""
    return o["metadata"].get("labels", {}).get(UID_LABEL)


def living(world):
    return {o["metadata"]["uid"] for o in world.all(world.domains) if "deletionTimestamp" not in o["metadata"]}


def is_daemon(o):
    return o["metadata"].get("labels", {}).get(COMPONENT_LABEL) == DAEMON


def stands(domain):
    """True if an IMEX domain exists although no ComputeDomain uses it."""
    return domain["owner"].get("kind") == "ComputeDomainFabric"


class Kind:
    hosts_run_imex = False
    ends_with_the_last = ()   # programs that run only while they are used
    devices = 2               # in each node's slice
    plugin_flags = ()         # of a plugin that is started manually
    objects = ("workload template",)  # objects that somebody may delete manually
    left_limit_s = 180

    def __init__(self, nodes):
        self.n_nodes = nodes
        self.domains = [f"cd-{i}" for i in range(4)]
        self.gpus = (0, 1, 2)              # GPUs of each pod of a workload; a claim template for each number
        self.imex = {}                     # node: the nvidia-imex that look() saw
        self.undisturbed = set()           # claims during which nvidia-imex stayed the same process

    def forget_imex(self, nodes):
        """A fault has ended nvidia-imex on the node; the next one is another process."""
        self.imex = {node: last for node, last in self.imex.items() if node not in nodes}

    def template(self, cd):
        return cd

    def room(self, cd, workloads):
        """The number of additional pods that have room."""
        return self.n_nodes - sum(x.replicas for x in workloads)

    def warm_up(self):
        """(ComputeDomain, pods) of workloads that together touch all nodes."""
        return [(self.domains[0], self.n_nodes)]

    def clique(self, node):
        """The end of the clique ID of a node that was not moved."""
        return ".1"

    def joined(self, world, node):
        """What the host does after its node has joined again."""

    def begin(self, world):
        """Creates what must exist before ComputeDomains."""

    def end(self, world):
        """Ends what begin() has started."""

    def makes_domains(self):
        """True if users create the ComputeDomains."""
        return True

    def offers(self, devices):
        """True if the devices of a node's slice are those of a node without a fault."""
        return len(devices) == self.devices

    def excuses(self, kind, o, world):
        """True if an object may exist although nothing is used. Then it is no leftover."""
        return False

    def stays_in_folder(self, node, world):
        """The files that a node has beside the folders of ComputeDomains."""
        return {"plugin.lock"}

    def left(self, world):
        """Other leftovers."""
        return []


class Domain(Kind):
    """The daemon of each node runs IMEX for the ComputeDomain of the node; one pod of a workload per node."""

    name = "domain"
    ends_with_the_last = ("nvidia-imex",)
    objects = ("workload template", "label", "daemon label", "DaemonSet", "daemon template")

    def looks(self):
        """A shell command that fails if the channel is wrong."""
        return "test -c /dev/nvidia-caps-imex-channels/channel0"

    def is_well(self, o, nodes, has, world):
        """What a ComputeDomain with pods on these nodes lacks, None if nothing."""
        ready = {n["name"] for n in o.get("status", {}).get("nodes") or [] if n.get("status") == "Ready"}
        for node in nodes:
            if node not in ready:
                return f"{name(o)}: {node} is not ready in its status"
        if nodes and has(o, "PeersConnected") != "True":
            return f"{name(o)}: peers are not connected"
        return None

    def look(self, world):
        """Runs once a second: checks for violations."""
        self.look_at_imex(world)

    def served(self, node, claims, world):
        """The prepared claims of a node during which its nvidia-imex must not end, in any other state of the API: only the deletion of the
        ComputeDomain ends it."""
        domains = living(world)
        return {claim for claim, (domain, _, _) in claims.items() if domain in domains}

    def look_at_imex(self, world):
        """nvidia-imex stays the same process while a claim that it serves is prepared, unless a fault ends it. A claim counts only if it was
        prepared before the search for the first process, and still is after the search for the second."""
        first = world.prepared()
        running = {}
        for pod in world.of_app("imex-daemon"):
            if pod["spec"].get("nodeName"):
                running.setdefault(pod["spec"]["nodeName"], set()).update(world.of_pod(pod, "nvidia-imex"))
        then = world.prepared()
        for node in running.keys() | self.imex.keys():
            now, (before, used) = running.get(node, set()), self.imex.pop(node, (set(), set()))
            if world.imex_may_end(node) or not before:
                used = set()
            lost = used & self.served(node, then.get(node, {}), world)
            if lost and before & now:
                self.undisturbed |= lost
            elif lost and now:
                world.violation(f"nvidia-imex of {node} is another process during the prepared claims {', '.join(sorted(lost))}")
            # Without a process the next look checks again: the next process is another one.
            self.imex[node] = (now, self.served(node, first.get(node, {}), world)) if now else (before, lost)

    def stays_in_folder(self, node, world):
        return {"plugin.lock", "daemon.lock", "fabric", "edits", "daemon.json"}

    def excuses(self, kind, o, world):
        if o["metadata"]["namespace"] != DRIVER_NS:
            return False
        if kind == "ResourceClaim":
            daemons = {pod["metadata"]["uid"] for pod in world.of_app("imex-daemon") if is_daemon(pod)}
            return any(ref["uid"] in daemons for ref in o["metadata"].get("ownerReferences") or [])
        return kind in ("pod", "ResourceClaimTemplate") and is_daemon(o)

    def daemon_states(self, world, node):
        return [p["metadata"].get("annotations", {}).get(IMEX + "state") for p in world.of_app("imex-daemon") if p["spec"].get("nodeName") == node]

    def left(self, world):
        left = [f"IMEX domain of {d['owner'].get('name')} in fabric {name(f)}: {len(d.get('assignments') or [])} assignments"
                for f in world.all(world.fabrics) for d in f.get("domains") or [] if not stands(d)]
        left += [f"label of daemon pod {name(p)}" for p in world.of_app("imex-daemon") if label_of(p)]
        return left + [f"the daemon of {node} is not idle: {states}" for node, states in self.not_at_rest(world)]

    def rest(self):
        """The state of a daemon on an unused node."""
        return "IDLE"

    def not_at_rest(self, world):
        states = {node: self.daemon_states(world, node) for node in map(name, world.all(world.nodes))}
        return [(node, found) for node, found in sorted(states.items()) if found != [self.rest()]]


class HostChannel(Kind):
    """The hosts run IMEX as services. Several pods of any ComputeDomains share a node, and each ComputeDomain has an assigned channel."""

    name = "host-channel"
    hosts_run_imex = True
    devices = 16
    plugin_flags = ("--feature-gates=HostManagedIMEX=true", "--imex-isolation=channel")
    left_limit_s = 330  # a channel is free a minute after its last use, if every node has reported by then

    def __init__(self, nodes):
        super().__init__(nodes)
        self.gpus = (0, 1)

    def room(self, cd, workloads):
        return 2 * self.n_nodes - sum(x.replicas for x in workloads)

    def looks(self):
        return ("set -- /dev/nvidia-caps-imex-channels/*; test $# = 1 && test -c $1 && test ${1##*/} != channel0 && "
                "test ${1##*/} = channel$(printf %d 0x$(stat -c %T $1))")

    def joined(self, world, node):
        world.command("host-imex", index_of(node), "start")

    def is_well(self, o, nodes, has, world):
        return None if not nodes or has(o, "ChannelAssigned") == "True" else f"{name(o)}: no channel is assigned"

    def look(self, world):
        self.look_at_channels(world)
        self.look_at_hosts(world)

    def look_at_channels(self, world):
        """No channel of a partition belongs to two ComputeDomains, and no ComputeDomain has two channels."""
        whose, which = {}, {}
        for node, claims in world.prepared().items():
            for domain, channel, clique in claims.values():
                if channel is None:
                    world.violation(f"a claim of {domain} on {node} has no assigned channel")
                    continue
                other = whose.setdefault((clique, channel), (domain, node))
                if other[0] != domain:
                    world.violation(f"channel {channel} of {clique} belongs to {domain} on {node} and to {other[0]} on {other[1]}")
                other = which.setdefault((clique, domain), (channel, node))
                if other[0] != channel:
                    world.violation(f"{domain} has channel {channel} of {clique} on {node} and {other[0]} on {other[1]}")

    def look_at_hosts(self, world):
        """Only a fault ends the hosts' IMEX."""
        prepared = world.prepared()
        for path in glob.glob(os.path.join(world.state, "nodes", "*", "host-imex.pid")):
            node = "node-" + path.split(os.sep)[-2]
            try:
                pid = open(path).read().strip()
            except OSError:
                continue
            before = self.imex.pop(node, pid)
            if world.imex_may_end(node):
                continue
            if before != pid or not os.path.exists(f"/proc/{pid}"):
                world.violation(f"the host's nvidia-imex of {node} is no longer the process {before}")
            self.imex[node] = pid
            self.undisturbed |= set(prepared.get(node, {}))

    def left(self, world):
        return [f"channel {c['id']} of {c['owner'].get('name', c['owner']['uid'])} in fabric {name(f)}"
                for f in world.all(world.fabrics) for c in f.get("channels") or []]


class Channel(Domain, HostChannel):
    """The daemons run one IMEX domain per partition, and each ComputeDomain has an assigned channel in it."""

    name = "channel"
    hosts_run_imex = False
    ends_with_the_last = ()
    devices = 17
    plugin_flags = ("--imex-isolation=channel",)
    # Without "DaemonSet": all daemons terminate with it, and each node offers no channels until its last pod has ended.
    objects = ("workload template", "daemon label", "daemon template")

    def looks(self):
        return HostChannel.looks(self)

    def joined(self, world, node):
        """The daemon of the node joins by itself."""

    def offers(self, devices):
        """A node that has moved from another partition offers its channels when the IMEX domain of that partition is no longer used on it; see left()."""
        return bool(devices)

    def is_well(self, o, nodes, has, world):
        for node in nodes:
            if (states := self.daemon_states(world, node)) != ["READY"]:
                return f"{name(o)}: IMEX of {node} is {states}"
        if nodes and has(o, "IMEXHealthy") != "True":
            return f"{name(o)}: the IMEX of its nodes is not healthy"
        return HostChannel.is_well(self, o, nodes, has, world)

    def look(self, world):
        self.look_at_channels(world)
        self.look_at_imex(world)

    def served(self, node, claims, world):
        """The claims of the partition in whose IMEX domain the node is; the IMEX domain is not that of their ComputeDomain. A claim that was prepared in
        another partition, which the node has left since, has no IMEX after the container was killed."""
        cliques = {assignment_of(p).split("/")[0] for p in world.of_app("imex-daemon") if p["spec"].get("nodeName") == node}
        return {claim for claim, (_, _, clique) in claims.items() if clique in cliques}

    def standing(self, world):
        """{node: the UIDs of the standing domains that list it}"""
        found = {}
        for f in world.all(world.fabrics):
            for d in f.get("domains") or []:
                for assignment in d.get("assignments") or [] if stands(d) else ():
                    found.setdefault(assignment["node"], set()).add(d["owner"]["uid"])
        return found

    def stays_in_folder(self, node, world):
        return super().stays_in_folder(node, world) | self.standing(world).get(node, set())

    def rest(self):
        return "READY"

    def left(self, world):
        standing, left = self.standing(world), Domain.left(self, world) + HostChannel.left(self, world)
        for node in map(name, world.all(world.nodes)):
            if len(standing.get(node, ())) != 1:
                left.append(f"{node} is in {len(standing.get(node, ()))} standing domains")
            if len(found := world.clique_of(node)) != self.devices:
                left.append(f"{node} offers {len(found)} devices")
        return left


class Racks(Domain):
    """Two racks, whose ComputeDomains the controller creates; users create none."""

    name = "racks"
    plugin_flags = ("--rack-domains", f"--rack-name-from-node-label={RACK_LABEL}")

    def __init__(self, nodes):
        super().__init__(nodes)
        self.domains = ["s0-011", "s0-012"]
        self.kept = False  # the namespace requests them

    def template(self, cd):
        return "imex-channel-" + cd

    def size(self):
        return self.n_nodes // 2

    def rack(self, node):
        return self.domains[min(1, index_of(node) // self.size())]

    def room(self, cd, workloads):
        return self.size() - sum(x.replicas for x in workloads if x.cd == cd)

    def warm_up(self):
        return [(cd, self.size()) for cd in self.domains]

    def clique(self, node):
        return f".{1 + self.domains.index(self.rack(node))}"

    def joined(self, world, node):
        world.k.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {RACK_LABEL: self.rack(node).upper()}}})

    def makes_domains(self):
        return False

    def begin(self, world):
        world.k.patch(f"/api/v1/namespaces/{NS}", {"metadata": {"labels": {RACK_NS_LABEL: "enabled"}}})
        self.kept = True

    def end(self, world):
        self.kept = False
        world.k.patch(f"/api/v1/namespaces/{NS}", {"metadata": {"labels": {RACK_NS_LABEL: None}}})

    def look(self, world):
        """A rack keeps its ComputeDomain whatever happens to its nodes, unless somebody deletes it."""
        self.look_at_imex(world)
        if not self.kept:
            return
        for cd in self.domains:
            o = world.domain(cd)
            if o and "deletionTimestamp" in o["metadata"] and not world.domain_may_go(cd):
                world.violation(f"the ComputeDomain of rack {cd} is being deleted although its namespace requests it")

    def excuses(self, kind, o, world):
        """The ComputeDomains in the driver's namespace exist as long as their racks."""
        kept = {x["metadata"]["uid"] for x in world.all(world.domains) if x["metadata"]["namespace"] == DRIVER_NS}
        return super().excuses(kind, o, world) or o["metadata"]["namespace"] == DRIVER_NS and (
            o["metadata"]["uid"] in kept or label_of(o) in kept)


KINDS = {kind.name: kind for kind in (Domain, Channel, HostChannel, Racks)}
