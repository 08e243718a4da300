/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_domain.h"

const struct jd_field imex_domain_fields[] = {
        JD_STR(struct imex_domain, "infix", infix, .omit_empty = true),
        JD_INT(struct imex_domain, "slots", slots),
        JD_INT(struct imex_domain, "port", port),
        JD_END,
};
