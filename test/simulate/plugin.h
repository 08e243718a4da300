/* SPDX-License-Identifier: Apache-2.0 */
/* plugin: the kubelet plugin of each node, and the calls of a kubelet. It connects the modules as node_main
 * and cd_plugin_main.c of the plugin do, several times in one process, and can be killed, stopped and
 * restarted. Its files are below "node-<i>" in the working folder. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

/* Absolute, as CDI requires, and the same in each run. */
#define PLUGIN_DIR(node) "/proc/self/cwd/%s/plugin", (node)
#define PLUGIN_CDI(node) "/proc/self/cwd/%s/cdi", (node)

/* Creates the files of an NVIDIA driver, which all nodes share. */
void plugins_begin(uv_loop_t *loop);
/* plugins_end() kills all plugins for good. plugins_buried() is false until all their memory is freed. */
void plugins_end(void);
bool plugins_buried(void);

/* The plugin of the node runs and is registered with its kubelet. */
bool plugin_runs(unsigned node);
/* Call it when a node gets power. The strings are copied. */
void plugin_start(unsigned node, const char *clique, const char *boot_id);
/* Kills the plugin; `again`: it restarts after a while. */
void plugin_kill(unsigned node, bool again);
/* SIGTERM, and the plugin restarts. */
void plugin_stop(unsigned node);

/* ---- the kubelet ---- */

/* The claim of a pod that the kubelet of a node has to run. Zeroed: none. */
enum held_state {
        HELD_NOT,
        HELD_ASKED, /* the kubelet has called Prepare, so it must call Unprepare, whatever the answer was */
        HELD_PREPARED,
};
struct dra_op;
struct held {
        LIST_ENTRY(held) entry; /* in the list of all claims that a kubelet knows */
        enum held_state state;
        unsigned node;
        bool known, channel, own; /* own: its claim is for an assigned channel */
        char ns[64], name[128], uid[48], domain[48], clique[64];
        int64_t id;          /* the channel ID in the CDI file at the last Prepare; -1: none */
        struct dra_op *call; /* the call whose answer the kubelet waits for */
        int64_t next_ms;     /* no call before it */
};

/* The kubelet learns of a pod with that claim. */
void held_init(struct held *h, unsigned node, bool channel, const char *ns, const char *name, const char *uid,
               const char *domain, bool own);
/* Both are level-triggered: they call the plugin if that is necessary. True: the claim is prepared, or
 * unprepared. */
bool held_prepare(struct held *h);
bool held_unprepare(struct held *h);
/* The node has lost power, so the claim is no longer prepared. Call it after plugin_kill(). */
void held_reboot(struct held *h);
/* The Node is created again, after it did not exist for so long that nothing runs there any more. */
void held_given_up(unsigned node);
/* The kubelet forgets the claim. */
void held_forget(struct held *h);

/* Checks the promises about all claims that hold at all times. */
void held_check_all(void);
/* The path of the claim's CDI file; static. */
const char *held_cdi_file(const struct held *h);
/* NULL: the node has only files and entries of claims that its kubelet knows. Otherwise a description of one
 * that is left. */
const char *held_strays(unsigned node);
