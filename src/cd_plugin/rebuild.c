/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/rebuild.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "api/opaque.h"
#include "cd_plugin/cd_devices.h"

enum { DEVICES_MAX = 128 /* the limit of a ResourceSlice, so of a claim */ };

const char *rebuild_comment(struct arena *a, const char *domain, const char *device, int64_t channel,
                            const char *clique) {
        return clique ? arena_printf(a, "domain %s channel %s=%" PRId64 " clique %s", domain, device, channel,
                                     clique)
                      : arena_printf(a, "domain %s", domain);
}

/* The UID after `label` in the text, which may be our JSON or the YAML of the Go driver. */
static bool find_uuid(const char *text, const char *label, char ret[static 37]) {
        const char *p = strstr(text, label);
        if (!p)
                return false;
        snprintf(ret, 37, "%s", p + strlen(label));
        return str_is_uuid(ret);
}

/* The word after `label` in the comment, which is the first line. */
static struct str comment_word(const char *text, const char *label) {
        struct str rest = str_from(text), line = { 0 }, word = { 0 };
        if (*text != '#' || !str_next_line(&rest, &line))
                return word;
        const char *p = memmem(line.p, line.n, label, strlen(label));
        if (!p)
                return word;
        struct str tail = { p + strlen(label), line.n - (size_t)(p - line.p) - strlen(label) };
        str_next_field(&tail, ' ', &word);
        return word;
}

/* Reads "channel-3=7" of this device. */
static bool comment_channel(const char *text, const char *device, int64_t *ret) {
        struct str word = comment_word(text, " channel "), name;
        return str_next_field(&word, '=', &name) && str_eq(name, str_from(device)) && word.n &&
               isdigit((unsigned char)*word.p) && str_to_i64(word, ret);
}

static bool is_name_char(char c) {
        return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

static bool is_device(const char *name) {
        int64_t number = cd_device_number(name);
        char whole[32];
        if (streq(name, CD_DEVICE_DAEMON) || streq(name, CD_DEVICE_SHARED))
                return true;
        snprintf(whole, sizeof whole, CD_DEVICE_CHANNEL_PREFIX "%" PRId64, number);
        return number >= 0 && streq(name, whole);
}

static void rebuild_add(const char *text, const char *name, const char *domain, struct arena *a,
                        struct node_device *devices, size_t *n) {
        int64_t id = 0;
        bool daemon = streq(name, CD_DEVICE_DAEMON);
        for (size_t i = 0; i < *n; i++) {
                if (streq(devices[i].name, name))
                        return;
        }
        if (*n == DEVICES_MAX)
                return;
        if (!daemon && !comment_channel(text, name, &id))
                id = streq(name, CD_DEVICE_SHARED) ? 0 : cd_device_number(name);
        devices[(*n)++] = (struct node_device){ .name = arena_strdup(a, name),
                                                .pool = streq(name, CD_DEVICE_SHARED) ? CD_POOL_SHARED : NULL,
                                                .type = daemon ? DEVICE_DAEMON : DEVICE_CHANNEL,
                                                .domain = domain,
                                                .id = id };
}

size_t rebuild_devices(const char *cdi_file, const char *uid, struct arena *a, struct node_device **ret) {
        struct node_device *devices = arena_alloc(a, DEVICES_MAX * sizeof *devices);
        _cleanup_(freep) char *label = xasprintf("%s-", uid);
        char uuid[37], name[64];
        size_t n = 0;
        const char *domain =
                find_uuid(cdi_file, " domain ", uuid) || find_uuid(cdi_file, "COMPUTE_DOMAIN_UUID=", uuid)
                        ? arena_strdup(a, uuid)
                        : "";
        /* Complete names: channel-1 must not match channel-10. */
        for (const char *p = cdi_file; (p = strstr(p, label));) {
                bool begins = p == cdi_file || !is_name_char(p[-1]);
                const char *end = p += strlen(label);
                while (is_name_char(*end))
                        end++;
                if (!begins || (size_t)(end - p) >= sizeof name)
                        continue;
                snprintf(name, sizeof name, "%.*s", (int)(end - p), p);
                if (is_device(name))
                        rebuild_add(cdi_file, name, domain, a, devices, &n);
        }
        *ret = devices;
        return n;
}

const char *rebuild_config(const struct node_device *d, struct arena *a) {
        return arena_printf(a, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"domainID\":\"%s\"}", CD_API_VERSION,
                            opaque_kind_name(cd_device_is_daemon(d) ? OPAQUE_DAEMON : OPAQUE_CHANNEL),
                            *d->domain ? d->domain : CD_DAEMON_DOMAIN);
}

const char *rebuild_clique(const char *cdi_file, struct arena *a) {
        struct str word = comment_word(cdi_file, " clique ");
        const char *clique = arena_strndup(a, word.p ? word.p : "", word.n);
        return str_is_dns_subdomain(clique) ? clique : NULL;
}
