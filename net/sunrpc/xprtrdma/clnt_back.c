// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reverse direction (RFC 8167): calls of the server over our connection, and our replies.
 *
 * Slots are made with the first session and live as long as the transport. Each has a page for the
 * call and one for the reply; both travel inline. The server's credits are a number of slots, not
 * those of the forward direction: a reverse reply takes none of ours, and so is never held up by
 * forward calls that wait for one.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sunrpc/bc_xprt.h>
#include <linux/sunrpc/svc.h>

#include "clnt.h"

/**
 * struct clnt_back - a slot of the reverse direction
 * @rqst: sunrpc's; must be first
 * @entry: in clnt_xprt.back_free while free
 * @conn_id: connection the call came over, on which alone it is answered
 */
struct clnt_back {
	struct rpc_rqst rqst;
	struct list_head entry;
	u32 conn_id;
};

static struct clnt_back *clnt_back(struct rpc_rqst *rqst)
{
	return container_of(rqst, struct clnt_back, rqst);
}

static void clnt_back_free(struct clnt_back *back)
{
	free_page((unsigned long)back->rqst.rq_rcv_buf.head[0].iov_base);
	free_page((unsigned long)back->rqst.rq_snd_buf.head[0].iov_base);
	kfree(back);
}

static struct clnt_back *clnt_back_make(struct clnt_xprt *cx)
{
	struct clnt_back *back = kzalloc(sizeof(*back), GFP_KERNEL);
	unsigned long call, reply;

	if (!back)
		return NULL;
	call = __get_free_page(GFP_KERNEL);
	reply = __get_free_page(GFP_KERNEL);
	if (!call || !reply) {
		free_page(call);
		free_page(reply);
		kfree(back);
		return NULL;
	}
	back->rqst.rq_xprt = &cx->xprt;
	back->rqst.rq_rcv_buf.head[0].iov_base = (void *)call;
	back->rqst.rq_snd_buf.head[0].iov_base = (void *)reply;
	return back;
}

/**
 * clnt_back_setup - a session wants reverse calls
 * @xprt: transport
 * @min_reqs: how many at least
 *
 * Return: 0 or -ENOMEM.
 */
int clnt_back_setup(struct rpc_xprt *xprt, unsigned int min_reqs)
{
	struct clnt_xprt *cx = clnt_xprt(xprt);
	struct clnt_back *back, *next;
	LIST_HEAD(made);
	unsigned int n;

	for (n = 0; n < CLNT_BACK_SLOTS && !READ_ONCE(xprt->bc_alloc_max); n++) {
		back = clnt_back_make(cx);
		if (!back)
			goto nomem;
		list_add(&back->entry, &made);
	}
	spin_lock(&cx->back_lock);
	if (!xprt->bc_alloc_max) {
		list_splice_init(&made, &cx->back_free);
		xprt->bc_alloc_max = n;
	}
	cx->back_ready++;
	spin_unlock(&cx->back_lock);
nomem:
	n = list_empty(&made);
	list_for_each_entry_safe(back, next, &made, entry)
		clnt_back_free(back);
	return n || READ_ONCE(xprt->bc_alloc_max) ? 0 : -ENOMEM;
}

/**
 * clnt_back_destroy - a session is gone, or the transport goes
 * @xprt: transport
 * @max_reqs: as with clnt_back_setup(); UINT_MAX: the transport goes
 */
void clnt_back_destroy(struct rpc_xprt *xprt, unsigned int max_reqs)
{
	struct clnt_xprt *cx = clnt_xprt(xprt);
	struct clnt_back *back, *next;
	LIST_HEAD(freed);

	spin_lock(&cx->back_lock);
	if (cx->back_ready)
		cx->back_ready--;
	if (max_reqs == UINT_MAX) {
		cx->back_ready = 0;
		xprt->bc_alloc_max = 0;
		list_splice_init(&cx->back_free, &freed);
	}
	spin_unlock(&cx->back_lock);
	list_for_each_entry_safe(back, next, &freed, entry)
		clnt_back_free(back);
}

/**
 * clnt_back_maxpayload - the longest reverse call and reply
 * @xprt: transport
 *
 * Context: any; sunrpc calls it under rcu_read_lock().
 * Return: bytes of RPC message.
 */
size_t clnt_back_maxpayload(struct rpc_xprt *xprt)
{
	return READ_ONCE(clnt_xprt(xprt)->back_max);
}

/**
 * clnt_back_num_slots - how many reverse calls may be outstanding
 * @xprt: transport
 *
 * Return: that number.
 */
unsigned int clnt_back_num_slots(struct rpc_xprt *xprt)
{
	return CLNT_BACK_SLOTS;
}

/**
 * clnt_back_free_rqst - a reverse call was answered, or never will be
 * @rqst: its slot
 */
void clnt_back_free_rqst(struct rpc_rqst *rqst)
{
	struct clnt_xprt *cx = clnt_xprt(rqst->rq_xprt);

	clear_bit(RPC_BC_PA_IN_USE, &rqst->rq_bc_pa_state);
	spin_lock(&cx->back_lock);
	list_add(&clnt_back(rqst)->entry, &cx->back_free);
	spin_unlock(&cx->back_lock);
	xprt_put(&cx->xprt);
}

/**
 * clnt_back_send - send a reverse reply
 * @conn: connection that is up
 * @rqst: its slot
 *
 * Context: XPRT_LOCKED held.
 * Return: 0, -EAGAIN: no room, -ENOTCONN: the call came over another connection, and it is for the
 *	   server to send it again; -EMSGSIZE.
 */
int clnt_back_send(struct clnt_conn *conn, struct rpc_rqst *rqst)
{
	const struct xdr_buf *xdr = &rqst->rq_snd_buf;
	struct rpc_xprt *xprt = rqst->rq_xprt;
	struct clnt_send *send;
	struct rail_chain chain;
	u32 len;
	int err;

	if (clnt_back(rqst)->conn_id != rail_conn_id(conn->rc))
		return -ENOTCONN;
	if (RAIL_RPCRDMA_HDR_MIN + xdr->len > conn->limits.call_max)
		return -EMSGSIZE;
	send = clnt_send_get(conn);
	if (!send) {
		xprt_wait_for_buffer_space(xprt);
		send = clnt_send_get(conn);
		if (!send)
			return -EAGAIN;
		xprt_write_space(xprt);
	}
	len = rail_reverse_build(send->buf->addr, conn->limits.call_max, CLNT_BACK_SLOTS, rqst);
	send->sge[0].length = len;
	send->wr.num_sge = 1;
	rail_buf_for_device(send->buf, len);

	rqst->rq_xtime = ktime_get();
	rail_chain_init(&chain);
	err = clnt_send_post(conn, send, &chain, NULL);
	if (err == -EAGAIN) {
		xprt_wait_for_buffer_space(xprt);
		err = clnt_send_post(conn, send, &chain, NULL);
		if (!err)
			xprt_write_space(xprt);
	}
	if (err)
		clnt_send_put(conn, send);
	return !err || err == -EAGAIN ? err : -ENOTCONN;
}

static struct clnt_back *clnt_back_get(struct clnt_xprt *cx, bool *ready)
{
	struct clnt_back *back = NULL;

	spin_lock(&cx->back_lock);
	*ready = cx->back_ready;
	if (*ready)
		back = list_first_entry_or_null(&cx->back_free, struct clnt_back, entry);
	if (back)
		list_del(&back->entry);
	spin_unlock(&cx->back_lock);
	return back;
}

/**
 * clnt_back_call - the server calls
 * @conn: connection
 * @msg: the message
 * @hdr: its header
 *
 * RFC 8167 section 5: whoever has no reverse direction answers nothing; who has one without chunks
 * answers those with ERR_CHUNK.
 */
void clnt_back_call(struct clnt_conn *conn, const void *msg, const struct rail_rpcrdma_hdr *hdr)
{
	struct clnt_xprt *cx = conn->cx;
	struct clnt_back *back;
	struct rpc_rqst *rqst;
	bool ready;

	if (hdr->lists.nr_read_segs || hdr->lists.nr_write_chunks || hdr->lists.has_reply_chunk ||
	    hdr->body_len > PAGE_SIZE) {
		clnt_send_error(conn, hdr->xid, RAIL_RPCRDMA_SEND_ERR_CHUNK);
		return;
	}
	back = clnt_back_get(cx, &ready);
	if (!ready) {
		cx->stats.bad_replies++;
		return;
	}
	if (!back) {
		pr_warn_ratelimited("%s: server has more than the %u callbacks outstanding that it may: closing\n",
				    rail_conn_name(conn->rc), CLNT_BACK_SLOTS);
		rail_conn_close(conn->rc, -EPROTO);
		return;
	}
	rqst = &back->rqst;
	back->conn_id = rail_conn_id(conn->rc);
	xdr_buf_init(&rqst->rq_rcv_buf, rqst->rq_rcv_buf.head[0].iov_base, PAGE_SIZE);
	xdr_buf_init(&rqst->rq_snd_buf, rqst->rq_snd_buf.head[0].iov_base, PAGE_SIZE);
	memcpy(rqst->rq_rcv_buf.head[0].iov_base, msg + hdr->body_at, hdr->body_len);
	rqst->rq_rcv_buf.head[0].iov_len = hdr->body_len;
	rqst->rq_rcv_buf.len = hdr->body_len;
	rqst->rq_private_buf = rqst->rq_rcv_buf;
	rqst->rq_xid = cpu_to_be32(hdr->xid);
	rqst->rq_reply_bytes_recvd = 0;
	rqst->rq_bytes_sent = 0;
	/* Queued before forward calls that have no credit, and never counted among them. */
	rqst->rq_cong = 1;
	set_bit(RPC_BC_PA_IN_USE, &rqst->rq_bc_pa_state);
	atomic_inc(&cx->xprt.bc_slot_count);
	if (!rail_bc_enqueue(rqst)) {
		atomic_dec(&cx->xprt.bc_slot_count);
		xprt_get(&cx->xprt);
		clnt_back_free_rqst(rqst);
	}
}

/**
 * clnt_back_init - no reverse direction yet
 * @cx: new transport
 */
void clnt_back_init(struct clnt_xprt *cx)
{
	spin_lock_init(&cx->back_lock);
	cx->back_max = RAIL_RPCRDMA_INLINE_DEFAULT - RAIL_RPCRDMA_HDR_MIN;
	INIT_LIST_HEAD(&cx->back_free);
}
