/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpu_record.h"

#include <string.h>

#include "api/names.h"
#include "base/json.h"
#include "node/checkpoint_layouts.h"

/* ---- writing ---- */

static void gpu_record_write_device(struct jw *w, const char *kind, const char *info,
                                    const struct node_device *d) {
        jw_obj(w, kind);
        jw_raw(w, info, str_from(str_or(d->info, "{}")));
        device_record_write(w, d);
        jw_end_obj(w);
}

static void write_pair(struct jw *w, const struct node_device *d) {
        jw_obj(w, NULL);
        if (streq(d->type, GPU_TYPE_MIG)) {
                jw_null(w, "gpu");
                gpu_record_write_device(w, "mig", "concrete", d);
        } else if (streq(d->type, GPU_TYPE_VFIO)) {
                jw_null(w, "gpu");
                jw_null(w, "mig");
                gpu_record_write_device(w, "vfio", "info", d);
        } else {
                gpu_record_write_device(w, "gpu", "info", d);
                jw_null(w, "mig");
        }
        jw_end_obj(w);
}

/* The start of each configState without an MPS daemon in the released dialect. */
static const char no_daemon[] = "{\"mpsControlDaemonID\":\"\"";

static void gpu_record_write_config(struct jw *w, const char *config, int dialect) {
        config = str_or(config, "{}");
        if (dialect == GPU_RECORD_MAIN || str_starts(config, "{\"mpsControlDaemonID\":")) {
                jw_raw(w, "configState", str_from(config));
                return;
        }
        struct buf b = BUF_INIT(CHECKPOINT_MAX_BYTES);
        buf_addf(&b, "%s%s%s", no_daemon, streq(config, "{}") ? "" : ",", config + 1);
        jw_raw(w, "configState", (struct str){ buf_str(&b), b.n });
        w->out->failed = w->out->failed || b.failed;
        buf_done(&b);
}

static bool first_of_group(const struct node_device *devices, size_t i) {
        for (size_t j = 0; j < i; j++) {
                if (devices[j].group == devices[i].group)
                        return false;
        }
        return true;
}

static void gpu_record_encode(struct jw *w, const struct node_device *devices, size_t n, int dialect) {
        jw_arr(w, NULL);
        for (size_t i = 0; i < n; i++) {
                if (!first_of_group(devices, i))
                        continue;
                jw_obj(w, NULL);
                jw_arr(w, "devices");
                for (size_t j = i; j < n; j++) {
                        if (devices[j].group == devices[i].group)
                                write_pair(w, &devices[j]);
                }
                jw_end_arr(w);
                gpu_record_write_config(w, devices[i].group_info, dialect);
                jw_end_obj(w);
        }
        jw_end_arr(w);
}

/* ---- reading ---- */

struct stored_kind {
        struct device_record *device;
        struct str info;
};
static const struct jd_field f_kind[] = {
        JD_DEVICE_RECORD(struct stored_kind, "device", device),
        JD_RAW(struct stored_kind, "info", info),
        JD_RAW(struct stored_kind, "concrete", info),
        JD_END,
};
struct stored_pair {
        struct stored_kind *gpu, *mig, *vfio;
};
static const struct jd_field f_pair[] = {
        JD_OPTOBJ(struct stored_pair, "gpu", gpu, struct stored_kind, f_kind),
        JD_OPTOBJ(struct stored_pair, "mig", mig, struct stored_kind, f_kind),
        JD_OPTOBJ(struct stored_pair, "vfio", vfio, struct stored_kind, f_kind),
        JD_END,
};
struct stored_group {
        struct stored_pair *pairs;
        size_t n_pairs;
        struct str config;
};
static const struct jd_field f_group[] = {
        JD_LIST(struct stored_group, "devices", pairs, struct stored_pair, f_pair),
        JD_RAW(struct stored_group, "configState", config),
        JD_END,
};

/* Reads either dialect, and returns the main branch's form. */
static const char *take_config(struct str config, struct arena *a) {
        const char *text = config.n && *config.p == '{' ? arena_strndup(a, config.p, config.n) : "{}";
        if (!str_starts(text, no_daemon))
                return text;
        text += strlen(no_daemon);
        return arena_printf(a, "{%s", *text == ',' ? text + 1 : text);
}

static bool take_kind(const struct stored_kind *k, const char *type, struct arena *a, struct node_device *d) {
        if (!k || !k->device)
                return false;
        *d = device_record_take(k->device, a);
        d->type = type;
        d->info = k->info.n ? arena_strndup(a, k->info.p, k->info.n) : "{}";
        return true;
}

static int gpu_record_decode(yyjson_val *entry, struct arena *a, struct node_device **ret, size_t *ret_n,
                             struct err *e) {
        struct device_groups read;
        size_t room = 1, n = 0;
        if (device_record_groups(entry, f_group, sizeof(struct stored_group), a, &read, e) < 0)
                return -1;
        const struct stored_group *groups = read.list;
        for (size_t g = 0; g < read.n_list; g++)
                room += groups[g].n_pairs;
        struct node_device *devices = arena_alloc(a, room * sizeof *devices);
        for (size_t g = 0; g < read.n_list; g++) {
                const char *config = take_config(groups[g].config, a);
                for (size_t i = 0; i < groups[g].n_pairs; i++) {
                        const struct stored_pair *pair = &groups[g].pairs[i];
                        struct node_device *d = &devices[n];
                        if (!take_kind(pair->gpu, GPU_TYPE_FULL, a, d) &&
                            !take_kind(pair->mig, GPU_TYPE_MIG, a, d) &&
                            !take_kind(pair->vfio, GPU_TYPE_VFIO, a, d))
                                continue;
                        d->group = (unsigned)g;
                        d->group_info = config;
                        n++;
                }
        }
        *ret = devices;
        *ret_n = n;
        return 0;
}

static int gpu_record_dialect_of(yyjson_val *entry) {
        yyjson_val *groups = yyjson_obj_get(entry, "preparedDevices"), *group;
        size_t i, max;
        yyjson_arr_foreach (groups, i, max, group) {
                yyjson_val *config = yyjson_obj_get(group, "configState");
                yyjson_val *id = yyjson_obj_get(config, "mpsControlDaemonID");
                if (yyjson_is_obj(config) && !id)
                        return GPU_RECORD_MAIN;
                if (yyjson_is_str(id) && !yyjson_get_len(id))
                        return GPU_RECORD_RELEASED;
        }
        return 0; /* with a daemon both dialects are the same */
}

const struct device_codec gpu_record_codec = {
        .driver = GPU_DRIVER,
        .no_tombstones = true,
        .encode = gpu_record_encode,
        .decode = gpu_record_decode,
        .dialect_of = gpu_record_dialect_of,
};

/* ---- info ---- */

const char *gpu_record_info(const struct gpu_device *d, struct arena *a) {
        struct buf b = BUF_INIT(4096);
        struct jw w = { .out = &b, .go_escape = true };
        jw_obj(&w, NULL);
        if (d->kind == GPU_MIG) {
                jw_int(&w, "parentMinor", d->minor);
                jw_int(&w, "giId", d->gpu_instance);
                jw_int(&w, "ciId", d->compute_instance);
                jw_str(&w, "migUUID", str_or(d->uuid, ""));
                jw_str(&w, "parentUUID", str_or(d->parent_uuid, ""));
        } else {
                jw_str(&w, "uuid", str_or(d->uuid, ""));
        }
        jw_end_obj(&w);
        const char *text = arena_strndup(a, buf_str(&b), b.n);
        buf_done(&b);
        return text;
}

const char *gpu_record_uuid(const struct node_device *d, struct arena *a) {
        struct err ignored;
        yyjson_doc *doc = d->info ? json_parse(str_from(d->info), YYJSON_READ_NOFLAG, &ignored) : NULL;
        yyjson_val *root = yyjson_doc_get_root(doc);
        const char *uuid =
                yyjson_get_str(yyjson_obj_get(root, streq(d->type, GPU_TYPE_MIG) ? "migUUID" : "uuid"));
        const char *copy = uuid ? arena_strdup(a, uuid) : NULL;
        yyjson_doc_free(doc);
        return copy;
}

static bool has_number(yyjson_val *object, const char *key, unsigned number) {
        yyjson_val *v = yyjson_obj_get(object, key);
        return yyjson_is_uint(v) && yyjson_get_uint(v) == number;
}

bool gpu_record_is_instance(const struct node_device *d, const struct gpu_device *mig) {
        struct err ignored;
        yyjson_doc *doc = d->info ? json_parse(str_from(d->info), YYJSON_READ_NOFLAG, &ignored) : NULL;
        yyjson_val *root = yyjson_doc_get_root(doc);
        bool same = streq(d->type, GPU_TYPE_MIG) && yyjson_get_len(yyjson_obj_get(root, "migUUID")) &&
                    has_number(root, "parentMinor", mig->minor) &&
                    has_number(root, "giId", mig->gpu_instance) &&
                    has_number(root, "ciId", mig->compute_instance);
        yyjson_doc_free(doc);
        return same;
}

/* ---- devices of the Go driver ---- */

const char *const foreign_names[] = { [FOREIGN_MPS] = "mps", [FOREIGN_VFIO] = "vfio", [FOREIGN_MIG] = "mig" };

/* A text or a number of an object; "": there is no such member. */
static const char *foreign_member(const char *object, const char *key, struct arena *a) {
        struct err ignored;
        yyjson_doc *doc = json_parse(str_from(str_or(object, "")), YYJSON_READ_NUMBER_AS_RAW, &ignored);
        yyjson_val *v = yyjson_obj_get(yyjson_doc_get_root(doc), key);
        const char *text = yyjson_is_raw(v) ? yyjson_get_raw(v) : yyjson_get_str(v);
        const char *copy = arena_strdup(a, str_or(text, ""));
        yyjson_doc_free(doc);
        return copy;
}

const char *foreign_mps_daemon(const struct node_device *d, struct arena *a) {
        const char *id = foreign_member(d->group_info, "mpsControlDaemonID", a);
        return *id ? id : NULL;
}

static const char *mps_remedy(const char *id, struct arena *a) {
        return arena_printf(
                a,
                "its MPS control daemon remains when the pod ends, and the GPU's compute mode is reset "
                "to DEFAULT; then delete the daemon: kubectl delete deployment "
                "mps-control-daemon-%s, in the namespace of the Go driver",
                id);
}

static const char *vfio_remedy(const struct node_device *d, struct arena *a) {
        const char *address = foreign_member(d->info, "pciBusID", a);
        if (!*address)
                address = "<PCI address>";
        return arena_printf(
                a,
                "the GPU remains bound to vfio-pci when the pod ends; then, on the node: echo %s > "
                "/sys/bus/pci/drivers/vfio-pci/unbind; echo > "
                "/sys/bus/pci/devices/%s/driver_override; echo %s > /sys/bus/pci/drivers_probe",
                address, address, address);
}

static const char *mig_remedy(const struct node_device *d, struct arena *a) {
        const char *gpu = foreign_member(d->info, "parentUUID", a), *gi = foreign_member(d->info, "giId", a),
                   *ci = foreign_member(d->info, "ciId", a);
        return arena_printf(
                a,
                "if the Go driver created the MIG device for the claim (feature gate DynamicMIG), it "
                "remains when the pod ends, and is offered like any other; to remove it then, on the "
                "node: nvidia-smi mig -dci -i %s -gi %s -ci %s; nvidia-smi mig -dgi -i %s -gi %s",
                gpu, gi, ci, gpu, gi);
}

static bool find_device(const struct checkpoint_claim *claim, size_t i, struct arena *a,
                        struct foreign_device *ret) {
        const struct node_device *d = &claim->devices[i];
        const char *daemon = foreign_mps_daemon(d, a);
        *ret = (struct foreign_device){ .uid = claim->uid, .device = d->name };
        if (daemon) {
                if (i && claim->devices[i - 1].group == d->group)
                        return false;
                ret->kind = FOREIGN_MPS;
                ret->remedy = mps_remedy(daemon, a);
        } else if (streq(d->type, GPU_TYPE_VFIO)) {
                ret->kind = FOREIGN_VFIO;
                ret->remedy = vfio_remedy(d, a);
        } else if (streq(d->type, GPU_TYPE_MIG) && !(claim->name && *claim->name)) {
                ret->kind = FOREIGN_MIG;
                ret->remedy = mig_remedy(d, a);
        } else {
                return false;
        }
        return true;
}

size_t foreign_find(const struct checkpoint *table, struct arena *a, struct foreign_device **ret) {
        struct foreign_device *list = NULL, one;
        size_t n = 0, cap = 0;
        for (const struct checkpoint_claim *c = table->claims; c; c = c->hh.next) {
                for (size_t i = 0; c->state == CHECKPOINT_COMPLETED && i < c->n_devices; i++) {
                        if (!find_device(c, i, a, &one))
                                continue;
                        ARENA_GROW(a, list, n, cap);
                        list[n++] = one;
                }
        }
        *ret = list;
        return n;
}
