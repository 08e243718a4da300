/* SPDX-License-Identifier: Apache-2.0 */
#include "node/claim_gc.h"

#include <stdio.h>
#include <string.h>

#include "api/reasons.h"
#include "base/file.h"
#include "base/log.h"
#include "kube/backoff.h"

enum {
        FIRST_MS = 15000, /* with a jitter of a quarter, like all times here, so that nodes do not act at the
                             same time */
        PERIOD_MS = 600000,
        FILE_MAX_BYTES = 4 << 20,
};

/* ---- rebuilding entries from CDI files ---- */

static bool of_this_boot(const char *text, const char *boot_id, bool undated) {
        static const char label[] = " boot ";
        const char *p = strstr(text, label);
        char boot[37] = "";
        if (p)
                snprintf(boot, sizeof boot, "%s", p + strlen(label));
        return str_is_uuid(boot) ? streq(boot, boot_id) : undated;
}

/* The allocation as the claim's status has it, as far as it is known. The file of the checkpoint has admin
 * access only there. The Go driver reads the allocation of each prepared claim when it prepares another one,
 * and crashes without it. */
static struct str rebuilt_status(const struct claims_options *o, const struct node_device *devices, size_t n,
                                 struct arena *a) {
        struct buf b = BUF_INIT(CHECKPOINT_MAX_BYTES);
        struct jw w = JW(&b);
        jw_obj(&w, NULL);
        jw_obj(&w, "allocation");
        jw_obj(&w, "devices");
        jw_arr(&w, "results");
        for (size_t i = 0; i < n; i++) {
                jw_obj(&w, NULL);
                jw_str(&w, "request", "");
                jw_str(&w, "driver", o->driver->name);
                jw_str(&w, "pool", devices[i].pool);
                jw_str(&w, "device", devices[i].name);
                if (devices[i].admin)
                        jw_bool(&w, "adminAccess", true);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        if (o->driver->rebuild_config) {
                jw_arr(&w, "config");
                for (size_t i = 0; i < n; i++) {
                        jw_obj(&w, NULL);
                        jw_str(&w, "source", "FromClaim");
                        jw_obj(&w, "opaque");
                        jw_str(&w, "driver", o->driver->name);
                        jw_raw(&w, "parameters", str_from(o->driver->rebuild_config(&devices[i], a)));
                        jw_end_obj(&w);
                        jw_end_obj(&w);
                }
                jw_end_arr(&w);
        }
        jw_end_obj(&w);
        jw_end_obj(&w);
        jw_end_obj(&w);
        struct str status = str_from(arena_strdup(a, buf_str(&b)));
        buf_done(&b);
        return status;
}

bool claim_gc_rebuild(struct checkpoint *table, const struct claims_options *o, const char *uid,
                      struct str cdi_file, bool undated) {
        _cleanup_(freep) char *text = xstrndup(cdi_file.p, cdi_file.n);
        char ns[254] = "", name[254] = "";
        const char *none[] = { NULL };
        struct node_device *devices;
        if (!of_this_boot(text, o->boot_id, undated))
                return false;
        /* The comment that this driver writes: "claim ns/name ... boot id". */
        if (sscanf(text, "# claim %253[^/ \n]/%253[^ \n] ", ns, name) != 2 || !str_is_dns_label(ns) ||
            !str_is_dns_subdomain(name))
                ns[0] = name[0] = '\0';
        struct arena *a = arena_new(1024);
        size_t n = o->driver->rebuild(text, uid, a, &devices);
        for (size_t i = 0; i < n; i++) {
                devices[i].pool = str_or(devices[i].pool, o->node);
                devices[i].requests = devices[i].cdi_ids = none;
        }
        if (n) {
                struct checkpoint_claim *entry =
                        checkpoint_put(table, uid, ns, name, rebuilt_status(o, devices, n, a));
                checkpoint_set_devices(entry, devices, n);
                entry->state = CHECKPOINT_COMPLETED;
        }
        arena_free(a);
        return n > 0;
}

struct rebuild {
        struct claims *c;
        bool undated;
        unsigned n; /* entries made */
        int r;
        struct err *e;
};

static void rebuild_one(void *u, const char *uid) {
        struct rebuild *rb = u;
        struct claims *c = rb->c;
        _cleanup_(freep) char *path = cdi_path(c->o.cdi_root, c->o.driver->cdi_kind, uid);
        _cleanup_(freep) char *text = NULL;
        size_t n = 0;
        struct err e;
        if (rb->r < 0 || checkpoint_find(&c->journal.table, uid))
                return;
        if (file_read(path, FILE_MAX_BYTES, &text, &n, &e) < 0) {
                log_warn("cannot read a CDI file", kv_err(&e));
                /* A file of others is no claim; for a file that cannot be read now it is unknown. */
                if (e.kind != ERR_INVALID && e.kind != ERR_NOT_FOUND) {
                        *rb->e = e;
                        rb->r = -1;
                }
        } else if (claim_gc_rebuild(&c->journal.table, &c->o, uid, (struct str){ text, n }, rb->undated)) {
                log_info("rebuilt the entry of a claim from its CDI file", kv_str("uid", uid));
                rb->n++;
        }
}

/* Adds the entries that the table does not have. */
static int rebuild(struct claims *c, bool undated, unsigned *ret_n, struct err *e) {
        struct rebuild rb = { .c = c, .undated = undated, .e = e };
        if (cdi_list(c->o.cdi_root, c->o.driver->cdi_kind, rebuild_one, &rb, e) < 0 || rb.r < 0)
                return err_wrap(e, "rebuild the checkpoint from the CDI files");
        *ret_n = rb.n;
        return 0;
}

/* ---- files ---- */

/* A claim's file without an entry. The plugin writes the entry first and removes the file first, so a file of
 * this boot means that the checkpoint is not the last one that was written (a copy was restored). Then the
 * file is all that is left of the claim. */
static void judge_orphan(void *u, const char *uid) {
        struct rebuild *rb = u;
        struct claims *c = rb->c;
        const struct checkpoint_claim *entry = checkpoint_find(&c->journal.table, uid);
        struct err e;
        if (entry && entry->state != CHECKPOINT_ABORTED)
                return;
        if (!entry) {
                rebuild_one(rb, uid);
                bool unread = rb->r < 0;
                rb->r = 0;
                if (unread || checkpoint_find(&c->journal.table, uid))
                        return;
        }
        log_info("removing the CDI file of a claim that is not prepared here", kv_str("uid", uid));
        if (cdi_remove(c->o.cdi_root, c->o.driver->cdi_kind, uid, &e) < 0)
                log_warn("cannot remove a CDI file", kv_err(&e));
}

struct leftovers {
        const char *dir, *prefix;
};

static int remove_leftover(void *u, int folder, const char *name, struct err *e) {
        const struct leftovers *l = u;
        struct err failed;
        if (!str_starts(name, l->prefix) || !strstr(name, ".tmp."))
                return 0;
        _cleanup_(freep) char *path = file_join(l->dir, name);
        if (file_remove(path, &failed) < 0)
                log_warn("cannot remove a temporary file", kv_err(&failed));
        return 0;
}

/* Removes files of a process that was killed while it wrote. With the node lock held, no process writes now.
 * Only registration_announce() writes without the lock: then its file is not replaced, the other plugin does
 * not learn of this registration, and the kubelet retries by itself. */
static void remove_leftovers(const char *dir, const char *prefix) {
        struct leftovers l = { dir, prefix };
        struct err e;
        if (file_each(dir, remove_leftover, &l, &e) < 0 && e.kind != ERR_NOT_FOUND)
                log_warn("cannot look for temporary files", kv_err(&e));
}

void claim_gc_files(struct claims *c) {
        struct err e;
        remove_leftovers(c->o.plugin_dir, "."); /* the folder has no other files */
        _cleanup_(freep) char *prefix = cdi_prefix(c->o.driver->cdi_kind);
        _cleanup_(freep) char *hidden = xasprintf(".%s", prefix);
        remove_leftovers(c->o.cdi_root, hidden);
        struct err unread;
        struct rebuild rb = { .c = c, .e = &unread };
        if (cdi_list(c->o.cdi_root, c->o.driver->cdi_kind, judge_orphan, &rb, &e) < 0)
                log_warn("cannot list the CDI files", kv_err(&e));
        if (rb.n)
                event_record(
                        c->o.events, EVENT_NODE(c->o.node), EVENT_WARNING, REASON_CHECKPOINT_INCOMPLETE,
                        "the kubelet plugin's checkpoint did not have %u claim%s with CDI files of this "
                        "boot, for example because an older copy was restored; the plugin rebuilt %s from "
                        "the files",
                        rb.n, rb.n == 1 ? "" : "s", rb.n == 1 ? "it" : "them");
        if (c->o.driver->remove_unused)
                c->o.driver->remove_unused(c->o.u, &c->journal.table);
}

int claim_gc_after_sync(struct claims *c, enum journal_event event, const char *aside, bool *ret_changed,
                        struct err *e) {
        unsigned n = 0;
        *ret_changed = event != JOURNAL_SAME && event != JOURNAL_READ;
        switch (event) {
        case JOURNAL_REBOOTED:
                log_info("the checkpoint is from before the last boot: its claims are dropped, and the "
                         "kubelet prepares the claims that it needs again");
                claim_gc_files(c);
                break;
        case JOURNAL_MISSING:
                /* The first start of a node, or the file was removed. Claims of unknown age would keep their
                 * devices forever. */
                if (rebuild(c, false, &n, e) < 0)
                        return -1;
                if (n)
                        event_record(c->o.events, EVENT_NODE(c->o.node), EVENT_WARNING,
                                     REASON_CHECKPOINT_MISSING,
                                     "the kubelet plugin's checkpoint was missing; %u claim%s rebuilt from "
                                     "the CDI files of this node",
                                     n, n == 1 ? " was" : "s were");
                break;
        case JOURNAL_CORRUPT:
                log_error("the checkpoint is corrupt: it is kept under another name, and rebuilt from the "
                          "CDI files",
                          kv_str("as", aside));
                event_record(c->o.events, EVENT_NODE(c->o.node), EVENT_WARNING, REASON_CHECKPOINT_CORRUPT,
                             "the kubelet plugin's checkpoint was corrupt; it is kept as %s and was rebuilt "
                             "from the CDI files of this node",
                             aside);
                if (rebuild(c, true, &n, e) < 0)
                        return -1;
                break;
        case JOURNAL_SAME:
        case JOURNAL_READ:
                break;
        }
        return 0;
}

/* ---- claims without an object ---- */

enum whereabouts {
        HERE,      /* the claim exists, with a device of a recorded pool, or is not recorded any more */
        DELETED,   /* the object does not exist */
        ELSEWHERE, /* the claim exists, with no device of the recorded pools */
        UNKNOWN,   /* the API server did not answer */
};

/* Devices are not compared, only their pools: if the claim was allocated again on this node, the kubelet
 * gives the prepared device to the new pod (claim_gc.h). */
static bool claim_gc_has(const struct claims *c, const struct checkpoint_claim *entry, yyjson_val *result) {
        const char *driver = yyjson_get_str(yyjson_obj_get(result, "driver"));
        const char *pool = yyjson_get_str(yyjson_obj_get(result, "pool"));
        if (!driver || !pool)
                return true;
        if (!streq(driver, c->o.driver->name))
                return false;
        for (size_t i = 0; i < entry->n_devices; i++) {
                const struct node_device *d = &entry->devices[i];
                if (!d->name || streq(str_or(d->pool, c->o.node), pool))
                        return true;
        }
        return !entry->n_devices; /* a started claim without recorded devices */
}

/* `obj` and `e` are the answer of kube_start() for the claim with this UID. */
static enum whereabouts whereabouts(const struct claims *c, const char *uid, yyjson_val *obj,
                                    const struct err *e) {
        const char *found = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(obj, "metadata"), "uid"));
        yyjson_val *allocation = yyjson_obj_get(yyjson_obj_get(obj, "status"), "allocation"), *result;
        yyjson_val *results = yyjson_obj_get(yyjson_obj_get(allocation, "devices"), "results");
        const struct checkpoint_claim *entry = checkpoint_find(&c->journal.table, uid);
        size_t i, max;
        if (e ? e->kind != ERR_NOT_FOUND : !found)
                return UNKNOWN;
        if (e || !streq(found, uid))
                return DELETED;
        if (!entry)
                return HERE;
        yyjson_arr_foreach (results, i, max, result) {
                if (claim_gc_has(c, entry, result))
                        return HERE;
        }
        return ELSEWHERE;
}

struct suspect {
        const char *ns, *name, *uid;
        bool gone;          /* by the answer of this round */
        bool gone_before;   /* by an earlier round without an error */
        uint64_t before_ms; /* the time of the first such answer */
};

/* All of it in the arena. */
struct round {
        struct arena *a;
        struct suspect *list;
        size_t n;
};

/* A look-up of a claim that holds a device for which a Prepare waits. */
struct holder_check {
        LIST_ENTRY(holder_check) link;
        struct claim_gc *s;
        char *ns, *name, *uid;
        struct kube_call *call;
        struct loop_timer again;
        enum whereabouts found; /* by the first look-up */
        uint64_t due_ms;        /* the time of the second look-up; 0: not needed */
};

struct claim_gc {
        LIST_HEAD(, holder_check) checks;
        struct claims *c;
        struct loop_timer timer;
        struct kube_call *call;
        uint64_t now_ms; /* of this round */
        size_t asked;    /* position in the list of the look-up in progress */
        struct round now, before;
};

static void drop_round(struct round *r) {
        arena_free(r->a);
        *r = (struct round){ 0 };
}

/* Two answers of a healthy API server state that the claim no longer exists here. */
static void unprepare_gone(struct claims *c, const char *ns, const char *name, const char *uid) {
        const struct checkpoint_claim *entry = checkpoint_find(&c->journal.table, uid);
        _cleanup_(freep) char *claim = xasprintf("%s/%s", ns, name);
        if (!entry || ops_active(c, uid) ||
            (c->o.driver->may_collect && !c->o.driver->may_collect(c->o.u, entry)))
                return;
        log_info("unpreparing a claim that no longer exists on this node", kv_str("claim", claim),
                 kv_str("uid", uid));
        op_queue(op_new(c, NULL, true, &(struct dra_claim){ ns, name, uid }, NULL));
}

static void end_round(struct claim_gc *s) {
        for (struct suspect *x = s->now.list; x < s->now.list + s->now.n; x++) {
                if (x->gone && x->gone_before && s->now_ms - x->before_ms >= CLAIM_GC_APART_MS)
                        unprepare_gone(s->c, x->ns, x->name, x->uid);
                if (!x->gone_before)
                        x->before_ms = s->now_ms;
        }
        drop_round(&s->before);
        s->before = s->now;
        s->now = (struct round){ 0 };
}

/* A server that answers so for one claim may have been wrong about the others, in this round and before. */
static void give_up_round(struct claim_gc *s) {
        drop_round(&s->now);
        drop_round(&s->before);
}

static void look_up_next(struct claim_gc *s);

static void claim_gc_on_claim(void *u, yyjson_val *obj, const struct err *e) {
        struct claim_gc *s = u;
        struct suspect *x = &s->now.list[s->asked++];
        enum whereabouts where = whereabouts(s->c, x->uid, obj, e);
        s->call = NULL;
        if (where == UNKNOWN) {
                log_v(2, "recorded claims cannot be looked up now: none is considered deleted",
                      kv_str("err", e ? e->msg : "the answer is not an object"));
                give_up_round(s);
                return;
        }
        x->gone = where != HERE;
        look_up_next(s);
}

/* Reads the whole claim, for its allocation; one at a time, and freed before the next. */
static struct kube_call *claim_gc_ask(struct claims *c, const char *ns, const char *name, kube_done_fn *done,
                                      void *u) {
        return kube_start(c->o.kube, &(struct kube_request){ .verb = KUBE_GET,
                                                             .res = &kube_resource_claims,
                                                             .ns = ns,
                                                             .name = name,
                                                             .done = done,
                                                             .u = u });
}

static void look_up_next(struct claim_gc *s) {
        const struct suspect *x = &s->now.list[s->asked];
        if (s->asked < s->now.n)
                s->call = claim_gc_ask(s->c, x->ns, x->name, claim_gc_on_claim, s);
        else
                end_round(s);
}

/* Entries of old versions have no name, and cannot be looked up. */
static bool can_be_asked_for(const struct checkpoint_claim *e) {
        return e->ns && *e->ns && e->name && *e->name && e->state != CHECKPOINT_ABORTED;
}

void claim_gc_deleted_claims(struct claim_gc *s, uint64_t now_ms) {
        const struct checkpoint_claim *claims = s->c->journal.table.claims;
        if (s->call)
                return;
        struct arena *a = arena_new(1024);
        s->now = (struct round){ a, arena_alloc(a, (HASH_COUNT(claims) + 1) * sizeof *s->now.list), 0 };
        s->now_ms = now_ms;
        s->asked = 0;
        for (const struct checkpoint_claim *e = claims; e; e = e->hh.next) {
                if (!can_be_asked_for(e) || ops_active(s->c, e->uid))
                        continue;
                struct suspect *x = &s->now.list[s->now.n++];
                *x = (struct suspect){ arena_strdup(a, e->ns), arena_strdup(a, e->name),
                                       arena_strdup(a, e->uid) };
                for (size_t i = 0; i < s->before.n; i++) {
                        const struct suspect *known = &s->before.list[i];
                        if (known->gone && streq(known->uid, x->uid)) {
                                x->gone_before = true;
                                x->before_ms = known->before_ms;
                        }
                }
        }
        look_up_next(s);
}

/* ---- the claim that holds another claim's device ---- */

static void drop_check(struct holder_check *l) {
        LIST_REMOVE(l, link);
        kube_cancel(l->call);
        loop_timer_done(&l->again);
        free(l->ns);
        free(l->name);
        free(l->uid);
        free(l);
}

static void claim_gc_on_holder(void *u, yyjson_val *obj, const struct err *e) {
        struct holder_check *l = u;
        struct claims *c = l->s->c;
        enum whereabouts where = whereabouts(c, l->uid, obj, e);
        l->call = NULL;
        if (where == HERE || where == UNKNOWN) {
                drop_check(l);
        } else if (!l->due_ms) {
                l->found = where;
                l->due_ms = loop_now_ms(c->o.loop) + CLAIM_GC_HOLDER_MS;
                loop_timer_at(&l->again, l->due_ms);
                ops_kick(c); /* waiting Prepares now have a reason to report */
        } else {
                unprepare_gone(c, l->ns, l->name, l->uid);
                drop_check(l);
        }
}

static void check_again(void *u) {
        struct holder_check *l = u;
        l->call = claim_gc_ask(l->s->c, l->ns, l->name, claim_gc_on_holder, l);
}

static struct holder_check *find_check(const struct claim_gc *s, const char *uid) {
        struct holder_check *l;
        LIST_FOREACH (l, &s->checks, link) {
                if (streq(l->uid, uid))
                        return l;
        }
        return NULL;
}

void claim_gc_holder(struct claim_gc *s, const char *uid) {
        const struct checkpoint_claim *entry = checkpoint_find(&s->c->journal.table, uid);
        if (!entry || !can_be_asked_for(entry) || ops_active(s->c, uid) || find_check(s, uid))
                return;
        struct holder_check *l = xnew(struct holder_check);
        l->s = s;
        l->ns = xstrdup(entry->ns);
        l->name = xstrdup(entry->name);
        l->uid = xstrdup(uid);
        loop_timer_init(&l->again, s->c->o.loop, check_again, l);
        LIST_INSERT_HEAD(&s->checks, l, link);
        check_again(l);
}

void claim_gc_explain(const struct claim_gc *s, const char *uid, char *ret, size_t size) {
        const struct holder_check *l = find_check(s, uid);
        *ret = '\0';
        if (!l || !l->due_ms)
                return;
        uint64_t now = loop_now_ms(s->c->o.loop);
        snprintf(ret, size, "; %s: the device is released in %u s if that has not changed",
                 l->found == DELETED ? "the API server no longer has that claim"
                                     : "that claim is no longer allocated on this node",
                 (unsigned)(l->due_ms > now ? (l->due_ms - now + 999) / 1000 : 0));
}

static void claim_gc_on_timer(void *u) {
        struct claim_gc *s = u;
        claim_gc_deleted_claims(s, uv_now(s->c->o.loop));
        loop_timer_start(&s->timer, backoff_spread(PERIOD_MS));
}

struct claim_gc *claim_gc_new(struct claims *c) {
        struct claim_gc *s = xnew(struct claim_gc);
        s->c = c;
        LIST_INIT(&s->checks);
        loop_timer_init(&s->timer, c->o.loop, claim_gc_on_timer, s);
        loop_timer_start(&s->timer, backoff_spread(FIRST_MS));
        return s;
}

void claim_gc_free(struct claim_gc *s) {
        while (!LIST_EMPTY(&s->checks))
                drop_check(LIST_FIRST(&s->checks));
        kube_cancel(s->call);
        give_up_round(s);
        loop_timer_done(&s->timer);
        free(s);
}
