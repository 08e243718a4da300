/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/names.h"
#include "base/mem.h"
#include "channels.h"
#include "plugin.h"
#include "sim.h"
#include "store.h"
#include "world_state.h"

/* ---- the users' pods ---- */

static struct {
        enum answers_state state;
        int64_t since_ms;
} noted[MAX_DOMAINS][MAX_PODS];

static enum answers_state state_of(const struct user_pod *p) {
        static const enum answers_state states[] = {
                [POD_NONE] = ANSWERS_OTHER,      [POD_WAITS] = ANSWERS_NO_CLAIM,
                [POD_CLAIMED] = ANSWERS_NO_NODE, [POD_ALLOCATED] = ANSWERS_STARTS,
                [POD_STARTS] = ANSWERS_STARTS,   [POD_RUNS] = ANSWERS_RUNS,
                [POD_ENDS] = ANSWERS_OTHER
        };
        return states[p->state];
}

void answers_note(void) {
        for (unsigned d = 0; d < w.n_domains; d++)
                for (unsigned i = 0; i < w.domains[d].n_pods; i++) {
                        enum answers_state s = state_of(&w.domains[d].pods[i]);
                        if (noted[d][i].state != s || !noted[d][i].since_ms)
                                noted[d][i].since_ms = sim_now_ms() + 1;
                        noted[d][i].state = s;
                }
}

static void name_pod(unsigned d, unsigned i, char *name, size_t size) {
        snprintf(name, size, "%s-%u", w.domains[d].name, i);
}

static bool nth_pod(unsigned nth, unsigned *ret_domain, unsigned *ret_pod) {
        for (unsigned d = 0; d < w.n_domains; d++) {
                if (nth < w.domains[d].n_pods) {
                        *ret_domain = d;
                        *ret_pod = nth;
                        return true;
                }
                nth -= w.domains[d].n_pods;
        }
        return false;
}

bool answers_pod(unsigned nth, struct answers_pod *ret) {
        unsigned d, i;
        if (!nth_pod(nth, &d, &i))
                return false;
        const struct user_pod *p = &w.domains[d].pods[i];
        *ret = (struct answers_pod){ .state = state_of(p),
                                     .node = p->node ? (int)number_of(p->node) : -1,
                                     .domain = d,
                                     .since_ms = sim_now_ms() - noted[d][i].since_ms };
        name_pod(d, i, ret->name, sizeof ret->name);
        return true;
}

static const char *time_text(int64_t s) {
        static char texts[4][32];
        static unsigned next;
        char *text = texts[next++ % ARRAY_LEN(texts)];
        time_t t = (time_t)s;
        struct tm tm;
        gmtime_r(&t, &tm);
        strftime(text, sizeof texts[0], "%Y-%m-%dT%H:%M:%SZ", &tm);
        return text;
}

/* As the plugin DynamicResources and the other filters of the scheduler count the nodes. */
static void scheduler_text(const struct answers *a, struct buf *b) {
        static const char *const texts[] = {
                [ANSWERS_NO_RULE] = "",
                [ANSWERS_NODE_SELECTOR] = "didn't match Pod's node affinity/selector",
                [ANSWERS_NODE_AFFINITY] = "didn't match Pod's node affinity/selector",
                [ANSWERS_TAINT] = "had untolerated taint {" ANSWERS_TAINT_KEY ": x}",
                [ANSWERS_POD_AFFINITY] = "didn't match pod affinity rules",
                [ANSWERS_POD_ANTI_AFFINITY] = "didn't match pod anti-affinity rules"
        };
        unsigned n = 0, cordoned = 0, down = 0, excluded = 0;
        for (unsigned i = 0; i < w.n_nodes; i++) {
                n += w.nodes[i].exists;
                down += w.nodes[i].exists && !w.nodes[i].ready;
                cordoned += w.nodes[i].exists && w.nodes[i].ready && w.nodes[i].cordoned;
                excluded +=
                        w.nodes[i].exists && w.nodes[i].ready && !w.nodes[i].cordoned && w.nodes[i].excluded;
        }
        buf_addf(b, "0/%u nodes are available: ", n);
        if (down)
                buf_addf(b, "%u node(s) had untolerated taint {node.kubernetes.io/unreachable: }, ", down);
        if (cordoned)
                buf_addf(b, "%u node(s) were unschedulable, ", cordoned);
        if (excluded)
                buf_addf(b, "%u node(s) %s, ", excluded, texts[a->rule]);
        if (n - down - cordoned - excluded)
                buf_addf(b, "%u cannot allocate all claims, ", n - down - cordoned - excluded);
        b->n -= 2;
        buf_addf(b,
                 ". still not schedulable, preemption: 0/%u nodes are available: %u Preemption is not "
                 "helpful for "
                 "scheduling.",
                 n, n);
}

static const char *template_of(const struct answers *a, const struct domain *d, const struct user_pod *p) {
        static char name[64];
        snprintf(name, sizeof name, "t-%s%s", d->name,
                 a->misspelt && p->state == POD_WAITS ? "-misspelt" : "");
        return name;
}

static void pod_status(const struct answers *a, const struct domain *d, const struct user_pod *p,
                       struct buf *b) {
        const char *template = template_of(a, d, p);
        if (*p->claim)
                buf_addf(b,
                         "\"resourceClaimStatuses\":[{\"name\":\"channel\",\"resourceClaimName\":\"%s\"}],",
                         p->claim);
        if (p->state == POD_WAITS) {
                buf_addf(b,
                         "\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"
                         "\"False\","
                         "\"reason\":\"Unschedulable\",\"message\":\"waiting for dynamic resource controller "
                         "to "
                         "create the resourceclaim from template \\\"%s\\\"\"}]",
                         template);
        } else if (p->state == POD_CLAIMED) {
                buf_adds(b, "\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"
                            "\"False\","
                            "\"reason\":\"Unschedulable\",\"message\":\"");
                scheduler_text(a, b);
                buf_adds(b, "\"}]");
        } else {
                bool seen = p->node->power && p->node->connected && p->node->exists;
                bool runs = p->state == POD_RUNS && !a->image_fails;
                buf_addf(b,
                         "\"phase\":\"%s\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\"},{"
                         "\"type\":"
                         "\"ContainersReady\",\"status\":\"%s\",\"reason\":\"%s\"},{\"type\":\"Ready\","
                         "\"status\":\"%s\"}]",
                         runs ? "Running" : "Pending", runs ? "True" : "False",
                         runs ? "" : "ContainersNotReady", runs ? "True" : "False");
                if (runs)
                        buf_addf(b,
                                 ",\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"running\":{"
                                 "\"startedAt\":"
                                 "\"%s\"}}}]",
                                 time_text(sim_wall_s() - 5));
                else if (p->state == POD_RUNS)
                        buf_adds(b, ",\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"waiting\":{"
                                    "\"reason\":"
                                    "\"ImagePullBackOff\",\"message\":\"Back-off pulling image\"}}}]");
                else if (seen)
                        buf_adds(b, ",\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"waiting\":{"
                                    "\"reason\":"
                                    "\"ContainerCreating\"}}}]");
        }
}

/* The rule in the spec of a pod, with the comma in front of it. */
static const char *rule_text(enum answers_rule rule) {
#define REQUIRED "\"requiredDuringSchedulingIgnoredDuringExecution\":"
        static const char *const texts[] = {
                [ANSWERS_NO_RULE] = "",
                [ANSWERS_NODE_SELECTOR] =
                        ",\"nodeSelector\":{\"" ANSWERS_LABEL "\":\"" ANSWERS_LABEL_VALUE "\"}",
                [ANSWERS_NODE_AFFINITY] =
                        ",\"affinity\":{\"nodeAffinity\":{" REQUIRED
                        "{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"" ANSWERS_LABEL
                        "\",\"operator\":\"In\",\"values\":[\"" ANSWERS_LABEL_VALUE "\"]}]}]}}}",
                [ANSWERS_TAINT] = "",
                [ANSWERS_POD_AFFINITY] =
                        ",\"affinity\":{\"podAffinity\":{" REQUIRED "[{\"topologyKey\":\"" GPU_CLIQUE_LABEL
                        "\",\"labelSelector\":{\"matchLabels\":{\"app\":\"other\"}}}]}}",
                [ANSWERS_POD_ANTI_AFFINITY] =
                        ",\"affinity\":{\"podAntiAffinity\":{" REQUIRED
                        "[{\"topologyKey\":\"kubernetes.io/hostname\",\"labelSelector\":{\"matchLabels\":{"
                        "\"app\":\"other\"}}}]}}",
        };
        return texts[rule];
}

static char *pod_text(const struct answers *a, unsigned d, unsigned i) {
        const struct domain *domain = &w.domains[d];
        const struct user_pod *p = &domain->pods[i];
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);
        char name[64];
        name_pod(d, i, name, sizeof name);
        buf_addf(&b,
                 "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"" USER_NS
                 "\",\"uid\":\"pod-%s\",\"resourceVersion\":\"1\",\"creationTimestamp\":\"%s\",\"labels\":{"
                 "\"job-name\":\"%s\"}},\"spec\":{\"containers\":[{\"name\":\"main\",\"resources\":{"
                 "\"claims\":[{"
                 "\"name\":\"channel\"}]}}],\"resourceClaims\":[{\"name\":\"channel\","
                 "\"resourceClaimTemplateName\":"
                 "\"%s\"}]",
                 name, name, time_text(sim_wall_s() - (sim_now_ms() - noted[d][i].since_ms) / 1000),
                 domain->name, template_of(a, domain, p));
        buf_adds(&b, rule_text(a->rule));
        if (p->node)
                buf_addf(&b, ",\"nodeName\":\"%s\"", p->node->name);
        buf_adds(&b, "},\"status\":{");
        pod_status(a, domain, p, &b);
        buf_adds(&b, "}}");
        return xstrdup(buf_str(&b));
}

/* ---- Events ---- */

static void add_quoted(struct buf *b, const char *text) {
        for (; *text; text++)
                buf_addf(b, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
}

static char *event_text(const char *kind, const char *ns, const char *name, const char *reason,
                        const char *message, int64_t at_ms) {
        static unsigned serial;
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);
        buf_addf(&b,
                 "{\"metadata\":{\"name\":\"%s.%u\",\"namespace\":\"%s\",\"uid\":\"e%u\",\"resourceVersion\":"
                 "\"1\"},"
                 "\"involvedObject\":{\"kind\":\"%s\",\"namespace\":\"%s\",\"name\":\"%s\"},\"type\":"
                 "\"Warning\","
                 "\"reason\":\"%s\",\"lastTimestamp\":\"%s\",\"message\":\"",
                 name, serial, ns, serial, kind, ns, name, reason,
                 time_text(sim_wall_s() - (sim_now_ms() - at_ms) / 1000));
        add_quoted(&b, message);
        buf_adds(&b, "\"}");
        serial++;
        return xstrdup(buf_str(&b));
}

/* The Event that the kubelet or the scheduler writes last about the pod; NULL: none. */
static char *pod_event(const struct answers *a, unsigned d, unsigned i) {
        const struct user_pod *p = &w.domains[d].pods[i];
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);
        char name[64];
        const char *reason = NULL;
        int64_t at_ms = sim_now_ms();
        name_pod(d, i, name, sizeof name);
        if (p->state == POD_WAITS) {
                reason = "FailedResourceClaimCreation";
                if (w.refuses_claims)
                        buf_adds(&b, "PodResourceClaim channel: failed to create ResourceClaim: "
                                     "resourceclaims.resource.k8s.io is forbidden: exceeded quota: claims, "
                                     "requested: count/resourceclaims=1");
                else
                        buf_addf(&b,
                                 "PodResourceClaim channel: resourceclaimtemplate.resource.k8s.io \"%s\" not "
                                 "found",
                                 template_of(a, &w.domains[d], p));
        } else if (p->state == POD_CLAIMED) {
                reason = "FailedScheduling";
                scheduler_text(a, &b);
        } else if (p->state == POD_ALLOCATED && p->node->power && p->node->connected) {
                if (!plugin_runs(number_of(p->node))) {
                        reason = "FailedPrepareDynamicResources";
                        buf_adds(&b, "Failed to prepare dynamic resources: NodePrepareResources failed: DRA "
                                     "driver " CD_DRIVER " is not registered");
                } else if (*p->held.failure) {
                        reason = "FailedPrepareDynamicResources";
                        at_ms = p->held.failed_ms;
                        buf_addf(&b,
                                 "Failed to prepare dynamic resources: NodePrepareResources failed for "
                                 "ResourceClaim %s: %s",
                                 p->claim, p->held.failure);
                }
        }
        return reason ? event_text("Pod", USER_NS, name, reason, buf_str(&b), at_ms) : NULL;
}

/* ---- lists ---- */

struct listing {
        const struct answers *a;
        const struct source_query *q;
        source_object_fn *fn;
        void *u;
};

static void give(const struct listing *l, yyjson_val *object) {
        yyjson_val *meta = yyjson_obj_get(object, "metadata");
        const char *ns = yyjson_get_str(yyjson_obj_get(meta, "namespace"));
        if ((l->q->ns && !streq(l->q->ns, ns)) ||
            (l->q->name && !yyjson_equals_str(yyjson_obj_get(meta, "name"), l->q->name)))
                return;
        l->fn(l->u, object);
}

/* Takes the text. */
static void give_text(const struct listing *l, char *text) {
        yyjson_read_err bad;
        yyjson_doc *doc = text ? yyjson_read_opts(text, strlen(text), 0, NULL, &bad) : NULL;
        if (text && !doc)
                sim_broken("invalid object: %s: %s", bad.msg, text);
        if (doc)
                give(l, yyjson_doc_get_root(doc));
        yyjson_doc_free(doc);
        free(text);
}

/* As the kubelet counts them. */
static void add_restarts(yyjson_mut_doc *doc) {
        size_t i, n;
        yyjson_mut_val *x,
                *list = yyjson_mut_ptr_get(yyjson_mut_doc_get_root(doc), "/status/containerStatuses");
        yyjson_mut_arr_foreach(list, i, n, x) {
                yyjson_mut_val *last = yyjson_mut_obj_add_obj(doc, x, "lastState"),
                               *end = yyjson_mut_obj_add_obj(doc, last, "terminated");
                yyjson_mut_obj_add_str(doc, end, "reason", "Error");
                yyjson_mut_obj_add_int(doc, x, "restartCount", 5);
        }
}

/* A Pod of the driver, with its container. */
static char *with_container(const struct version *v) {
        const char *program = v->target ? "compute-domain-daemon" : "compute-domain-kubelet-plugin";
        yyjson_mut_doc *doc = yyjson_doc_mut_copy(v->doc, NULL);
        yyjson_mut_val *spec = yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "spec"),
                       *list = yyjson_mut_arr(doc), *container = yyjson_mut_arr_add_obj(doc, list);
        yyjson_mut_obj_add_str(doc, container, "name", v->target ? program : "compute-domains");
        yyjson_mut_arr_add_str(doc, yyjson_mut_obj_add_arr(doc, container, "command"), program);
        yyjson_mut_obj_remove_key(spec, "containers");
        yyjson_mut_obj_add_val(doc, spec, "containers", list);
        if (v->target && w.daemons_crash)
                add_restarts(doc);
        char *text = yyjson_mut_write(doc, 0, NULL);
        yyjson_mut_doc_free(doc);
        return text;
}

static void list_pods(const struct listing *l) {
        for (size_t i = 0; i < store_count(K_POD); i++)
                give_text(l, with_container(store_nth(K_POD, i)));
        for (unsigned n = 0, d, i; nth_pod(n, &d, &i); n++)
                if (w.domains[d].pods[i].state != POD_NONE && w.domains[d].pods[i].state != POD_ENDS)
                        give_text(l, pod_text(l->a, d, i));
}

/* From the time when the ComputeDomain had no claim template yet. It lasts for an hour. */
static char *old_event(const struct answers *a, unsigned d, unsigned i) {
        const struct user_pod *p = &w.domains[d].pods[i];
        char name[64];
        name_pod(d, i, name, sizeof name);
        _cleanup_(freep) char *text =
                xasprintf("PodResourceClaim channel: resourceclaimtemplate.resource.k8s.io \"%s\" not found",
                          template_of(a, &w.domains[d], p));
        return i % 2 ? event_text("Pod", USER_NS, name, "FailedResourceClaimCreation", text, 0) : NULL;
}

static void list_events(const struct listing *l) {
        for (unsigned n = 0, d, i; nth_pod(n, &d, &i); n++)
                give_text(l, old_event(l->a, d, i));
        for (unsigned n = 0, d, i; nth_pod(n, &d, &i); n++)
                give_text(l, pod_event(l->a, d, i));
        if (w.refuses_daemons)
                give_text(
                        l,
                        event_text(
                                "DaemonSet", DRIVER_NS, CD_DAEMON_OBJECT, "FailedCreate",
                                "Error creating: pods \"" CD_DAEMON_OBJECT
                                "-\" is forbidden: exceeded quota: driver, requested: pods=1, used: pods=4, "
                                "limited: pods=4",
                                sim_now_ms()));
}

static void list_installation(const struct listing *l, bool deployment) {
        unsigned pods = 0, ready = 0;
        for (unsigned i = 0; i < w.n_nodes; i++) {
                const struct version *p = store_get(K_POD, DRIVER_NS, w.nodes[i].plugin_pod);
                pods += p != NULL;
                ready += p && streq(p->condition, "True");
        }
        const char *mode = channels_of_host() ? "hostManaged" : "driverManaged",
                   *isolation = channels_used() ? "channel" : "domain";
#define PROGRAM_OF(program)                                                                                  \
        "\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"command\":[\"" program "\"]"
        if (deployment)
                give_text(l,
                          xasprintf("{\"metadata\":{\"name\":\"controller\",\"namespace\":\"" DRIVER_NS
                                    "\",\"uid\":\"c\",\"resourceVersion\":\"1\"},\"spec\":{\"replicas\":"
                                    "2," PROGRAM_OF(
                                            "compute-domain-controller") ",\"env\":[{\"name\":\"IMEX_MODE\","
                                                                         "\"value\":\"%s\"},{"
                                                                         "\"name\":\"IMEX_ISOLATION\","
                                                                         "\"value\":\"%s\"}]}]}}},\"status\":"
                                                                         "{\"readyReplicas\":%d}}",
                                    mode, isolation, l->a->no_controller ? 0 : 2));
        else
                give_text(l,
                          xasprintf("{\"metadata\":{\"name\":\"plugin\",\"namespace\":\"" DRIVER_NS
                                    "\",\"uid\":\"p\",\"resourceVersion\":\"1\"},\"spec\":{" PROGRAM_OF(
                                            "compute-domain-kubelet-plugin") "}]}}},\"status\":{"
                                                                             "\"desiredNumberScheduled\":%u,"
                                                                             "\"currentNumberScheduled\":%u,"
                                                                             "\"numberReady\":%u}}",
                                    w.n_nodes, pods, ready));
}

static int answers_list(struct source *s, const struct source_query *q, source_object_fn *fn, void *u,
                        struct err *e) {
        struct listing l = { (const struct answers *)s, q, fn, u };
        const char *plural = q->res->plural;
        if (!l.a->admin && (!q->res->namespaced || !streq(q->ns, USER_NS)))
                return err_set(e, ERR_DENIED, 403, "%s is forbidden", plural);
        if (streq(plural, "deployments"))
                list_installation(&l, true);
        if (streq(plural, "daemonsets"))
                list_installation(&l, false);
        if (streq(plural, "pods")) {
                list_pods(&l);
                return 0;
        }
        for (enum kind k = 0; k < K_COUNT; k++)
                for (size_t i = 0; streq(kinds[k].plural, plural) && i < store_count(k); i++)
                        give(&l, store_nth(k, i)->root);
        if (streq(plural, "events"))
                list_events(&l);
        return 0;
}

void answers_init(struct answers *a) {
        *a = (struct answers){ .source = { .list = answers_list, .ns = USER_NS, .now = sim_wall_s() } };
}
