/* SPDX-License-Identifier: Apache-2.0 */
/* What a claim asks of us, as far as the claim alone can tell: whatever is wrong here no waiting mends. */
#include <string.h>

#include "api/names.h"
#include "cd_plugin/claims_priv.h"
#include "node/checkpoint_layouts.h"

/* A daemon's configuration counts too, whatever device came with it: who wrote it means a daemon. */
static bool asks_for_daemon(const struct op *op, const struct claim_result *r) {
        bool daemon = claim_result_is_daemon(r);
        for (size_t i = 0; i < op->claim.n_configs; i++) {
                const struct claim_config *c = &op->claim.configs[i];
                struct opaque_config got;
                struct err e;
                daemon = daemon || (streq(c->driver, CD_DRIVER) &&
                                    opaque_decode(c->parameters, false, op->arena, &got, &e) == 0 &&
                                    got.kind == OPAQUE_DAEMON);
        }
        return daemon;
}

/* What the mode of this installation forbids. */
static int check_mode(const struct op *op, const struct want *w, struct err *e) {
        const struct imex_mode *mode = op->c->o.mode;
        const char *allocation = w->config.allocation_mode;
        if (mode->single_only && !streq(allocation, "") && !streq(allocation, "Single"))
                return err_set(e, ERR_INVALID, 0,
                               "allocationMode \"%s\" is not possible with host-managed IMEX (%s): a pod "
                               "gets channel 0; use \"Single\"",
                               allocation, mode->chosen_by);
        return 0;
}

/* The domain's name as the controller has written it down. Both become part of the daemon's environment. */
static int take_name(const struct op *op, const char *annotation, bool (*is_name)(const char *s),
                     const char **ret, struct err *e) {
        const char *s = jd_pair_get(op->claim.annotations, op->claim.n_annotations, annotation);
        if (s && !is_name(s))
                return err_set(e, ERR_INVALID, 0,
                               "annotation %s of ResourceClaim '%s/%s' is no name that Kubernetes allows: "
                               "'%.100s'%s",
                               annotation, op->ns, op->name, s, strlen(s) > 100 ? " and more" : "");
        *ret = s;
        return 0;
}

static int add_want(struct op *op, const struct claim_result *r, struct err *e) {
        const struct imex_mode *mode = op->c->o.mode;
        struct want *w = &op->wants[op->n_wants];
        const char *node = op->c->o.node;
        *w = (struct want){ .result = r, .is_daemon = claim_result_is_daemon(r) };
        if (!mode->daemons && asks_for_daemon(op, r))
                return err_set(e, ERR_DENIED, 0,
                               "daemon claims are disabled: IMEX runs on the hosts and not in pods (%s); "
                               "this claim is left over from another "
                               "mode or was made by hand: delete it",
                               mode->chosen_by);
        if (!streq(r->pool, node))
                return err_set(e, ERR_INVALID, 0,
                               "device '%s' was allocated on node '%s', but this is node '%s'", r->device,
                               r->pool, node);
        if (!w->is_daemon && !streq(r->device, CD_DEVICE_CHANNEL_PREFIX "0"))
                return err_set(e, ERR_INVALID, 0, "node '%s' has no device '%s'", node, r->device);
        if (claim_config_for(&op->claim, r, true, op->arena, &w->config, e) < 0)
                return -1;
        /* Its folder is mounted into the daemon writable: only the driver's own namespace may ask for that.
         */
        if (w->is_daemon && !claims_manages(&op->c->o, op->ns))
                return err_set(
                        e, ERR_DENIED, 0,
                        "device '%s' is for the IMEX daemons in the driver's namespaces ('%s'%s%s) only, "
                        "not for claims of namespace '%s': ask for a channel instead, by the claim template "
                        "of a ComputeDomain",
                        r->device, op->c->o.ns, *op->c->o.more_ns ? ", " : "", op->c->o.more_ns, op->ns);
        if (w->is_daemon &&
            (take_name(op, CD_ANNOTATION_NAME, str_is_dns_subdomain, &w->domain_name, e) < 0 ||
             take_name(op, CD_ANNOTATION_NAMESPACE, str_is_dns_label, &w->domain_ns, e) < 0))
                return -1;
        op->n_wants++;
        return 0;
}

static int check_count(const struct op *op, struct err *e) {
        const struct imex_mode *mode = op->c->o.mode;
        size_t n = 0;
        for (size_t i = 0; i < op->claim.n_results; i++)
                n += streq(op->claim.results[i].driver, CD_DRIVER);
        if (mode->one_result && n != 1)
                return err_set(e, ERR_INVALID, 0,
                               "%zu devices of this driver are allocated to the claim, but with host-managed "
                               "IMEX (%s) a claim has exactly one "
                               "channel",
                               n, mode->chosen_by);
        return 0;
}

int wants_take(struct op *op, yyjson_val *obj, struct err *e) {
        struct buf status = BUF_INIT(CHECKPOINT_MAX_BYTES);
        struct claim *c = &op->claim;
        if (jd_decode(claim_fields, obj, false, "", op->arena, c, e) < 0)
                return err_wrap(e, "ResourceClaim");
        if (!streq(c->o.meta.uid, op->uid))
                return err_set(e, ERR_INVALID, 0,
                               "ResourceClaim '%s/%s' has been replaced: its UID is %s now", op->ns, op->name,
                               str_or(c->o.meta.uid, "unknown"));
        if (!c->allocated)
                return err_set(e, ERR_INVALID, 0, "ResourceClaim '%s/%s' is not allocated", op->ns, op->name);
        bool ok = checkpoint_status(yyjson_obj_get(obj, "status"), &status);
        if (ok)
                op->status = (struct str){ arena_strndup(op->arena, status.p, status.n), status.n };
        buf_done(&status);
        if (!ok)
                return err_set(e, ERR_INVALID, 0,
                               "the status of ResourceClaim '%s/%s' is too large or nests too deep", op->ns,
                               op->name);
        op->wants = arena_alloc(op->arena, (c->n_results + 1) * sizeof *op->wants);
        for (size_t i = 0; i < c->n_results; i++) {
                if (streq(c->results[i].driver, CD_DRIVER) && add_want(op, &c->results[i], e) < 0)
                        return -1;
        }
        if (check_count(op, e) < 0)
                return -1;
        for (size_t i = 0; i < op->n_wants; i++) {
                if (check_mode(op, &op->wants[i], e) < 0)
                        return -1;
        }
        return 0;
}
