/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Faults for tests, compiled in with RAIL_FAULTS=1 only; without, every question is a constant
 * false. Switches in /sys/kernel/debug/rail/faults/:
 *
 *	fail_posts, fail_recvs, fail_mrs, fail_allocs, delay_completions
 *			"N": the next N fail (are delayed); "N@K": after K more that do not
 *	delay_ms	how long a delayed completion is held back
 *	drop		a connection's number, or "all": it fails as if its link had died
 */
#ifndef RAIL_FAULT_H
#define RAIL_FAULT_H

#include <linux/types.h>

struct dentry;
struct ib_wc;
struct rail_conn;

enum rail_fault {
	RAIL_FAULT_POST,	/* ib_post_send() fails */
	RAIL_FAULT_RECV,	/* ib_post_recv() fails */
	RAIL_FAULT_MR,		/* mapping a memory region fails */
	RAIL_FAULT_ALLOC,	/* an allocation of set-up fails */
	RAIL_FAULT_DELAY,	/* a completion is held back */
	RAIL_NR_FAULTS,
};

#ifdef RAIL_FAULTS
bool rail_fault(enum rail_fault fault);
bool rail_fault_delay(struct rail_conn *conn, struct ib_wc *wc,
		      void (*fn)(struct rail_conn *conn, struct ib_wc *wc));
void rail_faults_wait(struct rail_conn *conn);
void rail_faults_init(struct dentry *root);
#else
static inline bool rail_fault(enum rail_fault fault)
{
	return false;
}

static inline bool rail_fault_delay(struct rail_conn *conn, struct ib_wc *wc,
				    void (*fn)(struct rail_conn *conn, struct ib_wc *wc))
{
	return false;
}

static inline void rail_faults_wait(struct rail_conn *conn)
{
}

static inline void rail_faults_init(struct dentry *root)
{
}
#endif

#endif /* RAIL_FAULT_H */
