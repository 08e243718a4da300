/* SPDX-License-Identifier: Apache-2.0 */
/* imex_grants: the files by which the kubelet plugin tells whoever runs IMEX for a domain on this node that
 * somebody may be using it: "<folder of the domain>/grants/<UID of the claim>", empty.
 *
 * The plugin makes a claim's file before it looks whether IMEX is ready, and removes it when the claim has
 * been unprepared. Whoever runs IMEX withdraws readiness before it looks for files, and goes on while there
 * is one. So either the plugin sees that readiness is withdrawn, or the other one sees the file: a channel
 * is never given out on an IMEX that is about to end. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/file.h"

#define IMEX_GRANTS_DIR "grants"

/* `dir` is the folder of the domain, which is made when it is not there. The UID must be one (str_is_uuid),
 * because it becomes a path. Nothing is synced: after a reboot nobody holds anything. */
int imex_grants_put(const char *dir, const char *claim_uid, struct err *e);
/* One that is not there is removed. The folder "grants" goes with the last, and with `folder` so does the
 * domain's, when nothing else is in it. */
int imex_grants_remove(const char *dir, const char *claim_uid, bool folder, struct err *e);
/* Is there a grant? When that cannot be told, -1: then there may be. */
int imex_grants_any(const char *dir, bool *ret, struct err *e);
/* As file_each(), of the folder "grants"; what is no UID is not told. No folder: none. */
int imex_grants_each(const char *dir, file_entry_fn *fn, void *u, struct err *e);

