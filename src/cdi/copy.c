/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cdi/cdi.h"

static void *copy_copy_list(const void *list, size_t n, size_t size, struct arena *a) {
        void *copy = arena_alloc(a, (n + 1) * size);
        return n ? memcpy(copy, list, n * size) : copy;
}

struct cdi_edits cdi_copy(const struct cdi_edits *ed, struct arena *a) {
        struct cdi_node *nodes = copy_copy_list(ed->nodes, ed->n_nodes, sizeof *nodes, a);
        struct cdi_mount *mounts = copy_copy_list(ed->mounts, ed->n_mounts, sizeof *mounts, a);
        struct cdi_hook *hooks = copy_copy_list(ed->hooks, ed->n_hooks, sizeof *hooks, a);
        struct cdi_edits copy = *ed;
        for (size_t i = 0; i < ed->n_nodes; i++) {
                nodes[i].path = arena_strdup(a, nodes[i].path);
                nodes[i].host_path = arena_strdup_or_null(a, nodes[i].host_path);
                nodes[i].permissions = arena_strdup_or_null(a, nodes[i].permissions);
        }
        for (size_t i = 0; i < ed->n_mounts; i++) {
                mounts[i].host_path = arena_strdup(a, mounts[i].host_path);
                mounts[i].container_path = arena_strdup(a, mounts[i].container_path);
                mounts[i].options = arena_strdups(a, mounts[i].options);
        }
        for (size_t i = 0; i < ed->n_hooks; i++) {
                hooks[i].name = arena_strdup(a, hooks[i].name);
                hooks[i].path = arena_strdup(a, hooks[i].path);
                hooks[i].args = arena_strdups(a, hooks[i].args);
                hooks[i].env = arena_strdups(a, hooks[i].env);
        }
        copy.env = arena_strdups(a, ed->env);
        copy.nodes = nodes;
        copy.mounts = mounts;
        copy.hooks = hooks;
        copy.gids = copy_copy_list(ed->gids, ed->n_gids, sizeof *ed->gids, a);
        return copy;
}
