/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_plugin/gpus.h"

#include <stdio.h>

#include "api/reasons.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "gpu_plugin/gpu_devices.h"
#include "nvidia/device_nodes.h"
#include "nvidia/fingerprint.h"
#include "nvidia/nvml_abi.h"
#include "nvidia/nvml_session.h"
#include "nvidia/nvml_library.h"
#include "nvidia/nvml_line.h"

enum {
        IDLE_MS = 30000,
        WAITING_MS = 2000,
        RETRY_MS = 5000,
        SETTLE_MS = 1000,
        TRIES_OF_A_LOST_GPU = 3,
        LEFT_OUT_MS = 60000, /* a GPU that was left out may have been reset, and no event announces it */
        LOST_MS = 1000,      /* between queries of a lost GPU, so that it is withdrawn within 35 s */
        VERIFY_PATIENCE_MS = 10000, /* how long a Prepare waits for its GPUs */
        VERIFY_FAILING_MS = 60000,
};

_Static_assert(INVENTORY_GPUS_MAX <= 64, "a bit for each GPU");

/* Queries the GPUs of Prepares. It has its own process, so that it does not wait for a query of all GPUs. */
struct verifier {
        struct nvml_client *nvml;
        struct loop_timer patience;
        struct loop_turn ask; /* one query for all GPUs that are wanted in the present turn */
        char verb[NVML_QUESTION_MAX];
        uint64_t wanted, asked; /* GPUs: a bit for each index */
        uint64_t asked_ms;
        uint64_t read_ms[INVENTORY_GPUS_MAX]; /* when the last finished read of each GPU began */
        uint64_t failing_until_ms; /* set when a read has failed, or has not finished in time. Until then, and
                                      while that read still runs, no Prepare waits for a read */
};

struct gpus {
        uv_loop_t *loop;
        struct gpus_options o;
        struct nvml_client *nvml;
        struct loop_timer timer;
        bool waiting, settling;
        bool owed;             /* a caller of gpus_hold() waits for changed() */
        uint64_t held;         /* fingerprint of the known devices; 0: none are known */
        uint64_t seen, asked;  /* fingerprints at the last check, and at the last query of NVML */
        unsigned lost;         /* answers in a row in which an offered GPU failed or was missing */
        uint64_t left_out;     /* GPUs that are left out because they failed: a bit for each index */
        size_t n_last, n_most; /* GPUs in the last answer, and the most in an answer with its fingerprint */
        uint64_t asked_ms;     /* the time of the last query */
        uint64_t outdated_ms;  /* when gpus_doubt() was called; 0: not since the last query of all GPUs */
        bool disproved; /* an answer since then has disproved a known device, so a failed query leaves the
                           devices outdated */
        struct verifier verifier;
        struct gpus_state state;
        struct gpu_devices devices;
        char *library, *answered; /* the queried library; the library that answered, as in the state */
};

const struct gpus_state *gpus_get(const struct gpus *g) {
        return &g->state;
}

const struct gpu_devices *gpus_devices(const struct gpus *g) {
        return &g->devices;
}

/* True if another query may succeed although the fingerprint has not changed. */
static bool try_again(const struct gpus *g) {
        return g->state.failures || g->lost || (*g->state.reason && !streq(g->state.reason, REASON_NO_GPUS));
}

static bool look_again(const struct gpus *g) {
        return g->devices.incomplete && loop_now_ms(g->loop) >= g->asked_ms + LEFT_OUT_MS;
}

static void gpus_schedule(struct gpus *g) {
        unsigned ms = g->lost ? LOST_MS : try_again(g) ? RETRY_MS : g->outdated_ms ? 0 : IDLE_MS;
        if (g->waiting && ms > WAITING_MS)
                ms = WAITING_MS;
        loop_timer_start(&g->timer, ms);
}

static void gpus_notify(struct gpus *g, bool news) {
        gpus_schedule(g);
        if (!news && !g->owed)
                return;
        g->owed = false;
        g->o.changed(g->o.u);
}

/* The known devices are not outdated. */
static void gpus_trust(struct gpus *g) {
        g->outdated_ms = 0;
        g->disproved = false;
}

/* Takes the devices. */
static void gpus_answer(struct gpus *g, struct gpu_devices *now, const char *reason, const char *message) {
        bool news = !g->state.known || !streq(g->state.reason, reason) || !streq(g->state.message, message) ||
                    g->state.failures >= GPUS_STALE || !gpu_devices_equal(&g->devices, now);
        gpu_devices_done(&g->devices);
        g->devices = *now;
        g->held = g->asked;
        if (g->asked_ms >= g->outdated_ms)
                gpus_trust(g);
        free(g->answered);
        g->answered = *reason ? NULL : xstrdup(g->library);
        g->state = (struct gpus_state){
                .known = true, .reason = reason, .library = g->answered, .fingerprint = g->held
        };
        snprintf(g->state.message, sizeof g->state.message, "%s", message);
        gpus_notify(g, news);
}

static void no_driver(struct gpus *g, const char *reason, const struct err *e) {
        struct gpu_devices none = { 0 };
        g->lost = 0;
        g->left_out = 0;
        gpus_trust(g);
        gpus_answer(g, &none, reason, e->msg);
}

static void gpus_no_answer(struct gpus *g, const struct err *e) {
        g->state.failures++;
        if (!g->disproved)
                gpus_trust(g);
        snprintf(g->state.error, sizeof g->state.error, "%s", e->msg);
        if (!g->state.known) {
                g->state.reason = REASON_DRIVER_NOT_READY;
                snprintf(g->state.message, sizeof g->state.message, "%s", e->msg);
        }
        gpus_notify(g, g->state.failures == GPUS_STALE || !g->state.known);
}

/* NVML itself reports that the driver is missing, or does not match the library. */
static bool says_no_driver(const struct err *e) {
        return e->code == NVML_CANNOT_LOAD || e->code == NVML_DRIVER_NOT_LOADED ||
               e->code == NVML_LIBRARY_NOT_FOUND || e->code == NVML_VERSION_MISMATCH;
}

/* The GPUs that failed, or of which a MIG device failed. */
static uint64_t failed_gpus(const struct inventory *in) {
        uint64_t failed = 0;
        for (size_t i = 0; i < in->n_gpus; i++) {
                const struct gpu_facts *gpu = &in->gpus[i];
                bool any = inventory_failed(&gpu->failure);
                for (size_t j = 0; j < gpu->n_mig; j++)
                        any = any || inventory_failed(&gpu->mig[j].failure);
                failed |= (uint64_t)any << i;
        }
        return failed;
}

static void on_inventory(struct gpus *g, const struct inventory *in) {
        struct gpu_devices now;
        uint64_t failed = failed_gpus(in);
        bool same = g->asked == g->held, fewer = same && in->n_gpus < g->n_last;
        g->lost = (failed & ~g->left_out) || fewer ? g->lost + 1 : 0;
        /* At the start it is left out at once, because it has not been offered yet. */
        if (g->lost && g->lost < TRIES_OF_A_LOST_GPU && g->state.known && g->devices.n) {
                gpus_notify(g, false);
                return;
        }
        g->lost = 0;
        g->left_out = failed;
        for (size_t i = 0; i < in->n_gpus; i++)
                if (!inventory_failed(&in->gpus[i].failure) &&
                    g->verifier.read_ms[in->gpus[i].index] < g->asked_ms)
                        g->verifier.read_ms[in->gpus[i].index] = g->asked_ms;
        g->n_last = in->n_gpus;
        g->n_most = same && g->n_most > in->n_gpus ? g->n_most : in->n_gpus;
        gpu_devices_describe(in, g->o.sys, &now);
        now.incomplete = now.incomplete || in->n_gpus < g->n_most;
        gpus_answer(g, &now, now.n ? "" : REASON_NO_GPUS,
                    now.n ? "" : "NVML reports no GPU that can be offered");
}

static void report_failure(struct gpus *g, const struct err *e) {
        if (e->code == NVML_HUNG || e->code == NVML_CRASHED)
                g->o.failed(g->o.u, e->code == NVML_HUNG ? "hung" : "crashed");
}

static void gpus_on_answered(void *u, const struct str *json, const struct err *error) {
        struct gpus *g = u;
        _cleanup_(arena_freep) struct arena *a = arena_new(4096);
        struct inventory in;
        struct err e;
        if (json && inventory_decode(*json, a, &in, &e) == 0) {
                on_inventory(g, &in);
                return;
        }
        if (!json)
                e = *error;
        report_failure(g, &e);
        if (says_no_driver(&e))
                no_driver(g, REASON_DRIVER_NOT_READY, &e);
        else
                gpus_no_answer(g, &e);
}

/* The fingerprint of a node without the library. This is not a failure of the check. */
enum { WITHOUT_LIBRARY = 1 };

/* 0: the check failed. */
static uint64_t gpus_check(struct gpus *g, struct arena *a, struct driver_file *library, struct err *e) {
        if (driver_root_find_library(&g->o.root, "libnvidia-ml.so.1", a, library, e) < 0)
                return e->kind == ERR_NOT_FOUND ? WITHOUT_LIBRARY : 0;
        /* A driver container has its own dev/, and may start after the plugin. */
        _cleanup_(freep) char *dev = file_join(driver_root_has_dev(&g->o.root) ? g->o.root.here : "/", "dev");
        return fingerprint(&(struct fingerprint_of){
                .proc_driver = g->o.proc_driver, .sys = g->o.sys, .dev = dev, .library = library->here });
}

/* An administrator who configures MIG creates one instance after the other, so the query of NVML waits until
 * the fingerprint is stable. */
static void gpus_settle(struct gpus *g) {
        g->settling = true;
        loop_timer_start(&g->timer, SETTLE_MS);
}

static void gpus_on_timer(void *u) {
        struct gpus *g = u;
        _cleanup_(arena_freep) struct arena *a = arena_new(512);
        struct driver_file library = { 0 };
        uint64_t before = g->seen;
        struct err e;
        g->settling = false;
        g->seen = gpus_check(g, a, &library, &e);
        if (!g->seen) {
                gpus_no_answer(g, &e);
                return;
        }
        g->asked = g->seen;
        if (!library.here) {
                no_driver(g, REASON_DRIVER_NOT_FOUND, &e);
        } else if (g->seen == g->held && !try_again(g) && !look_again(g) && !g->outdated_ms) {
                gpus_notify(g, false);
        } else if (g->held && g->seen != g->held && g->seen != before) {
                gpus_settle(g);
        } else {
                free(g->library);
                g->library = xstrdup(library.here);
                g->asked_ms = loop_now_ms(g->loop);
                if (g->o.own_dev && device_nodes_copy(&g->o.root, g->o.own_dev, &e) < 0)
                        log_v(4, "NVML may lack device nodes", kv_err(&e));
                nvml_client_ask(g->nvml, g->library, NVML_ASK_INVENTORY, NVML_LIMITS, gpus_on_answered, g);
        }
}

bool gpus_hold(struct gpus *g) {
        _cleanup_(arena_freep) struct arena *a = arena_new(512);
        struct driver_file library;
        uint64_t before = g->seen;
        struct err e;
        if (!nvml_client_asking(g->nvml)) {
                g->seen = gpus_check(g, a, &library, &e);
                if (g->seen && g->seen == g->held && !g->outdated_ms)
                        return true;
                if (g->held && g->seen != before)
                        gpus_settle(g);
                else if (!g->settling && !try_again(g))
                        loop_timer_start(&g->timer, 0);
        }
        g->owed = true;
        return false;
}

void gpus_doubt(struct gpus *g) {
        g->outdated_ms = loop_now_ms(g->loop);
        if (!nvml_client_asking(g->nvml) && !g->settling)
                loop_timer_start(&g->timer, 0);
}

/* ---- the GPUs of Prepares ---- */

static const struct gpu_facts *gpus_by_index(const struct inventory *in, unsigned index) {
        for (size_t i = 0; i < in->n_gpus; i++)
                if (in->gpus[i].index == index)
                        return &in->gpus[i];
        return NULL;
}

enum opinion { CONFIRMED, UNKNOWN, DISPROVED };

/* UNKNOWN: NVML failed for the device, or did not list its GPU. */
static enum opinion opinion_on(const struct gpu_device *d, const struct gpu_facts *gpu) {
        enum opinion without = DISPROVED;
        if (!gpu || inventory_failed(&gpu->failure))
                return UNKNOWN;
        if (d->kind == GPU_FULL)
                return gpu->mig_mode != 1 && streq(gpu->uuid, d->uuid) ? CONFIRMED : DISPROVED;
        for (size_t i = 0; i < gpu->n_mig; i++) {
                if (inventory_failed(&gpu->mig[i].failure))
                        without = UNKNOWN;
                else if (streq(gpu->mig[i].uuid, d->uuid))
                        return CONFIRMED;
        }
        return without;
}

/* Doubts the known devices that the answer does not confirm. */
static void verifier_judge(struct gpus *g, const struct inventory *in) {
        for (size_t i = 0; i < g->devices.n; i++) {
                const struct gpu_device *d = &g->devices.items[i];
                if (!(g->verifier.asked >> d->index & 1))
                        continue;
                enum opinion o = opinion_on(d, gpus_by_index(in, d->index));
                if (o != CONFIRMED)
                        gpus_doubt(g);
                if (o == DISPROVED)
                        g->disproved = true;
        }
}

/* Ends the wait of Prepares for the read. */
static void verifier_end(struct gpus *g, bool fails) {
        struct verifier *m = &g->verifier;
        m->failing_until_ms = fails ? loop_now_ms(g->loop) + VERIFY_FAILING_MS : 0;
        for (unsigned i = 0; i < INVENTORY_GPUS_MAX; i++)
                if (m->asked >> i & 1 && m->read_ms[i] < m->asked_ms)
                        m->read_ms[i] = m->asked_ms;
        loop_timer_stop(&m->patience);
}

static void verifier_ask(void *u);

static void verifier_on_answered(void *u, const struct str *json, const struct err *error) {
        struct gpus *g = u;
        _cleanup_(arena_freep) struct arena *a = arena_new(1024);
        struct inventory in = { 0 };
        struct err e;
        bool fails = !json || inventory_decode(*json, a, &in, &e) < 0;
        if (!json)
                report_failure(g, error);
        if (!fails)
                verifier_judge(g, &in);
        verifier_end(g, fails);
        verifier_ask(g);
        g->o.verified(g->o.u);
}

/* The process is not killed: it may be initializing a GPU (nvml_session.h). */
static void verifier_on_patience(void *u) {
        struct gpus *g = u;
        verifier_end(g, true);
        g->o.verified(g->o.u);
}

static void verifier_ask(void *u) {
        struct gpus *g = u;
        struct verifier *m = &g->verifier;
        struct buf b = BUF_INIT(sizeof m->verb);
        if (!m->wanted || !g->answered || nvml_client_asking(m->nvml))
                return;
        buf_adds(&b, NVML_ASK_GPUS);
        for (unsigned i = 0; i < INVENTORY_GPUS_MAX; i++)
                if (m->wanted >> i & 1)
                        buf_addf(&b, "%s%u", str_ends(buf_str(&b), ":") ? "" : ",", i);
        snprintf(m->verb, sizeof m->verb, "%s", buf_str(&b));
        buf_done(&b);
        m->asked = m->wanted;
        m->wanted = 0;
        m->asked_ms = loop_now_ms(g->loop);
        loop_timer_start(&m->patience, VERIFY_PATIENCE_MS);
        nvml_client_ask(m->nvml, g->answered, m->verb, NVML_LIMITS, verifier_on_answered, g);
}

bool gpus_verify(struct gpus *g, const struct gpu_device *d, uint64_t since_ms) {
        struct verifier *m = &g->verifier;
        if (m->read_ms[d->index] >= since_ms)
                return true;
        bool asking = nvml_client_asking(m->nvml);
        bool coming = asking && m->asked >> d->index & 1 && m->asked_ms >= since_ms;
        if (!coming) {
                m->wanted |= UINT64_C(1) << d->index;
                loop_turn_start(&m->ask);
        }
        uint64_t now_ms = loop_now_ms(g->loop);
        return now_ms < m->failing_until_ms || (asking && now_ms >= m->asked_ms + VERIFY_PATIENCE_MS);
}

void gpus_poll_fast(struct gpus *g, bool waiting) {
        bool was = g->waiting;
        g->waiting = waiting;
        if (waiting && !was && !nvml_client_asking(g->nvml) && !g->settling)
                loop_timer_start(&g->timer, WAITING_MS);
}

struct gpus *gpus_new(uv_loop_t *loop, const struct gpus_options *o) {
        struct gpus *g = xnew(struct gpus);
        g->loop = loop;
        g->o = *o;
        g->nvml = nvml_client_new(loop);
        g->verifier.nvml = nvml_client_new(loop);
        loop_timer_init(&g->verifier.patience, loop, verifier_on_patience, g);
        loop_turn_init(&g->verifier.ask, loop, verifier_ask, g);
        g->state = (struct gpus_state){ .reason = REASON_DRIVER_NOT_QUERIED,
                                        .message = "the NVIDIA driver has not answered yet" };
        loop_timer_init(&g->timer, loop, gpus_on_timer, g);
        loop_timer_start(&g->timer, 0);
        return g;
}

void gpus_free(struct gpus *g) {
        if (!g)
                return;
        nvml_client_free(g->nvml);
        nvml_client_free(g->verifier.nvml);
        loop_timer_done(&g->verifier.patience);
        loop_turn_done(&g->verifier.ask);
        loop_timer_done(&g->timer);
        gpu_devices_done(&g->devices);
        free(g->library);
        free(g->answered);
        free(g);
}
