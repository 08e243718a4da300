/* SPDX-License-Identifier: Apache-2.0 */
#include "render/objects.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/names.h"
#include "api/opaque.h"

void objects_daemon_name(const char *uid, struct buf *out) {
        buf_addf(out, CD_DAEMON_OBJECT_PREFIX "%s", uid);
}

static void head(struct jw *w, const char *api_version, const char *kind) {
        jw_obj(w, NULL);
        jw_str(w, "apiVersion", api_version);
        jw_str(w, "kind", kind);
}

static void finalizer(struct jw *w) {
        jw_arr(w, "finalizers");
        jw_str(w, NULL, CD_FINALIZER);
        jw_end_arr(w);
}

static void label(struct jw *w, const char *key, const char *uid) {
        jw_obj(w, key);
        jw_str(w, CD_LABEL, uid);
        jw_end_obj(w);
}

/* Somebody else's beside ours; config.c has seen to it that no key is in both. */
static void pairs(struct jw *w, const char *key, const struct jd_pair *theirs, size_t n_theirs,
                  const struct jd_pair *ours, size_t n_ours) {
        jw_obj(w, key);
        for (size_t i = 0; i < n_ours; i++)
                jw_str(w, ours[i].key, ours[i].value);
        for (size_t i = 0; i < n_theirs; i++)
                jw_str(w, theirs[i].key, theirs[i].value);
        jw_end_obj(w);
}

static void env_value(struct jw *w, const char *name, const char *value) {
        jw_obj(w, NULL);
        jw_str(w, "name", name);
        jw_str(w, "value", value);
        jw_end_obj(w);
}

static void env_field(struct jw *w, const char *name, const char *path) {
        jw_obj(w, NULL);
        jw_str(w, "name", name);
        jw_obj(w, "valueFrom");
        jw_obj(w, "fieldRef");
        jw_str(w, "fieldPath", path);
        jw_end_obj(w);
        jw_end_obj(w);
        jw_end_obj(w);
}

/* Nothing waits for the probes: the plugin learns readiness from the state file. Each costs the node about as
 * much as starting a container, so the first ones come when the domain has formed and its workload is
 * starting no more. */
static void probe(struct jw *w, const char *key, int64_t delay_s, int64_t period_s, int64_t failures) {
        jw_obj(w, key);
        jw_obj(w, "exec");
        jw_arr(w, "command");
        jw_str(w, NULL, "compute-domain-daemon");
        jw_str(w, NULL, "-v");
        jw_str(w, NULL, "$(LOG_VERBOSITY)");
        jw_str(w, NULL, "check");
        jw_end_arr(w);
        jw_end_obj(w);
        if (delay_s)
                jw_int(w, "initialDelaySeconds", delay_s);
        jw_int(w, "periodSeconds", period_s);
        jw_int(w, "timeoutSeconds", 10);
        jw_int(w, "failureThreshold", failures);
        jw_end_obj(w);
}

static void env(struct jw *w, const struct objects_settings *s, const char *gates, int64_t max_nodes) {
        char max[24];
        snprintf(max, sizeof max, "%" PRId64, max_nodes);
        jw_arr(w, "env");
        env_value(w, "LOG_VERBOSITY", s->log_verbosity);
        if (s->json_log)
                env_value(w, "LOGGING_FORMAT", "json");
        env_value(w, "MAX_NODES_PER_IMEX_DOMAIN", max);
        env_value(w, "NVIDIA_VISIBLE_DEVICES", "void");
        env_value(w, "FEATURE_GATES", gates);
        env_field(w, "NODE_NAME", "spec.nodeName");
        env_field(w, "POD_IP", "status.podIP");
        env_field(w, "POD_UID", "metadata.uid");
        env_field(w, "POD_NAME", "metadata.name");
        env_field(w, "POD_NAMESPACE", "metadata.namespace");
        jw_end_arr(w);
}

/* Root, because /etc/hosts can only be rewritten in place by root; but a root that may do nothing else. The
 * seccomp profile is the node's own choice (kubelet: seccompDefault): the runtime's default one makes each
 * container start about a tenth dearer, while workloads wait. */
static void security(struct jw *w) {
        jw_obj(w, "securityContext");
        jw_int(w, "runAsUser", 0);
        jw_bool(w, "allowPrivilegeEscalation", false);
        jw_bool(w, "readOnlyRootFilesystem", true);
        jw_obj(w, "capabilities");
        jw_arr(w, "drop");
        jw_str(w, NULL, "ALL");
        jw_end_arr(w);
        jw_end_obj(w);
        jw_end_obj(w);
}

/* Where nvidia-imex keeps its state and statistics; the rest of the file system is read-only. The state says
 * who had mapped this node's memory: it has to outlive the process, and a reboot of the node makes it untrue,
 * so it is in memory. A node list of 4096 names fits into the limit ten times. */
static const struct {
        const char *name, *path, *memory; /* memory: its limit there; NULL: on disk */
} scratch[] = { { "imex-run", "/var/run/nvidia-imex", "16Mi" }, { "imex-log", "/var/log", NULL } };

static void container(struct jw *w, const struct objects_settings *s, const char *gates, int64_t max_nodes) {
        jw_obj(w, NULL);
        jw_str(w, "name", "compute-domain-daemon");
        jw_str(w, "image", s->image);
        jw_str(w, "imagePullPolicy", str_or(s->pull_policy, "IfNotPresent"));
        jw_arr(w, "command");
        jw_str(w, NULL, "compute-domain-daemon");
        jw_str(w, NULL, "-v");
        jw_str(w, NULL, "$(LOG_VERBOSITY)");
        jw_str(w, NULL, "run");
        jw_end_arr(w);
        env(w, s, gates, max_nodes);
        jw_obj(w, "resources");
        if (s->requests.n)
                jw_raw(w, "requests", s->requests);
        if (s->limits.n)
                jw_raw(w, "limits", s->limits);
        jw_arr(w, "claims");
        jw_obj(w, NULL);
        jw_str(w, "name", "compute-domain-daemon");
        jw_end_obj(w);
        jw_end_arr(w);
        jw_end_obj(w);
        security(w);
        jw_arr(w, "volumeMounts");
        for (size_t i = 0; i < ARRAY_LEN(scratch); i++) {
                jw_obj(w, NULL);
                jw_str(w, "name", scratch[i].name);
                jw_str(w, "mountPath", scratch[i].path);
                jw_end_obj(w);
        }
        jw_end_arr(w);
        probe(w, "startupProbe", 5, 1, 1200);
        probe(w, "livenessProbe", 60, 60, 20);
        probe(w, "readinessProbe", 0, 10, 1);
        jw_end_obj(w);
}

static void pod_spec(struct jw *w, const struct objects_settings *s, const char *uid, const char *gates,
                     int64_t max_nodes) {
        static const char *const effects[] = { "NoSchedule", "NoExecute", "PreferNoSchedule" };
        struct buf name = BUF_INIT(256);
        objects_daemon_name(uid, &name);
        jw_obj(w, "spec");
        jw_str(w, "serviceAccountName", CD_DAEMON_SERVICE_ACCOUNT);
        if (s->n_pull_secrets) {
                jw_arr(w, "imagePullSecrets");
                for (size_t i = 0; i < s->n_pull_secrets; i++) {
                        jw_obj(w, NULL);
                        jw_str(w, "name", s->pull_secrets[i]);
                        jw_end_obj(w);
                }
                jw_end_arr(w);
        }
        if (*s->priority_class)
                jw_str(w, "priorityClassName", s->priority_class);
        jw_int(w, "terminationGracePeriodSeconds", 10);
        label(w, "nodeSelector", uid);
        jw_arr(w, "tolerations");
        for (size_t i = 0; i < ARRAY_LEN(effects); i++) {
                jw_obj(w, NULL);
                jw_str(w, "effect", effects[i]);
                jw_str(w, "operator", "Exists");
                jw_end_obj(w);
        }
        jw_end_arr(w);
        /* The resolver asks the cluster's DNS for a slot name only as it is, not once a search domain. */
        jw_obj(w, "dnsConfig");
        jw_arr(w, "options");
        env_value(w, "ndots", "1");
        jw_end_arr(w);
        jw_end_obj(w);
        jw_arr(w, "resourceClaims");
        jw_obj(w, NULL);
        jw_str(w, "name", "compute-domain-daemon");
        jw_str(w, "resourceClaimTemplateName", buf_str(&name));
        jw_end_obj(w);
        jw_end_arr(w);
        jw_arr(w, "volumes");
        for (size_t i = 0; i < ARRAY_LEN(scratch); i++) {
                jw_obj(w, NULL);
                jw_str(w, "name", scratch[i].name);
                jw_obj(w, "emptyDir");
                if (scratch[i].memory) {
                        jw_str(w, "medium", "Memory");
                        jw_str(w, "sizeLimit", scratch[i].memory);
                }
                jw_end_obj(w);
                jw_end_obj(w);
        }
        jw_end_arr(w);
        jw_arr(w, "containers");
        container(w, s, gates, max_nodes);
        jw_end_arr(w);
        jw_end_obj(w);
        buf_done(&name);
}

static void daemonset(const struct objects_settings *s, const char *uid, const char *gates, int64_t max_nodes,
                      const char *hash, struct buf *out) {
        struct jw w = JW(out);
        struct buf name = BUF_INIT(256);
        objects_daemon_name(uid, &name);
        head(&w, "apps/v1", "DaemonSet");
        jw_obj(&w, "metadata");
        jw_str(&w, "name", buf_str(&name));
        jw_str(&w, "namespace", s->ns);
        pairs(&w, "labels", s->labels, s->n_labels, (const struct jd_pair[]){ { CD_LABEL, uid } }, 1);
        jw_map(&w, "annotations", (const struct jd_pair[]){ { CD_ANNOTATION_TEMPLATE, hash } }, 1);
        finalizer(&w);
        jw_end_obj(&w);
        jw_obj(&w, "spec");
        jw_obj(&w, "selector");
        label(&w, "matchLabels", uid);
        jw_end_obj(&w);
        /* A changed template must not restart the daemons of a living domain: the controller replaces pods
         * when nobody uses them. */
        jw_obj(&w, "updateStrategy");
        jw_str(&w, "type", "OnDelete");
        jw_end_obj(&w);
        jw_obj(&w, "template");
        jw_obj(&w, "metadata");
        pairs(&w, "labels", s->labels, s->n_labels,
              (const struct jd_pair[]){ { CD_LABEL, uid }, { "app", CD_APP_DAEMON } }, 2);
        pairs(&w, "annotations", s->annotations, s->n_annotations,
              (const struct jd_pair[]){ { CD_ANNOTATION_TEMPLATE, hash } }, 1);
        jw_end_obj(&w);
        pod_spec(&w, s, uid, gates, max_nodes);
        jw_end_obj(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
        buf_done(&name);
}

void objects_template_hash(const struct objects_settings *s, const char *uid, const char *gates,
                           int64_t max_nodes, char ret[static 17]) {
        struct buf b = BUF_INIT(1 << 16);
        daemonset(s, uid, gates, max_nodes, "", &b);
        snprintf(ret, 17, "%016" PRIx64, str_fnv64(buf_str(&b), b.n));
        buf_done(&b);
}

void objects_daemonset(const struct objects_settings *s, const char *uid, const char *gates,
                       int64_t max_nodes, struct buf *out) {
        char hash[17];
        objects_template_hash(s, uid, gates, max_nodes, hash);
        daemonset(s, uid, gates, max_nodes, hash, out);
}

static bool is_daemon(const char *target) {
        return streq(target, CD_TARGET_DAEMON);
}

static const char *request_of(const char *target) {
        return is_daemon(target) ? CD_REQUEST_DAEMON : CD_REQUEST_CHANNEL;
}

static const char *class_of(const char *target) {
        return is_daemon(target) ? CD_CLASS_DAEMON : CD_CLASS_CHANNEL;
}

/* v1 and v1beta2 hold the class below "exactly", v1beta1 in the request itself. */
static void request(struct jw *w, const char *resource_api, const char *target) {
        bool nested = !streq(resource_api, "v1beta1");
        jw_obj(w, NULL);
        jw_str(w, "name", request_of(target));
        if (nested)
                jw_obj(w, "exactly");
        jw_str(w, "deviceClassName", class_of(target));
        if (nested)
                jw_end_obj(w);
        jw_end_obj(w);
}

static void rct_labels(struct jw *w, const char *uid, const char *target) {
        jw_map(w, "labels", (const struct jd_pair[]){ { CD_LABEL, uid }, { CD_LABEL_TARGET, target } }, 2);
}

void objects_rct(const char *resource_api, const char *ns, const char *name, const struct kube_meta *domain,
                 const char *target, const char *mode, struct buf *out) {
        struct jw w = JW(out);
        struct buf api = BUF_INIT(64);
        buf_addf(&api, "resource.k8s.io/%s", resource_api);
        head(&w, buf_str(&api), "ResourceClaimTemplate");
        buf_done(&api);
        jw_obj(&w, "metadata");
        jw_str(&w, "name", name);
        jw_str(&w, "namespace", ns);
        rct_labels(&w, domain->uid, target);
        finalizer(&w);
        jw_end_obj(&w);
        jw_obj(&w, "spec");
        /* So that Prepare of a daemon's claim, which all others wait for, needs no look-up. */
        if (is_daemon(target)) {
                const struct jd_pair of[] = { { CD_ANNOTATION_NAME, domain->name },
                                              { CD_ANNOTATION_NAMESPACE, domain->ns } };
                jw_obj(&w, "metadata");
                jw_map(&w, "annotations", of, ARRAY_LEN(of));
                jw_end_obj(&w);
        }
        jw_obj(&w, "spec");
        jw_obj(&w, "devices");
        jw_arr(&w, "requests");
        request(&w, resource_api, target);
        jw_end_arr(&w);
        jw_arr(&w, "config");
        jw_obj(&w, NULL);
        jw_arr(&w, "requests");
        jw_str(&w, NULL, request_of(target));
        jw_end_arr(&w);
        jw_obj(&w, "opaque");
        jw_str(&w, "driver", CD_DRIVER);
        /* Sorted, as server-side apply stores them: the spec is immutable to the byte, and an apply must find
         * it unchanged. */
        jw_obj(&w, "parameters");
        if (!is_daemon(target))
                jw_str(&w, "allocationMode", mode);
        jw_str(&w, "apiVersion", CD_API_VERSION);
        jw_str(&w, "domainID", domain->uid);
        jw_str(&w, "kind", is_daemon(target) ? "ComputeDomainDaemonConfig" : "ComputeDomainChannelConfig");
        jw_end_obj(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
        jw_end_arr(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
}

bool objects_rct_matches(const struct rct *r, const char *uid, const char *target, const char *mode) {
        struct opaque_config cfg;
        struct err e;
        struct arena *a = arena_new(256);
        bool same = r->n_requests == 1 && streq(r->requests[0].name, request_of(target)) &&
                    streq(r->requests[0].device_class, class_of(target)) && r->n_configs == 1 &&
                    r->configs[0].n_requests == 1 && streq(r->configs[0].requests[0], request_of(target)) &&
                    streq(r->configs[0].driver, CD_DRIVER) &&
                    opaque_decode(r->configs[0].parameters, true, a, &cfg, &e) == 0 &&
                    cfg.kind == (is_daemon(target) ? OPAQUE_DAEMON : OPAQUE_CHANNEL) &&
                    streq(cfg.domain_id, uid) &&
                    (is_daemon(target) || streq(str_or(cfg.allocation_mode, "Single"), mode));
        arena_free(a);
        return same;
}

/* uid makes a patch fail rather than change another object that has the name since. */
static void patch_head(struct jw *w, const struct kube_meta *m) {
        jw_obj(w, NULL);
        jw_obj(w, "metadata");
        jw_str(w, "uid", m->uid);
}

static void finalizers(struct jw *w, const char *const *list, size_t n, bool add) {
        jw_arr(w, "finalizers");
        for (size_t i = 0; i < n; i++)
                if (!streq(list[i], CD_FINALIZER))
                        jw_str(w, NULL, list[i]);
        if (add)
                jw_str(w, NULL, CD_FINALIZER);
        jw_end_arr(w);
}

void objects_adopt(const struct compute_domain *cd, const char *mode, struct buf *out) {
        struct jw w = JW(out);
        patch_head(&w, &cd->o.meta);
        jw_str(&w, "resourceVersion",
               cd->o.meta.rv); /* a list is replaced as a whole: somebody's new finalizer must not get lost */
        finalizers(&w, cd->finalizers, cd->n_finalizers, true);
        jw_map(&w, "annotations", (const struct jd_pair[]){ { CD_ANNOTATION_MODE, mode } }, 1);
        jw_end_obj(&w);
        jw_end_obj(&w);
}

void objects_release(const struct kube_meta *m, const char *const *list, size_t n, struct buf *out) {
        struct jw w = JW(out);
        patch_head(&w, m);
        jw_str(&w, "resourceVersion", m->rv);
        finalizers(&w, list, n, false);
        jw_end_obj(&w);
        jw_end_obj(&w);
}

void objects_release_specless(const struct kube_meta *m, const char *const *list, size_t n, struct buf *out) {
        struct jw w = JW(out);
        patch_head(&w, m);
        jw_str(&w, "resourceVersion", m->rv);
        finalizers(&w, list, n, false);
        jw_end_obj(&w);
        jw_obj(&w, "spec");
        jw_obj(&w, "channel");
        jw_obj(&w, "resourceClaimTemplate");
        jw_str(&w, "name", m->name);
        jw_end_obj(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
}

void objects_rct_repair(const struct rct *r, const char *uid, const char *target, struct buf *out) {
        struct jw w = JW(out);
        patch_head(&w, &r->o.meta);
        jw_str(&w, "resourceVersion", r->o.meta.rv);
        rct_labels(&w, uid, target);
        finalizers(&w, r->finalizers, r->n_finalizers, true);
        jw_end_obj(&w);
        jw_end_obj(&w);
}

static void clique_labels(struct jw *w, const char *uid, const char *clique_id) {
        jw_map(w, "labels", (const struct jd_pair[]){ { CD_LABEL, uid }, { CD_LABEL_CLIQUE, clique_id } }, 2);
}

void objects_clique(const struct formation_clique *c, const char *ns, const char *uid, struct buf *out) {
        struct jw w = JW(out);
        if (c->old) {
                jw_obj(&w, NULL);
        } else {
                head(&w, CD_API_VERSION, CD_CLIQUE_KIND);
        }
        jw_obj(&w, "metadata");
        if (c->old) {
                jw_str(&w, "resourceVersion", c->old->o.meta.rv);
                /* Collected by Kubernetes when the Go driver's pods go, it would take the indices along. */
                if (c->old->n_owners)
                        jw_null(&w, "ownerReferences");
        } else {
                struct buf name = BUF_INIT(512);
                clique_object_name(uid, c->clique_id, &name);
                jw_str(&w, "name", buf_str(&name));
                jw_str(&w, "namespace", ns);
                clique_labels(&w, uid, c->clique_id);
                buf_done(&name);
        }
        jw_obj(&w, "annotations");
        if (c->infix)
                jw_str(&w, CD_ANNOTATION_INFIX, c->infix);
        jw_str(&w, CD_ANNOTATION_NUM_NODES, c->num_nodes);
        if (c->freed || c->old)
                jw_str(&w, CD_ANNOTATION_FREED, c->freed);
        jw_end_obj(&w);
        jw_end_obj(&w);
        jw_arr(&w, "daemons");
        for (size_t i = 0; i < c->n_daemons; i++) {
                const struct seat *d = &c->daemons[i];
                jw_obj(&w, NULL);
                jw_str(&w, "nodeName", d->node);
                jw_str(&w, "ipAddress", d->ip);
                jw_str(&w, "cliqueID", d->clique_id);
                jw_int(&w, "index", d->index);
                jw_str(&w, "status", d->status);
                if (*d->boot_id)
                        jw_str(&w, "bootID", d->boot_id);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        jw_end_obj(&w);
}

void objects_clique_labels(const char *uid, const char *clique_id, struct buf *out) {
        struct jw w = JW(out);
        jw_obj(&w, NULL);
        jw_obj(&w, "metadata");
        clique_labels(&w, uid, clique_id);
        jw_end_obj(&w);
        jw_end_obj(&w);
}

static void status_nodes(struct jw *w, const struct verdict *v) {
        if (!v->n_nodes) {
                jw_null(w, "nodes"); /* users test for the key's absence */
                return;
        }
        jw_arr(w, "nodes");
        for (size_t i = 0; i < v->n_nodes; i++) {
                const struct seat *n = &v->nodes[i];
                jw_obj(w, NULL);
                jw_str(w, "name", n->node);
                jw_str(w, "ipAddress", n->ip);
                jw_str(w, "cliqueID", n->clique_id);
                jw_int(w, "index", n->index);
                jw_str(w, "status", n->status);
                jw_end_obj(w);
        }
        jw_end_arr(w);
}

void objects_status(const struct compute_domain *cd, const struct verdict *v, struct buf *out) {
        struct jw w = JW(out);
        patch_head(&w, &cd->o.meta);
        jw_end_obj(&w);
        jw_obj(&w, "status");
        jw_str(&w, "status", v->status);
        if (v->has_nodes) {
                jw_int(&w, "nodesReady", v->nodes_ready);
                jw_int(&w, "nodesWanted", v->nodes_wanted);
                jw_int(&w, "cliques", v->cliques);
                status_nodes(&w, v);
        }
        jw_arr(&w, "conditions");
        for (size_t i = 0; i < v->n_conditions; i++) {
                const struct cd_condition *c = &v->conditions[i];
                jw_obj(&w, NULL);
                jw_str(&w, "type", c->type);
                jw_str(&w, "status", c->status);
                jw_int(&w, "observedGeneration", c->observed_generation);
                jw_time(&w, "lastTransitionTime", c->last_transition);
                jw_str(&w, "reason", c->reason);
                jw_str(&w, "message", c->message);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
}

void objects_node(const struct kube_meta *m, const struct objects_node_patch *p, struct buf *out) {
        struct jw w = JW(out);
        patch_head(&w, m);
        jw_obj(&w, "labels");
        if (p->set_domain)
                jw_str(&w, CD_LABEL, p->domain_uid);
        if (p->set_gpu_clique)
                jw_str(&w, GPU_CLIQUE_LABEL, p->gpu_clique);
        jw_end_obj(&w);
        if (p->set_gpu_clique) {
                jw_obj(&w, "annotations");
                jw_str(&w, CD_ANNOTATION_GPU_CLIQUE, p->gpu_clique_ours);
                jw_end_obj(&w);
        }
        jw_end_obj(&w);
        jw_end_obj(&w);
}

void objects_note_adopted(const struct compute_domain *cd, const char *adopted, struct buf *out) {
        struct jw w = JW(out);
        patch_head(&w, &cd->o.meta);
        jw_obj(&w, "annotations");
        jw_str(&w, CD_ANNOTATION_ADOPTED, adopted);
        jw_end_obj(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
}

static void delete_options(const struct kube_meta *m, const char *rv, bool at_once, struct buf *out) {
        struct jw w = JW(out);
        head(&w, "v1", "DeleteOptions");
        if (at_once)
                jw_int(&w, "gracePeriodSeconds", 0);
        jw_obj(&w, "preconditions");
        jw_str(&w, "uid", m->uid);
        if (rv)
                jw_str(&w, "resourceVersion", rv);
        jw_end_obj(&w);
        jw_end_obj(&w);
}

void objects_delete(const struct kube_meta *m, struct buf *out) {
        delete_options(m, NULL, false, out);
}

void objects_delete_version(const struct kube_meta *m, bool at_once, struct buf *out) {
        delete_options(m, m->rv, at_once, out);
}
