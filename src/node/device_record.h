/* SPDX-License-Identifier: Apache-2.0 */
/* device_record: reads and writes the part of a device's record in the checkpoint that all drivers share: its
 * requests, pool, name and CDI IDs, under the names of the Go drivers, and the position of devices in a
 * claim's entry. A driver's codec (struct device_codec) adds the rest. Pure. */
#pragma once

#include "node/checkpoint.h"

/* One device as recorded in the file. The Go drivers once renamed these members; the new names take
 * precedence. NULL: the file has no such member. */
struct device_record {
        const char **requests, **cdi_ids, *pool, *name;
        size_t n_requests, n_cdi_ids;
};
extern const struct jd_field device_record_fields[];
/* A row for a member of struct `t` that is a pointer to a device_record. */
#define JD_DEVICE_RECORD(t, n, m) JD_OPTOBJ(t, n, m, struct device_record, device_record_fields)

/* Returns a device with only these members. It is in the arena, which must also hold the record. */
struct node_device device_record_take(const struct device_record *r, struct arena *a);
/* Writes the member "device" of the current object. */
void device_record_write(struct jw *w, const struct node_device *d);

struct device_groups {
        void *list;
        size_t n_list;
};

/* Reads the groups of devices in a claim's entry of any version (device_codec.decode). Each group becomes a
 * struct of `size` bytes, which the table `group` fills. */
int device_record_groups(yyjson_val *entry, const struct jd_field *group, size_t size, struct arena *a,
                         struct device_groups *ret, struct err *e);
