/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_files.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sha256.h"

#define NAME_PREFIX "compute-domain-daemon-"
#define BLOCK_BEGIN "# begin of the IMEX domain's names (" NAME_PREFIX "*)"
#define BLOCK_END "# end of the IMEX domain's names"
#define UNUSED_SLOT_IP "127.0.0.2"
#define INFIX_MAX 32

/* The keys in the order of NVIDIA's own file. NULL: the value is in struct imex_config. */
static const struct jd_pair defaults[] = {
        { "LOG_LEVEL", "4" },
        { "LOG_FILE_NAME", "" },
        { "STATS_FILE_NAME", "/var/log/nvidia-imex-stats.log" },
        { "LOG_APPEND_TO_LOG", "0" },
        { "LOG_FILE_MAX_SIZE", "1024" },
        { "LOG_MAX_ROTATE_COUNT", "10" },
        { "LOG_USE_SYSLOG", "0" },
        { "DAEMONIZE", "0" },
        { "BIND_INTERFACE_IP", "" },
        { "SERVER_PORT", NULL },
        { "IMEX_NODE_CONFIG_FILE", NULL },
        { "NETWORK_INTERFACE", "" },
        { "IMEX_WAIT_FOR_QUORUM", "RECOVERY" },
        { "IMEX_ENABLE_AUTH_ENCRYPTION", "0" },
        { "IMEX_AUTH_ENCRYPTION_MODE", "SSL_TLS" },
        { "IMEX_AUTH_SOURCE", "" },
        { "IMEX_SERVER_KEY", "" },
        { "IMEX_SERVER_CERT", "" },
        { "IMEX_SERVER_CERT_AUTH", "" },
        { "IMEX_CLIENT_KEY", "" },
        { "IMEX_CLIENT_CERT", "" },
        { "IMEX_CLIENT_CERT_AUTH", "" },
        { "IMEX_SECURITY_TARGET_OVERRIDE", "" },
        { "IMEX_GSS_SERVICE_NAME", "host" },
        { "IMEX_GSS_TIMEOUT_SEC", "30" },
        { "IMEX_GSS_RETRY_INTERVAL_SEC", "5" },
        { "IMEX_GSS_SEC_CONTEXT_LIFETIME_SEC", "-1" },
        { "IMEX_GSS_SHUTDOWN_ON_FAILURE", "0" },
        { "IMEX_CMD_ENABLED", "1" },
        { "IMEX_CMD_BIND_INTERFACE_IP", NULL },
        { "IMEX_CMD_PORT", "50005" },
        { "IMEX_CMD_UNIX_DOMAIN_PATH", "" },
        { "IMEX_NODE_DISCONNECTED_GRACE_TIME", "-1" },
};

void imex_config_render(const struct imex_config *c, struct buf *out) {
        static const struct imex_settings none;
        const struct imex_settings *s = c->settings ?: &none;

        for (size_t i = 0; i < ARRAY_LEN(defaults); i++) {
                const char *key = defaults[i].key, *value = jd_pair_get(s->pairs, s->n_pairs, key);

                if (streq(key, "SERVER_PORT"))
                        buf_addf(out, "SERVER_PORT=%lld\n", (long long)c->domain.port);
                else if (streq(key, "IMEX_NODE_CONFIG_FILE"))
                        buf_addf(out, "IMEX_NODE_CONFIG_FILE=%s\n", c->nodes_file);
                else if (streq(key, "IMEX_CMD_BIND_INTERFACE_IP"))
                        buf_addf(out, "IMEX_CMD_BIND_INTERFACE_IP=%s\n", c->cmd_bind_ip);
                else
                        buf_addf(out, "%s=%s\n", key, value ?: defaults[i].value);
        }
        for (size_t i = 0; i < s->n_pairs; i++) {
                bool known = false;

                for (size_t j = 0; j < ARRAY_LEN(defaults); j++)
                        known = known || streq(s->pairs[i].key, defaults[j].key);
                if (!known)
                        buf_addf(out, "%s=%s\n", s->pairs[i].key, s->pairs[i].value);
        }
}

void imex_slot_name(const char *infix, unsigned i, struct buf *out) {
        buf_adds(out, NAME_PREFIX);
        if (infix && *infix)
                buf_addf(out, "%s-", infix);
        buf_addf(out, "%04u", i);
}

void imex_infix(const char *domain_uid, char ret[static IMEX_INFIX_SIZE]) {
        unsigned char sum[SHA256_SIZE];

        sha256(domain_uid, strlen(domain_uid), sum);
        for (unsigned i = 0; i < 5; i++)
                snprintf(ret + 2 * i, 3, "%02x", sum[i]);
}

bool imex_infix_valid(const char *infix) {
        return strlen(infix) <= INFIX_MAX &&
               infix[strspn(infix, "abcdefghijklmnopqrstuvwxyz0123456789")] == '\0';
}

void imex_nodes_render(const char *infix, unsigned max_nodes, struct buf *out) {
        for (unsigned i = 0; i < max_nodes; i++) {
                imex_slot_name(infix, i, out);
                buf_addc(out, '\n');
        }
}

/* A line of an earlier rendering, or of the Go driver: a marker, or an entry with a slot's name. */
static bool imex_files_is_ours(struct str line) {
        struct str t = str_trim(line);

        return str_eq(t, STR(BLOCK_BEGIN)) || str_eq(t, STR(BLOCK_END)) ||
               (t.n && t.p[0] != '#' && memmem(t.p, t.n, NAME_PREFIX, sizeof NAME_PREFIX - 1));
}

static bool is_address(const char *s) {
        unsigned char a[sizeof(struct in6_addr)];

        return inet_pton(AF_INET, s, a) == 1 || inet_pton(AF_INET6, s, a) == 1;
}

static void add_entry(const char *infix, unsigned slot, const char *ip, struct buf *out) {
        buf_addf(out, "%s\t", ip);
        imex_slot_name(infix, slot, out);
        buf_addc(out, '\n');
}

/* *ret has the address of each slot, NULL where unused. The addresses are borrowed. */
static int fill_slots(unsigned max_nodes, const struct imex_peer *peers, size_t n, const char ***ret,
                      struct err *e) {
        _cleanup_(freep) const char **slots = xnew_n(const char *, max_nodes + 1);
        _cleanup_(freep) bool *used = xnew_n(bool, max_nodes + 1);

        for (size_t i = 0; i < n; i++) {
                const struct imex_peer *p = &peers[i];

                if (p->index < 0 || p->index >= (int64_t)max_nodes)
                        return err_set(e, ERR_INVALID, 0,
                                       "node '%s' has index %lld, but an IMEX domain has only %u slots",
                                       str_or(p->node, "?"), (long long)p->index, max_nodes);
                if (used[p->index])
                        return err_set(e, ERR_INVALID, 0,
                                       "node '%s' has index %lld, which another node also has",
                                       str_or(p->node, "?"), (long long)p->index);
                used[p->index] = true;
                if (!p->ip || !*p->ip)
                        continue;
                if (!is_address(p->ip))
                        return err_set(e, ERR_INVALID, 0, "node '%s' has '%.60s' for an IP address",
                                       str_or(p->node, "?"), p->ip);
                slots[p->index] = p->ip;
        }
        *ret = TAKE(slots);
        return 0;
}

int imex_hosts_render(struct str current, const struct imex_members *m, unsigned max_nodes, struct buf *out,
                      struct err *e) {
        _cleanup_(freep) const char **slots = NULL;
        int64_t own_index = m->own_index;
        struct str line;

        if (fill_slots(max_nodes, m->peers, m->n_peers, &slots, e) < 0)
                return -1;
        if (own_index < 0 || own_index >= (int64_t)max_nodes || !slots[own_index])
                return err_set(e, ERR_INVALID, 0, "this node is not among the members (index %lld)",
                               (long long)own_index);

        while (str_next_line(&current, &line)) {
                if (imex_files_is_ours(line))
                        continue;
                buf_add(out, line.p, line.n);
                buf_addc(out, '\n');
        }
        buf_adds(out, BLOCK_BEGIN "\n");
        add_entry(m->infix, (unsigned)own_index, slots[own_index], out);
        for (unsigned i = 0; i < max_nodes; i++)
                if (i != own_index && slots[i])
                        add_entry(m->infix, i, slots[i], out);
        for (unsigned i = 0; i < max_nodes; i++)
                if (!slots[i])
                        add_entry(m->infix, i, UNUSED_SLOT_IP, out);
        buf_adds(out, BLOCK_END "\n");
        if (out->failed)
                return err_set(e, ERR_INVALID, EFBIG, "the hosts file would be too large");
        return 0;
}

int imex_hosts_write(const char *path, struct str text, struct err *e) {
        _cleanup_(closep) int fd = open(path, O_WRONLY | O_CLOEXEC);
        _cleanup_(freep) char *padded = NULL;
        struct stat st;
        ssize_t k;

        if (fd < 0)
                return err_errno(e, errno, "open '%s'", path);
        if (fstat(fd, &st) < 0)
                return err_errno(e, errno, "stat '%s'", path);
        /* Until the file is truncated to the new length, blank lines cover the rest of a longer old text. */
        size_t n = st.st_size > (off_t)text.n && st.st_size <= (off_t)(2 * IMEX_HOSTS_MAX)
                           ? (size_t)st.st_size
                           : text.n;
        padded = xmalloc(n + 1);
        memset(padded, '\n', n);
        if (text.n)
                memcpy(padded, text.p, text.n);
        do
                k = pwrite(fd, padded, n, 0);
        while (k < 0 && errno == EINTR);
        if (k < 0)
                return err_errno(e, errno, "write '%s'", path);
        if ((size_t)k < n)
                return err_set(e, ERR_RETRY, ENOSPC, "write '%s': only %zd of %zu bytes were written", path,
                               k, n);
        if (ftruncate(fd, (off_t)text.n) < 0)
                return err_errno(e, errno, "cut '%s'", path);
        return 0;
}
