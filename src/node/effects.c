/* SPDX-License-Identifier: Apache-2.0 */
#include "node/effects.h"

#include <time.h>

/* ---- preparing ---- */

/* The resources of a claim, and its CDI file. */
struct effects {
        struct disk_task task;
        const struct node_driver *driver;
        const char *plugin_dir, *cdi_root, *node; /* outlive the job */
        const char *uid;
        const char **resources; /* NULL-terminated */
        bool again;
        struct cdi_spec spec; /* without devices: no file */
};

static int effect(const struct effects *x, struct err *e) {
        for (const char **resource = x->resources; *resource; resource++) {
                if (x->driver->set_up(x->plugin_dir, *resource, x->again, e) < 0)
                        return -1;
        }
        return x->spec.n_devices ? cdi_write(x->cdi_root, x->uid, &x->spec, e)
                                 : cdi_remove(x->cdi_root, x->driver->cdi_kind, x->uid, e);
}

static int run_effects(struct disk_task *t, struct err *e) {
        const struct effects *x = (const struct effects *)t;
        return effect(x, e) < 0 ? err_wrap(e, "%s", x->node) : 0;
}

/* Plans the effects of the Prepare, and its record. The CDI file has one device for each of the claim's
 * devices of this driver that has edits. */
static int plan(struct op *op, struct effects *x, struct node_device *recorded, struct err *e) {
        const struct claims *c = op->c;
        const struct node_driver *driver = c->o.driver;
        struct arena *a = x->task.arena;
        struct cdi_device *devices = arena_alloc(a, (op->n_requests + 1) * sizeof *devices);
        size_t n = 0, n_things = 0;
        *x = (struct effects){
                .task = x->task,
                .driver = driver,
                .plugin_dir = c->o.plugin_dir,
                .cdi_root = c->o.cdi_root,
                .node = c->o.node,
                .uid = arena_strdup(a, op->uid),
                .resources = arena_alloc(a, (op->n_requests + 1) * sizeof *x->resources),
                .again = op_prepared_before(op),
        };
        struct cdi_edits common = { 0 };
        if (driver->plan_claim && op->n_requests && driver->plan_claim(c->o.u, op, a, &common, e) < 0)
                return -1;
        for (size_t i = 0; i < op->n_requests; i++) {
                const struct node_request *w = &op->requests[i];
                const char *name = arena_printf(a, "%s-%s", op->uid, w->result->device);
                const char **lists = arena_alloc(a, 4 * sizeof *lists);
                struct node_effect effect = { 0 };
                bool twice = false;
                if (driver->plan(c->o.u, op, w, a, &effect, e) < 0)
                        return -1;
                if (effect.resource)
                        x->resources[n_things++] = effect.resource;
                for (size_t j = 0; j < n; j++) /* several requests with admin access may share a device */
                        twice = twice || streq(devices[j].name, name);
                lists[0] = w->result->request;
                if (!cdi_edits_empty(&effect.edits)) {
                        lists[2] = arena_printf(a, "%s=%s", driver->cdi_kind, name);
                        if (!twice)
                                devices[n++] = (struct cdi_device){ name, effect.edits };
                }
                recorded[i] = (struct node_device){
                        .name = w->result->device,
                        .pool = w->result->pool,
                        .requests = lists,
                        .cdi_ids = lists + 2,
                        .admin = w->result->admin_access,
                };
                driver->record(w, &recorded[i]);
        }
        x->spec = (struct cdi_spec){
                .kind = driver->cdi_kind,
                .devices = devices,
                .n_devices = n,
                .common = common,
                .comment = n ? arena_printf(a, "claim %s/%s %s boot %s", op->ns, op->name,
                                            driver->comment(op, a), c->o.boot_id)
                             : NULL,
        };
        return 0;
}

static int do_nothing(struct disk_task *t, struct err *e) {
        return 0;
}

int effects_prepare(struct op *op, struct disk *disk, struct err *e) {
        /* No task is added before all of the claim has been planned. */
        struct effects *x = disk_task(disk, sizeof *x, do_nothing);
        struct node_device *devices = arena_alloc(x->task.arena, (op->n_requests + 1) * sizeof *devices);
        if (plan(op, x, devices, e) < 0)
                return err_wrap(e, "%s", op->c->o.node);
        x->task.run = run_effects;
        struct checkpoint_claim *entry =
                checkpoint_put(&op->c->journal.table, op->uid, op->ns, op->name, op->status);
        checkpoint_set_devices(entry, devices, op->n_requests);
        entry->state = CHECKPOINT_COMPLETED;
        op->task = &x->task;
        return 0;
}

void effects_revoke(struct op *op) {
        const struct effects *x = (const struct effects *)(const void *)op->task;
        /* An earlier Prepare stays valid; its file is missing, and the next Prepare notices that. */
        if (!x->again)
                checkpoint_put(&op->c->journal.table, op->uid, op->ns, op->name, op->status);
}

/* ---- unpreparing ---- */

struct removal {
        struct disk_task task;
        const struct node_driver *driver;
        const char *root, *id; /* outlive the job; a copy */
};

static int remove_cdi(struct disk_task *t, struct err *e) {
        const struct removal *r = (const struct removal *)t;
        /* An ID that cannot be the name of a file never was one. */
        return cdi_remove(r->root, r->driver->cdi_kind, r->id, e) < 0 && e->kind != ERR_INVALID ? -1 : 0;
}

static int undo(struct disk_task *t, struct err *e) {
        const struct removal *r = (const struct removal *)t;
        return r->driver->undo(r->root, r->id, e);
}

static struct disk_task *removal(struct claims *c, struct disk *disk,
                                 int (*run)(struct disk_task *t, struct err *e), const char *root,
                                 const char *id) {
        struct removal *r = disk_task(disk, sizeof *r, run);
        r->driver = c->o.driver;
        r->root = root;
        r->id = arena_strdup(r->task.arena, id);
        return &r->task;
}

struct disk_task *effects_remove(struct claims *c, struct disk *disk, const char *uid) {
        return removal(c, disk, remove_cdi, c->o.cdi_root, uid);
}

static void note_leaving(void *u, const char *resource) {
        struct effects_unused_list *unused = u;
        struct effects_unused *l = xnew(struct effects_unused);
        l->resource = xstrdup(resource);
        STAILQ_INSERT_TAIL(unused, l, link);
}

bool effects_unprepare(struct claims *c, const char *uid, struct effects_unused_list *unused) {
        struct checkpoint_claim *entry = checkpoint_find(&c->journal.table, uid);
        if (!entry || entry->state == CHECKPOINT_ABORTED)
                return false;
        if (c->o.driver->each_resource)
                c->o.driver->each_resource(entry, note_leaving, unused);
        if (entry->state == CHECKPOINT_STARTED) {
                entry->state = CHECKPOINT_ABORTED;
                entry->aborted_at = time(NULL);
                entry->n_devices = 0;
                entry->prepared = (struct str){ 0 };
        } else {
                checkpoint_drop(&c->journal.table, entry);
        }
        return true;
}

struct in_use {
        const char *resource;
        bool yes;
};

static void effects_compare(void *u, const char *resource) {
        struct in_use *s = u;
        s->yes = s->yes || streq(s->resource, resource);
}

bool effects_in_use(const struct claims *c, const char *resource) {
        struct in_use s = { .resource = resource };
        for (const struct checkpoint_claim *i = c->journal.table.claims; i && !s.yes; i = i->hh.next) {
                if (i->state != CHECKPOINT_ABORTED)
                        c->o.driver->each_resource(i, effects_compare, &s);
        }
        return s.yes;
}

void effects_undo(struct claims *c, struct disk *disk, struct effects_unused_list *unused) {
        struct effects_unused *l;
        STAILQ_FOREACH (l, unused, link) {
                if (!effects_in_use(c, l->resource))
                        l->task = removal(c, disk, undo, c->o.plugin_dir, l->resource);
        }
}

void effects_undone(struct claims *c, struct effects_unused_list *unused) {
        const struct effects_unused *l;
        STAILQ_FOREACH (l, unused, link) {
                if (l->task && l->task->r < 0)
                        c->o.driver->undo_failed(l->resource, &l->task->e);
        }
        effects_forget(unused);
}

void effects_forget(struct effects_unused_list *unused) {
        while (!STAILQ_EMPTY(unused)) {
                struct effects_unused *l = STAILQ_FIRST(unused);
                STAILQ_REMOVE_HEAD(unused, link);
                free(l->resource);
                free(l);
        }
}
