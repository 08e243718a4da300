/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file. The check is stricter than that of the real daemon, as far as known: an unknown key
 * or a value of the wrong type ends the start, because it can only be a mistake in the file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imexd.h"

enum kind { KIND_TEXT, KIND_PATH, KIND_SWITCH, KIND_NUMBER };

static const struct {
        const char *key;
        enum kind kind;
} known[] = {
        { "LOG_LEVEL", KIND_NUMBER },
        { "LOG_FILE_NAME", KIND_PATH },
        { "STATS_FILE_NAME", KIND_PATH },
        { "LOG_APPEND_TO_LOG", KIND_SWITCH },
        { "LOG_FILE_MAX_SIZE", KIND_NUMBER },
        { "LOG_MAX_ROTATE_COUNT", KIND_NUMBER },
        { "LOG_USE_SYSLOG", KIND_SWITCH },
        { "DAEMONIZE", KIND_SWITCH },
        { "BIND_INTERFACE_IP", KIND_TEXT },
        { "SERVER_PORT", KIND_NUMBER },
        { "IMEX_NODE_CONFIG_FILE", KIND_PATH },
        { "NETWORK_INTERFACE", KIND_TEXT },
        { "IMEX_WAIT_FOR_QUORUM", KIND_TEXT },
        { "IMEX_ENABLE_AUTH_ENCRYPTION", KIND_SWITCH },
        { "IMEX_AUTH_ENCRYPTION_MODE", KIND_TEXT },
        { "IMEX_AUTH_SOURCE", KIND_TEXT },
        { "IMEX_SERVER_KEY", KIND_TEXT },
        { "IMEX_SERVER_CERT", KIND_TEXT },
        { "IMEX_SERVER_CERT_AUTH", KIND_TEXT },
        { "IMEX_CLIENT_KEY", KIND_TEXT },
        { "IMEX_CLIENT_CERT", KIND_TEXT },
        { "IMEX_CLIENT_CERT_AUTH", KIND_TEXT },
        { "IMEX_SECURITY_TARGET_OVERRIDE", KIND_TEXT },
        { "IMEX_GSS_SERVICE_NAME", KIND_TEXT },
        { "IMEX_GSS_TIMEOUT_SEC", KIND_NUMBER },
        { "IMEX_GSS_RETRY_INTERVAL_SEC", KIND_NUMBER },
        { "IMEX_GSS_SEC_CONTEXT_LIFETIME_SEC", KIND_NUMBER },
        { "IMEX_GSS_SHUTDOWN_ON_FAILURE", KIND_SWITCH },
        { "IMEX_CMD_ENABLED", KIND_SWITCH },
        { "IMEX_CMD_BIND_INTERFACE_IP", KIND_TEXT },
        { "IMEX_CMD_PORT", KIND_NUMBER },
        { "IMEX_CMD_UNIX_DOMAIN_PATH", KIND_PATH },
        { "IMEX_NODE_DISCONNECTED_GRACE_TIME", KIND_NUMBER },
};

static bool is_number(const char *text) {
        char *end;

        errno = 0;
        (void)strtol(text, &end, 10);
        return !errno && *text && !*end;
}

static int check_pair(const struct conf_pair *pair, char *why, size_t n_why) {
        for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
                bool fine = true;

                if (strcmp(known[i].key, pair->key) != 0)
                        continue;
                if (*pair->value && known[i].kind == KIND_SWITCH)
                        fine = !strcmp(pair->value, "0") || !strcmp(pair->value, "1");
                else if (*pair->value && known[i].kind == KIND_NUMBER)
                        fine = is_number(pair->value);
                else if (known[i].kind == KIND_PATH)
                        fine = strlen(pair->value) <= 256;
                if (!fine)
                        snprintf(why, n_why, "Invalid value '%.80s' for config option %s", pair->value,
                                 pair->key);
                return fine ? 0 : -1;
        }
        snprintf(why, n_why, "Unknown config option %.80s", pair->key);
        return -1;
}

static bool port_ok(long port) {
        return port > 0 && port < 65536;
}

int config_check(struct imexd *d, const char *path, char *why, size_t n_why) {
        const struct conf *c = &d->config;
        const char *quorum;
        long port;

        for (size_t i = 0; i < c->n; i++)
                if (check_pair(&c->v[i], why, n_why) < 0)
                        return -1;
        port = conf_number(c, "SERVER_PORT", 50000);
        quorum = conf_text(c, "IMEX_WAIT_FOR_QUORUM", "RECOVERY");
        if (!port_ok(port) ||
            (conf_find(c, "IMEX_CMD_PORT") && !port_ok(conf_number(c, "IMEX_CMD_PORT", 50005)))) {
                snprintf(why, n_why, "Invalid port in %s", path);
                return -1;
        }
        if (conf_number(c, "IMEX_ENABLE_AUTH_ENCRYPTION", 0)) {
                snprintf(why, n_why, "Authentication and encryption are not part of this stand-in");
                return -1;
        }
        d->server_port = (uint16_t)port;
        d->grace_time = conf_number(c, "IMEX_NODE_DISCONNECTED_GRACE_TIME", -1);
        d->interface = conf_text(c, "NETWORK_INTERFACE", "");
        if (!strcmp(quorum, "NONE")) {
                d->quorum = QUORUM_NONE;
        } else if (!strcmp(quorum, "RECOVERY")) {
                d->quorum = QUORUM_RECOVERY;
        } else if (!strcmp(quorum, "FULL")) {
                d->quorum = QUORUM_FULL;
        } else {
                snprintf(why, n_why, "Invalid value '%.80s' for config option IMEX_WAIT_FOR_QUORUM", quorum);
                return -1;
        }
        return 0;
}
