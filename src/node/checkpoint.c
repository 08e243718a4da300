/* SPDX-License-Identifier: Apache-2.0 */
#include "node/checkpoint.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/names.h"
#include "base/json.h"

enum { DEPTH_MAX = 60 /* the writer keeps a bit per level in 64 */ };

static const char *const state_names[] = {
        [CHECKPOINT_STARTED] = "PrepareStarted",
        [CHECKPOINT_COMPLETED] = "PrepareCompleted",
        [CHECKPOINT_ABORTED] = "PrepareAborted",
};

/* ---- checksums ---- */

struct fnv {
        uint32_t h;
        bool first;
};

static void fnv_raw(struct fnv *f, const char *p, size_t n) {
        for (size_t i = 0; i < n; i++)
                f->h = (f->h ^ (uint8_t)p[i]) * 16777619U;
}

static struct fnv fnv_begin(void) {
        struct fnv f = { .h = 2166136261U, .first = true };
        fnv_raw(&f, "([]uint8)[", strlen("([]uint8)["));
        return f;
}

/* Each byte as a decimal number, with blanks between them. */
static void fnv_json(struct fnv *f, struct str json) {
        for (size_t i = 0; i < json.n; i++) {
                char digits[4];
                uint8_t b = (uint8_t)json.p[i];
                size_t n = 0;
                if (b >= 100)
                        digits[n++] = (char)('0' + b / 100);
                if (b >= 10)
                        digits[n++] = (char)('0' + b / 10 % 10);
                digits[n++] = (char)('0' + b % 10);
                if (!f->first)
                        fnv_raw(f, " ", 1);
                f->first = false;
                fnv_raw(f, digits, n);
        }
}

static uint32_t fnv_end(struct fnv *f) {
        fnv_raw(f, "]", 1);
        return f->h;
}

uint32_t checkpoint_checksum(struct str json) {
        struct fnv f = fnv_begin();
        fnv_json(&f, json);
        return fnv_end(&f);
}

/* Of {"checksum":0,"v1":<v1>}. */
static uint32_t checksum_v1(struct str v1) {
        struct fnv f = fnv_begin();
        fnv_json(&f, STR("{\"checksum\":0"));
        if (v1.n) {
                fnv_json(&f, STR(",\"v1\":"));
                fnv_json(&f, v1);
        }
        fnv_json(&f, STR("}"));
        return fnv_end(&f);
}

/* Of {"checksum":0<tail>, where the tail is the text behind the number. */
static uint32_t checksum_v2(struct str tail) {
        struct fnv f = fnv_begin();
        fnv_json(&f, STR("{\"checksum\":0"));
        fnv_json(&f, tail);
        return fnv_end(&f);
}

/* ---- canonical JSON ---- */

/* Members of an object, and of the objects in a list; NULL: whatever there is. */
struct known {
        const char *name;
        const struct known *inside;
};
#define END                                                                                                  \
        { NULL, NULL }

static const struct known k_expression[] = { { "key", NULL }, { "operator", NULL }, { "values", NULL }, END };
static const struct known k_term[] = { { "matchExpressions", k_expression },
                                       { "matchFields", k_expression },
                                       END };
static const struct known k_selector[] = { { "nodeSelectorTerms", k_term }, END };
static const struct known k_toleration[] = {
        { "key", NULL },    { "operator", NULL },          { "value", NULL },
        { "effect", NULL }, { "tolerationSeconds", NULL }, END
};
static const struct known k_result[] = { { "request", NULL },
                                         { "driver", NULL },
                                         { "pool", NULL },
                                         { "device", NULL },
                                         { "adminAccess", NULL },
                                         { "tolerations", k_toleration },
                                         { "bindingConditions", NULL },
                                         { "bindingFailureConditions", NULL },
                                         { "shareID", NULL },
                                         { "consumedCapacity", NULL },
                                         END };
static const struct known k_opaque[] = { { "driver", NULL }, { "parameters", NULL }, END };
static const struct known k_config[] = {
        { "source", NULL }, { "requests", NULL }, { "opaque", k_opaque }, END
};
static const struct known k_devices[] = { { "results", k_result }, { "config", k_config }, END };
static const struct known k_allocation[] = {
        { "devices", k_devices }, { "nodeSelector", k_selector }, { "allocationTimestamp", NULL }, END
};
static const struct known k_consumer[] = {
        { "apiGroup", NULL }, { "resource", NULL }, { "name", NULL }, { "uid", NULL }, END
};
static const struct known k_condition[] = { { "type", NULL },
                                            { "status", NULL },
                                            { "observedGeneration", NULL },
                                            { "lastTransitionTime", NULL },
                                            { "reason", NULL },
                                            { "message", NULL },
                                            END };
static const struct known k_network[] = {
        { "interfaceName", NULL }, { "ips", NULL }, { "hardwareAddress", NULL }, END
};
static const struct known k_device[] = { { "driver", NULL },
                                         { "pool", NULL },
                                         { "device", NULL },
                                         { "shareID", NULL },
                                         { "conditions", k_condition },
                                         { "data", NULL },
                                         { "networkData", k_network },
                                         END };
static const struct known k_status[] = {
        { "allocation", k_allocation }, { "reservedFor", k_consumer }, { "devices", k_device }, END
};

/* NULL: not known. */
static const struct known *find_known(const struct known *list, const char *name) {
        while (list->name && !streq(list->name, name))
                list++;
        return list->name ? list : NULL;
}

static bool canonical(struct jw *w, const char *key, yyjson_val *v, const struct known *known,
                      unsigned depth) {
        size_t i, max;
        yyjson_val *k, *item;
        bool ok = true;
        if (depth > DEPTH_MAX)
                return false;
        switch (yyjson_get_type(v)) {
        case YYJSON_TYPE_OBJ:
                jw_obj(w, key);
                yyjson_obj_foreach (v, i, max, k, item) {
                        const struct known *member = known ? find_known(known, yyjson_get_str(k)) : NULL;
                        if (!known || member)
                                ok = ok && canonical(w, yyjson_get_str(k), item,
                                                     member ? member->inside : NULL, depth + 1);
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
        case YYJSON_TYPE_RAW: /* a number in a document that keeps their text */
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

bool checkpoint_canonical(yyjson_val *v, struct buf *out) {
        struct jw w = { .out = out, .go_escape = true };
        return canonical(&w, NULL, v, NULL, 0) && !out->failed;
}

bool checkpoint_status(yyjson_val *status, struct buf *out) {
        struct jw w = { .out = out, .go_escape = true };
        return canonical(&w, NULL, status, k_status, 0) && !out->failed;
}

static bool canonical_in(struct arena *a, yyjson_val *v, struct str *ret) {
        struct buf b = BUF_INIT(CHECKPOINT_MAX_BYTES);
        bool ok = checkpoint_canonical(v, &b);
        if (ok)
                *ret = (struct str){ arena_strndup(a, buf_str(&b), b.n), b.n };
        buf_done(&b);
        return ok;
}

/* ---- entries ---- */

struct checkpoint_claim *checkpoint_find(const struct checkpoint *c, const char *uid) {
        struct checkpoint_claim *found = NULL;
        HASH_FIND_STR(c->claims, uid, found);
        return found;
}

void checkpoint_drop(struct checkpoint *c, struct checkpoint_claim *claim) {
        HASH_DEL(c->claims, claim);
        arena_free(claim->arena);
}

void checkpoint_done(struct checkpoint *c) {
        struct checkpoint_claim *claim, *tmp;
        HASH_ITER (hh, c->claims, claim, tmp) {
                checkpoint_drop(c, claim);
        }
        *c = (struct checkpoint){ 0 };
}

static struct checkpoint_claim *claim_new(const char *uid) {
        struct arena *a = arena_new(1024);
        struct checkpoint_claim *claim = arena_alloc(a, sizeof *claim);
        claim->arena = a;
        claim->uid = arena_strdup(a, uid);
        claim->status = STR("{}");
        return claim;
}

static void add(struct checkpoint *c, struct checkpoint_claim *claim) {
        HASH_ADD_KEYPTR(hh, c->claims, claim->uid, strlen(claim->uid), claim);
}

struct checkpoint_claim *checkpoint_put(struct checkpoint *c, const char *uid, const char *ns,
                                        const char *name, struct str status) {
        struct checkpoint_claim *old = checkpoint_find(c, uid);
        struct checkpoint_claim *claim = claim_new(uid);
        claim->ns = arena_strdup(claim->arena, ns);
        claim->name = arena_strdup(claim->arena, name);
        if (status.n)
                claim->status = (struct str){ arena_strndup(claim->arena, status.p, status.n), status.n };
        if (old)
                checkpoint_drop(c, old);
        add(c, claim);
        return claim;
}

static const char **copy_strings(struct arena *a, const char *const *list) {
        size_t n = 0;
        while (list && list[n])
                n++;
        const char **copy = arena_alloc(a, (n + 1) * sizeof *copy);
        for (size_t i = 0; i < n; i++)
                copy[i] = arena_strdup(a, list[i]);
        return copy;
}

static void write_strings(struct jw *w, const char *key, const char *const *list) {
        jw_arr(w, key);
        for (; list && *list; list++)
                jw_str(w, NULL, *list);
        jw_end_arr(w);
}

/* "channel-7" -> 7 */
static int64_t device_id(const char *name) {
        const char *dash = name ? strrchr(name, '-') : NULL;
        int64_t id = 0;
        return dash && str_to_i64(str_from(dash + 1), &id) && id >= 0 ? id : 0;
}

static void write_group(struct jw *w, const struct checkpoint_device *d) {
        jw_obj(w, NULL);
        jw_arr(w, "devices");
        jw_obj(w, NULL);
        if (d->is_daemon)
                jw_null(w, "channel");
        jw_obj(w, d->is_daemon ? "daemon" : "channel");
        jw_obj(w, "info");
        jw_int(w, "id", device_id(d->name));
        jw_end_obj(w);
        jw_obj(w, "device");
        write_strings(w, "Requests", d->requests);
        jw_str(w, "PoolName", str_or(d->pool, ""));
        jw_str(w, "DeviceName", str_or(d->name, ""));
        write_strings(w, "CDIDeviceIDs", d->cdi_ids);
        jw_end_obj(w);
        jw_end_obj(w);
        if (!d->is_daemon)
                jw_null(w, "daemon");
        jw_end_obj(w);
        jw_end_arr(w);
        jw_obj(w, "configState");
        jw_str(w, "Type", d->is_daemon ? "daemon" : "channel");
        jw_str(w, "ComputeDomain", str_or(d->domain, ""));
        jw_end_obj(w);
        jw_end_obj(w);
}

void checkpoint_set_devices(struct checkpoint_claim *claim, const struct checkpoint_device *devices,
                            size_t n) {
        struct arena *a = claim->arena;
        struct buf text = BUF_INIT(CHECKPOINT_MAX_BYTES);
        struct jw w = { .out = &text, .go_escape = true };
        claim->devices = arena_alloc(a, (n + 1) * sizeof *claim->devices);
        claim->n_devices = n;
        jw_arr(&w, NULL);
        for (size_t i = 0; i < n; i++) {
                struct checkpoint_device *d = &claim->devices[i];
                *d = devices[i];
                d->name = arena_strdup(a, str_or(d->name, ""));
                d->pool = arena_strdup(a, str_or(d->pool, ""));
                d->domain = arena_strdup(a, str_or(d->domain, ""));
                d->requests = copy_strings(a, d->requests);
                d->cdi_ids = copy_strings(a, d->cdi_ids);
                write_group(&w, d);
        }
        jw_end_arr(&w);
        claim->prepared = (struct str){ arena_strndup(a, buf_str(&text), text.n), text.n };
        buf_done(&text);
}

/* ---- decoding ---- */

/* One device as the file has it; the Go driver changed the names of these members once. */
struct stored_device {
        const char **requests, **old_requests, **cdi_ids, **old_cdi_ids;
        size_t n_requests, n_old_requests, n_cdi_ids, n_old_cdi_ids;
        const char *pool, *old_pool, *name, *old_name;
};
static const struct jd_field f_stored_device[] = {
        JD_STRS(struct stored_device, "Requests", requests),
        JD_STRS(struct stored_device, "request_names", old_requests),
        JD_STR(struct stored_device, "PoolName", pool),
        JD_STR(struct stored_device, "pool_name", old_pool),
        JD_STR(struct stored_device, "DeviceName", name),
        JD_STR(struct stored_device, "device_name", old_name),
        JD_STRS(struct stored_device, "CDIDeviceIDs", cdi_ids),
        JD_STRS(struct stored_device, "cdi_device_ids", old_cdi_ids),
        JD_END,
};
struct stored_slot {
        struct stored_device *device;
};
static const struct jd_field f_stored_slot[] = {
        JD_OPTOBJ(struct stored_slot, "device", device, struct stored_device, f_stored_device),
        JD_END,
};
struct stored_pair {
        struct stored_slot *channel, *daemon;
};
static const struct jd_field f_stored_pair[] = {
        JD_OPTOBJ(struct stored_pair, "channel", channel, struct stored_slot, f_stored_slot),
        JD_OPTOBJ(struct stored_pair, "daemon", daemon, struct stored_slot, f_stored_slot),
        JD_END,
};
struct stored_group {
        struct stored_pair *pairs;
        size_t n_pairs;
        const char *domain;
};
static const struct jd_field f_config_state[] = { JD_STR(struct stored_group, "ComputeDomain", domain),
                                                  JD_END };
static const struct jd_field f_group[] = {
        JD_LIST(struct stored_group, "devices", pairs, struct stored_pair, f_stored_pair),
        JD_IN(struct stored_group, "configState", f_config_state),
        JD_END,
};
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
        struct stored_group *groups;
        size_t n_groups;
        struct stored_result *results;
        size_t n_results;
        const char *state, *ns, *name;
        int64_t aborted_at;
};
static const struct jd_field f_devices[] = {
        JD_LIST(struct stored_claim, "results", results, struct stored_result, f_result), JD_END
};
static const struct jd_field f_allocation[] = { JD_IN(struct stored_claim, "devices", f_devices), JD_END };
static const struct jd_field f_status[] = { JD_IN(struct stored_claim, "allocation", f_allocation), JD_END };
static const struct jd_field f_claim[] = {
        JD_STR(struct stored_claim, "checkpointState", state),
        JD_IN(struct stored_claim, "status", f_status),
        JD_LIST(struct stored_claim, "preparedDevices", groups, struct stored_group, f_group),
        JD_STR(struct stored_claim, "name", name),
        JD_STR(struct stored_claim, "namespace", ns),
        JD_TIME(struct stored_claim, "abortedAt", aborted_at),
        JD_END,
};

static bool is_admin(const struct stored_claim *s, const char *device) {
        bool admin = false;
        for (size_t i = 0; i < s->n_results; i++) {
                const struct stored_result *r = &s->results[i];
                if (streq(r->driver, CD_DRIVER) && streq(r->device, device)) {
                        if (!r->admin)
                                return false;
                        admin = true;
                }
        }
        return admin;
}

static void take_devices(struct checkpoint_claim *claim, const struct stored_claim *s) {
        size_t n = 0;
        for (size_t g = 0; g < s->n_groups; g++)
                n += s->groups[g].n_pairs;
        claim->devices = arena_alloc(claim->arena, (n + 1) * sizeof *claim->devices);
        for (size_t g = 0; g < s->n_groups; g++) {
                for (size_t i = 0; i < s->groups[g].n_pairs; i++) {
                        const struct stored_pair *pair = &s->groups[g].pairs[i];
                        const struct stored_slot *slot = pair->daemon ? pair->daemon : pair->channel;
                        const struct stored_device *d = slot ? slot->device : NULL;
                        if (!d)
                                continue;
                        const char *name = d->name ? d->name : d->old_name;
                        claim->devices[claim->n_devices++] = (struct checkpoint_device){
                                .name = name,
                                .pool = d->pool ? d->pool : d->old_pool,
                                .requests = copy_strings(claim->arena,
                                                         d->requests ? d->requests : d->old_requests),
                                .cdi_ids =
                                        copy_strings(claim->arena, d->cdi_ids ? d->cdi_ids : d->old_cdi_ids),
                                .domain = s->groups[g].domain,
                                .is_daemon = pair->daemon != NULL,
                                .admin = is_admin(s, name),
                        };
                }
        }
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

/* v2, and v1 as of 25.3. */
static int decode_claim(struct checkpoint_claim *claim, yyjson_val *v, bool v2, struct err *e) {
        struct stored_claim s = { 0 };
        yyjson_val *status = yyjson_obj_get(v, "status"), *prepared = yyjson_obj_get(v, "preparedDevices");
        if (jd_decode(f_claim, v, false, "", claim->arena, &s, e) < 0)
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
        take_devices(claim, &s);
        return 0;
}

/* v1 as of 25.3.0-rc2: the entry is the list of groups itself. Rewritten, because nobody reads that form any
 * more. */
static int decode_old_claim(struct checkpoint_claim *claim, yyjson_val *list, struct err *e) {
        struct stored_claim s = { 0 };
        size_t i, max;
        yyjson_val *v;
        s.groups = arena_alloc(claim->arena, (yyjson_arr_size(list) + 1) * sizeof *s.groups);
        yyjson_arr_foreach (list, i, max, v) {
                if (jd_decode(f_group, v, false, "", claim->arena, &s.groups[i], e) < 0)
                        return -1;
                s.n_groups++;
        }
        claim->state = CHECKPOINT_COMPLETED;
        take_devices(claim, &s);
        checkpoint_set_devices(claim, claim->devices, claim->n_devices);
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
                                       "preparedClaims: key '%s' is empty, malformed or there twice", uid);
                struct checkpoint_claim *claim = claim_new(uid);
                add(ret, claim);
                if ((!v2 && yyjson_is_arr(v) ? decode_old_claim(claim, v, e)
                                             : decode_claim(claim, v, v2, e)) < 0)
                        return err_wrap(e, "preparedClaims['%s']", uid);
        }
        return 0;
}

/* Cuts `"key":value,` pairs off the inside of an object whose text is known to be valid JSON: yyjson does not
 * tell where in the text a value stands, and a checksum covers the text. */
static bool next_member(struct str *rest, struct str *ret_key, struct str *ret_value) {
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
                        depth -= depth > 0;
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

static struct str inside(struct str object) {
        return object.n >= 2 ? (struct str){ object.p + 1, object.n - 2 } : (struct str){ 0 };
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
        struct str rest = inside(str_trim(text)), key, value, sum = { 0 }, v1 = { 0 }, v2 = { 0 };
        while (next_member(&rest, &key, &value)) {
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
        rest = inside(v2);
        if (!next_member(&rest, &key, &value) || !str_eq(key, STR("\"checksum\"")))
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

int checkpoint_decode(struct str text, struct checkpoint *ret, struct err *e) {
        struct checkpoint c = { 0 };
        if (text.n > CHECKPOINT_MAX_BYTES)
                return err_set(e, ERR_INVALID, 0, "larger than %d bytes", CHECKPOINT_MAX_BYTES);
        /* Numbers stay text: the checksum covers how somebody else wrote them. */
        yyjson_doc *doc = json_parse(text, YYJSON_READ_NUMBER_AS_RAW, e);
        if (!doc)
                return -1;
        int r = decode_root(yyjson_doc_get_root(doc), text, &c, e);
        yyjson_doc_free(doc);
        if (r < 0)
                checkpoint_done(&c);
        else
                *ret = c;
        return r;
}

/* ---- encoding ---- */

static int by_uid(const void *a, const void *b) {
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
        for (const struct checkpoint_claim *claim = c->claims; claim; claim = claim->hh.next)
                sorted[n++] = claim;
        qsort(sorted, n, sizeof(struct checkpoint_claim *), by_uid);

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
