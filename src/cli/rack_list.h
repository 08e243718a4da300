/* SPDX-License-Identifier: Apache-2.0 */
/* rack_list: which node has which channel devices, and who uses them, from the objects of a view. Reads the
 * lists that it needs. */
#pragma once

#include "cli/view.h"

struct inventory_node {
        const char *name;
        const struct node_object *node;      /* NULL: no Node object was read */
        const char *clique;                  /* "": no partition; NULL: unknown */
        const char *rack;                    /* NULL: unknown, or it has no name */
        size_t seats;                        /* channel devices in its ResourceSlices */
        const struct claim_object **holders; /* the claims whose channel device is here */
        size_t n_holders, cap_holders;
        /* The ComputeDomains whose shared claims are prepared here. They use no channel device */
        const char **sharers;
        size_t n_sharers, cap_sharers;
        const struct pod_object *plugin, *daemon;
        const char *withheld; /* the reason why it publishes no channel device; NULL: it does, or not known */
        const char *withheld_why; /* the sentence of the Event; NULL: not known */
};

struct inventory_rack {
        const char *clique, *name; /* `name` is the name of the rack, or the clique ID */
        size_t n_nodes;
        size_t n_free; /* nodes with a free channel device */
        size_t n_used; /* nodes whose channel devices are all used, or with isolation by channel, some, or
                          that have a pod with a shared claim */
        size_t n_down; /* nodes without a channel device, or that are not Ready */
        size_t seats, used;
};

struct inventory {
        struct inventory_node *nodes; /* sorted by name: all Nodes with a GPU, a slice, or a claim */
        size_t n_nodes;
        struct inventory_rack *racks; /* sorted by name */
        size_t n_racks;
        bool complete; /* slices, claims and Nodes are complete, so absence proves that a device is free */
};

void inventory_make(struct view *v, const char *ns, struct inventory *ret);
/* The same for a user who only asks for channels: reads the Pods of the driver, which are most of the objects
 * of a large cluster, only if a node publishes no channel device. */
void inventory_make_channels(struct view *v, const char *ns, struct inventory *ret);
const struct inventory_node *inventory_node_of(const struct inventory *x, const char *name);
bool inventory_is_up(const struct inventory_node *n);   /* its Node is Ready and not cordoned */
bool inventory_is_free(const struct inventory_node *n); /* it is up, and a channel device is free */
/* The name of a partition for people: that of its rack, or the clique ID. */
const char *inventory_rack_name(const struct view *v, const char *clique);
/* The clique ID in the ResourceSlices of a node; "": no partition; NULL: there is no slice. */
const char *inventory_slice_clique(const struct view *v, const char *node);
/* The same, or the clique ID in the labels of the Node. */
const char *inventory_clique(struct view *v, const char *node);
/* "team-a/llm-70b": the ComputeDomain of a claim, or the claim itself if the ComputeDomain was not read. */
const char *inventory_user(const struct view *v, const struct claim_object *c);
/* Whether the ComputeDomain of the claim reports the node as ready. Without a list of nodes, it counts as
 * ready.
 */
bool inventory_is_ready_on(const struct view *v, const struct claim_object *c, const char *node);
/* The reason in the message of an Event: "no GPU is offered on this node (NoGPUs): ..."; NULL: none. *ret_why
 * is the text behind it; NULL: none. */
const char *inventory_withheld_reason(struct arena *a, const char *message, const char **ret_why);
/* Finds why a node publishes no channel device, in its Events and the conditions of its fabric object. */
const char *inventory_withheld(struct view *v, const struct inventory_node *x, const char **ret_why);
