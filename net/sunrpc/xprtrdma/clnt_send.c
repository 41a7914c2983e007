// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls: how each travels, registration of its chunks, the header, the send. Fast path first, units
 * and what is cached after it.
 */
#include <linux/highmem.h>
#include <linux/slab.h>
#include <linux/sunrpc/bc_xprt.h>
#include <linux/sunrpc/clnt.h>

#include "clnt.h"

/* What the marshalling of one call carries along. XPRT_LOCKED is held. */
struct clnt_marshal {
	struct clnt_xprt *cx;
	struct clnt_conn *conn;
	struct clnt_req *req;
	struct rail_chain chain;
	struct rail_rpcrdma_enc enc;
	bool waiting;		/* the next one who makes room wakes us */
};

/*
 * Something is missing that somebody will give back, and wake us then: they look at the flag after
 * that, so the caller tries once more after it set the flag.
 */
static bool clnt_want_wake(struct clnt_marshal *m)
{
	if (m->waiting)
		return false;
	m->waiting = true;
	xprt_wait_for_buffer_space(&m->cx->xprt);
	return true;
}

/* ---------------------------------------------------------------- registration */

static struct clnt_seg *clnt_seg_get(struct clnt_xprt *cx)
{
	struct clnt_seg *seg;

	spin_lock(&cx->seg_lock);
	seg = list_first_entry_or_null(&cx->segs, struct clnt_seg, entry);
	if (seg)
		list_del(&seg->entry);
	spin_unlock(&cx->seg_lock);
	if (likely(seg))
		return seg;

	seg = kzalloc(sizeof(*seg), rpc_task_gfp_mask());
	if (!seg)
		return NULL;
	seg->sg = kmalloc_array(CLNT_MR_PAGES, sizeof(*seg->sg), rpc_task_gfp_mask());
	if (!seg->sg) {
		kfree(seg);
		return NULL;
	}
	return seg;
}

static void clnt_seg_put(struct clnt_xprt *cx, struct clnt_seg *seg)
{
	spin_lock(&cx->seg_lock);
	list_add(&seg->entry, &cx->segs);
	spin_unlock(&cx->seg_lock);
}

/**
 * clnt_segs_free - free what is cached
 * @cx: transport without connection
 */
void clnt_segs_free(struct clnt_xprt *cx)
{
	struct clnt_seg *seg, *next;

	list_for_each_entry_safe(seg, next, &cx->segs, entry) {
		kfree(seg->sg);
		kfree(seg);
	}
	INIT_LIST_HEAD(&cx->segs);
}

/**
 * clnt_segs_put - give back the regions of a request
 * @cx: transport
 * @req: request whose regions the server cannot reach any more, or whose connection is drained
 *
 * Context: sleeps where a region is still valid: it is deregistered then.
 */
void clnt_segs_put(struct clnt_xprt *cx, struct clnt_req *req)
{
	struct clnt_seg *seg, *next;

	list_for_each_entry_safe(seg, next, &req->segs, entry) {
		if (seg->mr->state != RAIL_MR_MAPPED)
			cx->stats.regions_replaced++;
		rail_mr_put(seg->mr);
		clnt_seg_put(cx, seg);
	}
	INIT_LIST_HEAD(&req->segs);
}

/* The chain was not posted: the registrations are as if they had never been. */
static void clnt_segs_undo(struct clnt_xprt *cx, struct clnt_req *req)
{
	struct clnt_seg *seg;

	list_for_each_entry(seg, &req->segs, entry)
		rail_mr_invalidated(seg->mr);
	clnt_segs_put(cx, req);
}

static int clnt_register(struct clnt_marshal *m, struct clnt_seg *seg, int nents, u32 len,
			 bool write, struct rail_rpcrdma_seg *wire)
{
	enum dma_data_direction dir = write ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	int access = write ? IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE :
			     IB_ACCESS_REMOTE_READ;
	struct rail_mr *mr;
	int err;

	mr = rail_mr_get(m->conn->mrs);
	if (!mr && clnt_want_wake(m))
		mr = rail_mr_get(m->conn->mrs);
	if (!mr)
		return -EAGAIN;
	err = rail_mr_map(mr, seg->sg, nents, len, dir);
	if (err) {
		rail_mr_put(mr);
		/* No room in an IOMMU, say: it passes. */
		return WARN_ON_ONCE(err == -EINVAL) ? -EIO : -ENOBUFS;
	}
	seg->mr = mr;
	list_add_tail(&seg->entry, &m->req->segs);
	rail_chain_add(&m->chain, rail_mr_reg_wr(mr, access));
	wire->handle = rail_mr_rkey(mr);
	wire->length = mr->ib->length;
	wire->offset = mr->ib->iova;
	return 0;
}

/* In a read chunk at @position; where that is negative, in the open write or reply chunk. */
static int clnt_add_seg(struct clnt_marshal *m, struct clnt_seg *seg, int nents, u32 len,
			s64 position)
{
	struct rail_rpcrdma_seg wire;
	int err;

	err = clnt_register(m, seg, nents, len, position < 0, &wire);
	if (err) {
		clnt_seg_put(m->cx, seg);
		return err;
	}
	if (position < 0)
		rail_rpcrdma_enc_seg(&m->enc, &wire);
	else
		rail_rpcrdma_enc_read(&m->enc, position, &wire);
	return 0;
}

static int clnt_add_kvec(struct clnt_marshal *m, void *base, u32 len, s64 position)
{
	u32 most = m->conn->limits.mr_pages << PAGE_SHIFT;

	while (len) {
		u32 n = min_t(u32, len, most - offset_in_page(base));
		struct clnt_seg *seg = clnt_seg_get(m->cx);
		int err;

		if (!seg)
			return -ENOBUFS;
		sg_init_table(seg->sg, 1);
		sg_set_buf(seg->sg, base, n);
		err = clnt_add_seg(m, seg, 1, n, position);
		if (err)
			return err;
		base += n;
		len -= n;
	}
	return 0;
}

static int clnt_add_pages(struct clnt_marshal *m, const struct xdr_buf *xdr, s64 position)
{
	struct page **page = xdr->pages + (xdr->page_base >> PAGE_SHIFT);
	u32 off = offset_in_page(xdr->page_base);
	u32 left = xdr->page_len;

	while (left) {
		struct clnt_seg *seg = clnt_seg_get(m->cx);
		u32 i, n, len = 0;
		int err;

		if (!seg)
			return -ENOBUFS;
		n = min_t(u32, DIV_ROUND_UP(off + left, PAGE_SIZE), m->conn->limits.mr_pages);
		sg_init_table(seg->sg, n);
		for (i = 0; i < n; i++) {
			u32 part = min_t(u32, left, PAGE_SIZE - off);

			sg_set_page(&seg->sg[i], *page++, part, off);
			len += part;
			left -= part;
			off = 0;
		}
		err = clnt_add_seg(m, seg, n, len, position);
		if (err)
			return err;
	}
	return 0;
}

/* ---------------------------------------------------------------- the header */

static bool clnt_eligible(const struct rpc_rqst *rqst, const struct xdr_buf *xdr, u32 flag)
{
	/* With integrity or privacy the bytes on the wire are no longer those of the pages. */
	return (xdr->flags & flag) &&
	       !test_bit(RPCAUTH_AUTH_DATATOUCH, &rqst->rq_cred->cr_auth->au_flags);
}

static void clnt_shape(struct clnt_shape *shape, const struct xdr_buf *xdr, bool eligible)
{
	shape->head.off = offset_in_page(xdr->head[0].iov_base);
	shape->head.len = xdr->head[0].iov_len;
	shape->pages.off = offset_in_page(xdr->page_base);
	shape->pages.len = xdr->page_len;
	shape->tail.off = offset_in_page(xdr->tail[0].iov_base);
	shape->tail.len = xdr->tail[0].iov_len;
	shape->pad = 0;
	shape->eligible = eligible;
}

static int clnt_plan(struct clnt_conn *conn, struct clnt_req *req)
{
	struct rpc_rqst *rqst = &req->rqst;
	struct clnt_shape call, reply;

	clnt_shape(&call, &rqst->rq_snd_buf,
		   clnt_eligible(rqst, &rqst->rq_snd_buf, XDRBUF_WRITE));
	if (call.eligible && call.pages.len) {
		/* The pad goes where the data goes, or nowhere. */
		call.pad = min_t(u32, xdr_pad_size(call.pages.len), call.tail.len);
		call.tail.off += call.pad;
		call.tail.len -= call.pad;
	}
	clnt_shape(&reply, &rqst->rq_rcv_buf,
		   clnt_eligible(rqst, &rqst->rq_rcv_buf, XDRBUF_READ));
	return clnt_choose(&call, &reply, &conn->limits, &req->plan);
}

/* Where the upper layer wants pages only if there is something to put into them. */
static int clnt_fill_sparse(struct xdr_buf *xdr)
{
	struct page **page = xdr->pages + (xdr->page_base >> PAGE_SHIFT);
	u32 n = DIV_ROUND_UP(offset_in_page(xdr->page_base) + xdr->page_len, PAGE_SIZE);

	for (; n; n--, page++) {
		if (*page)
			continue;
		*page = alloc_page(rpc_task_gfp_mask());
		if (!*page)
			return -ENOBUFS;
	}
	return 0;
}

/* The tail without the pad of page data that travels in a read chunk. */
static struct kvec clnt_call_tail(const struct clnt_req *req)
{
	const struct xdr_buf *xdr = &req->rqst.rq_snd_buf;
	struct kvec tail = xdr->tail[0];
	u32 pad;

	if (req->plan.call_read) {
		pad = min_t(u32, xdr_pad_size(xdr->page_len), tail.iov_len);
		tail.iov_base += pad;
		tail.iov_len -= pad;
	}
	return tail;
}

static int clnt_encode_reads(struct clnt_marshal *m)
{
	struct clnt_req *req = m->req;
	const struct xdr_buf *xdr = &req->rqst.rq_snd_buf;
	const struct clnt_plan *plan = &req->plan;
	struct kvec tail = clnt_call_tail(req);
	int err = 0;

	if (plan->call_long) {
		err = clnt_add_kvec(m, xdr->head[0].iov_base, xdr->head[0].iov_len, 0);
		if (!err && !plan->call_read)
			err = clnt_add_pages(m, xdr, 0);
		if (!err)
			err = clnt_add_kvec(m, tail.iov_base, tail.iov_len, 0);
		m->cx->stats.long_calls++;
	}
	if (!err && plan->call_read)
		err = clnt_add_pages(m, xdr, xdr->head[0].iov_len);
	if (err)
		return err;
	rail_rpcrdma_enc_reads_end(&m->enc);
	m->cx->stats.read_segs += plan->call_segs + plan->read_segs;
	if (plan->call_long)
		m->cx->stats.rdma_sent += xdr->len;
	else if (plan->call_read)
		m->cx->stats.rdma_sent += xdr->page_len;
	return 0;
}

static int clnt_encode_writes(struct clnt_marshal *m)
{
	struct clnt_req *req = m->req;
	const struct xdr_buf *xdr = &req->rqst.rq_rcv_buf;
	const struct clnt_plan *plan = &req->plan;
	int err = 0;

	if (plan->reply_write) {
		rail_rpcrdma_enc_write_begin(&m->enc);
		err = clnt_add_pages(m, xdr, -1);
		if (err)
			return err;
		rail_rpcrdma_enc_chunk_end(&m->enc);
	}
	rail_rpcrdma_enc_writes_end(&m->enc);
	if (!plan->reply_long) {
		rail_rpcrdma_enc_no_reply(&m->enc);
	} else {
		rail_rpcrdma_enc_reply_begin(&m->enc);
		err = clnt_add_kvec(m, xdr->head[0].iov_base, xdr->head[0].iov_len, -1);
		if (!err && !plan->reply_write)
			err = clnt_add_pages(m, xdr, -1);
		if (!err)
			err = clnt_add_kvec(m, xdr->tail[0].iov_base, xdr->tail[0].iov_len, -1);
		if (err)
			return err;
		rail_rpcrdma_enc_chunk_end(&m->enc);
	}
	m->cx->stats.write_segs += plan->write_segs;
	m->cx->stats.reply_segs += plan->reply_segs;
	return 0;
}

/* What comes back is held against what was offered. */
static int clnt_keep_offer(struct clnt_marshal *m, const void *hdr)
{
	struct clnt_req *req = m->req;

	req->offered = m->enc.lists;
	if (!req->plan.reply_write && !req->plan.reply_long)
		return 0;
	if (!req->offer) {
		req->offer = kmalloc(CLNT_HDR_MAX, rpc_task_gfp_mask());
		if (!req->offer)
			return -ENOBUFS;
	}
	memcpy(req->offer, hdr, req->plan.hdr_len);
	return 0;
}

static int clnt_encode(struct clnt_marshal *m, void *hdr)
{
	struct clnt_req *req = m->req;
	int err;

	rail_rpcrdma_enc_init(&m->enc, hdr, req->plan.hdr_len);
	rail_rpcrdma_enc_fixed(&m->enc, be32_to_cpu(req->rqst.rq_xid), m->conn->asked,
			       req->plan.call_long ? RAIL_RPCRDMA_NOMSG : RAIL_RPCRDMA_MSG);
	err = clnt_encode_reads(m);
	if (!err)
		err = clnt_encode_writes(m);
	if (err)
		return err;
	if (WARN_ON_ONCE(rail_rpcrdma_enc_finish(&m->enc) != req->plan.hdr_len))
		return -EIO;
	return clnt_keep_offer(m, hdr);
}

/* ---------------------------------------------------------------- the body */

/* Send the page data from where it is. The pages are ours until the send completed. */
static bool clnt_gather(struct clnt_conn *conn, struct clnt_send *send, const struct xdr_buf *xdr)
{
	struct page **page = xdr->pages + (xdr->page_base >> PAGE_SHIFT);
	struct ib_device *ib = conn->pd->dev->ib;
	u32 off = offset_in_page(xdr->page_base);
	u32 left = xdr->page_len;

	if (DIV_ROUND_UP(off + left, PAGE_SIZE) + 2 > conn->max_sge)
		return false;
	while (left) {
		u32 n = min_t(u32, left, PAGE_SIZE - off);
		struct ib_sge *sge = &send->sge[send->nr_pages + 1];

		sge->addr = ib_dma_map_page(ib, *page++, off, n, DMA_TO_DEVICE);
		if (ib_dma_mapping_error(ib, sge->addr))
			return false;
		sge->length = n;
		sge->lkey = conn->pd->ib->local_dma_lkey;
		send->nr_pages++;
		left -= n;
		off = 0;
	}
	return true;
}

static void clnt_ungather(struct clnt_send *send)
{
	struct ib_device *ib = send->conn->pd->dev->ib;

	while (send->nr_pages) {
		struct ib_sge *sge = &send->sge[send->nr_pages--];

		ib_dma_unmap_page(ib, sge->addr, sge->length, DMA_TO_DEVICE);
	}
}

static void clnt_body(struct clnt_marshal *m, struct clnt_send *send)
{
	struct clnt_req *req = m->req;
	const struct xdr_buf *xdr = &req->rqst.rq_snd_buf;
	struct kvec tail = clnt_call_tail(req);
	void *buf = send->buf->addr;
	u32 len = req->plan.hdr_len;
	struct ib_sge *last;

	send->wr.num_sge = 1;
	if (req->plan.call_long)
		goto out;
	if (!xdr->page_len || req->plan.call_read) {
		memcpy(buf + len, xdr->head[0].iov_base, xdr->head[0].iov_len);
		len += xdr->head[0].iov_len;
		memcpy(buf + len, tail.iov_base, tail.iov_len);
		len += tail.iov_len;
		goto out;
	}
	if (xdr->page_len < CLNT_GATHER_MIN || !clnt_gather(m->conn, send, xdr)) {
		clnt_ungather(send);
		WARN_ON_ONCE(read_bytes_from_xdr_buf(xdr, 0, buf + len, xdr->len));
		len += xdr->len;
		m->cx->stats.pullup += xdr->page_len;
		goto out;
	}
	memcpy(buf + len, xdr->head[0].iov_base, xdr->head[0].iov_len);
	len += xdr->head[0].iov_len;
	send->sge[0].length = len;
	send->wr.num_sge += send->nr_pages;
	if (tail.iov_len) {
		/* Behind the pages, though in the same buffer. */
		memcpy(buf + len, tail.iov_base, tail.iov_len);
		last = &send->sge[send->wr.num_sge++];
		last->addr = send->sge[0].addr + len;
		last->length = tail.iov_len;
		last->lkey = send->sge[0].lkey;
		len += tail.iov_len;
	}
	rail_buf_for_device(send->buf, len);
	return;
out:
	send->sge[0].length = len;
	rail_buf_for_device(send->buf, len);
}

/* ---------------------------------------------------------------- posting */

static void clnt_send_done(struct rail_cqe *cqe, struct ib_wc *wc)
{
	struct clnt_send *send = container_of(cqe, struct clnt_send, cqe);
	struct clnt_conn *conn = send->conn;
	struct clnt_xprt *cx = conn->cx;
	struct clnt_req *req;
	struct clnt_send *s;

	/* Under the lock: it can complete before clnt_send_post() has noted what it is. */
	spin_lock(&cx->lock);
	req = send->req;
	clnt_ungather(send);
	if (send->passed) {
		list_add(&send->entry, &conn->free_sends);
	} else {
		do {
			s = conn->ring[conn->ring_tail++ & conn->ring_mask];
			if (s->signalled && s != send)
				s->passed = true;
			else
				list_add(&s->entry, &conn->free_sends);
		} while (s != send);
	}
	spin_unlock(&cx->lock);
	if (req)
		clnt_req_put(req);
	clnt_wake_senders(cx);
}

/**
 * clnt_send_post - post a message
 * @conn: connection that is up
 * @send: the message
 * @chain: what goes before it; the send is appended
 * @req: the call; NULL: it is none
 *
 * From here on a reply may come, so the request is SENT when the lock is let go. Units are given
 * back in the order in which they are posted.
 *
 * Context: any but irq.
 * Return: 0, or as rail_post(); then nothing was posted, and the unit is the caller's.
 */
int clnt_send_post(struct clnt_conn *conn, struct clnt_send *send, struct rail_chain *chain,
		   struct clnt_req *req)
{
	struct clnt_xprt *cx = conn->cx;
	bool first = !chain->n || chain->last != &send->wr;
	int err;

	/*
	 * A software device works in a softirq that the post raises. From a thread that would be
	 * ksoftirqd's work, two switches away; so it is done here, once the lock is let go.
	 */
	local_bh_disable();
	spin_lock(&cx->lock);
	send->signalled = send->nr_pages || conn->unsignalled + 1 >= CLNT_SIGNAL_EVERY;
	send->passed = false;
	send->req = NULL;
	if (first)
		rail_chain_add(chain, &send->wr);
	if (send->signalled) {
		send->wr.send_flags |= IB_SEND_SIGNALED;
		send->wr.wr_cqe = &send->cqe.cqe;
		chain->signalled = chain->n;
	} else {
		send->wr.send_flags &= ~IB_SEND_SIGNALED;
		chain->signalled = 0;
	}
	err = conn->gone ? -ENOTCONN : rail_post(conn->rc, chain);
	if (!err) {
		conn->unsignalled = send->signalled ? 0 : conn->unsignalled + 1;
		conn->ring[conn->ring_head++ & conn->ring_mask] = send;
		if (req) {
			req->conn = conn;
			req->state = CLNT_SENT;
			req->wait_drain = false;
			refcount_set(&req->refs, send->nr_pages ? 2 : 1);
			if (send->nr_pages)
				send->req = req;
			reinit_completion(&req->quiet);
			list_add_tail(&req->conn_entry, &conn->reqs);
		}
	}
	spin_unlock(&cx->lock);
	local_bh_enable();
	return err;
}

static int clnt_send_call(struct clnt_marshal *m)
{
	struct clnt_conn *conn = m->conn;
	struct clnt_req *req = m->req;
	struct clnt_send *send;
	int err;

	if (req->rqst.rq_rcv_buf.flags & XDRBUF_SPARSE_PAGES) {
		err = clnt_fill_sparse(&req->rqst.rq_rcv_buf);
		if (err)
			return err;
	}
	err = clnt_plan(conn, req);
	if (err) {
		pr_warn_ratelimited("%s: a call of %u bytes with a reply of up to %u has no room in %u and %u bytes inline: it fails. Raise rdma_max_inline_write and rdma_max_inline_read in /proc/sys/sunrpc, here or on the server\n",
				    rail_conn_name(conn->rc), req->rqst.rq_snd_buf.len,
				    req->rqst.rq_rcv_buf.buflen, conn->limits.call_max,
				    conn->limits.reply_max);
		return -EIO;
	}

	send = clnt_send_get(conn);
	if (!send) {
		m->cx->stats.no_send_unit++;
		if (clnt_want_wake(m))
			send = clnt_send_get(conn);
		if (!send)
			return -EAGAIN;
	}
	rail_chain_init(&m->chain);
	err = clnt_encode(m, send->buf->addr);
	if (err)
		goto undo;
	clnt_body(m, send);

	err = clnt_send_post(conn, send, &m->chain, req);
	if (err == -EAGAIN && clnt_want_wake(m))
		err = clnt_send_post(conn, send, &m->chain, req);
	if (!err)
		return 0;
	clnt_ungather(send);
	if (err != -EAGAIN) {
		xprt_force_disconnect(&m->cx->xprt);
		err = -ENOTCONN;
	}
undo:
	clnt_segs_undo(m->cx, req);
	clnt_send_put(conn, send);
	return err;
}

/*
 * sunrpc encrypts a call anew before it sends it again, into other pages, and frees the old ones
 * first. The device and the server may still be at those: sunrpc does not wait for clnt_close(),
 * and a call that it has waited for too long it sends again without one. Once the pages are no
 * longer in use it is another connection that the call goes over.
 */
static void clnt_release_encrypted(struct rpc_rqst *rqst)
{
	struct clnt_req *req = clnt_req(rqst);

	if (READ_ONCE(req->state) != CLNT_IDLE) {
		xprt_force_disconnect(rqst->rq_xprt);
		clnt_req_kill(req);
	}
	req->release_encrypted(rqst);
}

static void clnt_guard_encrypted(struct clnt_req *req)
{
	struct rpc_rqst *rqst = &req->rqst;

	if (likely(!rqst->rq_release_snd_buf) ||
	    rqst->rq_release_snd_buf == clnt_release_encrypted)
		return;
	req->release_encrypted = rqst->rq_release_snd_buf;
	rqst->rq_release_snd_buf = clnt_release_encrypted;
}

/* It got a credit and did not use it. */
static void clnt_give_back_credit(struct rpc_rqst *rqst)
{
	spin_lock(&rqst->rq_xprt->transport_lock);
	xprt_release_rqst_cong(rqst->rq_task);
	spin_unlock(&rqst->rq_xprt->transport_lock);
}

/**
 * clnt_send_request - send a call, or a reply of the reverse direction
 * @rqst: what to send
 *
 * Context: XPRT_LOCKED held; sleeps.
 * Return: 0: sent. -EBADSLT: no credit, -EAGAIN: no room: sunrpc is woken when there is.
 *	   -ENOBUFS: no memory: it tries again later. -ENOTCONN: no connection. -EIO: it can never
 *	   be sent.
 */
int clnt_send_request(struct rpc_rqst *rqst)
{
	struct rpc_xprt *xprt = rqst->rq_xprt;
	struct clnt_marshal m = {
		.cx = clnt_xprt(xprt),
		.req = clnt_req(rqst),
	};
	int err;

	/* Who holds the lock sends what waits, though another connection is wanted already. */
	if (unlikely(!xprt_connected(xprt) || test_bit(XPRT_CLOSE_WAIT, &xprt->state)))
		return -ENOTCONN;
	m.conn = m.cx->conn;
	if (unlikely(bc_prealloc(rqst)))
		return clnt_back_send(m.conn, rqst);

	/*
	 * A transport that never loses a message has no use for the same call twice on a
	 * connection, whose chunks the server might still use. If sunrpc waited long enough to
	 * want that, another connection it is.
	 */
	if (unlikely(READ_ONCE(m.req->state) != CLNT_IDLE)) {
		xprt_force_disconnect(xprt);
		return -ENOTCONN;
	}
	if (!xprt_request_get_cong(xprt, rqst))
		return -EBADSLT;
	clnt_guard_encrypted(m.req);
	rqst->rq_xtime = ktime_get();
	err = clnt_send_call(&m);
	/* But for want of room nobody has to wake us any more, and nobody else might be woken. */
	if (unlikely(m.waiting && err != -EAGAIN))
		clnt_wake_senders(m.cx);
	if (unlikely(err)) {
		m.cx->stats.failed_sends++;
		clnt_give_back_credit(rqst);
		return err;
	}
	rqst->rq_xmit_bytes_sent += rqst->rq_snd_buf.len;
	return 0;
}

/* ---------------------------------------------------------------- units */

/**
 * clnt_send_get - take a unit
 * @conn: connection
 *
 * Return: the unit, or NULL when all are in flight: clnt_wake_senders() comes when one is done.
 */
struct clnt_send *clnt_send_get(struct clnt_conn *conn)
{
	struct clnt_send *send;

	spin_lock(&conn->cx->lock);
	send = list_first_entry_or_null(&conn->free_sends, struct clnt_send, entry);
	if (send)
		list_del(&send->entry);
	spin_unlock(&conn->cx->lock);
	return send;
}

/**
 * clnt_send_put - give back a unit that was not posted
 * @conn: connection
 * @send: the unit
 */
void clnt_send_put(struct clnt_conn *conn, struct clnt_send *send)
{
	spin_lock(&conn->cx->lock);
	list_add(&send->entry, &conn->free_sends);
	spin_unlock(&conn->cx->lock);
}

/**
 * clnt_send_init - prepare a unit
 * @send: unit with connection and buffer
 */
void clnt_send_init(struct clnt_send *send)
{
	rail_cqe_init_send(&send->cqe, clnt_send_done);
	send->sge[0] = send->buf->sge;
	send->wr.opcode = IB_WR_SEND;
	send->wr.sg_list = send->sge;
}

/**
 * clnt_send_error - answer a header that was refused
 * @conn: connection
 * @xid: of that header
 * @verdict: what to say
 *
 * If there is no room it is not said: the peer's own timeout tells it then.
 */
void clnt_send_error(struct clnt_conn *conn, u32 xid, enum rail_rpcrdma_verdict verdict)
{
	struct clnt_send *send = clnt_send_get(conn);
	struct rail_rpcrdma_enc enc;
	struct rail_chain chain;

	if (!send)
		return;
	rail_rpcrdma_enc_init(&enc, send->buf->addr, rail_buf_pool_size(conn->send_bufs));
	if (verdict == RAIL_RPCRDMA_SEND_ERR_VERS)
		rail_rpcrdma_enc_err_vers(&enc, xid, CLNT_BACK_SLOTS, RAIL_RPCRDMA_VERSION,
					  RAIL_RPCRDMA_VERSION);
	else
		rail_rpcrdma_enc_err_chunk(&enc, xid, CLNT_BACK_SLOTS);
	send->sge[0].length = rail_rpcrdma_enc_finish(&enc);
	send->wr.num_sge = 1;
	rail_buf_for_device(send->buf, send->sge[0].length);
	rail_chain_init(&chain);
	if (clnt_send_post(conn, send, &chain, NULL))
		clnt_send_put(conn, send);
}
