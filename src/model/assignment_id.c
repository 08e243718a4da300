/* SPDX-License-Identifier: Apache-2.0 */
#include "model/assignment_id.h"

#include <stdio.h>

void assignment_id_render(const char *clique_id, const char *domain_uid, int64_t index, int64_t epoch,
                          struct buf *out) {
        buf_addf(out, "%s/%s/%lld/%lld", clique_id, domain_uid, (long long)index, (long long)epoch);
}

static bool assignment_id_take_text(struct str *rest, char *to, size_t size) {
        struct str part;
        return str_next_field(rest, '/', &part) && part.n && part.n < size &&
               snprintf(to, size, "%.*s", (int)part.n, part.p) == (int)part.n;
}

static bool take_number(struct str *rest, int64_t *ret) {
        struct str part;
        return str_next_field(rest, '/', &part) && str_to_i64(part, ret) && *ret >= 0;
}

bool assignment_id_parse(const char *text, struct assignment_id *ret) {
        struct str rest = str_from(str_or(text, ""));
        *ret = (struct assignment_id){ 0 };
        return assignment_id_take_text(&rest, ret->clique_id, sizeof ret->clique_id) &&
               assignment_id_take_text(&rest, ret->domain_uid, sizeof ret->domain_uid) &&
               str_is_uuid(ret->domain_uid) && take_number(&rest, &ret->index) &&
               take_number(&rest, &ret->epoch) && !rest.n;
}
