/* SPDX-License-Identifier: Apache-2.0 */
#include "imex/imex_grants.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/mem.h"
#include "base/str.h"

/* The folder may be removed by its other user between the two steps, but hardly ever twice. */
enum { ATTEMPTS = 5 };

int imex_grants_put(const char *dir, const char *claim_uid, struct err *e) {
        _cleanup_(freep) char *grants = file_join(dir, IMEX_GRANTS_DIR);
        _cleanup_(freep) char *path = file_join(grants, claim_uid);
        int fd = -1;

        BUG_ON(!str_is_uuid(claim_uid));
        for (int i = 0; i < ATTEMPTS && fd < 0; i++) {
                if (file_mkdirs(grants, 0755, e) < 0)
                        return -1;
                fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
                if (fd < 0 && errno != ENOENT)
                        break;
        }
        if (fd < 0)
                return err_errno(e, errno, "create '%s'", path);
        close(fd);
        return 0;
}

int imex_grants_remove(const char *dir, const char *claim_uid, bool folder, struct err *e) {
        _cleanup_(freep) char *grants = file_join(dir, IMEX_GRANTS_DIR);
        _cleanup_(freep) char *path = file_join(grants, claim_uid);

        BUG_ON(!str_is_uuid(claim_uid));
        if (file_remove(path, e) < 0)
                return -1;
        (void)rmdir(grants); /* unless another is there */
        if (folder)
                (void)rmdir(dir);
        return 0;
}

struct each {
        file_entry_fn *fn;
        void *u;
};

static int tell(void *u, int folder, const char *name, struct err *e) {
        const struct each *each = u;

        return str_is_uuid(name) ? each->fn(each->u, folder, name, e) : 0;
}

int imex_grants_each(const char *dir, file_entry_fn *fn, void *u, struct err *e) {
        _cleanup_(freep) char *grants = file_join(dir, IMEX_GRANTS_DIR);
        struct each each = { fn, u };

        return file_each(grants, tell, &each, e) < 0 && e->kind != ERR_NOT_FOUND ? -1 : 0;
}

static int found(void *u, int folder, const char *name, struct err *e) {
        bool *any = u;

        *any = true;
        return 0;
}

int imex_grants_any(const char *dir, bool *ret, struct err *e) {
        *ret = false;
        return imex_grants_each(dir, found, ret, e);
}
