/* SPDX-License-Identifier: Apache-2.0 */
/* persist.dat: the nodes that had imported memory from this node, so that it can wait for them after a crash.
 *
 * Without GPUs no node imports memory. With the knob IMPORTERS=1 every connected node counts as an
 * importer. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "imexd.h"

static const char folder[] = "/var/run/nvidia-imex";
static const char path[] = "/var/run/nvidia-imex/persist.dat";
static const char fresh[] = "/var/run/nvidia-imex/persist.dat.new";

static void save(struct imexd *d) {
        FILE *f = fopen(fresh, "we");

        if (f) {
                fprintf(f, "nodes_config %" PRIx64 "\n", d->nodes.hash);
                for (size_t i = 0; i < d->nodes.n; i++)
                        if (d->importers.node[i] || d->importers.awaited[i])
                                fprintf(f, "Node %zu: %s\n", i, d->nodes.v[i].text);
        }
        if (!f || fclose(f) || rename(fresh, path) < 0)
                imexd_fail(d, "Failed to write nvidia-imex persistence file %s: %s", path, strerror(errno));
}

static void await(struct imexd *d, FILE *f) {
        char line[512];
        size_t id;

        while (fgets(line, sizeof(line), f)) {
                if (sscanf(line, "Node %zu:", &id) != 1 || id >= d->nodes.n || d->importers.awaited[id])
                        continue;
                log_line(LOG_INFO, "Waiting for previous importer node %zu - %s to reconnect", id,
                         d->nodes.v[id].text);
                d->importers.awaited[id] = true;
                d->importers.n_awaited++;
        }
}

void persist_load(struct imexd *d) {
        uint64_t hash;
        FILE *f;

        d->importers.node = calloc(d->nodes.n, sizeof(bool));
        d->importers.awaited = calloc(d->nodes.n, sizeof(bool));
        if (!d->importers.node || !d->importers.awaited)
                abort();
        if (mkdir(folder, 0755) < 0 && errno != EEXIST)
                imexd_fail(d, "Failed to create %s: %s", folder, strerror(errno));
        f = fopen(path, "re");
        if (!f) {
                log_line(LOG_INFO,
                         "nvidia-imex persistence file %s does not exist.  Assuming no previous importers.",
                         path);
        } else {
                if (fscanf(f, "nodes_config %" SCNx64 "\n", &hash) != 1 || hash != d->nodes.hash)
                        log_line(LOG_WARNING,
                                 "nvidia-imex persistence file %s belongs to another node configuration, "
                                 "discarding it.",
                                 path);
                else if (d->quorum != QUORUM_NONE)
                        await(d, f);
                fclose(f);
        }
        save(d);
}

void persist_importer(struct imexd *d, size_t id, bool present) {
        struct conf knobs;
        bool imports;

        if (!d->importers.node)
                return;
        conf_load_knobs(&knobs);
        imports = present && conf_number(&knobs, "IMPORTERS", 0);
        conf_done(&knobs);
        if (present && d->importers.awaited[id]) {
                log_line(LOG_INFO, "Previous importer node %zu - %s is back", id, d->nodes.v[id].text);
                d->importers.awaited[id] = false;
                d->importers.n_awaited--;
        } else if (d->importers.node[id] == imports) {
                return;
        }
        d->importers.node[id] = imports;
        save(d);
}

/* A peer that receives our BYE no longer imports from us. Importers that have not connected again do not
 * receive it, and the next run must wait for them, too. */
void persist_close(struct imexd *d) {
        if (!d->importers.node)
                return;
        memset(d->importers.node, 0, d->nodes.n * sizeof(bool));
        save(d);
}
