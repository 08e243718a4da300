/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/inventory.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

enum { MINOR_MAX = 1 << 20, INSTANCE_MAX = 1 << 16 };

static const struct jd_field f_mig[] = {
        JD_STR(struct mig_facts, "call", failure.call),
        JD_INT(struct mig_facts, "error", failure.error),
        JD_STR(struct mig_facts, "uuid", uuid, .omit_empty = true),
        JD_INT(struct mig_facts, "gi", gpu_instance),
        JD_INT(struct mig_facts, "ci", compute_instance),
        JD_INT(struct mig_facts, "giProfile", gi_profile),
        JD_INT(struct mig_facts, "profileID", profile_id),
        JD_INT(struct mig_facts, "start", start),
        JD_INT(struct mig_facts, "size", size),
        JD_INT(struct mig_facts, "g", gpu_slices),
        JD_INT(struct mig_facts, "c", compute_slices),
        JD_STR(struct mig_facts, "name", name, .omit_empty = true),
        JD_INT(struct mig_facts, "sm", multiprocessors),
        JD_INT(struct mig_facts, "ce", copy_engines),
        JD_INT(struct mig_facts, "dec", decoders),
        JD_INT(struct mig_facts, "enc", encoders),
        JD_INT(struct mig_facts, "jpeg", jpeg_engines),
        JD_INT(struct mig_facts, "ofa", ofa_engines),
        JD_INT(struct mig_facts, "memoryMB", memory_mib),
        JD_END,
};
static const struct jd_field f_gpu[] = {
        JD_STR(struct gpu_facts, "call", failure.call),
        JD_INT(struct gpu_facts, "error", failure.error),
        JD_INT(struct gpu_facts, "index", index, .required = true),
        JD_INT(struct gpu_facts, "minor", minor),
        JD_STR(struct gpu_facts, "uuid", uuid, .omit_empty = true),
        JD_STR(struct gpu_facts, "name", name, .omit_empty = true),
        JD_INT(struct gpu_facts, "brand", brand),
        JD_INT(struct gpu_facts, "architecture", architecture),
        JD_STR(struct gpu_facts, "cc", compute_capability),
        JD_INT(struct gpu_facts, "memory", memory_bytes),
        JD_STR(struct gpu_facts, "pci", pci_bus_id, .omit_empty = true),
        JD_STR(struct gpu_facts, "addressingMode", addressing_mode),
        JD_INT(struct gpu_facts, "migMode", mig_mode),
        JD_BOOL(struct gpu_facts, "persistenceOff", persistence_off),
        JD_LIST(struct gpu_facts, "mig", mig, struct mig_facts, f_mig),
        JD_INT(struct gpu_facts, "migMore", n_mig_more),
        JD_END,
};
const struct jd_field inventory_fields[] = {
        JD_STR(struct inventory, "driverVersion", driver_version, .required = true),
        JD_INT(struct inventory, "cudaDriverVersion", cuda_version),
        JD_LIST(struct inventory, "gpus", gpus, struct gpu_facts, f_gpu, .required = true),
        JD_END,
};

static int check_text(const char *text, const char *what, struct err *e) {
        if (text && strlen(text) > INVENTORY_TEXT_MAX)
                return err_set(e, ERR_INVALID, 0, "%s has more than %d bytes", what, INVENTORY_TEXT_MAX);
        return 0;
}

/* UUIDs get into checkpoints, arguments and messages, so only the characters that NVML uses are accepted
 * ("MIG-GPU-<uuid>/1/0" is the form before driver 470). */
static int check_uuid(const char *uuid, const char *what, struct err *e) {
        size_t n = uuid ? strlen(uuid) : 0;
        bool ok = n > 0 && n <= INVENTORY_TEXT_MAX;
        for (size_t i = 0; ok && i < n; i++)
                ok = isalnum((unsigned char)uuid[i]) || uuid[i] == '-' || uuid[i] == '/';
        return ok ? 0 : err_set(e, ERR_INVALID, 0, "%s has an invalid UUID", what);
}

static int check_range(int64_t v, int64_t max, const char *what, const char *of, struct err *e) {
        if (v < 0 || v > max)
                return err_set(e, ERR_INVALID, 0, "%s of %s is out of range: %lld", what, of, (long long)v);
        return 0;
}

static int check_mig(const struct mig_facts *m, const char *of, struct err *e) {
        const struct {
                int64_t value, max;
                const char *what;
        } numbers[] = {
                { m->gpu_instance, INSTANCE_MAX, "the GPU instance" },
                { m->compute_instance, INSTANCE_MAX, "the compute instance" },
                { m->profile_id, INSTANCE_MAX, "the profile" },
                { m->start, INVENTORY_SLICES_MAX, "the start of the placement" },
                { m->size, INVENTORY_SLICES_MAX, "the size of the placement" },
                { m->gpu_slices, INVENTORY_SLICES_MAX, "the number of GPU slices" },
                { m->compute_slices, INVENTORY_SLICES_MAX, "the number of compute slices" },
                { m->multiprocessors, UINT32_MAX, "the number of multiprocessors" },
                { m->copy_engines, UINT32_MAX, "the number of copy engines" },
                { m->decoders, UINT32_MAX, "the number of decoders" },
                { m->encoders, UINT32_MAX, "the number of encoders" },
                { m->jpeg_engines, UINT32_MAX, "the number of JPEG engines" },
                { m->ofa_engines, UINT32_MAX, "the number of OFA engines" },
                { m->memory_mib, INT64_MAX >> 20, "the memory" },
        };
        if (m->failure.call)
                return check_text(m->failure.call, "a MIG device's failed call", e);
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
                if (check_range(numbers[i].value, numbers[i].max, numbers[i].what, of, e) < 0)
                        return -1;
        if (check_uuid(m->uuid, of, e) < 0 || check_text(m->name, "a MIG profile's name", e) < 0)
                return -1;
        return 0;
}

static int check_gpu(const struct gpu_facts *g, struct err *e) {
        const char *const texts[] = { g->failure.call,       g->uuid,       g->name,
                                      g->compute_capability, g->pci_bus_id, g->addressing_mode };
        char what[64];
        snprintf(what, sizeof what, "GPU %lld", (long long)g->index);
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                if (check_text(texts[i], what, e) < 0)
                        return -1;
        if (g->failure.call)
                return 0;
        if (check_range(g->index, INVENTORY_GPUS_MAX - 1, "the index", what, e) < 0 ||
            check_range(g->minor, MINOR_MAX, "the minor number", what, e) < 0 ||
            check_range(g->memory_bytes, INT64_MAX, "the memory", what, e) < 0 ||
            check_range(g->n_mig_more, INSTANCE_MAX, "the number of other MIG devices", what, e) < 0 ||
            check_uuid(g->uuid, what, e) < 0)
                return -1;
        return 0;
}

/* An impossible value fails only its own device, so that it does not hide the others. */
static void check_devices(struct gpu_facts *g, struct arena *a) {
        char what[96];
        struct err e;
        if (check_gpu(g, &e) < 0) {
                *g = (struct gpu_facts){ .index = g->index, .failure.odd = arena_strdup(a, e.msg) };
                return;
        }
        if (g->n_mig > INVENTORY_MIG_MAX) {
                g->n_mig_more += (int64_t)(g->n_mig - INVENTORY_MIG_MAX);
                g->n_mig = INVENTORY_MIG_MAX;
        }
        for (size_t i = 0; i < g->n_mig; i++) {
                snprintf(what, sizeof what, "MIG device %zu of GPU %lld", i, (long long)g->index);
                if (check_mig(&g->mig[i], what, &e) < 0)
                        g->mig[i] = (struct mig_facts){ .failure.odd = arena_strdup(a, e.msg) };
        }
}

bool inventory_failed(const struct inventory_failure *f) {
        return f->call || f->odd;
}

int inventory_decode(struct str json, struct arena *a, struct inventory *ret, struct err *e) {
        struct inventory v = { 0 };
        if (jd_decode_text(inventory_fields, json, "", a, &v, e) < 0 ||
            check_text(v.driver_version, "the driver's version", e) < 0)
                return err_wrap(e, "NVML: unreadable answer");
        if (v.n_gpus > INVENTORY_GPUS_MAX)
                return err_set(e, ERR_INVALID, 0, "NVML reports %zu GPUs, but the maximum is %d", v.n_gpus,
                               INVENTORY_GPUS_MAX);
        for (size_t i = 0; i < v.n_gpus; i++)
                check_devices(&v.gpus[i], a);
        *ret = v;
        return 0;
}

/* ---- profiles of MIG devices ---- */

/* The suffix of the name, by NVML_GPU_INSTANCE_PROFILE_*. The numbers between are profiles without a
 * suffix. */
static const char *suffix(int64_t gi_profile) {
        switch (gi_profile) {
        case 7: /* 1_SLICE_REV1 */
        case 8: /* 2_SLICE_REV1 */
                return "+me";
        case 10: /* 1_SLICE_GFX */
        case 11: /* 2_SLICE_GFX */
        case 12: /* 4_SLICE_GFX */
        case 17: /* 3_SLICE_GFX */
                return "+gfx";
        case 13: /* 1_SLICE_NO_ME */
        case 14: /* 2_SLICE_NO_ME */
                return "-me";
        case 15: /* 1_SLICE_ALL_ME */
        case 16: /* 2_SLICE_ALL_ME */
                return "+me.all";
        default:
                return "";
        }
}

enum { KNOWN_PROFILES = 18 };

/* The instance's share of the GPU's memory in eighths, rounded up, times the GPU's memory in GiB, rounded up.
 * The result is rounded to the nearest. Integers are exact; a double would be exact only up to 2^53 bytes. */
static int64_t gigabytes(const struct mig_profile *p) {
        const int64_t gib = INT64_C(1) << 30;
        __int128 mig = (__int128)p->memory_mib << 20, whole = p->gpu_memory_bytes;
        int64_t eighths = (int64_t)((8 * mig + whole - 1) / whole);
        int64_t total = (p->gpu_memory_bytes - 1) / gib + 1;
        return (eighths * total + 4) / 8;
}

bool mig_profile_name(const struct mig_profile *p, char *ret, size_t n) {
        if (p->gi_profile < 0 || p->gi_profile >= KNOWN_PROFILES || p->gpu_slices < 1 ||
            p->compute_slices < 1 || p->memory_mib < 1 || p->memory_mib > p->gpu_memory_bytes >> 20)
                return false;
        char c[24] = "";
        if (p->compute_slices != p->gpu_slices)
                snprintf(c, sizeof c, "%lldc.", (long long)p->compute_slices);
        snprintf(ret, n, "%s%lldg.%lldgb%s", c, (long long)p->gpu_slices, (long long)gigabytes(p),
                 suffix(p->gi_profile));
        return true;
}

bool mig_profile_graphics(int64_t gi_profile) {
        return suffix(gi_profile)[0] == '+' && suffix(gi_profile)[1] == 'g';
}
