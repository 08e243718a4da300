/* SPDX-License-Identifier: Apache-2.0 */
/* crashing: simulates upgrades and rollbacks during the storm. With some of the images, a daemon crashes when
 * it starts. A template with such an image replaces at most a tenth of the idle daemons, but at least one,
 * until the template changes again. In the calm, the image works. */
#pragma once

#include "store.h"

void crashing_use(void);
bool crashing_used(void);
void crashing_begin(void);
/* Returns the image for the next start of a controller; a static string. */
const char *crashing_image(void);
/* Returns true if a daemon with this image crashes when it starts. Returns false for NULL (no image). */
bool crashing_is_bad(const char *image);
void crashing_calm(void);
/* Checks the promises about this change. */
void crashing_look(enum kind k, const struct change *c);
void crashing_done(void);
