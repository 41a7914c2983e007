// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replies: results into write chunks, the rest inline or into the reply chunk, all in the order
 * RDMA Writes, Send, so that the bytes are there when the client sees the reply.
 */
#include <linux/dma-mapping.h>
#include "svc.h"

/**
 * struct rsvc_plan - how a reply goes
 * @nr_chunks: write chunks of the call
 * @chunk: the write chunks
 * @result: which bytes of the reply go into each; length 0: none
 * @nr_cut: ranges that do not go with the rest of the message
 * @cut: those: results in chunks, with their XDR pad
 * @nr_keep: ranges that do
 * @keep: those
 * @keep_len: bytes in them
 * @long_reply: they go into the reply chunk
 * @reply: reply chunk, with @long_reply
 */
struct rsvc_plan {
	u32 nr_chunks;
	struct rail_rpcrdma_chunk chunk[RSVC_MAX_WRITE_CHUNKS];
	struct rsvc_range result[RSVC_MAX_WRITE_CHUNKS];
	u32 nr_cut;
	struct rsvc_range cut[RSVC_MAX_WRITE_CHUNKS];
	u32 nr_keep;
	struct rsvc_range keep[RSVC_MAX_RANGES];
	u32 keep_len;
	bool long_reply;
	struct rail_rpcrdma_chunk reply;
};

/**
 * rsvc_result_payload - nfsd says which bytes of the reply a write chunk may take
 * @rqstp: thread
 * @offset: first byte
 * @length: how many
 *
 * Called for each such result, in their order.
 *
 * Return: 0; what does not fit is found out when the reply is sent.
 */
int rsvc_result_payload(struct svc_rqst *rqstp, unsigned int offset, unsigned int length)
{
	struct rsvc_call *call = rqstp->rq_xprt_ctxt;

	if (call && call->nr_payloads < call->hdr.lists.nr_write_chunks)
		call->payload[call->nr_payloads++] = (struct rsvc_range){ offset, length };
	return 0;
}

/**
 * rsvc_has_wspace - may the connection take more calls?
 * @xprt: in the connection
 *
 * A client that does not take its replies gets no more threads, so it holds up nobody but itself.
 */
int rsvc_has_wspace(struct svc_xprt *xprt)
{
	struct rsvc_conn *c = rsvc_conn_of(xprt);

	return atomic_read(&c->unsent) < c->max_unsent;
}

/* ---------------------------------------------------------------- building */

/**
 * rsvc_reply_get - something to send
 * @c: connection, entered
 *
 * Return: it, counted as unsent; NULL when there is no memory.
 */
struct rsvc_io *rsvc_reply_get(struct rsvc_conn *c)
{
	struct rsvc_io *io = rsvc_io_get(c, RSVC_REPLY);

	if (!io)
		return NULL;
	atomic_inc(&c->unsent);
	io->nr_sge = 1;
	io->wr = (struct ib_send_wr) {
		.opcode = IB_WR_SEND,
		.sg_list = io->sge,
	};
	return io;
}

static void rsvc_reply_drop(struct rsvc_io *io)
{
	atomic_dec(&io->conn->unsent);
	rsvc_io_put(io);
}

/**
 * rsvc_reply_done - the client has it, or never will
 * @io: reply
 */
void rsvc_reply_done(struct rsvc_io *io)
{
	struct rsvc_conn *c = io->conn;
	struct rsvc_io *rider, *next;
	int n = 1;

	list_for_each_entry_safe(rider, next, &io->riders, entry) {
		rsvc_io_put(rider);
		n++;
	}
	INIT_LIST_HEAD(&io->riders);
	rsvc_io_put(io);
	if (atomic_fetch_sub(n, &c->unsent) >= c->max_unsent) {
		percpu_counter_inc(&rsvc_stats[RSVC_STAT_SQ_STARVE]);
		svc_xprt_enqueue(&c->xprt);
	}
}

/**
 * rsvc_reply_post - send it
 * @io: built
 * @head_len: bytes in io->head
 * @quiet: the device is at nothing but io->head
 *
 * Context: connection entered.
 * Return: 0, or an error; then it is gone all the same.
 */
int rsvc_reply_post(struct rsvc_io *io, u32 head_len, bool quiet)
{
	struct rsvc_conn *c = io->conn;
	bool alone;
	int err;

	/* Else rsvc_gather() has seen to it, and behind the first entry there is more. */
	if (io->nr_sge == 1)
		io->sge[0].length = head_len;
	ib_dma_sync_single_for_device(c->dev->ib, io->head_dma, head_len, DMA_TO_DEVICE);
	io->wr.num_sge = io->nr_sge;
	if (!rsvc_io_chains(io)) {
		rsvc_reply_drop(io);
		return -ENOMEM;
	}

	spin_lock_bh(&c->lock);
	quiet &= c->nr_quiet + 1 < RSVC_SIGNAL_EVERY;
	io->quiet = quiet;
	if (!quiet) {
		list_splice_init(&c->quiet, &io->riders);
		c->nr_quiet = 0;
	}
	spin_unlock_bh(&c->lock);

	/*
	 * A software device works in a softirq that the post raises: here and now, unless other
	 * calls wait for a thread. Then the replies gather, and it is ksoftirqd's work.
	 */
	alone = !test_bit(XPT_DATA, &c->xprt.xpt_flags);
	if (alone)
		local_bh_disable();
	err = rsvc_io_post(io);
	if (alone)
		local_bh_enable();
	if (!err && !quiet)
		return 0;
	spin_lock_bh(&c->lock);
	if (quiet && !err) {
		/* Only now: whoever takes it along has to be posted after it. */
		list_add_tail(&io->entry, &c->quiet);
		c->nr_quiet++;
	} else if (!quiet) {
		list_splice_init(&io->riders, &c->quiet);
	}
	spin_unlock_bh(&c->lock);
	if (err)
		rsvc_reply_drop(io);
	return err;
}

/* Never 0, never more than receives were posted for. */
static u32 rsvc_grant(const struct rsvc_conn *c, u32 asked)
{
	return clamp_t(u32, asked, 1, c->max_calls);
}

/**
 * rsvc_send_error - tell the client that a call cannot be done
 * @c: connection
 * @hdr: header of the call
 * @verdict: which error
 *
 * Context: sleeps.
 */
void rsvc_send_error(struct rsvc_conn *c, const struct rail_rpcrdma_hdr *hdr,
		     enum rail_rpcrdma_verdict verdict)
{
	u32 grant = rsvc_grant(c, hdr->credit);
	struct rail_rpcrdma_enc enc;
	struct rsvc_io *io;

	/* Errors cost no credit: a client that reads none gets no more of them. */
	if (atomic_read(&c->unsent) >= 2 * c->max_unsent) {
		rsvc_warn(c, "takes no replies and sends nonsense: closing\n");
		svc_xprt_deferred_close(&c->xprt);
		return;
	}
	if (!rsvc_enter(c))
		return;
	io = rsvc_reply_get(c);
	if (io) {
		rail_rpcrdma_enc_init(&enc, io->head, c->head_size);
		if (verdict == RAIL_RPCRDMA_SEND_ERR_VERS)
			rail_rpcrdma_enc_err_vers(&enc, hdr->xid, grant, RAIL_RPCRDMA_VERSION,
						  RAIL_RPCRDMA_VERSION);
		else
			rail_rpcrdma_enc_err_chunk(&enc, hdr->xid, grant);
		rsvc_reply_post(io, rail_rpcrdma_enc_finish(&enc), false);
	}
	rsvc_leave(c);
}

/*
 * Is this the data of an opaque item of the reply as it is now? nfsd marks results while it
 * encodes; it may have cut them off again, and of READLINK it marks the length word for the data.
 */
static bool rsvc_result_valid(const struct xdr_buf *res, u32 from, struct rsvc_range *result)
{
	u32 word;

	if (result->at < max_t(u32, from + 4, RAIL_RPC_ACCEPTED_MIN) || (result->at & 3))
		return false;
	if (result->at > res->len || result->len > res->len - result->at)
		return false;
	if (xdr_decode_word(res, result->at - 4, &word))
		return false;
	if (word == result->len)
		return true;
	if (res->len - result->at < 4 || xdr_decode_word(res, result->at, &word) ||
	    word != result->len || result->len > res->len - result->at - 4)
		return false;
	result->at += 4;
	return true;
}

/*
 * Which results go into which write chunks (RFC 8166 section 4.4.2: in the order of both).
 * Return: false when a chunk is too small for its result.
 */
static bool rsvc_plan_results(const struct xdr_buf *res, const struct rsvc_call *call,
			      struct rsvc_plan *plan)
{
	struct rail_rpcrdma_iter it;
	struct rsvc_range result;
	u32 i, from = 0;

	rail_rpcrdma_write_iter(&it, &call->hdr.lists);
	for (i = 0; i < RSVC_MAX_WRITE_CHUNKS &&
	     rail_rpcrdma_next_write(call->buf->addr, &it, &plan->chunk[i]); i++) {
		plan->result[i].len = 0;
		if (i >= call->nr_payloads)
			continue;
		result = call->payload[i];
		/* A chunk of no bytes asks for the result inline (RFC 8166 section 3.4.6.3). */
		if (!result.len || !plan->chunk[i].length)
			continue;
		if (!rsvc_result_valid(res, from, &result))
			continue;
		if (result.len > plan->chunk[i].length)
			return false;
		plan->result[i] = result;
		plan->cut[plan->nr_cut++] = (struct rsvc_range) {
			result.at, min(xdr_align_size(result.len), res->len - result.at)
		};
		from = result.at + xdr_align_size(result.len);
	}
	plan->nr_chunks = i;
	return true;
}

/* Write the header. Return: its length; 0: does not fit. */
static u32 rsvc_encode(struct rsvc_io *io, const struct rsvc_call *call,
		       const struct rsvc_plan *plan)
{
	const struct rail_rpcrdma_hdr *hdr = &call->hdr;
	const void *from = call->buf->addr;
	struct rsvc_conn *c = io->conn;
	struct rail_rpcrdma_enc enc;
	u32 i;

	rail_rpcrdma_enc_init(&enc, io->head, min(c->head_size, c->agreed.reply_max));
	rail_rpcrdma_enc_fixed(&enc, hdr->xid, rsvc_grant(c, hdr->credit),
			       plan->long_reply ? RAIL_RPCRDMA_NOMSG : RAIL_RPCRDMA_MSG);
	rail_rpcrdma_enc_reads_end(&enc);
	for (i = 0; i < plan->nr_chunks; i++)
		rail_rpcrdma_enc_returned(&enc, from, &plan->chunk[i], plan->result[i].len);
	rail_rpcrdma_enc_writes_end(&enc);
	if (plan->long_reply)
		rail_rpcrdma_enc_returned(&enc, from, &plan->reply, plan->keep_len);
	else
		rail_rpcrdma_enc_no_reply(&enc);
	return rail_rpcrdma_enc_finish(&enc);
}

/* Decide, and write the header. Return: its length; 0: the reply fits nowhere. */
static u32 rsvc_plan(struct rsvc_io *io, const struct xdr_buf *res, const struct rsvc_call *call,
		     struct rsvc_plan *plan)
{
	u32 i, head_len;

	plan->nr_cut = 0;
	plan->long_reply = false;
	plan->keep_len = 0;
	if (!rsvc_plan_results(res, call, plan))
		return 0;
	plan->nr_keep = rsvc_complement(plan->cut, plan->nr_cut, res->len, plan->keep);
	for (i = 0; i < plan->nr_keep; i++)
		plan->keep_len += plan->keep[i].len;

	/* RFC 8166 section 3.5.3: inline whenever it fits. */
	head_len = rsvc_encode(io, call, plan);
	if (!head_len || plan->keep_len <= io->conn->agreed.reply_max - head_len)
		return head_len;
	if (!rail_rpcrdma_reply_chunk(call->buf->addr, &call->hdr.lists, &plan->reply) ||
	    plan->keep_len > plan->reply.length)
		return 0;
	plan->long_reply = true;
	return rsvc_encode(io, call, plan);
}

/* One more entry of the Send. Return: NULL when there are too many. */
static struct ib_sge *rsvc_next_sge(struct rsvc_io *io)
{
	struct rsvc_conn *c = io->conn;
	struct ib_sge *sge = &io->sge[io->nr_sge];

	if (io->nr_sge == c->max_sge)
		return NULL;
	io->nr_sge++;
	sge->lkey = c->pd->ib->local_dma_lkey;
	return sge;
}

/* The Send takes these bytes from where they are. */
static bool rsvc_gather_page(struct rsvc_io *io, struct page *page, u32 offset, u32 len)
{
	struct rsvc_conn *c = io->conn;
	struct ib_sge *sge = rsvc_next_sge(io);

	if (!sge)
		return false;
	sge->addr = ib_dma_map_page(c->dev->ib, page, offset, len, DMA_TO_DEVICE);
	if (ib_dma_mapping_error(c->dev->ib, sge->addr))
		return false;
	sge->length = len;
	io->mapped |= BIT(io->nr_sge - 1);
	return true;
}

/* The Send takes a copy of these bytes, from io->head. */
static bool rsvc_gather_copy(struct rsvc_io *io, const struct xdr_buf *res, u32 at, u32 len,
			     u32 *head_len)
{
	struct ib_sge *sge = &io->sge[io->nr_sge - 1];

	if (io->mapped & BIT(io->nr_sge - 1)) {
		sge = rsvc_next_sge(io);
		if (!sge)
			return false;
		sge->addr = io->head_dma + *head_len;
		sge->length = 0;
	}
	WARN_ON_ONCE(read_bytes_from_xdr_buf(res, at, io->head + *head_len, len));
	sge->length += len;
	*head_len += len;
	return true;
}

/*
 * The Send gathers the message: its pages from where they are, small pieces of head and tail from
 * behind the header, so that the thread keeps its own pages. @head_len: bytes used of io->head.
 * Return: false when it has too many pieces.
 */
static bool rsvc_gather(struct rsvc_io *io, const struct xdr_buf *res,
			const struct rsvc_plan *plan, u32 *head_len)
{
	u32 i, at, left, n, offset, used = *head_len;
	bool done, in_pages;
	struct page *page;

	io->sge[0].length = used;
	for (i = 0; i < plan->nr_keep; i++) {
		at = plan->keep[i].at;
		for (left = plan->keep[i].len; left; left -= n, at += n) {
			n = rsvc_piece(res, at, left, &page, &offset);
			if (!n)
				goto undo;
			in_pages = rsvc_in_pages(res, at);
			if (!in_pages && n <= RSVC_COPY_MAX) {
				done = rsvc_gather_copy(io, res, at, n, &used);
			} else {
				done = rsvc_gather_page(io, page, offset, n);
				io->uses_kvecs |= !in_pages;
			}
			if (!done)
				goto undo;
		}
	}
	*head_len = used;
	return true;

undo:
	while (io->nr_sge > 1) {
		io->nr_sge--;
		if (io->mapped & BIT(io->nr_sge))
			ib_dma_unmap_page(io->conn->dev->ib, io->sge[io->nr_sge].addr,
					  io->sge[io->nr_sge].length, DMA_TO_DEVICE);
	}
	io->mapped = 0;
	return false;
}

/* Copy the message behind the header; it fits, for rsvc_plan() looked. */
static u32 rsvc_copy(struct rsvc_io *io, const struct xdr_buf *res, const struct rsvc_plan *plan,
		     u32 head_len)
{
	u32 i;

	for (i = 0; i < plan->nr_keep; i++) {
		WARN_ON_ONCE(read_bytes_from_xdr_buf(res, plan->keep[i].at, io->head + head_len,
						     plan->keep[i].len));
		head_len += plan->keep[i].len;
	}
	return head_len;
}

static int rsvc_write_chunks(struct rsvc_io *io, const struct xdr_buf *res,
			     const struct rsvc_call *call, const struct rsvc_plan *plan)
{
	const void *from = call->buf->addr;
	u32 i;
	int err = 0;

	for (i = 0; i < plan->nr_chunks && !err; i++)
		if (plan->result[i].len)
			err = rsvc_io_transfer(io, res, &plan->result[i], 1, from,
					       &plan->chunk[i], DMA_TO_DEVICE);
	if (plan->long_reply && !err)
		err = rsvc_io_transfer(io, res, plan->keep, plan->nr_keep, from, &plan->reply,
				       DMA_TO_DEVICE);
	if (!err)
		percpu_counter_add(&rsvc_stats[RSVC_STAT_WRITE], io->nr_rw);
	return err;
}

/*
 * The key that the client need not invalidate itself. Of those it sent any will do: all are
 * registered for this call only.
 */
static void rsvc_invalidate(struct rsvc_io *io, const struct rsvc_call *call,
			    const struct rsvc_plan *plan)
{
	const struct rail_rpcrdma_lists *lists = &call->hdr.lists;
	const void *from = call->buf->addr;
	struct rail_rpcrdma_chunk chunk;
	struct rail_rpcrdma_iter it;
	struct rail_rpcrdma_seg seg;

	if (!io->conn->agreed.remote_inval)
		return;
	rail_rpcrdma_read_iter(&it, lists);
	if (plan->nr_chunks && plan->chunk[0].nr_segs)
		chunk = plan->chunk[0];
	else if (!(rail_rpcrdma_reply_chunk(from, lists, &chunk) && chunk.nr_segs) &&
		 !rail_rpcrdma_next_read(from, &it, &chunk))
		return;
	rail_rpcrdma_get_seg(from, &chunk, 0, &seg);
	io->wr.opcode = IB_WR_SEND_WITH_INV;
	io->wr.ex.invalidate_rkey = seg.handle;
}

/*
 * A page of the thread's own that the page cache's took the place of: sunrpc would free it and get
 * another one.
 */
static struct page *rsvc_own_page(struct svc_rqst *rqstp)
{
	struct page *page = rail_svc_replaced(rqstp);

	if (page && (page_count(page) != 1 || PageCompound(page) || page->mapping)) {
		put_page(page);
		page = NULL;
	}
	return page;
}

/*
 * Whose the reply's pages are from now on. What the device is at goes with the reply; without
 * @hold that is nothing. The first page, with head and tail in it, the thread keeps where it can:
 * to get another one, and to have it cleared, costs as much as all the rest of a small reply. The
 * others may be the page cache's: those are never kept.
 */
static void rsvc_part_pages(struct svc_rqst *rqstp, struct rsvc_io *io, bool hold)
{
	struct page **first = rqstp->rq_respages, **last = rqstp->rq_next_page - 1, **pp;
	bool keep = !(hold && io->uses_kvecs);
	u32 n = last + 1 - first;

	if (!n)
		return;
	/* What is kept stands last, behind what sunrpc frees or finds gone. */
	if (keep)
		swap(*first, *last);
	n -= keep;
	if (hold) {
		for (pp = first; pp < first + n; pp++) {
			if (*pp)
				io->pages[io->nr_pages++] = *pp;
			*pp = NULL;
		}
		while (n && (first[n - 1] = rsvc_own_page(rqstp)))
			n--;
		rail_svc_left_pages(rqstp, 0, n);
	} else {
		rail_svc_left_pages(rqstp, n, 0);
	}
}

static u32 rsvc_segs(const struct rsvc_call *call)
{
	return call->hdr.nr_write_segs + call->hdr.lists.nr_reply_segs;
}

/* Build and post. -EMSGSIZE: the reply fits nowhere. */
static int rsvc_reply(struct svc_rqst *rqstp, struct rsvc_conn *c, struct rsvc_call *call)
{
	u32 head_len, pages = rqstp->rq_next_page - rqstp->rq_respages;
	struct xdr_buf *res = &rqstp->rq_res;
	unsigned long end = jiffies + msecs_to_jiffies(RSVC_SILENT_MS);
	struct rsvc_plan plan;
	bool hold;
	struct rsvc_io *io;
	int err = -ENOMEM;

	io = rsvc_reply_get(c);
	if (!io)
		return err;
	if (!rsvc_io_room(io, pages, rsvc_segs(call)))
		goto drop;
	err = -EMSGSIZE;
	head_len = rsvc_plan(io, res, call, &plan);
	if (!head_len)
		goto drop;
	do {
		err = rsvc_write_chunks(io, res, call, &plan);
		if (err != -EAGAIN)
			break;
		/*
		 * The device's regions are in use by other replies, which will go; unless this one
		 * needs more than there are.
		 */
		rsvc_io_unmap(io);
		io->nr_sge = 1;
		usleep_range(500, 1000);
	} while (!test_bit(XPT_CLOSE, &c->xprt.xpt_flags) && time_before(jiffies, end));
	if (err)
		goto drop;
	rsvc_invalidate(io, call, &plan);

	hold = io->nr_rw;
	if (!plan.long_reply) {
		if (plan.keep_len <= RSVC_COPY_MAX || !rsvc_gather(io, res, &plan, &head_len))
			head_len = rsvc_copy(io, res, &plan, head_len);
		else
			hold |= io->mapped;
	}
	rsvc_part_pages(rqstp, io, hold);

	/* The buffer takes another call before the client can know that it may make one. */
	rqstp->rq_xprt_ctxt = NULL;
	rsvc_call_post(call);
	return rsvc_reply_post(io, head_len, !hold);

drop:
	rsvc_reply_drop(io);
	return err;
}

/**
 * rsvc_sendto - send a reply
 * @rqstp: thread
 *
 * Never waits for the client.
 *
 * Return: bytes of the reply, or an error.
 */
int rsvc_sendto(struct svc_rqst *rqstp)
{
	struct rsvc_conn *c = rsvc_conn_of(rqstp->rq_xprt);
	struct rsvc_call *call = rqstp->rq_xprt_ctxt;
	int err;

	if (!call || !rsvc_enter(c))
		return -ENOTCONN;
	err = rsvc_reply(rqstp, c, call);
	rsvc_leave(c);
	switch (err) {
	case 0:
		return rqstp->rq_res.len;
	case -EMSGSIZE:
		/* RFC 8166 section 4.5.2 */
		rsvc_warn(c, "a reply of %u bytes fits neither inline nor into its chunks\n",
			  rqstp->rq_res.len);
		rsvc_send_error(c, &call->hdr, RAIL_RPCRDMA_SEND_ERR_CHUNK);
		return err;
	default:
		/* The client calls again, on its next connection. */
		if (err != -ENOTCONN)
			rsvc_warn(c, "a reply cannot be sent (%pe): closing\n", ERR_PTR(err));
		svc_xprt_deferred_close(&c->xprt);
		return err;
	}
}
