/* SPDX-License-Identifier: Apache-2.0 */
/* facts: what this node's driver and fabric are, sampled, because nothing announces it: NVML's fabric state,
 * the majors in /proc/devices.
 *
 * One sampler for all of them: from 20 ms growing to 1 s while somebody waits for a better answer, to 5 s
 * while the node has nothing to offer, and every 30 s otherwise. NVML is asked in a child process. Never an
 * error: a node without driver is a fact too.
 *
 * What NVML says counts at once. No answer is not an answer: while its process hangs or crashes, or the
 * driver root cannot be searched, the facts of a usable node hold for FACTS_HOLD_MS. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"
#include "nvidia/driver_root.h"
#include "nvidia/fabric.h"
#include "nvidia/proc_files.h"

enum { FACTS_HOLD_MS = 300000 };

struct facts {
        bool known;         /* NVML has answered once, or there is none to ask */
        bool usable;        /* devices can be offered; else reason and message say why not */
        const char *reason; /* a word for events and metrics: "DriverNotFound", ...; "" when usable */
        char message[400];  /* for people */
        char driver_version[96];
        struct fabric fabric;
        unsigned channel_major; /* 0: none */
        unsigned channel_count; /* ImexChannelCount of the driver; what it has by itself when it does not say
                                 */
};

/* All that a verdict is made of; pure, for tests. */
struct facts_input {
        const struct nvml_facts *nvml; /* NULL: nvml_error says why */
        const struct err *nvml_error;
        unsigned channel_major; /* 0: major_error says why */
        unsigned channel_count;
        const struct err *major_error;
        bool strict;    /* gate CrashOnNVLinkFabricErrors */
        bool runs_imex; /* our daemon runs IMEX, whose nodes have names: needs a driver that resolves them */
};
void facts_judge(const struct facts_input *in, struct facts *ret);
#define FACTS_MIN_DRIVER "570.158.01"

struct facts_sampler;

struct facts_options { /* the strings are borrowed until facts_sampler_free() */
        struct driver_root root;
        const char *proc_devices; /* "/proc/devices" or its substitute */
        const char *proc_driver;  /* "/proc/driver/nvidia" or its substitute */
        bool strict, runs_imex;
        void (*changed)(void *u); /* never from inside a call of ours */
        void *u;
};

struct facts_sampler *facts_sampler_new(uv_loop_t *loop, const struct facts_options *o);
const struct facts *facts_get(const struct facts_sampler *s);
/* Somebody waits for a better answer: sample at short intervals until told otherwise. */
void facts_poll_fast(struct facts_sampler *s, bool waiting);
/* Driver's majors as of now, not as of the last sample. */
int facts_major(const struct facts_sampler *s, const char *name, unsigned *ret, struct err *e);
void facts_sampler_free(struct facts_sampler *s);
