/* SPDX-License-Identifier: Apache-2.0 */
/* device_record: what the checkpoint records of a device whatever driver it is of, in the words of the Go
 * drivers: whose device it is by request, pool, name and CDI ids, and how devices stand in a claim's entry. A
 * driver's codec (struct device_codec) says the rest. Pure. */
#pragma once

#include "node/checkpoint.h"

/* One device as the file has it; the Go drivers changed the names of these members once, and the new ones
 * win. NULL: the file did not say. */
struct device_record {
        const char **requests, **cdi_ids, *pool, *name;
        size_t n_requests, n_cdi_ids;
};
extern const struct jd_field device_record_fields[];
/* A pointer member of a struct `t` that a table decodes into. */
#define JD_DEVICE_RECORD(t, n, m) JD_OPTOBJ(t, n, m, struct device_record, device_record_fields)

/* The device, with these members and no others; in the arena, which the record is in, too. */
struct node_device device_record_take(const struct device_record *r, struct arena *a);
/* The member "device" of the object that is being written. */
void device_record_write(struct jw *w, const struct node_device *d);

/* The groups of devices in a claim's entry, as any version has written it (device_codec.decode): *ret_n
 * structs of `size` bytes, each filled by the table of a group. */
int device_record_groups(yyjson_val *entry, const struct jd_field *group, size_t size, struct arena *a,
                         void **ret, size_t *ret_n, struct err *e);
