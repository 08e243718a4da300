/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bundle.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "api/resources.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/tool_kinds.h"

/* ---- the manifest ---- */

#define MANIFEST "bundle.json"
static const char *const state_words[] = {
        [VIEW_COMPLETE] = "complete", [VIEW_PARTIAL] = "partial", [VIEW_UNREADABLE] = "unreadable"
};

struct bundle_file {
        char *name;
        yyjson_doc *doc;
};

struct bundle {
        struct source source;
        struct bundle_file *files;
        size_t n_files, cap_files;
        char *ns;
        const char *version; /* of the API server, in the manifest */
};

static yyjson_val *bundle_root(const struct bundle *b, const char *name) {
        for (size_t i = 0; i < b->n_files; i++)
                if (streq(b->files[i].name, name))
                        return yyjson_doc_get_root(b->files[i].doc);
        return NULL;
}

static const char *member_text(yyjson_val *object, const char *key) {
        return yyjson_get_str(yyjson_obj_get(object, key));
}

/* The name of a kind in the bundle: "pods", "computedomains.resource.nvidia.com". */
static void bundle_name(const struct kube_resource *res, struct buf *out) {
        buf_adds(out, res->plural);
        if (*res->group)
                buf_addf(out, ".%s", res->group);
}

/* The entry of the manifest that decides about a query; NULL: the list was not read. An entry of all
 * namespaces also answers for one, unless it could not be read. */
static yyjson_val *manifest_entry(yyjson_val *lists, const struct source_query *q) {
        yyjson_val *found = NULL, *x;
        size_t i, n;
        yyjson_arr_foreach (lists, i, n, x) {
                const char *ns = member_text(x, "namespace"), *name = member_text(x, "name");
                bool readable = !streq(member_text(x, "state"), state_words[VIEW_UNREADABLE]);
                bool same = streq(ns, q->ns) && (!name || streq(name, q->name));
                bool wider = !ns && !name && (readable || !found);
                if (same || wider)
                        found = x;
                if (same && readable)
                        break;
        }
        return found;
}

static int manifest_check(yyjson_val *entry, const char *kind, struct err *e) {
        const char *state = member_text(entry, "state"),
                   *why = str_or(member_text(entry, "why"), "not in the bundle");
        if (!entry || streq(state, state_words[VIEW_UNREADABLE]))
                return err_set(e, ERR_DENIED, 0, "%.100s: %.700s", kind, why);
        if (yyjson_get_bool(yyjson_obj_get(entry, "notServed")))
                return err_set(e, ERR_NOT_FOUND, 0, "%.700s", why);
        if (!streq(state, state_words[VIEW_COMPLETE]))
                return err_set(e, ERR_RETRY, 0, "%.700s", why);
        return 0;
}

/* ---- reading ---- */

static bool object_matches(yyjson_val *object, const struct source_query *q) {
        yyjson_val *meta = yyjson_obj_get(object, "metadata");
        return (!q->ns || !q->res->namespaced || streq(member_text(meta, "namespace"), q->ns)) &&
               (!q->name || streq(member_text(meta, "name"), q->name));
}

static int bundle_list(struct source *s, const struct source_query *q, source_object_fn *fn, void *u,
                       struct err *e) {
        struct bundle *b = CONTAINER(s, struct bundle, source);
        _cleanup_(buf_done) struct buf name = BUF_INIT(1024), file = BUF_INIT(1024);
        yyjson_val *manifest = bundle_root(b, MANIFEST), *object;
        bundle_name(q->res, &name);
        buf_addf(&file, "%s.json", buf_str(&name));
        yyjson_val *root = bundle_root(b, buf_str(&file)), *items = yyjson_obj_get(root, "items");
        int r = 0;
        if (manifest) {
                yyjson_val *lists = yyjson_obj_get(yyjson_obj_get(manifest, "kinds"), buf_str(&name));
                r = manifest_check(manifest_entry(lists, q), buf_str(&name), e);
        } else if (!root) {
                r = err_set(e, ERR_DENIED, 0, "the bundle has no file %s", buf_str(&file));
        }
        if (r < 0 && e->kind != ERR_RETRY)
                return r;
        if (!q->label) {
                size_t i, n;
                yyjson_arr_foreach (items, i, n, object)
                        if (object_matches(object, q))
                                fn(u, object);
        }
        return r;
}

static const char *bundle_version(struct source *s) {
        return CONTAINER(s, struct bundle, source)->version;
}

static void bundle_free(struct source *s) {
        struct bundle *b = CONTAINER(s, struct bundle, source);
        for (size_t i = 0; i < b->n_files; i++) {
                free(b->files[i].name);
                yyjson_doc_free(b->files[i].doc);
        }
        free(b->files);
        free(b->ns);
        free(b);
}

/* Adds a file of this path, unless it is not JSON by its name. */
static int bundle_add(struct bundle *b, const char *path, size_t path_n, struct str text, struct err *e) {
        _cleanup_(freep) char *name = xstrndup(path, path_n);
        const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
        if (!str_ends(base, ".json") || bundle_root(b, base))
                return 0;
        if (b->n_files >= BUNDLE_FILES_MAX)
                return err_set(e, ERR_INVALID, 0, "the bundle has too many files");
        yyjson_doc *doc = json_parse(text, 0, e);
        if (!doc)
                return err_wrap(e, "%.200s", base);
        GROW(b->files, b->n_files, b->cap_files);
        b->files[b->n_files++] = (struct bundle_file){ xstrdup(base), doc };
        return 0;
}

static struct bundle *bundle_new(void) {
        struct bundle *b = xnew(struct bundle);
        b->source =
                (struct source){ .list = bundle_list, .server_version = bundle_version, .free = bundle_free };
        return b;
}

static int bundle_finish(struct bundle *b, const char *ns, struct source **ret, struct err *e) {
        yyjson_val *manifest = bundle_root(b, MANIFEST);
        const char *created = member_text(manifest, "created"), *named = member_text(manifest, "namespace");
        if (!created || !jd_time(created, &b->source.now))
                b->source.now = (int64_t)time(NULL);
        b->version = member_text(manifest, "serverVersion");
        b->ns = xstrdup(ns ? ns : str_or(named, "default"));
        b->source.ns = b->ns;
        if (!b->n_files) {
                bundle_free(&b->source);
                return err_set(e, ERR_INVALID, 0, "not a bundle: it contains no JSON file");
        }
        *ret = &b->source;
        return 0;
}

/* ---- tar: POSIX.1-1988 ustar, of which only names, sizes and types are read ---- */

enum { TAR_BLOCK = 512, TAR_SIZE = 124, TAR_TYPE = 156 };

static bool tar_size(const char *header, size_t *ret) {
        size_t n = 0, i = 0;
        for (; i < 12 && header[TAR_SIZE + i] == ' '; i++)
                ;
        for (; i < 12 && header[TAR_SIZE + i] >= '0' && header[TAR_SIZE + i] <= '7'; i++)
                n = n << 3 | (size_t)(header[TAR_SIZE + i] - '0');
        *ret = n;
        return n <= BUNDLE_MAX && (i == 12 || header[TAR_SIZE + i] == '\0' || header[TAR_SIZE + i] == ' ');
}

static int tar_each(struct bundle *b, struct str tar, struct err *e) {
        for (size_t at = 0; at + TAR_BLOCK <= tar.n && tar.p[at];) {
                const char *header = tar.p + at;
                size_t n, name_n = strnlen(header, 100);
                if (!tar_size(header, &n) || n > tar.n - at - TAR_BLOCK)
                        return err_set(e, ERR_INVALID, 0,
                                       "not a bundle: neither a folder nor a complete tar file");
                bool file = header[TAR_TYPE] == '0' || header[TAR_TYPE] == '\0';
                if (file && bundle_add(b, header, name_n, (struct str){ header + TAR_BLOCK, n }, e) < 0)
                        return -1;
                at += TAR_BLOCK + (n + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
        }
        return 0;
}

int bundle_read_tar(struct str tar, const char *ns, struct source **ret, struct err *e) {
        struct bundle *b = bundle_new();
        if (tar_each(b, tar, e) < 0) {
                bundle_free(&b->source);
                return -1;
        }
        return bundle_finish(b, ns, ret, e);
}

static int bundle_read_file(const char *path, struct buf *out, struct err *e) {
        char chunk[16 << 10];
        size_t n;
        FILE *f = fopen(path, "rbe");
        if (!f)
                return err_errno(e, errno, "cannot open '%s'", path);
        while ((n = fread(chunk, 1, sizeof chunk, f)) > 0 && !out->failed)
                buf_add(out, chunk, n);
        bool bad = ferror(f);
        fclose(f);
        return bad || out->failed ? err_set(e, ERR_INVALID, 0, "cannot read '%s'", path) : 0;
}

static int read_folder(struct bundle *b, const char *path, DIR *d, struct err *e) {
        int r = 0;
        for (const struct dirent *x; r == 0 && (x = readdir(d));) {
                if (!str_ends(x->d_name, ".json"))
                        continue;
                _cleanup_(freep) char *name = xasprintf("%s/%s", path, x->d_name);
                _cleanup_(buf_done) struct buf text = BUF_INIT(BUNDLE_MAX);
                r = bundle_read_file(name, &text, e);
                if (r == 0)
                        r = bundle_add(b, name, strlen(name), (struct str){ buf_str(&text), text.n }, e);
        }
        return r;
}

int bundle_open(const char *path, const char *ns, struct source **ret, struct err *e) {
        DIR *d = opendir(path);
        if (!d && errno != ENOTDIR)
                return err_errno(e, errno, "cannot open '%s'", path);
        if (!d) {
                _cleanup_(buf_done) struct buf text = BUF_INIT(BUNDLE_MAX);
                if (bundle_read_file(path, &text, e) < 0)
                        return -1;
                return bundle_read_tar((struct str){ buf_str(&text), text.n }, ns, ret, e);
        }
        struct bundle *b = bundle_new();
        int r = read_folder(b, path, d, e);
        closedir(d);
        if (r < 0) {
                bundle_free(&b->source);
                return -1;
        }
        return bundle_finish(b, ns, ret, e);
}

/* ---- writing ---- */

struct recorded_list {
        char *ns, *name, *why;
        enum view_state state;
        bool not_served;
};

struct recorded_kind {
        const struct kube_resource *res;
        struct buf items; /* the objects, separated by commas */
        struct recorded_list *lists;
        size_t n, cap;
};

struct bundle_writer {
        struct source source, *from;
        struct recorded_kind *kinds;
        size_t n, cap;
};

static struct recorded_kind *recorded(struct bundle_writer *w, const struct kube_resource *res) {
        for (size_t i = 0; i < w->n; i++)
                if (w->kinds[i].res == res)
                        return &w->kinds[i];
        GROW(w->kinds, w->n, w->cap);
        w->kinds[w->n] = (struct recorded_kind){ .res = res, .items = BUF_INIT(BUNDLE_MAX) };
        return &w->kinds[w->n++];
}

/* Whether the value of a variable is kept: the chart sets it, in a container of the driver, or it decides
 * about NVLink in any container. Users can add other variables, whose values may be secrets. */
static bool env_is_kept(const char *name, bool of_driver) {
        static const char *const prefixes[] = { "IMEX_", "CD_DAEMON_", "LEADER_ELECTION_", "KUBELET_",
                                                "KUBE_API_" };
        static const char *const names[] = {
                "ADDITIONAL_NAMESPACES",
                "ADDITIONAL_XIDS_TO_IGNORE",
                "ALT_PROC_DEVICES_PATH",
                "APPLY_CRDS",
                "AUTO_DOMAINS",
                "CDI_ROOT",
                "CHANNEL_NODES",
                "CHECKPOINT_LAYOUT",
                "CONTROLLER_DEPLOYMENT",
                "CONTROLLER_SELECTOR",
                "EVICT_AFTER_MINUTES",
                "FEATURE_GATES",
                "FRESH_POD_PER_DOMAIN",
                "GPU_ADDITIONAL_GIDS",
                "GPU_CLIQUE_LABEL_ENABLED",
                "GPU_IPC_SOCKETS",
                "HEALTHCHECK_PORT",
                "HOST_ROOT",
                "HTTP_ENDPOINT",
                "IMAGE_NAME",
                "LOGGING_FORMAT",
                "LOG_VERBOSITY",
                "LOG_VERBOSITY_CD_DAEMON",
                "MASK_NVIDIA_DRIVER_PARAMS",
                "MAX_NODES_PER_IMEX_DOMAIN",
                "METRICS_PATH",
                "NAMESPACE",
                "NODE_NAME",
                "NVIDIA_CDI_HOOK_PATH",
                "NVIDIA_DRIVER_ROOT",
                "NVIDIA_MIG_CONFIG_DEVICES",
                "NVIDIA_VISIBLE_DEVICES",
                "POD_NAME",
                "POD_NODE_SELECTOR",
                "RACK_DOMAINS",
                "RACK_NAME_FROM_NODE_LABEL",
                "RETRY_PREPARES",
                "TRUST_CONTAINER_TOOLKIT",
                "UNINSTALL_TIMEOUT",
        };
        for (size_t i = 0; of_driver && name && i < ARRAY_LEN(prefixes); i++)
                if (str_starts(name, prefixes[i]))
                        return true;
        return (of_driver && has_string(names, ARRAY_LEN(names), name)) || streq(name, "NCCL_MNNVL_ENABLE");
}

static void strip_env(yyjson_mut_val *container, bool of_driver) {
        yyjson_mut_val *env;
        size_t i, n;
        yyjson_mut_arr_foreach(yyjson_mut_obj_get(container, "env"), i, n, env) {
                const char *name = yyjson_mut_get_str(yyjson_mut_obj_get(env, "name"));
                if (!env_is_kept(name, of_driver))
                        yyjson_mut_obj_remove_key(env, "value");
        }
}

/* Whether the container runs a program of the driver, as workload_object_is_of_driver() decides. */
static bool runs_driver(yyjson_mut_val *container) {
        const char *first =
                yyjson_mut_get_str(yyjson_mut_arr_get_first(yyjson_mut_obj_get(container, "command")));
        const struct container c = { .command = &first, .n_command = 1 };
        return first && container_is_of_driver(&c);
}

/* Arguments, probes and hooks of other programs may contain passwords. The first word of a command is kept:
 * it shows which program the container runs. */
static void strip_container(yyjson_mut_val *container) {
        static const char *const others[] = { "args", "livenessProbe", "readinessProbe", "startupProbe",
                                              "lifecycle" };
        bool of_driver = runs_driver(container);
        strip_env(container, of_driver);
        if (of_driver)
                return;
        yyjson_mut_val *command = yyjson_mut_obj_get(container, "command");
        while (yyjson_mut_arr_size(command) > 1)
                yyjson_mut_arr_remove_last(command);
        for (size_t i = 0; i < ARRAY_LEN(others); i++)
                yyjson_mut_obj_remove_key(container, others[i]);
}

static void strip_containers(yyjson_mut_val *spec) {
        static const char *const lists[] = { "containers", "initContainers", "ephemeralContainers" };
        for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
                yyjson_mut_val *container;
                size_t k, n;
                yyjson_mut_arr_foreach(yyjson_mut_obj_get(spec, lists[i]), k, n, container)
                        strip_container(container);
        }
}

static void strip(yyjson_mut_val *object) {
        yyjson_mut_val *meta = yyjson_mut_obj_get(object, "metadata"),
                       *spec = yyjson_mut_obj_get(object, "spec");
        yyjson_mut_obj_remove_key(meta, "managedFields");
        yyjson_mut_obj_remove_key(yyjson_mut_obj_get(meta, "annotations"),
                                  "kubectl.kubernetes.io/last-applied-configuration");
        strip_containers(spec);
        strip_containers(yyjson_mut_obj_get(yyjson_mut_obj_get(spec, "template"), "spec"));
}

struct recording {
        struct recorded_kind *kind;
        source_object_fn *fn;
        void *u;
        bool incomplete; /* an object is left out that may belong to the driver */
};

/* Whether the object is recorded: of Deployments and DaemonSets, only the driver's. */
static bool is_recorded(struct recording *r, yyjson_val *object) {
        if (r->kind->res != &tool_kinds_deployments && r->kind->res != &kube_daemonsets)
                return true;
        struct arena *a = arena_new(4 << 10);
        struct workload_object w = { 0 };
        struct err e;
        bool decoded = jd_decode(workload_object_fields, object, "", a, &w, &e) == 0;
        bool is = decoded && workload_object_is_of_driver(&w);
        r->incomplete = r->incomplete || !decoded;
        arena_free(a);
        return is;
}

static void record_object(void *u, yyjson_val *object) {
        struct recording *r = u;
        size_t n;
        if (!is_recorded(r, object)) {
                r->fn(r->u, object);
                return;
        }
        yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
        yyjson_mut_val *copy = yyjson_val_mut_copy(doc, object);
        strip(copy);
        char *text = yyjson_mut_val_write(copy, 0, &n);
        if (text) {
                if (r->kind->items.n)
                        buf_adds(&r->kind->items, ",\n");
                buf_add(&r->kind->items, text, n);
        }
        free(text);
        yyjson_mut_doc_free(doc);
        r->fn(r->u, object);
}

static int writer_list(struct source *s, const struct source_query *q, source_object_fn *fn, void *u,
                       struct err *e) {
        struct bundle_writer *w = CONTAINER(s, struct bundle_writer, source);
        struct recording r = { .kind = recorded(w, q->res), .fn = fn, .u = u };
        int result = w->from->list(w->from, q, record_object, &r, e);
        struct recorded_list x = { .ns = xstrdup_or_null(q->ns), .name = xstrdup_or_null(q->name) };
        if (result < 0) {
                x.state = e->kind == ERR_DENIED      ? VIEW_UNREADABLE
                          : e->kind == ERR_NOT_FOUND ? VIEW_COMPLETE
                                                     : VIEW_PARTIAL;
                x.not_served = e->kind == ERR_NOT_FOUND;
                x.why = xstrdup(e->msg);
        } else if (r.incomplete) {
                x.state = VIEW_PARTIAL;
                x.why = xstrdup("an object could not be decoded");
        }
        GROW(r.kind->lists, r.kind->n, r.kind->cap);
        r.kind->lists[r.kind->n++] = x;
        return result;
}

static const char *writer_version(struct source *s) {
        struct bundle_writer *w = CONTAINER(s, struct bundle_writer, source);
        return w->from->server_version(w->from);
}

static void writer_free(struct source *s) {
        (void)s; /* bundle_writer_free() frees it */
}

struct bundle_writer *bundle_writer_new(struct source *from) {
        struct bundle_writer *w = xnew(struct bundle_writer);
        w->from = from;
        w->source = (struct source){ .list = writer_list,
                                     .server_version = writer_version,
                                     .free = writer_free,
                                     .ns = from->ns,
                                     .now = from->now };
        return w;
}

struct source *bundle_writer_source(struct bundle_writer *w) {
        return &w->source;
}

static void tar_add(struct buf *out, const char *name, int64_t now, struct str text) {
        char h[TAR_BLOCK] = { 0 }, zeros[TAR_BLOCK] = { 0 };
        unsigned sum = 0;
        snprintf(h, 100, "compute-domains-bundle/%s", name);
        snprintf(h + 100, 24, "%07o", 0600);
        snprintf(h + 108, 8, "%07o", 0);
        snprintf(h + 116, 8, "%07o", 0);
        snprintf(h + TAR_SIZE, 12, "%011zo", text.n);
        snprintf(h + 136, 12, "%011" PRIo64, (uint64_t)now);
        memset(h + 148, ' ', 8);
        h[TAR_TYPE] = '0';
        memcpy(h + 257,
               "ustar\0"
               "00",
               8);
        for (size_t i = 0; i < TAR_BLOCK; i++)
                sum += (unsigned char)h[i];
        snprintf(h + 148, 8, "%06o", sum);
        buf_add(out, h, sizeof h);
        buf_add(out, text.p, text.n);
        buf_add(out, zeros, (TAR_BLOCK - text.n % TAR_BLOCK) % TAR_BLOCK);
}

static void manifest_render(struct bundle_writer *w, struct buf *out) {
        struct jw j = JW(out);
        jw_obj(&j, NULL);
        jw_time(&j, "created", w->source.now);
        jw_str(&j, "namespace", w->source.ns);
        jw_str(&j, "serverVersion", writer_version(&w->source));
        jw_obj(&j, "kinds");
        for (size_t i = 0; i < w->n; i++) {
                const struct recorded_kind *k = &w->kinds[i];
                _cleanup_(buf_done) struct buf name = BUF_INIT(1024);
                bundle_name(k->res, &name);
                jw_arr(&j, buf_str(&name));
                for (size_t l = 0; l < k->n; l++) {
                        const struct recorded_list *x = &k->lists[l];
                        jw_obj(&j, NULL);
                        if (x->ns)
                                jw_str(&j, "namespace", x->ns);
                        if (x->name)
                                jw_str(&j, "name", x->name);
                        jw_str(&j, "state", state_words[x->state]);
                        if (x->not_served)
                                jw_bool(&j, "notServed", true);
                        if (x->why)
                                jw_str(&j, "why", x->why);
                        jw_end_obj(&j);
                }
                jw_end_arr(&j);
        }
        jw_end_obj(&j);
        jw_end_obj(&j);
        buf_addc(out, '\n');
}

void bundle_writer_render(struct bundle_writer *w, struct buf *out) {
        static const char end[2 * TAR_BLOCK];
        _cleanup_(buf_done) struct buf manifest = BUF_INIT(BUNDLE_MAX);
        manifest_render(w, &manifest);
        tar_add(out, MANIFEST, w->source.now, (struct str){ buf_str(&manifest), manifest.n });
        for (size_t i = 0; i < w->n; i++) {
                _cleanup_(buf_done) struct buf name = BUF_INIT(1024), text = BUF_INIT(BUNDLE_MAX);
                bundle_name(w->kinds[i].res, &name);
                buf_adds(&name, ".json");
                buf_adds(&text, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n");
                buf_add(&text, buf_str(&w->kinds[i].items), w->kinds[i].items.n);
                buf_adds(&text, "\n]}\n");
                tar_add(out, buf_str(&name), w->source.now, (struct str){ buf_str(&text), text.n });
        }
        buf_add(out, end, sizeof end);
}

void bundle_writer_free(struct bundle_writer *w) {
        for (size_t i = 0; i < w->n; i++) {
                struct recorded_kind *k = &w->kinds[i];
                for (size_t l = 0; l < k->n; l++) {
                        free(k->lists[l].ns);
                        free(k->lists[l].name);
                        free(k->lists[l].why);
                }
                free(k->lists);
                buf_done(&k->items);
        }
        free(w->kinds);
        free(w);
}
