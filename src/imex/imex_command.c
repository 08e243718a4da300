/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_command.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/mem.h"

struct command {
        struct str enabled, address, socket;
};

static void imex_command_read_config(struct str text, struct command *ret) {
        const struct {
                struct str key, *value;
        } known[] = {
                { STR("IMEX_CMD_ENABLED"), &ret->enabled },
                { STR("IMEX_CMD_BIND_INTERFACE_IP"), &ret->address },
                { STR("IMEX_CMD_UNIX_DOMAIN_PATH"), &ret->socket },
        };
        struct str line, key;
        *ret = (struct command){ 0 };
        while (str_next_line(&text, &line)) {
                if (!str_next_field(&line, '=', &key))
                        continue;
                for (size_t i = 0; i < ARRAY_LEN(known); i++)
                        if (str_eq(str_trim(key), known[i].key))
                                *known[i].value = str_trim(line);
        }
}

static bool is_loopback(struct str s) {
        char text[INET6_ADDRSTRLEN] = "";
        struct in_addr four;
        struct in6_addr six;
        if (s.n >= sizeof text)
                return false;
        memcpy(text, s.p, s.n);
        if (inet_pton(AF_INET, text, &four) == 1)
                return ntohl(four.s_addr) >> 24 == 127;
        return inet_pton(AF_INET6, text, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

const char *imex_command_unreachable(struct str config) {
        struct command c;
        imex_command_read_config(config, &c);
        if (!c.enabled.n || str_eq(c.enabled, STR("0")))
                return "its command service is off: set IMEX_CMD_ENABLED=1 and IMEX_CMD_UNIX_DOMAIN_PATH in "
                       "its configuration, and restart it";
        if (c.socket.n)
                return NULL;
        if (!c.address.n || is_loopback(c.address))
                return "its command service has no socket, and no address that a pod reaches: set "
                       "IMEX_CMD_UNIX_DOMAIN_PATH in its configuration, and restart it";
        return NULL;
}
