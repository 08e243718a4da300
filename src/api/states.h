/* SPDX-License-Identifier: Apache-2.0 */
/* states: defines constants for the names of states that users see (states.def): FABRIC_LEAVING is "Leaving".
 * This header needs no library, so that each layer can include it. */
#pragma once

#define STATE_TABLE(...)
#define STATE(table, constant, word, meaning) static const char constant[] = word;
#include "api/states.def"
#undef STATE_TABLE
#undef STATE
