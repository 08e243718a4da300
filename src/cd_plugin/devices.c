/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/devices.h"

#include <ctype.h>

#include "api/names.h"

bool device_is_daemon(const struct node_device *d) {
        return streq(d->type, DEVICE_DAEMON);
}

static void write_strings(struct jw *w, const char *key, const char *const *list) {
        jw_arr(w, key);
        for (; list && *list; list++)
                jw_str(w, NULL, *list);
        jw_end_arr(w);
}

int64_t device_number(const char *name) {
        const char *dash = name ? strrchr(name, '-') : NULL;
        int64_t number;
        return dash && isdigit((unsigned char)dash[1]) && str_to_i64(str_from(dash + 1), &number) ? number
                                                                                                  : -1;
}

static void write_group(struct jw *w, const struct node_device *d) {
        jw_obj(w, NULL);
        jw_arr(w, "devices");
        jw_obj(w, NULL);
        if (device_is_daemon(d))
                jw_null(w, "channel");
        jw_obj(w, device_is_daemon(d) ? "daemon" : "channel");
        jw_obj(w, "info");
        jw_int(w, "id", d->id);
        jw_end_obj(w);
        jw_obj(w, "device");
        write_strings(w, "Requests", d->requests);
        jw_str(w, "PoolName", str_or(d->pool, ""));
        jw_str(w, "DeviceName", str_or(d->name, ""));
        write_strings(w, "CDIDeviceIDs", d->cdi_ids);
        jw_end_obj(w);
        jw_end_obj(w);
        if (!device_is_daemon(d))
                jw_null(w, "daemon");
        jw_end_obj(w);
        jw_end_arr(w);
        jw_obj(w, "configState");
        jw_str(w, "Type", device_is_daemon(d) ? "daemon" : "channel");
        jw_str(w, "ComputeDomain", str_or(d->domain, ""));
        jw_end_obj(w);
        jw_end_obj(w);
}

static void encode(struct jw *w, const struct node_device *devices, size_t n, int dialect) {
        jw_arr(w, NULL);
        for (size_t i = 0; i < n; i++)
                write_group(w, &devices[i]);
        jw_end_arr(w);
}

/* One device as the file has it; the Go driver changed the names of these members once, and the new ones
 * win. */
struct stored_device {
        const char **requests, **cdi_ids, *pool, *name;
        size_t n_requests, n_cdi_ids;
};
static const struct jd_field f_stored_device[] = {
        JD_STRS(struct stored_device, "request_names", requests),
        JD_STRS(struct stored_device, "Requests", requests),
        JD_STR(struct stored_device, "pool_name", pool),
        JD_STR(struct stored_device, "PoolName", pool),
        JD_STR(struct stored_device, "device_name", name),
        JD_STR(struct stored_device, "DeviceName", name),
        JD_STRS(struct stored_device, "cdi_device_ids", cdi_ids),
        JD_STRS(struct stored_device, "CDIDeviceIDs", cdi_ids),
        JD_END,
};
struct stored_pair {
        struct stored_device *channel, *daemon;
        struct str channel_id; /* as text: in another shape it must not make the file unreadable */
};
static const struct jd_field f_stored_pair[] = {
        JD_RAW(struct stored_pair, "channel>info>id", channel_id),
        JD_OPTOBJ(struct stored_pair, "channel>device", channel, struct stored_device, f_stored_device),
        JD_OPTOBJ(struct stored_pair, "daemon>device", daemon, struct stored_device, f_stored_device),
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
struct stored_entry {
        struct stored_group *groups;
        size_t n_groups;
};
static const struct jd_field f_entry[] = {
        JD_LIST(struct stored_entry, "preparedDevices", groups, struct stored_group, f_group), JD_END
};

static int64_t id_of(const struct stored_pair *pair, const struct stored_device *d) {
        int64_t id;
        if (pair->daemon)
                return 0;
        if (str_to_i64(pair->channel_id, &id) && id >= 0)
                return id;
        id = device_number(d->name);
        return id < 0 ? 0 : id;
}

static void take_devices(const struct stored_entry *s, struct arena *a, struct node_device **ret,
                         size_t *ret_n) {
        size_t n = 0;
        for (size_t g = 0; g < s->n_groups; g++)
                n += s->groups[g].n_pairs;
        struct node_device *devices = arena_alloc(a, (n + 1) * sizeof *devices);
        n = 0;
        for (size_t g = 0; g < s->n_groups; g++) {
                for (size_t i = 0; i < s->groups[g].n_pairs; i++) {
                        const struct stored_pair *pair = &s->groups[g].pairs[i];
                        const struct stored_device *d = pair->daemon ? pair->daemon : pair->channel;
                        if (!d)
                                continue;
                        devices[n++] = (struct node_device){
                                .name = d->name,
                                .pool = d->pool,
                                .requests = checkpoint_strings(a, d->requests),
                                .cdi_ids = checkpoint_strings(a, d->cdi_ids),
                                .type = pair->daemon ? DEVICE_DAEMON : DEVICE_CHANNEL,
                                .domain = s->groups[g].domain,
                                .id = id_of(pair, d),
                        };
                }
        }
        *ret = devices;
        *ret_n = n;
}

static int decode(yyjson_val *entry, struct arena *a, struct node_device **ret, size_t *ret_n,
                  struct err *e) {
        struct stored_entry s = { 0 };
        size_t i, max;
        yyjson_val *v;
        if (yyjson_is_arr(entry)) {
                s.groups = arena_alloc(a, (yyjson_arr_size(entry) + 1) * sizeof *s.groups);
                yyjson_arr_foreach (entry, i, max, v) {
                        if (jd_decode(f_group, v, false, "", a, &s.groups[s.n_groups++], e) < 0)
                                return -1;
                }
        } else if (jd_decode(f_entry, entry, false, "", a, &s, e) < 0) {
                return -1;
        }
        take_devices(&s, a, ret, ret_n);
        return 0;
}

const struct device_codec cd_device_codec = { .driver = CD_DRIVER, .encode = encode, .decode = decode };
