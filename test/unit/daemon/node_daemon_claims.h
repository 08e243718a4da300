/* SPDX-License-Identifier: Apache-2.0 */
/* node_daemon_claims: what the daemon reports, and the claims of a plugin on its node. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node_daemon_world.h"

#include "api/names.h"
#include "cdi/cdi.h"
#include "imex/imex_grants.h"
#include "model/fabric.h"

#define IN_B DOMAIN(B, "bb", "51002", ACTIVE("n0", "0", "3", "10.0.0.1"))
#define USER "eeeeeeee-0000-4000-8000-000000000005"

/* ---- conditions ---- */

static inline bool left_a(void) {
        return !there("imexd/" A);
}

static inline bool reported_left_1(void) {
        return reported("\\\"left\\\":\\\"1\\\"");
}
static inline bool reported_a(void) {
        return reported("\\\"assignment\\\":\\\"" FABRIC "/" A "/2/1\\\"");
}
/* The label by which other tools find the daemon of a ComputeDomain. */
static inline bool labelled_a(void) {
        return reported("\"resource.nvidia.com/computeDomain\":\"" A "\"");
}
static inline bool not_labelled(void) {
        return reported("\"resource.nvidia.com/computeDomain\":null");
}
static inline bool reported_held(void) {
        return reported("a claim of it is prepared on this node");
}
static inline bool reported_refused(void) {
        return reported("an invalid assignment for this node");
}
static inline bool reported_ready(void) {
        return reported("/ready\":\"true\"");
}
static inline bool reported_idle(void) {
        return reported("no IMEX domain needs this node");
}
static inline bool reported_waits(void) {
        return reported("the fabric object of the partition does not exist yet");
}
static inline bool started_thrice(void) {
        return count("events", "start") >= 3;
}
static inline bool started_twice(void) {
        return count("events", "start") == 2;
}
static inline bool usr1(void) {
        return count("events", "usr1") > 0;
}
static inline bool reported_recount(void) {
        return reported("\\\"recount\\\":9");
}

/* ---- the plugin ---- */

static inline void note(const char *domain, enum imex_grant_state state) {
        _cleanup_(freep) char *folder = xasprintf("%s/imexd/%s", dir, domain);
        struct err e;

        assert_int_equal(imex_grants_put(folder, USER, state, &e), 0);
}

static inline void set_cdi(bool is) {
        _cleanup_(freep) char *folder = in_dir("cdi"), *path = cdi_path(folder, CD_CDI_KIND_CLAIM, USER);

        if (is)
                put("cdi/k8s.compute-domain.nvidia.com-claim_" USER ".yaml", "", 0600);
        else
                unlink(path);
}

/* Prepares the claim, or unprepares it. */
static inline void grant(const char *domain, bool is) {
        _cleanup_(freep) char *folder = xasprintf("%s/imexd/%s", dir, domain);
        struct err e;

        if (is)
                note(domain, IMEX_GRANT_GRANTING);
        set_cdi(is);
        if (!is)
                assert_int_equal(imex_grants_remove(folder, USER, false, &e), 0);
}

static inline int plugin_begins(void) {
        _cleanup_(freep) char *shared = in_dir("imexd");
        struct err e;
        int lock;

        assert_int_equal(imex_grants_lock(shared, &lock, &e), 0);
        return lock;
}

/* The plugin releases no new pods in this state (cd_plugin/may_prepare). */
static inline bool ready_and_terminating(void) {
        return ready_in_a() && seen.terminating;
}
