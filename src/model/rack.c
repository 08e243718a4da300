/* SPDX-License-Identifier: Apache-2.0 */
#include "model/rack.h"

#include <ctype.h>
#include <string.h>

enum { SHORT_UUID = 8 };

static char dns_char(char c) {
        return (char)(isalnum((unsigned char)c) ? tolower((unsigned char)c) : '-');
}

/* `dots`: "." is kept. False: the result is empty or too long. */
static bool normalize(const char *s, bool dots, char ret[static RACK_MAX + 1]) {
        size_t n = 0;
        while (*s && !isalnum((unsigned char)*s))
                s++;
        for (; *s; s++) {
                if (n == RACK_MAX)
                        return false;
                ret[n++] = dots && *s == '.' ? '.' : dns_char(*s);
        }
        while (n && !isalnum((unsigned char)ret[n - 1]))
                n--;
        ret[n] = '\0';
        return n > 0;
}

bool rack_id(const char *label, const char *clique, char ret[static RACK_MAX + 1]) {
        if (label && normalize(label, false, ret))
                return true;
        return clique && strchr(clique, '.') && normalize(clique, true, ret) && strchr(ret, '.');
}

bool rack_is_labelled(const char *label) {
        char id[RACK_MAX + 1];
        return label && normalize(label, false, id);
}

void rack_domain_name(const char *id, bool whole, struct buf *out) {
        const char *dot = strrchr(id, '.');
        if (!dot) {
                buf_addf(out, "%s", id);
                return;
        }
        size_t n = (size_t)(dot - id);
        if (!whole && n > SHORT_UUID)
                n = SHORT_UUID;
        buf_addf(out, "rack-%.*s-%s", (int)n, id, dot + 1);
}
