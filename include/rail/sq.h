/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Send-queue accounting: numbers only, no verbs. The connection (verbs.h) posts by it, KUnit
 * drives it alone.
 *
 * Every work request posted has a position: the count of work requests posted before and with
 * it, modulo 2^32. Work requests of one QP complete in order, so the completion of the one at
 * position p frees the slots of all up to p. Unsignalled ones are freed by the next signalled
 * one; that there always is such a one is the accounting's business:
 *
 *	depth >= interval + max_chain - 1
 *
 * At most interval - 1 work requests lie unsignalled behind the last signalled one. If a chain of
 * n <= max_chain does not fit, more than depth - n >= interval - 1 are outstanding, hence one
 * of them is signalled, hence space will come. So nobody ever waits for nothing.
 *
 * Locking: @head, @unsignalled and @dead belong to the poster, who holds the connection's post
 * lock. @tail is moved by the completion side without a lock. A poster that found no room calls
 * rail_sq_want(), which announces it in @wanted and looks again; a completion moves @tail and
 * then looks at @wanted: with a full barrier between on both sides one of them sees the other.
 */
#ifndef RAIL_SQ_H
#define RAIL_SQ_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/types.h>

/**
 * struct rail_sq - how full a send queue is
 * @head: position of the last work request posted; post lock
 * @unsignalled: posted since the last signalled one; post lock
 * @depth: work requests that fit; constant
 * @interval: at the latest every so many work requests one is signalled; constant
 * @max_chain: longest chain; constant
 * @dead: no more posts; post lock to write, read anywhere as a hint
 * @tail: position of the last work request known to be complete; completion side
 * @wanted: somebody waits for @tail to move
 */
struct rail_sq {
	u32 head;
	u32 unsignalled;
	u32 depth;
	u32 interval;
	u32 max_chain;
	bool dead;
	u32 tail ____cacheline_aligned_in_smp;
	u32 wanted;
};

int rail_sq_init(struct rail_sq *sq, u32 depth, u32 max_chain, u32 interval);
bool rail_sq_want(struct rail_sq *sq, u32 n);
bool rail_sq_complete(struct rail_sq *sq, u32 pos);

/**
 * rail_sq_space - free slots
 * @sq: the queue
 *
 * Context: any; exact under the post lock, else a guess.
 */
static inline u32 rail_sq_space(const struct rail_sq *sq)
{
	/* Pairs with the cmpxchg in rail_sq_complete(): what completed is done with. */
	return sq->depth - (sq->head - smp_load_acquire(&sq->tail));
}

/**
 * rail_sq_take - take slots for a chain
 * @sq: the queue
 * @n: work requests in the chain, 1 to max_chain
 * @signalled: the position within the chain, 1 to @n, of its last signalled one; 0: none is
 * @force: set to whether the chain's last work request has to be signalled
 *
 * Context: post lock held.
 * Return: false when there is no room.
 */
static inline bool rail_sq_take(struct rail_sq *sq, u32 n, u32 signalled, bool *force)
{
	u32 behind = signalled ? n - signalled : sq->unsignalled + n;

	if (unlikely(rail_sq_space(sq) < n))
		return false;
	*force = behind >= sq->interval;
	sq->unsignalled = *force ? 0 : behind;
	sq->head += n;
	return true;
}

#endif /* RAIL_SQ_H */
