/* SPDX-License-Identifier: Apache-2.0 */
#include "model/fabric.h"

#include <string.h>

#include "api/names.h"
#include "base/sha256.h"

/* The UID identifies the owner, so its kind needs no comparison. */
static const struct jd_field f_owner[] = { JD_STR(struct fabric_owner, "kind", kind, .not_compared = true),
                                           JD_STR(struct fabric_owner, "namespace", ns),
                                           JD_STR(struct fabric_owner, "name", name),
                                           JD_STR(struct fabric_owner, "uid", uid, .required = true),
                                           JD_END };
const struct jd_field fabric_channel_fields[] = {
        JD_INT(struct fabric_channel, "id", id, .required = true),
        JD_OBJ(struct fabric_channel, "owner", owner, f_owner, .required = true),
        JD_TIME(struct fabric_channel, "releasing", releasing),
        JD_END,
};
static const struct jd_field f_assignment[] = {
        JD_STR(struct fabric_assignment, "node", node, .required = true),
        JD_INT(struct fabric_assignment, "index", index, .required = true),
        JD_INT(struct fabric_assignment, "epoch", epoch),
        JD_STR(struct fabric_assignment, "state", state, .omit_empty = true),
        JD_STR(struct fabric_assignment, "claimUID", claim, .omit_empty = true),
        JD_STR(struct fabric_assignment, "bootID", boot_id, .omit_empty = true),
        JD_STR(struct fabric_assignment, "ip", ip, .omit_empty = true),
        JD_END,
};
const struct jd_field fabric_removal_fields[] = {
        JD_STR(struct fabric_removal, "node", node, .required = true),
        JD_STR(struct fabric_removal, "podUID", pod_uid, .required = true),
        JD_END,
};
const struct jd_field fabric_domain_fields[] = {
        JD_OBJ(struct fabric_domain, "owner", owner, f_owner, .required = true),
        JD_INLINE(struct fabric_domain, imex, imex_domain_fields),
        JD_LIST(struct fabric_domain, "assignments", assignments, struct fabric_assignment, f_assignment),
        JD_STR(struct fabric_domain, "freed", freed, .omit_empty = true),
        JD_END,
};
/* The time of a condition follows from its status, so it needs no comparison. */
const struct jd_field fabric_condition_fields[] = { JD_STR(struct condition, "type", type, .required = true),
                                                    JD_STR(struct condition, "status", status),
                                                    JD_STR(struct condition, "reason", reason),
                                                    JD_STR(struct condition, "message", message),
                                                    JD_TIME(struct condition, "lastTransitionTime", since,
                                                            .not_compared = true),
                                                    JD_END };
/* not_compared: metadata, and the members that rules/assignment decides. It reports their changes itself. */
const struct jd_field compute_domain_fabric_fields[] = {
        JD_OBJ(struct compute_domain_fabric, "metadata", o.meta, kube_f_meta, .not_compared = true),
        JD_STR(struct compute_domain_fabric, "metadata>annotations>" CD_ANNOTATION_FABRIC_EMPTY, empty_since),
        JD_STR(struct compute_domain_fabric, "rack", rack),
        JD_INT(struct compute_domain_fabric, "nodes", nodes),
        JD_INT(struct compute_domain_fabric, "domainCount", domain_count),
        JD_INT(struct compute_domain_fabric, "channelsInUse", channels_in_use),
        JD_STRS(struct compute_domain_fabric, "members", members),
        JD_STR(struct compute_domain_fabric, "tableOf", table_of),
        JD_INT(struct compute_domain_fabric, "channelCount", channel_count),
        JD_STR(struct compute_domain_fabric, "imexVersion", imex_version),
        JD_INT(struct compute_domain_fabric, "next", next),
        JD_INT(struct compute_domain_fabric, "epoch", epoch, .not_compared = true),
        JD_LIST(struct compute_domain_fabric, "conditions", conditions, struct condition,
                fabric_condition_fields),
        JD_LIST(struct compute_domain_fabric, "domains", domains, struct fabric_domain, fabric_domain_fields,
                .not_compared = true),
        JD_INT(struct compute_domain_fabric, "recount", recount, .not_compared = true),
        JD_LIST(struct compute_domain_fabric, "removals", removals, struct fabric_removal,
                fabric_removal_fields, .not_compared = true),
        JD_LIST(struct compute_domain_fabric, "channels", channels, struct fabric_channel,
                fabric_channel_fields),
        JD_END,
};

void fabric_standing_uid(const char *clique_id, char ret[static 37]) {
        unsigned char sum[SHA256_SIZE];
        sha256(clique_id, strlen(clique_id), sum);
        sum[6] = (unsigned char)(0x80 | (sum[6] & 0x0f));
        sum[8] = (unsigned char)(0x80 | (sum[8] & 0x3f));
        static const char hex[] = "0123456789abcdef";
        for (size_t i = 0; i < 16; i++) {
                if (i == 4 || i == 6 || i == 8 || i == 10)
                        *ret++ = '-';
                *ret++ = hex[sum[i] >> 4];
                *ret++ = hex[sum[i] & 15];
        }
        *ret = '\0';
}

bool fabric_domain_is_standing(const struct fabric_domain *d) {
        return streq(d->owner.kind, CD_FABRIC_KIND);
}

bool fabric_is_own(const struct compute_domain_fabric *f) {
        return streq(f->table_of, f->o.meta.uid);
}

const struct fabric_domain *fabric_domain_at(const struct compute_domain_fabric *f, const char *owner_uid) {
        for (size_t i = 0; i < f->n_domains; i++)
                if (streq(f->domains[i].owner.uid, owner_uid))
                        return &f->domains[i];
        return NULL;
}

const struct fabric_domain *fabric_domain_of(const struct compute_domain_fabric *f, const char *owner_uid) {
        return fabric_is_own(f) ? fabric_domain_at(f, owner_uid) : NULL;
}

bool fabric_is_active(const struct fabric_assignment *a) {
        return fabric_state_decode(a->state) == FABRIC_ACTIVE;
}

bool fabric_is_reserved(const struct fabric_assignment *a) {
        return fabric_state_decode(a->state) == FABRIC_RESERVED;
}

bool fabric_is_leaving(const struct fabric_assignment *a) {
        enum fabric_state state = fabric_state_decode(a->state);

        return state == FABRIC_LEAVING || state == FABRIC_ENDING;
}

bool fabric_is_ending(const struct fabric_assignment *a) {
        return fabric_state_decode(a->state) == FABRIC_ENDING;
}

const struct fabric_assignment *fabric_assignment_of(const struct fabric_domain *d, const char *node) {
        for (size_t i = 0; i < d->n_assignments; i++)
                if (streq(d->assignments[i].node, node))
                        return &d->assignments[i];
        return NULL;
}

const struct fabric_channel *fabric_channel_of(const struct compute_domain_fabric *f, const char *owner_uid) {
        const struct fabric_channel *ret = NULL;
        for (size_t i = 0; fabric_is_own(f) && i < f->n_channels; i++)
                if (streq(f->channels[i].owner.uid, owner_uid) && (!ret || ret->releasing))
                        ret = &f->channels[i];
        return ret;
}
