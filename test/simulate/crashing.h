/* SPDX-License-Identifier: Apache-2.0 */
/* crashing: upgrades and rollbacks during the storm to images of which some crash when a daemon starts. A
 * template with such an image replaces at most a tenth of the idle daemons, at least one, until the template
 * is changed again. In the calm the image is a good one. */
#pragma once

#include "store.h"

void crashing_use(void);
bool crashing_used(void);
void crashing_begin(void);
/* What the next controller is started with; static. */
const char *crashing_image(void);
/* NULL: of no image. */
bool crashing_is_bad(const char *image);
void crashing_calm(void);
/* What is promised of each change. */
void crashing_look(enum kind k, const struct change *c);
void crashing_done(void);
