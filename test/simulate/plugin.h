/* SPDX-License-Identifier: Apache-2.0 */
/* plugin: runs the kubelet plugin of each node, and makes the calls of its kubelet. It connects the modules
 * as node_main and cd_plugin_main.c of the plugin do, several times in one process, and can be killed,
 * stopped and restarted. Its files are below "node-<i>" in the working folder. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

/* Paths of the plugin's folders: absolute, as CDI requires, and the same in each run. */
#define PLUGIN_DIR(node) "/proc/self/cwd/%s/plugin", (node)
#define PLUGIN_CDI(node) "/proc/self/cwd/%s/cdi", (node)

/* Creates the files of an NVIDIA driver, which all nodes share. */
void plugins_begin(uv_loop_t *loop);
/* plugins_end() kills all plugins permanently. plugins_buried() returns true after all their memory has been
 * freed. */
void plugins_end(void);
bool plugins_buried(void);

/* Returns true if the plugin of the node runs and is registered with its kubelet. */
bool plugin_runs(unsigned node);
/* Starts the plugin. Call it when a node gets power. Copies the strings. */
void plugin_start(unsigned node, const char *clique, const char *boot_id);
/* Kills the plugin; `again`: it restarts after a while. */
void plugin_kill(unsigned node, bool again);
/* Sends SIGTERM; the plugin restarts. */
void plugin_stop(unsigned node);
/* The plugin withholds its channels from now on, because of an error of the NVLink fabric. */
void plugin_withhold(unsigned node);

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
        int64_t id;          /* the channel ID in the CDI file at the last Prepare, -1: none */
        struct dra_op *call; /* the call whose answer the kubelet waits for */
        int64_t next_ms;     /* the earliest time of the next call */
        bool sync;           /* the kubelet syncs the pod again after the call */
        bool forgotten;      /* no pod uses it: see held_leave() */
        bool undone;         /* the kubelet has unprepared the claim for another pod, and the pod may run */
        char failure[512];   /* the plugin's answer to the last Prepare that failed; "": none */
        int64_t failed_ms;   /* when it failed */
};

/* Notifies the kubelet of a pod with that claim. */
void held_init(struct held *h, unsigned node, bool channel, const char *ns, const char *name, const char *uid,
               const char *domain, bool own);
/* Prepare or unprepare the claim. Both are level-triggered: they call the plugin if this is necessary, and
 * return true if the claim is already prepared or unprepared. */
bool held_prepare(struct held *h);
bool held_unprepare(struct held *h);
/* The end of the pod sometimes ends the kubelet's wait for a Prepare. Returns true if the kubelet waits for
 * no call. */
bool held_abort(struct held *h);
/* Calls Unprepare in any state of the claim. */
void held_must_unprepare(struct held *h);
/* The kubelet does not call the plugin, because it has prepared the claim for another pod of the node.
 * Returns false if the claim has no CDI file. */
bool held_join(struct held *h);
/* The kubelet refuses to prepare the claim, without a call. It retries with its next sync of the pod. */
void held_refuse(struct held *h, const char *why);
/* The kubelet has seen a change of an annotation of the pod, so it syncs the pod at once. */
void held_sync(struct held *h);
/* Records that the node has lost power, so that the claim is no longer prepared. Call it after
 * plugin_kill(). */
void held_reboot(struct held *h);
/* Records that the Node is created again, after it did not exist for so long that nothing runs there any
 * more. */
void held_given_up(unsigned node);
/* Lets the kubelet forget the claim, although the plugin has prepared it. The plugin unprepares it some time
 * after the claim was deleted. */
void held_leave(const struct held *h);
/* Lets the kubelet forget the claim. */
void held_forget(struct held *h);

/* Checks the promises about all claims that hold at all times. */
void held_check_all(void);
/* Returns the path of the claim's CDI file in a static buffer. */
const char *held_cdi_file(const struct held *h);
/* Returns NULL if the node has only files and entries of claims that its kubelet knows, otherwise a
 * description of a file or entry that is left over. */
const char *held_strays(unsigned node);
