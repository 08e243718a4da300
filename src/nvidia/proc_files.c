/* SPDX-License-Identifier: Apache-2.0 */
#include "nvidia/proc_files.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"

enum {
        MAJOR_MAX = 4095 /* 12 bits in the kernel's dev_t */,
        MINOR_MAX = (1 << 20) - 1,
        CHANNELS_MAX = 1 << 16
};

int proc_devices_major(struct str text, const char *name, unsigned *ret_major, struct err *e) {
        struct str line;
        bool section = false;
        while (str_next_line(&text, &line)) {
                line = str_trim(line);
                if (str_eq(line, STR("Character devices:"))) {
                        section = true;
                        continue;
                }
                if (str_eq(line, STR("Block devices:")))
                        break;
                /* The kernel prints "%3d %s": the number is padded with spaces, and one space follows. */
                const char *blank = section && line.n ? memchr(line.p, ' ', line.n) : NULL;
                if (!blank)
                        continue;
                size_t digits = (size_t)(blank - line.p);
                struct str number = { line.p, digits }, label = { blank + 1, line.n - digits - 1 };
                int64_t major;
                if (!str_eq(label, str_from(name)) || !isdigit((unsigned char)line.p[0]) ||
                    !str_to_i64(number, &major))
                        continue;
                if (major < 1 || major > MAJOR_MAX)
                        return err_set(e, ERR_INVALID, 0,
                                       "character device '%s' has major %lld, which is out of range", name,
                                       (long long)major);
                *ret_major = (unsigned)major;
                return 0;
        }
        if (!section)
                return err_set(e, ERR_NOT_FOUND, 0, "there is no section 'Character devices:'");
        return err_set(e, ERR_NOT_FOUND, 0, "there is no character device '%s'", name);
}

int proc_devices_majors(struct str text, struct proc_majors *ret, struct err *e) {
        struct proc_majors m = { 0 };
        const struct {
                const char *name;
                unsigned *major;
        } names[] = { { "nvidia-frontend", &m.gpu },
                      { "nvidia", &m.gpu },
                      { "nvidia-uvm", &m.uvm },
                      { PROC_MAJOR_CAPS, &m.caps } };
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                if (proc_devices_major(text, names[i].name, names[i].major, e) < 0 &&
                    e->kind != ERR_NOT_FOUND)
                        return -1;
        }
        *ret = m;
        return 0;
}

/* The value of the first line "<key>: <value>". */
static bool proc_files_find_value(struct str text, const char *key, struct str *ret) {
        struct str line, k = str_from(key);
        while (str_next_line(&text, &line)) {
                if (line.n > k.n && memcmp(line.p, k.p, k.n) == 0 && line.p[k.n] == ':') {
                        *ret = str_trim((struct str){ line.p + k.n + 1, line.n - k.n - 1 });
                        return true;
                }
        }
        return false;
}

static int find_number(struct str text, const char *key, int64_t max, unsigned *ret, struct err *e) {
        struct str value;
        int64_t number;
        if (!proc_files_find_value(text, key, &value))
                return err_set(e, ERR_NOT_FOUND, 0, "there is no line '%s:'", key);
        if (!value.n || !isdigit((unsigned char)value.p[0]) || !str_to_i64(value, &number) || number > max)
                return err_set(e, ERR_INVALID, 0, "the value of '%s' is not a number from 0 to %lld", key,
                               (long long)max);
        *ret = (unsigned)number;
        return 0;
}

int proc_capability_parse(struct str text, struct proc_capability *ret, struct err *e) {
        struct proc_capability c;
        if (find_number(text, "DeviceFileMinor", MINOR_MAX, &c.minor, e) < 0 ||
            find_number(text, "DeviceFileMode", 0777, &c.mode, e) < 0)
                return -1;
        *ret = c;
        return 0;
}

int proc_params_channel_count(struct str text, unsigned *ret, struct err *e) {
        return find_number(text, "ImexChannelCount", CHANNELS_MAX, ret, e);
}

void proc_params_node(struct str text, unsigned *mode, unsigned *gid) {
        struct err unsaid;
        (void)find_number(text, "DeviceFileMode", 0777, mode, &unsaid);
        (void)find_number(text, "DeviceFileGID", INT32_MAX, gid, &unsaid);
}
