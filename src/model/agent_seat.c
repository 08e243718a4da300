/* SPDX-License-Identifier: Apache-2.0 */
#include "model/agent_seat.h"

#include <stdio.h>

void agent_seat_render(const char *clique_id, const char *domain_uid, int64_t index, int64_t epoch,
                       struct buf *out) {
        buf_addf(out, "%s/%s/%lld/%lld", clique_id, domain_uid, (long long)index, (long long)epoch);
}

static bool take_text(struct str *rest, char *to, size_t size) {
        struct str part;
        return str_next_field(rest, '/', &part) && part.n && part.n < size &&
               snprintf(to, size, "%.*s", (int)part.n, part.p) == (int)part.n;
}

static bool take_number(struct str *rest, int64_t *ret) {
        struct str part;
        return str_next_field(rest, '/', &part) && str_to_i64(part, ret) && *ret >= 0;
}

bool agent_seat_parse(const char *text, struct agent_seat *ret) {
        struct str rest = str_from(str_or(text, ""));
        *ret = (struct agent_seat){ 0 };
        return take_text(&rest, ret->clique_id, sizeof ret->clique_id) &&
               take_text(&rest, ret->domain_uid, sizeof ret->domain_uid) && str_is_uuid(ret->domain_uid) &&
               take_number(&rest, &ret->index) && take_number(&rest, &ret->epoch) && !rest.n;
}

void agent_epochs_render(const int64_t *epochs, size_t n, struct buf *out) {
        for (size_t i = 0; i < n; i++)
                buf_addf(out, "%s%lld", i ? "," : "", (long long)epochs[i]);
}

size_t agent_epochs_parse(const char *text, struct arena *a, int64_t **ret) {
        struct str rest = str_from(str_or(text, "")), part;
        size_t n = 0;
        *ret = arena_alloc(a, (rest.n + 1) * sizeof **ret);
        while (rest.n && str_next_field(&rest, ',', &part))
                if (str_to_i64(part, &(*ret)[n]))
                        n++;
        return n;
}
