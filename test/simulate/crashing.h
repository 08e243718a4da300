/* SPDX-License-Identifier: Apache-2.0 */
/* crashing: upgrades and rollbacks during the storm. With some of the images a daemon crashes when it starts.
 * A template with such an image replaces at most a tenth of the idle daemons, but at least one, until the
 * template changes again. In the calm the image works. */
#pragma once

#include "store.h"

void crashing_use(void);
bool crashing_used(void);
void crashing_begin(void);
/* The image for the next start of a controller; static. */
const char *crashing_image(void);
/* A daemon with this image crashes when it starts. NULL: no image, false. */
bool crashing_is_bad(const char *image);
void crashing_calm(void);
/* Checks the promises about each change. */
void crashing_look(enum kind k, const struct change *c);
void crashing_done(void);
