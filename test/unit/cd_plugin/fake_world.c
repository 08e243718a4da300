/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_world.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/names.h"
#include "api/resources.h"
#include "base/file.h"
#include "kube/kube_informer.h"
#include "node/gojson.h"

struct world w;

/* ---- the API server ---- */

struct object {
        char ns[64], name[64], *json; /* json NULL: deleted */
        char uid[40];
        bool deleting;
        const char *mode;
};
static struct object claim_objects[16], domain_objects[16];
static size_t n_claim_objects, n_domain_objects;

struct kube_call {
        TAILQ_ENTRY(kube_call) link;
        enum kube_verb verb;
        const struct kube_resource *res;
        char ns[64], name[64];
        bool cached, ends;
        kube_done_fn *done;
        kube_retry_fn *retry;
        void *u;
};
static TAILQ_HEAD(calls, kube_call) calls = TAILQ_HEAD_INITIALIZER(calls);

static struct object *find_object(struct object *list, size_t n, const char *ns, const char *name) {
        for (size_t i = 0; i < n; i++) {
                if (streq(list[i].ns, ns) && streq(list[i].name, name))
                        return &list[i];
        }
        return NULL;
}

void api_claim_json(const char *ns, const char *name, const char *json) {
        struct object *o = find_object(claim_objects, n_claim_objects, ns, name);
        if (!o) {
                o = &claim_objects[n_claim_objects++];
                snprintf(o->ns, sizeof o->ns, "%s", ns);
                snprintf(o->name, sizeof o->name, "%s", name);
        }
        free(o->json);
        o->json = json ? xstrdup(json) : NULL;
}

static void claim_named(const char *ns, const char *name, const char *uid, const char *device,
                        const char *config_kind, const char *domain, const char *extra,
                        const char *domain_name, const char *domain_ns) {
        _cleanup_(freep) char *json = xasprintf(
                "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":"
                "\"1\",\"annotations\":{"
                "\"resource.nvidia.com/computeDomain.name\":\"%s\",\"resource.nvidia.com/"
                "computeDomain.namespace\":\"%s\"},\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
                "\"Pod\","
                "\"name\":\"pod-%s\",\"uid\":\"p\",\"controller\":true}]},"
                "\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":"
                "\"compute-domain.nvidia."
                "com\",\"pool\":\"n0\",\"device\":\"%s\"}],"
                "\"config\":[{\"source\":\"FromClaim\",\"requests\":[\"r\"],\"opaque\":{\"driver\":\"compute-"
                "domain.nvidia.com\","
                "\"parameters\":{"
                "\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"%s\",\"domainID\":\"%s\"%s}}}]}},"
                "\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"pod-%s\",\"uid\":\"p\"}]}}",
                name, ns, uid, domain_name, domain_ns, name, device, config_kind, domain, extra, name);
        api_claim_json(ns, name, json);
}

void api_claim(const char *ns, const char *name, const char *uid, const char *device, const char *config_kind,
               const char *domain, const char *extra) {
        claim_named(ns, name, uid, device, config_kind, domain, extra, "cd", "user");
}

void api_daemon_claim_named(const char *domain_name, const char *domain_ns) {
        claim_named("driver", "daemon-claim", DAEMON_1, "daemon-0", DAEMON, DOMAIN_A, "", domain_name,
                    domain_ns);
}

void api_remove_claim(const char *ns, const char *name) {
        api_claim_json(ns, name, NULL);
}

void api_domain(const char *ns, const char *name, const char *uid, bool deleting) {
        struct object *o = find_object(domain_objects, n_domain_objects, ns, name);
        if (!o)
                o = &domain_objects[n_domain_objects++];
        snprintf(o->ns, sizeof o->ns, "%s", ns);
        snprintf(o->name, sizeof o->name, "%s", name);
        snprintf(o->uid, sizeof o->uid, "%s", uid);
        o->deleting = deleting;
        o->mode = NULL;
}

void api_domain_mode(const char *uid, const char *mode) {
        for (size_t i = 0; i < n_domain_objects; i++) {
                if (streq(domain_objects[i].uid, uid))
                        domain_objects[i].mode = mode;
        }
}

void api_remove_domain(const char *uid) {
        for (size_t i = 0; i < n_domain_objects; i++) {
                if (streq(domain_objects[i].uid, uid))
                        domain_objects[i] = domain_objects[--n_domain_objects];
        }
}

struct kube_call *kube_start(struct kube_client *c, const struct kube_request *r) {
        struct kube_call *call = xnew(struct kube_call);
        (void)c;
        call->verb = r->verb;
        call->res = r->res;
        snprintf(call->ns, sizeof call->ns, "%s", str_or(r->ns, ""));
        snprintf(call->name, sizeof call->name, "%s", str_or(r->name, ""));
        call->cached = r->query && strstr(r->query, "resourceVersion=0");
        call->ends = r->attempts != UINT_MAX;
        call->done = r->done;
        call->retry = r->retry;
        call->u = r->u;
        TAILQ_INSERT_TAIL(&calls, call, link);
        w.requests++;
        if (r->verb == KUBE_MERGE_PATCH)
                snprintf(w.patch, sizeof w.patch, "%.*s", (int)r->body.n, r->body.p);
        return call;
}

void kube_cancel(struct kube_call *call) {
        if (!call)
                return;
        TAILQ_REMOVE(&calls, call, link);
        free(call);
}

const char *kube_resource_api(const struct kube_client *c) {
        (void)c;
        return w.api_unknown ? NULL : "v1";
}

static kube_ready_fn *ready_fn;
static void *ready_u;
void kube_discover(struct kube_client *c, const struct kube_resource *res, kube_ready_fn *fn, void *u) {
        (void)c;
        ready_fn = fn;
        ready_u = u;
}

void kube_undiscover(struct kube_client *c, const struct kube_resource *res, kube_ready_fn *fn, void *u) {
        (void)c;
        if (ready_fn == fn && ready_u == u)
                ready_fn = NULL;
}

static void print_domain(const struct object *o, struct buf *out) {
        buf_addf(out,
                 "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"%s\","
                 "\"resourceVersion\":\"1\"%s",
                 o->name, o->ns, o->uid,
                 o->deleting ? ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"" : "");
        if (o->mode)
                buf_addf(out, ",\"annotations\":{\"" CD_ANNOTATION_MODE "\":\"%s\"}", o->mode);
        buf_adds(out, "}}");
}

static void list_domains(const char *ns, bool cached, struct buf *out) {
        w.lists++;
        buf_adds(out, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[");
        for (size_t i = 0, n = 0; i < n_domain_objects; i++) {
                const struct object *o = &domain_objects[i];
                if ((*ns && !streq(o->ns, ns)) || (cached && w.old_cache))
                        continue;
                buf_adds(out, n++ ? "," : "");
                print_domain(o, out);
        }
        buf_adds(out, "]}");
}

/* ---- the fabric ---- */

static char fabric_name[64], *fabric_json;
static struct kube_informer *fabric_informers[4];

void api_fabric(const char *name, int rv, const char *channels, const char *more) {
        free(fabric_json);
        snprintf(fabric_name, sizeof fabric_name, "%s", name);
        fabric_json = channels ? xasprintf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"" FABRIC
                                           "\",\"resourceVersion\":\"%d\"},\"rack\":\"rack-7\","
                                           "\"tableOf\":\"%s\",\"channelCount\":2048%s,\"channels\":[%s]}",
                                           name, rv, str_or(w.table_of, FABRIC), more, channels)
                               : NULL;
}

uv_loop_t *kube_client_loop(const struct kube_client *c) {
        (void)c;
        return &w.loop;
}

/* As the client does: who asks for ever stays. */
static bool refuse_one(void) {
        struct kube_call *call;
        struct err e;
        err_set(&e, ERR_RETRY, 503, "%s", w.api_refuses);
        TAILQ_FOREACH (call, &calls, link) {
                if (call->ends) {
                        TAILQ_REMOVE(&calls, call, link);
                        call->done(call->u, NULL, &e);
                        free(call);
                        return true;
                }
                if (call->retry)
                        call->retry(call->u, &e);
        }
        return false;
}

static bool serve_one(void) {
        if (w.api_refuses)
                return refuse_one();
        struct kube_call *call = TAILQ_FIRST(&calls);
        struct buf text = BUF_INIT(1 << 20);
        struct err e;
        if (!call || w.api_down)
                return false;
        TAILQ_REMOVE(&calls, call, link);
        if (w.api_fails_for && streq(call->name, w.api_fails_for)) {
                err_set(&e, w.api_fails_with, 0, "refused");
                call->done(call->u, NULL, &e);
                free(call);
                return true;
        }
        const struct object *domain = find_object(domain_objects, n_domain_objects, call->ns, call->name);
        if (call->res == &kube_compute_domains && !*call->name)
                list_domains(call->ns, call->cached, &text);
        else if (call->res == &kube_compute_domains && domain)
                print_domain(domain, &text);
        const struct object *o = find_object(claim_objects, n_claim_objects, call->ns, call->name);
        if (call->res == &kube_resource_claims && o && o->json)
                buf_adds(&text, o->json);
        if (call->res == &kube_fabrics && fabric_json && streq(call->name, fabric_name))
                buf_adds(&text, fabric_json);
        if (call->res == &kube_pods)
                buf_adds(&text, "{}");
        yyjson_doc *doc = text.n ? yyjson_read(text.p, text.n, 0) : NULL;
        if (!doc)
                err_set(&e, ERR_NOT_FOUND, 404, "resourceclaims.resource.k8s.io \"%s\" not found",
                        call->name);
        call->done(call->u, doc ? yyjson_doc_get_root(doc) : NULL, doc ? NULL : &e);
        yyjson_doc_free(doc);
        buf_done(&text);
        free(call);
        return true;
}

/* The watch of a namespace sees the domains as they are at the moment; that of a fabric what it was told. */
struct kube_informer {
        struct kube_informer_options o;
        uv_timer_t timer;
        struct kube_object seen;
        char *selector;
        struct compute_domain_fabric *fabric; /* NULL: none */
        bool changed;                         /* `changed` is to be called */
};

static void on_informer(uv_timer_t *t) {
        struct kube_informer *i = t->data;
        i->o.synced(i->o.u);
}

struct kube_informer *kube_informer_new(struct kube_client *c, const struct kube_informer_options *o) {
        struct kube_informer *i = xnew(struct kube_informer);
        (void)c;
        i->o = *o;
        uv_timer_init(&w.loop, &i->timer);
        i->timer.data = i;
        if (o->res == &kube_fabrics) {
                i->selector = xstrdup(o->field_selector);
                for (size_t k = 0; k < ARRAY_LEN(fabric_informers); k++) {
                        if (!fabric_informers[k]) {
                                fabric_informers[k] = i;
                                return i;
                        }
                }
        }
        uv_timer_start(&i->timer, on_informer, 10, 500);
        return i;
}

static void drop_fabric(struct kube_informer *i) {
        if (i->fabric)
                arena_free(i->fabric->o.arena);
        i->fabric = NULL;
}

static void on_informer_closed(uv_handle_t *h) {
        struct kube_informer *i = h->data;
        drop_fabric(i);
        free(i->selector);
        free(i);
}

void kube_informer_free(struct kube_informer *i) {
        if (!i)
                return;
        for (size_t k = 0; k < ARRAY_LEN(fabric_informers); k++) {
                if (fabric_informers[k] == i)
                        fabric_informers[k] = NULL;
        }
        uv_close((uv_handle_t *)&i->timer, on_informer_closed);
}

/* The higher version wins. */
void kube_informer_answer(struct kube_informer *i, yyjson_val *obj) {
        struct arena *a = arena_new(1024);
        struct compute_domain_fabric *f = arena_alloc(a, sizeof *f);
        struct err e;
        assert_int_equal(jd_decode(compute_domain_fabric_fields, obj, false, "", a, f, &e), 0);
        f->o.arena = a;
        if (i->fabric && atoi(i->fabric->o.meta.rv) >= atoi(f->o.meta.rv)) {
                arena_free(a);
                return;
        }
        drop_fabric(i);
        i->fabric = f;
        i->changed = true;
}

void api_fabric_event(void) {
        for (size_t k = 0; k < ARRAY_LEN(fabric_informers); k++) {
                struct kube_informer *i = fabric_informers[k];
                if (!i || !streq(i->selector + strlen("metadata.name="), fabric_name))
                        continue;
                if (!fabric_json) {
                        drop_fabric(i);
                } else {
                        yyjson_doc *doc = yyjson_read(fabric_json, strlen(fabric_json), 0);
                        kube_informer_answer(i, yyjson_doc_get_root(doc));
                        yyjson_doc_free(doc);
                }
                i->changed = true;
        }
}

static bool tell_fabrics(void) {
        bool any = false;
        for (size_t k = 0; k < ARRAY_LEN(fabric_informers); k++) {
                struct kube_informer *i = fabric_informers[k];
                if (!i || !i->changed)
                        continue;
                i->changed = false;
                i->o.changed(i->o.u, NULL, NULL);
                any = true;
        }
        return any;
}

const struct kube_object *kube_informer_get(const struct kube_informer *i, const char *ns, const char *name) {
        return i->fabric && streq(i->fabric->o.meta.name, name) ? &i->fabric->o : NULL;
}

bool kube_informer_synced(const struct kube_informer *i) {
        (void)i;
        return true;
}

const struct kube_object *kube_informer_first_at(const struct kube_informer *i, unsigned index,
                                                 const char *key) {
        static struct kube_object found;
        (void)i;
        (void)index;
        for (size_t k = 0; k < n_domain_objects && !w.old_watch; k++) {
                if (streq(domain_objects[k].uid, key)) {
                        found.meta = (struct kube_meta){ .uid = domain_objects[k].uid,
                                                         .deleted = domain_objects[k].deleting };
                        return &found;
                }
        }
        return NULL;
}

void event_record(struct event_recorder *r, const struct event_about *about, enum event_type type,
                  const char *reason, const char *fmt, ...) {
        size_t n = strlen(w.events);
        va_list ap;
        (void)r;
        (void)type;
        n += (size_t)snprintf(w.events + n, sizeof w.events - n, "%s/%s %s: ", about->kind, about->name,
                              reason);
        va_start(ap, fmt);
        if (n < sizeof w.events)
                vsnprintf(w.events + n, sizeof w.events - n, fmt, ap);
        va_end(ap);
}

/* ---- the kubelet ---- */

void dra_op_set_data(struct dra_op *op, void *data) {
        op->data = data;
}

uint64_t dra_op_timeout_ms(const struct dra_op *op) {
        return op->timeout_ms;
}

void dra_op_prepared(struct dra_op *op, const struct dra_device *devices, size_t n) {
        size_t len = 0;
        assert_int_equal(op->answer, PENDING);
        op->answer = PREPARED;
        for (size_t i = 0; i < n && len < sizeof op->devices; i++)
                len += (size_t)snprintf(op->devices + len, sizeof op->devices - len, "%s%s/%s/%s=%s",
                                        i ? "," : "", devices[i].requests[0], devices[i].pool,
                                        devices[i].device, str_or(devices[i].cdi_ids[0], ""));
}

void dra_op_unprepared(struct dra_op *op) {
        assert_int_equal(op->answer, PENDING);
        op->answer = UNPREPARED;
}

void dra_op_fail(struct dra_op *op, const char *msg) {
        assert_int_equal(op->answer, PENDING);
        op->answer = FAILED;
        snprintf(op->msg, sizeof op->msg, "%s", msg);
}

void kubelet_prepare(struct claims *c, struct dra_op *op, const char *ns, const char *name, const char *uid) {
        op->answer = PENDING;
        claims_prepare(c, op, &(struct dra_claim){ ns, name, uid });
        assert_int_equal(op->answer, PENDING);
}

void prepare(struct dra_op *op, const char *name, const char *uid) {
        kubelet_prepare(w.claims, op, "user", name, uid);
}

void kubelet_unprepare(struct claims *c, struct dra_op *op, const char *ns, const char *name,
                       const char *uid) {
        op->answer = PENDING;
        claims_unprepare(c, op, &(struct dra_claim){ ns, name, uid });
        assert_int_equal(op->answer, PENDING);
}

/* ---- the node ---- */

const struct facts *facts_get(const struct facts_sampler *s) {
        (void)s;
        return &w.facts;
}

void facts_poll_fast(struct facts_sampler *s, bool waiting) {
        (void)s;
        w.hurried = waiting;
}

static uint64_t host_answered_ns;

bool host_imex_ready(const struct host_imex *h, uint64_t since_ns, char *reason, size_t n) {
        (void)h;
        bool ready = host_answered_ns > since_ns && streq(w.host_says, "READY");
        if (!ready)
                snprintf(reason, n, "n0: the host's nvidia-imex is %s", w.host_says);
        return ready;
}

void host_imex_poll_fast(struct host_imex *h) {
        (void)h;
        w.host_hurried = true;
}

void host_imex_poll_slow(struct host_imex *h) {
        (void)h;
        w.host_hurried = false;
}

enum host_imex_own host_imex_own(const struct host_imex *h) {
        (void)h;
        return w.host_own;
}

const struct host_imex_status *host_imex_get(const struct host_imex *h) {
        (void)h;
        return &w.host_status;
}

void host_imex_settle(struct host_imex *h, bool on) {
        (void)h;
        w.host_settles = on;
}

void host_answers(const char *says) {
        w.host_says = says;
        host_answered_ns = uv_hrtime();
        claims_reevaluate(w.claims);
}

int facts_major(const struct facts_sampler *s, const char *name, unsigned *ret, struct err *e) {
        (void)s;
        (void)e;
        *ret = streq(name, PROC_MAJOR_CAPS) ? 241 : 240;
        return 0;
}

char *world_read(const char *path) {
        struct err e;
        char *text = NULL;
        return file_read(path, 1 << 20, &text, NULL, &e) < 0 ? NULL : text;
}

char *world_cdi(const char *uid) {
        _cleanup_(freep) char *path =
                xasprintf("%s/k8s.compute-domain.nvidia.com-claim_%s.yaml", w.cdi_root, uid);
        return world_read(path);
}

bool world_recorded(const char *uid) {
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        _cleanup_(freep) char *text = world_read(path);
        return text && strstr(text, uid);
}

const struct checkpoint_claim *world_entry(struct claims *c, const char *uid) {
        return checkpoint_find(&c->journal.table, uid);
}

struct cd *world_cd(void) {
        return w.claims->o.u;
}

void world_put_checkpoint(const char *claims_json) {
        struct err e;
        _cleanup_(freep) char *path = file_join(w.plugin_dir, "checkpoint.json");
        _cleanup_(freep) char *zero =
                xasprintf("{\"checksum\":0,\"preparedClaims\":%s,\"nodeBootID\":\"" BOOT "\"}", claims_json);
        _cleanup_(freep) char *text =
                xasprintf("{\"checksum\":1083090442,\"v1\":{},\"v2\":{\"checksum\":%lu%s}",
                          (unsigned long)gojson_checksum(&(struct str){ zero, strlen(zero) }, 1), zero + 13);
        assert_int_equal(file_replace(path, text, strlen(text), 0600, &e), 0);
}

void daemon_says(const char *domain, const char *claim_uid, const char *boot_id, bool ready,
                 const char *status, int *lock_fd) {
        _cleanup_(freep) char *dir = xasprintf("%s/domains/%s", w.plugin_dir, domain);
        struct imex_state s = { .index = 3, .ready = ready };
        struct err e;
        snprintf(s.boot_id, sizeof s.boot_id, "%s", boot_id);
        snprintf(s.claim_uid, sizeof s.claim_uid, "%s", claim_uid);
        snprintf(s.pod_uid, sizeof s.pod_uid, "%s", "e0000000-0000-4000-8000-000000000001");
        snprintf(s.status, sizeof s.status, "%s", status);
        if (!ready)
                snprintf(s.reason, sizeof s.reason, "%s", "two peers are missing");
        assert_int_equal(imex_state_write(dir, &s, lock_fd, &e), 0);
}

void daemon_ready(void) {
        struct dra_op op = { 0 };
        api_claim("driver", "daemon-claim", DAEMON_1, "daemon-0", DAEMON, DOMAIN_A, "");
        kubelet_prepare(w.claims, &op, "driver", "daemon-claim", DAEMON_1);
        world_wait(&op, PREPARED);
        daemon_says(DOMAIN_A, DAEMON_1, BOOT, true, "READY", &w.lock_fd);
}

/* ---- running ---- */

struct start {
        bool done;
        int r;
        struct err *e;
};

static void on_started(void *u, const struct err *e) {
        struct start *s = u;
        s->done = true;
        uv_stop(&w.loop);
        s->r = e ? -1 : 0;
        if (e)
                *s->e = *e;
}

static void on_isolation(void *u) {
        const struct isolation *i = *(struct isolation **)u;
        for (size_t k = 0; k < ARRAY_LEN(w.processes); k++) {
                if (w.isolations[k] == i && w.processes[k])
                        claims_reevaluate(w.processes[k]);
        }
}

static void get_standing(void *u, struct standing *ret) {
        const struct claims *c = w.processes[(struct isolation **)u - w.isolations];
        *ret = (struct standing){ 0 };
        if (c)
                standing_get(c->o.u, ret);
}

static void on_standing(void *u) {
        isolation_standing(*(struct isolation **)u);
}

void world_facts(void) {
        for (size_t k = 0; k < ARRAY_LEN(w.processes); k++) {
                if (w.isolations[k])
                        isolation_facts(w.isolations[k]);
                if (w.processes[k])
                        cd_driver_facts(w.processes[k]->o.u);
        }
}

static struct isolation *new_isolation(size_t k) {
        w.isolations[k] = isolation_new(&(struct isolation_options){
                .loop = &w.loop,
                .metrics = &w.metrics,
                .node = "n0",
                .ns = "driver",
                .pod = "plugin-n0",
                .cdi_root = w.cdi_root,
                .root = { .host = "/run/nvidia/driver", .here = w.driver_root },
                .host_root = "",
                .host = mode_is_standing(w.mode) ? NULL : (struct host_imex *)&w,
                .standing = mode_is_standing(w.mode) ? get_standing : NULL,
                .changed = on_isolation,
                .u = &w.isolations[k],
        });
        isolation_facts(w.isolations[k]);
        return w.isolations[k];
}

int world_try(const char *boot_id, struct claims **ret, struct err *e) {
        struct start s = { .e = e };
        size_t k = 0;
        while (w.processes[k])
                k++;
        struct isolation *isolation = mode_assigns_channels(w.mode) ? new_isolation(k) : NULL;
        const struct cd_options cd = {
                .fabric = isolation ? isolation_fabric(isolation) : NULL,
                .holdings = isolation ? isolation_holdings(isolation) : NULL,
                .loop = &w.loop,
                .mode = w.mode,
                .host = (struct host_imex *)&w, /* nobody looks into it */
                .node = "n0",
                .ns = "driver",
                .more_ns = w.more_ns,
                .plugin_dir = w.plugin_dir,
                .boot_id = boot_id,
                .root = { .host = "/run/nvidia/driver", .here = w.driver_root },
                .dev_root = w.driver_root,
                .proc_driver = w.driver_root,
                .channel_nodes = "",
                .standing_changed = mode_is_standing(w.mode) ? on_standing : NULL,
                .u = &w.isolations[k],
        };
        const struct claims_options o = {
                .loop = &w.loop,
                .metrics = &w.metrics.node,
                .driver = &cd_driver,
                .u = cd_driver_new(&cd),
                .node = "n0",
                .plugin_dir = w.plugin_dir,
                .cdi_root = w.cdi_root,
                .boot_id = boot_id,
        };
        if (claims_new(&o, ret, e) < 0) {
                isolation_free(isolation);
                w.isolations[k] = NULL;
                return -1;
        }
        w.processes[k] = *ret;
        claims_start(*ret, on_started, &s);
        while (!s.done)
                uv_run(&w.loop, UV_RUN_ONCE);
        if (s.r < 0)
                world_stop(*ret);
        return s.r;
}

struct claims *world_process(const char *boot_id) {
        struct claims *c;
        struct err e;
        assert_int_equal(world_try(boot_id, &c, &e), 0);
        return c;
}

void world_mode(const char *gates, const char *imex_mode) {
        static struct gates g;
        struct err e;
        gates_init(&g);
        assert_int_equal(gates_parse(&g, gates, &e), 0);
        assert_int_equal(mode_resolve(&g, imex_mode, "", false, &w.mode, &e), 0);
}

void world_mode_own_channels(void) {
        static const struct imex_mode own_channels = { MODE_HOST_CHANNEL,     "imex.isolation=channel",
                                                       MODE_RUNNER_HOST,      MODE_SPAN_PARTITION,
                                                       MODE_CHANNELS_AT_ONCE, MODE_IDS_OWN };
        w.mode = &own_channels;
        if (!w.metrics.toolkit)
                plugin_metrics_own_channels(&w.metrics);
}

void world_mode_agents(const char *isolation) {
        static struct gates g;
        struct err e;
        gates_init(&g);
        assert_int_equal(mode_resolve(&g, "", isolation, true, &w.mode, &e), 0);
        if (mode_assigns_channels(w.mode) && !w.metrics.toolkit)
                plugin_metrics_own_channels(&w.metrics);
}

void world_start(const char *boot_id) {
        w.claims = world_process(boot_id);
}

/* Somebody holds the node lock and waits for his thread, or waits for the lock that another of these holds.
 */
static bool at_work(void) {
        bool any = false, locking = false;
        for (size_t i = 0; i < ARRAY_LEN(w.processes); i++) {
                const struct claims *c = w.processes[i];
                any = any || (c && (c->batch->running || (c->batch->locking && w.lock_fd < 0)));
                locking = locking || (c && c->batch->locking);
        }
        /* What else is in a thread, but for whoever waits there for a lock that the test holds. */
        any = any || (!locking && w.loop.active_reqs.count);
        return any && !w.disk_hangs;
}

void world_stop(struct claims *c) {
        while (at_work())
                uv_run(&w.loop, UV_RUN_ONCE);
        for (size_t i = 0; i < ARRAY_LEN(w.processes); i++) {
                if (w.processes[i] != c)
                        continue;
                w.processes[i] = NULL;
                claims_free(c);
                isolation_free(w.isolations[i]);
                w.isolations[i] = NULL;
        }
        world_turn();
}

void world_turn(void) {
        for (int quiet = 0; quiet < 5;) {
                bool any = serve_one() || tell_fabrics();
                if (!w.api_unknown && ready_fn) {
                        kube_ready_fn *fn = ready_fn;
                        ready_fn = NULL;
                        fn(ready_u, NULL);
                        any = true;
                }
                while (at_work())
                        uv_run(&w.loop, UV_RUN_ONCE);
                uv_run(&w.loop, UV_RUN_NOWAIT);
                quiet = any || at_work() ? 0 : quiet + 1;
        }
}

static void on_alarm(uv_timer_t *t) {
        *(bool *)t->data = true;
}

static void on_alarm_closed(uv_handle_t *h) {
        free(h);
}

void world_wait(struct dra_op *op, enum answer want) {
        bool late = false;
        uv_timer_t *alarm = xnew(uv_timer_t);
        uv_timer_init(&w.loop, alarm);
        alarm->data = &late;
        uv_timer_start(alarm, on_alarm, 5000, 0);
        while (op->answer == PENDING && !late) {
                world_turn();
                if (op->answer == PENDING)
                        uv_run(&w.loop, UV_RUN_ONCE);
        }
        uv_close((uv_handle_t *)alarm, on_alarm_closed);
        if (op->answer != want)
                print_message("answer %d: %s\n", (int)op->answer, op->msg);
        assert_int_equal(op->answer, want);
}

int world_setup(void **state) {
        struct err e;
        (void)state;
        w = (struct world){ .dir = tree_new(), .lock_fd = -1 };
        w.plugin_dir = file_join(w.dir, "plugin");
        w.cdi_root = file_join(w.dir, "cdi");
        w.driver_root = file_join(w.dir, "root");
        file_mkdirs(w.plugin_dir, 0750, &e);
        tree_put(w.driver_root, "usr/lib64/libnvidia-ml.so.1", "x");
        tree_put(w.driver_root, "usr/bin/nvidia-imex", "x");
        tree_put(w.driver_root, "usr/bin/nvidia-imex-ctl", "x");
        tree_put(w.driver_root, "capabilities/fabric-imex-mgmt",
                 "DeviceFileMinor: 512\nDeviceFileMode: 438\n");
        w.facts = (struct facts){ .known = true,
                                  .usable = true,
                                  .reason = "",
                                  .driver_version = "580.95.05",
                                  .fabric = { .kind = FABRIC_CLIQUE, .clique_id = CLIQUE },
                                  .channel_major = 240,
                                  .channel_count = 2048 };
        world_mode("", "");
        uv_loop_init(&w.loop);
        plugin_metrics_init(&w.metrics, "n0");
        api_domain("user", "cd", DOMAIN_A, false);
        return 0;
}

int world_setup_claims(void **state) {
        if (world_setup(state) < 0)
                return -1;
        world_start(BOOT);
        api_claim("user", "c1", CLAIM_1, "channel-0", CHANNEL, DOMAIN_A, "");
        api_claim("user", "c2", CLAIM_2, "channel-0", CHANNEL, DOMAIN_A, "");
        return 0;
}

int world_teardown(void **state) {
        (void)state;
        if (w.lock_fd >= 0)
                close(w.lock_fd);
        /* A test that failed has left its other processes behind. */
        for (size_t i = 0; i < ARRAY_LEN(w.processes); i++) {
                claims_free(w.processes[i]);
                isolation_free(w.isolations[i]);
        }
        uv_run(&w.loop, UV_RUN_DEFAULT);
        plugin_metrics_done(&w.metrics);
        tree_remove(w.dir);
        free(w.plugin_dir);
        free(w.cdi_root);
        free(w.driver_root);
        for (size_t i = 0; i < n_claim_objects; i++)
                freep(&claim_objects[i].json);
        memset(claim_objects, 0, sizeof claim_objects);
        n_claim_objects = n_domain_objects = 0;
        freep(&fabric_json);
        fabric_json = NULL;
        return uv_loop_close(&w.loop);
}

void refused_at_once(const char *name, const char *uid, const char *part) {
        struct dra_op op = { 0 };
        prepare(&op, name, uid);
        world_turn();
        assert_int_equal(op.answer, FAILED);
        const char *found = strstr(op.msg, part);
        if (!found)
                print_message("'%s' is not in: %s\n", part, op.msg);
        assert_non_null(found);
        assert_false(world_recorded(uid));
        assert_null(world_cdi(uid));
}
