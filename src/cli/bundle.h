/* SPDX-License-Identifier: Apache-2.0 */
/* bundle: lists of objects in files, to read them without a cluster, and to attach them to a report.
 *
 * A bundle is a folder, or a tar file (POSIX ustar, not compressed), with one JSON list for each kind:
 * "pods.json", "resourceclaims.resource.k8s.io.json" and so on, as `kubectl get -A -o json` prints them. The
 * file "bundle.json" states when the lists were read, and which are complete:
 *
 *     {"created": "2026-11-27T12:00:00Z", "namespace": "team-b", "serverVersion": "v1.36.3", "kinds":
 *      {"pods": [{"namespace": "team-b", "state": "complete"}, {"state": "unreadable", "why": "..."}]}}
 *
 * Without this file, each list is complete and concerns all namespaces. Bundles are untrusted input. */
#pragma once

#include "base/str.h"
#include "cli/source.h"
#include "cli/view.h"

enum { BUNDLE_MAX = 512 << 20, BUNDLE_FILES_MAX = 1000 };

/* Opens a bundle. `ns` replaces the default namespace that the bundle names; NULL: keep it. The caller frees
 * the source. */
int bundle_open(const char *path, const char *ns, struct source **ret, struct err *e);
/* The same for the content of a tar file. */
int bundle_read_tar(struct str tar, const char *ns, struct source **ret, struct err *e);

/* A bundle that is being written. It contains everything that a source delivers through it: pass `source` to
 * view_init(), except Deployments and DaemonSets of other applications. Left out are values of environment
 * variables, except those that the chart sets, arguments, probes and hooks of other programs than the
 * driver's, and annotations of `kubectl apply`. */
struct bundle_writer;
struct bundle_writer *bundle_writer_new(struct source *from);
struct source *bundle_writer_source(struct bundle_writer *w);
/* Renders the bundle as a tar file. */
void bundle_writer_render(struct bundle_writer *w, struct buf *out);
void bundle_writer_free(struct bundle_writer *w);

/* Reads what a bundle contains: the objects that the commands read, of all namespaces or of `ns` and the
 * driver's namespace. */
void bundle_read_all(struct view *v, const char *ns);
