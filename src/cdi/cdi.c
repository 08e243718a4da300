/* SPDX-License-Identifier: Apache-2.0 */
#include "cdi/cdi.h"

#include <ctype.h>
#include <string.h>

#include "base/stderr.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

enum {
        SPEC_MAX = 4 << 20, /* 2,048 channels in one claim take 300 KiB */
        NAME_LIMIT = 253,
};

/* The grammar of CDI names: letters or digits at both ends, and in between also the characters of `extra`. */
static bool name_ok(const char *s, size_t n, bool letter_first, const char *extra) {
        if (n == 0 || n > NAME_LIMIT || !isalnum((unsigned char)s[0]) || !isalnum((unsigned char)s[n - 1]))
                return false;
        if (letter_first && !isalpha((unsigned char)s[0]))
                return false;
        for (size_t i = 0; i < n; i++) {
                if (!isascii((unsigned char)s[i]) || (!isalnum((unsigned char)s[i]) && !strchr(extra, s[i])))
                        return false;
        }
        return true;
}

static bool kind_ok(const char *kind) {
        const char *slash = kind ? strchr(kind, '/') : NULL;
        return slash && name_ok(kind, (size_t)(slash - kind), true, "_-.") &&
               name_ok(slash + 1, strlen(slash + 1), true, "_-");
}

/* An ID becomes part of a file name. It is a claim's UID, but may have been read from a file. */
static bool id_ok(const char *id) {
        return id && name_ok(id, strlen(id), false, "_-.");
}

static bool path_ok(const char *path) {
        return path && path[0] == '/';
}

static int env_validate(const char *const *env, const char *where, struct err *e) {
        for (const char *const *v = env; v && *v; v++) {
                const char *equals = strchr(*v, '=');
                if (!equals || equals == *v)
                        return err_set(e, ERR_INVALID, 0, "%s: environment entry '%s' is not NAME=value",
                                       where, *v);
        }
        return 0;
}

static int hook_validate(const struct cdi_hook *h, const char *where, struct err *e) {
        static const char *const names[] = { "prestart",       "createRuntime", "createContainer",
                                             "startContainer", "poststart",     "poststop" };
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                known = known || streq(h->name, names[i]);
        if (!known)
                return err_set(e, ERR_INVALID, 0, "%s: there is no hook '%s'", where, str_or(h->name, ""));
        if (!path_ok(h->path))
                return err_set(e, ERR_INVALID, 0, "%s: hook '%s' is not an absolute path", where,
                               str_or(h->path, ""));
        return env_validate(h->env, where, e);
}

static int edits_validate(const struct cdi_edits *ed, const char *where, struct err *e) {
        if (env_validate(ed->env, where, e) < 0)
                return -1;
        for (size_t i = 0; i < ed->n_nodes; i++) {
                if (!path_ok(ed->nodes[i].path))
                        return err_set(e, ERR_INVALID, 0, "%s: device node '%s' is not an absolute path",
                                       where, str_or(ed->nodes[i].path, ""));
                if (ed->nodes[i].host_path && !path_ok(ed->nodes[i].host_path))
                        return err_set(e, ERR_INVALID, 0, "%s: device node '%s' is not an absolute path",
                                       where, ed->nodes[i].host_path);
                if (ed->nodes[i].major == 0)
                        return err_set(e, ERR_INVALID, 0, "%s: device node '%s' has no major", where,
                                       ed->nodes[i].path);
        }
        for (size_t i = 0; i < ed->n_mounts; i++) {
                const struct cdi_mount *m = &ed->mounts[i];
                if (!path_ok(m->host_path) || !path_ok(m->container_path))
                        return err_set(e, ERR_INVALID, 0,
                                       "%s: mount of '%s' at '%s': both must be absolute paths", where,
                                       str_or(m->host_path, ""), str_or(m->container_path, ""));
        }
        for (size_t i = 0; i < ed->n_hooks; i++) {
                if (hook_validate(&ed->hooks[i], where, e) < 0)
                        return -1;
        }
        return 0;
}

int cdi_validate(const struct cdi_spec *s, struct err *e) {
        if (!kind_ok(s->kind))
                return err_set(e, ERR_INVALID, 0, "CDI kind '%s' is not vendor/class", str_or(s->kind, ""));
        if (s->n_devices == 0)
                return err_set(e, ERR_INVALID, 0, "CDI spec of kind '%s' has no device", s->kind);
        for (size_t i = 0; i < s->n_devices; i++) {
                const struct cdi_device *d = &s->devices[i];
                if (!d->name || !name_ok(d->name, strlen(d->name), false, "_-.:"))
                        return err_set(e, ERR_INVALID, 0, "CDI device name '%s' is not allowed",
                                       str_or(d->name, ""));
                for (size_t j = 0; j < i; j++) {
                        if (streq(d->name, s->devices[j].name))
                                return err_set(e, ERR_INVALID, 0, "CDI device name '%s' occurs twice",
                                               d->name);
                }
                if (edits_validate(&d->edits, d->name, e) < 0)
                        return -1;
        }
        for (const char *p = s->comment; p && *p; p++) {
                if ((unsigned char)*p < ' ')
                        return err_set(e, ERR_INVALID, 0, "%s: the comment is not one line", s->kind);
        }
        return edits_validate(&s->common, s->kind, e);
}

bool cdi_edits_empty(const struct cdi_edits *ed) {
        return !(ed->env && *ed->env) && ed->n_nodes == 0 && ed->n_mounts == 0 && ed->n_hooks == 0 &&
               ed->n_gids == 0;
}

static void render_strings(struct jw *w, const char *key, const char *const *list) {
        if (!list || !*list)
                return;
        jw_arr(w, key);
        for (; *list; list++)
                jw_str(w, NULL, *list);
        jw_end_arr(w);
}

static void render_node(struct jw *w, const struct cdi_node *n) {
        jw_obj(w, NULL);
        jw_str(w, "path", n->path);
        jw_str(w, "hostPath", n->host_path ? n->host_path : n->path);
        jw_str(w, "type", "c");
        jw_int(w, "major", n->major);
        if (n->minor)
                jw_int(w, "minor", n->minor);
        jw_int(w, "fileMode", n->mode);
        if (n->permissions)
                jw_str(w, "permissions", n->permissions);
        if (n->gid)
                jw_int(w, "gid", n->gid);
        jw_end_obj(w);
}

static void render_mount(struct jw *w, const struct cdi_mount *m) {
        jw_obj(w, NULL);
        jw_str(w, "hostPath", m->host_path);
        jw_str(w, "containerPath", m->container_path);
        render_strings(w, "options", m->options);
        jw_end_obj(w);
}

static void render_hook(struct jw *w, const struct cdi_hook *h) {
        jw_obj(w, NULL);
        jw_str(w, "hookName", h->name);
        jw_str(w, "path", h->path);
        render_strings(w, "args", h->args);
        render_strings(w, "env", h->env);
        jw_end_obj(w);
}

static void render_edits(struct jw *w, const struct cdi_edits *ed) {
        jw_obj(w, "containerEdits");
        render_strings(w, "env", ed->env);
        if (ed->n_nodes) {
                jw_arr(w, "deviceNodes");
                for (size_t i = 0; i < ed->n_nodes; i++)
                        render_node(w, &ed->nodes[i]);
                jw_end_arr(w);
        }
        if (ed->n_mounts) {
                jw_arr(w, "mounts");
                for (size_t i = 0; i < ed->n_mounts; i++)
                        render_mount(w, &ed->mounts[i]);
                jw_end_arr(w);
        }
        if (ed->n_hooks) {
                jw_arr(w, "hooks");
                for (size_t i = 0; i < ed->n_hooks; i++)
                        render_hook(w, &ed->hooks[i]);
                jw_end_arr(w);
        }
        if (ed->n_gids) {
                jw_arr(w, "additionalGids");
                for (size_t i = 0; i < ed->n_gids; i++)
                        jw_int(w, NULL, ed->gids[i]);
                jw_end_arr(w);
        }
        jw_end_obj(w);
}

/* The oldest version that supports the content: an older runtime rejects a whole file of a newer version. */
static const char *version(const struct cdi_spec *s) {
        bool gids = s->common.n_gids;
        for (size_t i = 0; i < s->n_devices; i++)
                gids = gids || s->devices[i].edits.n_gids;
        return gids ? "0.7.0" : "0.5.0";
}

void cdi_render(const struct cdi_spec *s, struct buf *out) {
        struct jw w = JW(out);
        if (s->comment)
                buf_addf(out, "# %s\n", s->comment);
        jw_obj(&w, NULL);
        jw_str(&w, "cdiVersion", version(s));
        jw_str(&w, "kind", s->kind);
        jw_arr(&w, "devices");
        for (size_t i = 0; i < s->n_devices; i++) {
                jw_obj(&w, NULL);
                jw_str(&w, "name", s->devices[i].name);
                render_edits(&w, &s->devices[i].edits);
                jw_end_obj(&w);
        }
        jw_end_arr(&w);
        if (!cdi_edits_empty(&s->common))
                render_edits(&w, &s->common);
        jw_end_obj(&w);
        buf_addc(out, '\n');
}

/* "k8s.compute-domain.nvidia.com-claim_" */
char *cdi_prefix(const char *kind) {
        const char *slash = strchr(kind, '/');
        BUG_ON(!slash);
        return xasprintf("%.*s-%s_", (int)(slash - kind), kind, slash + 1);
}

char *cdi_path(const char *root, const char *kind, const char *id) {
        _cleanup_(freep) char *prefix = cdi_prefix(kind);
        return xasprintf("%s/%s%s.yaml", root, prefix, id);
}

int cdi_write(const char *root, const char *id, const struct cdi_spec *s, struct err *e) {
        if (cdi_validate(s, e) < 0)
                return -1;
        if (!id_ok(id))
                return err_set(e, ERR_INVALID, 0, "CDI file id '%s' is not allowed", str_or(id, ""));
        if (file_mkdirs(root, 0750, e) < 0)
                return err_wrap(e, "CDI folder");
        struct buf text = BUF_INIT(SPEC_MAX);
        cdi_render(s, &text);
        _cleanup_(freep) char *path = cdi_path(root, s->kind, id);
        int r = text.failed
                        ? err_set(e, ERR_INVALID, 0, "CDI spec '%s' is larger than %d bytes", path, SPEC_MAX)
                        : file_replace(path, text.p, text.n, 0600, e);
        buf_done(&text);
        return r;
}

int cdi_remove(const char *root, const char *kind, const char *id, struct err *e) {
        if (!kind_ok(kind) || !id_ok(id))
                return err_set(e, ERR_INVALID, 0, "CDI file id '%s' is not allowed", str_or(id, ""));
        _cleanup_(freep) char *path = cdi_path(root, kind, id);
        return file_remove(path, e);
}

struct listing {
        const char *prefix;
        void (*fn)(void *u, const char *id);
        void *u;
};

static int list_one(void *u, int folder, const char *name, struct err *e) {
        const struct listing *l = u;
        size_t n = strlen(name), head = strlen(l->prefix), tail = strlen(".yaml");
        if (n <= head + tail || !str_starts(name, l->prefix) || !str_ends(name, ".yaml"))
                return 0;
        _cleanup_(freep) char *id = xstrndup(name + head, n - head - tail);
        l->fn(l->u, id); /* fn may remove that file */
        return 0;
}

int cdi_list(const char *root, const char *kind, void (*fn)(void *u, const char *id), void *u,
             struct err *e) {
        if (!kind_ok(kind))
                return err_set(e, ERR_INVALID, 0, "CDI kind '%s' is not vendor/class", str_or(kind, ""));
        _cleanup_(freep) char *prefix = cdi_prefix(kind);
        struct listing l = { prefix, fn, u };
        return file_each(root, list_one, &l, e) < 0 && e->kind != ERR_NOT_FOUND ? -1 : 0;
}
