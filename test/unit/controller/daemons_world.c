/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemons_world.h"

static char *fabric_text(const struct world *w, unsigned version) {
        return xasprintf("{\"apiVersion\":\"resource.nvidia.com/v1beta1\",\"kind\":\"ComputeDomainFabric\","
                         "\"metadata\":{\"name\":\"" CLIQUE "\",\"uid\":\"" OBJECT
                         "\",\"resourceVersion\":\"%u\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"
                         "\"tableOf\":\"" OBJECT "\",\"members\":[\"%s\"],\"nodes\":1,"
                         "\"channels\":[%s],\"domains\":[%s],\"epoch\":%s%s}",
                         version, w->member, w->channels, w->assignments, w->epoch, w->more);
}

#define ANOTHER_FABRIC                                                                                       \
        ",{\"metadata\":{\"name\":\"" ELSEWHERE "\",\"uid\":\"" OTHER_OBJECT                                 \
        "\",\"resourceVersion\":\"6\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"                      \
        "\"tableOf\":\"" OTHER_OBJECT "\",\"members\":[],\"nodes\":0,\"domains\":[],\"epoch\":1}"

static void add_node(const struct world *w, unsigned i, unsigned version, const char *spec, const char *boot,
                     struct buf *b) {
        buf_addf(b,
                 "%s{\"metadata\":{\"name\":\"n%u\",\"uid\":\"n%u\",\"resourceVersion\":\"%u\","
                 "\"labels\":{%s}},\"spec\":{%s},\"status\":{\"nodeInfo\":{\"bootID\":\"%s\"},"
                 "\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
                 b->n ? "," : "", i, i, version, w->node_labels, spec, boot, w->not_ready ? "False" : "True");
}

static void add_daemon(const struct world *w, unsigned i, unsigned version, struct buf *b) {
        struct buf annotations = BUF_INIT(1 << 12);
        struct jw j = JW(&annotations);
        char present[17];
        objects_daemonset_hash(&w->l.c.settings, present);
        jw_obj(&j, NULL);
        if (i <= w->n_crashing || i <= w->n_new)
                jw_str(&j, CD_ANNOTATION_TEMPLATE, present);
        else if (w->template_hash)
                jw_str(&j, CD_ANNOTATION_TEMPLATE, w->template_hash);
        if (w->report && i > w->n_crashing && i > w->n_new)
                jw_str(&j, IMEX_ANNOTATION_REPORT, w->report);
        if (w->ready)
                jw_str(&j, IMEX_ANNOTATION_READY, "true");
        if (w->mirror)
                jw_str(&j, POD_ANNOTATION_MIRROR, "x");
        jw_end_obj(&j);
        buf_addf(b,
                 "%s{\"metadata\":{\"name\":\"daemon-%u\",\"namespace\":\"driver\",\"uid\":\"p%u\","
                 "\"resourceVersion\":\"%u\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\",%s%s"
                 "\"labels\":{\"" CD_LABEL_COMPONENT "\":\"" CD_DAEMON_OBJECT "\",\"" CD_LABEL_CLIQUE
                 "\":\"%s\"},\"annotations\":%s},\"spec\":{\"nodeName\":\"n%u\"},"
                 "\"status\":{\"phase\":\"Running\",\"podIPs\":[{\"ip\":\"10.0.0.%u\"}]%s}}",
                 b->n ? "," : "", i, i, version, w->daemon_meta,
                 i <= w->n_ending ? "\"deletionTimestamp\":\"2026-02-01T00:00:00Z\"," : "",
                 w->elsewhere && i == 1 ? ELSEWHERE : CLIQUE, buf_str(&annotations), i, i,
                 i <= w->n_crashing ? CRASHES
                 : i <= w->n_new    ? ""
                                    : w->daemon_status);
        buf_done(&annotations);
}

static void add_plugin(const struct world *w, unsigned version, struct buf *b) {
        buf_addf(b,
                 "{\"metadata\":{\"name\":\"plugin-1\",\"namespace\":\"driver\",\"uid\":\"q1\","
                 "\"resourceVersion\":\"%u\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\","
                 "\"annotations\":{\"%s\":\"%s\"}},"
                 "\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Running\"}}",
                 version, w->refused ? IMEX_ANNOTATION_REFUSED : IMEX_ANNOTATION_UNPREPARED,
                 w->refused ? w->refused : w->unprepared);
}

static void add_slice(const struct world *w, unsigned i, unsigned version, struct buf *b) {
        _cleanup_(freep) char *device =
                xasprintf("{\"name\":\"channel-0\",\"attributes\":{\"cliqueID\":{\"string\":\"%s\"}}}",
                          i > 1 ? CLIQUE : w->slice);
        buf_addf(b,
                 "%s{\"metadata\":{\"name\":\"s%u\",\"uid\":\"s%u\",\"resourceVersion\":\"%u\","
                 "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"driver\":\"" CD_DRIVER
                 "\",\"nodeName\":\"n%u\",\"devices\":[%s]}}",
                 b->n ? "," : "", i, i, version, i, w->withheld && i == 1 ? "" : device);
}

#define GO_SET                                                                                               \
        "{\"metadata\":{\"name\":\"computedomain-daemon-" DOMAIN                                             \
        "\",\"namespace\":\"driver\",\"uid\":\"g\",\"resourceVersion\":\"1\",\"finalizers\":["               \
        "\"" CD_FINALIZER "\"],\"labels\":{\"" CD_LABEL "\":\"" DOMAIN "\"}}}"

/* Whether a request is about this driver's daemons. Requests about the Go driver's Pods exclude these by
 * label, and select the label of a ComputeDomain. */
static bool of_daemons(const char *path) {
        return fake_has(path, CD_DAEMON_OBJECT) && !fake_has(path, "computeDomain");
}

static char *items_of(void *u, const char *path) {
        struct world *w = u;
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);
        if (fake_has(path, "/nodes")) {
                for (unsigned i = 1; i <= w->n_daemons; i++)
                        add_node(w, i, 1, w->node_spec, w->boot, &b);
                return xstrdup(buf_str(&b));
        }
        if (fake_has(path, "/pods")) {
                for (unsigned i = 1 + w->n_missing;
                     w->has_daemon && of_daemons(path) && i <= w->n_daemons + w->n_orphans; i++)
                        add_daemon(w, i, 1, &b);
                if ((w->unprepared || w->refused) && fake_has(path, "plugin"))
                        add_plugin(w, 1, &b);
                if (fake_has(path, "computeDomain"))
                        buf_adds(&b, w->go_pods);
                return xstrdup(buf_str(&b));
        }
        if (fake_has(path, "/resourceslices")) {
                for (unsigned i = 1; w->slice && i <= w->n_daemons; i++)
                        add_slice(w, i, 1, &b);
                return xstrdup(buf_str(&b));
        }
        if (fake_has(path, "/resourceclaimtemplates"))
                return xstrdup(fake_has(path, CD_DAEMON_OBJECT) ? str_or(w->daemon_template, "")
                                                                : w->templates);
        if (fake_has(path, "/resourceclaims")) {
                w->n_claim_lists++;
                return xstrdup(w->claims);
        }
        if (fake_has(path, "/v1beta1/computedomainfabrics")) {
                free(w->object);
                w->object = w->assignments ? fabric_text(w, w->restored ? 3 : 5) : NULL;
                return xasprintf("%s%s", w->object ? w->object : "", w->elsewhere ? ANOTHER_FABRIC : "");
        }
        if (fake_has(path, "/computedomaincliques"))
                return xstrdup(w->go_cliques);
        if (fake_has(path, "/daemonsets") && !of_daemons(path))
                return xstrdup(w->go_set ? GO_SET : "");
        if (fake_has(path, "/daemonsets")) {
                char hash[17];
                objects_daemonset_hash(&w->l.c.settings, hash);
                return xasprintf(
                        !w->has_set
                                ? ""
                                : "{\"metadata\":{\"name\":\"" CD_DAEMON_OBJECT "\",\"namespace\":\"driver\","
                                  "\"uid\":\"d\",\"resourceVersion\":\"1\",\"generation\":1,\"annotations\":{"
                                  "\"" CD_ANNOTATION_TEMPLATE "\":\"%s\"}}}",
                        hash);
        }
        if (fake_has(path, "/namespaces/kube-node-lease/leases"))
                return xasprintf("{\"metadata\":{\"name\":\"n1\"},\"spec\":{\"renewTime\":"
                                 "\"2026-02-01T00:00:%02u.000000Z\"}}",
                                 w->n_lease_lists++ % 60);
        if (fake_has(path, "/computedomains")) {
                w->n_domain_lists++;
                return xstrdup(w->domains);
        }
        return NULL;
}

/* Applies the merge patch to the object. */
static void on_fabric(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        static unsigned version = 10;
        snprintf(w->fabric, sizeof w->fabric, "%s", r->body);
        w->n_fabric_writes++;
        if (w->hold_fabric)
                return;
        char *was =
                w->object ? w->object
                          : xasprintf("{\"metadata\":{\"uid\":\"" OBJECT "\",\"creationTimestamp\":\"%s\"}}",
                                      str_or(w->fabric_created, "2026-01-01T00:00:00Z"));
        yyjson_doc *old = yyjson_read(was, strlen(was), 0), *patch = yyjson_read(r->body, strlen(r->body), 0);
        yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
        assert_true(old && patch && doc);
        yyjson_mut_val *now = yyjson_merge_patch(doc, yyjson_doc_get_root(old), yyjson_doc_get_root(patch));
        yyjson_mut_val *meta = yyjson_mut_obj_get(now, "metadata");
        _cleanup_(freep) char *number = xasprintf("%u", ++version);
        yyjson_mut_obj_put(meta, yyjson_mut_str(doc, "name"), yyjson_mut_str(doc, CLIQUE));
        yyjson_mut_obj_put(meta, yyjson_mut_str(doc, "resourceVersion"), yyjson_mut_str(doc, number));
        yyjson_mut_doc_set_root(doc, now);
        w->object = yyjson_mut_write(doc, 0, NULL);
        assert_non_null(w->object);
        fake_reply(c, streq(r->method, "POST") ? 201 : 200, NULL, w->object);
        yyjson_mut_doc_free(doc);
        yyjson_doc_free(old);
        yyjson_doc_free(patch);
        free(was);
}

static void on_delete(struct world *w, const struct fake_request *r) {
        if (fake_has(r->path, "/daemonsets/" CD_DAEMON_OBJECT))
                w->n_set_deletes++;
        w->n_go_deletes += fake_has(r->path, "/daemonsets/computedomain-daemon-");
        if (!fake_has(r->path, "/pods/daemon-"))
                return;
        w->n_pod_deletes++;
        w->n_before_delete = w->n_fabric_writes;
        snprintf(w->deleted, sizeof w->deleted, "%s", r->body);
}

static void note_order(struct world *w, char what) {
        size_t n = strlen(w->order);
        if (n + 1 < sizeof w->order)
                w->order[n] = what;
}

char *world_template_text(const char *meta) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 12);
        objects_daemon_rct("v1", "driver", &b);
        const char *text = buf_str(&b), *rest = strstr(text, "\"metadata\":{") + strlen("\"metadata\":{");
        return xasprintf("%.*s%s%s", (int)(rest - text), text, meta, rest);
}

static void reply_template(struct fake_conn *c) {
        _cleanup_(freep) char *text = world_template_text("\"uid\":\"r2\",\"resourceVersion\":\"20\",");
        fake_reply(c, 201, NULL, text);
}

/* For this kind, the API server answers with the object that no longer exists. */
static void reply_deleted(struct world *w, struct fake_conn *c) {
        _cleanup_(freep) char *text =
                xasprintf("{\"kind\":\"ResourceClaimTemplate\",\"apiVersion\":\"resource.k8s.io/v1\",%s",
                          w->daemon_template + 1);
        fake_reply(c, 200, NULL, text);
}

static void on_template(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        bool deletes = streq(r->method, "DELETE");
        w->n_templates += !deletes;
        note_order(w, deletes ? 'd' : 'c');
        if (deletes)
                snprintf(w->deleted, sizeof w->deleted, "%s", r->body);
        if (deletes && w->hold_deletes)
                w->held = c;
        else if (!w->takes_templates)
                fake_refuse(c, 403, "not in this test");
        else if (deletes)
                reply_deleted(w, c);
        else
                reply_template(c);
}

static void on_write(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        bool deletes = streq(r->method, "DELETE");
        if (fake_has(r->path, "/computedomainfabrics/" ELSEWHERE)) {
                snprintf(w->other, sizeof w->other, "%s", r->body);
                fake_refuse(c, 403, "not in this test");
                return;
        }
        if (fake_has(r->path, "/v1beta1/computedomainfabrics")) {
                on_fabric(w, c, r);
                return;
        }
        if (fake_has(r->path, "/events"))
                snprintf(w->event, sizeof w->event, "%s", r->body);
        if (fake_has(r->path, "/computedomains/train/status"))
                snprintf(w->status, sizeof w->status, "%s", r->body);
        if (fake_has(r->path, "/nodes/n1")) {
                snprintf(w->node, sizeof w->node, "%s", r->body);
                if (fake_has(r->body, "\"" CD_LABEL_DAEMON "\":null"))
                        w->n_before_label = w->n_fabric_writes;
        }
        if (fake_has(r->path, "/resourceclaimtemplates/" CD_DAEMON_OBJECT)) {
                on_template(w, c, r);
                return;
        }
        if (fake_has(r->path, "/daemonsets/" CD_DAEMON_OBJECT) && !deletes) {
                w->n_sets++;
                note_order(w, 's');
        }
        if (deletes)
                on_delete(w, r);
        if (w->hold_deletes && deletes) {
                w->held = c;
                return;
        }
        fake_refuse(c, 403, "not in this test");
}

/* A list that confirms whether n1 exists. */
static void on_asked(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 12);
        w->n_node_asks++;
        assert_string_equal(fake_query(r, "fieldSelector"), "metadata.name=n1");
        if (w->asked_refused) {
                fake_refuse(c, 403, "not now");
                return;
        }
        if (!w->asked_gone)
                add_node(w, 1, 1, w->asked_spec ? w->asked_spec : w->node_spec,
                         w->asked_boot ? w->asked_boot : w->boot, &b);
        _cleanup_(freep) char *list =
                xasprintf("{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[%s]}", buf_str(&b));
        fake_list(c, r, "Node", list);
}

/* A list that is older than the object in the cache. */
static void on_restored(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        _cleanup_(freep) char *items = items_of(w, r->path);
        _cleanup_(freep) char *list =
                xasprintf("{\"metadata\":{\"resourceVersion\":\"4\"},\"items\":[%s]}", str_or(items, ""));
        fake_list(c, r, leading_kind_of(r->path), list);
}

static void on_watch(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        if (fake_has(r->path, "/resourceclaims"))
                w->claims_watch = c;
        if (fake_has(r->path, "/v1beta1/computedomainfabrics"))
                w->fabrics_watch = c;
        if (fake_has(r->path, "/pods") && of_daemons(r->path))
                w->daemons_watch = c;
        if (fake_has(r->path, "/pods") && fake_has(r->path, "plugin"))
                w->plugins_watch = c;
        if (fake_has(r->path, "/nodes"))
                w->nodes_watch = c;
        if (fake_has(r->path, "/resourceslices"))
                w->slices_watch = c;
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        bool lists = streq(r->method, "GET") && !fake_query(r, "watch");
        if (fake_query(r, "watch"))
                on_watch(w, c, r);
        if (lists && fake_has(r->path, "/nodes") && fake_query(r, "fieldSelector"))
                on_asked(w, c, r);
        else if (lists && w->restored && fake_has(r->path, "/v1beta1/computedomainfabrics"))
                on_restored(w, c, r);
        else if (streq(r->method, "GET"))
                leading_read(c, r, items_of, u);
        else
                on_write(u, c, r);
}

void world_change_report(struct world *w, const char *report) {
        static unsigned version = 100;
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 13);
        w->report = report;
        add_daemon(w, 1, ++version, &b);
        _cleanup_(freep) char *event = xasprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", buf_str(&b));
        fake_chunk(w->daemons_watch, event);
}

void world_change_node(struct world *w, const char *type, const char *labels) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 12);
        w->node_labels = labels;
        add_node(w, 1, 200, w->node_spec, w->boot, &b);
        _cleanup_(freep) char *event = xasprintf("{\"type\":\"%s\",\"object\":%s}\n", type, buf_str(&b));
        fake_chunk(w->nodes_watch, event);
}

void world_change_refused(struct world *w, const char *refused) {
        static unsigned version = 100;
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 12);
        w->refused = refused;
        add_plugin(w, ++version, &b);
        _cleanup_(freep) char *event = xasprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", buf_str(&b));
        fake_chunk(w->plugins_watch, event);
}

void world_change_fabric(struct world *w, const char *more) {
        static unsigned version = 100;
        w->more = more;
        _cleanup_(freep) char *object = fabric_text(w, ++version);
        _cleanup_(freep) char *event = xasprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", object);
        fake_chunk(w->fabrics_watch, event);
}

void world_offer(struct world *w) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 12);
        w->withheld = false;
        add_slice(w, 1, 300, &b);
        _cleanup_(freep) char *event = xasprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", buf_str(&b));
        fake_chunk(w->slices_watch, event);
}

void world_set_mode(struct world *w, const char *gates, const char *isolation) {
        leading_set_mode(&w->l, gates, isolation);
        w->node_labels = *gates ? "" : LABELLED;
}

int world_setup(void **state) {
        struct world *w = xnew(struct world);
        w->domains = w->claims = w->templates = w->node_labels = w->node_spec = "";
        w->daemon_meta = w->daemon_status = w->more = "";
        w->go_pods = w->go_cliques = "";
        w->n_daemons = 1;
        w->assignments = w->channels = "";
        w->epoch = "0";
        w->boot = BOOT;
        w->slice = CLIQUE;
        w->member = "n1";
        leading_init(&w->l, on_request, w);
        world_set_mode(w, BY_DAEMONS, NULL);
        *state = w;
        return 0;
}

int world_teardown(void **state) {
        struct world *w = *state;
        leading_done(&w->l);
        free(w->object);
        free(w);
        return 0;
}

void world_start_again(struct world *w) {
        controller_stop(&w->l.c);
        w->fabric[0] = w->node[0] = w->deleted[0] = '\0';
        memset(w->order, 0, sizeof w->order);
        w->n_pod_deletes = w->n_node_asks = w->n_fabric_writes = 0;
        leading_start(&w->l);
}

void world_has_reported(struct world *w, const char *report) {
        w->has_daemon = true;
        w->report = report;
}

void world_is_claimed(struct world *w) {
        w->domains = A_DOMAIN(MODE_DRIVER_MANAGED);
        w->claims = A_CLAIM;
}

void world_is_assigned(struct world *w) {
        w->domains = A_DOMAIN(MODE_DRIVER_MANAGED);
        w->assignments = ACTIVE;
        w->epoch = "7";
}
