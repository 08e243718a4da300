/* SPDX-License-Identifier: Apache-2.0 */
#include "memo.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "search.h"

struct memo {
        size_t key_size, item_size; /* an item: a byte that is set if it exists, the key and the value */
        size_t n, n_slots;          /* a power of two */
        unsigned char *items;
};

struct memo *memo_new(size_t key_size, size_t value_size, size_t bytes) {
        struct memo *m = xnew(struct memo);
        m->key_size = key_size;
        m->item_size = 1 + key_size + value_size;
        m->n_slots = 1;
        while (2 * m->n_slots * m->item_size <= bytes)
                m->n_slots *= 2;
        m->items = xcalloc(m->n_slots, m->item_size);
        return m;
}

void memo_free(struct memo *m) {
        if (!m)
                return;
        free(m->items);
        free(m);
}

static unsigned char *find(const struct memo *m, const void *key) {
        size_t i = search_hash(key, m->key_size).a & (m->n_slots - 1);
        for (;; i = (i + 1) & (m->n_slots - 1)) {
                unsigned char *item = m->items + i * m->item_size;
                if (!*item || memcmp(item + 1, key, m->key_size) == 0)
                        return item;
        }
}

const void *memo_get(const struct memo *m, const void *key) {
        const unsigned char *item = find(m, key);
        return *item ? item + 1 + m->key_size : NULL;
}

void memo_put(struct memo *m, const void *key, const void *value) {
        if (m->n >= m->n_slots / 4 * 3) {
                memset(m->items, 0, m->n_slots * m->item_size);
                m->n = 0;
        }
        unsigned char *item = find(m, key);
        m->n += !*item;
        *item = 1;
        memcpy(item + 1, key, m->key_size);
        memcpy(item + 1 + m->key_size, value, m->item_size - 1 - m->key_size);
}
