/* SPDX-License-Identifier: Apache-2.0 */
/* device_record: the part of a device's record in the checkpoint that all drivers share, with the names of
 * the Go drivers: its requests, pool, name and CDI IDs, and the place of devices in a claim's entry. A
 * driver's codec (struct device_codec) adds the rest. Pure. */
#pragma once

#include "node/checkpoint.h"

/* One device as in the file. The Go drivers once renamed these members; the new names take precedence. NULL:
 * the file has none. */
struct device_record {
        const char **requests, **cdi_ids, *pool, *name;
        size_t n_requests, n_cdi_ids;
};
extern const struct jd_field device_record_fields[];
/* A pointer member of a struct `t` that a table decodes into. */
#define JD_DEVICE_RECORD(t, n, m) JD_OPTOBJ(t, n, m, struct device_record, device_record_fields)

/* The device with only these members; in the arena, which also holds the record. */
struct node_device device_record_take(const struct device_record *r, struct arena *a);
/* Writes the member "device" of the current object. */
void device_record_write(struct jw *w, const struct node_device *d);

struct device_groups {
        void *list;
        size_t n_list;
};

/* Reads the groups of devices in a claim's entry of any version (device_codec.decode): structs of `size`
 * bytes, each filled by the table of a group. */
int device_record_groups(yyjson_val *entry, const struct jd_field *group, size_t size, struct arena *a,
                         struct device_groups *ret, struct err *e);
