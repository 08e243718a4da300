/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_log.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"

bool imex_log_node_id(struct str line, int64_t *ret) {
        static const char phrase[] = "Identified this node as ID ";
        const char *p = line.n ? memmem(line.p, line.n, phrase, sizeof phrase - 1) : NULL;
        struct str id;

        if (!p)
                return false;
        id.p = p + sizeof phrase - 1;
        id.n = (size_t)(line.p + line.n - id.p);
        for (size_t i = 0; i < id.n; i++)
                if (id.p[i] < '0' || id.p[i] > '9')
                        id.n = i;
        return str_to_i64(id, ret);
}

static bool contains(struct str line, const char *word) {
        size_t n = strlen(word);

        for (size_t i = 0; i + n <= line.n; i++)
                if (strncasecmp(line.p + i, word, n) == 0)
                        return true;
        return false;
}

const char *imex_log_fault(struct str line) {
        static const struct {
                const char *word, *and;
                const char *fault;
        } faults[] = {
                { "No matching network interface", "",
                  "nvidia-imex finds none of this node's addresses in its node list; delete the daemon pod, "
                  "so that its replacement gets a new address and slot" },
                { "NV_ERR_IN_USE", "",
                  IMEX_LOG_SESSION_TAKEN "; stop and disable the host's nvidia-imex.service" },
                { "fabric-imex-mgmt", "fail",
                  "nvidia-imex may not open the driver's fabric-imex-mgmt capability; check that the NVIDIA "
                  "driver on this node is loaded and has IMEX" },
                { "incompatible", "driver",
                  "nvidia-imex and the node's kernel driver are of different branches; install the "
                  "nvidia-imex package of the driver's version" },
                { "version mismatch", "driver",
                  "nvidia-imex and the node's kernel driver are of different branches; install the "
                  "nvidia-imex package of the driver's version" },
        };

        for (size_t i = 0; i < ARRAY_LEN(faults); i++)
                if (contains(line, faults[i].word) && contains(line, faults[i].and))
                        return faults[i].fault;
        return NULL;
}
