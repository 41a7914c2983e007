// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>

MODULE_DESCRIPTION("RAIL: RNBD client");
MODULE_LICENSE("GPL");
MODULE_VERSION(RAIL_VERSION);
