/* SPDX-License-Identifier: Apache-2.0 */
/* A leading controller, and an API server with one claim template, which other clients change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "leading.h"
#include "api/names.h"

#define DOMAIN "aaaaaaaa-8f4e-4f0e-9f0a-1b2c3d4e5f60"
/* Texts of the same length: a template with the first one has the label. */
#define LABELLED "\"" CD_LABEL "\":"
#define UNLABELLED "\"resource.nvidia.com/removedLabel0\":"
#define THEIRS                                                                                               \
        "{\"kind\":\"ResourceClaimTemplate\",\"apiVersion\":\"resource.k8s.io/v1\",\"metadata\":{\"name\":"  \
        "\"t\",\"namespace\":\"team-a\",\"uid\":\"x\",\"resourceVersion\":\"20\"},\"spec\":{\"spec\":{"      \
        "\"devices\":{\"requests\":[{\"name\":\"gpu\"}]}}}}"

#define LOCAL "\"resourceClaimTemplate\":{\"name\":\"t\"}"

_Static_assert(sizeof UNLABELLED == sizeof LABELLED, "the same length");

enum { BODY = 16384 };

struct world {
        struct leading l;
        const char *channel;
        char template[BODY]; /* "": it does not exist */
        char status[BODY];
        bool mute;               /* the API server creates the template, but does not answer */
        bool held;               /* the ComputeDomain is deleted, and another finalizer keeps it */
        bool vanishes;           /* the template is deleted just before the controller patches it */
        struct fake_conn *watch; /* of templates */
        unsigned version, n_created, n_refused, n_patched, n_read, n_deleted;
};

static char *items_of(void *u, const char *path) {
        struct world *w = u;
        if (fake_has(path, "/resourceclaimtemplates?") && !fake_has(path, "/namespaces/"))
                return xstrdup(w->template);
        if (fake_has(path, "/computedomains"))
                return xasprintf(
                        "{\"metadata\":{\"name\":\"train\",\"namespace\":\"team-a\",\"uid\":\"" DOMAIN
                        "\",\"resourceVersion\":\"1\",\"finalizers\":[\"" CD_FINALIZER
                        "\"%s,\"annotations\":{\"" CD_ANNOTATION_MODE "\":\"%s\"}},\"spec\":{"
                        "\"channel\":{%s}}}",
                        w->held ? ",\"example.com/keep\"],\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""
                                : "]",
                        w->l.config.mode->name, w->channel);
        return NULL;
}

/* Stores a template, as the API server does, with the next version. */
static void store(struct world *w, const char *body) {
        static const char meta[] = "\"metadata\":{";
        const char *at = strstr(body, meta);
        assert_non_null(at);
        at += strlen(meta);
        snprintf(w->template, sizeof w->template, "%.*s\"uid\":\"u\",\"resourceVersion\":\"%u\",%s",
                 (int)(at - body), body, ++w->version, at);
}

static void create(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        if (*w->template) {
                w->n_refused++;
                fake_refuse(c, 409, "resourceclaimtemplates already exists");
                return;
        }
        store(w, r->body);
        w->n_created++;
        if (w->mute)
                fake_close(c);
        else
                fake_reply(c, 201, NULL, w->template);
}

static void restore_label(struct world *w) {
        char *label = strstr(w->template, UNLABELLED);
        if (label)
                memcpy(label, LABELLED, strlen(LABELLED));
}

static void on_template(struct world *w, struct fake_conn *c, const struct fake_request *r) {
        bool patch = streq(r->method, "PATCH");
        w->n_patched += patch;
        w->n_read += streq(r->method, "GET");
        w->n_deleted += streq(r->method, "DELETE");
        if (patch && w->vanishes)
                w->template[0] = 0;
        if (!*w->template) {
                fake_missing(c, "resource.k8s.io", "resourceclaimtemplates", "t");
                return;
        }
        if (patch)
                restore_label(w);
        fake_reply(c, 200, NULL, w->template);
}

static void on_request(void *u, struct fake_conn *c, const struct fake_request *r) {
        struct world *w = u;
        if (fake_has(r->path, "/scheduling.k8s.io/")) {
                fake_reply(c, 404, NULL, "404 page not found\n");
        } else if (fake_has(r->path, "/resourceclaimtemplates/t")) {
                on_template(w, c, r);
        } else if (streq(r->method, "GET")) {
                if (fake_has(r->path, "/resourceclaimtemplates?") && fake_query(r, "watch") &&
                    streq(fake_query(r, "labelSelector"), CD_LABEL))
                        w->watch = c;
                leading_read(c, r, items_of, u);
        } else if (fake_has(r->path, "/namespaces/team-a/resourceclaimtemplates")) {
                create(w, c, r);
        } else {
                if (fake_has(r->path, "/computedomains/train/status"))
                        snprintf(w->status, sizeof w->status, "%s", r->body);
                fake_refuse(c, 403, "not in this test");
        }
}

static int setup(void **state) {
        struct world *w = xnew(struct world);
        w->channel = LOCAL;
        w->version = 20;
        leading_init(&w->l, on_request, w);
        leading_set_mode(&w->l, "HostManagedIMEX=true", "channel");
        *state = w;
        return 0;
}

/* The watch shows that the template no longer exists, or that it has no label. */
static void show_deletion(struct world *w) {
        _cleanup_(freep) char *event = xasprintf("{\"type\":\"DELETED\",\"object\":%s}\n", w->template);
        fake_chunk(w->watch, event);
}

static void bump(struct world *w) {
        char *at = strstr(w->template, "\"resourceVersion\":\"");
        char version[8];
        snprintf(version, sizeof version, "%u", ++w->version);
        memcpy(at + strlen("\"resourceVersion\":\""), version, 2);
}

static void remove_label(struct world *w) {
        bump(w);
        show_deletion(w);
        memcpy(strstr(w->template, LABELLED), UNLABELLED, strlen(UNLABELLED));
}

static void delete_template(struct world *w) {
        bump(w);
        show_deletion(w);
        w->template[0] = 0;
}

/* failure: a template loses its label, is repaired, then deleted -> it is recreated */
static void a_deleted_template_is_recreated_after_a_repair(void **state) {
        struct world *w = *state;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_created);
        run_for(&w->l.loop, 300);
        remove_label(w);
        RUN_UNTIL(&w->l.loop, w->n_patched);
        run_for(&w->l.loop, 300);
        assert_int_equal(w->n_patched, 1);
        delete_template(w);
        RUN_UNTIL(&w->l.loop, w->n_created == 2);
}

/* failure: a template without its label is deleted -> it is recreated */
static void a_deleted_template_without_a_label_is_recreated(void **state) {
        struct world *w = *state;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_created);
        run_for(&w->l.loop, 300);
        w->vanishes = true;
        remove_label(w);
        RUN_UNTIL(&w->l.loop, w->n_created == 2);
        assert_int_equal(w->n_patched, 1);
}

/* failure: a template without its label is being deleted -> it is recreated when it no longer exists */
static void a_terminating_template_without_a_label_is_recreated(void **state) {
        static const char finalizers[] = "\"finalizers\":[\"" CD_FINALIZER "\"]",
                          deleted[] = "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"";
        struct world *w = *state;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_created);
        run_for(&w->l.loop, 300);
        remove_label(w);
        char *at = strstr(w->template, finalizers);
        assert_non_null(at);
        memset(at, ' ', strlen(finalizers));
        memcpy(at, deleted, strlen(deleted));
        RUN_UNTIL(&w->l.loop, w->n_read == 3); /* read again after each attempt to create it */
        w->template[0] = 0;
        RUN_UNTIL(&w->l.loop, w->n_created == 2);
}

/* failure: the answer to a template's creation is lost, then it is deleted -> it is recreated */
static void a_deleted_template_is_recreated_after_a_lost_answer(void **state) {
        struct world *w = *state;
        w->mute = true;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_refused);
        w->mute = false;
        run_for(&w->l.loop, 300);
        delete_template(w);
        RUN_UNTIL(&w->l.loop, w->n_created == 2);
}

#define OF_ANOTHER                                                                                           \
        "{\"kind\":\"ResourceClaimTemplate\",\"apiVersion\":\"resource.k8s.io/v1\",\"metadata\":{\"name\":"  \
        "\"t\",\"namespace\":\"team-a\",\"uid\":\"x\",\"resourceVersion\":\"20\",\"labels\":{" LABELLED      \
        "\"aaaaaaaa-8f4e-4f0e-9f0a-000000000002\",\"" CD_LABEL_TARGET "\":\"" CD_TARGET_WORKLOAD             \
        "\"}},\"spec\":{\"spec\":{}}}"

/* failure: the ComputeDomain that has the name is deleted after a while -> the next one gets its template at
 * once */
static void a_name_that_another_ComputeDomain_frees_is_used_at_once(void **state) {
        struct world *w = *state;
        snprintf(w->template, sizeof w->template, "%s", OF_ANOTHER);
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, strstr(w->status, "belongs to another ComputeDomain") && w->watch);
        run_for(&w->l.loop, 60000);
        assert_int_equal(w->n_refused, 0);
        delete_template(w);
        run_for(&w->l.loop, 200);
        assert_int_equal(w->n_created, 1);
}

/* The watch shows the other template only after the attempt to create the next one. */
static void a_name_that_the_cache_does_not_show_as_taken_is_used_at_once(void **state) {
        struct world *w = *state;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_created && w->watch);
        run_for(&w->l.loop, 300);
        delete_template(w);
        snprintf(w->template, sizeof w->template, "%s", OF_ANOTHER);
        bump(w);
        RUN_UNTIL(&w->l.loop, strstr(w->status, "belongs to another ComputeDomain"));
        run_for(&w->l.loop, 60000);
        assert_int_equal(w->n_refused, 1);
        delete_template(w);
        run_for(&w->l.loop, 200);
        assert_int_equal(w->n_created, 2);
}

#define SHARED "\"sharedResourceClaimTemplate\":{\"name\":\"t\"}"

/* failure: the name of a shared claim template is taken -> the status reports it */
static void a_taken_name_is_reported_for_both_templates(void **state) {
        static const char *const channels[] = { LOCAL, SHARED };
        struct world *w = *state;
        for (size_t i = 0; i < ARRAY_LEN(channels); i++) {
                w->channel = channels[i];
                w->status[0] = 0;
                snprintf(w->template, sizeof w->template, "%s", THEIRS);
                leading_start(&w->l);
                RUN_UNTIL(&w->l.loop, strstr(w->status, "TemplateNameTaken"));
                assert_non_null(strstr(w->status, "ResourceClaimTemplate team-a/t already exists"));
                assert_string_equal(w->template, THEIRS);
                controller_stop(&w->l.c);
        }
}

/* failure: a shared claim template loses its label -> it gets the label again */
static void a_shared_template_without_a_label_is_repaired(void **state) {
        struct world *w = *state;
        w->channel = SHARED;
        leading_start(&w->l);
        RUN_UNTIL(&w->l.loop, w->n_created);
        run_for(&w->l.loop, 300);
        remove_label(w);
        RUN_UNTIL(&w->l.loop, w->n_patched);
        run_for(&w->l.loop, 1000);
        assert_int_equal(w->n_patched, 1);
        assert_int_equal(w->n_created, 1);
}

/* failure: another finalizer keeps a deleted ComputeDomain -> its shared template is deleted at once */
static void a_held_ComputeDomain_loses_both_templates(void **state) {
        static const char *const channels[] = { LOCAL, SHARED };
        struct world *w = *state;
        for (size_t i = 0; i < ARRAY_LEN(channels); i++) {
                w->channel = channels[i];
                w->held = false;
                w->template[0] = 0;
                w->n_created = w->n_deleted = 0;
                leading_start(&w->l);
                RUN_UNTIL(&w->l.loop, w->n_created);
                controller_stop(&w->l.c);
                w->held = true;
                leading_start(&w->l);
                RUN_UNTIL(&w->l.loop, w->n_deleted);
                controller_stop(&w->l.c);
        }
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, leading_teardown)
        const struct CMUnitTest tests[] = {
                T(a_deleted_template_is_recreated_after_a_repair),
                T(a_deleted_template_without_a_label_is_recreated),
                T(a_terminating_template_without_a_label_is_recreated),
                T(a_deleted_template_is_recreated_after_a_lost_answer),
                T(a_name_that_another_ComputeDomain_frees_is_used_at_once),
                T(a_name_that_the_cache_does_not_show_as_taken_is_used_at_once),
                T(a_taken_name_is_reported_for_both_templates),
                T(a_shared_template_without_a_label_is_repaired),
                T(a_held_ComputeDomain_loses_both_templates),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
