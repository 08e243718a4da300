/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "imex/imex_command.h"

static void the_reason_why_imex_cannot_be_queried_is_named(void **state) {
        static const struct {
                const char *config, *remedy;
        } rows[] = {
                { "", "IMEX_CMD_ENABLED=1" },
                { "LOG_LEVEL=4\nSERVER_PORT=50000\n",
                  "IMEX_CMD_ENABLED=1" }, /* the installed configuration */
                { "IMEX_CMD_ENABLED=0\nIMEX_CMD_UNIX_DOMAIN_PATH=/etc/nvidia-imex/imex_ctrl.sock\n",
                  "IMEX_CMD_ENABLED=1" },
                { "#IMEX_CMD_ENABLED=1\nIMEX_CMD_PORT=50005\n", "IMEX_CMD_ENABLED=1" },
                { "IMEX_CMD_ENABLED=1\nIMEX_CMD_PORT=50005\n", "IMEX_CMD_UNIX_DOMAIN_PATH" },
                { "IMEX_CMD_ENABLED=1\nIMEX_CMD_PORT=50005\nIMEX_CMD_BIND_INTERFACE_IP=\n",
                  "IMEX_CMD_UNIX_DOMAIN_PATH" },
                { "IMEX_CMD_ENABLED=1\nIMEX_CMD_BIND_INTERFACE_IP=127.0.0.1\n", "IMEX_CMD_UNIX_DOMAIN_PATH" },
                { "IMEX_CMD_ENABLED=1\nIMEX_CMD_BIND_INTERFACE_IP=::1\n", "IMEX_CMD_UNIX_DOMAIN_PATH" },
                { "IMEX_CMD_ENABLED=1\nIMEX_CMD_BIND_INTERFACE_IP=10.0.0.1\nIMEX_CMD_BIND_INTERFACE_IP=127.1."
                  "2.3",
                  "IMEX_CMD_UNIX_DOMAIN_PATH" },
                { "IMEX_CMD_ENABLED=1\nIMEX_CMD_UNIX_DOMAIN_PATH=/etc/nvidia-imex/imex_ctrl.sock\n", NULL },
                { " IMEX_CMD_ENABLED = 1 \r\nIMEX_CMD_BIND_INTERFACE_IP=10.0.0.1\r\n", NULL },
                { "IMEX_CMD_ENABLED=1\nIMEX_CMD_BIND_INTERFACE_IP=fd00::1", NULL },
                /* one byte more than the longest address */
                { "IMEX_CMD_ENABLED=1\nIMEX_CMD_BIND_INTERFACE_IP="
                  "0000:0000:0000:0000:0000:ffff:127.127.127.1277",
                  NULL },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                const char *why = imex_command_unreachable(str_from(rows[i].config));
                if (!why != !rows[i].remedy || (why && !strstr(why, rows[i].remedy)))
                        fail_msg("row %zu: %s", i, why ? why : "reachable");
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(
                the_reason_why_imex_cannot_be_queried_is_named) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
