/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/cd_requests.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "cd_plugin/cd_devices.h"
#include "cd_plugin/edits.h"

bool cd_requests_manages(const struct cd_options *o, const char *ns) {
        return streq(o->ns, ns) || str_lists(o->more_ns, ns);
}

/* A daemon's configuration counts too, with any device: its author means a daemon. */
static bool cd_requests_asks_for_daemon(const struct op *op, const struct claim_result *r) {
        bool daemon = claim_result_is_daemon(r);
        for (size_t i = 0; i < op->claim.n_configs; i++) {
                const struct claim_config *c = &op->claim.configs[i];
                struct opaque_config got;
                struct err e;
                daemon = daemon || (streq(c->driver, CD_DRIVER) &&
                                    opaque_decode(c->parameters, false, op->arena, &got, &e) == 0 &&
                                    got.kind != OPAQUE_CHANNEL);
        }
        return daemon;
}

/* Why a claim can have only one channel. */
static const char *one_channel_of(const struct imex_mode *mode) {
        return mode_runs_daemons(mode) ? "assigned channels" : "host-managed IMEX";
}

/* Refuses what the mode of this installation forbids. */
static int check_mode(const struct imex_mode *mode, const struct cd_request *w, struct err *e) {
        enum allocation_mode allocation = opaque_allocation_mode(w->config.allocation_mode);
        if (w->is_daemon)
                return 0;
        if (mode_assigns_channels(mode) && allocation == ALLOCATION_ALL)
                return err_set(e, ERR_INVALID, 0,
                               "allocationMode \"All\" is not possible where each ComputeDomain has an "
                               "assigned channel (%s): the claim would get the channels of all others; use "
                               "\"Single\"",
                               mode->chosen_by);
        if (mode_one_channel(mode) && allocation != ALLOCATION_DEFAULT && allocation != ALLOCATION_SINGLE)
                return err_set(
                        e, ERR_INVALID, 0,
                        "allocationMode \"%s\" is not possible with %s (%s): a pod gets %s; use \"Single\"",
                        w->config.allocation_mode, one_channel_of(mode), mode->chosen_by,
                        mode_assigns_channels(mode) ? "its ComputeDomain's channel" : "channel 0");
        return 0;
}

/* A claim for an assigned channel must not get the shared one, nor the other way round. With isolation by
 * domain there are no assigned channels, and the member is unknown. */
static int check_isolation(const struct imex_mode *mode, const struct claim_result *r,
                           const struct opaque_config *c, struct err *e) {
        if (c->kind != OPAQUE_CHANNEL || c->own_channel == mode_assigns_channels(mode))
                return 0;
        if (!c->own_channel)
                return err_set(
                        e, ERR_INVALID, 0,
                        "request '%s': opaque configuration: isolation is missing: the claim is for the "
                        "shared channel 0, from before each ComputeDomain had an assigned channel (%s): "
                        "delete and recreate the ComputeDomain, and the pod",
                        r->request, mode->chosen_by);
        return err_set(
                e, ERR_INVALID, 0,
                "request '%s': opaque configuration: strict decoding error: unknown field \"isolation\"%s",
                r->request,
                mode_runs_daemons(mode)
                        ? ""
                        : ": the claim is for an assigned channel of its ComputeDomain, but here all share "
                          "channel 0 (imex.isolation=domain): delete and recreate the ComputeDomain, or "
                          "install with imex.isolation=channel");
}

/* A claim that was restored from a backup has another ComputeDomain as its owner, or none. */
static int check_shared(const struct imex_mode *mode, const struct op *op, const struct cd_request *w,
                        const struct claim_result *r, struct err *e) {
        if (!mode_assigns_channels(mode))
                return err_set(
                        e, ERR_INVALID, 0,
                        "claims that are shared across nodes need imex.isolation=channel, but here all "
                        "ComputeDomains share channel 0 (%s): delete the claim",
                        mode->chosen_by);
        if (!streq(r->device, CD_DEVICE_SHARED))
                return err_set(e, ERR_INVALID, 0, "pool '%s' has no device '%s'", r->pool, r->device);
        if (!claim_is_made_for(&op->claim, w->config.domain_id))
                return err_set(e, ERR_DENIED, 0,
                               "the driver did not create this claim for ComputeDomain %s: the claim was "
                               "restored from a backup, copied, or written by hand. Delete the claim: the "
                               "driver creates the one that spec.channel.resourceClaim of the ComputeDomain "
                               "names",
                               w->config.domain_id);
        return 0;
}

/* With assigned channels, the device of a claim is only a place for one pod on the node. So any number is
 * valid: the node may have offered more devices when the claim was allocated. */
static bool cd_requests_has_channel(const struct imex_mode *mode, const char *device) {
        int64_t number = cd_device_number(device);
        char name[32];
        if (!mode_assigns_channels(mode))
                return streq(device, CD_DEVICE_CHANNEL_PREFIX "0");
        snprintf(name, sizeof name, CD_DEVICE_CHANNEL_PREFIX "%" PRId64, number);
        return number >= 0 && number < EDITS_CHANNELS_DEFAULT && streq(device, name);
}

int cd_requests_take(void *u, const struct op *op, struct node_request *node_request, struct err *e) {
        const struct cd_options *o = &((const struct cd *)u)->o;
        const struct claim_result *r = node_request->result;
        struct cd_request *w = node_request->own = arena_alloc(op->arena, sizeof *w);
        *w = (struct cd_request){ .is_daemon = claim_result_is_daemon(r),
                                  .is_shared = claim_result_is_shared(r) };
        if (!mode_runs_daemons(o->mode) && cd_requests_asks_for_daemon(op, r))
                return err_set(
                        e, ERR_DENIED, 0,
                        "daemon claims are disabled: IMEX runs on the hosts and not in pods (%s); this "
                        "claim is left over from another mode or was created by hand: delete it",
                        o->mode->chosen_by);
        if (!w->is_shared && !streq(r->pool, o->node))
                return err_set(e, ERR_INVALID, 0,
                               "device '%s' was allocated on node '%s', but this is node '%s'", r->device,
                               r->pool, o->node);
        if (!w->is_daemon && !w->is_shared && !cd_requests_has_channel(o->mode, r->device))
                return err_set(e, ERR_INVALID, 0, "node '%s' has no device '%s'", o->node, r->device);
        if (claim_config_for(&op->claim, r, true, op->arena, &w->config, e) < 0 ||
            (w->is_shared && check_shared(o->mode, op, w, r, e) < 0) ||
            check_isolation(o->mode, r, &w->config, e) < 0)
                return -1;
        struct claim_place place;
        w->admin_access = r->admin_access &&
                          !claim_place(&op->claim, mode_assigns_channels(o->mode), op->arena, &place);
        w->is_own = w->is_daemon && streq(w->config.domain_id, CD_DAEMON_DOMAIN);
        /* Its folder is mounted writable into the daemon: only the driver's namespaces may request that. */
        if (w->is_daemon && !cd_requests_manages(o, op->ns))
                return err_set(
                        e, ERR_DENIED, 0,
                        "device '%s' is for the IMEX daemons in the driver's namespaces ('%s'%s%s) only, not "
                        "for claims of namespace '%s': request a channel instead, with the claim template of "
                        "a ComputeDomain",
                        r->device, o->ns, *o->more_ns ? ", " : "", o->more_ns, op->ns);
        return 0;
}

int cd_requests_check(void *u, const struct op *op, struct err *e) {
        const struct imex_mode *mode = ((const struct cd *)u)->o.mode;
        if (mode_one_channel(mode) && op->n_requests != 1)
                return err_set(
                        e, ERR_INVALID, 0,
                        "%zu devices of this driver are allocated to the claim, but with %s (%s) a claim "
                        "has exactly one channel",
                        op->n_requests, one_channel_of(mode), mode->chosen_by);
        for (size_t i = 0; i < op->n_requests; i++) {
                if (check_mode(mode, cd_request_of(&op->requests[i]), e) < 0)
                        return -1;
        }
        return 0;
}
