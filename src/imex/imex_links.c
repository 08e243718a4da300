/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_links.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { NEVER_CONNECTED, CONNECTED, SUSPECT, LOST };

static void note(struct imex_links *l, int64_t id, bool connected) {
        if (id < 0 || id >= IMEX_SLOTS_MAX)
                return;
        if (connected)
                l->link[id] = CONNECTED;
        else if (l->link[id] == CONNECTED || l->link[id] == SUSPECT)
                l->link[id]++;
}

/* Returns the number after the phrase; -1: the line does not contain the phrase with a number. */
static int64_t number_after(struct str line, const char *phrase) {
        size_t len = strlen(phrase);
        const char *p = line.n ? memmem(line.p, line.n, phrase, len) : NULL;
        struct str digits = { 0 };
        int64_t id;
        if (!p)
                return -1;
        digits.p = p + len;
        while (digits.p + digits.n < line.p + line.n && digits.p[digits.n] >= '0' &&
               digits.p[digits.n] <= '9')
                digits.n++;
        return str_to_i64(digits, &id) ? id : -1;
}

bool imex_links_note_line(struct imex_links *l, struct str line) {
        static const struct {
                const char *phrase;
                bool connected;
        } phrases[] = { { "Connection established to node ", true },
                        { "Connection lost to node ", false },
                        { "Node disconnect event detected for node ", false } };
        for (size_t i = 0; i < ARRAY_LEN(phrases); i++) {
                int64_t id = number_after(line, phrases[i].phrase);
                if (id < 0)
                        continue;
                note(l, id, phrases[i].connected);
                return true;
        }
        return false;
}

bool imex_links_note_answer(struct imex_links *l, const struct imex_ctl_node *own, uint64_t now_ms) {
        bool any = false;
        l->answered = l->answered || own;
        for (size_t i = 0; own && i < own->n_connections; i++)
                note(l, own->connections[i].to, own->connections[i].connected);
        for (size_t i = 0; i < IMEX_SLOTS_MAX; i++) {
                bool late = own && l->since_ms[i] && now_ms - l->since_ms[i] >= IMEX_LINKS_PATIENCE_MS;
                if ((!own && l->link[i] == SUSPECT) || (late && l->link[i] == NEVER_CONNECTED))
                        l->link[i] = LOST;
                any = any || l->link[i] == SUSPECT;
        }
        return any;
}

static void find_active(const struct imex_members *m, const struct imex_peer *ret[static IMEX_SLOTS_MAX]) {
        memset(ret, 0, IMEX_SLOTS_MAX * sizeof(*ret));
        for (size_t i = 0; m && i < m->n_peers; i++) {
                const struct imex_peer *p = &m->peers[i];
                if (*p->ip && p->index != m->own_index && p->index >= 0 && p->index < IMEX_SLOTS_MAX)
                        ret[p->index] = p;
        }
}

void imex_links_note_members(struct imex_links *l, const struct imex_members *was,
                             const struct imex_members *m, uint64_t now_ms) {
        const struct imex_peer *before[IMEX_SLOTS_MAX], *now[IMEX_SLOTS_MAX];
        find_active(was, before);
        find_active(m, now);
        for (size_t i = 0; i < IMEX_SLOTS_MAX; i++) {
                if (now[i] && before[i] && streq(now[i]->node, before[i]->node))
                        continue;
                l->link[i] = NEVER_CONNECTED;
                l->since_ms[i] = now[i] ? now_ms : 0;
        }
}

void imex_links_begin(struct imex_links *l, const struct imex_members *m, uint64_t now_ms) {
        *l = (struct imex_links){ 0 };
        imex_links_note_members(l, NULL, m, now_ms);
}

bool imex_links_complete(const struct imex_links *l) {
        for (size_t i = 0; i < IMEX_SLOTS_MAX; i++)
                if (l->since_ms[i] && l->link[i] != CONNECTED)
                        return false;
        return l->answered;
}

bool imex_links_lost(const struct imex_links *l, char ret[static IMEX_LOST_MAX]) {
        bool any = false;
        size_t n = 0;
        *ret = '\0';
        for (size_t i = 0; i < IMEX_SLOTS_MAX; i++) {
                bool fits = n + sizeof ",4095" <= IMEX_LOST_MAX;
                any = any || l->since_ms[i];
                if (l->link[i] == LOST && l->since_ms[i] && fits)
                        n += (size_t)snprintf(ret + n, IMEX_LOST_MAX - n, "%s%zu", n ? "," : "", i);
        }
        return l->answered || !any;
}

bool imex_links_lists(const char *lost, int64_t index) {
        struct str rest = str_from(lost), field = { 0 };
        int64_t id;
        while (str_next_field(&rest, ',', &field))
                if (str_to_i64(field, &id) && id == index)
                        return true;
        return false;
}
