/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/cd_devices.h"

#include <ctype.h>

#include "api/names.h"
#include "node/checkpoint_layouts.h"

bool cd_device_is_daemon(const struct node_device *d) {
        return streq(d->type, DEVICE_DAEMON);
}

bool cd_device_is_own_daemon(const struct node_device *d) {
        return cd_device_is_daemon(d) && !d->admin && streq(d->domain, CD_DAEMON_DOMAIN);
}

const struct checkpoint_claim *cd_device_own_daemon_claim(const struct checkpoint *table) {
        CHECKPOINT_EACH_DEVICE (table, c, d) {
                if (cd_device_is_own_daemon(d))
                        return c;
        }
        return NULL;
}

int64_t cd_device_number(const char *name) {
        const char *dash = name ? strrchr(name, '-') : NULL;
        int64_t number;
        return dash && isdigit((unsigned char)dash[1]) && str_to_i64(str_from(dash + 1), &number) ? number
                                                                                                  : -1;
}

static void write_group(struct jw *w, const struct node_device *d) {
        jw_obj(w, NULL);
        jw_arr(w, "devices");
        jw_obj(w, NULL);
        if (cd_device_is_daemon(d))
                jw_null(w, "channel");
        jw_obj(w, cd_device_is_daemon(d) ? "daemon" : "channel");
        jw_obj(w, "info");
        jw_int(w, "id", d->id);
        jw_end_obj(w);
        device_record_write(w, d);
        jw_end_obj(w);
        if (!cd_device_is_daemon(d))
                jw_null(w, "daemon");
        jw_end_obj(w);
        jw_end_arr(w);
        jw_obj(w, "configState");
        jw_str(w, "Type", cd_device_is_daemon(d) ? "daemon" : "channel");
        jw_str(w, "ComputeDomain", str_or(d->domain, ""));
        jw_end_obj(w);
        jw_end_obj(w);
}

static void cd_devices_encode(struct jw *w, const struct node_device *devices, size_t n, int dialect) {
        jw_arr(w, NULL);
        for (size_t i = 0; i < n; i++)
                write_group(w, &devices[i]);
        jw_end_arr(w);
}

struct stored_pair {
        struct device_record *channel, *daemon;
        struct str channel_id; /* as text: an unexpected type must not make the file unreadable */
};
static const struct jd_field f_stored_pair[] = {
        JD_RAW(struct stored_pair, "channel>info>id", channel_id),
        JD_DEVICE_RECORD(struct stored_pair, "channel>device", channel),
        JD_DEVICE_RECORD(struct stored_pair, "daemon>device", daemon),
        JD_END,
};
struct stored_group {
        struct stored_pair *pairs;
        size_t n_pairs;
        const char *domain;
};
static const struct jd_field f_group[] = {
        JD_LIST(struct stored_group, "devices", pairs, struct stored_pair, f_stored_pair),
        JD_STR(struct stored_group, "configState>ComputeDomain", domain),
        JD_END,
};

static int64_t id_of(const struct stored_pair *pair, const struct device_record *d) {
        int64_t id;
        if (pair->daemon)
                return 0;
        if (str_to_i64(pair->channel_id, &id) && id >= 0)
                return id;
        id = cd_device_number(d->name);
        return id < 0 ? 0 : id;
}

static int cd_devices_decode(yyjson_val *entry, struct arena *a, struct node_device **ret, size_t *ret_n,
                             struct err *e) {
        struct device_groups read;
        size_t room = 1, n = 0;
        if (device_record_groups(entry, f_group, sizeof(struct stored_group), a, &read, e) < 0)
                return -1;
        const struct stored_group *groups = read.list;
        for (size_t g = 0; g < read.n_list; g++)
                room += groups[g].n_pairs;
        struct node_device *devices = arena_alloc(a, room * sizeof *devices);
        for (size_t g = 0; g < read.n_list; g++) {
                for (size_t i = 0; i < groups[g].n_pairs; i++) {
                        const struct stored_pair *pair = &groups[g].pairs[i];
                        const struct device_record *r = pair->daemon ? pair->daemon : pair->channel;
                        if (!r)
                                continue;
                        struct node_device *d = &devices[n++];
                        *d = device_record_take(r, a);
                        d->type = pair->daemon ? DEVICE_DAEMON : DEVICE_CHANNEL;
                        d->domain = groups[g].domain;
                        d->id = id_of(pair, r);
                }
        }
        *ret = devices;
        *ret_n = n;
        return 0;
}

const struct device_codec cd_device_codec = { .driver = CD_DRIVER,
                                              .encode = cd_devices_encode,
                                              .decode = cd_devices_decode };
