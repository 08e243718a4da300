/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-imex-ctl: queries the command service of nvidia-imex.
 *
 * -N queries every node of the list at its own command port, as the real tool does. So a node whose command
 * service is bound to an address that others cannot reach is UNAVAILABLE with a row of I, although its
 * sessions work. As the real tool, it waits forever for a daemon that accepts the query and never answers:
 * callers need their own time-out. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "conf.h"
#include "nodes.h"

enum { CONNECT_MS = 2000, MONITOR_MS = 1000, MAX_ANSWER = NODES_MAX + 1024 };

struct options {
        const char *config, *unix_path, *ip;
        uint16_t port;
        char mode;
        int timeout_ms; /* -1: no time-out */
        bool json, hostname;
};

static int64_t now_ms(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void load_config(const struct options *o, struct conf *c) {
        int bad = conf_load(c, o->config);

        if (!bad)
                return;
        fprintf(stderr, "ERROR: failed to read config file %s: %s\n", o->config,
                bad < 0 ? strerror(-bad) : "a line without '='");
        exit(EXIT_FAILURE);
}

/* ---- one connection ---- */

/* Returns a connecting socket, or -1 with errno. */
static int start(const struct sockaddr_storage *to, socklen_t n) {
        int fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd >= 0 && connect(fd, (const struct sockaddr *)to, n) < 0 && errno != EINPROGRESS) {
                int error = errno;

                close(fd);
                errno = error;
                return -1;
        }
        return fd;
}

static bool unix_address(const char *path, struct sockaddr_storage *ret, socklen_t *ret_n) {
        struct sockaddr_un *local = (struct sockaddr_un *)(void *)ret;

        *ret = (struct sockaddr_storage){ .ss_family = AF_UNIX };
        if (strlen(path) >= sizeof(local->sun_path))
                return false;
        memcpy(local->sun_path, path, strlen(path) + 1);
        *ret_n = sizeof(*local);
        return true;
}

/* The address of the local daemon, from its configuration. */
static bool local_address(const struct conf *c, struct sockaddr_storage *ret, socklen_t *ret_n) {
        long port = conf_number(c, "IMEX_CMD_PORT", 0);
        const char *path = conf_text(c, "IMEX_CMD_UNIX_DOMAIN_PATH", "");
        struct addr a;

        if (!conf_number(c, "IMEX_CMD_ENABLED", 0) || (!port && !*path)) {
                fprintf(stderr, "ERROR: the command service is not enabled in the config file\n");
                return false;
        }
        if (*path)
                return unix_address(path, ret, ret_n);
        if (!addr_parse(conf_text(c, "IMEX_CMD_BIND_INTERFACE_IP", "127.0.0.1"), &a))
                return false;
        *ret_n = addr_fill(&a, (uint16_t)port, conf_text(c, "NETWORK_INTERFACE", ""), ret);
        return true;
}

static int connect_to(const struct options *o) {
        struct sockaddr_storage to;
        struct pollfd p = { .events = POLLOUT };
        socklen_t n, n_error = sizeof(int);
        struct conf c = { 0 };
        struct addr a;
        int error = 0;
        bool known;

        if (o->unix_path) {
                known = unix_address(o->unix_path, &to, &n);
        } else if (o->ip) {
                known = addr_parse(o->ip, &a);
                n = known ? addr_fill(&a, o->port, "", &to) : 0;
        } else {
                load_config(o, &c);
                known = local_address(&c, &to, &n);
                conf_done(&c);
        }
        if (!known)
                return -1;
        p.fd = start(&to, n);
        if (p.fd >= 0 && poll(&p, 1, CONNECT_MS) == 1)
                getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &error, &n_error);
        else
                error = p.fd < 0 ? errno : ETIMEDOUT;
        if (error) {
                fprintf(stderr, "ERROR: failed to connect to the IMEX command service: %s\n",
                        strerror(error));
                if (p.fd >= 0)
                        close(p.fd);
                return -1;
        }
        (void)fcntl(p.fd, F_SETFL, 0);
        return p.fd;
}

static int query_status(const struct options *o, bool follow) {
        const char *question = follow ? "SUBSCRIBE\n" : "STATUS\n";
        int64_t end = o->timeout_ms >= 0 ? now_ms() + o->timeout_ms : 0;
        int fd = connect_to(o);
        char buffer[256];

        if (fd < 0 || send(fd, question, strlen(question), MSG_NOSIGNAL) < 0) {
                puts("UNAVAILABLE");
                return EXIT_FAILURE;
        }
        for (;;) {
                struct pollfd p = { .fd = fd, .events = POLLIN };
                int64_t left = end - now_ms();
                ssize_t n;

                if (end && (left <= 0 || poll(&p, 1, (int)left) == 0))
                        return EXIT_SUCCESS;
                n = recv(fd, buffer, sizeof(buffer), 0);
                if (n <= 0) {
                        if (!follow)
                                puts("UNAVAILABLE");
                        return follow ? EXIT_SUCCESS : EXIT_FAILURE;
                }
                fwrite(buffer, 1, (size_t)n, stdout);
                fflush(stdout);
                if (!follow)
                        return EXIT_SUCCESS;
        }
}

/* ---- the domain ---- */

struct row {
        int fd;
        bool connected, local, answered;
        char *text;
        size_t n_text;
        char status[32], version[64], host[256];
        char *letters; /* for n nodes, or NULL */
};

static bool parse_row(struct row *r, size_t id, size_t n) {
        char *letters = malloc(n + 1);
        ssize_t own;
        int used = 0;

        if (!letters)
                abort();
        if (sscanf(r->text, "ROW %zd %31s %63s %255s %n", &own, r->status, r->version, r->host, &used) == 4 &&
            (own == (ssize_t)id || own < 0) && strlen(r->text + used) == n) {
                memcpy(letters, r->text + used, n + 1);
                r->letters = letters;
                return true;
        }
        free(letters);
        return false;
}

/* Makes the next step of one connection. */
static void advance(struct row *r, short events, size_t id, size_t n) {
        char *end;
        ssize_t got;

        if (!r->connected) {
                int error = 0;
                socklen_t n_error = sizeof(error);

                getsockopt(r->fd, SOL_SOCKET, SO_ERROR, &error, &n_error);
                if (error || (events & POLLHUP) || send(r->fd, "ROW\n", 4, MSG_NOSIGNAL) != 4) {
                        close(r->fd);
                        r->fd = -1;
                        return;
                }
                r->connected = true;
                return;
        }
        r->text = realloc(r->text, MAX_ANSWER);
        if (!r->text)
                abort();
        got = recv(r->fd, r->text + r->n_text, MAX_ANSWER - 1 - r->n_text, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN)
                return;
        end = got > 0 ? memchr(r->text + r->n_text, '\n', (size_t)got) : NULL;
        r->n_text += got > 0 ? (size_t)got : 0;
        if (got > 0 && !end)
                return;
        if (end) {
                *end = '\0';
                r->answered = parse_row(r, id, n);
        }
        close(r->fd);
        r->fd = -1;
}

/* The connection has a time-out, but the answer has none. */
static void ask_all(struct row *rows, size_t n) {
        struct pollfd *polls = calloc(n, sizeof(*polls));
        int64_t give_up = now_ms() + CONNECT_MS;

        if (!polls)
                abort();
        for (;;) {
                bool waiting = false, connecting = false;
                int64_t left = give_up - now_ms();

                for (size_t i = 0; i < n; i++) {
                        if (rows[i].fd >= 0 && !rows[i].connected && left <= 0) {
                                close(rows[i].fd);
                                rows[i].fd = -1;
                        }
                        polls[i] = (struct pollfd){ .fd = rows[i].fd,
                                                    .events = rows[i].connected ? POLLIN : POLLOUT };
                        waiting = waiting || rows[i].fd >= 0;
                        connecting = connecting || (rows[i].fd >= 0 && !rows[i].connected);
                }
                if (!waiting)
                        break;
                if (poll(polls, n, connecting ? (int)(left > 0 ? left : 0) : -1) <= 0)
                        continue;
                for (size_t i = 0; i < n; i++)
                        if (polls[i].revents)
                                advance(&rows[i], polls[i].revents, i, n);
        }
        free(polls);
}

static void open_row(const struct conf *c, struct node *node, struct row *r) {
        long port = conf_number(c, "IMEX_CMD_PORT", 0);
        struct sockaddr_storage to;
        char interface[IF_NAMESIZE];
        socklen_t n = 0;

        if (!node->literal)
                node->n_addrs = addr_resolve(node->text, node->addrs);
        r->fd = -1;
        r->local = node->n_addrs > 0 && addr_is_local(&node->addrs[0], interface);
        if (r->local ? local_address(c, &to, &n) : port && node->n_addrs > 0) {
                if (!r->local)
                        n = addr_fill(&node->addrs[0], (uint16_t)port, conf_text(c, "NETWORK_INTERFACE", ""),
                                      &to);
                r->fd = start(&to, n);
        }
}

static const char *domain_status(const struct row *rows, size_t n) {
        bool any_ready = false, all_up = true;

        for (size_t i = 0; i < n; i++) {
                bool ready = rows[i].answered && !strcmp(rows[i].status, "READY");

                any_ready = any_ready || ready;
                all_up = all_up && ready && strspn(rows[i].letters, "C") == n;
        }
        return all_up ? "UP" : any_ready ? "DEGRADED" : "DOWN";
}

static void print_timestamp(char *out, size_t n) {
        struct timespec t;
        struct tm tm;

        clock_gettime(CLOCK_REALTIME, &t);
        localtime_r(&t.tv_sec, &tm);
        snprintf(out, n, "%d/%d/%d %02d:%02d:%02d.%03d", tm.tm_mon + 1, tm.tm_mday, tm.tm_year + 1900,
                 tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(t.tv_nsec / 1000000));
}

static char letter(const struct row *r, size_t column) {
        return r->answered ? r->letters[column] : 'I';
}

static void print_text(const struct options *o, const struct nodes *nodes, const struct row *rows) {
        char stamp[64];
        int width = 15;

        puts("Connectivity Table Legend:\n"
             "I - Invalid - Node wasn't reachable, no connection status available\n"
             "N - Never Connected\n"
             "R - Recovering - Connection was lost, but clean up has not yet been triggered.\n"
             "D - Disconnected - Connection was lost, and clean up has been triggered.\n"
             "A - Authenticating - If GSSAPI enabled, client has initiated mutual authentication.\n"
             "!V! - Version mismatch, communication disabled.\n"
             "!M! - Node map mismatch, communication disabled.\n"
             "C - Connected - Ready for operation\n");
        print_timestamp(stamp, sizeof(stamp));
        printf("%s\nNodes:\n", stamp);
        for (size_t i = 0; i < nodes->n; i++) {
                const struct row *r = &rows[i];
                char name[600], number[32];

                if (o->hostname)
                        snprintf(name, sizeof(name), "%s (%s)", nodes->v[i].text,
                                 r->answered ? r->host : "N/A");
                else
                        snprintf(name, sizeof(name), "%s", nodes->v[i].text);
                snprintf(number, sizeof(number), "#%zu", i);
                printf("Node %-4s %s %-*s %s %s", number, r->local ? "*" : "-", width, name,
                       r->local ? "* -" : "-", r->answered ? "" : "UNAVAILABLE\n");
                if (r->answered)
                        printf("%-20s - Version: %s\n", r->status, r->version);
        }
        printf("\n Nodes From\\To ");
        for (size_t i = 0; i < nodes->n; i++)
                printf(i + 1 < nodes->n ? " %-3zu" : " %zu", i);
        putchar('\n');
        for (size_t i = 0; i < nodes->n; i++) {
                printf("%8zu       ", i);
                for (size_t j = 0; j < nodes->n; j++) {
                        char c = letter(&rows[i], j);
                        char cell[4] = { c, '\0' };

                        if (c == 'V' || c == 'M')
                                snprintf(cell, sizeof(cell), "!%c!", c);
                        printf(j + 1 < nodes->n ? " %-3s" : " %s", cell);
                }
                putchar('\n');
        }
        printf("\nDomain State: %s\n", domain_status(rows, nodes->n));
}

static const char *letter_word(char c) {
        switch (c) {
        case 'N':
                return "NEVER_CONNECTED";
        case 'R':
                return "RECOVERING";
        case 'D':
                return "DISCONNECTED";
        case 'V':
                return "VERSION_MISMATCH";
        case 'M':
                return "NODE_MAP_MISMATCH";
        case 'C':
                return "CONNECTED";
        default:
                return "INVALID";
        }
}

/* Node names contain no character that JSON escapes: the node file is checked when it is read. Host names
 * come from a daemon. */
static void print_json_text(const char *text) {
        putchar('"');
        for (; *text; text++)
                if (*text != '"' && *text != '\\' && (unsigned char)*text >= ' ')
                        putchar(*text);
        putchar('"');
}

static void print_json(const struct nodes *nodes, const struct row *rows) {
        char stamp[64];

        printf("{\"nodes\":{");
        for (size_t i = 0; i < nodes->n; i++) {
                const struct row *r = &rows[i];

                printf("%s\"%zu\":{\"status\":\"%s\",\"host\":", i ? "," : "", i,
                       r->answered ? r->status : "UNAVAILABLE");
                print_json_text(nodes->v[i].text);
                printf(",\"hostName\":");
                print_json_text(r->answered ? r->host : "N/A");
                printf(",\"version\":\"%s\",\"connections\":{", r->answered ? r->version : "");
                for (size_t j = 0; j < nodes->n; j++) {
                        printf("%s\"%zu\":{\"host\":", j ? "," : "", j);
                        print_json_text(nodes->v[j].text);
                        printf(",\"status\":\"%s\",\"changed\":true}", letter_word(letter(r, j)));
                }
                printf("}}");
        }
        print_timestamp(stamp, sizeof(stamp));
        printf("},\"timestamp\":\"%s\",\"status\":\"%s\"}\n", stamp, domain_status(rows, nodes->n));
}

static int query_domain(const struct options *o) {
        struct conf c;
        struct nodes nodes;
        struct row *rows;
        char why[512];
        int code = EXIT_FAILURE;

        if (o->ip || o->unix_path) {
                fprintf(stderr, "ERROR: -%c requires a config file\n", o->mode);
                return EXIT_FAILURE;
        }
        load_config(o, &c);
        if (nodes_load(&nodes, conf_text(&c, "IMEX_NODE_CONFIG_FILE", "/etc/nvidia-imex/nodes_config.cfg"),
                       why, sizeof(why)) < 0) {
                fprintf(stderr, "ERROR: %s\n", why);
                return EXIT_FAILURE;
        }
        rows = calloc(nodes.n, sizeof(*rows));
        if (!rows)
                abort();
        for (size_t i = 0; i < nodes.n; i++)
                open_row(&c, &nodes.v[i], &rows[i]);
        ask_all(rows, nodes.n);
        if (o->json)
                print_json(&nodes, rows);
        else
                print_text(o, &nodes, rows);
        fflush(stdout);
        for (size_t i = 0; i < nodes.n; i++) {
                if (rows[i].answered)
                        code = EXIT_SUCCESS;
                free(rows[i].text);
                free(rows[i].letters);
        }
        free(rows);
        nodes_done(&nodes);
        conf_done(&c);
        return code;
}

static int usage(int code) {
        fprintf(code ? stderr : stdout,
                "Usage: nvidia-imex-ctl [-i <IP> <PORT>|-u <unix domain socket path>|-c <config path>] "
                "<-n|-N|-q|-s> [-t <ms>] [-j] [-H]\n"
                "       -c  configuration file of nvidia-imex, /etc/nvidia-imex/config.cfg by default\n"
                "       -q  status of the daemon    -s  the same at every change, until -t or the end of the "
                "daemon\n"
                "       -N  status of all nodes     -n  the same again and again\n"
                "       -j  -N and -n in JSON       -H  -N and -n with host names\n");
        return code;
}

int main(int argc, char **argv) {
        struct options o = { .config = "/etc/nvidia-imex/config.cfg", .timeout_ms = -1 };

        for (int i = 1; i < argc; i++) {
                const char *a = argv[i];

                if (!strcmp(a, "-c") && i + 1 < argc) {
                        o.config = argv[++i];
                } else if (!strcmp(a, "-u") && i + 1 < argc) {
                        o.unix_path = argv[++i];
                } else if (!strncmp(a, "--u=", 4)) {
                        o.unix_path = a + 4;
                } else if (!strcmp(a, "-i") && i + 2 < argc) {
                        o.ip = argv[++i];
                        o.port = (uint16_t)strtoul(argv[++i], NULL, 10);
                } else if (!strcmp(a, "-t") && i + 1 < argc) {
                        o.timeout_ms = atoi(argv[++i]);
                } else if (!strcmp(a, "-j")) {
                        o.json = true;
                } else if (!strcmp(a, "-H")) {
                        o.hostname = true;
                } else if (!strcmp(a, "-q") || !strcmp(a, "-s") || !strcmp(a, "-N") || !strcmp(a, "-n")) {
                        o.mode = a[1];
                } else {
                        return usage(strcmp(a, "--help") != 0);
                }
        }
        switch (o.mode) {
        case 'q':
                return query_status(&o, false);
        case 's':
                return query_status(&o, true);
        case 'N':
                return query_domain(&o);
        case 'n':
                while (query_domain(&o) == EXIT_SUCCESS)
                        poll(NULL, 0, MONITOR_MS);
                return EXIT_FAILURE;
        default:
                return usage(EXIT_FAILURE);
        }
}
