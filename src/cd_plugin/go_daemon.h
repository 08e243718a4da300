/* SPDX-License-Identifier: Apache-2.0 */
/* go_daemon: reads and writes what a daemon of the Go driver shares with the plugin: the ComputeDomainClique
 * in which the daemons of a ComputeDomain report their state, and the files of a daemon. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "kube/kube_client.h"
#include "model/clique.h"

/* The ComputeDomainClique, which is read once, without a watch. */
struct go_clique;

/* Requests the object of this ComputeDomain and clique ID; `ns` is the namespace of the daemons. Retries for
 * as long as the server may still answer. `answered` is called when there is an answer, or a new reason why
 * there is none; never from inside this call. */
struct go_clique *go_clique_ask(struct kube_client *c, const char *ns, const char *domain_uid,
                                const char *clique_id, void (*answered)(void *u), void *u);
/* Repeats the request, unless one is pending. The previous result stays valid until the answer. */
void go_clique_ask_again(struct go_clique *g);
/* Returns NULL, and sets *ret to the object as last read (NULL: it does not exist), valid until the next turn
 * of the loop. If the object is not known, returns the reason instead. */
const char *go_clique_see(const struct go_clique *g, const struct clique **ret);
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
