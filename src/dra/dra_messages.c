/* SPDX-License-Identifier: Apache-2.0 */
#include "dra/dra_messages.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dra.pb-c.h"

/* ---- memory budget ---- */

static void *unpack_take(void *u, size_t n) {
        size_t *left = u;
        if (n > *left)
                return NULL;
        *left -= n;
        return malloc(n);
}

static void give(void *u, void *p) {
        free(p);
}

void *unpack_message(const ProtobufCMessageDescriptor *type, struct str message, size_t budget) {
        ProtobufCAllocator allocator = { .alloc = unpack_take, .free = give, .allocator_data = &budget };
        return protobuf_c_message_unpack(type, &allocator, message.n, (const uint8_t *)message.p);
}

/* The largest accepted request, with names of 253 bytes, needs less than half of this. */
enum { UNPACK_MAX = 4 << 20 };

/* Requests. */

/* Names and UIDs of Kubernetes: letters, digits, '-', '.', '_', and no dot at the start. */
static bool dra_messages_is_name(const char *s) {
        size_t n = 0;
        if (*s == '.')
                return false;
        for (; s[n]; n++) {
                unsigned char ch = (unsigned char)s[n];
                if (n == DRA_MAX_NAME || !isascii(ch) || (!isalnum(ch) && !strchr("-._", ch)))
                        return false;
        }
        return n > 0;
}

static int dra_messages_check_claim(const Dra__Claim *c, size_t i, struct err *e) {
        const struct {
                const char *what, *value;
        } members[] = { { "namespace", c->namespace_ }, { "name", c->name }, { "uid", c->uid } };
        for (size_t m = 0; m < ARRAY_LEN(members); m++) {
                const char *problem = !*members[m].value                        ? "no"
                                      : !dra_messages_is_name(members[m].value) ? "an invalid"
                                                                                : NULL;
                if (problem)
                        return err_set(e, ERR_INVALID, 0, "claim %zu ('%.64s/%.64s') has %s %s", i + 1,
                                       c->namespace_, c->name, problem, members[m].what);
        }
        return 0;
}

static int dra_messages_by_uid(const void *a, const void *b) {
        return strcmp((*(const Dra__Claim *const *)a)->uid, (*(const Dra__Claim *const *)b)->uid);
}

static int check_unique(const Dra__ClaimsRequest *r, struct arena *a, struct err *e) {
        const Dra__Claim **sorted = arena_alloc(a, r->n_claims * sizeof(*sorted));
        for (size_t i = 0; i < r->n_claims; i++)
                sorted[i] = r->claims[i];
        qsort(sorted, r->n_claims, sizeof(*sorted), dra_messages_by_uid);
        for (size_t i = 1; i < r->n_claims; i++)
                if (dra_messages_by_uid(&sorted[i - 1], &sorted[i]) == 0)
                        return err_set(e, ERR_INVALID, 0,
                                       "claim '%.64s/%.64s': the uid '%.64s' is in the request twice",
                                       sorted[i]->namespace_, sorted[i]->name, sorted[i]->uid);
        return 0;
}

static int check_request(const Dra__ClaimsRequest *r, struct arena *a, struct err *e) {
        if (r->n_claims == 0)
                return err_set(e, ERR_INVALID, 0, "the request has no claims");
        if (r->n_claims > DRA_MAX_CLAIMS)
                return err_set(e, ERR_INVALID, 0, "the request has %zu claims, at most %d are accepted",
                               r->n_claims, DRA_MAX_CLAIMS);
        for (size_t i = 0; i < r->n_claims; i++)
                if (dra_messages_check_claim(r->claims[i], i, e) < 0)
                        return -1;
        return check_unique(r, a, e);
}

int dra_messages_read_claims(struct str message, struct arena *a, struct dra_claim **ret, size_t *ret_n,
                             struct err *e) {
        Dra__ClaimsRequest *r = unpack_message(&dra__claims_request__descriptor, message, UNPACK_MAX);
        if (!r)
                return err_set(e, ERR_INVALID, 0,
                               "the request is not a valid protobuf message of at most %d claims",
                               DRA_MAX_CLAIMS);
        int result = check_request(r, a, e);
        if (result == 0) {
                struct dra_claim *claims = arena_alloc(a, r->n_claims * sizeof(*claims));
                for (size_t i = 0; i < r->n_claims; i++)
                        claims[i] =
                                (struct dra_claim){ .namespace = arena_strdup(a, r->claims[i]->namespace_),
                                                    .name = arena_strdup(a, r->claims[i]->name),
                                                    .uid = arena_strdup(a, r->claims[i]->uid) };
                *ret = claims;
                *ret_n = r->n_claims;
        }
        dra__claims_request__free_unpacked(r, NULL);
        return result;
}

/* Responses. */

char *dra_messages_text(struct arena *a, const char *s, size_t max) {
        size_t all = strnlen(s, max + 4), n = all < max ? all : max, at = 0;
        char *out = arena_alloc(a, n + 1);
        while (at < n) {
                size_t k = str_utf8_char((struct str){ s + at, all - at });
                if (at + k > n)
                        break;
                if (k)
                        memcpy(out + at, s + at, k);
                else
                        out[at] = '?';
                at += k ? k : 1;
        }
        return out;
}

char *dra_messages_unconst(const char *s) {
        return (char *)(uintptr_t)s;
}

static char **texts(const char *const *in, size_t *ret_n) {
        while (in && in[*ret_n])
                ++*ret_n;
        return (char **)(uintptr_t)in;
}

static Dra__Device *device_message(const struct dra_device *d, struct arena *a) {
        Dra__Device *m = arena_alloc(a, sizeof(*m));
        dra__device__init(m);
        m->request_names = texts(d->requests, &m->n_request_names);
        m->cdi_device_ids = texts(d->cdi_ids, &m->n_cdi_device_ids);
        m->pool_name = dra_messages_unconst(d->pool);
        m->device_name = dra_messages_unconst(d->device);
        return m;
}

static Dra__NodePrepareResourcesEntry *prepared_entry(const struct dra_result *r, struct arena *a) {
        Dra__NodePrepareResourcesEntry *entry = arena_alloc(a, sizeof(*entry));
        Dra__NodePrepareResourceResponse *value = arena_alloc(a, sizeof(*value));
        dra__node_prepare_resources_entry__init(entry);
        dra__node_prepare_resource_response__init(value);
        entry->key = dra_messages_unconst(r->uid);
        entry->value = value;
        if (r->error) {
                value->error = dra_messages_text(a, r->error, DRA_MAX_ERROR);
                return entry;
        }
        value->n_devices = r->n_devices;
        value->devices = arena_alloc(a, (r->n_devices + 1) * sizeof(*value->devices));
        for (size_t i = 0; i < r->n_devices; i++)
                value->devices[i] = device_message(&r->devices[i], a);
        return entry;
}

static Dra__NodeUnprepareResourcesEntry *unprepared_entry(const struct dra_result *r, struct arena *a) {
        Dra__NodeUnprepareResourcesEntry *entry = arena_alloc(a, sizeof(*entry));
        Dra__NodeUnprepareResourceResponse *value = arena_alloc(a, sizeof(*value));
        dra__node_unprepare_resources_entry__init(entry);
        dra__node_unprepare_resource_response__init(value);
        entry->key = dra_messages_unconst(r->uid);
        entry->value = value;
        if (r->error)
                value->error = dra_messages_text(a, r->error, DRA_MAX_ERROR);
        return entry;
}

static void dra_messages_pack(const ProtobufCMessage *m, struct arena *a, struct buf *out) {
        size_t n = protobuf_c_message_get_packed_size(m);
        uint8_t *packed = arena_alloc(a, n + 1);
        protobuf_c_message_pack(m, packed);
        buf_add(out, packed, n);
}

void dra_messages_write_results(bool prepare, const struct dra_result *results, size_t n, struct arena *a,
                                struct buf *out) {
        if (prepare) {
                Dra__NodePrepareResourcesResponse m = DRA__NODE_PREPARE_RESOURCES_RESPONSE__INIT;
                m.n_claims = n;
                m.claims = arena_alloc(a, n * sizeof(*m.claims));
                for (size_t i = 0; i < n; i++)
                        m.claims[i] = prepared_entry(&results[i], a);
                dra_messages_pack(&m.base, a, out);
        } else {
                Dra__NodeUnprepareResourcesResponse m = DRA__NODE_UNPREPARE_RESOURCES_RESPONSE__INIT;
                m.n_claims = n;
                m.claims = arena_alloc(a, n * sizeof(*m.claims));
                for (size_t i = 0; i < n; i++)
                        m.claims[i] = unprepared_entry(&results[i], a);
                dra_messages_pack(&m.base, a, out);
        }
}
