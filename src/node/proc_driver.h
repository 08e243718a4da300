/* SPDX-License-Identifier: Apache-2.0 */
/* proc_driver: /proc/driver/nvidia as the kernel shows it. */
#pragma once

/* Removes what a container runtime has mounted over it or its files, which hides the capabilities of IMEX and
 * of MIG devices. What cannot be removed is logged. */
void proc_driver_uncover(void);
