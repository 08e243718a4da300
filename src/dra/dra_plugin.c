/* SPDX-License-Identifier: Apache-2.0 */
#include "dra/dra_plugin.h"

#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "dra/dra_call.h"
#include "dra/grpc_server.h"
#include "dra/unpack.h"
#include "pluginregistration.pb-c.h"

#define DRA_SERVICE(version, method) "/k8s.io.kubelet.pkg.apis.dra." version ".DRAPlugin/" method
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

/* Registration: the kubelet finds the socket, requests the plugin's information, and reports the result. */

static void on_get_info(void *u, struct grpc_call *call, struct str message) {
        struct dra_plugin *p = u;
        char type[] = "DRAPlugin", v1[] = "v1.DRAPlugin", v1beta1[] = "v1beta1.DRAPlugin";
        char *versions[] = { v1, v1beta1 };
        Pluginregistration__PluginInfo info;
        pluginregistration__plugin_info__init(&info);
        info.type = type;
        info.name = p->driver_name;
        info.endpoint = p->dra_path;
        info.n_supported_versions = ARRAY_LEN(versions);
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
        if (serve_unix(p, loop, dra_methods, p->dra_path, &p->dra, e) < 0 ||
            serve_unix(p, loop, registration_methods, p->registration_path, &p->registration, e) < 0) {
                dra_plugin_free(p);
                return -1;
        }
        *ret = p;
        return 0;
}

void dra_plugin_free(struct dra_plugin *p) {
        if (!p)
                return;
        /* Unregister first: the kubelet unregisters the plugin when the registration socket is removed. */
        grpc_server_free(p->registration);
        grpc_server_free(p->dra);
        free(p->driver_name);
        free(p->dra_path);
        free(p->registration_path);
        free(p);
}
