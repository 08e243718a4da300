/* SPDX-License-Identifier: Apache-2.0 */
#include "node/check_settings.h"

#include <inttypes.h>
#include <string.h>

#include "base/toml.h"

/* ---- security modules ---- */

/* The word between brackets. */
static struct str lockdown_mode(const char *text) {
        const char *open = text ? strchr(text, '[') : NULL, *close = open ? strchr(open, ']') : NULL;

        return close ? (struct str){ open + 1, (size_t)(close - open - 1) } : STR("");
}

/* The type in "user:role:type:level". */
static struct str selinux_type(const char *context) {
        struct str rest = str_from(str_or(context, "")), part = STR("");

        for (int i = 0; i < 3; i++)
                if (!str_next_field(&rest, ':', &part))
                        return STR("");
        return part;
}

/* item security-modules of both plugins: neither the lockdown of the kernel nor SELinux stops the driver or
 * the plugin, if the container sees their state */
void check_settings_security(struct check_list *l, const struct check_security *s) {
        struct str mode = lockdown_mode(s->lockdown), type = selinux_type(s->context);
        bool locked = mode.n && !str_eq(mode, STR("none"));
        bool enforces = s->enforce && *s->enforce == '1';

        if (locked && !s->nvidia_loaded)
                check_list_problem(
                        l, "security-modules",
                        "Sign the kernel modules of the NVIDIA driver with a key of the node, or disable "
                        "Secure Boot.",
                        "lockdown is %.*s, so the kernel loads only signed modules, and the module nvidia "
                        "is not loaded",
                        (int)mode.n, mode.p);
        else if (enforces && type.n && !str_eq(type, STR("spc_t")))
                check_list_problem(
                        l, "security-modules",
                        "Set securityContext.privileged=true, or seLinuxOptions.type=spc_t, in the values of "
                        "this container (kubeletPlugin.containers).",
                        "SELinux enforces, and this container runs as %.*s, which may not read the "
                        "files of the driver root",
                        (int)type.n, type.p);
        else if (!mode.n && !s->enforce)
                check_list_skipped(l, "security-modules",
                                   "this container sees the state of neither lockdown nor SELinux");
        else
                check_list_ok(l, "security-modules", "lockdown is %.*s, SELinux %s",
                              (int)(mode.n ? mode.n : 7), mode.n ? mode.p : "unknown",
                              enforces     ? "enforces"
                              : s->enforce ? "is permissive"
                                           : "is off or not seen");
}

/* ---- the folders of CDI files ---- */

static bool is_quote(char c) {
        return c == '"' || c == '\'';
}

/* The folders that containerd and CRI-O read without a configuration. */
#define DEFAULT_SPEC_DIRS "['/etc/cdi', '/var/run/cdi']"

/* Whether a list of TOML contains the folder itself. /var/run is a link to /run. */
static bool list_names(struct str list, const char *folder) {
        const char *name = str_starts(folder, "/var/run/") ? folder + 4 : folder;
        bool linked = str_starts(name, "/run/");
        size_t n = strlen(name);

        while (n > 1 && name[n - 1] == '/')
                n--;
        for (size_t i = 1; i + n < list.n; i++) {
                size_t end = i + n;
                while (end < list.n && list.p[end] == '/')
                        end++;
                if (memcmp(list.p + i, name, n) != 0 || end == list.n || !is_quote(list.p[end]))
                        continue;
                if (is_quote(list.p[i - 1]) ||
                    (linked && i > 5 && memcmp(list.p + i - 4, "/var", 4) == 0 && is_quote(list.p[i - 5])))
                        return true;
        }
        return false;
}

/* item cdi-spec-dirs of both plugins: the container runtime reads CDI files in the folder to which the
 * plugin writes them, if the container sees its configuration */
void check_settings_spec_dirs(struct check_list *l, const struct check_config *files, size_t n,
                              const char *cdi_root) {
        static const char *const paths[][4] = {
                { "plugins", "io.containerd.cri.v1.runtime", "cdi_spec_dirs" },
                { "plugins", "io.containerd.grpc.v1.cri", "cdi_spec_dirs" },
                { "crio", "runtime", "cdi_spec_dirs" },
        };
        const char *set = NULL;
        bool named = false;
        struct err e;

        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < ARRAY_LEN(paths); k++) {
                        struct toml_value v;
                        if (toml_find(files[i].text, paths[k], &v, &e) < 0) {
                                check_list_skipped(l, "cdi-spec-dirs", "'%s' cannot be read: %s",
                                                   files[i].file, e.msg);
                                return;
                        }
                        if (v.kind == TOML_ABSENT)
                                continue;
                        set = files[i].file; /* a later file replaces the list */
                        named = list_names(v.raw, cdi_root);
                }
        if (set && !named)
                check_list_problem(
                        l, "cdi-spec-dirs",
                        "Add the folder to cdi_spec_dirs in this file, and restart the container runtime.",
                        "cdi_spec_dirs in '%s' does not contain '%s', so no container gets its devices", set,
                        cdi_root);
        else if (set)
                check_list_ok(l, "cdi-spec-dirs", "'%s' contains '%s'", set, cdi_root);
        else if (n && !list_names(STR(DEFAULT_SPEC_DIRS), cdi_root))
                check_list_problem(
                        l, "cdi-spec-dirs",
                        "Set cdi_spec_dirs in the configuration of the container runtime to a list that "
                        "contains the folder, and restart the container runtime.",
                        "no configuration sets cdi_spec_dirs, and the default " DEFAULT_SPEC_DIRS
                        " does not contain '%s', so no container gets its devices",
                        cdi_root);
        else if (n)
                check_list_ok(l, "cdi-spec-dirs",
                              "no configuration sets cdi_spec_dirs, and the default contains '%s'", cdi_root);
        else
                check_list_skipped(l, "cdi-spec-dirs",
                                   "this container sees no configuration of containerd or CRI-O");
}

/* ---- ResourceSlices ---- */

/* item resource-slice of both plugins: the API server has ResourceSlices of this node with its devices and
 * its NVLink partition */
void check_settings_slices(struct check_list *l, const struct check_slices *s) {
        static const char log[] = "Look at the log of the plugin's container, and restart the plugin's pod.";
        const char *clique = "";
        int64_t devices = 0;

        for (size_t i = 0; i < s->n; i++) {
                const char *is;
                devices += (int64_t)s->items[i].n_devices;
                if (slice_clique(&s->items[i], &is) && *is)
                        clique = is;
        }
        if (!s->n)
                check_list_problem(l, "resource-slice", log,
                                   "the API server has no ResourceSlice of this node");
        else if (!devices && s->devices)
                check_list_problem(
                        l, "resource-slice",
                        "Look at the Events of the Node, and at the other items of this list.",
                        "the ResourceSlice of this node has no device, so the plugin withholds them");
        else if (s->clique && devices && !streq(clique, s->clique))
                check_list_problem(
                        l, "resource-slice", log,
                        "the ResourceSlice has the NVLink partition '%s', and the GPUs report '%s'", clique,
                        s->clique);
        else if (s->devices >= 0 && devices != s->devices)
                check_list_problem(l, "resource-slice", log,
                                   "the ResourceSlices of this node have %" PRId64
                                   " devices, and the node has %" PRId64,
                                   devices, s->devices);
        else
                check_list_ok(l, "resource-slice", "%zu ResourceSlice%s with %" PRId64 " device%s", s->n,
                              s->n == 1 ? "" : "s", devices, devices == 1 ? "" : "s");
}
