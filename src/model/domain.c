/* SPDX-License-Identifier: Apache-2.0 */
#include "model/domain.h"

#include "api/names.h"
#include "api/states.h"

static const char *const domain_statuses[DOMAIN_STATUSES] = { "", "other", "NotReady", "Ready" };

enum domain_status domain_status_decode(const char *name) {
        return (enum domain_status)states_decode(domain_statuses, DOMAIN_STATUSES, DOMAIN_STATUS_OTHER, name);
}

const char *domain_status_name(enum domain_status s) {
        return domain_statuses[s];
}

const struct jd_field cd_node_fields[] = {
        JD_STR(struct domain_node, "name", node, .required = true),
        JD_STR(struct domain_node, "ipAddress", ip, .omit_empty = true),
        JD_STR(struct domain_node, "cliqueID", clique_id, .omit_empty = true),
        JD_STR(struct domain_node, "status", status),
        JD_INT(struct domain_node, "index", index),
        JD_END,
};
/* The time of a condition follows from its status, so it needs no comparison. */
const struct jd_field cd_condition_fields[] = {
        JD_STR(struct cd_condition, "type", type, .required = true),
        JD_STR(struct cd_condition, "status", status),
        JD_STR(struct cd_condition, "reason", reason),
        JD_STR(struct cd_condition, "message", message),
        JD_TIME(struct cd_condition, "lastTransitionTime", last_transition, .not_compared = true),
        JD_INT(struct cd_condition, "observedGeneration", observed_generation),
        JD_END,
};
static const struct jd_field f_channel[] = {
        JD_STR(struct cd_channel, "resourceClaimTemplate>name", template_name),
        JD_STR(struct cd_channel, "allocationMode", allocation_mode),
        JD_STR(struct cd_channel, "resourceClaim>name", claim_name),
        JD_STR(struct cd_channel, "sharedResourceClaimTemplate>name", shared_template_name),
        JD_END,
};
const struct jd_field compute_domain_fields[] = {
        JD_OBJ(struct compute_domain, "metadata", o.meta, kube_f_meta),
        JD_STRS(struct compute_domain, "metadata>finalizers", finalizers),
        JD_STR(struct compute_domain, "metadata>annotations>" CD_ANNOTATION_MODE, mode),
        JD_STR(struct compute_domain, "metadata>annotations>" CD_ANNOTATION_RACK_UID, rack_uid),
        JD_STR(struct compute_domain, "metadata>annotations>" CD_ANNOTATION_RACK_NODES, rack_nodes),
        JD_STR(struct compute_domain, "metadata>annotations>" CD_ANNOTATION_RACK_EMPTY, rack_empty),
        JD_STR(struct compute_domain, "metadata>annotations>" CD_ANNOTATION_START_GATE, start_gate),
        JD_STR(struct compute_domain, "metadata>labels>" CD_LABEL_RACK, rack),
        JD_INT(struct compute_domain, "spec>numNodes", num_nodes),
        JD_OPTOBJ(struct compute_domain, "spec>channel", channel, struct cd_channel, f_channel),
        JD_STR(struct compute_domain, "status>status", status),
        JD_LIST(struct compute_domain, "status>nodes", nodes, struct domain_node, cd_node_fields),
        JD_LIST(struct compute_domain, "status>conditions", conditions, struct cd_condition,
                cd_condition_fields),
        JD_INT(struct compute_domain, "status>nodesReady", nodes_ready),
        JD_INT(struct compute_domain, "status>nodesWanted", nodes_wanted),
        JD_INT(struct compute_domain, "status>cliques", cliques),
        JD_END,
};

bool domain_is_gated(const char *start_gate) {
        return start_gate && !streq(start_gate, "false");
}

bool domain_shares(const struct compute_domain *cd) {
        return cd->channel && (cd->channel->claim_name || cd->channel->shared_template_name);
}

bool domain_finalizer_is_foreign(const char *finalizer) {
        return !streq(finalizer, CD_FINALIZER) && !streq(finalizer, "orphan") &&
               !streq(finalizer, "foregroundDeletion");
}

bool domain_ends(const struct compute_domain *cd) {
        for (size_t i = 0; i < cd->n_finalizers; i++)
                if (domain_finalizer_is_foreign(cd->finalizers[i]))
                        return false;
        return cd->o.meta.deleted != 0;
}

bool domain_takes(const struct compute_domain *cd, const char *current) {
        return !domain_ends(cd) && (!cd->o.meta.deleted || streq(current, cd->o.meta.uid));
}
