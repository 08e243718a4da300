/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_settings.h"

#include <string.h>

#include "base/str.h"

enum { KEY_MAX = 64, VALUE_MAX = 512 };

/* Keys of the driver, and the reason. All other keys are in the IMEX guide ("Configuration file options"). */
static const struct owned {
        const char *key, *why;
} owned[] = {
        { "BIND_INTERFACE_IP", "nvidia-imex listens on the pod's address" },
        { "DAEMONIZE", "nvidia-imex stays a child of the daemon" },
        { "IMEX_CMD_BIND_INTERFACE_IP", "the command service listens on the pod's address" },
        { "IMEX_CMD_ENABLED", "the driver asks nvidia-imex for its state by the command service" },
        { "IMEX_CMD_PORT", "the network policy opens port 50005" },
        { "IMEX_CMD_UNIX_DOMAIN_PATH", "the driver asks nvidia-imex for its state by port 50005" },
        { "IMEX_NODE_CONFIG_FILE", "the driver writes the list of nodes" },
        { "LOG_FILE_NAME", "the log of nvidia-imex is the log of the pod" },
        { "LOG_LEVEL", "the driver reads the node's id from lines of level 4" },
        { "LOG_USE_SYSLOG", "the log of nvidia-imex is the log of the pod" },
        { "NETWORK_INTERFACE", "nvidia-imex listens on the pod's address" },
        { "SERVER_PORT", "the driver chooses the port, and the network policy follows" },
};

static int imex_settings_check(const struct jd_pair *p, struct err *e) {
        static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

        if (!*p->key || strlen(p->key) > KEY_MAX || p->key[strspn(p->key, chars)] ||
            (*p->key >= '0' && *p->key <= '9'))
                return err_set(e, ERR_INVALID, 0,
                               "\"%.*s\" is not a key of nvidia-imex: want capital letters, digits and _",
                               KEY_MAX, p->key);
        for (size_t i = 0; i < ARRAY_LEN(owned); i++)
                if (streq(p->key, owned[i].key))
                        return err_set(e, ERR_INVALID, 0, "%s belongs to the driver: %s; leave it out",
                                       p->key, owned[i].why);
        if (strlen(p->value) > VALUE_MAX)
                return err_set(e, ERR_INVALID, 0, "the value of %s is longer than %d characters", p->key,
                               VALUE_MAX);
        for (const char *c = p->value; *c; c++)
                if (*c < ' ' || *c > '~')
                        return err_set(e, ERR_INVALID, 0,
                                       "the value of %s has a line break, or a character that is not ASCII",
                                       p->key);
        /* The kubelet expands it in a container's environment. */
        if (strstr(p->value, "$("))
                return err_set(e, ERR_INVALID, 0, "the value of %s contains \"$(\"", p->key);
        /* The list also contains slots without a node, so a quorum of all nodes is never reached. */
        if (streq(p->key, "IMEX_WAIT_FOR_QUORUM") && streq(p->value, "FULL"))
                return err_set(e, ERR_INVALID, 0,
                               "IMEX_WAIT_FOR_QUORUM=FULL waits for the slots of nodes that are not in the "
                               "domain; use RECOVERY or NONE");
        return 0;
}

int imex_settings_parse(const char *text, struct arena *a, struct imex_settings *ret, struct err *e) {
        struct parsed {
                struct jd_pair *pairs;
                size_t n_pairs;
        };
        static const struct jd_field fields[] = { JD_MAP(struct parsed, "config", pairs), JD_END };
        struct parsed parsed = { 0 };
        _cleanup_(buf_done) struct buf wrapped = BUF_INIT(128 * 1024);

        *ret = (struct imex_settings){ 0 };
        if (!*text)
                return 0;
        buf_addf(&wrapped, "{\"config\":%s}", text);
        if (wrapped.failed)
                return err_set(e, ERR_INVALID, 0, "the settings are longer than 128 KiB");
        if (jd_decode_strict(fields, (struct str){ buf_str(&wrapped), wrapped.n }, a, &parsed, e) < 0)
                return -1;
        for (size_t i = 0; i < parsed.n_pairs; i++) {
                if (imex_settings_check(&parsed.pairs[i], e) < 0)
                        return -1;
                if (jd_pair_get(parsed.pairs, i, parsed.pairs[i].key))
                        return err_set(e, ERR_INVALID, 0, "%s is set twice", parsed.pairs[i].key);
        }
        *ret = (struct imex_settings){ parsed.pairs, parsed.n_pairs };
        return 0;
}
