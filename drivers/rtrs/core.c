// SPDX-License-Identifier: GPL-2.0-only
/* rtrs-core: what client and server share. */
#include <linux/module.h>

MODULE_DESCRIPTION("RAIL: RTRS, what client and server share");
MODULE_LICENSE("GPL");
MODULE_VERSION(RAIL_VERSION);
