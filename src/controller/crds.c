/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/crds.h"

#include <string.h>

#include "api/names.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stderr.h"
#include "base/str.h"
#include "kube/work_queue.h"

#define OF_DOMAINS "computedomains.resource.nvidia.com"

enum { BACKOFF_MIN_MS = 1000, BACKOFF_MAX_MS = 60000 };

/* Text of the chart's files as string literals, made by the build. */
static const char computedomains[] =
#include "computedomains.inc"
        ;
static const char computedomaincliques[] =
#include "computedomaincliques.inc"
        ;

static const char computedomainfabrics[] =
#include "computedomainfabrics.inc"
        ;

static const struct {
        const char *name;
        struct str text;
        bool of_fabrics;
} texts[] = {
        { OF_DOMAINS, { computedomains, sizeof computedomains - 1 } },
        { "computedomaincliques.resource.nvidia.com",
          { computedomaincliques, sizeof computedomaincliques - 1 } },
        { "computedomainfabrics.resource.nvidia.com",
          { computedomainfabrics, sizeof computedomainfabrics - 1 },
          .of_fabrics = true },
};

struct one {
        struct crds *c;
        const char *name;
        struct str text;
        int64_t schema; /* CD_ANNOTATION_SCHEMA in the text */
        struct kube_call *call;
        bool apply;             /* the object that was read is missing, or has no newer schema */
        enum err_kind reported; /* the kind of the last logged error; ERR_NONE: no error */
        int reported_code;
};

struct crds {
        struct crds_options o;
        struct work_queue *queue;         /* of their names */
        struct one all[ARRAY_LEN(texts)]; /* those that this program applies */
        size_t n;
        bool leading;
};

static void crds_failed(struct one *x, const struct err *e) {
        metric_set(x->c->o.failing, 1, LABELS(x->name));
        work_queue_retry(x->c->queue, x->name);
        if (x->reported == e->kind && x->reported_code == e->code)
                return;
        x->reported = e->kind;
        x->reported_code = e->code;
        log_error(x->c->leading
                          ? "cannot update a CustomResourceDefinition; continuing with the server's version, "
                            "and retrying. If a webhook, a policy or RBAC rejects it and you cannot change "
                            "that, apply the chart's folder crds by hand"
                          : "cannot read a CustomResourceDefinition, or cannot create it; retrying. If a "
                            "webhook, a policy or RBAC rejects it and you cannot change that, apply the "
                            "chart's folder crds by hand",
                  kv_str("crd", x->name), kv_err(e));
}

static void recovered(struct one *x) {
        if (x->reported != ERR_NONE)
                log_info("the CustomResourceDefinition no longer fails", kv_str("crd", x->name));
        x->reported = ERR_NONE;
        metric_set(x->c->o.failing, 0, LABELS(x->name));
}

static void crds_is_current(const struct one *x) {
        if (streq(x->name, OF_DOMAINS))
                x->c->o.applied(x->c->o.u);
}

static void on_applied(void *u, yyjson_val *obj, const struct err *e) {
        struct one *x = u;
        (void)obj;
        x->call = NULL;
        if (e) {
                crds_failed(x, e);
                return;
        }
        log_info(x->c->leading ? "CustomResourceDefinition is up to date"
                               : "created a missing CustomResourceDefinition",
                 kv_str("crd", x->name));
        recovered(x);
        crds_is_current(x);
}

static int64_t schema_of_text(const char *text) {
        const char *key = CD_ANNOTATION_SCHEMA ": \"", *at = strstr(text, key);
        BUG_ON(!at);
        at += strlen(key);
        int64_t schema = 0;
        BUG_ON(!str_to_i64((struct str){ at, strcspn(at, "\"") }, &schema));
        return schema;
}

/* 0: it has no number, for example because the Go driver's chart installed it. */
static int64_t schema_of_object(yyjson_val *obj) {
        yyjson_val *annotations = yyjson_obj_get(yyjson_obj_get(obj, "metadata"), "annotations");
        const char *text = yyjson_get_str(yyjson_obj_get(annotations, CD_ANNOTATION_SCHEMA));
        int64_t schema;
        return text && str_to_i64(str_from(text), &schema) ? schema : 0;
}

static void crds_on_read(void *u, yyjson_val *obj, const struct err *e) {
        struct one *x = u;
        x->call = NULL;
        if (e && e->kind != ERR_NOT_FOUND) {
                crds_failed(x, e);
                return;
        }
        int64_t schema = e ? 0 : schema_of_object(obj);
        x->apply = e || (x->c->leading && schema <= x->schema);
        if (x->apply) {
                work_queue_add(x->c->queue, x->name);
                return;
        }
        recovered(x);
        if (!x->c->leading)
                return;
        log_info("keeping the CustomResourceDefinition, because its schema is newer than this version's",
                 kv_str("crd", x->name), kv_int("schema", schema), kv_int("own", x->schema));
        crds_is_current(x);
}

static void crds_on_key(void *u, const char *key) {
        struct crds *c = u;
        struct one *x = c->all;
        while (!streq(x->name, key))
                x++;
        bool apply = x->apply;
        struct kube_request r = { .verb = apply ? KUBE_APPLY : KUBE_GET,
                                  .res = &kube_crds,
                                  .name = x->name,
                                  .metadata_only = !apply,
                                  .done = apply ? on_applied : crds_on_read,
                                  .u = x };
        /* Another client may have written it by the next attempt, so read it again then. */
        x->apply = false;
        if (apply) {
                r.manager = CD_FIELD_MANAGER;
                r.body = x->text;
        }
        kube_cancel(x->call);
        x->call = kube_start(c->o.client, &r);
}

static void all_again(struct crds *c) {
        for (size_t i = 0; i < c->n; i++)
                work_queue_add(c->queue, c->all[i].name);
}

struct crds *crds_new(const struct crds_options *o) {
        struct crds *c = xnew(struct crds);
        c->o = *o;
        c->queue =
                work_queue_new(kube_client_loop(o->client), BACKOFF_MIN_MS, BACKOFF_MAX_MS, crds_on_key, c);
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                if (!texts[i].of_fabrics && !o->domains)
                        continue;
                c->all[c->n++] = (struct one){ .c = c,
                                               .name = texts[i].name,
                                               .text = texts[i].text,
                                               .schema = schema_of_text(texts[i].text.p) };
                metric_set(o->failing, 0, LABELS(texts[i].name));
        }
        all_again(c);
        return c;
}

void crds_free(struct crds *c) {
        if (!c)
                return;
        for (size_t i = 0; i < c->n; i++)
                kube_cancel(c->all[i].call);
        work_queue_free(c->queue);
        free(c);
}

void crds_lead(struct crds *c) {
        c->leading = true;
        all_again(c);
}

void crds_recheck(struct crds *c) {
        for (size_t i = 0; i < c->n; i++)
                if (!c->all[i].call)
                        work_queue_retry(c->queue, c->all[i].name);
}
