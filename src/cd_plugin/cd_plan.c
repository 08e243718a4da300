/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/cd_plan.h"

#include "api/names.h"
#include "base/log.h"
#include "cd_plugin/daemon_claim.h"
#include "cd_plugin/cd_devices.h"
#include "cd_plugin/edits.h"
#include "cd_plugin/host_nodes.h"
#include "cd_plugin/rebuild.h"
#include "cd_plugin/cd_requests.h"

static int edit_daemon(const struct cd *cd, const struct op *op, const struct cd_request *w, struct arena *a,
                       struct cdi_edits *ret, struct err *e) {
        const struct facts *f = facts_get(cd->o.facts);
        const char *domain = w->config.domain_id;
        _cleanup_(freep) char *dir = readiness_domain_dir(cd->o.plugin_dir, domain);
        struct edits_daemon d = {
                .domain_dir = dir,
                .clique_id = f->fabric.clique_id,
                .domain_uid = domain,
                .domain_name = str_or(w->domain_name, ""),
                .domain_ns = str_or(w->domain_ns, ""),
                .claim_uid = op->uid,
                .root = cd->o.root,
                .driver_version = f->driver_version,
                .dev_root = cd->o.dev_root,
                .proc_driver = cd->o.proc_driver,
        };
        if (*d.clique_id && facts_major(cd->o.facts, PROC_MAJOR_CAPS, &d.caps_major, e) < 0)
                return -1;
        return edits_for_daemon(a, &d, ret, e);
}

/* With host-managed IMEX and isolation by domain, the administrator makes channel 0 (cd_events_prepared). */
static void make_on_host(const struct cd *cd, const struct cdi_edits *channels) {
        struct err e;
        if (!*cd->o.channel_nodes || (!mode_runs_daemons(cd->o.mode) && !mode_assigns_channels(cd->o.mode)))
                return;
        if (host_nodes_make(cd->o.channel_nodes, channels, &e) < 0)
                log_warn("cannot make a channel's device node on the host: pods with hostUsers: false cannot "
                         "use the channel until the plugin's container may create device nodes there",
                         kv_err(&e));
}

static int edit_channel(const struct cd *cd, const struct cd_request *w, struct arena *a,
                        struct cdi_edits *ret, struct err *e) {
        unsigned major = 0, count = 1;
        if (!w->clique && !*facts_get(cd->o.facts)->fabric.clique_id)
                return 0; /* no partition: the pod runs without a channel */
        if (facts_major(cd->o.facts, PROC_MAJOR_IMEX_CHANNELS, &major, e) < 0)
                return -1;
        if (mode_forms_domains(cd->o.mode) &&
            opaque_allocation_mode(w->config.allocation_mode) == ALLOCATION_ALL)
                count = edits_channel_count(cd->o.proc_driver);
        edits_channels(a, major, (unsigned)w->channel, count, ret);
        make_on_host(cd, ret);
        return 0;
}

int cd_plan_device(void *u, const struct op *op, const struct node_request *node_request, struct arena *a,
                   struct node_effect *ret, struct err *e) {
        struct cd_request *w = cd_request_of(node_request);
        struct cd *cd = u;
        if (w->clique)
                holdings_note(cd->o.holdings, op->uid, w->clique);
        if (!w->is_daemon)
                return edit_channel(u, w, a, &ret->edits, e);
        if (w->is_own)
                return daemon_claim_edits(cd, op->uid, a, &ret->edits, w->edits, e);
        ret->resource = arena_strdup(a, w->config.domain_id);
        return edit_daemon(u, op, w, a, &ret->edits, e);
}

void cd_plan_record(const struct node_request *node_request, struct node_device *ret) {
        const struct cd_request *w = cd_request_of(node_request);
        ret->type = w->is_daemon ? DEVICE_DAEMON : DEVICE_CHANNEL;
        ret->domain = w->config.domain_id;
        ret->id = w->channel;
}

const char *cd_plan_comment(const struct op *op, struct arena *a) {
        const struct cd_request *w = cd_request_of(&op->requests[0]);
        return rebuild_comment(a, w->config.domain_id, op->requests[0].result->device, w->channel, w->clique);
}
