/* SPDX-License-Identifier: Apache-2.0 */
/* `new`: prints a manifest in the form of the examples (examples/), with the values of the options. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "cli/command_table.h"
#include "cli/new_command.h"

struct new_options new_options;

static const struct option new_own_options[] = {
        { "nodes", 0, OPTION_TEXT, &new_options.nodes, "N", "required: number of nodes; one pod runs on each",
          false },
        { "gpus", 0, OPTION_TEXT, &new_options.gpus, "N",
          "required: GPUs of each pod; 0: the pods request none", false },
        { "image", 0, OPTION_TEXT, &new_options.image, "IMAGE", "required: image of the pods", false },
        { "name", 0, OPTION_TEXT, &new_options.name, "NAME",
          "name of the workload and the ComputeDomain; default: the kind", false },
        { 0 },
};

enum { NODES_MAX = 4096, GPUS_MAX = 64, NAME_MAX_LEN = 40 };

struct manifest {
        struct buf *out;
        const char *kind, *name, *image, *channel; /* channel: the claim template */
        const char *word, *ns;                     /* name and namespace as YAML; ns NULL: not given */
        int64_t nodes, gpus;
        const char **command; /* of the containers; none: that of the image */
        size_t n_command;
};

/* ---- parts ---- */

/* Adds a block, with each of its lines behind `indent` spaces. */
static void manifest_block(const struct manifest *m, int indent, const char *text) {
        while (*text) {
                size_t n = strcspn(text, "\n");
                buf_addf(m->out, "%*s%.*s\n", indent, "", (int)n, text);
                text += n + (text[n] == '\n');
        }
}

/* Texts in JSON are texts in YAML, too. */
static void add_command(const struct manifest *m, int indent, const char *const *first, size_t n_first) {
        struct jw w = JW(m->out);
        if (!n_first && !m->n_command)
                return;
        buf_addf(m->out, "%*scommand: ", indent, "");
        jw_arr(&w, NULL);
        for (size_t i = 0; i < n_first; i++)
                jw_str(&w, NULL, first[i]);
        for (size_t i = 0; i < m->n_command; i++)
                jw_str(&w, NULL, m->command[i]);
        jw_end_arr(&w);
        buf_addc(m->out, '\n');
}

static void manifest_head(const struct manifest *m, const char *api, const char *kind) {
        buf_addf(m->out, "apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n", api, kind, m->word);
        if (m->ns)
                buf_addf(m->out, "  namespace: %s\n", m->ns);
}

static void add_domain(const struct manifest *m) {
        manifest_head(m, "resource.nvidia.com/v1beta1", "ComputeDomain");
        buf_addf(m->out,
                 "spec:\n"
                 "  numNodes: 0\n"
                 "  channel:\n"
                 "    resourceClaimTemplate:\n"
                 "      name: %s\n"
                 "---\n",
                 m->channel);
}

/* The claim, and the affinity: all pods in one NVLink partition, and each on its own node. `keys` is the
 * content of matchLabelKeys; NULL: none. */
static void add_pod(const struct manifest *m, int indent, const char *label, const char *keys) {
        struct buf text = BUF_INIT(64 << 10);
        buf_addf(&text,
                 "resourceClaims:\n"
                 "- name: channel\n"
                 "  resourceClaimTemplateName: %s\n"
                 "affinity:\n"
                 "  podAffinity:          # all pods in one NVLink partition\n"
                 "    requiredDuringSchedulingIgnoredDuringExecution:\n"
                 "    - labelSelector: {matchLabels: {%s}}\n",
                 m->channel, label);
        if (keys)
                buf_addf(&text, "      matchLabelKeys: [%s]\n", keys);
        buf_addf(&text,
                 "      topologyKey: nvidia.com/gpu.clique\n"
                 "  podAntiAffinity:      # one pod on each node\n"
                 "    requiredDuringSchedulingIgnoredDuringExecution:\n"
                 "    - labelSelector: {matchLabels: {%s}}\n"
                 "      topologyKey: kubernetes.io/hostname\n",
                 label);
        manifest_block(m, indent, buf_str(&text));
        buf_done(&text);
}

static void add_container(const struct manifest *m, int indent, const char *name) {
        buf_addf(m->out, "%*scontainers:\n%*s- name: %s\n%*s  image: %s\n", indent, "", indent, "", name,
                 indent, "", m->image);
}

static void add_resources(const struct manifest *m, int indent) {
        buf_addf(m->out, "%*sresources:\n%*s  claims: [{name: channel}]\n", indent, "", indent, "");
        if (m->gpus)
                buf_addf(m->out, "%*s  limits: {nvidia.com/gpu: %" PRId64 "}\n", indent, "", m->gpus);
}

/* ---- kinds ---- */

static void add_job_spec(const struct manifest *m, int indent, const char *more) {
        struct buf text = BUF_INIT(64 << 10), label = BUF_INIT(256);
        buf_addf(&label, "job: %s", m->word);
        buf_addf(&text,
                 "completions: %" PRId64 "\n"
                 "parallelism: %" PRId64 "\n"
                 "completionMode: Indexed\n"
                 "template:\n"
                 "  metadata:\n"
                 "    labels: {%s}\n"
                 "  spec:\n"
                 "%s"
                 "    restartPolicy: Never\n",
                 m->nodes, m->nodes, buf_str(&label), more);
        manifest_block(m, indent, buf_str(&text));
        add_pod(m, indent + 4, buf_str(&label), NULL);
        add_container(m, indent + 4, "worker");
        add_command(m, indent + 6, NULL, 0);
        add_resources(m, indent + 6);
        buf_done(&text);
        buf_done(&label);
}

static void print_job(const struct manifest *m) {
        struct buf more = BUF_INIT(1024);
        buf_addf(m->out,
                 "# JOB_COMPLETION_INDEX is the rank of a pod. The address of the first pod is %s-0.%s\n",
                 m->name, m->name);
        manifest_head(m, "v1", "Service");
        buf_addf(m->out,
                 "spec:\n  clusterIP: None\n  publishNotReadyAddresses: true\n  selector: {job: %s}\n---\n",
                 m->word);
        manifest_head(m, "batch/v1", "Job");
        buf_adds(m->out, "spec:\n");
        buf_addf(&more, "    subdomain: %s\n", m->word);
        add_job_spec(m, 2, buf_str(&more));
        buf_done(&more);
}

static void print_jobset(const struct manifest *m) {
        buf_addf(m->out, "# The address of the first pod is %s-workers-0-0.%s\n", m->name, m->name);
        manifest_head(m, "jobset.x-k8s.io/v1alpha2", "JobSet");
        manifest_block(m, 0,
                       "spec:\n"
                       "  failurePolicy: {maxRestarts: 3}\n"
                       "  network: {enableDNSHostnames: true}\n"
                       "  replicatedJobs:\n"
                       "  - name: workers\n"
                       "    replicas: 1\n"
                       "    template:\n"
                       "      spec:\n");
        add_job_spec(m, 8, "");
}

static void print_mpijob(const struct manifest *m) {
        struct buf label = BUF_INIT(256), np = BUF_INIT(32);
        int64_t slots = m->gpus ? m->gpus : 1;
        const char *mpirun[] = { "mpirun", "-np", NULL };
        buf_addf(&label, "job: %s-worker", m->name);
        buf_addf(&np, "%" PRId64, m->nodes * slots);
        mpirun[2] = buf_str(&np);
        manifest_head(m, "kubeflow.org/v2beta1", "MPIJob");
        buf_addf(m->out,
                 "spec:\n"
                 "  slotsPerWorker: %" PRId64 "\n"
                 "  launcherCreationPolicy: WaitForWorkersReady\n"
                 "  runPolicy:\n"
                 "    cleanPodPolicy: Running\n"
                 "  mpiReplicaSpecs:\n"
                 "    Launcher:           # computes nothing, so it needs neither a channel nor a GPU node\n"
                 "      replicas: 1\n"
                 "      template:\n"
                 "        spec:\n",
                 slots);
        add_container(m, 10, "launcher");
        add_command(m, 12, mpirun, ARRAY_LEN(mpirun));
        buf_addf(m->out,
                 "    Worker:\n"
                 "      replicas: %" PRId64 "\n"
                 "      template:\n"
                 "        metadata:\n"
                 "          labels: {%s}\n"
                 "        spec:\n",
                 m->nodes, buf_str(&label));
        add_pod(m, 10, buf_str(&label), NULL);
        add_container(m, 10, "worker");
        buf_adds(m->out, "            command: [/usr/sbin/sshd, -De]\n");
        add_resources(m, 12);
        buf_done(&label);
        buf_done(&np);
}

/* maxSurge is 0, because a new pod gets the channel of its node only after the old pod has ended. */
static void print_lws(const struct manifest *m) {
        struct buf label = BUF_INIT(256);
        buf_addf(&label, "leaderworkerset.sigs.k8s.io/name: %s", m->word);
        manifest_head(m, "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet");
        buf_addf(m->out,
                 "spec:\n"
                 "  replicas: 1             # groups\n"
                 "  rolloutStrategy:        # a new pod gets its node's channel only after the old pod has "
                 "ended\n"
                 "    type: RollingUpdate\n"
                 "    rollingUpdateConfiguration: {maxSurge: 0, maxUnavailable: 1}\n"
                 "  leaderWorkerTemplate:\n"
                 "    size: %" PRId64 "               # the leader is one of them\n"
                 "    restartPolicy: RecreateGroupOnPodRestart\n"
                 "    workerTemplate:\n"
                 "      spec:\n",
                 m->nodes);
        add_pod(m, 8, buf_str(&label), "leaderworkerset.sigs.k8s.io/group-key");
        add_container(m, 8, "server");
        add_command(m, 10, NULL, 0);
        add_resources(m, 10);
        buf_done(&label);
}

static const struct {
        const char *name;
        void (*print)(const struct manifest *m);
} manifest_kinds[] = {
        { "job", print_job }, { "jobset", print_jobset }, { "mpijob", print_mpijob }, { "lws", print_lws }
};

/* ---- the command ---- */

static bool read_number(const char *text, int64_t min, int64_t max, int64_t *ret) {
        return str_to_i64(str_from(text), ret) && *ret >= min && *ret <= max;
}

/* In quotation marks, if YAML would read it as a number, a truth value or null. */
static const char *yaml_word(struct arena *a, const char *text) {
        static const char *const words[] = { "true", "false", "null", "yes", "no", "on", "off", "y", "n" };
        bool odd = text[0] >= '0' && text[0] <= '9';
        for (size_t i = 0; i < ARRAY_LEN(words); i++)
                odd = odd || strcasecmp(text, words[i]) == 0;
        return odd ? arena_printf(a, "\"%s\"", text) : text;
}

static int manifest_fill(struct cli *c, struct manifest *m) {
        const struct new_options *o = &new_options;
        m->name = o->name ? o->name : m->kind;
        if (!o->nodes || !o->gpus || !o->image)
                return command_usage(c, "new %s needs --nodes, --gpus and --image", m->kind);
        if (!read_number(o->nodes, 1, NODES_MAX, &m->nodes))
                return command_usage(c, "--nodes is '%s', but must be a number from 1 to %d", o->nodes,
                                     NODES_MAX);
        if (!read_number(o->gpus, 0, GPUS_MAX, &m->gpus))
                return command_usage(c, "--gpus is '%s', but must be a number from 0 to %d", o->gpus,
                                     GPUS_MAX);
        if (!options_is_image(o->image))
                return command_usage(c, "--image is '%s', which is not the name of an image", o->image);
        /* The names of pods and Services begin with it. */
        if (!str_is_dns_label(m->name) || strlen(m->name) > NAME_MAX_LEN || m->name[0] < 'a')
                return command_usage(c,
                                     "--name is '%s', but must have at most %d small letters, digits and "
                                     "'-', and begin with a letter",
                                     m->name, NAME_MAX_LEN);
        if (options.ns && !str_is_dns_label(options.ns))
                return command_usage(c, "'%s' is not the name of a namespace", options.ns);
        if (streq(m->kind, "mpijob") && !m->n_command)
                return command_usage(c, "new mpijob needs the program that mpirun starts: -- PROGRAM");
        m->ns = options.ns ? yaml_word(c->a, options.ns) : NULL;
        m->word = yaml_word(c->a, m->name);
        m->image = yaml_word(c->a, o->image);
        m->channel = arena_printf(c->a, "%s-channel", m->name);
        return 0;
}

static int new_run(struct cli *c) {
        struct manifest m = { .out = &c->t.out };
        size_t i = 0;
        while (i < ARRAY_LEN(manifest_kinds) && !(c->n_args && streq(manifest_kinds[i].name, c->args[0])))
                i++;
        if (i == ARRAY_LEN(manifest_kinds))
                return command_usage(c, "usage: new job|jobset|mpijob|lws --nodes N --gpus N --image IMAGE");
        if (streq(options.output, "json"))
                return command_usage(c, "new prints YAML, and has no --output json");
        m.kind = c->args[0];
        m.command = c->args + 1;
        m.n_command = c->n_args - 1;
        int r = manifest_fill(c, &m);
        if (r)
                return r;
        add_domain(&m);
        manifest_kinds[i].print(&m);
        return COMMAND_FINE;
}

const struct command command_new = {
        .name = "new",
        .args = "job|jobset|mpijob|lws [COMMAND...]",
        .summary = "print a manifest of a workload on several nodes",
        .text = "Prints a ComputeDomain and a Job, JobSet, MPIJob or LeaderWorkerSet, for `kubectl apply -f "
                "-`. "
                "Each pod has a channel and runs on its own node, and all pods are in one NVLink partition. "
                "The containers run the command behind `--`, or that of the image. Needs no cluster.\n\n"
                " kubectl compute-domains new job --nodes 4 --gpus 4 --image "
                "nvcr.io/nvidia/pytorch:25.06-py3 \\\n"
                "     --name llm -- torchrun --nnodes=4 train.py",
        .options = new_own_options,
        .run = new_run,
};
