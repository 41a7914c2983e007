// SPDX-License-Identifier: GPL-2.0-only
/*
 * What comes in: replies, their chunks, the end of requests. A request's states stand in clnt.h.
 *
 * Nothing of a message is looked at but in a receive buffer that completed, or in a chunk whose
 * region is dead: the server cannot write there any more.
 */
#include <linux/highmem.h>

#include "clnt.h"

/* ---------------------------------------------------------------- where the reply goes */

static u32 clnt_into_pages(const struct xdr_buf *xdr, const void *from, u32 len)
{
	struct page **page = xdr->pages + (xdr->page_base >> PAGE_SHIFT);
	u32 off = offset_in_page(xdr->page_base);
	u32 left = min(len, xdr->page_len);
	u32 done = left;

	while (left) {
		u32 n = min_t(u32, left, PAGE_SIZE - off);

		memcpy_to_page(*page++, off, from, n);
		from += n;
		left -= n;
		off = 0;
	}
	return done;
}

static u32 clnt_into_kvec(const struct kvec *vec, const void *from, u32 len)
{
	u32 n = min_t(u32, len, vec->iov_len);

	memcpy(vec->iov_base, from, n);
	return n;
}

/* The whole reply is inline. What is longer than the upper layer has room for is cut off. */
static u32 clnt_place_flat(struct clnt_xprt *cx, struct xdr_buf *xdr, const u8 *body, u32 len)
{
	u32 n = clnt_into_kvec(&xdr->head[0], body, len);

	cx->stats.fixup += len - n;
	if (n < len && xdr->page_len)
		n += clnt_into_pages(xdr, body + n, len - n);
	if (n < len)
		n += clnt_into_kvec(&xdr->tail[0], body + n, len - n);
	return n;
}

/*
 * @written bytes of page data came by the write chunk. @rest, of @len bytes in all, is what stands
 * around it: up to the head's size before it. The pad that no chunk carries is made up again.
 * @rest is NULL where the reply chunk put it: then it stands in head and tail already.
 */
static u32 clnt_place_around(struct xdr_buf *xdr, const u8 *rest, u32 len, u32 written)
{
	u32 pad = xdr_pad_size(written);
	struct kvec *tail = &xdr->tail[0];
	u32 n = min_t(u32, len, xdr->head[0].iov_len);
	u32 room, behind;

	if (rest)
		memcpy(xdr->head[0].iov_base, rest, n);
	/* The page data follows what came, not what could have come. */
	xdr->head[0].iov_len = n;
	if (n == len)
		return len + written + pad;

	xdr->page_len = written;
	room = tail->iov_len > pad ? tail->iov_len - pad : 0;
	behind = min(len - n, room);
	if (rest)
		memcpy(tail->iov_base + pad, rest + n, behind);
	else
		memmove(tail->iov_base + pad, tail->iov_base, behind);
	memset(tail->iov_base, 0, min_t(u32, pad, tail->iov_len));
	return n + written + pad + behind;
}

/* Bytes of page data that the write chunk brought. */
static u32 clnt_written(const struct clnt_req *req, const u8 *msg)
{
	struct rail_rpcrdma_iter it;
	struct rail_rpcrdma_chunk chunk;

	rail_rpcrdma_write_iter(&it, &req->hdr.lists);
	return rail_rpcrdma_next_write(msg, &it, &chunk) ? chunk.length : 0;
}

/* Return: how long the reply is. */
static u32 clnt_place(struct clnt_xprt *cx, struct clnt_req *req)
{
	const struct rail_rpcrdma_hdr *hdr = &req->hdr;
	struct xdr_buf *xdr = &req->rqst.rq_rcv_buf;
	const u8 *msg = req->recv->buf->addr;
	u32 written = clnt_written(req, msg);

	cx->stats.rdma_received += written + hdr->reply_len;
	if (hdr->proc != RAIL_RPCRDMA_NOMSG) {
		if (!written)
			return clnt_place_flat(cx, xdr, msg + hdr->body_at, hdr->body_len);
		return clnt_place_around(xdr, msg + hdr->body_at, hdr->body_len, written);
	}
	if (!req->plan.reply_write)
		return hdr->reply_len;
	return clnt_place_around(xdr, NULL, hdr->reply_len, written);
}

/* ---------------------------------------------------------------- the end of a request */

static void clnt_hand_up(struct clnt_xprt *cx, struct clnt_req *req, int error, u32 len)
{
	struct rpc_rqst *rqst = &req->rqst;
	struct rpc_task *task = rqst->rq_task;

	spin_lock(&cx->xprt.queue_lock);
	if (likely(!error)) {
		rqst->rq_private_buf = rqst->rq_rcv_buf;
		xprt_complete_rqst(task, len);
	} else {
		/*
		 * If it does not wait yet, clnt_wait_for_reply() will find the error; that is
		 * called under the same lock.
		 */
		req->error = error;
		if (RPC_IS_QUEUED(task))
			task->tk_status = error;
		rpc_wake_up_queued_task(&cx->xprt.pending, task);
	}
	xprt_unpin_rqst(rqst);
	spin_unlock(&cx->xprt.queue_lock);
}

/* The last one to let go of the request's memory. */
static void clnt_req_end(struct clnt_req *req)
{
	struct clnt_conn *conn = req->conn;
	struct clnt_xprt *cx = conn->cx;
	enum clnt_how how = req->how;
	int error = req->verdict;
	u32 len = 0;

	clnt_segs_put(cx, req);
	if (how == CLNT_REPLIED) {
		if (likely(!error))
			len = clnt_place(cx, req);
		clnt_recv_again(conn, req->recv);
		req->recv = NULL;
	} else if (how == CLNT_DISCONNECTED) {
		/* What it was outstanding on is gone. */
		spin_lock(&cx->xprt.transport_lock);
		xprt_release_rqst_cong(req->rqst.rq_task);
		spin_unlock(&cx->xprt.transport_lock);
	}

	spin_lock(&cx->lock);
	list_del(&req->conn_entry);
	req->state = CLNT_IDLE;
	if (conn->gone && list_empty(&conn->reqs))
		wake_up(&conn->idle);
	spin_unlock(&cx->lock);
	/* The connection may be freed from here on. */

	complete_all(&req->quiet);
	/* A killed one may be in use again; one that has a reply is pinned. */
	if (how == CLNT_REPLIED)
		clnt_hand_up(cx, req, error, len);
}

/**
 * clnt_req_put - let go of a request's memory
 * @req: the request
 *
 * Context: sleeps where it is the last one.
 */
void clnt_req_put(struct clnt_req *req)
{
	if (refcount_dec_and_test(&req->refs))
		clnt_req_end(req);
}

/* Its regions may be dealt with only when nothing is on the device any more. */
static void clnt_await_drain(struct clnt_req *req)
{
	struct clnt_xprt *cx = req->conn->cx;
	bool gone;

	spin_lock(&cx->lock);
	gone = req->conn->gone;
	req->wait_drain = !gone;
	spin_unlock(&cx->lock);
	if (gone)
		clnt_req_put(req);
}

static void clnt_inv_done(struct rail_cqe *cqe, struct ib_wc *wc)
{
	struct clnt_req *req = container_of(cqe, struct clnt_req, inv);
	struct clnt_seg *seg;

	list_for_each_entry(seg, &req->segs, entry) {
		if (seg->mr->state != RAIL_MR_INVALIDATING)
			continue;
		if (likely(wc->status == IB_WC_SUCCESS))
			rail_mr_invalidated(seg->mr);
		else
			rail_mr_failed(seg->mr);
	}
	clnt_req_put(req);
}

static void clnt_inv_failed(struct rail_chain *chain)
{
	clnt_await_drain(container_of(chain, struct clnt_req, inv_chain));
}

/* Make the keys dead that the server did not. Whoever ended the request calls this. */
static void clnt_invalidate(struct clnt_xprt *cx, struct clnt_req *req)
{
	struct rail_chain *chain = &req->inv_chain;
	struct ib_send_wr *wr = NULL;
	struct clnt_seg *seg;

	rail_chain_init(chain);
	list_for_each_entry(seg, &req->segs, entry) {
		if (seg->mr->state != RAIL_MR_VALID)
			continue;
		if (wr)
			rail_chain_add(chain, wr);
		wr = rail_mr_inv_wr(seg->mr);
		cx->stats.local_invals++;
	}
	if (!wr)
		return;
	rail_chain_add_signalled(chain, wr, &req->inv);
	chain->failed = clnt_inv_failed;
	refcount_inc(&req->refs);
	if (unlikely(rail_post_queued(req->conn->rc, chain)))
		clnt_await_drain(req);
}

/* Return: whether it is the caller's to end. */
static bool clnt_claim(struct clnt_xprt *cx, struct clnt_conn *conn, struct clnt_req *req,
		       enum clnt_how how)
{
	bool ours;

	spin_lock(&cx->lock);
	ours = req->state == CLNT_SENT && (!conn || req->conn == conn);
	if (ours) {
		req->state = CLNT_ENDING;
		req->how = how;
	}
	spin_unlock(&cx->lock);
	return ours;
}

/**
 * clnt_req_kill - nobody wants the reply any more
 * @req: request that sunrpc no longer knows
 *
 * When it returns, neither the device nor the server can reach the request's memory.
 *
 * Context: sleeps, until the invalidation completed or the connection is drained.
 */
void clnt_req_kill(struct clnt_req *req)
{
	struct clnt_xprt *cx = clnt_xprt(req->rqst.rq_xprt);

	if (READ_ONCE(req->state) == CLNT_SENT && clnt_claim(cx, NULL, req, CLNT_KILLED)) {
		clnt_invalidate(cx, req);
		clnt_req_put(req);
	}
	wait_for_completion(&req->quiet);
}

/**
 * clnt_reqs_disconnected - end what is left on a connection
 * @conn: connection that is closed
 *
 * Context: sleeps. No request refers to the connection when it returns.
 */
void clnt_reqs_disconnected(struct clnt_conn *conn)
{
	struct clnt_xprt *cx = conn->cx;
	struct clnt_req *req;

	spin_lock(&cx->lock);
	conn->gone = true;
again:
	list_for_each_entry(req, &conn->reqs, conn_entry) {
		if (req->state == CLNT_SENT) {
			req->state = CLNT_ENDING;
			req->how = CLNT_DISCONNECTED;
		} else if (req->wait_drain) {
			req->wait_drain = false;
		} else {
			continue;
		}
		cx->stats.regions_left += !list_empty(&req->segs);
		spin_unlock(&cx->lock);
		clnt_req_put(req);
		spin_lock(&cx->lock);
		goto again;
	}
	/* Left are killed ones on their way through clnt_req_kill(). */
	while (!list_empty(&conn->reqs)) {
		spin_unlock(&cx->lock);
		wait_event(conn->idle, list_empty_careful(&conn->reqs));
		spin_lock(&cx->lock);
	}
	spin_unlock(&cx->lock);
}

/**
 * clnt_req_init - a new slot
 * @req: zeroed
 */
void clnt_req_init(struct clnt_req *req)
{
	INIT_LIST_HEAD(&req->segs);
	init_completion(&req->quiet);
	complete_all(&req->quiet);
	rail_cqe_init_send(&req->inv, clnt_inv_done);
}

/* ---------------------------------------------------------------- a reply */

/* transport_lock held. */
static void clnt_set_limit(struct clnt_xprt *cx, u32 grant)
{
	if (clnt_credit_grant(&cx->credit, grant))
		cx->xprt.cwnd = (unsigned long)cx->credit.limit << RPC_CWNDSHIFT;
}

static void clnt_granted(struct clnt_xprt *cx, u32 grant)
{
	if (likely(grant == READ_ONCE(cx->credit.limit)))
		return;
	spin_lock(&cx->xprt.transport_lock);
	clnt_set_limit(cx, grant);
	spin_unlock(&cx->xprt.transport_lock);
}

/* cx->lock held. A call that was sent over the connection and is not answered yet. */
static struct clnt_req *clnt_find_sent(struct clnt_conn *conn, u32 xid)
{
	struct clnt_req *req;

	list_for_each_entry(req, &conn->reqs, conn_entry)
		if (req->state == CLNT_SENT && req->rqst.rq_xid == cpu_to_be32(xid))
			return req;
	return NULL;
}

/*
 * An answer to a call that sunrpc knows no longer: it was killed, perhaps, and then there is a
 * credit more. sunrpc forgets a call first and releases it (clnt_release_request()) a little later;
 * an answer that comes between the two ends the call here, and the release gives back the credit.
 * transport_lock, under which sunrpc releases, makes it one or the other.
 *
 * Return: the call, claimed; NULL: its memory is not in use any more, or there was no such call.
 */
static struct clnt_req *clnt_late_reply(struct clnt_conn *conn, const struct rail_rpcrdma_hdr *hdr,
					bool good)
{
	struct clnt_xprt *cx = conn->cx;
	struct rpc_xprt *xprt = &cx->xprt;
	struct clnt_req *req;
	bool held, late;

	spin_lock(&xprt->transport_lock);
	spin_lock(&cx->lock);
	req = clnt_find_sent(conn, hdr->xid);
	if (req) {
		req->state = CLNT_ENDING;
		req->how = CLNT_KILLED;
	}
	spin_unlock(&cx->lock);
	held = req && req->rqst.rq_cong;
	late = clnt_credit_late(&cx->credit, held);
	if (late)
		xprt->cong -= RPC_CWNDSCALE;
	if (good && (late || held))
		clnt_set_limit(cx, hdr->credit);
	spin_unlock(&xprt->transport_lock);
	if (late) {
		/* This is how to wake whoever waits for a credit, without a task of one's own. */
		clear_bit(XPRT_CWND_WAIT, &xprt->state);
		xprt_wait_for_buffer_space(xprt);
		clnt_wake_senders(cx);
	}
	return req;
}

static void clnt_remote_invalidated(struct clnt_conn *conn, struct clnt_req *req, u32 key)
{
	struct clnt_seg *seg;

	list_for_each_entry(seg, &req->segs, entry) {
		if (rail_mr_rkey(seg->mr) == key && seg->mr->state == RAIL_MR_VALID) {
			rail_mr_invalidated(seg->mr);
			return;
		}
	}
	/* Whose it was we do not know, and must not find out by its next use. */
	pr_warn_ratelimited("%s: server invalidated a key that is not of the call it answers: closing\n",
			    rail_conn_name(conn->rc));
	rail_conn_close(conn->rc, -EPROTO);
}

/* What the RPC ends with, if the reply is none. */
static int clnt_reply_error(struct clnt_conn *conn, struct clnt_req *req, const u8 *msg,
			    enum rail_rpcrdma_reason reason)
{
	const struct rail_rpcrdma_hdr *hdr = &req->hdr;

	if (!reason && hdr->proc == RAIL_RPCRDMA_ERROR) {
		if (hdr->err == RAIL_RPCRDMA_ERR_VERS) {
			pr_warn_ratelimited("%s: server speaks RPC-over-RDMA versions %u to %u only, and we speak 1: use another server or proto=tcp\n",
					    rail_conn_name(conn->rc), hdr->vers_low,
					    hdr->vers_high);
			return -EPROTONOSUPPORT;
		}
		pr_warn_ratelimited("%s: server did not understand the chunks of a call, or had no room for its reply: the call fails\n",
				    rail_conn_name(conn->rc));
		return -EIO;
	}
	if (!reason)
		reason = rail_rpcrdma_check_returned(req->offer, &req->offered, msg, &hdr->lists);
	if (likely(!reason))
		return 0;
	pr_warn_ratelimited("%s: reply refused: %s: the call fails\n", rail_conn_name(conn->rc),
			    rail_rpcrdma_reason_text(reason));
	return reason == RAIL_RPCRDMA_BAD_VERS ? -EPROTONOSUPPORT : -EIO;
}

/* Return: the request that waits for it, pinned and claimed; NULL: nobody does. */
static struct clnt_req *clnt_reply_to(struct clnt_conn *conn, u32 xid, bool *late)
{
	struct clnt_xprt *cx = conn->cx;
	struct rpc_xprt *xprt = &cx->xprt;
	struct rpc_rqst *rqst;

	spin_lock(&xprt->queue_lock);
	rqst = xprt_lookup_rqst(xprt, cpu_to_be32(xid));
	if (likely(rqst))
		xprt_pin_rqst(rqst);
	spin_unlock(&xprt->queue_lock);
	*late = !rqst;
	if (unlikely(!rqst))
		return NULL;
	if (likely(clnt_claim(cx, conn, clnt_req(rqst), CLNT_REPLIED)))
		return clnt_req(rqst);
	/* It was not sent here, or is answered already. */
	spin_lock(&xprt->queue_lock);
	xprt_unpin_rqst(rqst);
	spin_unlock(&xprt->queue_lock);
	return NULL;
}

/* Take back the memory of a request whose reply has come and that was claimed. */
static void clnt_end(struct clnt_conn *conn, struct clnt_req *req, const struct ib_wc *wc)
{
	if (wc->wc_flags & IB_WC_WITH_INVALIDATE)
		clnt_remote_invalidated(conn, req, wc->ex.invalidate_rkey);
	clnt_invalidate(conn->cx, req);
	clnt_req_put(req);
}

/* Return: false when the receive is free again. */
static bool clnt_reply(struct clnt_conn *conn, struct clnt_recv *recv,
		       const struct rail_rpcrdma_hdr *hdr, enum rail_rpcrdma_reason reason,
		       const struct ib_wc *wc)
{
	struct clnt_xprt *cx = conn->cx;
	struct clnt_req *req;
	bool late;

	req = clnt_reply_to(conn, hdr->xid, &late);
	if (unlikely(!req)) {
		cx->stats.bad_replies++;
		if (late)
			req = clnt_late_reply(conn, hdr,
					      !reason && hdr->proc != RAIL_RPCRDMA_ERROR);
		if (req)
			clnt_end(conn, req, wc);
		return false;
	}
	req->recv = recv;
	req->hdr = *hdr;
	req->verdict = clnt_reply_error(conn, req, recv->buf->addr, reason);
	if (unlikely(req->verdict))
		cx->stats.bad_replies++;
	else
		clnt_granted(cx, hdr->credit);
	if (refcount_read(&req->refs) > 1)
		cx->stats.reply_waits++;
	clnt_end(conn, req, wc);
	return true;
}

/* ---------------------------------------------------------------- receives */

/* Chunks in a reverse call are decoded to be refused by name. */
static const struct rail_rpcrdma_rules clnt_rules = {
	.max_read_segs = CLNT_CALL_SEGS,
	.max_read_chunks = CLNT_CALL_SEGS,
	.max_write_chunks = CLNT_CALL_SEGS,
	.max_chunk_segs = CLNT_CALL_SEGS,
	.home = RAIL_RPC_REPLY,
};

/* Return: false when the receive is free again. */
static bool clnt_message(struct clnt_conn *conn, struct clnt_recv *recv, const struct ib_wc *wc)
{
	enum rail_rpcrdma_verdict verdict;
	enum rail_rpcrdma_reason reason;
	struct rail_rpcrdma_hdr hdr;

	reason = rail_rpcrdma_decode(recv->buf->addr, wc->byte_len, &clnt_rules, &hdr);
	if (likely(!reason)) {
		if (hdr.proc == RAIL_RPCRDMA_DONE)
			return false;
		if (likely(hdr.dir == RAIL_RPC_REPLY))
			return clnt_reply(conn, recv, &hdr, reason, wc);
		clnt_back_call(conn, recv->buf->addr, &hdr);
		return false;
	}
	verdict = rail_rpcrdma_answer(reason, &hdr);
	if (verdict != RAIL_RPCRDMA_DROP) {
		clnt_send_error(conn, hdr.xid, verdict);
		return false;
	}
	if (reason == RAIL_RPCRDMA_SHORT || hdr.dir != RAIL_RPC_REPLY) {
		conn->cx->stats.bad_replies++;
		return false;
	}
	return clnt_reply(conn, recv, &hdr, reason, wc);
}

static void clnt_recv_done(struct rail_cqe *cqe, struct ib_wc *wc)
{
	struct clnt_recv *recv = container_of(cqe, struct clnt_recv, cqe);

	if (unlikely(wc->status != IB_WC_SUCCESS))
		return;
	rail_buf_for_cpu(recv->buf, wc->byte_len);
	if (!clnt_message(recv->conn, recv, wc))
		clnt_recv_again(recv->conn, recv);
}

/**
 * clnt_recv_again - post a receive again, by and by
 * @conn: connection
 * @recv: receive nobody needs any more
 *
 * Context: any but irq.
 */
void clnt_recv_again(struct clnt_conn *conn, struct clnt_recv *recv)
{
	struct rail_recv_batch batch;

	spin_lock(&conn->cx->lock);
	rail_recv_batch_add(&conn->repost, &recv->wr, &recv->cqe);
	batch = conn->repost;
	if (batch.n >= CLNT_RECV_BATCH)
		rail_recv_batch_init(&conn->repost);
	spin_unlock(&conn->cx->lock);
	/* If that fails the connection is closing, and the receive stays where it is. */
	if (batch.n >= CLNT_RECV_BATCH)
		rail_post_recvs(conn->rc, &batch);
}

/**
 * clnt_recv_init - prepare a receive
 * @recv: with connection and buffer
 */
void clnt_recv_init(struct clnt_recv *recv)
{
	rail_cqe_init_recv(&recv->cqe, clnt_recv_done);
	recv->wr.sg_list = &recv->buf->sge;
	recv->wr.num_sge = 1;
}
