# SPDX-License-Identifier: Apache-2.0
"""What keeps the workloads of a soak apart, and who runs IMEX for them: daemon pods, agents, or the hosts, with a channel for each ComputeDomain;
agents with such channels, whose IMEX stands before anybody uses it; or racks, whose ComputeDomains make themselves. How the chart is installed for
each is in ./run."""

import glob
import os
import re

DRIVER_NS, NS = "nvidia-compute-domains", "soak"
RACK_LABEL, RACK_NS_LABEL = "ds.coreweave.com/nvlink.domain", "resource.nvidia.com/rack-domains"
AGENT_COMPONENT = "compute-domain-agent"
UID_LABEL, IMEX = "resource.nvidia.com/computeDomain", "imex.resource.nvidia.com/"
# What a claim's CDI file says of it, but for those of daemons and agents.
COMMENT = re.compile(rf"# claim (?!{DRIVER_NS}/)\S+ domain (\S+)(?: channel \S+?=(\d+) clique (\S+))?")


def name(o):
    return o["metadata"]["name"]


def index_of(node):
    return int(node.rsplit("-", 1)[1])


def label_of(o):
    """The ComputeDomain that it is of, None when of none."""
    return o["metadata"].get("labels", {}).get(UID_LABEL)


def living(world):
    return {o["metadata"]["uid"] for o in world.all(world.domains) if "deletionTimestamp" not in o["metadata"]}


class DaemonPods:
    """A daemon pod for each ComputeDomain and node, one pod of a workload a node."""

    name = "daemon-pods"
    daemon = "compute-domain-daemon"       # who starts nvidia-imex, as a program
    has_fabrics = False                    # ComputeDomainFabrics are written
    hosts_run_imex = False
    go_with_the_last = ("compute-domain-daemon", "nvidia-imex")  # programs that run only while somebody uses them
    devices = 2                            # of each node's slice
    plugin_flags = ()                      # of a plugin that is started by hand
    objects = ("DaemonSet", "daemon template", "workload template", "label", "clique")  # that somebody may delete by hand
    left_limit_s = 180

    def __init__(self, nodes):
        self.n_nodes = nodes
        self.domains = [f"cd-{i}" for i in range(4)]
        self.gpus = (0, 1, 2)              # of each pod of a workload; a claim template for each number
        self.imex = {}                     # what ran on a node for a ComputeDomain, or for all, at the last look
        self.undisturbed = set()           # claims under which nvidia-imex was seen to be the same

    def forget_imex(self, nodes):
        """A fault has ended it there: what comes is another one."""
        self.imex = {key: last for key, last in self.imex.items() if key[0] not in nodes}

    def template(self, cd):
        return cd

    def room(self, cd, workloads):
        """How many more pods of it there is a place for."""
        return self.n_nodes - sum(x.replicas for x in workloads)

    def warm_up(self):
        """(ComputeDomain, pods) of workloads that together touch all nodes."""
        return [(self.domains[0], self.n_nodes)]

    def looks(self):
        """A command of the shell that fails where the channel is not as it has to be."""
        return "test -c /dev/nvidia-caps-imex-channels/channel0"

    def clique(self, node):
        """The end of the clique id of a node that nobody has moved."""
        return ".1"

    def joined(self, world, node):
        """A node is there again, with what its Node and its host are by themselves."""

    def begin(self, world):
        """What is there before ComputeDomains are made."""

    def end(self, world):
        """Lets go what users have not made."""

    def makes_domains(self):
        """Whether users make them."""
        return True

    def offers(self, devices):
        """Whether the devices of a node's slice are those of a node that nobody strikes."""
        return len(devices) == self.devices

    def is_well(self, o, nodes, has, world):
        """What a ComputeDomain with pods on these nodes lacks, None when nothing."""
        ready = {n["name"] for n in o.get("status", {}).get("nodes") or [] if n.get("status") == "Ready"}
        for node in nodes:
            if node not in ready:
                return f"{name(o)}: {node} is not ready in its status"
        if nodes and has(o, "PeersConnected") != "True":
            return f"{name(o)}: peers are not connected"
        return None

    def look(self, world):
        """Once a second: what must never be seen."""
        self.look_at_imex(world)

    def served(self, pod, claims, world):
        """Those of a node's prepared claims for which the pod has to go on with its nvidia-imex. One that is gone from the API is none: by that
        its node's label goes, and with it the pod."""
        mine = {label_of(pod)} & living(world)
        there = {o["metadata"]["uid"] for o in world.all(world.claims)}
        return {claim for claim, (domain, _, _) in claims.items() if domain in mine and claim in there}

    def look_at_imex(self, world):
        """No nvidia-imex is another one while a claim that it serves is prepared, but by a fault that ends it. A claim counts that was prepared
        before the one process was looked for, and still is after the other was."""
        first = world.prepared()
        pods = [pod for pod in world.of_app("imex-daemon") if pod["spec"].get("nodeName")]
        running = {name(pod): set(world.of_pod(pod, "nvidia-imex")) for pod in pods}
        then = world.prepared()
        for pod in pods:
            node, now = pod["spec"]["nodeName"], running[name(pod)]
            key = node, label_of(pod)
            uid, before, used = self.imex.pop(key, (None, set(), set()))
            if world.imex_may_end(node) or uid in world.may_go or not before:
                used = set()
            lost = used & self.served(pod, then.get(node, {}), world)
            if lost and before & now:
                self.undisturbed |= lost
            elif lost and now:
                world.violation(f"nvidia-imex of {name(pod)} on {node} is another process under the prepared claims {', '.join(sorted(lost))}")
            # One that is away is asked for again: what comes in its place is another.
            self.imex[key] = (pod["metadata"]["uid"], now, self.served(pod, first.get(node, {}), world)) if now else (uid, before, lost)

    def excuses(self, kind, o, world):
        """Whether an object is there though nobody uses anything: it is not left over."""
        return False

    def stays_in_folder(self, node, world):
        """What a node has beside the folders of ComputeDomains."""
        return set()

    def left(self, world):
        """What else is left."""
        return []


class Agents(DaemonPods):
    name = "agents"
    daemon = "compute-domain-agent"
    has_fabrics = True
    objects = ("workload template", "label")

    def is_agent(self, o):
        return o["metadata"].get("labels", {}).get("app.kubernetes.io/component") == AGENT_COMPONENT

    def served(self, pod, claims, world):
        """Whatever the API says."""
        domains = living(world)
        return {claim for claim, (domain, _, _) in claims.items() if domain in domains}

    def stands(self, domain):
        """Whether an IMEX domain is there though no ComputeDomain is."""
        return False

    def stays_in_folder(self, node, world):
        return {"agent.json", "edits", "fabric"}

    def excuses(self, kind, o, world):
        if o["metadata"]["namespace"] != DRIVER_NS:
            return False
        if kind == "ResourceClaim":
            agents = {pod["metadata"]["uid"] for pod in world.of_app("imex-daemon") if self.is_agent(pod)}
            return any(ref["uid"] in agents for ref in o["metadata"].get("ownerReferences") or [])
        return self.is_agent(o) if kind == "pod" else kind == "ResourceClaimTemplate" and name(o) == AGENT_COMPONENT

    def left(self, world):
        return [f"IMEX domain of {d['owner'].get('name')} in fabric {name(f)}: {len(d.get('seats') or [])} seats, {len(d.get('leaving') or [])} leaving"
                for f in world.all(world.fabrics) for d in f.get("domains") or [] if not self.stands(d)]


class Channels(DaemonPods):
    """The hosts run IMEX, as their service manager would have it; several pods of any ComputeDomains share a node."""

    name = "channels"
    daemon = None
    has_fabrics = hosts_run_imex = True
    go_with_the_last = ()
    devices = 16
    plugin_flags = ("--feature-gates=HostManagedIMEX=true", "--imex-isolation=channel")
    objects = ("workload template",)
    left_limit_s = 330  # a channel is free a minute after its last use, if every node has shown life by then

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
        """No channel of a fabric is two ComputeDomains', and no ComputeDomain has two."""
        whose, which = {}, {}
        for node, claims in world.prepared().items():
            for domain, channel, clique in claims.values():
                if channel is None:
                    world.violation(f"a claim of {domain} on {node} has no channel of its own")
                    continue
                other = whose.setdefault((clique, channel), (domain, node))
                if other[0] != domain:
                    world.violation(f"channel {channel} of {clique} is {domain}'s on {node} and {other[0]}'s on {other[1]}")
                other = which.setdefault((clique, domain), (channel, node))
                if other[0] != channel:
                    world.violation(f"{domain} has channel {channel} of {clique} on {node} and {other[0]} on {other[1]}")

    def look_at_hosts(self, world):
        """Nobody ends their IMEX but a fault."""
        prepared = world.prepared()
        for path in glob.glob(os.path.join(world.state, "nodes", "*", "host-imex.pid")):
            node = "node-" + path.split(os.sep)[-2]
            try:
                pid = open(path).read().strip()
            except OSError:
                continue
            before = self.imex.pop((node, None), pid)
            if world.imex_may_end(node):
                continue
            if before != pid or not os.path.exists(f"/proc/{pid}"):
                world.violation(f"the host's nvidia-imex of {node} is not the process {before} any more")
            self.imex[node, None] = pid
            self.undisturbed |= set(prepared.get(node, {}))

    def left(self, world):
        return [f"channel {c['id']} of {c['owner'].get('name', c['owner']['uid'])} in fabric {name(f)}"
                for f in world.all(world.fabrics) for c in f.get("channels") or []]


class Standing(Agents, Channels):
    """Agents run one IMEX domain in each fabric for all, and each ComputeDomain has a channel of its own in it."""

    name = "standing"
    hosts_run_imex = False
    go_with_the_last = ("compute-domain-daemon",)
    devices = 17
    plugin_flags = ("--imex-isolation=channel", "--imex-agents")
    objects = ("workload template",)

    def joined(self, world, node):
        """Its agent joins by itself."""

    def offers(self, devices):
        """A node that has come from another fabric offers its places when nobody uses the IMEX that it has run there; see left()."""
        return bool(devices)

    def is_well(self, o, nodes, has, world):
        for node in nodes:
            said = [p["metadata"].get("annotations", {}).get(IMEX + "state") for p in world.of_app("imex-daemon") if p["spec"].get("nodeName") == node]
            if said != ["READY"]:
                return f"{name(o)}: IMEX of {node} is {said}"
        if nodes and has(o, "IMEXHealthy") != "True":
            return f"{name(o)}: its nodes' IMEX is not healthy"
        return Channels.is_well(self, o, nodes, has, world)

    def look(self, world):
        self.look_at_channels(world)
        self.look_at_imex(world)

    def served(self, pod, claims, world):
        """It is not their ComputeDomain's."""
        return set(claims)

    def stands(self, domain):
        return domain["owner"].get("kind") == "ComputeDomainFabric"

    def standing(self, world):
        """{node: the UIDs of the domains that stand and list it}"""
        found = {}
        for f in world.all(world.fabrics):
            for d in f.get("domains") or []:
                for seat in (d.get("seats") or []) + (d.get("leaving") or []) if self.stands(d) else ():
                    found.setdefault(seat["node"], set()).add(d["owner"]["uid"])
        return found

    def stays_in_folder(self, node, world):
        return super().stays_in_folder(node, world) | self.standing(world).get(node, set())

    def left(self, world):
        standing, left = self.standing(world), Agents.left(self, world) + Channels.left(self, world)
        for node in map(name, world.all(world.nodes)):
            if len(standing.get(node, ())) != 1:
                left.append(f"{node} is in {len(standing.get(node, ()))} domains that stand")
            if len(found := world.clique_of(node)) != self.devices:
                left.append(f"{node} offers {len(found)} devices")
        return left


class Racks(DaemonPods):
    """Two racks, which have their ComputeDomains by themselves; users make none."""

    name = "racks"
    plugin_flags = ("--rack-domains", f"--rack-name-from-node-label={RACK_LABEL}")

    def __init__(self, nodes):
        super().__init__(nodes)
        self.domains = ["s0-011", "s0-012"]
        self.kept = False  # whether the namespace has them

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
        """Whatever happens to its nodes, a rack keeps its ComputeDomain: only somebody's hand makes it another one."""
        self.look_at_imex(world)
        if not self.kept:
            return
        for cd in self.domains:
            o = world.domain(cd)
            if o and "deletionTimestamp" in o["metadata"] and not world.domain_may_go(cd):
                world.violation(f"the ComputeDomain of rack {cd} is being deleted though its namespace wants it")

    def excuses(self, kind, o, world):
        """Those of the driver's own namespace stay as long as their racks."""
        kept = {x["metadata"]["uid"] for x in world.all(world.domains) if x["metadata"]["namespace"] == DRIVER_NS}
        return o["metadata"]["namespace"] == DRIVER_NS and (
            o["metadata"]["uid"] in kept or label_of(o) in kept)


KINDS = {kind.name: kind for kind in (DaemonPods, Agents, Channels, Standing, Racks)}
