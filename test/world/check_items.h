/* SPDX-License-Identifier: Apache-2.0 */
/* check_items: the list to which tests of check-node add items. Include it after cmocka.h. */
#pragma once

#include "node/check_list.h"

static struct check_list list;

static int begin(void **state) {
        check_list_init(&list);
        return 0;
}

static int end(void **state) {
        check_list_done(&list);
        return 0;
}
