/* SPDX-License-Identifier: Apache-2.0 */
#include "model/mode.h"

#include "api/names.h"
#include "base/str.h"

static const struct imex_mode driver_managed = { MODE_DRIVER_MANAGED,      "imex.mode=driverManaged",
                                                 MODE_RUNNER_PODS,         MODE_SPAN_COMPUTE_DOMAIN,
                                                 MODE_CHANNELS_WHEN_READY, MODE_IDS_SHARED };
static const struct imex_mode driver_agents = { MODE_DRIVER_AGENTS,       "imex.agents=true",
                                                MODE_RUNNER_AGENTS,       MODE_SPAN_COMPUTE_DOMAIN,
                                                MODE_CHANNELS_WHEN_READY, MODE_IDS_SHARED };
static const struct imex_mode host_managed = { MODE_HOST_MANAGED,     "feature gate HostManagedIMEX=true",
                                               MODE_RUNNER_HOST,      MODE_SPAN_PARTITION,
                                               MODE_CHANNELS_AT_ONCE, MODE_IDS_SHARED };
/* The Go driver's. */
static const struct imex_mode host_managed_daemon = { MODE_HOST_MANAGED,        "imex.mode=hostManaged",
                                                      MODE_RUNNER_HOST,         MODE_SPAN_PARTITION,
                                                      MODE_CHANNELS_WHEN_READY, MODE_IDS_SHARED };

static const struct imex_mode driver_channels = {
        MODE_DRIVER_CHANNEL,      "imex.agents=true with imex.isolation=channel",
        MODE_RUNNER_AGENTS,       MODE_SPAN_PARTITION,
        MODE_CHANNELS_WHEN_READY, MODE_IDS_OWN
};

/* Either with a channel of its own for each ComputeDomain. */
#define OWN_CHANNELS(when)                                                                                   \
        {                                                                                                    \
                MODE_HOST_CHANNEL, "imex.isolation=channel", MODE_RUNNER_HOST, MODE_SPAN_PARTITION, (when),  \
                        MODE_IDS_OWN                                                                         \
        }
static const struct imex_mode own_channels = OWN_CHANNELS(MODE_CHANNELS_AT_ONCE);
static const struct imex_mode own_channels_daemon = OWN_CHANNELS(MODE_CHANNELS_WHEN_READY);

static int check_words(const char *mode, const char *isolation, struct err *e) {
        if (!streq(mode, MODE_DRIVER_MANAGED) && !streq(mode, MODE_HOST_MANAGED))
                return err_set(e, ERR_INVALID, 0,
                               "imex.mode (IMEX_MODE) \"%s\" is neither driverManaged nor hostManaged", mode);
        if (!streq(isolation, "domain") && !streq(isolation, "channel"))
                return err_set(e, ERR_INVALID, 0,
                               "imex.isolation (IMEX_ISOLATION) \"%s\" is neither domain nor channel",
                               isolation);
        return 0;
}

static void force(struct gates *g) {
        gates_force_off(g, GATE_IMEX_DAEMONS_WITH_DNS_NAMES);
        gates_force_off(g, GATE_COMPUTE_DOMAIN_CLIQUES);
}

static int check_agents(const struct gates *g, bool hosts, struct err *e) {
        if (hosts)
                return err_set(e, ERR_INVALID, 0,
                               "imex.agents=true (IMEX_AGENTS) has the driver run IMEX, which feature gate "
                               "HostManagedIMEX=true or imex.mode=hostManaged leaves to the hosts; set one "
                               "of them");
        if (!mode_dns_names(g))
                return err_set(e, ERR_INVALID, 0,
                               "imex.agents=true (IMEX_AGENTS) requires feature gate "
                               "IMEXDaemonsWithDNSNames=true: an agent keeps its address from one "
                               "ComputeDomain to the next, so that addresses do not tell them apart");
        return 0;
}

int mode_resolve(struct gates *g, const char *imex_mode, const char *imex_isolation, bool imex_agents,
                 const struct imex_mode **ret, struct err *e) {
        const char *mode = imex_mode && *imex_mode ? imex_mode : MODE_DRIVER_MANAGED;
        const char *isolation = imex_isolation && *imex_isolation ? imex_isolation : "domain";
        bool gate = g->on[GATE_HOST_MANAGED_IMEX], word = streq(mode, MODE_HOST_MANAGED);
        if (gate)
                force(g);
        if (gates_validate(g, e) < 0 || check_words(mode, isolation, e) < 0)
                return -1;
        if (gate && word)
                return err_set(e, ERR_INVALID, 0,
                               "feature gate HostManagedIMEX=true and imex.mode=hostManaged (IMEX_MODE) are "
                               "two different host-managed modes: the gate checks the fabric and does not "
                               "wait for the host's IMEX, the other waits for it; set one of them");
        if (word && !g->on[GATE_HOST_MANAGED_IMEX_DAEMON])
                return err_set(e, ERR_INVALID, 0,
                               "imex.mode=hostManaged (IMEX_MODE) requires feature gate "
                               "HostManagedIMEXDaemon=true, which is false");
        if (word)
                force(g);
        bool own = streq(isolation, "channel");
        if (imex_agents && check_agents(g, gate || word, e) < 0)
                return -1;
        if (own && !gate && !word && !imex_agents)
                return err_set(
                        e, ERR_INVALID, 0,
                        "imex.isolation=channel (IMEX_ISOLATION) with imex.mode=driverManaged needs IMEX "
                        "agents (imex.agents=true), which run one IMEX domain for all ComputeDomains of "
                        "a fabric: set that, leave IMEX to the hosts (feature gate "
                        "HostManagedIMEX=true, or imex.mode=hostManaged), or use "
                        "imex.isolation=domain");
        *ret = gate          ? own ? &own_channels : &host_managed
               : word        ? own ? &own_channels_daemon : &host_managed_daemon
               : imex_agents ? own ? &driver_channels : &driver_agents
                             : &driver_managed;
        return 0;
}

struct mode_traces mode_traces_of(const struct compute_domain *cd) {
        if (!cd)
                return (struct mode_traces){ 0 };
        return (struct mode_traces){ .finalizer = has_string(cd->finalizers, cd->n_finalizers, CD_FINALIZER),
                                     .status = cd->status };
}

void mode_traces_add(struct mode_traces *t, const struct rct *template) {
        *(streq(template->target, CD_TARGET_DAEMON) ? &t->daemon_template : &t->workload_template) = true;
}

static bool is_driver_managed(const char *name) {
        return streq(name, MODE_DRIVER_MANAGED) || streq(name, MODE_DRIVER_AGENTS);
}

bool mode_was_agents(const char *recorded, struct mode_traces t) {
        return streq(recorded, MODE_DRIVER_AGENTS) && !t.daemon_template && (t.status || t.workload_template);
}

bool mode_serves(const struct imex_mode *m, const char *recorded) {
        return streq(recorded, m->name) || (mode_forms_domains(m) && is_driver_managed(recorded));
}

const struct imex_mode *mode_of_domain(const struct imex_mode *m, const char *recorded, struct mode_traces t,
                                       bool seated) {
        bool formed = t.status || t.workload_template;
        if (!mode_forms_domains(m))
                return m;
        if (t.daemon_template)
                return &driver_managed;
        if (seated || mode_was_agents(recorded, t))
                return &driver_agents;
        return formed && streq(recorded, MODE_DRIVER_MANAGED) ? &driver_managed : m;
}

bool mode_is_other(const struct imex_mode *m, const char *recorded, struct mode_traces t) {
        if (recorded)
                return !mode_serves(m, recorded) && (t.status || t.daemon_template || t.workload_template);
        bool by_hosts = t.finalizer && t.workload_template && !t.daemon_template;
        return mode_forms_domains(m) ? by_hosts : t.daemon_template || (mode_assigns_channels(m) && by_hosts);
}

const char *mode_other_name(const struct imex_mode *m, const char *recorded, struct mode_traces t) {
        if (streq(recorded, MODE_HOST_CHANNEL))
                return MODE_HOST_CHANNEL;
        if (streq(recorded, MODE_DRIVER_AGENTS))
                return MODE_DRIVER_AGENTS;
        if (streq(recorded, MODE_DRIVER_CHANNEL))
                return MODE_DRIVER_CHANNEL;
        if (mode_forms_domains(m))
                return MODE_HOST_MANAGED;
        if (mode_assigns_channels(m) && (recorded ? streq(recorded, MODE_HOST_MANAGED) : !t.daemon_template))
                return MODE_HOST_MANAGED;
        return MODE_DRIVER_MANAGED;
}

bool mode_labels_node(const struct imex_mode *m, bool other, bool has_label) {
        return other ? !mode_forms_domains(m) && has_label : mode_forms_domains(m);
}
