/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/test_pods.h"

#include <string.h>

#include "api/names.h"

enum { PODS_OF_RACK = 2 };

/* The clique ID is in the manifests, between quotation marks. */
static bool is_label_value(const char *text) {
        size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");
        return n && n <= 63 && !text[n];
}

static size_t nodes_up(const struct inventory *inv, const struct inventory_rack *r) {
        size_t n = 0;
        for (size_t i = 0; i < inv->n_nodes; i++)
                n += streq(inv->nodes[i].clique, r->clique) && inventory_is_up(&inv->nodes[i]);
        return n;
}

int test_pods_plan(struct test_plan *p, const struct inventory *inv, const char *rack, struct arena *a,
                   struct err *e) {
        bool found = false;
        p->racks = arena_alloc(a, (inv->n_racks + 1) * sizeof *p->racks);
        p->pods = arena_alloc(a, (inv->n_racks * PODS_OF_RACK + 1) * sizeof *p->pods);
        p->n_racks = p->n_pods = 0;
        for (size_t i = 0; i < inv->n_racks; i++) {
                const struct inventory_rack *r = &inv->racks[i];
                if (rack && !streq(rack, r->name) && !streq(rack, r->clique))
                        continue;
                found = true;
                size_t n = nodes_up(inv, r);
                if (!is_label_value(r->clique))
                        return err_set(e, ERR_INVALID, 0, "'%s' is not a clique ID", r->clique);
                for (size_t k = 0; k < n && k < PODS_OF_RACK; k++)
                        p->pods[p->n_pods++] = (struct test_pod){ .name = arena_printf(a, "%s-%zu-%zu",
                                                                                       p->run, p->n_racks, k),
                                                                  .rack = p->n_racks };
                p->racks[p->n_racks++] = r;
        }
        if (rack && !found)
                return err_set(e, ERR_NOT_FOUND, 0, "there is no rack '%s'. `racks` lists their names", rack);
        return 0;
}

static void manifest_meta(const struct test_plan *p, const char *name, struct buf *out) {
        buf_addf(out,
                 "metadata:\n  name: \"%s\"\n  namespace: \"%s\"\n  labels:\n    " TEST_PODS_LABEL
                 ": \"%s\"\n",
                 name, p->ns, p->run);
}

/* The device of an assigned channel has another number than 0. A shell as process 1 ignores SIGTERM unless
 * it has a trap. */
static void manifest_commands(const struct test_plan *p, struct buf *out) {
        static const char check[] = "ls /dev/nvidia-caps-imex-channels/channel*";
        if (p->own_image)
                buf_adds(out, "    command: [\"compute-domain-kubelet-plugin\", \"channels\", \"--wait\"]\n"
                              "    readinessProbe:\n      periodSeconds: 1\n      exec:\n"
                              "        command: [\"compute-domain-kubelet-plugin\", \"channels\"]\n");
        else
                buf_addf(
                        out,
                        "    command: [\"sh\", \"-c\", \"%s || exit 1; trap exit TERM; sleep 3600 & wait\"]\n"
                        "    readinessProbe:\n      periodSeconds: 1\n      exec:\n"
                        "        command: [\"sh\", \"-c\", \"%s\"]\n",
                        check, check);
}

static void manifest_pod(const struct test_plan *p, const struct test_pod *pod, struct buf *out) {
        buf_adds(out, "---\napiVersion: v1\nkind: Pod\n");
        manifest_meta(p, pod->name, out);
        buf_addf(out, "    " TEST_PODS_LABEL "-rack: \"%zu\"\n", pod->rack);
        buf_addf(out,
                 "spec:\n"
                 "  restartPolicy: Never\n"
                 "  terminationGracePeriodSeconds: 1\n"
                 "  automountServiceAccountToken: false\n"
                 "  nodeSelector:\n    " GPU_CLIQUE_LABEL ": \"%s\"\n"
                 "  affinity:\n"
                 "    podAntiAffinity:\n"
                 "      requiredDuringSchedulingIgnoredDuringExecution:\n"
                 "      - topologyKey: kubernetes.io/hostname\n"
                 "        labelSelector:\n"
                 "          matchLabels:\n            " TEST_PODS_LABEL ": \"%s\"\n"
                 "  tolerations:\n  - key: nvidia.com/gpu\n    operator: Exists\n"
                 "  - key: kubernetes.io/arch\n    value: arm64\n    effect: NoSchedule\n" /* GKE's */
                 "  securityContext:\n    runAsNonRoot: true\n    runAsUser: 65532\n    runAsGroup: 65532\n"
                 "    seccompProfile:\n      type: RuntimeDefault\n"
                 "  resourceClaims:\n  - name: channel\n    resourceClaimTemplateName: \"%s\"\n"
                 "  containers:\n  - name: channel\n    image: \"%s\"\n    imagePullPolicy: IfNotPresent\n",
                 p->racks[pod->rack]->clique, p->run, p->run, p->image);
        manifest_commands(p, out);
        buf_adds(out, "    resources:\n      requests:\n        cpu: 10m\n        memory: 16Mi\n"
                      "      claims:\n      - name: channel\n"
                      "    securityContext:\n      allowPrivilegeEscalation: false\n"
                      "      readOnlyRootFilesystem: true\n      capabilities:\n        drop: [\"ALL\"]\n");
}

void test_pods_manifest(const struct test_plan *p, struct buf *out) {
        buf_adds(out, "apiVersion: " CD_API_VERSION "\nkind: " CD_KIND "\n");
        manifest_meta(p, p->run, out);
        buf_addf(out, "spec:\n  numNodes: 0\n  channel:\n    resourceClaimTemplate:\n      name: \"%s\"\n",
                 p->run);
        for (size_t i = 0; i < p->n_pods; i++)
                manifest_pod(p, &p->pods[i], out);
}

void test_pods_take(struct test_plan *p, struct str line) {
        struct str name, phase, ready;
        if (!str_next_field(&line, ' ', &name) || !str_next_field(&line, ' ', &phase))
                return;
        ready = str_trim(line);
        for (size_t i = 0; i < p->n_pods; i++) {
                struct test_pod *pod = &p->pods[i];
                if (!str_eq(name, str_from(pod->name)))
                        continue;
                pod->state = str_eq(phase, STR("Failed")) || str_eq(phase, STR("Succeeded")) ? TEST_POD_FAILED
                             : str_eq(ready, STR("True"))                                    ? TEST_POD_READY
                                                                                             : TEST_POD_WAITS;
        }
}

bool test_pods_settled(const struct test_plan *p) {
        for (size_t i = 0; i < p->n_pods; i++)
                if (p->pods[i].state == TEST_POD_WAITS)
                        return false;
        return true;
}
