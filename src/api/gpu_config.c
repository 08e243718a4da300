/* SPDX-License-Identifier: Apache-2.0 */
#include "api/gpu_config.h"

#include "api/names.h"

static const struct {
        const char *config, *type;
} kinds[] = { [GPU_CONFIG_GPU] = { "GpuConfig", GPU_TYPE_FULL },
              [GPU_CONFIG_MIG] = { "MigDeviceConfig", GPU_TYPE_MIG },
              [GPU_CONFIG_VFIO] = { "VfioDeviceConfig", GPU_TYPE_VFIO } };

const char *gpu_config_type(enum gpu_config_kind kind) {
        return kinds[kind].type;
}

/* ---- decoding ---- */

/* docs/reference/api.md is generated from the comments of the fields (scripts/reference): "required",
 * "optional" or "default X", and the meaning of the field that follows. */
struct time_slicing {
        const char *interval;
};
static const struct jd_field f_time_slicing[] = {
        /* default Default: the length of a time slice: Default, Short, Medium or Long */
        JD_STR(struct time_slicing, "interval", interval),
        JD_END,
};

struct mps {
        struct str percentage, limit, per_device;
        bool multi_user;
};
static const struct jd_field f_mps[] = {
        /* optional: from 0 to 100 */
        JD_RAW(struct mps, "defaultActiveThreadPercentage", percentage),
        /* optional: a quantity */
        JD_RAW(struct mps, "defaultPinnedDeviceMemoryLimit", limit),
        /* optional: quantities by device */
        JD_RAW(struct mps, "defaultPerDevicePinnedMemoryLimit", per_device),
        /* optional: accepted without an effect */
        JD_BOOL(struct mps, "multiUser", multi_user),
        JD_END,
};

struct sharing {
        const char *strategy;
        struct time_slicing *time_slicing;
        struct mps *mps;
};
static const struct jd_field f_sharing[] = {
        /* required: TimeSlicing, with the feature gate TimeSlicingSettings. MPS is refused, because the
         * feature gate MPSSupport cannot be on */
        JD_STR(struct sharing, "strategy", strategy),
        /* optional: only with the strategy TimeSlicing */
        JD_OPTOBJ(struct sharing, "timeSlicingConfig", time_slicing, struct time_slicing, f_time_slicing),
        /* optional: only with the strategy MPS */
        JD_OPTOBJ(struct sharing, "mpsConfig", mps, struct mps, f_mps),
        JD_END,
};
/* A MIG device has no time slice. */
static const struct jd_field f_mig_sharing[] = {
        /* required: TimeSlicing, with the feature gate TimeSlicingSettings. MPS is refused, because the
         * feature gate MPSSupport cannot be on */
        JD_STR(struct sharing, "strategy", strategy),
        /* optional: only with the strategy MPS */
        JD_OPTOBJ(struct sharing, "mpsConfig", mps, struct mps, f_mps),
        JD_END,
};

struct iommu {
        const char *policy;
        bool device;
};
static const struct jd_field f_iommu[] = {
        /* default LegacyOnly: LegacyOnly or PreferIommuFD */
        JD_STR(struct iommu, "backendPolicy", policy),
        /* optional: accepted without an effect */
        JD_BOOL(struct iommu, "enableAPIDevice", device),
        JD_END,
};

struct wire {
        const char *api_version, *kind;
        struct sharing *sharing;
        struct iommu *iommu;
};
/* Decoded first and leniently, so that an object of another kind gets an error about its kind, and not about
 * unknown fields. */
static const struct jd_field f_head[] = { JD_STR(struct wire, "apiVersion", api_version),
                                          JD_STR(struct wire, "kind", kind), JD_END };
static const struct jd_field f_gpu[] = {
        /* required: resource.nvidia.com/v1beta1 */
        JD_STR(struct wire, "apiVersion", api_version),
        /* required: GpuConfig */
        JD_STR(struct wire, "kind", kind),
        /* optional: how pods share the GPU; absent: no settings */
        JD_OPTOBJ(struct wire, "sharing", sharing, struct sharing, f_sharing),
        JD_END,
};
static const struct jd_field f_mig[] = {
        /* required: resource.nvidia.com/v1beta1 */
        JD_STR(struct wire, "apiVersion", api_version),
        /* required: MigDeviceConfig */
        JD_STR(struct wire, "kind", kind),
        /* optional: how pods share the MIG device */
        JD_OPTOBJ(struct wire, "sharing", sharing, struct sharing, f_mig_sharing),
        JD_END,
};
static const struct jd_field f_vfio[] = {
        /* required: resource.nvidia.com/v1beta1 */
        JD_STR(struct wire, "apiVersion", api_version),
        /* required: VfioDeviceConfig */
        JD_STR(struct wire, "kind", kind),
        /* optional: settings for VFIO devices, of which this driver has none */
        JD_OPTOBJ(struct wire, "iommu", iommu, struct iommu, f_iommu),
        JD_END,
};
static const struct jd_field *const tables[] = {
        [GPU_CONFIG_GPU] = f_gpu, [GPU_CONFIG_MIG] = f_mig, [GPU_CONFIG_VFIO] = f_vfio
};

/* ---- checks ---- */

static int gate_is_off(const char *strategy, const char *gate, struct err *e) {
        return err_set(
                e, ERR_INVALID, 0,
                "\"%s\" is selected as the GPU sharing strategy, but the \"%s\" feature gate is not enabled",
                strategy, gate);
}

static int take_interval(const struct time_slicing *t, enum gpu_interval *ret, struct err *e) {
        static const char *const names[] = { "Default", "Short", "Medium", "Long" };
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                if (streq(t && t->interval ? t->interval : names[0], names[i])) {
                        *ret = (enum gpu_interval)i;
                        return 0;
                }
        }
        return err_set(e, ERR_INVALID, 0,
                       "unknown time-slice interval: %.100s, supported time-slice intervals: Default, Short, "
                       "Medium, "
                       "Long",
                       t->interval);
}

static int check_mps(const struct mps *m, struct err *e) {
        int64_t percentage = 0;
        if (!m || !m->percentage.n || str_eq(m->percentage, STR("null")))
                return 0;
        if (!str_to_i64(m->percentage, &percentage))
                return err_set(e, ERR_INVALID, 0,
                               "sharing.mpsConfig.defaultActiveThreadPercentage: not a number");
        if (percentage < 0)
                return err_set(e, ERR_INVALID, 0, "active thread percentage must not be negative");
        if (percentage > 100)
                return err_set(e, ERR_INVALID, 0, "active thread percentage must not be greater than 100");
        return 0;
}

static int take_sharing(const struct sharing *s, const struct gates *gates, struct gpu_config *ret,
                        struct err *e) {
        if (!s)
                return 0;
        if (streq(s->strategy, "TimeSlicing")) {
                ret->sharing = GPU_TIME_SLICING;
                if (!gates->on[GATE_TIME_SLICING_SETTINGS])
                        return gate_is_off(s->strategy, "TimeSlicingSettings", e);
                if (take_interval(s->time_slicing, &ret->interval, e) < 0)
                        return -1;
                return s->mps ? err_set(e, ERR_INVALID, 0,
                                        "cannot use MpsConfig with the 'TimeSlicing' strategy")
                              : 0;
        }
        if (streq(s->strategy, "MPS")) {
                ret->sharing = GPU_MPS;
                if (!gates->on[GATE_MPS_SUPPORT])
                        return gate_is_off(s->strategy, "MPSSupport", e);
                if (check_mps(s->mps, e) < 0)
                        return -1;
                return s->time_slicing ? err_set(e, ERR_INVALID, 0,
                                                 "cannot use TimeSlicingConfig with the 'MPS' strategy")
                                       : 0;
        }
        return err_set(
                e, ERR_INVALID, 0,
                "unknown GPU sharing strategy: %.100s, supported GPU sharing strategies: TimeSlicing, MPS",
                str_or(s->strategy, ""));
}

static int take_iommu(const struct iommu *i, struct err *e) {
        const char *policy = i && i->policy ? i->policy : "LegacyOnly";
        return streq(policy, "LegacyOnly") || streq(policy, "PreferIommuFD")
                       ? 0
                       : err_set(e, ERR_INVALID, 0, "unknown IOMMU backend policy: %.100s", policy);
}

static int gpu_config_find_kind(const char *name, enum gpu_config_kind *ret) {
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
                if (streq(name, kinds[i].config)) {
                        *ret = (enum gpu_config_kind)i;
                        return 0;
                }
        }
        return -1;
}

static int gpu_config_decode_wire(struct str json, struct arena *a, struct wire *w,
                                  enum gpu_config_kind *ret_kind, struct err *e) {
        if (jd_decode_text(f_head, json, "", a, w, e) < 0)
                return -1;
        if (!streq(w->api_version, CD_API_VERSION))
                return err_set(e, ERR_INVALID, 0, "apiVersion \"%.100s\" is not " CD_API_VERSION,
                               str_or(w->api_version, ""));
        if (gpu_config_find_kind(w->kind, ret_kind) < 0)
                return err_set(e, ERR_INVALID, 0,
                               "kind \"%.100s\" is not one of the driver " GPU_DRIVER
                               ": want GpuConfig, MigDeviceConfig or VfioDeviceConfig",
                               str_or(w->kind, ""));
        return jd_decode_strict(tables[*ret_kind], json, a, w, e);
}

int gpu_config_decode(struct str json, const struct gates *gates, struct gpu_config *ret, struct err *e) {
        struct arena *a = arena_new(512);
        struct gpu_config config = { 0 };
        struct wire w = { 0 };
        int r = gpu_config_decode_wire(json, a, &w, &config.kind, e);
        if (r == 0 && (take_iommu(w.iommu, e) < 0 || take_sharing(w.sharing, gates, &config, e) < 0))
                r = -1;
        if (r == 0)
                *ret = config;
        arena_free(a);
        return r;
}

/* ---- choice of the configuration ---- */

/* A request with alternatives is allocated as "request/alternative". A configuration may name either. */
static bool gpu_config_names_request(const struct claim_config *c, const char *request) {
        struct str rest = str_from(request), main = { 0 };
        str_next_field(&rest, '/', &main);
        for (size_t i = 0; i < c->n_requests; i++) {
                struct str name = str_from(c->requests[i]);
                if (str_eq(name, main) || str_eq(name, str_from(request)))
                        return true;
        }
        return false;
}

/* Checks the form of any configuration, even of one that does not count. */
static int gpu_config_kind_of(const struct claim_config *c, enum gpu_config_kind *ret, struct err *e) {
        struct arena *a = arena_new(512);
        struct wire w = { 0 };
        int r = gpu_config_decode_wire(c->parameters, a, &w, ret, e);
        arena_free(a);
        return r < 0 ? err_wrap(e, "error decoding config parameters") : 0;
}

int gpu_config_for(const struct claim *c, const struct claim_result *r, enum gpu_config_kind kind,
                   const struct gates *gates, struct gpu_config_choice *ret, struct err *e) {
        const struct claim_config *chosen = NULL;
        enum gpu_config_kind got, chosen_kind = kind;
        *ret = (struct gpu_config_choice){ .config.kind = kind, .index = c->n_configs };
        for (size_t i = 0; i < c->n_configs; i++) {
                const struct claim_config *config = &c->configs[i];
                bool of_claim = streq(config->source, "FromClaim");
                if (!of_claim && !streq(config->source, "FromClass"))
                        return err_set(e, ERR_INVALID, 0, "invalid config source: %.100s",
                                       str_or(config->source, ""));
                if (!config->driver)
                        return err_set(e, ERR_INVALID, 0,
                                       "only opaque parameters are supported by this driver");
                if (!streq(config->driver, GPU_DRIVER))
                        continue;
                if (gpu_config_kind_of(config, &got, e) < 0)
                        return -1;
                if (config->n_requests ? !gpu_config_names_request(config, r->request) : got != kind)
                        continue;
                if (chosen && streq(chosen->source, "FromClaim") && !of_claim)
                        continue;
                chosen = config;
                chosen_kind = got;
                ret->index = i;
        }
        if (chosen_kind != kind)
                return err_set(e, ERR_INVALID, 0,
                               "cannot apply %s to device \"%s\" of type \"%s\" (request: %s)",
                               kinds[chosen_kind].config, r->device, gpu_config_type(kind), r->request);
        if (chosen && gpu_config_decode(chosen->parameters, gates, &ret->config, e) < 0)
                return err_wrap(e, "request '%s': the configuration of device '%s'", r->request, r->device);
        return 0;
}
