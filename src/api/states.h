/* SPDX-License-Identifier: Apache-2.0 */
/* states: the words for states that users see (states.def), as constants: FABRIC_LEAVING is "Leaving". This
 * header needs no library, so that each layer can use it. */
#pragma once

#define STATE_TABLE(...)
#define STATE(table, constant, word, meaning) static const char constant[] = word;
#include "api/states.def"
#undef STATE_TABLE
#undef STATE
