/* SPDX-License-Identifier: Apache-2.0 */
/* check: the probe of the daemon's container.
 *
 * It reads the state file instead of asking nvidia-imex-ctl: the supervisor asks all the time, so a probe
 * would only ask twice, by starting a program of 10 MB every second on each node while a domain forms; and
 * the file says more (own id, reason). A supervisor that is dead is noticed by the
 * lock on the file, and IMEX's end by the supervisor. There is no heartbeat in the file: it would be a write
 * a minute on every node for a fact that nobody may act upon, since ending a container whose supervisor
 * stands still ends a running IMEX under a running job; what could make the loop stand still is kept out of
 * it instead. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* 0: ready; -1: *e says why not. `claim_uid` "": any daemon's file will do, if it is held. */
int check(const char *dir, const char *clique_id, const char *claim_uid, struct err *e);
