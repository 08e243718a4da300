/* SPDX-License-Identifier: Apache-2.0 */
#include "cd_plugin/go_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "imex/imex_files.h"

#define TEMPLATE_FILE "imexd.cfg.tmpl"
#define CONFIG_FILE "imexd.cfg"
#define ADDRESS_KEY "IMEX_CMD_BIND_INTERFACE_IP="

enum { CONFIG_MAX = 64 * 1024 };

int go_folder_fill(const char *dir, struct err *e) {
        _cleanup_(freep) char *path = file_join(dir, TEMPLATE_FILE);
        _cleanup_(buf_done) struct buf text = BUF_INIT(CONFIG_MAX);
        if (access(path, F_OK) == 0)
                return 0;
        /* A template for Go's text/template. */
        imex_config_render(&(struct imex_config){ .cmd_bind_ip = "{{.IMEXCmdBindInterfaceIP}}",
                                                  .nodes_file = "/imexd/nodes.cfg",
                                                  .domain.port = IMEX_SERVER_PORT },
                           &text);
        return file_replace_volatile(path, text.p, text.n, 0644, e);
}

static void go_folder_read_config(const char *path, char **ret, size_t *ret_n) {
        _cleanup_(closep) int fd = -1;
        struct err e;
        if (file_open_nofollow(path, O_RDONLY, &fd, &e) == 0 &&
            file_read_fd(fd, path, CONFIG_MAX, ret, ret_n, &e) == 0)
                return;
        if (e.kind != ERR_NOT_FOUND)
                log_warn("cannot read what a daemon of the Go driver has written", kv_err(&e));
}

void go_folder_address(const char *dir, char ret[static GO_FOLDER_ADDRESS_SIZE]) {
        _cleanup_(freep) char *path = file_join(dir, CONFIG_FILE);
        _cleanup_(freep) char *text = NULL;
        const size_t key = strlen(ADDRESS_KEY);
        size_t n = 0;
        struct str rest, line;
        *ret = '\0';
        go_folder_read_config(path, &text, &n);
        rest = (struct str){ text, n };
        while (rest.n && str_next_line(&rest, &line))
                if (line.n > key && memcmp(line.p, ADDRESS_KEY, key) == 0)
                        snprintf(ret, GO_FOLDER_ADDRESS_SIZE, "%.*s", (int)(line.n - key), line.p + key);
}
