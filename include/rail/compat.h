/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only place in RAIL that knows kernel versions. Everything else is written for the newest
 * kernel; what an older one lacks or names otherwise is made up here.
 */
#ifndef RAIL_COMPAT_H
#define RAIL_COMPAT_H

#include <linux/version.h>
#include <linux/workqueue.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "RAIL needs Linux 6.1 or newer: install the headers of a newer kernel and set KDIR to them."
#endif

#ifndef CONFIG_INFINIBAND_ADDR_TRANS
#error "RAIL needs a kernel with CONFIG_INFINIBAND_ADDR_TRANS (the RDMA connection manager)."
#endif

/* 6.17 made "bound to a CPU" a flag of its own; before, it was what no flag meant. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0) && !defined(WQ_PERCPU)
#define WQ_PERCPU 0
#endif

#endif /* RAIL_COMPAT_H */
