/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpu_devices.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "nvidia/inventory.h"
#include "nvidia/pci_facts.h"

enum {
        VALUE_MAX = 64,  /* bytes of a text: the API rejects the whole slice for a longer one, */
        VALUES_MAX = 32, /* or for a device with more attributes and capacities */
        VERSION_SIZE = 40,
        QUANTITY_SIZE = 24,
};

/* ---- text and numbers ---- */

static const char *brand_name(int64_t brand) {
        static const char *const names[] = { "Unknown",   "Quadro",    "Tesla",     "NVS",
                                             "Grid",      "GeForce",   "Titan",     "NvidiaVApps",
                                             "NvidiaVPC", "NvidiaVCS", "NvidiaVWS", "NvidiaCloudGaming",
                                             "QuadroRTX", "NvidiaRTX", "Nvidia",    "GeForceRTX",
                                             "TitanRTX" };
        return brand >= 0 && brand < (int64_t)ARRAY_LEN(names) ? names[brand] : "Unknown";
}

static const char *architecture_name(int64_t architecture) {
        static const char *const names[] = {
                [2] = "Kepler", [3] = "Maxwell",      [4] = "Pascal", [5] = "Volta",      [6] = "Turing",
                [7] = "Ampere", [8] = "Ada Lovelace", [9] = "Hopper", [10] = "Blackwell", [13] = "Rubin"
        };
        bool known = architecture >= 0 && architecture < (int64_t)ARRAY_LEN(names) && names[architecture];
        return known ? names[architecture] : "Unknown";
}

bool gpu_version(const char *text, char *ret, size_t n) {
        uint64_t number[3] = { 0 };
        const char *p = text;
        for (size_t i = 0; i < ARRAY_LEN(number); i++) {
                if (!isdigit((unsigned char)*p))
                        return false;
                for (; isdigit((unsigned char)*p); p++) {
                        if (number[i] > UINT32_MAX)
                                return false;
                        number[i] = number[i] * 10 + (uint64_t)(*p - '0');
                }
                if (*p != '.')
                        break;
                p++;
        }
        snprintf(ret, n, "%llu.%llu.%llu", (unsigned long long)number[0], (unsigned long long)number[1],
                 (unsigned long long)number[2]);
        return true;
}

void gpu_quantity(int64_t v, char *ret, size_t n) {
        static const char *const suffix[] = { "", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei" };
        size_t i = 0;
        /* Below 1024 the API server uses decimal units, which matter for 1000 only. */
        if (v == 1000) {
                snprintf(ret, n, "1k");
                return;
        }
        for (; v && v % 1024 == 0 && i < ARRAY_LEN(suffix) - 1; i++)
                v /= 1024;
        snprintf(ret, n, "%lld%s", (long long)v, suffix[i]);
}

void gpu_profile_in_name(const char *profile, char *ret, size_t n) {
        size_t at = 0;
        for (; *profile && at + 1 < n; profile++) {
                int c = tolower((unsigned char)*profile);
                if (c != '.')
                        ret[at++] = (char)((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-');
        }
        ret[at] = '\0';
}

/* ---- the published attributes ---- */

/* An unknown attribute is left out. A selector that reads it then fails with an error. */
static void gpu_devices_add_text(struct offered_builder *d, const char *name, const char *text) {
        if (text && *text)
                offered_add_attribute(
                        d,
                        (struct offered_attribute){
                                .name = name,
                                .text = arena_strndup(d->a, text, str_utf8_cut(str_from(text), VALUE_MAX)) });
}

static void add_version(struct offered_builder *d, const char *name, const char *text) {
        char version[VERSION_SIZE];
        if (text && gpu_version(text, version, sizeof version))
                offered_add_attribute(d, (struct offered_attribute){
                                                 .name = name, .version = arena_strdup(d->a, version) });
}

static void add_capacity(struct offered_builder *d, const char *name, int64_t v) {
        char quantity[QUANTITY_SIZE];
        gpu_quantity(v, quantity, sizeof quantity);
        offered_add_capacity(d, (struct offered_capacity){ name, arena_strdup(d->a, quantity) });
}

/* The common attributes of a whole GPU and its parts. */
static void add_common(struct offered_builder *d, const struct inventory *in, const struct gpu_facts *g,
                       const char *address, const char *sys) {
        char cuda[VERSION_SIZE];
        struct pci_facts pci = { .numa_node = -1 };
        gpu_devices_add_text(d, "productName", g->name);
        gpu_devices_add_text(d, "brand", brand_name(g->brand));
        gpu_devices_add_text(d, "architecture", architecture_name(g->architecture));
        add_version(d, "cudaComputeCapability", g->compute_capability);
        add_version(d, "driverVersion", in->driver_version);
        if (in->cuda_version > 0) {
                snprintf(cuda, sizeof cuda, "%lld.%lld", (long long)(in->cuda_version / 1000),
                         (long long)(in->cuda_version % 1000 / 10));
                add_version(d, "cudaDriverVersion", cuda);
        }
        gpu_devices_add_text(d, "addressingMode", g->addressing_mode);
        if (!address)
                return;
        pci_facts_read(sys, address, &pci);
        gpu_devices_add_text(d, "resource.kubernetes.io/pciBusID", address);
        gpu_devices_add_text(d, "resource.kubernetes.io/pcieRoot", pci.root);
        if (pci.numa_node >= 0)
                offered_add_attribute(d,
                                      (struct offered_attribute){ .name = "resource.kubernetes.io/numaNode",
                                                                  .number = pci.numa_node });
}

/* ---- devices ---- */

struct builder {
        const struct inventory *in;
        const char *sys;
        struct gpu_devices *ret;
        /* The sort keys of the list. */
        struct sort_key {
                unsigned minor;
                enum gpu_kind kind;
                int64_t profile_id, start;
                size_t at;
        } * keys;
};

static void leave_out(struct builder *b, const char *what, const char *why) {
        struct arena *a = b->ret->arena;
        b->ret->left_out[b->ret->n_left_out++] =
                (struct gpu_left_out){ .what = arena_strdup(a, what), .why = arena_strdup(a, why) };
}

static void leave_out_failed(struct builder *b, const char *what, const struct inventory_failure *f) {
        char why[400];
        if (f->odd)
                snprintf(why, sizeof why, "NVML returned an impossible value: %s", f->odd);
        else
                snprintf(why, sizeof why, "%s: NVML error %lld", f->call, (long long)f->error);
        leave_out(b, what, why);
        b->ret->incomplete = true;
}

static struct gpu_device *gpu_devices_add_device(struct builder *b, struct gpu_device device,
                                                 int64_t profile_id, int64_t start) {
        const struct gpu_device *other = gpu_device_find(b->ret, device.name);
        if (other) {
                char why[3 * INVENTORY_TEXT_MAX];
                snprintf(why, sizeof why, "%s has the same name: %s", other->uuid, other->name);
                leave_out(b, device.uuid, why);
                return NULL;
        }
        b->keys[b->ret->n] = (struct sort_key){ device.minor, device.kind, profile_id, start, b->ret->n };
        b->ret->items[b->ret->n] = device;
        return &b->ret->items[b->ret->n++];
}

static void describe_full(struct builder *b, const struct gpu_facts *g, const char *address) {
        struct arena *a = b->ret->arena;
        struct gpu_device *device = gpu_devices_add_device(
                b,
                (struct gpu_device){ .kind = GPU_FULL,
                                     .name = arena_printf(a, "gpu-%u", (unsigned)g->minor),
                                     .uuid = arena_strdup(a, g->uuid),
                                     .minor = (unsigned)g->minor,
                                     .index = (unsigned)g->index,
                                     .address = address },
                0, 0);
        if (!device)
                return;
        struct offered_builder d = { .a = a };
        gpu_devices_add_text(&d, "type", GPU_TYPE_FULL);
        gpu_devices_add_text(&d, "uuid", g->uuid);
        add_common(&d, b->in, g, address, b->sys);
        if (g->memory_bytes > 0)
                add_capacity(&d, "memory", g->memory_bytes);
        device->offered = offered_end(&d, device->name);
}

/* Names the profile by the rule that users know, or by NVML's own name ("MIG 1g.10gb") if the rule has none.
 */
static bool name_profile(const struct gpu_facts *g, const struct mig_facts *m, char *ret, size_t n) {
        const struct mig_profile p = { .gi_profile = m->gi_profile,
                                       .gpu_slices = m->gpu_slices,
                                       .compute_slices = m->compute_slices,
                                       .memory_mib = m->memory_mib,
                                       .gpu_memory_bytes = g->memory_bytes };
        if (mig_profile_name(&p, ret, n))
                return true;
        if (!m->name || !*m->name)
                return false;
        snprintf(ret, n, "%s", str_starts(m->name, "MIG ") ? m->name + 4 : m->name);
        return true;
}

static void describe_mig(struct builder *b, const struct gpu_facts *g, const struct mig_facts *m,
                         const char *address, const char *what) {
        struct arena *a = b->ret->arena;
        char profile[INVENTORY_TEXT_MAX + 1], in_name[40];
        if (inventory_failed(&m->failure)) {
                leave_out_failed(b, what, &m->failure);
                return;
        }
        if (!name_profile(g, m, profile, sizeof profile)) {
                leave_out(b, what, "its profile has no known name");
                return;
        }
        gpu_profile_in_name(profile, in_name, sizeof in_name);
        const char *name = arena_printf(a, "gpu-%u-mig-%s-%lld-%lld", (unsigned)g->minor, in_name,
                                        (long long)m->profile_id, (long long)m->start);
        /* Several compute instances share a GPU instance and its placement. The Go driver has no names for
         * them. The first one keeps the name without a number, with or without others. */
        if (m->compute_slices < m->gpu_slices && m->compute_instance)
                name = arena_printf(a, "%s-%lld", name, (long long)m->compute_instance);
        if (!str_is_dns_label(name)) {
                leave_out(b, what, arena_printf(a, "'%s' is not a name that Kubernetes accepts", name));
                return;
        }
        struct gpu_device *device =
                gpu_devices_add_device(b,
                                       (struct gpu_device){
                                               .kind = GPU_MIG,
                                               .name = name,
                                               .uuid = arena_strdup(a, m->uuid),
                                               .minor = (unsigned)g->minor,
                                               .index = (unsigned)g->index,
                                               .address = address,
                                               .parent_uuid = arena_strdup(a, g->uuid),
                                               .gpu_instance = (unsigned)m->gpu_instance,
                                               .compute_instance = (unsigned)m->compute_instance,
                                               .graphics = mig_profile_graphics(m->gi_profile),
                                       },
                                       m->profile_id, m->start);
        if (!device)
                return;
        struct offered_builder d = { .a = a };
        gpu_devices_add_text(&d, "type", GPU_TYPE_MIG);
        gpu_devices_add_text(&d, "uuid", m->uuid);
        gpu_devices_add_text(&d, "parentUUID", g->uuid);
        gpu_devices_add_text(&d, "profile", profile);
        add_common(&d, b->in, g, address, b->sys);
        add_capacity(&d, "multiprocessors", m->multiprocessors);
        add_capacity(&d, "copyEngines", m->copy_engines);
        add_capacity(&d, "decoders", m->decoders);
        add_capacity(&d, "encoders", m->encoders);
        add_capacity(&d, "jpegEngines", m->jpeg_engines);
        add_capacity(&d, "ofaEngines", m->ofa_engines);
        add_capacity(&d, "memory", m->memory_mib << 20);
        for (int64_t i = m->start; i < m->start + m->size && d.n_attributes + d.n_capacities < VALUES_MAX;
             i++)
                add_capacity(&d, arena_printf(a, "memorySlice%lld", (long long)i), 1);
        device->offered = offered_end(&d, device->name);
}

/* No event announces that MIG mode is disabled, so the devices are incomplete until the next query. */
static void leave_out_unused_mig(struct builder *b, const struct gpu_facts *g) {
        char what[32];
        snprintf(what, sizeof what, "gpu-%u", (unsigned)g->minor);
        leave_out(
                b, what,
                "it is in MIG mode and has no MIG devices: create them with nvidia-smi mig -cgi, or disable "
                "MIG mode with nvidia-smi -mig 0");
        b->ret->left_out[b->ret->n_left_out - 1].unused_mig = true;
        b->ret->incomplete = true;
}

static void describe_gpu(struct builder *b, const struct gpu_facts *g) {
        char what[96], address[PCI_ADDRESS_SIZE];
        snprintf(what, sizeof what, "GPU %lld", (long long)g->index);
        /* Display adapters of DGX machines are not compute GPUs. */
        if (streq(g->name, "DGX Display") || streq(g->name, "NVIDIA DGX Display"))
                return;
        if (inventory_failed(&g->failure)) {
                leave_out_failed(b, what, &g->failure);
                return;
        }
        b->ret->n_persistence_off += g->persistence_off;
        const char *known = pci_address(g->pci_bus_id, address) ? arena_strdup(b->ret->arena, address) : NULL;
        if (g->pci_bus_id && !known) {
                char why[INVENTORY_TEXT_MAX + 80];
                snprintf(what, sizeof what, "the PCI address of gpu-%u", (unsigned)g->minor);
                snprintf(why, sizeof why, "'%s' is not an address with a domain of four digits",
                         g->pci_bus_id);
                leave_out(b, what, why);
        }
        if (g->mig_mode != 1) {
                describe_full(b, g, known);
                return;
        }
        if (!g->n_mig && !g->n_mig_more)
                leave_out_unused_mig(b, g);
        for (size_t i = 0; i < g->n_mig; i++) {
                snprintf(what, sizeof what, "MIG device %zu of gpu-%u", i, (unsigned)g->minor);
                describe_mig(b, g, &g->mig[i], known, what);
        }
        if (g->n_mig_more) {
                snprintf(what, sizeof what, "MIG device %zu of gpu-%u and those after it", g->n_mig,
                         (unsigned)g->minor);
                leave_out(b, what, "this driver expects no GPU with more");
        }
}

static int by_place(const void *a, const void *b) {
        const struct sort_key *x = a, *y = b;
#define THEN(member)                                                                                         \
        if (x->member != y->member)                                                                          \
        return x->member < y->member ? -1 : 1
        THEN(minor);
        THEN(kind);
        THEN(profile_id);
        THEN(start);
#undef THEN
        return x->at < y->at ? -1 : 1;
}

static void sort(struct builder *b) {
        struct gpu_device *sorted = arena_alloc(b->ret->arena, (b->ret->n + 1) * sizeof *sorted);
        qsort(b->keys, b->ret->n, sizeof *b->keys, by_place);
        for (size_t i = 0; i < b->ret->n; i++)
                sorted[i] = b->ret->items[b->keys[i].at];
        b->ret->items = sorted;
}

void gpu_devices_describe(const struct inventory *in, const char *sys, struct gpu_devices *ret) {
        struct arena *a = arena_new(4096);
        size_t most = 2 * in->n_gpus; /* per GPU: itself or its address, and excess MIG devices */
        for (size_t i = 0; i < in->n_gpus; i++)
                most += in->gpus[i].n_mig;
        *ret = (struct gpu_devices){ .arena = a,
                                     .driver_version = arena_strdup(a, in->driver_version),
                                     .items = arena_alloc(a, (most + 1) * sizeof *ret->items),
                                     /* a device, or its address */
                                     .left_out = arena_alloc(a, (2 * most + 1) * sizeof *ret->left_out) };
        struct builder b = {
                .in = in, .sys = sys, .ret = ret, .keys = arena_alloc(a, (most + 1) * sizeof *b.keys)
        };
        for (size_t i = 0; i < in->n_gpus; i++)
                describe_gpu(&b, &in->gpus[i]);
        sort(&b);
}

void gpu_devices_done(struct gpu_devices *d) {
        arena_free(d->arena);
        *d = (struct gpu_devices){ 0 };
}

const struct gpu_device *gpu_device_find(const struct gpu_devices *d, const char *name) {
        for (size_t i = 0; i < d->n; i++)
                if (streq(d->items[i].name, name))
                        return &d->items[i];
        return NULL;
}

/* Attributes describe a whole GPU completely. A MIG device also has its instances. */
static bool device_equal(const struct gpu_device *a, const struct gpu_device *b) {
        return a->kind == b->kind && a->minor == b->minor && a->index == b->index &&
               streq(a->name, b->name) && streq(a->uuid, b->uuid) && streq(a->address, b->address) &&
               a->gpu_instance == b->gpu_instance && a->compute_instance == b->compute_instance &&
               jd_equal(offered_device_fields, &a->offered, &b->offered);
}

bool gpu_devices_equal(const struct gpu_devices *a, const struct gpu_devices *b) {
        if (!streq(a->driver_version, b->driver_version) || a->n != b->n || a->n_left_out != b->n_left_out ||
            a->n_persistence_off != b->n_persistence_off)
                return false;
        for (size_t i = 0; i < a->n; i++)
                if (!device_equal(&a->items[i], &b->items[i]))
                        return false;
        for (size_t i = 0; i < a->n_left_out; i++)
                if (!streq(a->left_out[i].what, b->left_out[i].what) ||
                    !streq(a->left_out[i].why, b->left_out[i].why))
                        return false;
        return true;
}
