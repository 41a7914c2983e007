// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reverse direction (RFC 8167), the server's end: nfsd calls the client back over the client's own
 * connection. sunrpc sees an rpc_xprt that is connected as long as the connection lives and is
 * never connected anew: that is the client's to do.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/clnt.h>
#include "svc.h"

#define RSVC_BACK_HDR_LEN	RAIL_RPCRDMA_HDR_MIN

static struct xprt_class rsvc_back_class;

/* nfsd gives its own; these are for a caller that does not. */
static const struct rpc_timeout rsvc_back_timeout = {
	.to_initval = 30 * HZ,
	.to_maxval = 30 * HZ,
};

/* ---------------------------------------------------------------- what comes back */

/* With a reference; NULL: no reverse direction. */
static struct rpc_xprt *rsvc_back_get(struct rsvc_conn *c)
{
	struct rpc_xprt *xprt;

	spin_lock_bh(&c->lock);
	xprt = c->back;
	if (xprt)
		xprt_get(xprt);
	spin_unlock_bh(&c->lock);
	return xprt;
}

/* How many reverse calls the client takes at a time. */
static void rsvc_back_granted(struct rsvc_conn *c, struct rpc_xprt *xprt, u32 grant)
{
	grant = clamp_t(u32, grant, 1, RSVC_BACK_SLOTS);
	if (grant == READ_ONCE(c->back_grant))
		return;
	WRITE_ONCE(c->back_grant, grant);
	spin_lock(&xprt->transport_lock);
	xprt->cwnd = grant << RPC_CWNDSHIFT;
	spin_unlock(&xprt->transport_lock);
}

/* End a reverse call: @len bytes of reply were copied, or @err. */
static void rsvc_back_end(struct rpc_xprt *xprt, u32 xid, const void *body, u32 len, int err)
{
	struct rpc_rqst *req;
	struct kvec *to;

	spin_lock(&xprt->queue_lock);
	req = xprt_lookup_rqst(xprt, cpu_to_be32(xid));
	if (req) {
		req->rq_private_buf = req->rq_rcv_buf;
		to = &req->rq_private_buf.head[0];
		if (!err && len > to->iov_len)
			err = -EIO;
		if (err) {
			req->rq_task->tk_status = err;
			len = 0;
		} else {
			memcpy(to->iov_base, body, len);
		}
		xprt_complete_rqst(req->rq_task, len);
	}
	spin_unlock(&xprt->queue_lock);
}

/**
 * rsvc_back_reply - a client's reply to a reverse call
 * @c: connection
 * @call: receive it came in
 */
void rsvc_back_reply(struct rsvc_conn *c, struct rsvc_call *call)
{
	const struct rail_rpcrdma_hdr *hdr = &call->hdr;
	struct rpc_xprt *xprt = rsvc_back_get(c);
	int err = 0;

	if (!xprt) {
		rsvc_warn(c, "reply to a call that was not made, dropped\n");
		return;
	}
	/* We offered it nothing that it could have put the reply into. */
	if (hdr->proc != RAIL_RPCRDMA_MSG || hdr->lists.nr_read_segs ||
	    hdr->lists.nr_write_chunks || hdr->lists.has_reply_chunk) {
		rsvc_warn(c, "reply to a reverse call refused: it has chunks\n");
		err = -EIO;
	} else {
		rsvc_back_granted(c, xprt, hdr->credit);
	}
	rsvc_back_end(xprt, hdr->xid, call->buf->addr + hdr->body_at, hdr->body_len, err);
	xprt_put(xprt);
}

/**
 * rsvc_back_error - a client cannot do a reverse call
 * @c: connection
 * @hdr: what it sent
 */
void rsvc_back_error(struct rsvc_conn *c, const struct rail_rpcrdma_hdr *hdr)
{
	struct rpc_xprt *xprt = rsvc_back_get(c);

	if (!xprt)
		return;
	rsvc_back_end(xprt, hdr->xid, NULL, 0,
		      hdr->err == RAIL_RPCRDMA_ERR_VERS ? -EPROTONOSUPPORT : -EIO);
	xprt_put(xprt);
}

/**
 * rsvc_back_gone - the connection ends: no more reverse calls
 * @c: connection
 *
 * sunrpc tells the rpc_xprt itself, by its close operation.
 */
void rsvc_back_gone(struct rsvc_conn *c)
{
	struct rpc_xprt *xprt;

	spin_lock_bh(&c->lock);
	xprt = c->back;
	c->back = NULL;
	spin_unlock_bh(&c->lock);
	if (xprt)
		xprt_put(xprt);
}

/* ---------------------------------------------------------------- what sunrpc asks */

static int rsvc_back_build(struct rsvc_conn *c, struct rpc_rqst *req)
{
	const struct xdr_buf *snd = &req->rq_snd_buf;
	struct rsvc_io *io;
	u32 len;

	if (RSVC_BACK_HDR_LEN + snd->len > min(c->head_size, c->agreed.reply_max))
		return -EMSGSIZE;
	io = rsvc_reply_get(c);
	if (!io)
		return -ENOMEM;
	len = rail_reverse_build(io->head, c->head_size, RSVC_BACK_SLOTS, req);
	req->rq_xtime = ktime_get();
	return rsvc_reply_post(io, len, false);
}

static int rsvc_back_send_request(struct rpc_rqst *req)
{
	/* nfsd holds the svc_xprt as long as it has a client on this rpc_xprt. */
	struct rsvc_conn *c = rsvc_conn_of(req->rq_xprt->bc_xprt);
	int err = -ENOTCONN;

	if (!svc_xprt_is_dead(&c->xprt) && rsvc_enter(c)) {
		/* Kept until sunrpc releases the request: RFC 8167 section 4.1 */
		err = xprt_request_get_cong(req->rq_xprt, req) ? rsvc_back_build(c, req) : -EBADSLT;
		rsvc_leave(c);
	}
	switch (err) {
	case 0:
	case -ENOMEM:
	case -EBADSLT:
		return err;
	case -EMSGSIZE:
		return -EIO;
	default:
		xprt_disconnect_done(req->rq_xprt);
		return -ENOTCONN;
	}
}

static int rsvc_back_alloc(struct rpc_task *task)
{
	struct rpc_rqst *req = task->tk_rqstp;

	req->rq_buffer = kmalloc(req->rq_callsize + req->rq_rcvsize,
				 GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
	if (!req->rq_buffer)
		return -ENOMEM;
	req->rq_rbuffer = req->rq_buffer + req->rq_callsize;
	return 0;
}

static void rsvc_back_free(struct rpc_task *task)
{
	kfree(task->tk_rqstp->rq_buffer);
}

/* The server cannot connect: who asked has to wait for the client, or fail. */
static void rsvc_back_connect(struct rpc_xprt *xprt, struct rpc_task *task)
{
	xprt_clear_connecting(xprt);
	xprt_wake_pending_tasks(xprt, -ENOTCONN);
}

static void rsvc_back_close(struct rpc_xprt *xprt)
{
	xprt_disconnect_done(xprt);
}

static void rsvc_back_destroy(struct rpc_xprt *xprt)
{
	rail_xprt_free_address(xprt);
	xprt_free(xprt);
	module_put(THIS_MODULE);
}

static void rsvc_back_print_stats(struct rpc_xprt *xprt, struct seq_file *seq)
{
}

static const struct rpc_xprt_ops rsvc_back_ops = {
	.connect = rsvc_back_connect,
	.close = rsvc_back_close,
	.destroy = rsvc_back_destroy,
	.buf_alloc = rsvc_back_alloc,
	.buf_free = rsvc_back_free,
	.alloc_slot = xprt_alloc_slot,
	.free_slot = xprt_free_slot,
	.send_request = rsvc_back_send_request,
	.wait_for_reply_request = xprt_wait_for_reply_request_def,
	.print_stats = rsvc_back_print_stats,
	/* The client's grant is the window. */
	.release_request = xprt_release_rqst_cong,
	.reserve_xprt = xprt_reserve_xprt_cong,
	.release_xprt = xprt_release_xprt_cong,
};

static struct rpc_xprt *rsvc_back_setup(struct xprt_create *args)
{
	struct rpc_xprt *xprt;
	struct rsvc_conn *c;
	int err;

	if (!args->bc_xprt || args->bc_xprt->xpt_class != &rsvc_class)
		return ERR_PTR(-EINVAL);
	c = rsvc_conn_of(args->bc_xprt);
	if (args->addrlen > sizeof(xprt->addr))
		return ERR_PTR(-EBADF);
	if (!try_module_get(THIS_MODULE))
		return ERR_PTR(-EINVAL);
	xprt = xprt_alloc(args->net, sizeof(*xprt), RSVC_BACK_SLOTS, RSVC_BACK_SLOTS);
	if (!xprt) {
		module_put(THIS_MODULE);
		return ERR_PTR(-ENOMEM);
	}
	xprt->xprt_class = &rsvc_back_class;
	xprt->ops = &rsvc_back_ops;
	xprt->timeout = &rsvc_back_timeout;
	xprt->prot = XPRT_TRANSPORT_BC_RDMA;
	memcpy(&xprt->addr, args->dstaddr, args->addrlen);
	xprt->addrlen = args->addrlen;
	err = rail_xprt_print_address(xprt);
	if (err)
		goto fail;
	xprt->max_payload = min(c->head_size, c->agreed.reply_max) - RSVC_BACK_HDR_LEN;
	xprt->cwnd = READ_ONCE(c->back_grant) << RPC_CWNDSHIFT;
	xprt_set_bound(xprt);

	/*
	 * Three hold it: who asked, the svc_xprt until it is freed, and we until it is detached.
	 * Two of nfsd's clients that share a connection may ask at the same time.
	 */
	xprt->bc_xprt = args->bc_xprt;
	spin_lock_bh(&c->lock);
	if (args->bc_xprt->xpt_bc_xprt) {
		err = -EBUSY;
	} else {
		xprt_get(xprt);
		args->bc_xprt->xpt_bc_xprt = xprt;
		if (!svc_xprt_is_dead(&c->xprt)) {
			xprt_get(xprt);
			c->back = xprt;
			xprt_set_connected(xprt);
		}
	}
	spin_unlock_bh(&c->lock);
	if (!err)
		return xprt;

fail:
	rail_xprt_free_address(xprt);
	xprt_free(xprt);
	module_put(THIS_MODULE);
	return ERR_PTR(err);
}

static struct xprt_class rsvc_back_class = {
	.list = LIST_HEAD_INIT(rsvc_back_class.list),
	.name = "rdma backchannel",
	.owner = THIS_MODULE,
	.ident = XPRT_TRANSPORT_BC_RDMA,
	.setup = rsvc_back_setup,
	.netid = { "" },
};

/**
 * rsvc_back_init - offer the reverse direction
 *
 * Return: 0, or -EEXIST when another module offers it.
 */
int rsvc_back_init(void)
{
	return xprt_register_transport(&rsvc_back_class);
}

/**
 * rsvc_back_exit - no longer offer it
 */
void rsvc_back_exit(void)
{
	xprt_unregister_transport(&rsvc_back_class);
}
