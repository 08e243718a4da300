/* SPDX-License-Identifier: Apache-2.0 */
#include "render/objects.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/names.h"
#include "api/opaque.h"

/* What tells the two claim templates apart. */
struct claim_shape {
        const char *target, *request, *device_class, *kind;
        bool daemon;
};

static const struct claim_shape *shape_of(const char *target) {
        static const struct claim_shape daemon = { CD_TARGET_DAEMON, CD_REQUEST_DAEMON, CD_CLASS_DAEMON,
                                                   "ComputeDomainDaemonConfig", true },
                                        workload = { CD_TARGET_WORKLOAD, CD_REQUEST_CHANNEL, CD_CLASS_CHANNEL,
                                                     "ComputeDomainChannelConfig", false };
        return streq(target, CD_TARGET_DAEMON) ? &daemon : &workload;
}

/* The functions that the YAML files of this folder describe. */
#include "templates.inc"

void objects_daemon_name(const char *uid, struct buf *out) {
        buf_addf(out, CD_DAEMON_OBJECT_PREFIX "%s", uid);
}

void objects_template_hash(const struct objects_settings *s, const char *uid, const char *gates,
                           int64_t max_nodes, char ret[static 17]) {
        struct buf b = BUF_INIT(1 << 16);
        daemonset(s, uid, gates, max_nodes, "", str_or(s->pull_policy, "IfNotPresent"), &b);
        snprintf(ret, 17, "%016" PRIx64, str_fnv64(buf_str(&b), b.n));
        buf_done(&b);
}

void objects_daemonset(const struct objects_settings *s, const char *uid, const char *gates,
                       int64_t max_nodes, struct buf *out) {
        char hash[17];
        objects_template_hash(s, uid, gates, max_nodes, hash);
        daemonset(s, uid, gates, max_nodes, hash, str_or(s->pull_policy, "IfNotPresent"), out);
}

void objects_agents_hash(const struct objects_settings *s, char ret[static 17]) {
        struct buf b = BUF_INIT(1 << 16);
        agents_daemonset(s, s->gates, "", str_or(s->pull_policy, "IfNotPresent"), &b);
        snprintf(ret, 17, "%016" PRIx64, str_fnv64(buf_str(&b), b.n));
        buf_done(&b);
}

void objects_agents(const struct objects_settings *s, struct buf *out) {
        char hash[17];
        objects_agents_hash(s, hash);
        agents_daemonset(s, s->gates, hash, str_or(s->pull_policy, "IfNotPresent"), out);
}

void objects_agents_rct(const char *resource_api, const char *ns, struct buf *out) {
        agents_claim_template(resource_api, ns, streq(resource_api, "v1beta1"), out);
}

/* In CEL, of a label's value, which has no quotes. Without the first half, a node that states no rack would
 * make the scheduler give the pod up. */
static char *on_rack(const char *rack) {
#define ATTRIBUTES "device.attributes['" CD_DRIVER "']"
        return rack ? xasprintf("'" CD_ATTRIBUTE_RACK "' in " ATTRIBUTES " && " ATTRIBUTES
                                "." CD_ATTRIBUTE_RACK " == '%s'",
                                rack)
                    : NULL;
}

/* Of what it asks for, in whichever version of the API. */
static void rct_hash(const char *uid, const char *target, const struct objects_channel *channel,
                     char ret[static 17]) {
        struct buf b = BUF_INIT(1024);
        buf_addf(&b, "%s %s %s %d %s", uid, target, str_or(channel->mode, ""), channel->own,
                 str_or(channel->rack, ""));
        snprintf(ret, 17, "%016" PRIx64, str_fnv64(buf_str(&b), b.n));
        buf_done(&b);
}

void objects_rct(const char *resource_api, const char *ns, const char *name, const struct kube_meta *domain,
                 const char *target, const struct objects_channel *channel, struct buf *out) {
        _cleanup_(freep) char *cel = on_rack(channel->rack);
        bool v1beta1 = streq(resource_api, "v1beta1");
        char hash[17];
        rct_hash(domain->uid, target, channel, hash);
        claim_template(shape_of(target), resource_api, ns, name, domain, channel->mode,
                       channel->own ? "Channel" : NULL, v1beta1, cel, v1beta1 ? cel : NULL, hash, out);
}

bool objects_rct_matches(const struct rct *r, const char *uid, const char *target,
                         const struct objects_channel *channel) {
        _cleanup_(freep) char *cel = on_rack(channel->rack);
        const struct claim_shape *of = shape_of(target);
        struct opaque_config cfg;
        struct err e;
        struct arena *a = arena_new(256);
        bool same = r->n_requests == 1 && streq(r->requests[0].name, of->request) &&
                    streq(r->requests[0].device_class, of->device_class) &&
                    (!cel || (r->requests[0].n_selectors == 1 &&
                              streq(r->requests[0].selectors[0].expression, cel))) &&
                    r->n_configs == 1 && r->configs[0].n_requests == 1 &&
                    streq(r->configs[0].requests[0], of->request) && streq(r->configs[0].driver, CD_DRIVER) &&
                    opaque_decode(r->configs[0].parameters, true, a, &cfg, &e) == 0 &&
                    cfg.kind == (of->daemon ? OPAQUE_DAEMON : OPAQUE_CHANNEL) && streq(cfg.domain_id, uid) &&
                    (of->daemon || (streq(str_or(cfg.allocation_mode, "Single"), channel->mode) &&
                                    cfg.own_channel == channel->own));
        arena_free(a);
        return same;
}

bool objects_rct_is_changed(const struct rct *r, const char *uid, const char *target,
                            const struct objects_channel *channel) {
        char hash[17];
        rct_hash(uid, target, channel, hash);
        return streq(r->template_hash, hash) && !objects_rct_matches(r, uid, target, channel);
}

/* The finalizers that are not ours; returns their number. */
static size_t others_of(const char *const *list, size_t n, const char ***ret) {
        size_t kept = 0;
        *ret = xnew_n(const char *, n + 1);
        for (size_t i = 0; i < n; i++)
                if (!streq(list[i], CD_FINALIZER))
                        (*ret)[kept++] = list[i];
        return kept;
}

void objects_rct_repair(const struct rct *r, const char *uid, const char *target, struct buf *out) {
        _cleanup_(freep) const char **others = NULL;
        size_t n = others_of(r->finalizers, r->n_finalizers, &others);
        claim_template_repair(shape_of(target), &r->o.meta, uid, others, n, out);
}

void objects_adopt(const struct compute_domain *cd, const char *mode, struct buf *out) {
        _cleanup_(freep) const char **others = NULL;
        size_t n = others_of(cd->finalizers, cd->n_finalizers, &others);
        adopt(&cd->o.meta, others, n, mode, out);
}

static void release_from(const struct kube_meta *m, const char *const *finalizers, size_t n, bool specless,
                         struct buf *out) {
        _cleanup_(freep) const char **others = NULL;
        size_t n_others = others_of(finalizers, n, &others);
        release(m, others, n_others, specless, out);
}

void objects_release(const struct kube_meta *m, const char *const *finalizers, size_t n, struct buf *out) {
        release_from(m, finalizers, n, false, out);
}

void objects_release_specless(const struct compute_domain *cd, struct buf *out) {
        release_from(&cd->o.meta, cd->finalizers, cd->n_finalizers, true, out);
}

void objects_clique(const struct formed_imex *c, const char *ns, const char *uid, struct buf *out) {
        if (c->old)
                changed_clique(&c->imex, c->old, out);
        else
                new_clique(&c->imex, ns, uid, out);
}

void objects_fabric(const struct compute_domain_fabric *f, const struct compute_domain_fabric *old,
                    struct buf *out) {
        if (old)
                changed_fabric(f, old, out);
        else
                new_fabric(f, out);
}
