/* SPDX-License-Identifier: Apache-2.0 */
/* go_daemon: reads and writes what a daemon of the Go driver shares with the plugin: the ComputeDomainClique
 * in which the daemons of a ComputeDomain report their state, and the files of a daemon. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "kube/kube_client.h"
#include "model/clique.h"

/* The ComputeDomainClique, and whether the Node has the label by which the DaemonSet of the Go driver selects
 * it. Both are read once, without a watch: the daemon ends soon after the controller has removed the label,
 * and stays Ready in the object until it has received SIGTERM. */
struct go_clique;

struct go_clique_options { /* the strings are copied */
        struct kube_client *client;
        const char *ns; /* of the daemons */
        const char *domain_uid, *clique_id, *node;
        /* Called when there is an answer, or a new reason why there is none; never from inside
         * go_clique_ask(). */
        void (*answered)(void *u);
        void *u;
};
/* Requests the object of this ComputeDomain and clique ID, and then the Node. Retries for as long as the
 * server may still answer. */
struct go_clique *go_clique_ask(const struct go_clique_options *o);
/* Repeats the requests, unless one is pending. The previous result stays valid until the answers. */
void go_clique_ask_again(struct go_clique *g);
/* Returns NULL, and sets *ret to the object as last read (NULL: it does not exist), valid until the next turn
 * of the loop, and *ret_labelled. If they are not known, returns the reason instead. */
const char *go_clique_see(const struct go_clique *g, const struct clique **ret, bool *ret_labelled);
void go_clique_free(struct go_clique *g); /* NULL is allowed */

/* `dir` is the folder of the ComputeDomain, `/imexd` in the daemon's container. */

/* The size of an IPv6 address as text, including the NUL. */
enum { GO_FOLDER_ADDRESS_SIZE = 46 };

/* Writes the template of nvidia-imex's configuration, without which the daemon does not start. Keeps a file
 * that the Go driver's plugin has written. */
int go_folder_fill(const char *dir, struct err *e);
/* Reads the address of the last daemon that was started here. The daemon writes it into nvidia-imex's
 * configuration at each start. "": no daemon was started. The folder is removed when the daemon's claim is
 * unprepared and after a reboot, so the address is never that of an earlier boot. */
void go_folder_address(const char *dir, char ret[static GO_FOLDER_ADDRESS_SIZE]);
