/* SPDX-License-Identifier: Apache-2.0 */
#include "model/clique.h"

#include "api/names.h"

static const struct jd_field f_node[] = { JD_STR(struct domain_node, "nodeName", node, .required = true),
                                          JD_STR(struct domain_node, "ipAddress", ip),
                                          JD_STR(struct domain_node, "cliqueID", clique_id),
                                          JD_STR(struct domain_node, "status", status),
                                          JD_INT(struct domain_node, "index", index),
                                          JD_END };
const struct jd_field clique_fields[] = {
        JD_OBJ(struct clique, "metadata", o.meta, kube_f_meta),
        JD_STR(struct clique, "metadata>labels>" CD_LABEL, domain_uid),
        JD_STR(struct clique, "metadata>labels>" CD_LABEL_CLIQUE, clique_id),
        JD_LIST(struct clique, "daemons", nodes, struct domain_node, f_node),
        JD_END,
};

void clique_object_name(const char *domain_uid, const char *clique_id, struct buf *out) {
        buf_addf(out, "%s.%s", domain_uid, clique_id);
}
