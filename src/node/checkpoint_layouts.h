/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_layouts: reads and writes the checkpoint in the file formats of the Go driver. Pure; fuzzed.
 *
 * Each write contains both formats of the Go driver, v1 and v2, and both checksums. v1 is for users who go
 * back to the Go driver. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/str.h"
#include "node/checkpoint.h"

/* ---- records of devices ---- */

/* The part of a device's record that all drivers share: its requests, pool, name and CDI IDs, under the names
 * of the Go drivers, and the position of devices in a claim's entry. A driver's codec (struct device_codec)
 * adds the rest. */

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

/* ---- Go's JSON ---- */

/* JSON as Go's encoding/json writes it, and checksums as Kubernetes' checkpoint manager computes them. */

/* Defines what Go writes for a member that does not exist or is empty. */
enum gojson_empty {
        GOJSON_LEFT_OUT,     /* nothing for null, "" or []; {} and false are written (a pointer) */
        GOJSON_MAP_LEFT_OUT, /* nothing, not even for {} */
        GOJSON_TEXT,         /* "" */
        GOJSON_OBJECT,       /* {} with the members that are always written */
        GOJSON_ANY,          /* null */
};

/* The members of an object, or of the objects in a list, in the order in which Go writes them. The last row
 * of a table has the name NULL. */
struct gojson_member {
        const char *name;
        enum gojson_empty empty;
        const struct gojson_member *inside; /* NULL: all members */
};

/* Writes a JSON value in the form that the checksums cover: no white space, and Go's escapes. An object is
 * written with only the members of the table `known`, in the table's order; NULL: all members, in their own
 * order. Returns false if the value is nested too deep. */
bool gojson_canonical(yyjson_val *v, const struct gojson_member *known, struct buf *out);

/* Returns the checksum of the JSON text that the parts form together: FNV-1a over Go's print form of its
 * bytes. */
uint32_t gojson_checksum(const struct str *parts, size_t n);

/* Reads a file into an empty table that has a codec: v2 if the file has it, otherwise v1, otherwise v1 in the
 * form that 25.3.0-rc2 wrote. ERR_INVALID: the file is corrupt; *e has the reason. */
int checkpoint_decode(struct str text, struct checkpoint *ret, struct err *e);
/* Writes the table as one line without a final newline. Fails only if the text exceeds the limit of the
 * buffer. */
void checkpoint_encode(const struct checkpoint *c, struct buf *out);

/* Writes a ResourceClaimStatus in the form that the checksums cover, with only the members that
 * resource.k8s.io/v1 has had since Kubernetes 1.34. The Go driver computes the checksums from its own types,
 * so it would reject a checkpoint with a member of a newer API server as corrupt. A status that is already
 * recorded does not change. Returns false if the status is nested too deep or exceeds the limit of the
 * buffer. */
bool checkpoint_status(yyjson_val *status, struct buf *out);
