// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls: from the receive to nfsd. A call with read chunks makes the way twice: the first thread
 * starts the RDMA Reads into pages of its own and goes; when they have ended, another one finds
 * the call complete.
 */
#include <linux/highmem.h>
#include <linux/sunrpc/addr.h>
#include "svc.h"

/* ---------------------------------------------------------------- from the completion */

static void rsvc_call_ready(struct rsvc_conn *c, struct rsvc_call *call)
{
	spin_lock_bh(&c->lock);
	list_add_tail(&call->entry, &c->ready);
	set_bit(XPT_DATA, &c->xprt.xpt_flags);
	spin_unlock_bh(&c->lock);
	svc_xprt_enqueue(&c->xprt);
}

static void rsvc_refuse(struct rsvc_conn *c, struct rsvc_call *call,
			enum rail_rpcrdma_reason reason)
{
	enum rail_rpcrdma_verdict verdict = rail_rpcrdma_answer(reason, &call->hdr);

	rsvc_warn(c, "message refused (%s), %s\n", rail_rpcrdma_reason_text(reason),
		  verdict == RAIL_RPCRDMA_DROP ? "dropped" : "answered with an error");
	if (verdict != RAIL_RPCRDMA_DROP)
		rsvc_send_error(c, &call->hdr, verdict);
}

/**
 * rsvc_received - a message came, or will not come any more
 * @cqe: in the call
 * @wc: completion
 */
void rsvc_received(struct rail_cqe *cqe, struct ib_wc *wc)
{
	struct rsvc_call *call = container_of(cqe, struct rsvc_call, cqe);
	struct rsvc_conn *c = call->conn;
	enum rail_rpcrdma_reason reason;

	/* Closing; rail has seen to that. */
	if (wc->status != IB_WC_SUCCESS)
		return;
	percpu_counter_inc(&rsvc_stats[RSVC_STAT_RECV]);
	rail_buf_for_cpu(call->buf, wc->byte_len);
	reason = rail_rpcrdma_decode(call->buf->addr, wc->byte_len, &c->rules, &call->hdr);
	if (likely(!reason && call->hdr.proc != RAIL_RPCRDMA_ERROR &&
		   call->hdr.proc != RAIL_RPCRDMA_DONE && call->hdr.dir != RAIL_RPC_REPLY))
		return rsvc_call_ready(c, call);
	call->reason = reason;
	spin_lock_bh(&c->lock);
	list_add_tail(&call->entry, &c->odd);
	spin_unlock_bh(&c->lock);
	queue_work(rsvc_wq, &c->odd_work);
}

static void rsvc_odd(struct rsvc_conn *c, struct rsvc_call *call)
{
	if (call->reason)
		rsvc_refuse(c, call, call->reason);
	else if (call->hdr.proc == RAIL_RPCRDMA_ERROR)
		rsvc_back_error(c, &call->hdr);
	else if (call->hdr.proc == RAIL_RPCRDMA_DONE)
		; /* RFC 8166 section 4.2.4: nothing of ours is exposed, so nothing is done */
	else
		rsvc_back_reply(c, call);
	rsvc_call_post(call);
}

/**
 * rsvc_odd_work - see to messages that are no good calls
 * @work: in the connection
 */
void rsvc_odd_work(struct work_struct *work)
{
	struct rsvc_conn *c = container_of(work, struct rsvc_conn, odd_work);
	struct rsvc_call *call;

	for (;;) {
		spin_lock_bh(&c->lock);
		call = list_first_entry_or_null(&c->odd, struct rsvc_call, entry);
		if (call)
			list_del(&call->entry);
		spin_unlock_bh(&c->lock);
		if (!call)
			return;
		rsvc_odd(c, call);
		/* A client may send them without end. */
		cond_resched();
	}
}

/* ---------------------------------------------------------------- read chunks */

/**
 * struct rsvc_layout - where the parts of a call with read chunks go
 * @nr: chunks
 * @chunk: the chunks, in order of their positions
 * @split: there is but one beside the rest: it begins at a page, the rest lies elsewhere. Else the
 *	   message lies in the pages as it would on a stream.
 * @base_pages: split: pages before the chunk's, for a position-zero chunk
 * @pages: pages in all
 * @nr_cut: not split: chunks with a position
 * @cut: not split: which bytes of the stream they are, XDR pad included
 */
struct rsvc_layout {
	u32 nr;
	struct rail_rpcrdma_chunk chunk[RSVC_MAX_READ_CHUNKS];
	bool split;
	u32 base_pages;
	u32 pages;
	u32 nr_cut;
	struct rsvc_range cut[RSVC_MAX_READ_CHUNKS];
};

static void rsvc_lay_out(const struct rsvc_call *call, struct rsvc_layout *lay)
{
	const struct rail_rpcrdma_hdr *hdr = &call->hdr;
	struct rail_rpcrdma_iter it;
	u32 i;

	lay->nr = 0;
	lay->nr_cut = 0;
	rail_rpcrdma_read_iter(&it, &hdr->lists);
	while (lay->nr < RSVC_MAX_READ_CHUNKS &&
	       rail_rpcrdma_next_read(call->buf->addr, &it, &lay->chunk[lay->nr]))
		lay->nr++;

	lay->split = lay->nr - hdr->has_call_chunk == 1 &&
		     (!hdr->has_call_chunk || hdr->call_len <= PAGE_SIZE);
	if (lay->split) {
		lay->base_pages = hdr->has_call_chunk;
		lay->pages = lay->base_pages +
			     DIV_ROUND_UP(lay->chunk[lay->nr - 1].length, PAGE_SIZE);
		return;
	}
	lay->base_pages = 0;
	lay->pages = DIV_ROUND_UP(hdr->msg_len, PAGE_SIZE);
	for (i = hdr->has_call_chunk; i < lay->nr; i++)
		lay->cut[lay->nr_cut++] = (struct rsvc_range) {
			lay->chunk[i].position, xdr_align_size(lay->chunk[i].length)
		};
}

/*
 * A pull takes a thread's pages, and the thread that takes over what was pulled has no use for its
 * own. These become the next pull's: else sunrpc would get as many others, and have them cleared.
 * They hold what clients wrote, as a thread's pages do between two calls.
 */
static struct {
	spinlock_t lock;	/* @nr, @page */
	u32 nr;
	struct page *page[RSVC_SPARE_PAGES];
} rsvc_spare = { .lock = __SPIN_LOCK_UNLOCKED(rsvc_spare.lock) };

static u32 rsvc_spare_take(struct page **pages, u32 n)
{
	spin_lock(&rsvc_spare.lock);
	n = min(n, rsvc_spare.nr);
	rsvc_spare.nr -= n;
	memcpy(pages, &rsvc_spare.page[rsvc_spare.nr], n * sizeof(*pages));
	spin_unlock(&rsvc_spare.lock);
	return n;
}

/* Those taken are no longer in @pages. */
static void rsvc_spare_give(struct page **pages, u32 n)
{
	u32 i;

	spin_lock(&rsvc_spare.lock);
	for (i = 0; i < n && rsvc_spare.nr < RSVC_SPARE_PAGES; i++) {
		if (!pages[i] || page_count(pages[i]) != 1)
			continue;
		rsvc_spare.page[rsvc_spare.nr++] = pages[i];
		pages[i] = NULL;
	}
	spin_unlock(&rsvc_spare.lock);
}

/**
 * rsvc_spare_free - no more pulls for now: free the pages kept for them
 */
void rsvc_spare_free(void)
{
	spin_lock(&rsvc_spare.lock);
	while (rsvc_spare.nr)
		put_page(rsvc_spare.page[--rsvc_spare.nr]);
	spin_unlock(&rsvc_spare.lock);
}

static int rsvc_pull_chunk(struct rsvc_io *io, const struct rsvc_layout *lay, u32 nth)
{
	const struct rsvc_call *call = io->call;
	const struct rail_rpcrdma_chunk *chunk = &lay->chunk[nth];
	struct xdr_buf local = {
		.pages = io->pages,
		.page_len = io->nr_pages << PAGE_SHIFT,
	};
	struct rsvc_range range[RSVC_MAX_RANGES];
	u32 nr = 1;

	if (call->hdr.has_call_chunk && !nth) {
		if (lay->split)
			range[0] = (struct rsvc_range){ 0, chunk->length };
		else
			nr = rsvc_complement(lay->cut, lay->nr_cut, call->hdr.msg_len, range);
	} else if (lay->split) {
		range[0] = (struct rsvc_range){ lay->base_pages << PAGE_SHIFT, chunk->length };
	} else {
		range[0] = (struct rsvc_range){ chunk->position, chunk->length };
	}
	return rsvc_io_transfer(io, &local, range, nr, call->buf->addr, chunk, DMA_FROM_DEVICE);
}

static int rsvc_pull_build(struct svc_rqst *rqstp, struct rsvc_io *io,
			   const struct rsvc_layout *lay)
{
	u32 i, spare;
	int err;

	if (!rsvc_io_room(io, lay->pages, io->call->hdr.lists.nr_read_segs))
		return -ENOMEM;
	spare = rsvc_spare_take(io->pages, lay->pages);
	for (i = 0; i < lay->pages - spare; i++) {
		io->pages[spare + i] = rqstp->rq_pages[i];
		rqstp->rq_pages[i] = NULL;
	}
	io->nr_pages = lay->pages;
	rail_svc_took_pages(rqstp, lay->pages - spare);
	io->split = lay->split;
	io->base_pages = lay->base_pages;
	for (i = 0; i < lay->nr; i++) {
		err = rsvc_pull_chunk(io, lay, i);
		if (err)
			return err;
	}
	return 0;
}

/* Start to read. -EAGAIN: not now, the call is back on the list. */
static int rsvc_pull(struct svc_rqst *rqstp, struct rsvc_conn *c, struct rsvc_call *call)
{
	struct rsvc_layout lay;
	struct rsvc_io *io;
	u32 others;
	int err;

	rsvc_lay_out(call, &lay);
	if (lay.pages > c->max_pages)
		return -EMSGSIZE;
	if (!rsvc_enter(c))
		return -ENOTCONN;
	io = rsvc_io_get(c, RSVC_PULL);
	if (!io) {
		rsvc_leave(c);
		return -ENOMEM;
	}
	io->call = call;
	spin_lock_bh(&c->lock);
	others = c->pulls++;
	spin_unlock_bh(&c->lock);
	call->pull = io;
	err = rsvc_pull_build(rqstp, io, &lay);
	if (!err) {
		percpu_counter_add(&rsvc_stats[RSVC_STAT_READ], io->nr_rw);
		err = rsvc_io_chains(io) ? rsvc_io_post(io) : -ENOMEM;
	}
	if (err) {
		call->pull = NULL;
		rsvc_io_put(io);
		spin_lock_bh(&c->lock);
		c->pulls--;
		if (err == -EAGAIN && others) {
			/* The device's regions are in use; by pulls that will end. */
			list_add(&call->entry, &c->ready);
			c->starved = c->pulls;
			if (c->starved && list_empty(&c->pulled))
				clear_bit(XPT_DATA, &c->xprt.xpt_flags);
		} else if (err == -EAGAIN) {
			err = -EMSGSIZE;
		}
		spin_unlock_bh(&c->lock);
	}
	rsvc_leave(c);
	return err;
}

/**
 * rsvc_pull_done - all bytes are there, or will not come any more
 * @io: pull
 */
void rsvc_pull_done(struct rsvc_io *io)
{
	struct rsvc_conn *c = io->conn;
	struct rsvc_call *call = io->call;

	rsvc_io_unmap(io);
	spin_lock_bh(&c->lock);
	c->pulls--;
	c->starved = false;
	list_add_tail(&call->entry, &c->pulled);
	set_bit(XPT_DATA, &c->xprt.xpt_flags);
	spin_unlock_bh(&c->lock);
	svc_xprt_enqueue(&c->xprt);
}

/* ---------------------------------------------------------------- to nfsd */

static void rsvc_arg_inline(struct svc_rqst *rqstp, struct rsvc_call *call)
{
	struct xdr_buf *arg = &rqstp->rq_arg;

	arg->head[0].iov_base = call->buf->addr + call->hdr.body_at;
	arg->head[0].iov_len = call->hdr.body_len;
	arg->pages = rqstp->rq_pages;
	arg->page_len = 0;
	arg->tail[0].iov_len = 0;
	rail_svc_arg_pages(rqstp, 0);
}

static void rsvc_arg_split(struct svc_rqst *rqstp, const struct rsvc_call *call,
			   const struct rsvc_layout *lay)
{
	const struct rail_rpcrdma_chunk *chunk = &lay->chunk[lay->nr - 1];
	struct xdr_buf *arg = &rqstp->rq_arg;
	void *base = call->buf->addr + call->hdr.body_at;
	u32 len = call->hdr.body_len, pad = xdr_pad_size(chunk->length);

	if (call->hdr.has_call_chunk) {
		base = page_address(rqstp->rq_pages[0]);
		len = call->hdr.call_len;
	}
	arg->head[0].iov_base = base;
	arg->head[0].iov_len = chunk->position;
	arg->pages = &rqstp->rq_pages[lay->base_pages];
	arg->page_len = chunk->length + pad;
	arg->tail[0].iov_base = base + chunk->position;
	arg->tail[0].iov_len = len - chunk->position;
	if (pad)
		memzero_page(arg->pages[chunk->length >> PAGE_SHIFT],
			     offset_in_page(chunk->length), pad);
}

static void rsvc_copy_in(struct page **pages, u32 at, const void *from, u32 len)
{
	u32 n;

	for (; len; len -= n, at += n, from += n) {
		n = min_t(u32, len, PAGE_SIZE - offset_in_page(at));
		memcpy_to_page(pages[at >> PAGE_SHIFT], offset_in_page(at), from, n);
	}
}

static void rsvc_arg_stream(struct svc_rqst *rqstp, const struct rsvc_call *call,
			    const struct rsvc_layout *lay)
{
	const u8 *body = call->buf->addr + call->hdr.body_at;
	struct rsvc_range keep[RSVC_MAX_RANGES];
	struct xdr_buf *arg = &rqstp->rq_arg;
	u32 i, nr, at, pad, len = call->hdr.msg_len;

	if (!call->hdr.has_call_chunk) {
		nr = rsvc_complement(lay->cut, lay->nr_cut, len, keep);
		for (i = 0; i < nr; body += keep[i].len, i++)
			rsvc_copy_in(rqstp->rq_pages, keep[i].at, body, keep[i].len);
	}
	for (i = 0; i < lay->nr_cut; i++) {
		at = lay->cut[i].at + lay->chunk[i + call->hdr.has_call_chunk].length;
		pad = xdr_pad_size(at);
		if (pad)
			memzero_page(rqstp->rq_pages[at >> PAGE_SHIFT], offset_in_page(at), pad);
	}
	arg->head[0].iov_base = page_address(rqstp->rq_pages[0]);
	arg->head[0].iov_len = min_t(u32, len, PAGE_SIZE);
	arg->pages = &rqstp->rq_pages[1];
	arg->page_len = len - arg->head[0].iov_len;
	arg->tail[0].iov_len = 0;
}

/* The pages that were read into become the thread's; so do their pages' turns. */
static void rsvc_arg_pulled(struct svc_rqst *rqstp, struct rsvc_call *call)
{
	struct rsvc_io *io = call->pull;
	struct rsvc_layout lay;
	u32 i;

	rsvc_lay_out(call, &lay);
	for (i = 0; i < io->nr_pages; i++)
		swap(rqstp->rq_pages[i], io->pages[i]);
	rail_svc_arg_pages(rqstp, io->nr_pages);
	call->pull = NULL;
	rsvc_spare_give(io->pages, io->nr_pages);
	rsvc_io_put(io);
	if (lay.split)
		rsvc_arg_split(rqstp, call, &lay);
	else
		rsvc_arg_stream(rqstp, call, &lay);
}

/* The next call that is whole, or whose pull can be started. */
static struct rsvc_call *rsvc_next_call(struct rsvc_conn *c)
{
	struct rsvc_call *call;

	spin_lock_bh(&c->lock);
	call = list_first_entry_or_null(&c->pulled, struct rsvc_call, entry);
	if (!call)
		call = list_first_entry_or_null(&c->ready, struct rsvc_call, entry);
	if (call)
		list_del(&call->entry);
	/* After the last one no other thread need be woken to find nothing. */
	if (list_empty(&c->pulled) && list_empty(&c->ready))
		clear_bit(XPT_DATA, &c->xprt.xpt_flags);
	spin_unlock_bh(&c->lock);
	return call;
}

/* Start to read the chunks of a call. The thread has nothing to work on, whatever comes of it. */
static void rsvc_begin_pull(struct svc_rqst *rqstp, struct rsvc_conn *c, struct rsvc_call *call)
{
	int err = rsvc_pull(rqstp, c, call);

	switch (err) {
	case 0:
	case -EAGAIN:
		return;
	case -EMSGSIZE:
		rsvc_warn(c, "read chunks of a call refused: more than the server can take\n");
		rsvc_send_error(c, &call->hdr, RAIL_RPCRDMA_SEND_ERR_CHUNK);
		rsvc_call_post(call);
		return;
	default:
		/* The client calls again, on its next connection. */
		if (err != -ENOTCONN)
			rsvc_warn(c, "read chunks of a call cannot be read (%pe): closing\n",
				  ERR_PTR(err));
		svc_xprt_deferred_close(&c->xprt);
		rsvc_call_post(call);
	}
}

/**
 * rsvc_recvfrom - give a thread a call
 * @rqstp: thread
 *
 * Return: bytes of the call; 0: none now.
 */
int rsvc_recvfrom(struct svc_rqst *rqstp)
{
	struct rsvc_conn *c = rsvc_conn_of(rqstp->rq_xprt);
	struct xdr_buf *arg = &rqstp->rq_arg;
	struct rsvc_call *call = rsvc_next_call(c);

	rqstp->rq_xprt_ctxt = NULL;
	if (!call) {
		percpu_counter_inc(&rsvc_stats[RSVC_STAT_RQ_STARVE]);
		goto none;
	}
	if (call->pull && call->pull->failed) {
		rsvc_io_put(call->pull);
		call->pull = NULL;
		rsvc_call_post(call);
		goto none;
	}
	if (!call->pull && call->hdr.nr_read_chunks) {
		rsvc_begin_pull(rqstp, c, call);
		goto none;
	}

	arg->page_base = 0;
	arg->len = call->hdr.msg_len;
	arg->buflen = arg->len;
	if (call->pull)
		rsvc_arg_pulled(rqstp, call);
	else
		rsvc_arg_inline(rqstp, call);
	rqstp->rq_xprt_ctxt = call;
	rqstp->rq_prot = IPPROTO_MAX;
	/* The port says nothing of who uses it: a client's CM chooses it. */
	set_bit(RQ_SECURE, &rqstp->rq_flags);
	clear_bit(RQ_LOCAL, &rqstp->rq_flags);
	svc_xprt_copy_addrs(rqstp, &c->xprt);
	svc_xprt_received(&c->xprt);
	return arg->len;

none:
	rail_svc_no_arg(rqstp);
	svc_xprt_received(&c->xprt);
	return 0;
}

/**
 * rsvc_release_ctxt - sunrpc is done with a call
 * @xprt: in the connection
 * @ctxt: the call; NULL: there was none, or its reply was sent
 */
void rsvc_release_ctxt(struct svc_xprt *xprt, void *ctxt)
{
	if (ctxt)
		rsvc_call_post(ctxt);
}
