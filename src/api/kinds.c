/* SPDX-License-Identifier: Apache-2.0 */
#include "api/kinds.h"

#include <string.h>

#include "api/names.h"
#include "api/states.h"

#define LABEL "metadata>labels>"
#define ANNOTATION "metadata>annotations>"

const struct jd_field condition_fields[] = { JD_STR(struct condition, "type", type),
                                             JD_STR(struct condition, "status", status),
                                             JD_STR(struct condition, "reason", reason),
                                             JD_STR(struct condition, "message", message),
                                             JD_TIME(struct condition, "lastTransitionTime", since),
                                             JD_END };

static const char *const statuses[STATUSES] = { "", "other", "Unknown", "False", "True" };

enum condition_status condition_status_decode(const char *name) {
        return (enum condition_status)states_decode(statuses, STATUSES, STATUS_OTHER, name);
}

const char *condition_status_name(enum condition_status s) {
        return statuses[s];
}

const struct condition *condition_find(const struct condition *list, size_t n, const char *type) {
        for (size_t i = 0; i < n; i++)
                if (streq(list[i].type, type))
                        return &list[i];
        return NULL;
}

const struct condition *condition_true(const struct condition *list, size_t n, const char *type) {
        const struct condition *c = condition_find(list, n, type);
        return c && condition_status_decode(c->status) == STATUS_TRUE ? c : NULL;
}

const struct condition *condition_first_true(const struct condition *list, size_t n, const char *const *types,
                                             size_t n_types) {
        const struct condition *c = NULL;
        for (size_t i = 0; i < n_types && !c; i++)
                c = condition_true(list, n, types[i]);
        return c;
}

bool has_string(const char *const *list, size_t n, const char *s) {
        for (size_t i = 0; i < n; i++)
                if (streq(list[i], s))
                        return true;
        return false;
}

/* not_compared marks members whose changes concern no rule. */
static const struct jd_field f_taint[] = { JD_STR(struct taint, "key", key), JD_END };
static const struct jd_field f_writer[] = {
        JD_STR(struct field_writer, "manager", manager),
        JD_STR(struct field_writer, "time", time),
        JD_RAW(struct field_writer, "fieldsV1>f:spec>f:taints", taints),
        JD_RAW(struct field_writer, "fieldsV1>f:spec>f:unschedulable", unschedulable),
        JD_END,
};
const struct jd_field node_fields[] = {
        JD_OBJ(struct node, "metadata", o.meta, kube_f_meta),
        JD_STR(struct node, LABEL CD_LABEL, domain_uid),
        JD_STR(struct node, LABEL GPU_CLIQUE_LABEL, gpu_clique),
        JD_STR(struct node, LABEL CD_LABEL_DAEMON, imex_daemon),
        JD_STR(struct node, LABEL CD_LABEL_SHARED, shared),
        JD_STR(struct node, LABEL NFD_LABEL_NVIDIA, gpu[0], .not_compared = true),
        JD_STR(struct node, LABEL NFD_LABEL_NVIDIA_3D, gpu[1], .not_compared = true),
        JD_STR(struct node, LABEL NFD_LABEL_NVIDIA_VGA, gpu[2], .not_compared = true),
        JD_STR(struct node, LABEL GPU_PRESENT_LABEL, gpu[3], .not_compared = true),
        JD_STR(struct node, LABEL NFD_LABEL_CPU_VENDOR, gpu[4], .not_compared = true),
        JD_STR(struct node, ANNOTATION CD_ANNOTATION_GPU_CLIQUE, gpu_clique_ours),
        JD_STR(struct node, ANNOTATION CD_ANNOTATION_CLIQUE, clique_id),
        JD_BOOL(struct node, "spec>unschedulable", unschedulable),
        JD_LIST(struct node, "spec>taints", taints, struct taint, f_taint),
        JD_STR(struct node, "status>nodeInfo>bootID", boot_id),
        JD_LIST(struct node, "status>conditions", conditions, struct condition, condition_fields),
        JD_LIST(struct node, "metadata>managedFields", writers, struct field_writer, f_writer,
                .not_compared = true),
        JD_END,
};

const struct jd_field node_kept_fields[] = {
        JD_INLINE(struct node, o, node_fields),
        JD_INT(struct node, "specWriters", spec_writers, .not_compared = true),
        JD_BOOL(struct node, "partial", partial, .not_compared = true), JD_END
};

static bool kinds_is_ready(const struct condition *list, size_t n) {
        return condition_true(list, n, "Ready");
}

bool node_ready(const struct node *n) {
        return kinds_is_ready(n->conditions, n->n_conditions);
}

bool node_has_gpu(const struct node *n) {
        for (size_t i = 0; i < ARRAY_LEN(n->gpu); i++)
                if (streq(n->gpu[i], i == 4 ? "NVIDIA" : "true"))
                        return true;
        return false;
}

/* Keeps only the condition Ready. */
static size_t keep_ready(struct condition *list, size_t n) {
        size_t kept = 0;
        for (size_t i = 0; i < n; i++)
                if (streq(list[i].type, "Ready"))
                        list[kept++] = list[i];
        return kept;
}

/* The API server sets the time of a writer again whenever it changes one of its fields. A writer whose only
 * field is removed disappears. */
static int64_t hash_writers(const struct field_writer *list, size_t n) {
        uint64_t h = 0;
        for (size_t i = 0; i < n; i++) {
                const struct field_writer *x = &list[i];
                const char *manager = str_or(x->manager, ""), *time = str_or(x->time, "");
                if (!x->taints.p && !x->unschedulable.p)
                        continue;
                h = 31 * h + str_fnv64(manager, strlen(manager));
                h = 31 * h + str_fnv64(time, strlen(time));
                h = 31 * h + (x->taints.p ? 1 : 0) + (x->unschedulable.p ? 2 : 0);
        }
        return (int64_t)h;
}

const void *node_trim(void *node, struct arena *a) {
        struct node *n = node;
        bool gpu = node_has_gpu(n), out = node_out_of_service(n);
        n->spec_writers = hash_writers(n->writers, n->n_writers);
        n->n_writers = 0;
        n->n_conditions = keep_ready(n->conditions, n->n_conditions);
        for (size_t i = 0; i < n->n_conditions; i++)
                n->conditions[i] = (struct condition){ .type = "Ready", .status = n->conditions[i].status };
        memset(n->gpu, 0, sizeof n->gpu);
        n->gpu[0] = gpu ? "true" : NULL;
        n->n_taints = out;
        if (out)
                n->taints[0].key = NODE_TAINT_OUT_OF_SERVICE;
        return n;
}

const void *node_inherit(const void *node, const struct kube_object *old, struct arena *a) {
        const struct node *was = (const struct node *)old;
        struct node *n = arena_alloc(a, sizeof *n);
        *n = *(const struct node *)node;
        n->partial = true;
        if (!was)
                return n;
        n->unschedulable = was->unschedulable;
        n->boot_id = was->boot_id;
        n->taints = was->taints;
        n->n_taints = was->n_taints;
        n->conditions = was->conditions;
        n->n_conditions = was->n_conditions;
        return n;
}

bool node_out_of_service(const struct node *n) {
        for (size_t i = 0; i < n->n_taints; i++)
                if (streq(n->taints[i].key, NODE_TAINT_OUT_OF_SERVICE))
                        return true;
        return false;
}

const char *node_boot_id(const struct node *n) {
        return n->boot_id && str_is_uuid(n->boot_id) ? n->boot_id : "";
}

static const struct jd_field f_pod_ip[] = { JD_STR(struct pod_ip, "ip", ip), JD_END };
static const struct jd_field f_why[] = { JD_STR(struct pod_container_why, "reason", reason),
                                         JD_STR(struct pod_container_why, "message", message), JD_END };
static const struct jd_field f_ended[] = { JD_STR(struct pod_container_why, "reason", reason),
                                           JD_STR(struct pod_container_why, "message", message),
                                           JD_INT(struct pod_container_why, "exitCode", exit_code), JD_END };
static const struct jd_field f_last[] = { JD_INT(struct pod_container_why, "exitCode", exit_code), JD_END };
static const struct jd_field f_container[] = {
        JD_OPTOBJ(struct pod_container, "state>waiting", waiting, struct pod_container_why, f_why),
        JD_OPTOBJ(struct pod_container, "state>terminated", terminated, struct pod_container_why, f_ended),
        JD_OPTOBJ(struct pod_container, "lastState>terminated", last, struct pod_container_why, f_last),
        JD_TIME(struct pod_container, "state>running>startedAt", started),
        JD_END,
};
const struct jd_field pod_fields[] = {
        JD_OBJ(struct pod, "metadata", o.meta, kube_f_meta),
        JD_STR(struct pod, LABEL CD_LABEL, domain_uid),
        JD_STR(struct pod, LABEL CD_LABEL_CLIQUE, clique_id),
        JD_STR(struct pod, ANNOTATION CD_ANNOTATION_TEMPLATE, template_hash),
        JD_STR(struct pod, ANNOTATION IMEX_ANNOTATION_STATE, state),
        JD_STR(struct pod, ANNOTATION IMEX_ANNOTATION_REASON, reason),
        JD_STR(struct pod, ANNOTATION IMEX_ANNOTATION_PEERS, peers),
        JD_STR(struct pod, ANNOTATION IMEX_ANNOTATION_READY, ready),
        JD_STR(struct pod, ANNOTATION IMEX_ANNOTATION_AWAITED, awaited),
        JD_STR(struct pod, ANNOTATION POD_ANNOTATION_MIRROR, mirror),
        JD_STR(struct pod, "spec>nodeName", node),
        JD_STR(struct pod, "status>phase", phase),
        JD_LIST(struct pod, "status>podIPs", ips, struct pod_ip, f_pod_ip),
        JD_LIST(struct pod, "status>conditions", conditions, struct condition, condition_fields),
        JD_LIST(struct pod, "status>containerStatuses", containers, struct pod_container, f_container),
        JD_END,
};
const struct jd_field daemon_pod_fields[] = {
        JD_INLINE(struct daemon_pod, pod, pod_fields),
        JD_STR(struct daemon_pod, ANNOTATION IMEX_ANNOTATION_REPORT, report),
        JD_END,
};

const struct daemon_pod *daemon_pod_choose(const struct daemon_pod *a, const struct daemon_pod *b) {
        if (a && pod_ended(&a->pod))
                a = NULL;
        if (b && pod_ended(&b->pod))
                b = NULL;
        bool better = b && (!a || (b->report && !a->report) ||
                            (!b->report == !a->report && b->pod.o.meta.created > a->pod.o.meta.created));
        return better ? b : a;
}

const struct jd_field plugin_pod_fields[] = {
        JD_OBJ(struct plugin_pod, "metadata", o.meta, kube_f_meta),
        JD_STR(struct plugin_pod, ANNOTATION IMEX_ANNOTATION_HOST_STATE, host_state),
        JD_STR(struct plugin_pod, ANNOTATION IMEX_ANNOTATION_HOST_REASON, host_reason),
        JD_STR(struct plugin_pod, ANNOTATION IMEX_ANNOTATION_HOST_CHANNELS, host_channels),
        JD_STR(struct plugin_pod, ANNOTATION IMEX_ANNOTATION_WITHHELD, withheld),
        JD_STR(struct plugin_pod, ANNOTATION IMEX_ANNOTATION_UNPREPARED, unprepared),
        JD_STR(struct plugin_pod, ANNOTATION IMEX_ANNOTATION_REFUSED, refused),
        JD_STR(struct plugin_pod, "spec>nodeName", node),
        JD_STR(struct plugin_pod, "status>phase", phase),
        JD_LIST(struct plugin_pod, "status>conditions", conditions, struct condition, condition_fields),
        JD_END,
};

static bool phase_ended(const char *phase) {
        return streq(phase, "Succeeded") || streq(phase, "Failed");
}

bool plugin_pod_reports(const struct plugin_pod *p) {
        bool ended = p->o.meta.deleted || phase_ended(p->phase);
        /* The container of a plugin may crash in a loop. Its Pod then has the phase Running and annotations
         * from an earlier time, so only a Pod that is Ready counts. */
        return p->host_state && !ended && kinds_is_ready(p->conditions, p->n_conditions);
}

bool plugin_pod_ended(const struct plugin_pod *p) {
        return phase_ended(p->phase);
}

int64_t plugin_pod_ready_since(const struct plugin_pod *p) {
        const struct condition *c = condition_true(p->conditions, p->n_conditions, "Ready");
        return c && !p->o.meta.deleted ? c->since : 0;
}

int64_t plugin_pod_initialized_at(const struct plugin_pod *p) {
        const struct condition *c = condition_true(p->conditions, p->n_conditions, "Initialized");
        return c ? c->since : 0;
}

const struct plugin_pod *plugin_pod_choose(const struct plugin_pod *a, const struct plugin_pod *b) {
        if (a && !plugin_pod_reports(a))
                a = NULL;
        if (b && !plugin_pod_reports(b))
                b = NULL;
        return !a || (b && b->o.meta.created >= a->o.meta.created) ? b : a;
}

bool pod_ended(const struct pod *p) {
        return phase_ended(p->phase);
}

bool pod_imex_ready(const struct pod *p) {
        return streq(p->ready, "true");
}

bool pod_container_starts(const struct pod_container_why *why) {
        return streq(why->reason, "ContainerCreating") || streq(why->reason, "PodInitializing");
}

const struct pod_container_why *pod_container_down(const struct pod_container *c) {
        const struct pod_container_why *ended = c->terminated ? c->terminated : c->last,
                                       *why = c->terminated ? c->terminated : c->waiting;
        bool restarts = why && (c->terminated || streq(why->reason, "CrashLoopBackOff"));
        if (!why || pod_container_starts(why) || (restarts && ended && !ended->exit_code))
                return NULL;
        return why;
}

const void *pod_trim(void *pod, struct arena *a) {
        struct pod *p = pod;
        p->n_conditions = keep_ready(p->conditions, p->n_conditions);
        /* The reason and message of a condition that is True are not used. */
        for (size_t i = 0; i < p->n_conditions; i++)
                if (condition_status_decode(p->conditions[i].status) == STATUS_TRUE)
                        p->conditions[i].reason = p->conditions[i].message = NULL;
        p->n_ips = p->n_ips ? 1 : 0;
        return p;
}

const struct jd_field daemonset_fields[] = {
        JD_OBJ(struct daemonset, "metadata", o.meta, kube_f_meta),
        JD_STR(struct daemonset, LABEL CD_LABEL, domain_uid),
        JD_STR(struct daemonset, ANNOTATION CD_ANNOTATION_TEMPLATE, template_hash),
        JD_STRS(struct daemonset, "metadata>finalizers", finalizers),
        JD_END,
};

/* v1 and v1beta2 have the class in "exactly", v1beta1 has it in the request itself. An object has only one of
 * them. */
static const struct jd_field f_selector[] = { JD_STR(struct rct_selector, "cel>expression", expression),
                                              JD_END };
static const struct jd_field f_request[] = {
        JD_STR(struct rct_request, "name", name),
        JD_STR(struct rct_request, "deviceClassName", device_class),
        JD_STR(struct rct_request, "exactly>deviceClassName", device_class),
        JD_LIST(struct rct_request, "selectors", selectors, struct rct_selector, f_selector),
        JD_LIST(struct rct_request, "exactly>selectors", selectors, struct rct_selector, f_selector),
        JD_END,
};
static const struct jd_field f_config[] = {
        JD_STRS(struct rct_config, "requests", requests),
        JD_STR(struct rct_config, "opaque>driver", driver),
        JD_RAW(struct rct_config, "opaque>parameters", parameters),
        JD_END,
};
const struct jd_field rct_fields[] = {
        JD_OBJ(struct rct, "metadata", o.meta, kube_f_meta),
        JD_STR(struct rct, LABEL CD_LABEL, domain_uid),
        JD_STR(struct rct, LABEL CD_LABEL_TARGET, target),
        JD_STR(struct rct, ANNOTATION CD_ANNOTATION_TEMPLATE, template_hash),
        JD_STRS(struct rct, "metadata>finalizers", finalizers),
        JD_LIST(struct rct, "spec>spec>devices>requests", requests, struct rct_request, f_request),
        JD_LIST(struct rct, "spec>spec>devices>config", configs, struct rct_config, f_config),
        JD_END,
};

#define CLIQUE "attributes>cliqueID>string"
#define OUR_CLIQUE "attributes>" CD_DRIVER "/cliqueID>string"
#define RACK "attributes>" CD_ATTRIBUTE_RACK ">string"
static const struct jd_field f_device[] = {
        JD_STR(struct slice_device, "name", name),
        JD_STR(struct slice_device, CLIQUE, clique_id),
        JD_STR(struct slice_device, OUR_CLIQUE, clique_id),
        JD_STR(struct slice_device, RACK, rack),
        JD_BOOL(struct slice_device, "allowMultipleAllocations", multiple),
        JD_STR(struct slice_device, "basic>" RACK, rack),
        JD_STR(struct slice_device, "basic>" CLIQUE, clique_id), /* v1beta1 only */
        JD_STR(struct slice_device, "basic>" OUR_CLIQUE, clique_id),
        JD_BOOL(struct slice_device, "basic>allowMultipleAllocations", multiple),
        JD_END,
};
const struct jd_field slice_fields[] = {
        JD_OBJ(struct slice, "metadata", o.meta, kube_f_meta),
        JD_STR(struct slice, ANNOTATION CD_ANNOTATION_CLIQUE, clique_id),
        JD_STR(struct slice, "spec>driver", driver),
        JD_STR(struct slice, "spec>nodeName", node),
        JD_LIST(struct slice, "spec>devices", devices, struct slice_device, f_device),
        JD_END,
};

const struct jd_field slice_kept_fields[] = { JD_STR(struct slice, "name", o.meta.name),
                                              JD_STR(struct slice, "resourceVersion", o.meta.rv),
                                              JD_TIME(struct slice, "creationTimestamp", o.meta.created),
                                              JD_STR(struct slice, "nodeName", node),
                                              JD_STR(struct slice, "clique", clique_id),
                                              JD_INT(struct slice, "channels", n_channels),
                                              JD_LIST(struct slice, "devices", devices, struct slice_device,
                                                      f_device),
                                              JD_END };

/* Keeps only what the rules need of the devices: the clique ID, the number of channels, and that there is a
 * device. */
const void *slice_trim(void *slice, struct arena *a) {
        struct slice *s = slice;
        for (size_t i = 0; i < s->n_devices; i++)
                s->n_channels += str_starts(str_or(s->devices[i].name, ""), CD_DEVICE_CHANNEL_PREFIX);
        if (!s->n_devices)
                return s;
        for (size_t i = 0; i < s->n_devices; i++)
                if (s->devices[i].clique_id)
                        s->devices[0] = s->devices[i];
        s->devices[0].name = NULL;
        s->n_devices = 1;
        return s;
}

const char *slice_rack(const struct slice *s) {
        return s->n_devices ? s->devices[0].rack : NULL;
}

bool slice_clique(const struct slice *s, const char **ret) {
        *ret = str_or(s->clique_id, "");
        for (size_t i = 0; i < s->n_devices; i++)
                if (s->devices[i].clique_id)
                        *ret = s->devices[i].clique_id;
        return s->n_devices > 0 || s->clique_id;
}

const struct slice *slice_choose(const struct slice *a, const struct slice *b, bool attributes_count,
                                 const char **ret_clique) {
        const struct slice *const both[] = { a, b };
        const struct slice *best = NULL;
        for (size_t i = 0; i < ARRAY_LEN(both); i++) {
                const struct slice *s = both[i];
                const char *clique;
                if (s && slice_clique(s, &clique) && (*clique || s->clique_id || attributes_count) &&
                    (!best || s->o.meta.created >= best->o.meta.created)) {
                        best = s;
                        *ret_clique = clique;
                }
        }
        return best;
}
