/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opaque.h"

#include <string.h>

#include "api/names.h"
#include "api/states.h"
#include "base/json.h"
#include "base/stderr.h"

static const char *const kind_names[] = {
        [OPAQUE_CHANNEL] = "ComputeDomainChannelConfig", [OPAQUE_DAEMON] = "ComputeDomainDaemonConfig"
};

struct wire {
        const char *api_version, *kind, *domain_id, *allocation_mode, *isolation;
};
/* Decoded first and leniently, so that an object of another kind gets an error about its kind, and not about
 * unknown fields. */
static const struct jd_field f_head[] = { JD_STR(struct wire, "apiVersion", api_version),
                                          JD_STR(struct wire, "kind", kind), JD_END };
/* docs/reference/api.md is generated from the comments (scripts/reference): "required", "optional" or
 * "default X", and the meaning of the field that follows. */
static const struct jd_field f_channel[] = {
        /* required: resource.nvidia.com/v1beta1 */
        JD_STR(struct wire, "apiVersion", api_version),
        /* required: ComputeDomainChannelConfig */
        JD_STR(struct wire, "kind", kind),
        /* required: the UID of the ComputeDomain */
        JD_STR(struct wire, "domainID", domain_id),
        /* default Single: Single for one channel, All for all channels of the node. All is refused with
         * imex.mode=hostManaged and with imex.isolation=channel */
        JD_STR(struct wire, "allocationMode", allocation_mode),
        /* optional: Channel for the assigned channel of the ComputeDomain, which is required with
         * imex.isolation=channel; absent for the shared channel */
        JD_STR(struct wire, "isolation", isolation),
        JD_END,
};
static const struct jd_field f_daemon[] = {
        /* required: resource.nvidia.com/v1beta1 */
        JD_STR(struct wire, "apiVersion", api_version),
        /* required: ComputeDomainDaemonConfig */
        JD_STR(struct wire, "kind", kind),
        /* required: 818fb0f3-f5f0-4334-937e-f52c07a0c01e for a daemon of this driver; the UID of the
         * ComputeDomain for a daemon of the Go driver */
        JD_STR(struct wire, "domainID", domain_id),
        JD_END,
};

static const struct jd_field *const fields_of[] = {
        [OPAQUE_CHANNEL] = f_channel, [OPAQUE_DAEMON] = f_daemon
};

const char *opaque_kind_name(enum opaque_kind kind) {
        BUG_ON(kind != OPAQUE_CHANNEL && kind != OPAQUE_DAEMON);
        return kind_names[kind];
}

static int opaque_find_kind(const char *name, enum opaque_kind *ret) {
        for (size_t i = 0; i < ARRAY_LEN(kind_names); i++)
                if (streq(name, kind_names[i])) {
                        *ret = (enum opaque_kind)i;
                        return 0;
                }
        return -1;
}

enum allocation_mode opaque_allocation_mode(const char *name) {
        static const char *const names[ALLOCATION_MODES] = { "", "other", "Single", "All" };

        return (enum allocation_mode)states_decode(names, ALLOCATION_MODES, ALLOCATION_OTHER, name);
}

static int decode_strict(struct str json, struct arena *a, struct opaque_config *ret, struct err *e) {
        struct wire w = { 0 };
        enum opaque_kind kind;
        if (jd_decode_text(f_head, json, "", a, &w, e) < 0)
                return -1;
        if (!streq(w.api_version, CD_API_VERSION))
                return err_set(e, ERR_INVALID, 0, "apiVersion \"%.100s\" is not " CD_API_VERSION,
                               str_or(w.api_version, ""));
        if (opaque_find_kind(w.kind, &kind) < 0)
                return err_set(e, ERR_INVALID, 0, "kind \"%.100s\" is not one of the driver %s",
                               str_or(w.kind, ""), CD_DRIVER);
        if (jd_decode_strict(fields_of[kind], json, a, &w, e) < 0)
                return -1;
        if (!w.domain_id || !*w.domain_id)
                return err_set(e, ERR_INVALID, 0, "domainID is empty: want the UID of a ComputeDomain");
        if (!str_is_uuid(w.domain_id))
                return err_set(e, ERR_INVALID, 0, "domainID \"%.100s\" is not the UID of a ComputeDomain",
                               w.domain_id);
        const char *mode = w.allocation_mode ? w.allocation_mode : "";
        if (opaque_allocation_mode(mode) == ALLOCATION_OTHER)
                return err_set(e, ERR_INVALID, 0,
                               "allocationMode \"%.100s\" is neither Single nor All (with host-managed IMEX "
                               "only Single)",
                               mode);
        if (w.isolation && !streq(w.isolation, "Channel"))
                return err_set(e, ERR_INVALID, 0, "isolation \"%.100s\" is not Channel", w.isolation);
        *ret = (struct opaque_config){
                .kind = kind, .domain_id = w.domain_id, .allocation_mode = mode, .own_channel = w.isolation
        };
        return 0;
}

static const char *opaque_text_at(yyjson_val *obj, const char *key, struct arena *a) {
        yyjson_val *v = yyjson_obj_get(obj, key);
        return yyjson_is_str(v) ? arena_strndup(a, yyjson_get_str(v), yyjson_get_len(v)) : "";
}

/* Reads the members one by one instead of with a field table: a member that a newer version wrote in another
 * form must not prevent the release of a claim. */
static int decode_lenient(struct str json, struct arena *a, struct opaque_config *ret, struct err *e) {
        enum opaque_kind kind;
        yyjson_doc *doc = json_parse(json, YYJSON_READ_NOFLAG, e);
        yyjson_val *root = yyjson_doc_get_root(doc);
        int r = -1;
        if (!doc)
                return -1;
        if (!yyjson_is_obj(root))
                err_set(e, ERR_INVALID, 0, "not a JSON object");
        else if (!str_starts(opaque_text_at(root, "apiVersion", a), CD_GROUP "/") ||
                 opaque_find_kind(opaque_text_at(root, "kind", a), &kind) < 0)
                err_set(e, ERR_INVALID, 0,
                        "apiVersion \"%.100s\", kind \"%.100s\" is not one of the driver %s",
                        opaque_text_at(root, "apiVersion", a), opaque_text_at(root, "kind", a), CD_DRIVER);
        else {
                *ret = (struct opaque_config){
                        .kind = kind,
                        .domain_id = opaque_text_at(root, "domainID", a),
                        .allocation_mode =
                                kind == OPAQUE_CHANNEL ? opaque_text_at(root, "allocationMode", a) : "",
                        .own_channel = kind == OPAQUE_CHANNEL &&
                                       streq(opaque_text_at(root, "isolation", a), "Channel"),
                };
                r = 0;
        }
        yyjson_doc_free(doc);
        return r;
}

int opaque_decode(struct str json, bool strict, struct arena *a, struct opaque_config *ret, struct err *e) {
        return strict ? decode_strict(json, a, ret, e) : decode_lenient(json, a, ret, e);
}
