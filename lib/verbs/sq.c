// SPDX-License-Identifier: GPL-2.0-only
/* Send-queue accounting. The rules stand in <rail/sq.h>. */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <rail/sq.h>

/* Signal this often where the owner does not say: seldom enough not to matter. */
#define RAIL_SQ_INTERVAL	32

/**
 * rail_sq_init - begin the accounting of an empty send queue
 * @sq: the accounting
 * @depth: work requests that fit
 * @max_chain: longest chain that will be posted
 * @interval: at the latest every so many work requests one is signalled; 0: chosen. Cut to
 *	      what keeps space coming.
 *
 * The queue starts dead: nothing can be posted until @sq->dead is cleared.
 *
 * Return: 0, or -EINVAL where the longest chain does not fit.
 */
int rail_sq_init(struct rail_sq *sq, u32 depth, u32 max_chain, u32 interval)
{
	if (!max_chain || depth < max_chain || depth > S32_MAX)
		return -EINVAL;
	*sq = (struct rail_sq) {
		.depth = depth,
		.max_chain = max_chain,
		.interval = min(interval ?: RAIL_SQ_INTERVAL, depth - max_chain + 1),
		.dead = true,
	};
	return 0;
}
EXPORT_SYMBOL_GPL(rail_sq_init);

/**
 * rail_sq_want - ask to be told of space
 * @sq: the queue
 * @n: how many slots are wanted
 *
 * Context: post lock held, after rail_sq_take() failed.
 * Return: true: rail_sq_complete() will say so when the tail moves next. false: there is room
 *	   by now, and nothing will be said.
 */
bool rail_sq_want(struct rail_sq *sq, u32 n)
{
	u32 before = sq->wanted;

	WRITE_ONCE(sq->wanted, 1);
	/* Pairs with the full barrier of the cmpxchg in rail_sq_complete(). */
	smp_mb();
	if (rail_sq_space(sq) < n)
		return true;
	/* Others may wait for more than @n. */
	WRITE_ONCE(sq->wanted, before);
	return false;
}
EXPORT_SYMBOL_GPL(rail_sq_want);

/**
 * rail_sq_complete - a signalled work request completed
 * @sq: the queue
 * @pos: its position
 *
 * Context: any. Positions may arrive late and out of order; only the newest counts.
 * Return: true when somebody waits for space and has to be served under the post lock.
 */
bool rail_sq_complete(struct rail_sq *sq, u32 pos)
{
	u32 tail = READ_ONCE(sq->tail);

	do {
		if ((s32)(pos - tail) <= 0)
			return false;
	} while (!try_cmpxchg(&sq->tail, &tail, pos));
	return READ_ONCE(sq->wanted);
}
EXPORT_SYMBOL_GPL(rail_sq_complete);
