/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/foreign.h"

#include "base/json.h"
#include "gpu_plugin/gpu_record.h"

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
