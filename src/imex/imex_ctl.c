/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_ctl.h"

#include <string.h>
#include <strings.h>
#include <yyjson.h>

#include "base/json.h"
#include "base/mem.h"
#include "imex/imex_domain.h"

enum imex_status imex_ctl_parse_status(struct str out) {
        static const enum imex_status words[] = {
                IMEX_STATE_INITIALIZING,      IMEX_STATE_STARTING_AUTH_SERVER,
                IMEX_STATE_WAITING_FOR_PEERS, IMEX_STATE_WAITING_FOR_RECOVERY,
                IMEX_STATE_INIT_GPU,          IMEX_STATE_READY,
                IMEX_STATE_SHUTTING_DOWN,     IMEX_STATE_UNAVAILABLE
        };
        enum imex_status last = IMEX_STATE_NONE;
        struct str line;

        while (str_next_line(&out, &line)) {
                line = str_trim(line);
                for (size_t i = 0; i < ARRAY_LEN(words); i++)
                        if (str_eq(line, str_from(imex_status_name(words[i]))))
                                last = words[i];
        }
        return last;
}

static const char *imex_ctl_member(yyjson_val *obj, const char *key, struct arena *a) {
        yyjson_val *v = yyjson_obj_get(obj, key);

        return yyjson_is_str(v) ? arena_strndup(a, yyjson_get_str(v), yyjson_get_len(v)) : "";
}

static bool key_to_id(yyjson_val *key, int64_t *ret) {
        return str_to_i64((struct str){ yyjson_get_str(key), yyjson_get_len(key) }, ret) && *ret >= 0;
}

static int parse_connections(yyjson_val *obj, struct arena *a, struct imex_ctl_node *n, struct err *e) {
        yyjson_val *key, *val;
        size_t i, max;

        if (yyjson_obj_size(obj) > IMEX_SLOTS_MAX)
                return err_set(e, ERR_INVALID, 0, "node %lld has more than %d connections", (long long)n->id,
                               IMEX_SLOTS_MAX);
        n->connections = arena_alloc(a, yyjson_obj_size(obj) * sizeof *n->connections + 1);
        yyjson_obj_foreach (obj, i, max, key, val) {
                struct imex_ctl_connection *c = &n->connections[n->n_connections];

                if (!key_to_id(key, &c->to))
                        return err_set(e, ERR_INVALID, 0, "node %lld has a connection to '%.20s'",
                                       (long long)n->id, yyjson_get_str(key));
                c->connected = streq(imex_ctl_member(val, "status", a), "CONNECTED");
                n->n_connections++;
        }
        return 0;
}

static int parse_nodes(yyjson_val *obj, struct arena *a, struct imex_ctl_domain *d, struct err *e) {
        yyjson_val *key, *val;
        size_t i, max;

        if (!yyjson_is_obj(obj))
                return err_set(e, ERR_INVALID, 0, "there is no object 'nodes'");
        if (yyjson_obj_size(obj) > IMEX_SLOTS_MAX)
                return err_set(e, ERR_INVALID, 0, "more than %d nodes", IMEX_SLOTS_MAX);
        d->nodes = arena_alloc(a, yyjson_obj_size(obj) * sizeof *d->nodes + 1);
        yyjson_obj_foreach (obj, i, max, key, val) {
                struct imex_ctl_node *n = &d->nodes[d->n_nodes];

                if (!key_to_id(key, &n->id))
                        return err_set(e, ERR_INVALID, 0, "'%.20s' is not a node id", yyjson_get_str(key));
                n->host = imex_ctl_member(val, "host", a);
                n->host_name = imex_ctl_member(val, "hostName", a);
                n->status = imex_ctl_member(val, "status", a);
                n->version = imex_ctl_member(val, "version", a);
                if (parse_connections(yyjson_obj_get(val, "connections"), a, n, e) < 0)
                        return -1;
                d->n_nodes++;
        }
        return 0;
}

static void free_doc(yyjson_doc **doc) {
        yyjson_doc_free(*doc);
}

int imex_ctl_parse_domain(struct str out, struct arena *a, struct imex_ctl_domain *ret, struct err *e) {
        const char *start = out.n ? memchr(out.p, '{', out.n) : NULL;
        _cleanup_(free_doc) yyjson_doc *doc = NULL;
        struct imex_ctl_domain d = { 0 };

        if (!start)
                return err_set(e, ERR_INVALID, 0, "there is no JSON object");
        size_t n = out.n - (size_t)(start - out.p);
        doc = json_parse((struct str){ start, strnlen(start, n) }, YYJSON_READ_STOP_WHEN_DONE, e);
        if (!doc)
                return -1;
        yyjson_val *root = yyjson_doc_get_root(doc);
        d.status = imex_ctl_member(root, "status", a);
        if (parse_nodes(yyjson_obj_get(root, "nodes"), a, &d, e) < 0)
                return -1;
        *ret = d;
        return 0;
}

const struct imex_ctl_node *imex_ctl_find(const struct imex_ctl_domain *d, const char *ip, const char *name) {
        const struct imex_ctl_node *found = NULL;

        for (size_t i = 0; i < d->n_nodes; i++) {
                const struct imex_ctl_node *n = &d->nodes[i];

                if (!streq(n->host, ip) && !streq(n->host, name) && !streq(n->host_name, name))
                        continue;
                if (found)
                        return NULL;
                found = n;
        }
        return found;
}

bool imex_ctl_connected_to(const struct imex_ctl_node *n, int64_t id) {
        for (size_t i = 0; i < n->n_connections; i++)
                if (n->connections[i].to == id)
                        return n->connections[i].connected;
        return false;
}

unsigned imex_ctl_connected(const struct imex_ctl_node *n) {
        unsigned count = 0;

        for (size_t i = 0; i < n->n_connections; i++)
                count += n->connections[i].to != n->id && n->connections[i].connected;
        return count;
}

/* ---- log ---- */

bool imex_log_node_id(struct str line, int64_t *ret) {
        static const char phrase[] = "Identified this node as ID ";
        const char *p = line.n ? memmem(line.p, line.n, phrase, sizeof phrase - 1) : NULL;
        struct str id;

        if (!p)
                return false;
        id.p = p + sizeof phrase - 1;
        id.n = (size_t)(line.p + line.n - id.p);
        for (size_t i = 0; i < id.n; i++)
                if (id.p[i] < '0' || id.p[i] > '9')
                        id.n = i;
        return str_to_i64(id, ret);
}

static bool contains(struct str line, const char *word) {
        size_t n = strlen(word);

        for (size_t i = 0; i + n <= line.n; i++)
                if (strncasecmp(line.p + i, word, n) == 0)
                        return true;
        return false;
}

const char *imex_log_fault(struct str line) {
        static const struct {
                const char *word, *and;
                const char *fault;
        } faults[] = {
                { "No matching network interface", "",
                  "nvidia-imex finds none of this node's addresses in its node list; delete the daemon pod, "
                  "so that its replacement gets a new address and slot" },
                { "NV_ERR_IN_USE", "",
                  IMEX_LOG_SESSION_TAKEN "; stop and disable the host's nvidia-imex.service" },
                { "fabric-imex-mgmt", "fail",
                  "nvidia-imex may not open the driver's fabric-imex-mgmt capability; check that the NVIDIA "
                  "driver on this node is loaded and has IMEX" },
                { "incompatible", "driver",
                  "nvidia-imex and the node's kernel driver are of different branches; install the "
                  "nvidia-imex package of the driver's version" },
                { "version mismatch", "driver",
                  "nvidia-imex and the node's kernel driver are of different branches; install the "
                  "nvidia-imex package of the driver's version" },
        };

        for (size_t i = 0; i < ARRAY_LEN(faults); i++)
                if (contains(line, faults[i].word) && contains(line, faults[i].and))
                        return faults[i].fault;
        return NULL;
}
