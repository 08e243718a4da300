/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "hook/commands.h"
#include "hook/in_root.h"
#include "hook/hook_log.h"

/* Splits "<text>::<path>" at the first "::". A link without a name is refused. */
static int create(int root, const char *link) {
        char text[PATH_MAX], folder[PATH_MAX];
        const char *colons = strstr(link, "::"), *path = colons ? colons + 2 : NULL;
        const char *slash = path ? strrchr(path, '/') : NULL;
        if (!slash || colons == link || *path != '/' || !slash[1] || (size_t)(colons - link) >= sizeof text ||
            (size_t)(slash - path) + 1 >= sizeof folder)
                return hook_log("--link '%s': the form is <text>::<absolute path>", link);
        const char *name = slash + 1;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strlen(name) > NAME_MAX)
                return hook_log("--link '%s': the path does not end in a name", link);
        memcpy(text, link, (size_t)(colons - link));
        text[colons - link] = '\0';
        memcpy(folder, path, (size_t)(slash - path) + 1);
        folder[slash - path + 1] = '\0';
        int fd = in_root_folder(root, folder);
        if (fd < 0)
                return -1;
        int r = in_root_place_link(fd, name, text);
        close(fd);
        return r;
}

int create_symlinks(int root, const struct options *o) {
        for (size_t i = 0; i < o->n_links; i++) {
                if (create(root, o->links[i]) < 0)
                        return -1;
        }
        return 0;
}
