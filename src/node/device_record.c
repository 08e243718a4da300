/* SPDX-License-Identifier: Apache-2.0 */
#include "node/device_record.h"

const struct jd_field device_record_fields[] = {
        JD_STRS(struct device_record, "request_names", requests),
        JD_STRS(struct device_record, "Requests", requests),
        JD_STR(struct device_record, "pool_name", pool),
        JD_STR(struct device_record, "PoolName", pool),
        JD_STR(struct device_record, "device_name", name),
        JD_STR(struct device_record, "DeviceName", name),
        JD_STRS(struct device_record, "cdi_device_ids", cdi_ids),
        JD_STRS(struct device_record, "CDIDeviceIDs", cdi_ids),
        JD_END,
};

struct node_device device_record_take(const struct device_record *r, struct arena *a) {
        return (struct node_device){
                .name = r->name,
                .pool = r->pool,
                .requests = arena_strdups(a, r->requests),
                .cdi_ids = arena_strdups(a, r->cdi_ids),
        };
}

static void write_strings(struct jw *w, const char *key, const char *const *list) {
        jw_arr(w, key);
        for (; list && *list; list++)
                jw_str(w, NULL, *list);
        jw_end_arr(w);
}

void device_record_write(struct jw *w, const struct node_device *d) {
        jw_obj(w, "device");
        write_strings(w, "Requests", d->requests);
        jw_str(w, "PoolName", str_or(d->pool, ""));
        jw_str(w, "DeviceName", str_or(d->name, ""));
        write_strings(w, "CDIDeviceIDs", d->cdi_ids);
        jw_end_obj(w);
}

int device_record_groups(yyjson_val *entry, const struct jd_field *group, size_t size, struct arena *a,
                         struct device_groups *ret, struct err *e) {
        const struct jd_field in_entry[] = {
                { .name = "preparedDevices",
                  .type = JD_T_LIST,
                  .off = offsetof(struct device_groups, list),
                  .count_off = offsetof(struct device_groups, n_list),
                  .sub = group,
                  .size = size },
                JD_END,
        };
        struct device_groups g = { 0 };
        if (yyjson_is_arr(entry)) { /* the list alone */
                size_t i, max;
                yyjson_val *v;
                char *list = arena_alloc(a, (yyjson_arr_size(entry) + 1) * size);
                yyjson_arr_foreach (entry, i, max, v) {
                        if (jd_decode(group, v, "", a, list + i * size, e) < 0)
                                return -1;
                }
                g = (struct device_groups){ list, yyjson_arr_size(entry) };
        } else if (jd_decode(in_entry, entry, "", a, &g, e) < 0) {
                return -1;
        }
        *ret = g;
        return 0;
}
