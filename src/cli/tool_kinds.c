/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tool_kinds.h"

#include <string.h>

#include "api/names.h"

static const char *const resource_versions[] = { "v1", "v1beta2", "v1beta1", NULL };
const struct kube_resource tool_kinds_deployments = { "apps", "v1", "deployments", "Deployment", true, NULL };
const struct kube_resource tool_kinds_device_classes = { "resource.k8s.io", NULL,  "deviceclasses",
                                                         "DeviceClass",     false, resource_versions };
const struct kube_resource tool_kinds_quotas = { "", "v1", "resourcequotas", "ResourceQuota", true, NULL };
const struct kube_resource tool_kinds_policies = { "networking.k8s.io", "v1", "networkpolicies",
                                                   "NetworkPolicy",     true, NULL };

static const struct jd_field f_owner[] = { JD_STR(struct object_owner, "kind", kind),
                                           JD_STR(struct object_owner, "name", name),
                                           JD_STR(struct object_owner, "uid", uid), JD_END };
static const struct jd_field f_env[] = { JD_STR(struct jd_pair, "name", key),
                                         JD_STR(struct jd_pair, "value", value), JD_END };
static const struct jd_field f_container_claim[] = { JD_STR(struct container_claim, "name", name), JD_END };
static const struct jd_field f_container[] = {
        JD_STR(struct container, "name", name),
        JD_STR(struct container, "image", image),
        JD_STRS(struct container, "command", command),
        JD_LIST(struct container, "resources>claims", claims, struct container_claim, f_container_claim),
        JD_MAP(struct container, "resources>limits", limits),
        JD_LIST(struct container, "env", env, struct jd_pair, f_env),
        JD_STR(struct container, "restartPolicy", restart_policy),
        JD_END,
};
static const struct jd_field f_why[] = { JD_STR(struct pod_container_why, "reason", reason),
                                         JD_STR(struct pod_container_why, "message", message), JD_END };
static const struct jd_field f_status[] = {
        JD_STR(struct container_status, "name", name),
        JD_INT(struct container_status, "restartCount", restarts),
        JD_OPTOBJ(struct container_status, "state>waiting", state.waiting, struct pod_container_why, f_why),
        JD_OPTOBJ(struct container_status, "state>terminated", state.terminated, struct pod_container_why,
                  f_why),
        JD_TIME(struct container_status, "state>running>startedAt", state.started),
        JD_OPTOBJ(struct container_status, "lastState>terminated", last, struct pod_container_why, f_why),
        JD_END,
};
static const struct jd_field f_pod_claim[] = {
        JD_STR(struct pod_claim, "name", name, .required = true),
        JD_STR(struct pod_claim, "resourceClaimName", claim),
        JD_STR(struct pod_claim, "resourceClaimTemplateName", template),
        JD_END,
};
static const struct jd_field f_requirement[] = { JD_STR(struct node_requirement, "key", key),
                                                 JD_STR(struct node_requirement, "operator", op),
                                                 JD_STRS(struct node_requirement, "values", values), JD_END };
static const struct jd_field f_term[] = {
        JD_STR(struct pod_affinity_term, "topologyKey", topology_key),
        JD_RAW(struct pod_affinity_term, "labelSelector", selector),
        JD_MAP(struct pod_affinity_term, "labelSelector>matchLabels", labels),
        JD_LIST(struct pod_affinity_term, "labelSelector>matchExpressions", expressions,
                struct node_requirement, f_requirement),
        JD_END,
};
static const struct jd_field f_toleration[] = { JD_STR(struct toleration, "key", key),
                                                JD_STR(struct toleration, "operator", op),
                                                JD_STR(struct toleration, "value", value),
                                                JD_STR(struct toleration, "effect", effect), JD_END };

const struct jd_field pod_object_fields[] = {
        JD_OBJ(struct pod_object, "metadata", o.meta, kube_f_meta),
        JD_LIST(struct pod_object, "metadata>ownerReferences", owners, struct object_owner, f_owner),
        JD_MAP(struct pod_object, "metadata>labels", labels),
        JD_STRS(struct pod_object, "metadata>finalizers", finalizers),
        JD_INT(struct pod_object, "metadata>deletionGracePeriodSeconds", grace),
        JD_STR(struct pod_object, "metadata>annotations>" IMEX_ANNOTATION_WITHHELD, withheld),
        JD_STR(struct pod_object, "metadata>annotations>" GROVE_ANNOTATION, grove_group),
        JD_STR(struct pod_object, "spec>nodeName", node),
        JD_OBJ(struct pod_object, "spec", selector, node_selector_spec_fields),
        JD_STR(struct pod_object, "spec>restartPolicy", restart_policy),
        JD_LIST(struct pod_object, "spec>containers", containers, struct container, f_container),
        JD_LIST(struct pod_object, "spec>initContainers", init_containers, struct container, f_container),
        JD_LIST(struct pod_object, "spec>resourceClaims", claims, struct pod_claim, f_pod_claim),
        JD_LIST(struct pod_object, "spec>affinity>podAffinity>requiredDuringSchedulingIgnoredDuringExecution",
                affinity, struct pod_affinity_term, f_term),
        JD_LIST(struct pod_object, "spec>tolerations", tolerations, struct toleration, f_toleration),
        JD_STR(struct pod_object, "status>phase", phase),
        JD_STR(struct pod_object, "status>reason", reason),
        JD_STR(struct pod_object, "status>message", message),
        JD_LIST(struct pod_object, "status>conditions", conditions, struct condition, condition_fields),
        JD_LIST(struct pod_object, "status>resourceClaimStatuses", claim_statuses, struct pod_claim,
                f_pod_claim),
        JD_LIST(struct pod_object, "status>initContainerStatuses", init_statuses, struct container_status,
                f_status),
        JD_LIST(struct pod_object, "status>containerStatuses", statuses, struct container_status, f_status),
        JD_END,
};

const char *container_program(const struct container *c) {
        const char *command = c->n_command ? str_or(c->command[0], "") : "", *slash = strrchr(command, '/');
        return slash ? slash + 1 : command;
}

const struct container *container_find(const struct container *list, size_t n, const char *program) {
        for (size_t i = 0; i < n; i++)
                if (streq(container_program(&list[i]), program))
                        return &list[i];
        return NULL;
}

const char *pod_object_claim(const struct pod_object *p, const struct pod_claim *c) {
        for (size_t i = 0; i < p->n_claim_statuses; i++)
                if (streq(p->claim_statuses[i].name, c->name) && p->claim_statuses[i].claim)
                        return p->claim_statuses[i].claim;
        return c->claim;
}

const char *pod_object_label(const struct pod_object *p, const char *key) {
        return jd_pair_get(p->labels, p->n_labels, key);
}

bool pod_object_ready(const struct pod_object *p) {
        return condition_true(p->conditions, p->n_conditions, "Ready");
}

bool pod_object_has_ended(const struct pod_object *p) {
        return streq(p->phase, "Succeeded") || streq(p->phase, "Failed");
}

bool pod_affinity_term_selects(const struct pod_affinity_term *t, const struct pod_object *p) {
        struct node_term all = { .expressions = t->expressions, .n_expressions = t->n_expressions };
        const struct node_selector s = { .labels = t->labels,
                                         .n_labels = t->n_labels,
                                         .terms = &all,
                                         .n_terms = t->n_expressions ? 1 : 0 };
        return t->selector.n && node_selector_matches(&s, NULL, p->labels, p->n_labels, true);
}

bool pod_object_is_sidecar(const struct pod_object *p, const char *container) {
        for (size_t i = 0; i < p->n_init_containers; i++)
                if (streq(p->init_containers[i].name, container))
                        return streq(p->init_containers[i].restart_policy, "Always");
        return false;
}

const struct container_status *pod_object_status(const struct pod_object *p, const char *container) {
        for (size_t i = 0; i < p->n_init_statuses; i++)
                if (streq(p->init_statuses[i].name, container))
                        return &p->init_statuses[i];
        for (size_t i = 0; i < p->n_statuses; i++)
                if (streq(p->statuses[i].name, container))
                        return &p->statuses[i];
        return NULL;
}

static bool container_names(const struct container *c, const char *name, const char *claim) {
        for (size_t i = 0; i < c->n_claims; i++)
                if (streq(c->name, name) && streq(c->claims[i].name, claim))
                        return true;
        return false;
}

bool pod_object_names_claim(const struct pod_object *p, const char *container, const char *claim) {
        for (size_t i = 0; i < p->n_containers; i++)
                if (container_names(&p->containers[i], container, claim))
                        return true;
        for (size_t i = 0; pod_object_is_sidecar(p, container) && i < p->n_init_containers; i++)
                if (container_names(&p->init_containers[i], container, claim))
                        return true;
        return false;
}

int64_t pod_object_deleted(const struct pod_object *p) {
        int64_t t = p->o.meta.deleted;
        return t && p->grace > 0 && p->grace < t ? t - p->grace : t;
}

const struct jd_field event_object_fields[] = {
        JD_OBJ(struct event_object, "metadata", o.meta, kube_f_meta),
        JD_STR(struct event_object, "involvedObject>kind", kind),
        JD_STR(struct event_object, "involvedObject>namespace", ns),
        JD_STR(struct event_object, "involvedObject>name", name),
        JD_STR(struct event_object, "involvedObject>uid", uid),
        JD_STR(struct event_object, "reason", reason),
        JD_STR(struct event_object, "message", message),
        JD_STR(struct event_object, "type", type),
        JD_INT(struct event_object, "count", count),
        JD_TIME(struct event_object, "firstTimestamp", first),
        JD_TIME(struct event_object, "lastTimestamp", last),
        JD_TIME(struct event_object, "eventTime", at),
        JD_TIME(struct event_object, "series>lastObservedTime", series_last),
        JD_END,
};

int64_t event_object_time(const struct event_object *e) {
        int64_t t = e->o.meta.created;
        const int64_t times[] = { e->first, e->at, e->last, e->series_last };
        for (size_t i = 0; i < ARRAY_LEN(times); i++)
                t = times[i] > t ? times[i] : t;
        return t;
}

static const struct jd_field f_taint[] = { JD_STR(struct node_taint, "key", key),
                                           JD_STR(struct node_taint, "value", value),
                                           JD_STR(struct node_taint, "effect", effect), JD_END };
const struct jd_field node_object_fields[] = {
        JD_MAP(struct node_object, "metadata>labels", labels),
        JD_LIST(struct node_object, "spec>taints", all_taints, struct node_taint, f_taint),
        JD_MAP(struct node_object, "status>allocatable", allocatable),
        JD_STR(struct node_object, "status>nodeInfo>containerRuntimeVersion", runtime),
        JD_STR(struct node_object, "status>nodeInfo>kubeletVersion", kubelet),
        JD_STR(struct node_object, "status>nodeInfo>kernelVersion", kernel),
        JD_END,
};

static const struct jd_field f_asked[] = {
        JD_STR(struct claim_asked, "exactly>deviceClassName", device_class),
        JD_STR(struct claim_asked, "deviceClassName", device_class_v1beta1),
        JD_END,
};
const struct jd_field claim_object_fields[] = {
        JD_LIST(struct claim_object, "spec>devices>requests", asks, struct claim_asked, f_asked),
        JD_STRS(struct claim_object, "metadata>finalizers", finalizers),
        JD_END,
};

const struct jd_field workload_object_fields[] = {
        JD_OBJ(struct workload_object, "metadata", o.meta, kube_f_meta),
        JD_MAP(struct workload_object, "metadata>labels", labels),
        JD_INT(struct workload_object, "status>desiredNumberScheduled", desired),
        JD_INT(struct workload_object, "status>currentNumberScheduled", current),
        JD_INT(struct workload_object, "status>numberReady", ready),
        JD_INT(struct workload_object, "spec>replicas", replicas),
        JD_INT(struct workload_object, "status>readyReplicas", ready_replicas),
        JD_LIST(struct workload_object, "spec>template>spec>containers", containers, struct container,
                f_container),
        JD_END,
};

bool container_is_of_driver(const struct container *c) {
        static const char *const programs[] = { "compute-domain-controller", "compute-domain-kubelet-plugin",
                                                "gpu-kubelet-plugin", CD_DAEMON_OBJECT };
        return has_string(programs, ARRAY_LEN(programs), container_program(c));
}

bool workload_object_runs(const struct workload_object *w, const char *program) {
        return container_find(w->containers, w->n_containers, program);
}

const char *workload_object_env(const struct workload_object *w, const char *program, const char *name) {
        const struct container *c = container_find(w->containers, w->n_containers, program);
        return c ? jd_pair_get(c->env, c->n_env, name) : NULL;
}

/* The name of the image without registry, tag and digest. */
static bool image_is(const char *image, const char *name) {
        size_t n = strcspn(image, "@");
        const char *end = image + n, *base = end;
        while (base > image && base[-1] != '/')
                base--;
        const char *tag = memchr(base, ':', (size_t)(end - base));
        end = tag ? tag : end;
        return strlen(name) == (size_t)(end - base) && strncmp(base, name, (size_t)(end - base)) == 0;
}

/* The containers of the Go driver have the names and programs of this driver's, except in charts that start
 * them with a shell. */
static bool are_go(const struct container *list, size_t n) {
        for (size_t i = 0; i < n; i++) {
                const struct container *c = &list[i];
                const char *image = str_or(c->image, ""), *program = container_program(c);
                if (!streq(c->name, "compute-domains") && !streq(c->name, "compute-domain"))
                        continue;
                if (image_is(image, "dra-driver-nvidia-gpu") || image_is(image, "k8s-dra-driver-gpu") ||
                    streq(program, "bash") || streq(program, "sh"))
                        return true;
        }
        return false;
}

bool pod_object_is_plugin(const struct pod_object *p, const char *program) {
        const struct container *c = container_find(p->containers, p->n_containers, program);
        return c && (streq(c->name, "compute-domains") || streq(c->name, "gpus")) &&
               !are_go(p->containers, p->n_containers);
}

bool workload_object_is_of_driver(const struct workload_object *w) {
        for (size_t i = 0; i < w->n_containers; i++)
                if (container_is_of_driver(&w->containers[i]))
                        return true;
        return workload_object_is_go(w);
}

bool workload_object_is_go(const struct workload_object *w) {
        return are_go(w->containers, w->n_containers);
}

bool workload_object_is_ours(const struct workload_object *w, const char *program) {
        return workload_object_runs(w, program) && !workload_object_is_go(w);
}

const struct jd_field class_object_fields[] = {
        JD_OBJ(struct class_object, "metadata", o.meta, kube_f_meta),
        JD_STR(struct class_object, "spec>extendedResourceName", extended_resource),
        JD_END,
};

const struct jd_field quota_object_fields[] = {
        JD_OBJ(struct quota_object, "metadata", o.meta, kube_f_meta),
        JD_MAP(struct quota_object, "status>hard", hard),
        JD_MAP(struct quota_object, "status>used", used),
        JD_STRS(struct quota_object, "spec>scopes", scopes),
        JD_RAW(struct quota_object, "spec>scopeSelector", scope),
        JD_END,
};

static const struct jd_field f_policy_port[] = { JD_STR(struct policy_port, "protocol", protocol),
                                                 JD_RAW(struct policy_port, "port", port),
                                                 JD_INT(struct policy_port, "endPort", end), JD_END };
static const struct jd_field f_policy_rule[] = {
        JD_LIST(struct policy_rule, "ports", ports, struct policy_port, f_policy_port),
        JD_END,
};
const struct jd_field policy_object_fields[] = {
        JD_OBJ(struct policy_object, "metadata", o.meta, kube_f_meta),
        JD_MAP(struct policy_object, "spec>podSelector>matchLabels", selector),
        JD_RAW(struct policy_object, "spec>podSelector>matchExpressions", expressions),
        JD_STRS(struct policy_object, "spec>policyTypes", types),
        JD_LIST(struct policy_object, "spec>ingress", ingress, struct policy_rule, f_policy_rule),
        JD_LIST(struct policy_object, "spec>egress", egress, struct policy_rule, f_policy_rule),
        JD_END,
};

bool policy_object_selects(const struct policy_object *p, const struct pod_object *pod) {
        for (size_t i = 0; i < p->n_selector; i++)
                if (!streq(pod_object_label(pod, p->selector[i].key), p->selector[i].value))
                        return false;
        return !p->expressions.n || str_eq(p->expressions, STR("[]"));
}
