// SPDX-License-Identifier: GPL-2.0-only
/* Chunk choice: which parts of a call and of its reply travel inline, and which in chunks. */
#include <linux/errno.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <rail/wire/rpcrdma.h>

#include "clnt_pure.h"

/* Regions, hence segments, that cover a piece. */
static u32 segs_of(const struct clnt_piece *piece, const struct clnt_limits *limits)
{
	u64 end = (u64)piece->off + piece->len;

	if (!piece->len)
		return 0;
	return DIV_ROUND_UP((u32)DIV_ROUND_UP(end, limits->page_size), limits->mr_pages);
}

static u32 rest_of(const struct clnt_shape *shape)
{
	return shape->head.len + shape->tail.len;
}

/* The header of the reply: the lists of the call come back in it. */
static u32 reply_hdr(const struct clnt_plan *plan)
{
	return rail_rpcrdma_hdr_size(0, plan->reply_write, plan->write_segs, plan->reply_long,
				     plan->reply_segs);
}

static int choose_reply(const struct clnt_shape *reply, const struct clnt_limits *limits,
			struct clnt_plan *plan)
{
	u32 rest = rest_of(reply);

	/* What fits is copied: that is cheaper than to register, and to invalidate, memory. */
	if (rest + reply->pages.len <= limits->reply_max - RAIL_RPCRDMA_HDR_MIN)
		return 0;
	if (reply->eligible && reply->pages.len) {
		plan->reply_write = true;
		plan->write_segs = segs_of(&reply->pages, limits);
		if (reply_hdr(plan) + rest <= limits->reply_max)
			return 0;
	} else {
		plan->reply_segs = segs_of(&reply->pages, limits);
	}
	plan->reply_long = true;
	plan->reply_segs += segs_of(&reply->head, limits) + segs_of(&reply->tail, limits);
	return reply_hdr(plan) <= limits->reply_max ? 0 : -EMSGSIZE;
}

static u32 call_hdr(const struct clnt_plan *plan)
{
	return rail_rpcrdma_hdr_size(plan->call_segs + plan->read_segs, plan->reply_write,
				     plan->write_segs, plan->reply_long, plan->reply_segs);
}

static void choose_call(const struct clnt_shape *call, const struct clnt_limits *limits,
			struct clnt_plan *plan)
{
	u32 all = rest_of(call) + call->pages.len + call->pad;

	plan->body_len = all;
	if (call_hdr(plan) + all <= limits->call_max)
		return;
	if (call->eligible && call->pages.len) {
		plan->call_read = true;
		plan->read_segs = segs_of(&call->pages, limits);
		plan->body_len = rest_of(call);
		if (call_hdr(plan) + plan->body_len <= limits->call_max)
			return;
	} else {
		plan->call_segs = segs_of(&call->pages, limits);
	}
	plan->call_long = true;
	plan->call_segs += segs_of(&call->head, limits) + segs_of(&call->tail, limits);
	plan->body_len = 0;
}

/**
 * clnt_choose - decide how a call and its reply travel
 * @call: the call
 * @reply: the longest reply there can be
 * @limits: what the connection can
 * @plan: filled in
 *
 * RFC 8166 section 3.5, with RFC 8267 for what is eligible.
 *
 * Return: 0, or -EMSGSIZE when it cannot be done: the header itself would be too long.
 */
int clnt_choose(const struct clnt_shape *call, const struct clnt_shape *reply,
		const struct clnt_limits *limits, struct clnt_plan *plan)
{
	int err;

	memset(plan, 0, sizeof(*plan));
	if (limits->reply_max < RAIL_RPCRDMA_HDR_MIN || limits->call_max < RAIL_RPCRDMA_HDR_MIN)
		return -EMSGSIZE;
	err = choose_reply(reply, limits, plan);
	if (err)
		return err;
	choose_call(call, limits, plan);
	plan->hdr_len = call_hdr(plan);
	if (plan->hdr_len + plan->body_len > limits->call_max || plan->hdr_len > CLNT_HDR_MAX ||
	    plan->write_segs > CLNT_CHUNK_SEGS || plan->reply_segs > CLNT_CHUNK_SEGS ||
	    plan->read_segs > CLNT_CHUNK_SEGS || plan->call_segs > CLNT_CHUNK_SEGS ||
	    plan->call_segs + plan->read_segs + plan->write_segs + plan->reply_segs >
	    CLNT_CALL_SEGS)
		return -EMSGSIZE;
	return 0;
}

/**
 * clnt_max_payload - the longest page data that every kind of call can carry
 * @limits: what the connection can
 * @most: at the most so many bytes
 *
 * With krb5p the pages travel together with head and tail, hence three segments less; data that
 * begins in the middle of a page takes a page more.
 *
 * Return: bytes, a multiple of the page size.
 */
u32 clnt_max_payload(const struct clnt_limits *limits, u32 most)
{
	u64 pages = (u64)limits->mr_pages * (CLNT_CHUNK_SEGS - 3) - 1;

	return min_t(u64, pages * limits->page_size, rounddown(most, limits->page_size));
}
