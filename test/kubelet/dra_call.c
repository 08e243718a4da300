/* SPDX-License-Identifier: Apache-2.0 */
/* dra_call: makes one call of a kubelet to a plugin. So a test can kill the plugin at any moment, and does
 * not wait for a kubelet's next retry. It also acts as the daemon whose state file a Prepare of a channel
 * waits for.
 *
 *     dra-call SOCKET prepare|unprepare NAMESPACE NAME UID
 *         makes the call, and prints the devices or the error
 *     dra-call SOCKET register
 *         reports a successful registration to a registration socket
 *     dra-call ready FOLDER CLAIM_UID ASSIGNMENT
 *         writes READY as the daemon with this claim, and holds the lock until the process ends
 *
 * DRA_TIMEOUT is the time-out of a call in the format of gRPC; the default is the kubelet's 45S.
 *
 * Exit status: 0: success; 1: the plugin returned an error; 2: the plugin cannot be reached. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "dra/dra.pb-c.h"
#include "dra/pluginregistration.pb-c.h"
#include "imex/imex_state.h"
#include "h2_client.h"

enum { DONE, REFUSED, NOT_THERE, USAGE };

static int connect_to(const char *path) {
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
        return fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0 ? fd : -1;
}

/* False: the connection broke. */
static bool talk(int fd, struct h2_client *c, const struct h2_call *call) {
        char in[16384];
        const uint8_t *out;
        while (!call->closed) {
                for (size_t n; (n = h2_output(c, &out));) {
                        if (send(fd, out, n, MSG_NOSIGNAL) != (ssize_t)n)
                                return false;
                }
                ssize_t got = recv(fd, in, sizeof in, 0);
                if (got <= 0 || h2_input(c, in, (size_t)got) < 0)
                        return false;
        }
        return true;
}

/* Calls the server on this socket, and passes the reply to `show`. */
static int call_once(const char *socket_path, const char *method, const uint8_t *packed, size_t n,
                     int (*show)(struct str reply)) {
        int fd = connect_to(socket_path);
        if (fd < 0)
                return NOT_THERE;
        size_t n_message;
        _cleanup_(freep) uint8_t *message = h2_message(packed, n, &n_message);
        struct h2_client *c = h2_new();
        const char *timeout = str_or(getenv("DRA_TIMEOUT"), "45S");
        struct h2_call *call =
                h2_call(c, method, message, n_message, &(struct h2_options){ .timeout = timeout });
        int r = !talk(fd, c, call) || call->close_code ? NOT_THERE : show(h2_reply(call));
        h2_free(c);
        close(fd);
        return r;
}

static int show_unprepared(struct str reply) {
        Dra__NodeUnprepareResourcesResponse *r =
                dra__node_unprepare_resources_response__unpack(NULL, reply.n, (const uint8_t *)reply.p);
        const char *error = r && r->n_claims == 1 ? r->claims[0]->value->error : "no answer for the claim";
        puts(*error ? error : "unprepared");
        return *error ? REFUSED : DONE;
}

static int show_prepared(struct str reply) {
        Dra__NodePrepareResourcesResponse *r =
                dra__node_prepare_resources_response__unpack(NULL, reply.n, (const uint8_t *)reply.p);
        const char *error = r && r->n_claims == 1 ? r->claims[0]->value->error : "no answer for the claim";
        if (*error) {
                puts(error);
                return REFUSED;
        }
        for (size_t i = 0; i < r->claims[0]->value->n_devices; i++) {
                const Dra__Device *d = r->claims[0]->value->devices[i];
                printf("%s", d->device_name);
                for (size_t k = 0; k < d->n_cdi_device_ids; k++)
                        printf(" %s", d->cdi_device_ids[k]);
                putchar('\n');
        }
        return DONE;
}

static int ask(const char *path, bool prepare, char **claim) {
        Dra__Claim one = DRA__CLAIM__INIT, *list[] = { &one };
        Dra__ClaimsRequest request = DRA__CLAIMS_REQUEST__INIT;
        one.namespace_ = claim[0];
        one.name = claim[1];
        one.uid = claim[2];
        request.claims = list;
        request.n_claims = 1;
        size_t n = dra__claims_request__get_packed_size(&request);
        _cleanup_(freep) uint8_t *packed = xmalloc(n);
        dra__claims_request__pack(&request, packed);
        return prepare ? call_once(path, "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
                                   packed, n, show_prepared)
                       : call_once(path, "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources",
                                   packed, n, show_unprepared);
}

static int show_registered(struct str reply) {
        (void)reply;
        puts("registered");
        return DONE;
}

static int report_registered(const char *path) {
        Pluginregistration__RegistrationStatus status = PLUGINREGISTRATION__REGISTRATION_STATUS__INIT;
        uint8_t packed[16];
        status.plugin_registered = true;
        return call_once(path, "/pluginregistration.Registration/NotifyRegistrationStatus", packed,
                         pluginregistration__registration_status__pack(&status, packed), show_registered);
}

static int act_as_daemon(const char *folder, const char *claim_uid, const char *assignment) {
        struct imex_state s = { .ready = true, .status = "READY" };
        struct err e;
        int lock = -1;
        snprintf(s.claim_uid, sizeof s.claim_uid, "%s", claim_uid);
        snprintf(s.pod_uid, sizeof s.pod_uid, "%s", claim_uid);
        snprintf(s.assignment, sizeof s.assignment, "%s", assignment);
        if (file_boot_id(FILE_BOOT_ID_PATH, s.boot_id, &e) < 0 ||
            imex_state_write(folder, &s, &lock, &e) < 0) {
                fprintf(stderr, "%s\n", e.msg);
                return REFUSED;
        }
        puts("ready");
        fflush(stdout);
        pause();
        return DONE;
}

int main(int argc, char **argv) {
        if (argc == 5 && streq(argv[1], "ready"))
                return act_as_daemon(argv[2], argv[3], argv[4]);
        if (argc == 3 && streq(argv[2], "register"))
                return report_registered(argv[1]);
        if (argc == 6 && (streq(argv[2], "prepare") || streq(argv[2], "unprepare")))
                return ask(argv[1], streq(argv[2], "prepare"), argv + 3);
        fputs("usage: dra-call SOCKET prepare|unprepare NAMESPACE NAME UID | dra-call SOCKET register | "
              "dra-call "
              "ready FOLDER CLAIM_UID ASSIGNMENT\n",
              stderr);
        return USAGE;
}
