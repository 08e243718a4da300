/* SPDX-License-Identifier: Apache-2.0 */
#include "dra/dra_plugin.h"

#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stderr.h"
#include "dra/dra_messages.h"
#include "dra/grpc_server.h"
#include "pluginregistration.pb-c.h"

#define DRA_SERVICE(version, method) "/k8s.io.kubelet.pkg.apis.dra." version ".DRAPlugin/" method
#define HEALTH_WATCH(version) "/" version ".DRAResourceHealth/NodeWatchResources"
#define REGISTRATION(method) "/pluginregistration.Registration/" method

enum {
        SOCKET_MODE = 0600,
        DIR_MODE = 0750,
        STATUS_UNPACK_MAX = 64 << 10, /* a text for people */
};

/* One server for each socket, so that each offers only its own services. */
struct dra_plugin {
        char *driver_name, *dra_path, *registration_path;
        const struct dra_plugin_ops *ops;
        void *u;
        struct grpc_server *dra, *registration;
        struct dra_health *health; /* NULL: not offered */
};

static void reply(struct grpc_call *call, const ProtobufCMessage *m) {
        size_t n = protobuf_c_message_get_packed_size(m);
        _cleanup_(freep) uint8_t *packed = xmalloc(n + 1);
        protobuf_c_message_pack(m, packed);
        grpc_call_reply(call, packed, n);
}

static void malformed(struct grpc_call *call) {
        grpc_call_fail(call, GRPC_INVALID_ARGUMENT, "the request is not a valid protobuf message");
}

static void dra_plugin_on_prepare(void *u, struct grpc_call *call, struct str message) {
        struct dra_plugin *p = u;
        dra_call_start(p->ops, p->u, true, call, message);
}

static void dra_plugin_on_unprepare(void *u, struct grpc_call *call, struct str message) {
        struct dra_plugin *p = u;
        dra_call_start(p->ops, p->u, false, call, message);
}

/* A kubelet of 1.36 calls the method of each plugin, even if GetInfo does not list the service. */
static void dra_plugin_on_watch(void *u, struct grpc_call *call, struct str message) {
        const struct dra_plugin *p = u;
        if (p->health)
                dra_health_watch(p->health, call);
        else
                grpc_call_fail(call, GRPC_UNIMPLEMENTED, "this driver reports no health of its devices");
}

/* Registration: the kubelet finds the socket, requests the plugin's information, and reports the result. */

static void on_get_info(void *u, struct grpc_call *call, struct str message) {
        const struct dra_plugin *p = u;
        char type[] = "DRAPlugin", v1[] = "v1.DRAPlugin", v1beta1[] = "v1beta1.DRAPlugin",
             health_v1[] = "v1.DRAResourceHealth", health_v1alpha1[] = "v1alpha1.DRAResourceHealth";
        /* A kubelet ignores services that it does not know. */
        char *versions[] = { v1, v1beta1, health_v1, health_v1alpha1 };
        Pluginregistration__PluginInfo info;
        pluginregistration__plugin_info__init(&info);
        info.type = type;
        info.name = p->driver_name;
        info.endpoint = p->dra_path;
        info.n_supported_versions = p->health ? ARRAY_LEN(versions) : 2;
        info.supported_versions = versions;
        reply(call, &info.base);
}

static void on_registration_status(void *u, struct grpc_call *call, struct str message) {
        struct dra_plugin *p = u;
        Pluginregistration__RegistrationStatus *status = unpack_message(
                &pluginregistration__registration_status__descriptor, message, STATUS_UNPACK_MAX);
        if (!status) {
                malformed(call);
                return;
        }
        if (status->plugin_registered) {
                Pluginregistration__RegistrationStatusResponse ok =
                        PLUGINREGISTRATION__REGISTRATION_STATUS_RESPONSE__INIT;
                reply(call, &ok.base);
        } else {
                _cleanup_(freep) char *msg =
                        xasprintf("the registration failed: %s", str_or(status->error, "no reason given"));
                grpc_call_fail(call, GRPC_UNKNOWN, msg);
        }
        p->ops->registered(p->u, status->plugin_registered, status->error);
        pluginregistration__registration_status__free_unpacked(status, NULL);
}

/* Probes. */

static bool is_socket(const char *path) {
        struct stat st;
        return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

const char *dra_plugin_fault(const struct dra_plugin *p) {
        return !is_socket(p->dra_path)            ? "the DRA socket does not exist"
               : !is_socket(p->registration_path) ? "the registration socket does not exist"
                                                  : NULL;
}

/* The plugin. */

static const struct grpc_method dra_methods[] = {
        { DRA_SERVICE("v1", "NodePrepareResources"), dra_plugin_on_prepare },
        { DRA_SERVICE("v1", "NodeUnprepareResources"), dra_plugin_on_unprepare },
        { DRA_SERVICE("v1beta1", "NodePrepareResources"), dra_plugin_on_prepare },
        { DRA_SERVICE("v1beta1", "NodeUnprepareResources"), dra_plugin_on_unprepare },
        { HEALTH_WATCH("v1"), dra_plugin_on_watch },
        { HEALTH_WATCH("v1alpha1"), dra_plugin_on_watch },
        { NULL, NULL },
};

static const struct grpc_method registration_methods[] = {
        { REGISTRATION("GetInfo"), on_get_info },
        { REGISTRATION("NotifyRegistrationStatus"), on_registration_status },
        { NULL, NULL },
};

static int serve_unix(struct dra_plugin *p, uv_loop_t *loop, const struct grpc_method *methods,
                      const char *path, struct grpc_server **ret, struct err *e) {
        *ret = grpc_server_new(loop, methods, &grpc_limits_trusted, p);
        return grpc_server_listen_unix(*ret, path, SOCKET_MODE, e);
}

int dra_plugin_new(uv_loop_t *loop, const struct dra_plugin_options *o, struct dra_plugin **ret,
                   struct err *e) {
        if (file_mkdirs(o->plugin_dir, DIR_MODE, e) < 0)
                return -1;
        _cleanup_(freep) char *registration_name = xasprintf("%s-reg.sock", o->driver_name);
        struct dra_plugin *p = xnew(struct dra_plugin);
        p->driver_name = xstrdup(o->driver_name);
        p->dra_path = file_join(o->plugin_dir, "dra.sock");
        p->registration_path = file_join(o->registrar_dir, registration_name);
        p->ops = o->ops;
        p->u = o->u;
        p->health = o->health ? dra_health_new(loop, o->health, o->u) : NULL;
        if (serve_unix(p, loop, dra_methods, p->dra_path, &p->dra, e) < 0 ||
            serve_unix(p, loop, registration_methods, p->registration_path, &p->registration, e) < 0) {
                dra_plugin_free(p);
                return -1;
        }
        *ret = p;
        return 0;
}

void dra_plugin_health_changed(struct dra_plugin *p) {
        if (p && p->health)
                dra_health_changed(p->health);
}

void dra_plugin_free(struct dra_plugin *p) {
        if (!p)
                return;
        /* Unregister first: the kubelet unregisters the plugin when the registration socket is removed. */
        grpc_server_free(p->registration);
        grpc_server_free(p->dra);
        dra_health_free(p->health);
        free(p->driver_name);
        free(p->dra_path);
        free(p->registration_path);
        free(p);
}

/* ---- calls ---- */

enum op_state { OP_WAITING, OP_OPEN, OP_DONE };

struct dra_call;

struct dra_op {
        struct dra_call *call;
        struct dra_claim claim;
        enum op_state state;
        void *data;
};

struct dra_call {
        struct arena *arena; /* holds everything, this struct included */
        const struct dra_plugin_ops *ops;
        void *u;
        struct grpc_call *grpc; /* NULL: cancelled */
        bool prepare, starting;
        struct dra_op *op;
        struct dra_result *result; /* one per op */
        size_t n, unfinished;
};

static void dra_call_call_finish(struct dra_call *call) {
        struct buf out = BUF_INIT(SIZE_MAX); /* grpc_call_reply checks the size */
        dra_messages_write_results(call->prepare, call->result, call->n, call->arena, &out);
        grpc_call_reply(call->grpc, buf_str(&out), out.n);
        buf_done(&out);
        arena_free(call->arena);
}

static void op_finish(struct dra_op *op) {
        struct dra_call *call = op->call;
        op->state = OP_DONE;
        if (--call->unfinished == 0 && !call->starting && call->grpc)
                dra_call_call_finish(call);
}

static void on_cancel(void *u, struct grpc_call *grpc) {
        struct dra_call *call = u;
        call->grpc = NULL;
        for (size_t i = 0; i < call->n; i++) {
                struct dra_op *op = &call->op[i];
                if (op->state != OP_OPEN)
                        continue;
                op->state = OP_DONE;
                call->ops->cancelled(call->u, op, op->data);
        }
        if (!call->starting)
                arena_free(call->arena);
}

void dra_call_start(const struct dra_plugin_ops *ops, void *u, bool prepare, struct grpc_call *grpc,
                    struct str message) {
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct dra_claim *claims;
        struct err e;
        size_t n;
        if (dra_messages_read_claims(message, a, &claims, &n, &e) < 0) {
                grpc_call_fail(grpc, GRPC_INVALID_ARGUMENT, e.msg);
                return;
        }
        struct dra_call *call = arena_alloc(a, sizeof(*call));
        *call = (struct dra_call){ .arena = TAKE(a),
                                   .ops = ops,
                                   .u = u,
                                   .grpc = grpc,
                                   .prepare = prepare,
                                   .n = n,
                                   .unfinished = n };
        call->op = arena_alloc(call->arena, n * sizeof(*call->op));
        call->result = arena_alloc(call->arena, n * sizeof(*call->result));
        for (size_t i = 0; i < n; i++) {
                call->op[i] = (struct dra_op){ .call = call, .claim = claims[i] };
                call->result[i].uid = claims[i].uid;
        }
        grpc_call_on_cancel(grpc, on_cancel, call);

        /* An operation may be answered, or the whole server be freed, inside its own start. */
        call->starting = true;
        for (size_t i = 0; i < n && call->grpc; i++) {
                struct dra_op *op = &call->op[i];
                op->state = OP_OPEN;
                if (prepare)
                        ops->prepare(u, op, &op->claim);
                else
                        ops->unprepare(u, op, &op->claim);
        }
        call->starting = false;
        if (!call->grpc)
                arena_free(call->arena);
        else if (call->unfinished == 0)
                dra_call_call_finish(call);
}

static struct dra_result *op_result(struct dra_op *op) {
        BUG_ON(op->state != OP_OPEN);
        return &op->call->result[op - op->call->op];
}

/* A subrequest ("gpus/large") is one of the alternatives of a request. The kubelet knows only the request. */
static const char *const *requests_of(const char *const *requests, struct arena *a) {
        const char **list = arena_strdups(a, requests);
        for (size_t i = 0; list[i]; i++)
                list[i] = arena_strndup(a, list[i], strcspn(list[i], "/"));
        return list;
}

void dra_op_set_data(struct dra_op *op, void *data) {
        op->data = data;
}

uint64_t dra_op_timeout_ms(const struct dra_op *op) {
        return op->call->grpc ? grpc_call_timeout_ms(op->call->grpc) : 0;
}

void dra_op_prepared(struct dra_op *op, const struct dra_device *devices, size_t n) {
        struct dra_result *result = op_result(op);
        struct arena *a = op->call->arena;
        BUG_ON(!op->call->prepare);
        struct dra_device *copy = arena_alloc(a, (n + 1) * sizeof(*copy));
        for (size_t i = 0; i < n; i++)
                copy[i] = (struct dra_device){ .requests = requests_of(devices[i].requests, a),
                                               .pool = arena_strdup(a, devices[i].pool),
                                               .device = arena_strdup(a, devices[i].device),
                                               .cdi_ids = arena_strdups(a, devices[i].cdi_ids) };
        result->devices = copy;
        result->n_devices = n;
        op_finish(op);
}

void dra_op_unprepared(struct dra_op *op) {
        (void)op_result(op);
        BUG_ON(op->call->prepare);
        op_finish(op);
}

void dra_op_fail(struct dra_op *op, const char *msg) {
        /* An empty error would mean success. */
        op_result(op)->error = arena_strdup(op->call->arena, str_or(msg, "unknown error"));
        op_finish(op);
}
