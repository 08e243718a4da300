#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Made anew."""
code = "anew"  # and made anew
