/* SPDX-License-Identifier: Apache-2.0 */
#include "node/checkpoint_layouts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

/* ---- records of devices ---- */

const struct jd_field device_record_fields[] = {
        JD_STRS(struct device_record, "request_names", requests),
        JD_STRS(struct device_record, "Requests", requests),
        JD_STR(struct device_record, "pool_name", pool),
        JD_STR(struct device_record, "PoolName", pool),
        JD_STR(struct device_record, "device_name", name),
        JD_STR(struct device_record, "DeviceName", name),
        JD_STRS(struct device_record, "cdi_device_ids", cdi_ids),
        JD_STRS(struct device_record, "CDIDeviceIDs", cdi_ids),
        JD_END,
};

struct node_device device_record_take(const struct device_record *r, struct arena *a) {
        return (struct node_device){
                .name = r->name,
                .pool = r->pool,
                .requests = arena_strdups(a, r->requests),
                .cdi_ids = arena_strdups(a, r->cdi_ids),
        };
}

static void write_strings(struct jw *w, const char *key, const char *const *list) {
        jw_arr(w, key);
        for (; list && *list; list++)
                jw_str(w, NULL, *list);
        jw_end_arr(w);
}

void device_record_write(struct jw *w, const struct node_device *d) {
        jw_obj(w, "device");
        write_strings(w, "Requests", d->requests);
        jw_str(w, "PoolName", str_or(d->pool, ""));
        jw_str(w, "DeviceName", str_or(d->name, ""));
        write_strings(w, "CDIDeviceIDs", d->cdi_ids);
        jw_end_obj(w);
}

int device_record_groups(yyjson_val *entry, const struct jd_field *group, size_t size, struct arena *a,
                         struct device_groups *ret, struct err *e) {
        const struct jd_field in_entry[] = {
                { .name = "preparedDevices",
                  .type = JD_T_LIST,
                  .off = offsetof(struct device_groups, list),
                  .count_off = offsetof(struct device_groups, n_list),
                  .sub = group,
                  .size = size },
                JD_END,
        };
        struct device_groups g = { 0 };
        if (yyjson_is_arr(entry)) { /* the list alone */
                size_t i, max;
                yyjson_val *v;
                char *list = arena_alloc(a, (yyjson_arr_size(entry) + 1) * size);
                yyjson_arr_foreach (entry, i, max, v) {
                        if (jd_decode(group, v, "", a, list + i * size, e) < 0)
                                return -1;
                }
                g = (struct device_groups){ list, yyjson_arr_size(entry) };
        } else if (jd_decode(in_entry, entry, "", a, &g, e) < 0) {
                return -1;
        }
        *ret = g;
        return 0;
}

/* ---- Go's JSON ---- */

enum { DEPTH_MAX = 60 /* the writer keeps a bit per level in 64 */ };

/* ---- checksums ---- */

static uint32_t fnv(uint32_t h, const char *p, size_t n) {
        for (size_t i = 0; i < n; i++)
                h = (h ^ (uint8_t)p[i]) * 16777619U;
        return h;
}

static uint32_t fnv_byte(uint32_t h, unsigned b) {
        return (h ^ b) * 16777619U;
}

/* Go prints each byte as a decimal number, separated by spaces. */
uint32_t gojson_checksum(const struct str *parts, size_t n) {
        static const char begin[] = "([]uint8)[";
        uint32_t h = fnv(2166136261U, begin, strlen(begin));
        bool first = true;
        for (size_t part = 0; part < n; part++) {
                for (size_t i = 0; i < parts[part].n; i++) {
                        unsigned b = (uint8_t)parts[part].p[i];
                        if (!first)
                                h = fnv_byte(h, ' ');
                        if (b >= 100)
                                h = fnv_byte(h, '0' + b / 100);
                        if (b >= 10)
                                h = fnv_byte(h, '0' + b / 10 % 10);
                        h = fnv_byte(h, '0' + b % 10);
                        first = false;
                }
        }
        return fnv(h, "]", 1);
}

/* ---- canonical JSON ---- */

static bool is_empty(yyjson_val *v, enum gojson_empty rule) {
        return !v || yyjson_is_null(v) || (yyjson_is_str(v) && !yyjson_get_len(v)) ||
               (yyjson_is_arr(v) && !yyjson_arr_size(v)) ||
               (rule == GOJSON_MAP_LEFT_OUT && yyjson_is_obj(v) && !yyjson_obj_size(v));
}

static void write_empty(struct jw *w, const struct gojson_member *m) {
        switch (m->empty) {
        case GOJSON_TEXT:
                jw_str(w, m->name, "");
                break;
        case GOJSON_OBJECT:
                jw_obj(w, m->name);
                for (const struct gojson_member *i = m->inside; i && i->name; i++)
                        write_empty(w, i);
                jw_end_obj(w);
                break;
        case GOJSON_ANY:
                jw_null(w, m->name);
                break;
        case GOJSON_LEFT_OUT:
        case GOJSON_MAP_LEFT_OUT:
                break;
        }
}

static bool canonical(struct jw *w, const char *key, yyjson_val *v, const struct gojson_member *known,
                      unsigned depth) {
        size_t i, max;
        yyjson_val *k, *item;
        bool ok = true;
        if (depth > DEPTH_MAX)
                return false;
        switch (yyjson_get_type(v)) {
        case YYJSON_TYPE_OBJ:
                jw_obj(w, key);
                for (const struct gojson_member *m = known; m && m->name; m++) {
                        item = yyjson_obj_get(v, m->name);
                        if (is_empty(item, m->empty))
                                write_empty(w, m);
                        else
                                ok = ok && canonical(w, m->name, item, m->inside, depth + 1);
                }
                if (!known) {
                        yyjson_obj_foreach (v, i, max, k, item)
                                ok = ok && canonical(w, yyjson_get_str(k), item, NULL, depth + 1);
                }
                jw_end_obj(w);
                return ok;
        case YYJSON_TYPE_ARR:
                jw_arr(w, key);
                yyjson_arr_foreach (v, i, max, item)
                        ok = ok && canonical(w, NULL, item, known, depth + 1);
                jw_end_arr(w);
                return ok;
        case YYJSON_TYPE_STR:
                jw_strn(w, key, (struct str){ yyjson_get_str(v), yyjson_get_len(v) });
                return true;
        case YYJSON_TYPE_RAW: /* a number in a document that keeps numbers as text */
                jw_raw(w, key, (struct str){ yyjson_get_raw(v), yyjson_get_len(v) });
                return true;
        case YYJSON_TYPE_BOOL:
                jw_bool(w, key, yyjson_get_bool(v));
                return true;
        case YYJSON_TYPE_NUM: {
                size_t n = 0;
                _cleanup_(freep) char *text = yyjson_val_write(v, 0, &n);
                jw_raw(w, key, (struct str){ text ? text : "0", text ? n : 1 });
                return true;
        }
        default:
                jw_null(w, key);
                return true;
        }
}

bool gojson_canonical(yyjson_val *v, const struct gojson_member *known, struct buf *out) {
        struct jw w = { .out = out, .go_escape = true };
        return canonical(&w, NULL, v, known, 0) && !out->failed;
}

/* ---- members as text ---- */

/* Removes the first `"key":value,` pair from *rest, which is the inside of an object; *ret_key and *ret_value
 * receive its parts. The text must be valid JSON. The function exists because yyjson does not report where in
 * the text a value is, and a checksum covers the text. */
static bool gojson_next_member(struct str *rest, struct str *ret_key, struct str *ret_value) {
        size_t i = 0, start, depth = 0;
        bool quoted = false, have_key = false;
        *rest = str_trim(*rest);
        if (rest->n && rest->p[0] == ',')
                *rest = str_trim((struct str){ rest->p + 1, rest->n - 1 });
        for (start = 0; i < rest->n; i++) {
                char c = rest->p[i];
                if (quoted) {
                        if (c == '\\')
                                i++;
                        else if (c == '"')
                                quoted = false;
                        continue;
                }
                if (c == '"')
                        quoted = true;
                else if (c == '{' || c == '[')
                        depth++;
                else if (c == '}' || c == ']')
                        depth--;
                else if (c == ':' && !have_key && !depth) {
                        *ret_key = str_trim((struct str){ rest->p, i });
                        have_key = true;
                        start = i + 1;
                } else if (c == ',' && !depth)
                        break;
        }
        if (!have_key)
                return false;
        i = i < rest->n ? i : rest->n;
        *ret_value = str_trim((struct str){ rest->p + start, i - start });
        *rest = (struct str){ rest->p + i, rest->n - i };
        return true;
}

/* Returns the text between the braces of an object. */
static struct str gojson_inside(struct str object) {
        return object.n >= 2 ? (struct str){ object.p + 1, object.n - 2 } : (struct str){ 0 };
}

static const char *const state_names[] = {
        [CHECKPOINT_STARTED] = "PrepareStarted",
        [CHECKPOINT_COMPLETED] = "PrepareCompleted",
        [CHECKPOINT_ABORTED] = "PrepareAborted",
};

/* ---- checksums ---- */

/* The checksum of {"checksum":0,"v1":<v1>}. */
static uint32_t checksum_v1(struct str v1) {
        const struct str parts[] = { STR("{\"checksum\":0"), STR(",\"v1\":"), v1, STR("}") };
        return v1.n ? gojson_checksum(parts, ARRAY_LEN(parts)) : gojson_checksum(&STR("{\"checksum\":0}"), 1);
}

/* The checksum of {"checksum":0<tail>, where the tail is the text after the number. */
static uint32_t checksum_v2(struct str tail) {
        const struct str parts[] = { STR("{\"checksum\":0"), tail };
        return gojson_checksum(parts, ARRAY_LEN(parts));
}

/* ---- a claim's status ---- */

/* As the Go types of resource.k8s.io/v1 are declared. */
#define END                                                                                                  \
        { .name = NULL }
#define TEXT(n)                                                                                              \
        { .name = (n), .empty = GOJSON_TEXT }
#define OPT(n)                                                                                               \
        { .name = (n) }
#define OPTIN(n, table)                                                                                      \
        { .name = (n), .inside = (table) }

static const struct gojson_member k_expression[] = { TEXT("key"), TEXT("operator"), OPT("values"), END };
static const struct gojson_member k_term[] = { OPTIN("matchExpressions", k_expression),
                                               OPTIN("matchFields", k_expression), END };
static const struct gojson_member k_selector[] = {
        { .name = "nodeSelectorTerms", .empty = GOJSON_ANY, .inside = k_term }, END
};
static const struct gojson_member k_toleration[] = { OPT("key"),    OPT("operator"),          OPT("value"),
                                                     OPT("effect"), OPT("tolerationSeconds"), END };
static const struct gojson_member k_result[] = {
        TEXT("request"),
        TEXT("driver"),
        TEXT("pool"),
        TEXT("device"),
        OPT("adminAccess"),
        OPTIN("tolerations", k_toleration),
        OPT("bindingConditions"),
        OPT("bindingFailureConditions"),
        OPT("shareID"),
        { .name = "consumedCapacity", .empty = GOJSON_MAP_LEFT_OUT },
        END,
};
static const struct gojson_member k_opaque[] = { TEXT("driver"),
                                                 { .name = "parameters", .empty = GOJSON_ANY },
                                                 END };
static const struct gojson_member k_config[] = { TEXT("source"), OPT("requests"), OPTIN("opaque", k_opaque),
                                                 END };
static const struct gojson_member k_devices[] = { OPTIN("results", k_result), OPTIN("config", k_config),
                                                  END };
static const struct gojson_member k_allocation[] = {
        { .name = "devices", .empty = GOJSON_OBJECT, .inside = k_devices },
        OPTIN("nodeSelector", k_selector),
        OPT("allocationTimestamp"),
        END,
};
static const struct gojson_member k_consumer[] = { OPT("apiGroup"), TEXT("resource"), TEXT("name"),
                                                   TEXT("uid"), END };
static const struct gojson_member k_condition[] = {
        TEXT("type"),
        TEXT("status"),
        OPT("observedGeneration"),
        { .name = "lastTransitionTime", .empty = GOJSON_ANY },
        TEXT("reason"),
        TEXT("message"),
        END,
};
static const struct gojson_member k_network[] = { OPT("interfaceName"), OPT("ips"), OPT("hardwareAddress"),
                                                  END };
static const struct gojson_member k_device[] = {
        TEXT("driver"),
        TEXT("pool"),
        TEXT("device"),
        OPT("shareID"),
        OPTIN("conditions", k_condition),
        OPT("data"),
        OPTIN("networkData", k_network),
        END,
};
static const struct gojson_member k_status[] = {
        OPTIN("allocation", k_allocation),
        OPTIN("reservedFor", k_consumer),
        OPTIN("devices", k_device),
        END,
};

bool checkpoint_status(yyjson_val *status, struct buf *out) {
        return gojson_canonical(status, k_status, out);
}

/* ---- decoding ---- */

struct stored_result {
        const char *driver, *device;
        bool admin;
};
static const struct jd_field f_result[] = {
        JD_STR(struct stored_result, "driver", driver),
        JD_STR(struct stored_result, "device", device),
        JD_BOOL(struct stored_result, "adminAccess", admin),
        JD_END,
};
struct stored_claim {
        struct stored_result *results;
        size_t n_results;
        const char *state, *ns, *name;
        int64_t aborted_at;
};
static const struct jd_field f_claim[] = {
        JD_STR(struct stored_claim, "checkpointState", state),
        JD_LIST(struct stored_claim, "status>allocation>devices>results", results, struct stored_result,
                f_result),
        JD_STR(struct stored_claim, "name", name),
        JD_STR(struct stored_claim, "namespace", ns),
        JD_TIME(struct stored_claim, "abortedAt", aborted_at),
        JD_END,
};

/* Allocated by admin access only, so the device is not taken. */
static bool is_admin(const struct stored_claim *s, const char *driver, const char *device) {
        bool admin = false;
        for (size_t i = 0; i < s->n_results; i++) {
                const struct stored_result *r = &s->results[i];
                if (streq(r->driver, driver) && streq(r->device, device)) {
                        if (!r->admin)
                                return false;
                        admin = true;
                }
        }
        return admin;
}

static bool canonical_in(struct arena *a, yyjson_val *v, struct str *ret) {
        struct buf b = BUF_INIT(CHECKPOINT_MAX_BYTES);
        bool ok = gojson_canonical(v, NULL, &b);
        if (ok)
                *ret = (struct str){ arena_strndup(a, buf_str(&b), b.n), b.n };
        buf_done(&b);
        return ok;
}

static int parse_state(const char *word, enum checkpoint_state *ret) {
        for (size_t i = 0; i < ARRAY_LEN(state_names); i++) {
                if (streq(word, state_names[i])) {
                        *ret = (enum checkpoint_state)i;
                        return 0;
                }
        }
        return -1;
}

/* v2, and v1 since 25.3. */
static int decode_claim(struct checkpoint_claim *claim, yyjson_val *v, bool v2, struct err *e) {
        struct stored_claim s = { 0 };
        yyjson_val *status = yyjson_obj_get(v, "status"), *prepared = yyjson_obj_get(v, "preparedDevices");
        if (jd_decode(f_claim, v, "", claim->arena, &s, e) < 0 ||
            claim->codec->decode(v, claim->arena, &claim->devices, &claim->n_devices, e) < 0)
                return -1;
        claim->state = CHECKPOINT_COMPLETED;
        if (v2 && parse_state(s.state, &claim->state) < 0)
                return err_set(e, ERR_INVALID, 0, "unknown checkpointState '%s'", str_or(s.state, ""));
        claim->ns = s.ns;
        claim->name = s.name;
        claim->aborted_at = s.aborted_at;
        if ((yyjson_is_obj(status) && !canonical_in(claim->arena, status, &claim->status)) ||
            (yyjson_is_arr(prepared) && !canonical_in(claim->arena, prepared, &claim->prepared)))
                return err_set(e, ERR_INVALID, 0, "nested too deep");
        claim->dialect = claim->codec->dialect_of ? claim->codec->dialect_of(v) : 0;
        for (size_t i = 0; i < claim->n_devices; i++)
                claim->devices[i].admin = is_admin(&s, claim->codec->driver, claim->devices[i].name);
        return 0;
}

/* v1 as of 25.3.0-rc2: the entry is the devices themselves. Rewritten, because no present version reads that
 * form. */
static int decode_old_claim(struct checkpoint_claim *claim, yyjson_val *list, struct err *e) {
        struct node_device *devices;
        size_t n;
        if (claim->codec->decode(list, claim->arena, &devices, &n, e) < 0)
                return -1;
        claim->state = CHECKPOINT_COMPLETED;
        checkpoint_set_devices(claim, devices, n);
        return 0;
}

static int decode_claims(yyjson_val *claims, bool v2, struct checkpoint *ret, struct err *e) {
        size_t i, max;
        yyjson_val *k, *v;
        if (claims && !yyjson_is_obj(claims) && !yyjson_is_null(claims))
                return err_set(e, ERR_INVALID, 0, "preparedClaims: not an object");
        yyjson_obj_foreach (claims, i, max, k, v) {
                const char *uid = yyjson_get_str(k);
                if (!*uid || strlen(uid) != yyjson_get_len(k) || checkpoint_find(ret, uid))
                        return err_set(e, ERR_INVALID, 0,
                                       "preparedClaims: key '%s' is empty, malformed or a duplicate", uid);
                struct checkpoint_claim *claim = checkpoint_add(ret, uid);
                if ((!v2 && yyjson_is_arr(v) ? decode_old_claim(claim, v, e)
                                             : decode_claim(claim, v, v2, e)) < 0)
                        return err_wrap(e, "preparedClaims['%s']", uid);
        }
        return 0;
}

static int check_sum(struct str stored, uint32_t computed, const char *what, struct err *e) {
        int64_t v = -1;
        if (!str_to_i64(stored, &v))
                return err_set(e, ERR_INVALID, 0, "%s has no checksum", what);
        if (v != (int64_t)computed)
                return err_set(e, ERR_INVALID, 0, "the checksum of %s is %lld, but its content gives %lu",
                               what, (long long)v, (unsigned long)computed);
        return 0;
}

static int verify(struct str text, bool has_v2, struct err *e) {
        struct str rest = gojson_inside(str_trim(text)), key, value, sum = { 0 }, v1 = { 0 }, v2 = { 0 };
        while (gojson_next_member(&rest, &key, &value)) {
                if (str_eq(key, STR("\"checksum\"")))
                        sum = value;
                else if (str_eq(key, STR("\"v1\"")))
                        v1 = value;
                else if (str_eq(key, STR("\"v2\"")))
                        v2 = value;
        }
        if (check_sum(sum, checksum_v1(v1), "v1", e) < 0)
                return -1;
        if (!has_v2)
                return 0;
        rest = gojson_inside(v2);
        if (!gojson_next_member(&rest, &key, &value) || !str_eq(key, STR("\"checksum\"")))
                return err_set(e, ERR_INVALID, 0, "v2 has no checksum");
        struct str tail = { rest.p, (size_t)(v2.p + v2.n - rest.p) };
        return check_sum(value, checksum_v2(tail), "v2", e);
}

static int decode_root(yyjson_val *root, struct str text, struct checkpoint *ret, struct err *e) {
        yyjson_val *v1 = yyjson_obj_get(root, "v1"), *v2 = yyjson_obj_get(root, "v2");
        bool has_v2 = yyjson_is_obj(v2);
        if (!yyjson_is_obj(root) || (v1 && !yyjson_is_obj(v1) && !yyjson_is_null(v1)) ||
            (v2 && !has_v2 && !yyjson_is_null(v2)))
                return err_set(e, ERR_INVALID, 0, "not an object with the members v1 and v2");
        if (verify(text, has_v2, e) < 0)
                return -1;
        const char *boot_id = yyjson_get_str(yyjson_obj_get(v2, "nodeBootID"));
        snprintf(ret->boot_id, sizeof ret->boot_id, "%s", str_or(boot_id, ""));
        return decode_claims(yyjson_obj_get(has_v2 ? v2 : v1, "preparedClaims"), has_v2, ret, e);
}

/* Rewrites all claims in the table's dialect. An entry that the codec would not write byte for byte as it is
 * stays unchanged, because it may hold data that only another version knows. */
static void translate(struct checkpoint *c) {
        struct checkpoint_claim *claim;
        for (claim = c->claims; claim; claim = claim->hh.next) {
                struct buf text = BUF_INIT(CHECKPOINT_MAX_BYTES);
                struct jw w = { .out = &text, .go_escape = true };
                bool other = claim->dialect && claim->dialect != c->dialect;
                if (other)
                        claim->codec->encode(&w, claim->devices, claim->n_devices, claim->dialect);
                if (other && str_eq((struct str){ text.p, text.n }, claim->prepared)) {
                        claim->dialect = c->dialect;
                        checkpoint_set_devices(claim, claim->devices, claim->n_devices);
                }
                buf_done(&text);
        }
}

int checkpoint_decode(struct str text, struct checkpoint *ret, struct err *e) {
        struct checkpoint c = { .codec = ret->codec, .dialect = ret->dialect };
        if (text.n > CHECKPOINT_MAX_BYTES)
                return err_set(e, ERR_INVALID, 0, "larger than %d bytes", CHECKPOINT_MAX_BYTES);
        /* Numbers stay text: the checksum covers the form in which they were written. */
        yyjson_doc *doc = json_parse(text, YYJSON_READ_NUMBER_AS_RAW, e);
        if (!doc)
                return -1;
        int r = decode_root(yyjson_doc_get_root(doc), text, &c, e);
        yyjson_doc_free(doc);
        if (r < 0) {
                checkpoint_done(&c);
                return -1;
        }
        translate(&c);
        *ret = c;
        return 0;
}

/* ---- encoding ---- */

static int checkpoint_layouts_by_uid(const void *a, const void *b) {
        return strcmp((*(const struct checkpoint_claim *const *)a)->uid,
                      (*(const struct checkpoint_claim *const *)b)->uid);
}

static void encode_claim(struct jw *w, const struct checkpoint_claim *c, bool v2) {
        jw_obj(w, c->uid);
        if (v2)
                jw_str(w, "checkpointState", state_names[c->state]);
        jw_raw(w, "status", c->status);
        if (c->prepared.n)
                jw_raw(w, "preparedDevices", c->prepared);
        if (v2 && c->name && *c->name)
                jw_str(w, "name", c->name);
        if (v2 && c->ns && *c->ns)
                jw_str(w, "namespace", c->ns);
        if (v2 && c->aborted_at)
                jw_time(w, "abortedAt", c->aborted_at);
        jw_end_obj(w);
}

static void encode_claims(struct jw *w, const struct checkpoint_claim *const *claims, size_t n, bool v2) {
        bool any = false;
        for (size_t i = 0; i < n; i++) {
                if (!v2 && claims[i]->state != CHECKPOINT_COMPLETED)
                        continue;
                if (!any)
                        jw_obj(w, "preparedClaims");
                any = true;
                encode_claim(w, claims[i], v2);
        }
        if (any)
                jw_end_obj(w);
}

void checkpoint_encode(const struct checkpoint *c, struct buf *out) {
        size_t n = 0;
        const struct checkpoint_claim **sorted =
                xnew_n(const struct checkpoint_claim *, HASH_COUNT(c->claims) + 1);
        for (const struct checkpoint_claim *claim = c->claims; claim; claim = claim->hh.next) {
                if (claim->state != CHECKPOINT_ABORTED || !c->codec->no_tombstones)
                        sorted[n++] = claim;
        }
        qsort(sorted, n, sizeof(struct checkpoint_claim *), checkpoint_layouts_by_uid);

        struct buf v1 = BUF_INIT(CHECKPOINT_MAX_BYTES), v2 = BUF_INIT(CHECKPOINT_MAX_BYTES);
        struct jw w1 = { .out = &v1, .go_escape = true }, w2 = { .out = &v2, .go_escape = true };
        jw_obj(&w1, NULL);
        encode_claims(&w1, sorted, n, false);
        jw_end_obj(&w1);
        static const char head[] = "{\"checksum\":0";
        jw_obj(&w2, NULL);
        jw_int(&w2, "checksum", 0);
        encode_claims(&w2, sorted, n, true);
        if (c->boot_id[0])
                jw_str(&w2, "nodeBootID", c->boot_id);
        jw_end_obj(&w2);
        free(sorted);

        if (v1.failed || v2.failed) {
                out->failed = true;
        } else {
                struct str text1 = { v1.p, v1.n }, tail2 = { v2.p + strlen(head), v2.n - strlen(head) };
                buf_addf(out, "{\"checksum\":%lu,\"v1\":", (unsigned long)checksum_v1(text1));
                buf_add(out, text1.p, text1.n);
                buf_addf(out, ",\"v2\":{\"checksum\":%lu", (unsigned long)checksum_v2(tail2));
                buf_add(out, tail2.p, tail2.n);
                buf_addc(out, '}');
        }
        buf_done(&v1);
        buf_done(&v2);
}
