/* SPDX-License-Identifier: Apache-2.0 */
#include "model/auto_domain.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "api/names.h"
#include "base/str.h"

enum { NAME_PART = 48, UID_PART = 8, NAME_MAX_BYTES = 253 };

#define LABEL "metadata>labels>"

static const struct jd_field owner_fields[] = {
        JD_STR(struct auto_owner, "apiVersion", api_version),
        JD_STR(struct auto_owner, "kind", kind),
        JD_STR(struct auto_owner, "name", name),
        JD_STR(struct auto_owner, "uid", uid),
        JD_BOOL(struct auto_owner, "controller", controller),
        JD_END,
};

const struct jd_field auto_pod_meta_fields[] = {
        JD_OBJ(struct auto_pod_meta, "metadata", o.meta, kube_f_meta),
        JD_STR(struct auto_pod_meta, LABEL JOBSET_LABEL_NAME, jobset),
        JD_STR(struct auto_pod_meta, LABEL JOBSET_LABEL_UID, jobset_uid),
        JD_STR(struct auto_pod_meta, LABEL LWS_LABEL_NAME, lws),
        JD_STR(struct auto_pod_meta, "metadata>annotations>" GROVE_ANNOTATION, group),
        JD_LIST(struct auto_pod_meta, "metadata>ownerReferences", owners, struct auto_owner, owner_fields),
        JD_END,
};

const struct jd_field auto_pod_fields[] = {
        JD_OBJ(struct auto_pod, "metadata", o.meta, kube_f_meta),
        JD_STR(struct auto_pod, "domain", domain),
        JD_STR(struct auto_pod, "key", key),
        JD_OBJ(struct auto_pod, "owner", owner, owner_fields),
        JD_BOOL(struct auto_pod, "leads", leads),
        JD_END,
};

static const struct auto_owner *controlling_owner(const struct auto_pod_meta *p) {
        for (size_t i = 0; i < p->n_owners; i++)
                if (p->owners[i].controller)
                        return &p->owners[i];
        return NULL;
}

/* Returns the index of the group: the digits after "<lws>-" in the pod's name. n 0: there are none.
 * *ret_leads: nothing follows them. */
static struct str group_index(const struct auto_pod_meta *p, bool *ret_leads) {
        size_t n = strlen(str_or(p->lws, "")), digits = 0;
        const char *rest = p->o.meta.name + n + 1;
        if (!n || strncmp(p->o.meta.name, p->lws, n) != 0 || p->o.meta.name[n] != '-')
                return (struct str){ "", 0 };
        while (isdigit((unsigned char)rest[digits]))
                digits++;
        *ret_leads = !rest[digits];
        return (struct str){ rest, rest[digits] == '\0' || rest[digits] == '-' ? digits : 0 };
}

static void name_with_uid(const struct auto_owner *owner, struct buf *out) {
        const char *name = str_or(owner->name, "");
        buf_adds(out, "auto-");
        for (size_t i = 0; i < NAME_PART && name[i]; i++)
                buf_addc(out, name[i] == '.' ? '-' : name[i]);
        buf_addf(out, "-%.*s", (int)UID_PART, str_or(owner->uid, ""));
}

static void auto_domain_decide(const struct auto_pod_meta *p, struct auto_pod *ret, struct buf *name) {
        const struct auto_owner *controller = controlling_owner(p);
        bool leads = false;
        struct str group = group_index(p, &leads);
        if (*str_or(p->jobset, "") && *str_or(p->jobset_uid, "")) {
                ret->owner = (struct auto_owner){ .api_version = JOBSET_API_VERSION,
                                                  .kind = JOBSET_KIND,
                                                  .name = p->jobset,
                                                  .uid = p->jobset_uid };
                name_with_uid(&ret->owner, name);
        } else if (!controller) {
                ret->owner = (struct auto_owner){
                        .api_version = "v1", .kind = "Pod", .name = p->o.meta.name, .uid = p->o.meta.uid
                };
                buf_addf(name, "auto-%s-pod", p->o.meta.name);
        } else if (group.n) {
                ret->owner = *controller;
                ret->leads = leads;
                buf_addf(name, "auto-%s-%.*s-group", p->lws, (int)group.n, group.p);
        } else {
                ret->owner = *controller;
                name_with_uid(controller, name);
        }
        if (p->group && strcasecmp(p->group, "none") != 0)
                buf_addf(name, "-%s", p->group);
}

static bool is_owner(const struct auto_owner *o) {
        return o->api_version && o->kind && !streq(o->kind, "Node") && o->name && o->uid;
}

/* The name begins with a letter and contains no part that begins or ends with "-", because names of objects
 * contain none, except for what a tenant writes in a UID or a label. */
static bool is_name(const char *s) {
        size_t n = strlen(s);
        for (size_t i = 0; i < n; i++)
                if (!islower((unsigned char)s[i]) && !isdigit((unsigned char)s[i]) && s[i] != '-' &&
                    s[i] != '.')
                        return false;
        return n && n <= NAME_MAX_BYTES && isalnum((unsigned char)s[n - 1]);
}

const void *auto_pod_trim(void *meta, struct arena *a) {
        const struct auto_pod_meta *p = meta;
        struct auto_pod *ret = arena_alloc(a, sizeof *ret);
        _cleanup_(buf_done) struct buf name = BUF_INIT(4096);
        *ret = (struct auto_pod){ .o = p->o };
        auto_domain_decide(p, ret, &name);
        if (name.failed || !is_owner(&ret->owner) || !is_name(buf_str(&name)))
                return ret;
        ret->domain = arena_strndup(a, buf_str(&name), name.n);
        ret->key = arena_printf(a, "%s/%s", str_or(p->o.meta.ns, ""), ret->domain);
        return ret;
}
