#include "controller/crds.h"

#include <limits.h>

#include "base/log.h"
#include "base/mem.h"

/* Text of the chart's files as string literals, made by the build. */
static const char computedomains[] =
#include "computedomains.inc"
        ;
static const char computedomaincliques[] =
#include "computedomaincliques.inc"
        ;

static const struct {
        const char *name;
        struct str text;
} crds[] = {
        { "computedomains.resource.nvidia.com", { computedomains, sizeof computedomains - 1 } },
        { "computedomaincliques.resource.nvidia.com",
          { computedomaincliques, sizeof computedomaincliques - 1 } },
};

struct job {
        void (*done)(void *u);
        void *u;
        size_t left;
};

struct one {
        struct job *job;
        const char *name;
};

static void on_applied(void *u, yyjson_val *obj, const struct err *e) {
        struct one *o = u;
        struct job *j = o->job;
        if (e)
                log_warn("cannot bring a CustomResourceDefinition up to date; going on with what the server "
                         "has",
                         kv_str("crd", o->name), kv_err(e));
        else
                log_info("CustomResourceDefinition is up to date", kv_str("crd", o->name));
        free(o);
        if (--j->left)
                return;
        j->done(j->u);
        free(j);
}

void crds_apply(struct kube_client *c, void (*done)(void *u), void *u) {
        struct job *j = xnew(struct job);
        *j = (struct job){ done, u, ARRAY_LEN(crds) };
        for (size_t i = 0; i < ARRAY_LEN(crds); i++) {
                struct one *o = xnew(struct one);
                *o = (struct one){ j, crds[i].name };
                kube_start(
                        c,
                        &(struct kube_request){
                                .verb = KUBE_APPLY,
                                .res = &kube_crds,
                                .name = crds[i].name,
                                .manager = "compute-domain-controller",
                                .body = crds[i].text,
                                .attempts = UINT_MAX, /* nothing else works either while the server is away */
                                .done = on_applied,
                                .u = o,
                        });
        }
}
