/* SPDX-License-Identifier: Apache-2.0 */
#include "render/objects.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/names.h"
#include "api/opaque.h"

/* The functions that are generated from the YAML files of this folder. */
#include "templates.inc"

/* Writes the DaemonSet with the options of the daemons that differ from their defaults. */
static void daemonset_with(const struct objects_settings *s, const char *hash, struct buf *out) {
        struct objects_settings set = *s, defaults = {
#define DAEMON_OPTION(type, member, name, value, ...) .member = value,
#include "api/daemon_settings.def"
        };
        const struct flag options[][2] = {
#define DAEMON_OPTION(type, member, name, value, help, ...)                                                  \
        { FLAG(type, name, &set.member, help, __VA_ARGS__),                                                  \
          FLAG(type, name, &defaults.member, help, __VA_ARGS__) },
#include "api/daemon_settings.def"
        };
        struct arena *a = arena_new(1024);
        struct jd_pair changed[ARRAY_LEN(options)];
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_LEN(options); i++) {
                _cleanup_(buf_done) struct buf name = BUF_INIT(128), value = BUF_INIT(1 << 18),
                                               usual = BUF_INIT(1 << 18);
                flag_env(&options[i][0], &name);
                flag_value(&options[i][0], &value);
                flag_value(&options[i][1], &usual);
                if (!streq(buf_str(&value), buf_str(&usual)))
                        changed[n++] = (struct jd_pair){ arena_strdup(a, buf_str(&name)),
                                                         arena_strdup(a, buf_str(&value)) };
        }
        daemonset(s, s->gates, hash, str_or(s->pull_policy, "IfNotPresent"), changed, n, out);
        arena_free(a);
}

void objects_daemonset_hash(const struct objects_settings *s, char ret[static 17]) {
        struct buf b = BUF_INIT(1 << 16);
        daemonset_with(s, "", &b);
        snprintf(ret, 17, "%016" PRIx64, str_fnv64(buf_str(&b), b.n));
        buf_done(&b);
}

void objects_daemonset(const struct objects_settings *s, struct buf *out) {
        char hash[17];
        objects_daemonset_hash(s, hash);
        daemonset_with(s, hash, out);
}

/* The same in every version of the API. */
static void daemon_rct_hash(const char *ns, char ret[static 17]) {
        struct buf b = BUF_INIT(1 << 12);
        daemon_claim_template("v1", ns, CD_DAEMON_DOMAIN, false, "", &b);
        snprintf(ret, 17, "%016" PRIx64, str_fnv64(buf_str(&b), b.n));
        buf_done(&b);
}

void objects_daemon_rct(const char *resource_api, const char *ns, struct buf *out) {
        char hash[17];
        daemon_rct_hash(ns, hash);
        daemon_claim_template(resource_api, ns, CD_DAEMON_DOMAIN, streq(resource_api, "v1beta1"), hash, out);
}

/* Compares a claim template that has lost its annotation. */
static bool objects_asks_for_daemon(const struct rct *r) {
        _cleanup_(arena_freep) struct arena *a = arena_new(256);
        struct opaque_config cfg;
        struct err e;
        return r->n_requests == 1 && streq(r->requests[0].name, CD_REQUEST_DAEMON) &&
               streq(r->requests[0].device_class, CD_CLASS_DAEMON) && r->n_configs == 1 &&
               streq(r->configs[0].driver, CD_DRIVER) &&
               opaque_decode(r->configs[0].parameters, true, a, &cfg, &e) == 0 && cfg.kind == OPAQUE_DAEMON &&
               streq(cfg.domain_id, CD_DAEMON_DOMAIN);
}

bool objects_daemon_rct_matches(const struct rct *r) {
        char hash[17];
        daemon_rct_hash(r->o.meta.ns, hash);
        return r->template_hash ? streq(r->template_hash, hash) : objects_asks_for_daemon(r);
}

/* CEL for the value of a label, which contains no quotes. Without the first half, the scheduler would fail
 * the pod on a node that states no rack. */
static char *objects_on_rack(const char *rack) {
#define ATTRIBUTES "device.attributes['" CD_DRIVER "']"
        return rack ? xasprintf("'" CD_ATTRIBUTE_RACK "' in " ATTRIBUTES " && " ATTRIBUTES
                                "." CD_ATTRIBUTE_RACK " == '%s'",
                                rack)
                    : NULL;
}

/* The hash of its requests, in every version of the API. */
static void rct_hash(const char *uid, const struct objects_channel *channel, char ret[static 17]) {
        struct buf b = BUF_INIT(1024);
        buf_adds(&b, uid);
        buf_adds(&b, " " CD_TARGET_WORKLOAD " ");
        buf_adds(&b, channel->mode);
        buf_adds(&b, channel->own ? " 1 " : " 0 ");
        buf_adds(&b, str_or(channel->rack, ""));
        if (channel->shared)
                buf_adds(&b, " " CD_CLASS_SHARED);
        snprintf(ret, 17, "%016" PRIx64, str_fnv64(buf_str(&b), b.n));
        buf_done(&b);
}

static const char *rct_class(const struct objects_channel *channel) {
        return channel->shared ? CD_CLASS_SHARED : CD_CLASS_CHANNEL;
}

void objects_rct(const char *resource_api, const char *ns, const char *name, const struct kube_meta *domain,
                 const struct objects_channel *channel, struct buf *out) {
        _cleanup_(freep) char *cel = objects_on_rack(channel->rack);
        bool v1beta1 = streq(resource_api, "v1beta1");
        char hash[17];
        rct_hash(domain->uid, channel, hash);
        claim_template(resource_api, ns, name, domain, rct_class(channel), channel->mode,
                       channel->own ? "Channel" : NULL, v1beta1, cel, v1beta1 ? cel : NULL, hash, out);
}

bool objects_rct_matches(const struct rct *r, const char *uid, const struct objects_channel *channel) {
        _cleanup_(freep) char *cel = objects_on_rack(channel->rack);
        struct opaque_config cfg;
        struct err e;
        struct arena *a = arena_new(256);
        bool same = r->n_requests == 1 && streq(r->requests[0].name, CD_REQUEST_CHANNEL) &&
                    streq(r->requests[0].device_class, rct_class(channel)) &&
                    (!cel || (r->requests[0].n_selectors == 1 &&
                              streq(r->requests[0].selectors[0].expression, cel))) &&
                    r->n_configs == 1 && r->configs[0].n_requests == 1 &&
                    streq(r->configs[0].requests[0], CD_REQUEST_CHANNEL) &&
                    streq(r->configs[0].driver, CD_DRIVER) &&
                    opaque_decode(r->configs[0].parameters, true, a, &cfg, &e) == 0 &&
                    cfg.kind == OPAQUE_CHANNEL && streq(cfg.domain_id, uid) &&
                    streq(str_or(cfg.allocation_mode, "Single"), channel->mode) &&
                    cfg.own_channel == channel->own;
        arena_free(a);
        return same;
}

bool objects_rct_is_changed(const struct rct *r, const char *uid, const struct objects_channel *channel) {
        char hash[17];
        rct_hash(uid, channel, hash);
        return streq(r->template_hash, hash) && !objects_rct_matches(r, uid, channel);
}

/* Collects the finalizers of others; returns their number. */
static size_t others_of(const char *const *list, size_t n, const char ***ret) {
        size_t kept = 0;
        *ret = xnew_n(const char *, n + 1);
        for (size_t i = 0; i < n; i++)
                if (!streq(list[i], CD_FINALIZER))
                        (*ret)[kept++] = list[i];
        return kept;
}

void objects_shared_claim(const char *name, const struct kube_meta *domain, struct buf *out) {
        shared_claim(name, domain, out);
}

void objects_shared_slice(struct buf *out) {
        shared_slice(CD_SLICE_SHARED, out);
}

void objects_rct_repair(const struct rct *r, const char *uid, struct buf *out) {
        _cleanup_(freep) const char **others = NULL;
        size_t n = others_of(r->finalizers, r->n_finalizers, &others);
        claim_template_repair(&r->o.meta, uid, others, n, out);
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

void objects_fabric(const struct compute_domain_fabric *f, const struct compute_domain_fabric *old,
                    struct buf *out) {
        if (old)
                changed_fabric(f, old, out);
        else
                new_fabric(f, out);
}
