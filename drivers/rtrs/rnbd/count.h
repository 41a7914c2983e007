/* SPDX-License-Identifier: GPL-2.0-only */
/* What client and server of RNBD count of I/O in the same way. */
#ifndef RNBD_COUNT_H
#define RNBD_COUNT_H

#include <linux/ktime.h>

#include <rail/stats.h>
#include <rail/wire/rnbd.h>

/* The first counters of a mapping; each end has others behind them. */
enum rnbd_count {
	RNBD_N_READ,
	RNBD_N_READ_BYTES,
	RNBD_N_WRITE,
	RNBD_N_WRITE_BYTES,
	RNBD_N_FLUSH,
	RNBD_N_DISCARD,
	RNBD_N_ERASE,
	RNBD_N_ZEROES,
	RNBD_NR_COUNTS,
};

enum rnbd_hist {
	RNBD_H_READ,
	RNBD_H_WRITE,
	RNBD_H_OTHER,
	RNBD_NR_HISTS,
};

/* Their names, for the tables of both ends. */
#define RNBD_COUNT_NAMES				\
	[RNBD_N_READ] = "reads",			\
	[RNBD_N_READ_BYTES] = "read_bytes",		\
	[RNBD_N_WRITE] = "writes",			\
	[RNBD_N_WRITE_BYTES] = "write_bytes",		\
	[RNBD_N_FLUSH] = "flushes",			\
	[RNBD_N_DISCARD] = "discards",			\
	[RNBD_N_ERASE] = "secure_erases",		\
	[RNBD_N_ZEROES] = "write_zeroes"

#define RNBD_HIST_NAMES					\
	[RNBD_H_READ] = "read_ns",			\
	[RNBD_H_WRITE] = "write_ns",			\
	[RNBD_H_OTHER] = "other_ns"

/**
 * rnbd_count_begin - count an I/O that begins
 * @stats: of the mapping
 * @msg: the I/O
 *
 * Context: any.
 */
static inline void rnbd_count_begin(struct rail_stats *stats, const struct rail_rnbd_req *msg)
{
	switch (msg->op) {
	case RAIL_RNBD_OP_READ:
		rail_stats_inc(stats, RNBD_N_READ);
		rail_stats_add(stats, RNBD_N_READ_BYTES, msg->size);
		break;
	case RAIL_RNBD_OP_WRITE:
		rail_stats_inc(stats, RNBD_N_WRITE);
		rail_stats_add(stats, RNBD_N_WRITE_BYTES, msg->size);
		break;
	case RAIL_RNBD_OP_FLUSH:
		rail_stats_inc(stats, RNBD_N_FLUSH);
		break;
	case RAIL_RNBD_OP_DISCARD:
		rail_stats_inc(stats, RNBD_N_DISCARD);
		break;
	case RAIL_RNBD_OP_SECURE_ERASE:
		rail_stats_inc(stats, RNBD_N_ERASE);
		break;
	default:
		rail_stats_inc(stats, RNBD_N_ZEROES);
	}
}

/**
 * rnbd_count_end - record how long an I/O took
 * @stats: of the mapping
 * @op: enum rail_rnbd_op
 * @begun: ktime, ns, when it began
 *
 * Context: any.
 */
static inline void rnbd_count_end(struct rail_stats *stats, u8 op, u64 begun)
{
	enum rnbd_hist hist = op == RAIL_RNBD_OP_READ ? RNBD_H_READ :
			      op == RAIL_RNBD_OP_WRITE ? RNBD_H_WRITE : RNBD_H_OTHER;

	rail_hist_record(stats, hist, ktime_get_ns() - begun);
}

#endif /* RNBD_COUNT_H */
