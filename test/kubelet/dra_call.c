/* SPDX-License-Identifier: Apache-2.0 */
/* dra_call: asks a kubelet plugin what a kubelet asks it, once, so that a test can kill the plugin at any
 * moment without a kubelet that holds back its next try; and plays the IMEX daemon whose state file a
 * prepared channel waits for.
 *
 *     dra-call SOCKET prepare|unprepare NAMESPACE NAME UID     0: done, and printed; 1: refused, and why; 2:
 * the plugin is not there dra-call ready FOLDER CLAIM_UID                          writes the READY of the
 * daemon with this claim, holds it until it is ended
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "dra/dra.pb-c.h"
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

static int show(bool prepare, struct str reply) {
        const uint8_t *p = (const uint8_t *)reply.p;
        const char *error = NULL;
        if (!prepare) {
                Dra__NodeUnprepareResourcesResponse *r =
                        dra__node_unprepare_resources_response__unpack(NULL, reply.n, p);
                error = r && r->n_claims == 1 ? r->claims[0]->value->error : "no answer for the claim";
                puts(*error ? error : "unprepared");
                return *error ? REFUSED : DONE;
        }
        Dra__NodePrepareResourcesResponse *r = dra__node_prepare_resources_response__unpack(NULL, reply.n, p);
        error = r && r->n_claims == 1 ? r->claims[0]->value->error : "no answer for the claim";
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
        int fd = connect_to(path);
        if (fd < 0)
                return NOT_THERE;
        one.namespace_ = claim[0];
        one.name = claim[1];
        one.uid = claim[2];
        request.claims = list;
        request.n_claims = 1;
        size_t n = dra__claims_request__get_packed_size(&request), n_message;
        _cleanup_(freep) uint8_t *packed = xmalloc(n);
        dra__claims_request__pack(&request, packed);
        _cleanup_(freep) uint8_t *message = h2_message(packed, n, &n_message);
        struct h2_client *c = h2_new();
        struct h2_call *call =
                h2_call(c,
                        prepare ? "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
                                : "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources",
                        message, n_message, &(struct h2_options){ .timeout = "45S" });
        int r = !talk(fd, c, call) || call->close_code ? NOT_THERE : show(prepare, h2_reply(call));
        h2_free(c);
        close(fd);
        return r;
}

static int play_daemon(const char *folder, const char *claim_uid) {
        struct imex_state s = { .ready = true, .status = "READY" };
        struct err e;
        int lock = -1;
        snprintf(s.claim_uid, sizeof s.claim_uid, "%s", claim_uid);
        snprintf(s.pod_uid, sizeof s.pod_uid, "%s", claim_uid);
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
        if (argc == 4 && streq(argv[1], "ready"))
                return play_daemon(argv[2], argv[3]);
        if (argc == 6 && (streq(argv[2], "prepare") || streq(argv[2], "unprepare")))
                return ask(argv[1], streq(argv[2], "prepare"), argv + 3);
        fputs("usage: dra-call SOCKET prepare|unprepare NAMESPACE NAME UID | dra-call ready FOLDER "
              "CLAIM_UID\n",
              stderr);
        return USAGE;
}
