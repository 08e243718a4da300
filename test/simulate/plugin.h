/* SPDX-License-Identifier: Apache-2.0 */
/* plugin: the kubelet plugin of each node: what node_main and main.c of the plugin wire, several times in one
 * process, to be killed, stopped and started again; and what a kubelet asks it for. Its files are below
 * "node-<i>" in the working folder. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

/* Absolute, as CDI wants it, and the same each time. */
#define PLUGIN_DIR(node) "/proc/self/cwd/%s/plugin", (node)
#define PLUGIN_CDI(node) "/proc/self/cwd/%s/cdi", (node)

/* The files of a driver that all nodes share. */
void plugins_begin(uv_loop_t *loop);
/* Kills all of them for good. False while something of them is yet to be freed. */
void plugins_end(void);
bool plugins_buried(void);

/* Its plugin runs, and its kubelet finds it. */
bool plugin_runs(unsigned node);
/* A node has power. The strings are copied. */
void plugin_start(unsigned node, const char *clique, const char *boot_id);
/* It ends without a word; `again`: and is started again by and by. */
void plugin_kill(unsigned node, bool again);
/* SIGTERM, and it is started again. */
void plugin_stop(unsigned node);

/* ---- the kubelet ---- */

/* A claim as the kubelet of a node knows it: of a pod that it was told to run. Zeroed: none. */
enum held_state {
        HELD_NOT,
        HELD_ASKED, /* has been asked for, so that it must be unprepared whatever the answer was */
        HELD_PREPARED,
};
struct dra_op;
struct held {
        LIST_ENTRY(held) entry; /* of all that a kubelet knows */
        enum held_state state;
        unsigned node;
        bool known, channel, own; /* own: its claim is for an assigned channel */
        char ns[64], name[128], uid[48], domain[48], clique[64];
        int64_t id;          /* of its channel, as the CDI file said when it was prepared last; -1: none */
        struct dra_op *call; /* the kubelet waits for its answer */
        int64_t next_ms;     /* no call before it */
};

/* The kubelet learns of a pod with that claim. */
void held_init(struct held *h, unsigned node, bool channel, const char *ns, const char *name, const char *uid,
               const char *domain, bool own);
/* Level-triggered, each: calls the plugin when there is something to ask for; true: it is so. */
bool held_prepare(struct held *h);
bool held_unprepare(struct held *h);
/* The node has lost power, so nothing of it is prepared. After plugin_kill(). */
void held_reboot(struct held *h);
/* The kubelet knows nothing of it any more. */
/* Its Node was gone for so long that nothing runs there any more, and is made anew. */
void held_given_up(unsigned node);
void held_forget(struct held *h);

/* Checks what is promised of all claims at all times. */
void held_check_all(void);
/* Of its claim; static. */
const char *held_cdi_file(const struct held *h);
/* NULL: no file and no entry is on a node but those of claims that its kubelet holds. Else what is. */
const char *held_strays(unsigned node);
