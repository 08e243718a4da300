/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda.so.1: can be found, mounted and loaded, and has no functions. */
__attribute__((visibility("default"))) int cuDriverGetVersion(int *version);

int cuDriverGetVersion(int *version) {
        *version = 13000;
        return 0;
}
