/* SPDX-License-Identifier: Apache-2.0 */
/* kube_freshness: decides from what an informer receives whether its cache is current, and whether it needs a
 * list. Pure: no I/O and no clock.
 *
 * A resourceVersion is a place in the history of one etcd. After a restore from a backup (etcdctl snapshot
 * restore without --bump-revision) there is another history, which continues from the snapshot's lower
 * version. A watch that is resumed from the old version misses changes without any error. kube-apiserver 1.37
 * behaves like this (storage/cacher/cacher.go, watch_cache_history.go, cache_watcher.go process(); also
 * kubernetes/kubernetes#107457):
 *   - It accepts a watch from a version ahead of the present one, and sends the headers at once. It sends no
 *     event up to that version, and no bookmark below it. When the new history has passed the version, it
 *     sends events and bookmarks as usual, but it never sends the changes below the version.
 *   - It answers a watch from a version before its own start with 410.
 * So no answer to a watch shows that etcd was restored. A comparison of versions does not show it either,
 * once the new history has passed the old version. But every restore ends the API servers' processes or their
 * watches: Kubernetes' procedure stops all API servers, and an API server that loses its etcd ends the
 * watches that it serves. Therefore a watch proves nothing about the history before it, unless the previous
 * watch ended at its own time limit (timeoutSeconds). After a watch has ended in any other way (a broken
 * connection, an early end, a failure), the informer resumes the watch, so that events arrive at once. When
 * the server has accepted the watch, the informer lists the objects:
 *   - at once if `current` is used and the last list had one page;
 *   - if `current` is used and the list is longer, after four times the duration of the last list (1 s to
 *     60 s), so that a connection that breaks again and again does not cause a long list each time;
 *   - otherwise after 30 s +-25 %, so that the nodes of a cluster do not list together.
 * That limits the time from the API server's first answer to the list: at most 12.5 s of back-off, 30 s for
 * the headers and 60 s; and 130 s if only silence shows that the watch is broken. In a healthy cluster, a
 * watch ends before its time limit only under load, when the API server cannot send its events fast enough.
 * After a restart of the API server, most watches get 410, and their informers must list in any case. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { KUBE_RELIST_MS = 30000 }; /* +-25 %: for informers without `current` */

enum kube_sign {
        KUBE_LIST_BEGAN,
        KUBE_LIST_ENDED,     /* the list is complete */
        KUBE_WATCH_ACCEPTED, /* the head of the watch */
        KUBE_WATCH_EVENT,    /* an event or a bookmark */
        KUBE_WATCH_ENDED,    /* by the server, without an error */
        KUBE_ERROR_EVENT,    /* other than 410: the same version may cause it each time */
        KUBE_WATCH_UNREADABLE,
        KUBE_WATCH_SILENT,    /* not even a bookmark, for longer than the informer's silence_ms */
        KUBE_REQUEST_FAILED,  /* a list or a watch, in any other way */
        KUBE_HISTORY_GONE,    /* 410 */
        KUBE_HISTORY_CHANGED, /* the caller read an object that is older than the cached one */
        KUBE_RELIST_DUE,      /* relist_at_ms has passed */
};

struct kube_observation {
        enum kube_sign sign;
        uint64_t now_ms;              /* for KUBE_LIST_BEGAN, KUBE_LIST_ENDED and KUBE_WATCH_ACCEPTED */
        bool one_page;                /* KUBE_LIST_ENDED: the list had one page */
        bool interrupted;             /* KUBE_LIST_ENDED: the server was unreachable between two pages */
        bool urgent;                  /* KUBE_WATCH_ACCEPTED: `current` is used */
        unsigned relist_ms;           /* KUBE_WATCH_ACCEPTED, if not urgent: the delay of a list */
        uint64_t lasted_ms, asked_ms; /* KUBE_WATCH_ENDED: how long it lasted, and its time limit */
};

/* Zero at first. All times are those of one clock. */
struct kube_freshness {
        bool listed;           /* a version to watch from is known; otherwise a list is next */
        bool current;          /* the result of kube_informer_current() */
        bool unproven;         /* a watch ended early since the list began, so the history may have changed */
        bool relist;           /* during an unproven watch: list at relist_at_ms */
        uint64_t relist_at_ms; /* kept when the watch breaks; 0: no unproven watch was accepted since the
                                  list, or it lists at once */
        uint64_t began_ms;     /* when the last list began */
        uint64_t listed_ms;    /* when the last list ended */
        uint64_t pause_ms;     /* until the next list of an urgent informer; 0: at once */
        unsigned error_events; /* in a row */
};

/* Returns the state after the observation. */
struct kube_freshness kube_freshness_after(const struct kube_freshness *f, const struct kube_observation *o);
