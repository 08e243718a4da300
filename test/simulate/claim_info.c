/* SPDX-License-Identifier: Apache-2.0 */
#include "claim_info.h"

#include <string.h>

#include "base/mem.h"
#include "channels.h"

struct claim_info {
        LIST_ENTRY(claim_info) entry;
        const struct node *node;
        char name[64], uid[48];
        bool prepared, unpreparing;
        const struct user_pod *pods[MAX_PODS];
        unsigned n_pods;
};
static LIST_HEAD(, claim_info) infos = LIST_HEAD_INITIALIZER(infos);

/* Kubelets find an entry by the name of the claim. */
static struct claim_info *find_info(const struct user_pod *p) {
        struct claim_info *i;
        LIST_FOREACH (i, &infos, entry)
                if (i->node == p->node && streq(i->name, p->claim))
                        return i;
        return NULL;
}

static struct claim_info *make_info(const struct user_pod *p) {
        struct claim_info *i = xnew(struct claim_info);
        *i = (struct claim_info){ .node = p->node };
        snprintf(i->name, sizeof i->name, "%s", p->claim);
        snprintf(i->uid, sizeof i->uid, "%s", p->held.uid);
        LIST_INSERT_HEAD(&infos, i, entry);
        return i;
}

static void delete_info(struct claim_info *i) {
        if (!i)
                return;
        LIST_REMOVE(i, entry);
        free(i);
}

static bool refers(const struct claim_info *i, const struct user_pod *p) {
        for (unsigned k = 0; k < i->n_pods; k++)
                if (i->pods[k] == p)
                        return true;
        return false;
}

static void add_pod(struct claim_info *i, const struct user_pod *p) {
        if (!refers(i, p))
                i->pods[i->n_pods++] = p;
}

static void drop_pod(struct claim_info *i, const struct user_pod *p) {
        for (unsigned k = 0; k < i->n_pods; k++)
                if (i->pods[k] == p) {
                        i->pods[k] = i->pods[--i->n_pods];
                        return;
                }
}

/* The call of Prepare for this pod has ended. */
static bool was_prepared(struct user_pod *p) {
        struct claim_info *i = find_info(p);
        if (p->held.state != HELD_PREPARED)
                return false; /* it failed */
        if (!i) {
                held_leave(&p->held);
                p->held.state = HELD_ASKED;
                held_refuse(&p->held, "unable to get claim info");
                return false;
        }
        i->prepared = true;
        return true;
}

bool claim_info_prepare(struct user_pod *p, const char *refused) {
        if (p->held.call)
                return false;
        if (p->prepares) {
                p->prepares = false;
                return was_prepared(p);
        }
        if (sim_now_ms() < p->held.next_ms)
                return false;
        struct claim_info *i = find_info(p);
        if (!refused && i && !streq(i->uid, p->held.uid))
                refused = "an old claim with the same name still exists";
        if (!refused && i && i->unpreparing)
                refused = "the claim is being unprepared";
        if (refused) {
                held_refuse(&p->held, refused);
                return false;
        }
        if (!i)
                i = make_info(p);
        add_pod(i, p);
        if (i->prepared)
                return true;
        p->prepares = true;
        (void)held_prepare(&p->held);
        return false;
}

/* failure: pods of a node join and leave a shared claim -> each pod that a kubelet of 1.37 admits starts
 * [simulation] */
bool claim_info_start(struct user_pod *p) {
        const struct claim_info *i = find_info(p);
        bool starts = i && i->prepared && held_join(&p->held);
        if (!starts && !channels_old_kubelets())
                sim_broken("%s on %s cannot start, although its kubelet has prepared its claim", p->name,
                           p->node->name);
        return starts;
}

/* Returns true if the kubelet has nothing more to do. */
static bool release(struct user_pod *p) {
        bool old = channels_old_kubelets();
        struct claim_info *i = find_info(p);
        if (p->unprepares && p->held.state == HELD_NOT) {
                delete_info(i); /* with the pods that have referred to it since */
                return true;
        }
        if (p->unprepares && sim_now_ms() < p->held.next_ms)
                return false;
        p->prepares = p->unprepares = false;
        p->held.next_ms = 0;
        if (!i && p->held.state == HELD_PREPARED)
                held_leave(&p->held); /* the Unprepare of another pod has removed the entry */
        if (!i || (!old && !refers(i, p)))
                return true;
        if (i->n_pods > 1) {
                drop_pod(i, p);
                return true;
        }
        i->unpreparing = !old;
        p->unprepares = true;
        held_must_unprepare(&p->held);
        return false;
}

bool claim_info_unprepare(struct user_pod *p) {
        p->released = p->released || (held_abort(&p->held) && release(p));
        if (p->released)
                p->held.state = HELD_NOT; /* for this pod, whose containers have ended */
        return p->released;
}

void claim_info_reboot(const struct node *n) {
        struct claim_info *i;
        LIST_FOREACH (i, &infos, entry)
                if (i->node == n)
                        i->prepared = i->unpreparing = false;
}

void claim_info_done(void) {
        while (!LIST_EMPTY(&infos))
                delete_info(LIST_FIRST(&infos));
}
