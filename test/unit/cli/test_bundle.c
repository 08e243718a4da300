/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles: tar files and folders with lists of objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "api/resources.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/bundle.h"
#include "cli/command.h"
#include "cli/command_table.h"
#include "tree.h"
#include "world/cluster.h"

static void a_bundle_has_the_same_objects_and_states_as_the_cluster(void **state) {
        (void)state;
        struct cluster *c = cluster_new();
        struct buf tar = BUF_INIT(BUNDLE_MAX);
        struct source *read;
        struct view before, after;
        struct err e;
        cluster_put(c, &kube_pods,
                    "{'metadata':{'namespace':'team-b','name':'p','managedFields':[]},'spec':{'containers':[{"
                    "'name':'x','env':[{'name':'PASSWORD','value':'hunter2'}]}]}}");
        cluster_fail(c, &kube_resource_slices, ERR_RETRY, "timed out");
        cluster_fail(c, &kube_fabrics, ERR_DENIED, "forbidden");
        struct bundle_writer *w = bundle_writer_new(cluster_source(c));
        view_init(&before, bundle_writer_source(w));
        view_read(&before, VIEW_NODES, NULL);
        view_read(&before, VIEW_SLICES, NULL);
        view_read(&before, VIEW_FABRICS, NULL);
        view_read(&before, VIEW_PODS, "team-b");
        bundle_writer_render(w, &tar);
        assert_null(memmem(tar.p, tar.n, "hunter2", 7));
        assert_null(memmem(tar.p, tar.n, "managedFields", 13));
        assert_int_equal(bundle_read_tar((struct str){ tar.p, tar.n }, NULL, &read, &e), 0);
        assert_string_equal(read->ns, "team-b");
        assert_int_equal(read->now, cluster_source(c)->now);
        assert_string_equal(read->server_version(read), "v1.36.3");
        view_init(&after, read);
        view_read(&after, VIEW_NODES, NULL);
        view_read(&after, VIEW_SLICES, NULL);
        view_read(&after, VIEW_FABRICS, NULL);
        view_read(&after, VIEW_PODS, "team-b");
        view_read(&after, VIEW_PODS, NULL); /* only one namespace was read */
        view_read(&after, VIEW_CLAIMS, NULL);
        assert_int_equal(after.kinds[VIEW_NODES].n, before.kinds[VIEW_NODES].n);
        assert_int_equal(after.kinds[VIEW_PODS].n, 1);
        assert_int_equal(view_state(&after, VIEW_NODES, NULL), VIEW_COMPLETE);
        assert_int_equal(view_state(&after, VIEW_SLICES, NULL), VIEW_PARTIAL);
        assert_int_equal(view_state(&after, VIEW_FABRICS, NULL), VIEW_UNREADABLE);
        assert_int_equal(view_state(&after, VIEW_PODS, "team-b"), VIEW_COMPLETE);
        assert_int_equal(view_state(&after, VIEW_PODS, NULL), VIEW_UNREADABLE);
        assert_int_equal(view_state(&after, VIEW_CLAIMS, NULL), VIEW_UNREADABLE);
        view_done(&before);
        view_done(&after);
        read->free(read);
        bundle_writer_free(w);
        buf_done(&tar);
        cluster_free(c);
}

static void what_is_no_bundle_is_refused(void **state) {
        (void)state;
        static const char *const cases[] = {
                "", "no tar file at all, but long enough to be read as the beginning of a header"
        };
        struct source *s;
        struct err e;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_int_equal(bundle_read_tar(str_from(cases[i]), NULL, &s, &e), -1);
        assert_int_equal(bundle_open("/nonexistent", NULL, &s, &e), -1);
}

/* ---- tar files ---- */

enum { BLOCK = 512 };
#define PODS(names) "{\"items\":[" names "]}"
#define POD(name) "{\"metadata\":{\"namespace\":\"n\",\"name\":\"" name "\"}}"
#define ONE_POD PODS(POD("a"))

/* Adds a file. The size is written as `octal`, which fills 12 bytes. The content is padded to whole blocks.
 */
static const char *mtime = "17777777777";

static void add_sized(struct buf *tar, const char *name, char type, const char *octal, const char *content) {
        static const char zeros[BLOCK];
        char header[BLOCK] = { 0 };
        size_t n = strlen(content);
        memcpy(header, name, strlen(name));
        memcpy(header + 124, octal, strlen(octal));
        memcpy(header + 124 + 12, mtime, strlen(mtime)); /* the next field */
        header[124 + 32] = type;
        buf_add(tar, header, sizeof header);
        buf_add(tar, content, n);
        buf_add(tar, zeros, (BLOCK - n % BLOCK) % BLOCK);
}

static void add(struct buf *tar, const char *name, char type, const char *content) {
        char octal[13];
        snprintf(octal, sizeof octal, "%011zo", strlen(content));
        add_sized(tar, name, type, octal, content);
}

static void count(void *u, yyjson_val *object) {
        ++*(int *)u;
}

/* The number of Pods that a query returns; -1: the list is not complete, or cannot be read. */
static int listed(struct source *s, const struct source_query *q) {
        struct err e;
        int n = 0;
        return s->list(s, q, count, &n, &e) < 0 ? -1 : n;
}

static const struct source_query all_pods = { .res = &kube_pods };

/* The number of Pods in a tar file behind which no byte follows; -1: it is refused. */
static int pods_in(const struct buf *tar) {
        char *exact = memcpy(xmalloc(tar->n), tar->p, tar->n);
        struct source *s;
        struct err e;
        int n = -1;
        if (bundle_read_tar((struct str){ exact, tar->n }, NULL, &s, &e) == 0) {
                n = listed(s, &all_pods);
                s->free(s);
        } else {
                assert_int_equal(e.kind, ERR_INVALID);
        }
        free(exact);
        return n;
}

static int pods_in_sized(const char *octal) {
        _cleanup_(buf_done) struct buf tar = BUF_INIT(1 << 20);
        add_sized(&tar, "pods.json", '0', octal, ONE_POD);
        return pods_in(&tar);
}

/* failure: a bundle is cut -> its complete files are read, and a cut file is refused */
static void a_tar_file_ends_after_any_file(void **state) {
        _cleanup_(buf_done) struct buf tar = BUF_INIT(1 << 20);
        add(&tar, "x/pods.json", '0', ONE_POD);
        assert_int_equal(pods_in(&tar), 1); /* no empty blocks follow */
        tar.n -= BLOCK - strlen(ONE_POD);
        assert_int_equal(pods_in(&tar), 1); /* no padding */
        tar.n--;
        assert_int_equal(pods_in(&tar), -1);
        buf_clear(&tar);
        add(&tar, "pods.json", '0', ONE_POD);
        add(&tar, "nodes.json", '0', ""); /* a header alone, of a file that is not JSON */
        assert_int_equal(pods_in(&tar), -1);
        tar.n--;
        assert_int_equal(pods_in(&tar), 1); /* an incomplete header is not read */
}

static void contents_are_padded_to_whole_blocks(void **state) {
        for (size_t n = BLOCK - 1; n <= BLOCK + 1; n++) {
                _cleanup_(buf_done) struct buf tar = BUF_INIT(1 << 20);
                char content[BLOCK + 2];
                memset(content, ' ', n);
                content[n] = '\0';
                memcpy(content, "{}", 2);
                add(&tar, "nodes.json", '0', content);
                add(&tar, "pods.json", '0', ONE_POD);
                assert_int_equal(pods_in(&tar), 1);
        }
}

/* Replaces '#' by the size of the file. */
static int pods_in_file_of(const char *size) {
        char text[32], *at;
        snprintf(text, sizeof text, "%s", size);
        if ((at = strchr(text, '#'))) {
                char octal[8];
                assert_int_equal(snprintf(octal, sizeof octal, "%zo", strlen(ONE_POD)), 2);
                memmove(at + 2, at + 1, strlen(at));
                memcpy(at, octal, 2);
        }
        return pods_in_sized(text);
}

static void the_size_of_a_file_is_an_octal_number(void **state) {
        static const char *const good[] = { "0000000000#", "000000000#",  "000000000# ",
                                            "          #", "         # ", "#" },
                                 *const bad[] = { "000000000#x", "8#",           "#8",
                                                  "#/",          "/#",           "!#",
                                                  "         !#", "777777777777", "4000000001" };
        for (size_t i = 0; i < ARRAY_LEN(good); i++)
                if (pods_in_file_of(good[i]) != 1)
                        fail_msg("'%s'", good[i]);
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                if (pods_in_file_of(bad[i]) != -1)
                        fail_msg("'%s'", bad[i]);
        _cleanup_(buf_done) struct buf tar = BUF_INIT(1 << 20);
        add_sized(&tar, "x.json", '0', "8", "{\"a\": 1}"); /* 8 bytes */
        add(&tar, "pods.json", '0', ONE_POD);
        assert_int_equal(pods_in(&tar), -1);
        buf_clear(&tar);
        mtime = " 7777777777";
        add_sized(&tar, "x.txt", '0', "            ", ""); /* an empty file */
        mtime = "17777777777";
        add(&tar, "pods.json", '0', ONE_POD);
        assert_int_equal(pods_in(&tar), 1);
}

static void only_files_with_json_in_their_name_are_read(void **state) {
        static const struct {
                const char *name;
                char type;
        } ignored[] = { { "pods.json", '1' },  { "pods.json", '/' },    { "pods.json", '5' },
                        { "pods.json", '\1' }, { "pods.json", '\xff' }, { "pods.txt", '0' },
                        { "pods.json/", '0' } };
        for (size_t i = 0; i < ARRAY_LEN(ignored); i++) {
                _cleanup_(buf_done) struct buf tar = BUF_INIT(1 << 20);
                add(&tar, ignored[i].name, ignored[i].type, "no JSON");
                add(&tar, "pods.json", i % 2 ? '0' : '\0', ONE_POD);
                add(&tar, "again/pods.json", '0', PODS(POD("a") "," POD("b"))); /* the first one counts */
                assert_int_equal(pods_in(&tar), 1);
        }
}

static void a_bundle_has_at_most_1000_files(void **state) {
        _cleanup_(buf_done) struct buf tar = BUF_INIT(4 << 20);
        char name[32];
        add(&tar, "pods.json", '0', ONE_POD);
        for (int i = 1; i < BUNDLE_FILES_MAX; i++) {
                snprintf(name, sizeof name, "%d.json", i);
                add(&tar, name, '0', "{}");
        }
        assert_int_equal(pods_in(&tar), 1);
        add(&tar, "more.json", '0', "{}");
        assert_int_equal(pods_in(&tar), -1);
}

static void a_folder_or_a_tar_file_is_opened(void **state) {
        _cleanup_(buf_done) struct buf tar = BUF_INIT(1 << 20);
        char *root = tree_new();
        _cleanup_(freep) char *folder = file_join(root, "folder"), *file = file_join(root, "bundle.tar");
        struct source *s;
        struct err e;
        tree_put(root, "folder/notes.txt", "no JSON");
        assert_int_equal(bundle_open(folder, NULL, &s, &e), -1); /* no file with JSON */
        tree_put(root, "folder/pods.json", ONE_POD);
        assert_int_equal(bundle_open(folder, "n", &s, &e), 0);
        assert_string_equal(s->ns, "n");
        assert_int_equal(listed(s, &all_pods), 1);
        s->free(s);
        add(&tar, "pods.json", '0', PODS(POD("a") "," POD("b")));
        assert_int_equal(file_replace(file, tar.p, tar.n, 0644, &e), 0);
        assert_int_equal(bundle_open(file, NULL, &s, &e), 0);
        assert_string_equal(s->ns, "default");
        assert_int_equal(listed(s, &all_pods), 2);
        s->free(s);
        char text[(16 << 10) + 2];
        memset(text, ' ', sizeof text - 1);
        text[sizeof text - 1] = '\0';
        memcpy(text, ONE_POD, strlen(ONE_POD) - 1);
        text[sizeof text - 2] = '}'; /* read with the second chunk */
        tree_put(root, "folder/pods.json", text);
        assert_int_equal(bundle_open(folder, NULL, &s, &e), 0);
        s->free(s);
        assert_int_equal(bundle_open("/proc/self/mem", NULL, &s, &e), -1);
        assert_non_null(strstr(e.msg, "cannot read"));
        tree_put(root, "folder/nodes.json", "{");
        assert_int_equal(bundle_open(folder, NULL, &s, &e), -1);
        assert_non_null(strstr(e.msg, "nodes.json"));
        tree_remove(root);
}

static void a_query_selects_objects(void **state) {
        _cleanup_(buf_done) struct buf tar = BUF_INIT(1 << 20);
        struct source *s;
        struct err e;
        add(&tar, "pods.json", '0',
            PODS(POD("a") "," POD("b") ",{\"metadata\":{\"namespace\":\"m\",\"name\":\"a\"}}"));
        assert_int_equal(bundle_read_tar((struct str){ tar.p, tar.n }, NULL, &s, &e), 0);
        assert_int_equal(listed(s, &all_pods), 3);
        assert_int_equal(listed(s, &(struct source_query){ .res = &kube_pods, .ns = "n" }), 2);
        assert_int_equal(listed(s, &(struct source_query){ .res = &kube_pods, .ns = "n", .name = "a" }), 1);
        assert_int_equal(listed(s, &(struct source_query){ .res = &kube_pods, .name = "a" }), 2);
        assert_int_equal(listed(s, &(struct source_query){ .res = &kube_pods, .label = "a=b" }), 0);
        assert_int_equal(listed(s, &(struct source_query){ .res = &kube_nodes }), -1);
        s->free(s);
}

static void the_manifest_states_which_lists_are_complete(void **state) {
        static const struct {
                const char *state;
                int r, n; /* the result, and the number of objects that the source delivers */
                enum err_kind kind;
        } cases[] = { { "complete", 0, 1, 0 },
                      { "partial", -1, 1, ERR_RETRY },
                      { "another", -1, 1, ERR_RETRY },
                      { "unreadable", -1, 0, ERR_DENIED } };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(buf_done) struct buf tar = BUF_INIT(1 << 20);
                _cleanup_(freep) char *manifest =
                        xasprintf("{\"kinds\":{\"pods\":[{\"state\":\"%s\"}]}}", cases[i].state);
                struct source *s;
                struct err e;
                int n = 0;
                add(&tar, "bundle.json", '0', manifest);
                add(&tar, "pods.json", '0', ONE_POD);
                assert_int_equal(bundle_read_tar((struct str){ tar.p, tar.n }, NULL, &s, &e), 0);
                assert_int_equal(s->list(s, &all_pods, count, &n, &e), cases[i].r);
                assert_int_equal(n, cases[i].n);
                if (cases[i].r < 0)
                        assert_int_equal(e.kind, cases[i].kind);
                s->free(s);
        }
}

/* Reads the same objects again from a bundle that is written from a bundle. */
static void a_written_bundle_has_all_objects_of_its_kinds(void **state) {
        _cleanup_(buf_done) struct buf tar = BUF_INIT(1 << 20), copy = BUF_INIT(1 << 20);
        struct source *s, *again;
        struct err e;
        add(&tar, "pods.json", '0', PODS(POD("a") "," POD("b")));
        add(&tar, "nodes.json", '0', "{\"items\":[{\"metadata\":{\"name\":\"n\"}}]}");
        assert_int_equal(bundle_read_tar((struct str){ tar.p, tar.n }, "n", &s, &e), 0);
        struct bundle_writer *w = bundle_writer_new(s);
        struct source *through = bundle_writer_source(w);
        const struct source_query nodes = { .res = &kube_nodes }, slices = { .res = &kube_resource_slices };
        assert_int_equal(listed(through, &nodes), 1);
        assert_int_equal(listed(through, &slices), -1);
        assert_int_equal(listed(through, &all_pods), 2);
        assert_int_equal(listed(through, &(struct source_query){ .res = &kube_pods, .name = "c" }), 0);
        bundle_writer_render(w, &copy);
        const char *file = memmem(copy.p, copy.n, "/pods.json", 10);
        assert_non_null(file); /* one file for both lists */
        assert_null(memmem(file + 1, copy.n - (size_t)(file + 1 - copy.p), "/pods.json", 10));
        assert_int_equal(copy.n % BLOCK, 0);
        assert_int_equal(bundle_read_tar((struct str){ copy.p, copy.n }, NULL, &again, &e), 0);
        assert_int_equal(listed(again, &nodes), 1);
        assert_int_equal(listed(again, &all_pods), 2);
        assert_int_equal(listed(again, &slices), -1);
        again->free(again);
        bundle_writer_free(w);
        s->free(s);
}

/* failure: a pod has a secret in an environment variable -> no bundle contains it */
static void values_of_environment_variables_are_left_out(void **state) {
        static const char *const lists[] = { "containers", "initContainers", "ephemeralContainers" };
        for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
                struct cluster *c = cluster_new();
                _cleanup_(buf_done) struct buf tar = BUF_INIT(BUNDLE_MAX);
                cluster_put(c, &kube_pods,
                            "{'metadata':{'namespace':'n','name':'p'},'spec':{'%s':[{'name':'x','command':['"
                            "/bin/compute-domain-controller'],'env':[{'name':'PASSWORD','value':'hunter2'},{'"
                            "name':'IMEX_X','value':'kept'}]}]}}",
                            lists[i]);
                struct bundle_writer *w = bundle_writer_new(cluster_source(c));
                assert_true(listed(bundle_writer_source(w), &all_pods) > 0);
                bundle_writer_render(w, &tar);
                assert_null(memmem(tar.p, tar.n, "hunter2", 7));
                assert_non_null(memmem(tar.p, tar.n, "PASSWORD", 8));
                assert_non_null(memmem(tar.p, tar.n, "kept", 4));
                bundle_writer_free(w);
                cluster_free(c);
        }
}

/* Writes a bundle of a list. The caller frees both. */
static struct bundle_writer *written(struct cluster *c, const struct kube_resource *res, struct buf *tar) {
        struct bundle_writer *w = bundle_writer_new(cluster_source(c));
        assert_true(listed(bundle_writer_source(w), &(struct source_query){ .res = res }) >= 0);
        bundle_writer_render(w, tar);
        return w;
}

/* failure: a container has a password in its arguments, a probe or a hook -> no bundle contains it */
static void arguments_probes_and_hooks_of_other_programs_are_left_out(void **state) {
        static const char *const members[] = {
                "'command':['server','--password=hunter2']",
                "'args':['--password=hunter2']",
                "'livenessProbe':{'exec':{'command':['x','hunter2']}}",
                "'readinessProbe':{'httpGet':{'httpHeaders':[{'name':'Authorization','value':'hunter2'}]}}",
                "'startupProbe':{'exec':{'command':['hunter2']}}",
                "'lifecycle':{'postStart':{'exec':{'command':['hunter2']}}}",
                "'env':[{'name':'IMEX_X','value':'hunter2'}]",
                "'env':[{'value':'hunter2'}]",
        };
        for (size_t i = 0; i < ARRAY_LEN(members); i++) {
                struct cluster *c = cluster_new();
                _cleanup_(buf_done) struct buf tar = BUF_INIT(BUNDLE_MAX);
                cluster_put(
                        c, &kube_pods,
                        "{'metadata':{'namespace':'n','name':'p'},'spec':{'containers':[{'name':'x','env':[{"
                        "'name':'NCCL_MNNVL_ENABLE','value':'kept'}]},{'name':'y',%s}]}}",
                        members[i]);
                struct bundle_writer *w = written(c, &kube_pods, &tar);
                if (memmem(tar.p, tar.n, "hunter2", 7))
                        fail_msg("%s", members[i]);
                assert_non_null(memmem(tar.p, tar.n, "kept", 4));
                assert_true(i || memmem(tar.p, tar.n, "[\"server\"]", 10));
                bundle_writer_free(w);
                cluster_free(c);
        }
}

/* failure: a bundle is written in a cluster with other applications -> it has only the driver's workloads */
static void workloads_of_other_applications_are_left_out(void **state) {
        static const struct kube_resource *const kinds[] = { &tool_kinds_deployments, &kube_daemonsets };
        static const struct {
                const char *container;
                bool kept;
        } cases[] = {
                { "'name':'x','command':['/usr/bin/compute-domain-controller']", true },
                { "'name':'x','command':['compute-domain-kubelet-plugin']", true },
                { "'name':'x','command':['gpu-kubelet-plugin']", true },
                { "'name':'x','command':['compute-domain-daemon']", true },
                { "'name':'compute-domains','command':['bash','-c','x']", true }, /* the Go driver */
                { "'name':'x','command':['server']", false },
                { "'name':'x'", false },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
                        struct cluster *c = cluster_new();
                        _cleanup_(buf_done) struct buf tar = BUF_INIT(BUNDLE_MAX);
                        cluster_put(
                                c, kinds[k],
                                "{'metadata':{'namespace':'n','name':'unrelated'},'spec':{'template':{'spec"
                                "':{'containers':[{%s}]}}}}",
                                cases[i].container);
                        struct bundle_writer *w = written(c, kinds[k], &tar);
                        if ((memmem(tar.p, tar.n, "unrelated", 9) != NULL) != cases[i].kept)
                                fail_msg("%s", cases[i].container);
                        assert_non_null(memmem(tar.p, tar.n, CLUSTER_NS, strlen(CLUSTER_NS)));
                        bundle_writer_free(w);
                        cluster_free(c);
                }
}

static void a_workload_that_cannot_be_decoded_makes_the_list_incomplete(void **state) {
        _cleanup_(buf_done) struct buf tar = BUF_INIT(BUNDLE_MAX);
        struct cluster *c = cluster_new();
        struct source *s;
        struct err e;
        cluster_put(
                c, &kube_daemonsets,
                "{'metadata':{'namespace':'n','name':'x'},'spec':{'template':{'spec':{'containers':'hunter2'"
                "}}}}");
        struct bundle_writer *w = written(c, &kube_daemonsets, &tar);
        assert_null(memmem(tar.p, tar.n, "hunter2", 7));
        assert_int_equal(bundle_read_tar((struct str){ tar.p, tar.n }, NULL, &s, &e), 0);
        assert_int_equal(listed(s, &(struct source_query){ .res = &kube_daemonsets }), -1);
        s->free(s);
        bundle_writer_free(w);
        cluster_free(c);
}

/* The names of variables in a template: "- name: IMEX_MODE". Returns their number. */
static size_t put_variables(const char *template, struct buf *env) {
        static const char lead[] = "- name: ", capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
        struct str text = str_from(template), line;
        size_t n = 0;
        while (str_next_line(&text, &line)) {
                struct str name = str_trim(line);
                size_t k = 0;
                if (name.n < sizeof lead || memcmp(name.p, lead, sizeof lead - 1) != 0)
                        continue;
                name = (struct str){ name.p + sizeof lead - 1, name.n - (sizeof lead - 1) };
                while (k < name.n && strchr(capitals, name.p[k]))
                        k++;
                if (!k || k != name.n)
                        continue;
                buf_addf(env, "%s{'name':'%.*s','value':'kept-%zu-'}", env->n ? "," : "", (int)name.n, name.p,
                         n++);
        }
        return n;
}

/* failure: the chart sets a variable that decides about an answer -> the answer from a bundle is the same */
static void the_values_of_all_variables_of_the_chart_are_kept(void **state) {
        static const char *const templates[] = { "controller.yaml", "kubelet-plugin.yaml", "_gpus.tpl",
                                                 "uninstall.yaml" };
        size_t all = 0;
        for (size_t i = 0; i < ARRAY_LEN(templates); i++) {
                _cleanup_(freep) char *path = xasprintf(CHART "/templates/%s", templates[i]), *text = NULL;
                _cleanup_(buf_done) struct buf env = BUF_INIT(1 << 20), tar = BUF_INIT(BUNDLE_MAX);
                struct cluster *c = cluster_new();
                size_t size;
                struct err e;
                assert_int_equal(file_read(path, 1 << 20, &text, &size, &e), 0);
                size_t n = put_variables(text, &env);
                cluster_put(
                        c, &kube_pods,
                        "{'metadata':{'namespace':'n','name':'p'},'spec':{'containers':[{'name':'x','command"
                        "':['gpu-kubelet-plugin'],'env':[%s]}]}}",
                        buf_str(&env));
                struct bundle_writer *w = written(c, &kube_pods, &tar);
                for (size_t k = 0; k < n; k++) {
                        char value[32];
                        snprintf(value, sizeof value, "kept-%zu-", k);
                        if (!memmem(tar.p, tar.n, value, strlen(value)))
                                fail_msg("%s: variable %zu is not kept", templates[i], k);
                }
                all += n;
                bundle_writer_free(w);
                cluster_free(c);
        }
        assert_true(all > 40);
}

/* The answer of `why` about a pod. The caller frees it. */
static char *answer_about(struct source *s, const char *pod) {
        struct cli c = { .a = arena_new(1024),
                         .args = &pod,
                         .n_args = 1,
                         .source = s,
                         .t = { .out = BUF_INIT(TERM_OUT_MAX) } };
        view_init(&c.v, s);
        assert_int_equal(command_why.run(&c), COMMAND_PROBLEM);
        view_done(&c.v);
        arena_free(c.a);
        return buf_steal(&c.t.out);
}

/* The answer from a bundle of this namespace is that from the cluster, which contains the text. */
static void bundle_answers_as(struct cluster *c, const char *ns, const char *text) {
        _cleanup_(buf_done) struct buf tar = BUF_INIT(BUNDLE_MAX);
        struct bundle_writer *w = bundle_writer_new(cluster_source(c));
        struct source *read;
        struct view v;
        struct err e;
        view_init(&v, bundle_writer_source(w));
        bundle_read_all(&v, ns);
        bundle_writer_render(w, &tar);
        assert_int_equal(bundle_read_tar((struct str){ tar.p, tar.n }, "team-b", &read, &e), 0);
        _cleanup_(freep) char *online = answer_about(cluster_source(c), "train-0"),
                              *offline = answer_about(read, "train-0");
        assert_non_null(strstr(online, text));
        assert_string_equal(offline, online);
        read->free(read);
        view_done(&v);
        bundle_writer_free(w);
}

/* failure: a pod names a rack whose Namespace lacks the label -> `why` names it from a bundle, too */
static void a_bundle_has_the_namespace_of_its_pods(void **state) {
        struct cluster *c = cluster_new();
        options.output = "json"; /* has no line breaks */
        cluster_put_pod(c, &(struct cluster_pod){ .name = "train-0", .template = "imex-channel-r7" });
        for (size_t i = 0; i < 2; i++) {
                const char *ns = i ? "team-a" : "team-b";
                options.all_namespaces = i;
                cluster_put(c, &kube_namespaces, "{'metadata':{'name':'team-b'}}");
                bundle_answers_as(c, ns, "kubectl label namespace team-b " CD_LABEL_RACK_DOMAINS "=enabled");
                cluster_put(c, &kube_namespaces,
                            "{'metadata':{'name':'team-b','labels':{'" CD_LABEL_RACK_DOMAINS "':'yes'}}}");
                bundle_answers_as(c, ns, "RackDomainsLabelInvalid");
        }
        options = (struct options){ .output = "table" };
        cluster_free(c);
}

/* There may be many. */
static void a_bundle_of_one_namespace_names_no_other(void **state) {
        _cleanup_(buf_done) struct buf tar = BUF_INIT(BUNDLE_MAX);
        struct cluster *c = cluster_new();
        struct bundle_writer *w = bundle_writer_new(cluster_source(c));
        struct view v;
        cluster_put(c, &kube_namespaces, "{'metadata':{'name':'team-b'}}");
        cluster_put(c, &kube_namespaces, "{'metadata':{'name':'team-secret'}}");
        view_init(&v, bundle_writer_source(w));
        bundle_read_all(&v, "team-b");
        bundle_writer_render(w, &tar);
        assert_non_null(view_find(&v, VIEW_NAMESPACES, NULL, "team-b"));
        assert_null(memmem(tar.p, tar.n, "team-secret", 11));
        view_done(&v);
        bundle_writer_free(w);
        cluster_free(c);
}

/* tar(1) reads the file. */
static void a_written_header_has_the_checksum_of_ustar(void **state) {
        _cleanup_(buf_done) struct buf tar = BUF_INIT(1 << 20);
        struct cluster *c = cluster_new();
        struct bundle_writer *w = bundle_writer_new(cluster_source(c));
        unsigned sum = 0, want = 0;
        bundle_writer_render(w, &tar);
        for (size_t i = 0; i < BLOCK; i++)
                sum += i >= 148 && i < 156 ? ' ' : (unsigned char)tar.p[i];
        assert_int_equal(sscanf(tar.p + 148, "%o", &want), 1);
        assert_int_equal(sum, want);
        bundle_writer_free(w);
        cluster_free(c);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_bundle_has_the_same_objects_and_states_as_the_cluster),
                cmocka_unit_test(what_is_no_bundle_is_refused),
                cmocka_unit_test(a_tar_file_ends_after_any_file),
                cmocka_unit_test(contents_are_padded_to_whole_blocks),
                cmocka_unit_test(the_size_of_a_file_is_an_octal_number),
                cmocka_unit_test(only_files_with_json_in_their_name_are_read),
                cmocka_unit_test(a_bundle_has_at_most_1000_files),
                cmocka_unit_test(a_folder_or_a_tar_file_is_opened),
                cmocka_unit_test(a_query_selects_objects),
                cmocka_unit_test(the_manifest_states_which_lists_are_complete),
                cmocka_unit_test(a_written_bundle_has_all_objects_of_its_kinds),
                cmocka_unit_test(values_of_environment_variables_are_left_out),
                cmocka_unit_test(arguments_probes_and_hooks_of_other_programs_are_left_out),
                cmocka_unit_test(workloads_of_other_applications_are_left_out),
                cmocka_unit_test(a_workload_that_cannot_be_decoded_makes_the_list_incomplete),
                cmocka_unit_test(the_values_of_all_variables_of_the_chart_are_kept),
                cmocka_unit_test(a_bundle_has_the_namespace_of_its_pods),
                cmocka_unit_test(a_bundle_of_one_namespace_names_no_other),
                cmocka_unit_test(a_written_header_has_the_checksum_of_ustar),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
