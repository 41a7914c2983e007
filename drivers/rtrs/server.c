// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>

MODULE_DESCRIPTION("RAIL: RTRS server");
MODULE_LICENSE("GPL");
MODULE_VERSION(RAIL_VERSION);
