/* SPDX-License-Identifier: Apache-2.0 */
#include "api/claim.h"

#include "api/names.h"

static const struct jd_field f_result[] = {
        JD_STR(struct claim_result, "request", request, .required = true),
        JD_STR(struct claim_result, "driver", driver, .required = true),
        JD_STR(struct claim_result, "pool", pool, .required = true),
        JD_STR(struct claim_result, "device", device, .required = true),
        JD_BOOL(struct claim_result, "adminAccess", admin_access),
        JD_END,
};
static const struct jd_field f_config[] = {
        JD_STR(struct claim_config, "source", source),
        JD_STRS(struct claim_config, "requests", requests),
        JD_STR(struct claim_config, "opaque>driver", driver),
        JD_RAW(struct claim_config, "opaque>parameters", parameters),
        JD_END,
};
static const struct jd_field f_allocated[] = { JD_END };
const struct jd_field claim_consumer_fields[] = {
        JD_STR(struct claim_consumer, "apiGroup", api_group),
        JD_STR(struct claim_consumer, "resource", resource),
        JD_STR(struct claim_consumer, "name", name),
        JD_STR(struct claim_consumer, "uid", uid),
        JD_END,
};
static const struct jd_field f_owner[] = { JD_STR(struct claim_owner, "apiVersion", api_version),
                                           JD_STR(struct claim_owner, "kind", kind),
                                           JD_STR(struct claim_owner, "name", name),
                                           JD_STR(struct claim_owner, "uid", uid), JD_END };
static const struct jd_field f_request[] = {
        JD_STR(struct claim_request, "name", name),
        JD_STR(struct claim_request, "exactly>deviceClassName", device_class),
        JD_STR(struct claim_request, "deviceClassName", device_class), /* v1beta1 */
        JD_END
};
const struct jd_field claim_fields[] = {
        JD_OBJ(struct claim, "metadata", o.meta, kube_f_meta),
        JD_MAP(struct claim, "metadata>annotations", annotations),
        JD_LIST(struct claim, "metadata>ownerReferences", owners, struct claim_owner, f_owner),
        JD_STRS(struct claim, "metadata>finalizers", finalizers),
        JD_LIST(struct claim, "spec>devices>config", asked, struct claim_config, f_config),
        JD_LIST(struct claim, "spec>devices>requests", asked_requests, struct claim_request, f_request),
        JD_LIST(struct claim, "status>allocation>devices>results", results, struct claim_result, f_result),
        JD_LIST(struct claim, "status>allocation>devices>config", configs, struct claim_config, f_config),
        JD_OPTOBJ(struct claim, "status>allocation", allocated, struct claim_allocated, f_allocated),
        JD_LIST(struct claim, "status>reservedFor", consumers, struct claim_consumer, claim_consumer_fields),
        JD_END,
};

bool claim_result_is_channel(const struct claim_result *r) {
        return streq(r->driver, CD_DRIVER) && str_starts(r->device, CD_DEVICE_CHANNEL_PREFIX);
}

bool claim_result_is_daemon(const struct claim_result *r) {
        return streq(r->driver, CD_DRIVER) && streq(r->device, CD_DEVICE_DAEMON);
}

bool claim_result_is_shared(const struct claim_result *r) {
        return claim_result_is_channel(r) && streq(r->pool, CD_POOL_SHARED);
}

const char *claim_domain_owner(const struct claim *c) {
        for (size_t i = 0; i < c->n_owners; i++) {
                const struct claim_owner *o = &c->owners[i];
                if (streq(o->kind, CD_KIND) && o->api_version && str_starts(o->api_version, CD_GROUP "/"))
                        return o->uid;
        }
        return NULL;
}

bool claim_is_made_for(const struct claim *c, const char *uid) {
        const char *owner = claim_domain_owner(c);
        if (owner)
                return streq(owner, uid);
        for (size_t i = 0; i < c->n_owners; i++) {
                if (streq(c->owners[i].kind, "Pod") || streq(c->owners[i].kind, CLAIM_GROUP_KIND))
                        return true;
        }
        return false;
}

/* A request with alternatives is allocated as "request/alternative". A configuration may name either. */
static bool claim_names_request(const struct claim_config *c, const char *request) {
        size_t n = str_from(request).n;
        struct str rest = str_from(request), first = { 0 };
        str_next_field(&rest, '/', &first);
        for (size_t i = 0; i < c->n_requests; i++) {
                struct str name = str_from(c->requests[i]);
                if (str_eq(name, first) || str_eq(name, (struct str){ request, n }))
                        return true;
        }
        return false;
}

int claim_config_for(const struct claim *c, const struct claim_result *r, bool strict, struct arena *a,
                     struct opaque_config *ret, struct err *e) {
        static const char *const sources[] = { "FromClaim", "FromClass" };
        static const char *const kinds[] = { [OPAQUE_CHANNEL] = "channel", [OPAQUE_DAEMON] = "daemon" };
        enum opaque_kind want = claim_result_is_daemon(r) ? OPAQUE_DAEMON : OPAQUE_CHANNEL;
        const char *other = NULL; /* the kind of the first configuration with the wrong kind */
        bool named = false;
        for (size_t s = 0; s < ARRAY_LEN(sources) && !named; s++)
                for (size_t i = c->n_configs; i-- > 0 && !named;) {
                        const struct claim_config *cfg = &c->configs[i];
                        struct opaque_config got;
                        if (!streq(cfg->source, sources[s]) || !streq(cfg->driver, CD_DRIVER) ||
                            (cfg->n_requests && !claim_names_request(cfg, r->request)))
                                continue;
                        if (opaque_decode(cfg->parameters, strict, a, &got, e) < 0)
                                return err_wrap(e, "request '%s': opaque configuration", r->request);
                        if (got.kind == want) {
                                *ret = got;
                                return 0;
                        }
                        named = cfg->n_requests > 0;
                        if (named || !other)
                                other = kinds[got.kind];
                }
        if (other)
                return err_set(e, ERR_INVALID, 0,
                               "request '%s': the configuration is for a %s, but the device allocated is %s",
                               r->request, other, r->device);
        return err_set(e, ERR_INVALID, 0,
                       "request '%s': no opaque configuration of the driver " CD_DRIVER
                       " names a ComputeDomain",
                       r->request);
}

bool claim_place(const struct claim *c, bool own_channels, struct arena *a, struct claim_place *ret) {
        for (size_t i = 0; i < c->n_results; i++) {
                const struct claim_result *r = &c->results[i];
                struct opaque_config cfg;
                struct err e;
                if (!claim_result_is_channel(r) || r->admin_access ||
                    (claim_result_is_shared(r) && !c->n_consumers) ||
                    claim_config_for(c, r, true, a, &cfg, &e) < 0 || cfg.own_channel != own_channels)
                        continue;
                *ret = (struct claim_place){ .domain_uid = cfg.domain_id, .node = r->pool };
                return true;
        }
        return false;
}

/* The ComputeDomain of a claim for a channel device of a node. */
static const char *asked_domain(const struct claim *c, struct arena *a) {
        struct opaque_config cfg;
        struct err e;
        for (size_t i = 0; i < c->n_asked_requests; i++)
                if (streq(c->asked_requests[i].device_class, CD_CLASS_SHARED))
                        return NULL;
        for (size_t i = 0; i < c->n_asked; i++)
                if (streq(c->asked[i].driver, CD_DRIVER) &&
                    opaque_decode(c->asked[i].parameters, true, a, &cfg, &e) == 0 &&
                    cfg.kind == OPAQUE_CHANNEL)
                        return cfg.domain_id;
        return NULL;
}

const char *claim_awaits(const struct claim *c, struct arena *a) {
        bool of_pod = false;
        for (size_t i = 0; i < c->n_owners; i++)
                of_pod = of_pod || streq(c->owners[i].kind, "Pod");
        return of_pod && !c->allocated && !c->o.meta.deleted ? asked_domain(c, a) : NULL;
}

const char *claim_asks_for_shared(const struct claim *c, struct arena *a) {
        struct opaque_config cfg;
        struct err e;
        if (c->n_asked_requests != 1 || !streq(c->asked_requests[0].name, CD_REQUEST_CHANNEL) ||
            !streq(c->asked_requests[0].device_class, CD_CLASS_SHARED) || c->n_asked != 1 ||
            !streq(c->asked[0].driver, CD_DRIVER) ||
            opaque_decode(c->asked[0].parameters, true, a, &cfg, &e) < 0 || cfg.kind != OPAQUE_CHANNEL ||
            !cfg.own_channel || opaque_allocation_mode(cfg.allocation_mode) == ALLOCATION_ALL)
                return NULL;
        return cfg.domain_id;
}

bool claim_group_owner(const struct claim *c, struct claim_group *ret) {
        *ret = (struct claim_group){ 0 };
        for (size_t i = 0; i < c->n_owners && !ret->uid; i++)
                if (streq(c->owners[i].kind, CLAIM_GROUP_KIND) && c->owners[i].api_version &&
                    str_starts(c->owners[i].api_version, CLAIM_GROUP_API "/"))
                        *ret = (struct claim_group){ .api_version = c->owners[i].api_version,
                                                     .name = c->owners[i].name,
                                                     .uid = c->owners[i].uid };
        return ret->uid && ret->name;
}

const char *claim_named_for(const struct claim *c, struct arena *a) {
        struct claim_group group;
        if (claim_group_owner(c, &group) || claim_domain_owner(c))
                return NULL;
        for (size_t i = 0; i < c->n_owners; i++)
                if (streq(c->owners[i].kind, "Pod"))
                        return NULL;
        return asked_domain(c, a);
}

bool claim_consumer_is_group(const struct claim_consumer *c) {
        return streq(c->api_group, CLAIM_GROUP_API) && streq(c->resource, CLAIM_GROUP_RESOURCE) && c->name;
}

bool claim_is_reserved_for(const struct claim_consumer *list, size_t n, const char *uid) {
        for (size_t i = 0; i < n; i++)
                if (streq(list[i].uid, uid))
                        return true;
        return false;
}

bool claim_of_group(const struct claim *c, struct arena *a, struct claim_group *ret) {
        claim_group_owner(c, ret);
        for (size_t i = 0; i < c->n_consumers && !ret->uid; i++)
                if (streq(c->consumers[i].resource, CLAIM_GROUP_RESOURCE))
                        *ret = (struct claim_group){ .api_version = CLAIM_GROUP_API "/v1beta1",
                                                     .name = c->consumers[i].name,
                                                     .uid = c->consumers[i].uid };
        if (ret->uid && ret->name)
                ret->domain_uid = asked_domain(c, a);
        return ret->domain_uid;
}
