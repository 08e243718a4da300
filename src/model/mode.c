/* SPDX-License-Identifier: Apache-2.0 */
#include "model/mode.h"

#include "api/names.h"
#include "api/reasons.h"
#include "base/str.h"

static const struct imex_mode driver_managed = { MODE_DRIVER_MANAGED, "imex.mode=driverManaged",
                                                 MODE_RUNNER_DAEMON, MODE_SPAN_COMPUTE_DOMAIN,
                                                 MODE_IDS_SHARED };
static const struct imex_mode driver_channels = { MODE_DRIVER_CHANNEL, "imex.isolation=channel",
                                                  MODE_RUNNER_DAEMON, MODE_SPAN_PARTITION, MODE_IDS_OWN };
static const struct imex_mode host_managed = { MODE_HOST_MANAGED,
                                               "imex.mode=hostManaged, or feature gate HostManagedIMEX=true",
                                               MODE_RUNNER_HOST, MODE_SPAN_PARTITION, MODE_IDS_SHARED };
static const struct imex_mode host_channels = { MODE_HOST_CHANNEL, "imex.isolation=channel", MODE_RUNNER_HOST,
                                                MODE_SPAN_PARTITION, MODE_IDS_OWN };

static int check_words(const char *mode, const char *isolation, struct err *e) {
        if (*mode && !streq(mode, MODE_DRIVER_MANAGED) && !streq(mode, MODE_HOST_MANAGED))
                return err_set(e, ERR_INVALID, 0,
                               "imex.mode (IMEX_MODE) \"%s\" is neither driverManaged nor hostManaged", mode);
        if (*isolation && !streq(isolation, "domain") && !streq(isolation, "channel"))
                return err_set(e, ERR_INVALID, 0,
                               "imex.isolation (IMEX_ISOLATION) \"%s\" is neither domain nor channel",
                               isolation);
        return 0;
}

int mode_resolve(struct gates *g, const char *imex_mode, const char *imex_isolation,
                 const struct imex_mode **ret, struct err *e) {
        const char *mode = str_or(imex_mode, ""), *isolation = str_or(imex_isolation, "");
        bool word = streq(mode, MODE_HOST_MANAGED), host = word || g->on[GATE_HOST_MANAGED_IMEX],
             own = streq(isolation, "channel");
        if (check_words(mode, isolation, e) < 0)
                return -1;
        if (word && g->named[GATE_HOST_MANAGED_IMEX] && !g->on[GATE_HOST_MANAGED_IMEX])
                return err_set(e, ERR_INVALID, 0,
                               "feature gate HostManagedIMEX=false contradicts imex.mode=hostManaged "
                               "(IMEX_MODE): remove the gate, or set imex.mode=driverManaged");
        if (host) {
                gates_force_off(g, GATE_IMEX_DAEMONS_WITH_DNS_NAMES);
                gates_force_off(g, GATE_COMPUTE_DOMAIN_CLIQUES);
        }
        if (gates_validate(g, e) < 0)
                return -1;
        *ret = host ? own ? &host_channels : &host_managed : own ? &driver_channels : &driver_managed;
        return 0;
}

int mode_wait_for_host(const struct imex_mode *m, const struct gates *g, const char *imex_mode,
                       const char *text, bool *ret, struct err *e) {
        *ret = streq(imex_mode, MODE_HOST_MANAGED) && g->on[GATE_HOST_MANAGED_IMEX_DAEMON];
        if (text && *text && !str_to_bool(str_from(text), ret))
                return err_set(e, ERR_INVALID, 0,
                               "imex.waitForHost (IMEX_WAIT_FOR_HOST) \"%s\" is neither true nor false",
                               text);
        if (*ret && mode_runs_daemons(m))
                return err_set(e, ERR_INVALID, 0,
                               "imex.waitForHost=true (IMEX_WAIT_FOR_HOST) requires imex.mode=hostManaged: "
                               "the driver runs IMEX (%s), so there is no IMEX of the host to wait for",
                               m->chosen_by);
        return 0;
}

struct mode_traces mode_traces_of(const struct compute_domain *cd) {
        if (!cd)
                return (struct mode_traces){ 0 };
        struct mode_traces t = { .finalizer = has_string(cd->finalizers, cd->n_finalizers, CD_FINALIZER),
                                 .status = cd->status };
        for (size_t i = 0; i < cd->n_conditions; i++)
                t.peers = t.peers || streq(cd->conditions[i].type, CONDITION_PEERS_CONNECTED);
        return t;
}

void mode_traces_add(struct mode_traces *t, const struct rct *template) {
        if (template->n_requests == 1 && streq(template->requests[0].device_class, CD_CLASS_SHARED))
                return;
        *(streq(template->target, CD_TARGET_DAEMON) ? &t->daemon_template : &t->workload_template) = true;
}

bool mode_is_other(const struct imex_mode *m, const char *recorded, struct mode_traces t) {
        if (recorded)
                return !streq(recorded, m->name) && (t.status || t.daemon_template || t.workload_template);
        bool by_daemons = t.daemon_template || t.peers,
             by_hosts = t.finalizer && t.workload_template && !by_daemons;
        return mode_forms_domains(m) ? by_hosts : by_daemons || (mode_assigns_channels(m) && by_hosts);
}

bool mode_formed_domains(const char *recorded) {
        return streq(recorded, MODE_DRIVER_MANAGED);
}

const char *mode_other_name(const struct imex_mode *m, const char *recorded, struct mode_traces t) {
        if (streq(recorded, MODE_HOST_CHANNEL))
                return MODE_HOST_CHANNEL;
        if (streq(recorded, MODE_DRIVER_CHANNEL))
                return MODE_DRIVER_CHANNEL;
        if (mode_forms_domains(m))
                return MODE_HOST_MANAGED;
        if (mode_assigns_channels(m) &&
            (recorded ? streq(recorded, MODE_HOST_MANAGED) : !t.daemon_template && !t.peers))
                return MODE_HOST_MANAGED;
        return MODE_DRIVER_MANAGED;
}

bool mode_labels_node(const struct imex_mode *m, bool other, bool has_label) {
        return other ? !mode_forms_domains(m) && has_label : mode_forms_domains(m);
}
