/* SPDX-License-Identifier: Apache-2.0 */
#include "model/clique.h"

#include "api/names.h"

static const struct jd_field f_seat[] = { JD_STR(struct seat, "nodeName", node, .required = true),
                                          JD_STR(struct seat, "ipAddress", ip),
                                          JD_STR(struct seat, "cliqueID", clique_id),
                                          JD_STR(struct seat, "status", status),
                                          JD_INT(struct seat, "index", index),
                                          JD_STR(struct seat, "bootID", boot_id),
                                          JD_END };
static const struct jd_field f_owner[] = { JD_STR(struct clique_owner, "uid", uid), JD_END };
const struct jd_field clique_fields[] = {
        JD_OBJ(struct clique, "metadata", o.meta, kube_f_meta),
        JD_STR(struct clique, "metadata>labels>" CD_LABEL, domain_uid),
        JD_STR(struct clique, "metadata>labels>" CD_LABEL_CLIQUE, imex.clique_id),
        JD_STR(struct clique, "metadata>annotations>" CD_ANNOTATION_FREED, imex.freed),
        JD_STR(struct clique, "metadata>annotations>" CD_ANNOTATION_INFIX, imex.infix),
        JD_STR(struct clique, "metadata>annotations>" CD_ANNOTATION_NUM_NODES, imex.num_nodes),
        JD_LIST(struct clique, "metadata>ownerReferences", owners, struct clique_owner, f_owner),
        { .name = "daemons",
          .type = JD_T_LIST,
          .off = offsetof(struct clique, imex.seats),
          .count_off = offsetof(struct clique, imex.n_seats),
          .sub = f_seat,
          .size = sizeof(struct seat) },
        JD_END,
};

void clique_object_name(const char *domain_uid, const char *clique_id, struct buf *out) {
        buf_addf(out, "%s.%s", domain_uid, clique_id);
}
