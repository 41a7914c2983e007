// SPDX-License-Identifier: GPL-2.0-only
/* A client's connection: how it is made, its receives, how it ends. */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include "svc.h"

/* Of a connection's receive buffers, in bytes; but RSVC_MIN_CALLS there are always. */
#define RSVC_RECV_MEMORY	(2 * 1024 * 1024)
#define RSVC_MIN_CALLS		8

/* Calls a thread can be expected to keep up with. */
#define RSVC_CALLS_PER_THREAD	8
#define RSVC_FEW_CALLS		32
/* Quiet replies alone never use up what may be unsent: that is twice the calls. */
static_assert(RSVC_SIGNAL_EVERY <= 2 * RSVC_MIN_CALLS);

/* Connections there are. */
static atomic_t rsvc_conns;

static void rsvc_free_work(struct work_struct *work);

/*
 * How many calls a client may have outstanding. It is asked for at once, since receives are posted
 * before a credit is granted; the grant then follows what the client asks for, up to this.
 */
static u32 rsvc_calls(const struct svc_serv *serv, u32 recv_size)
{
	u32 calls = max_t(u32, RSVC_FEW_CALLS, RSVC_CALLS_PER_THREAD * serv->sv_nrthreads);

	calls = min3(calls, READ_ONCE(rsvc_max_requests), RSVC_RECV_MEMORY / recv_size);
	return max_t(u32, calls, RSVC_MIN_CALLS);
}

static void rsvc_set_addresses(struct rsvc_conn *c)
{
	const struct sockaddr *src = rail_conn_src(c->rail);
	const struct sockaddr *dst = rail_conn_dst(c->rail);

	svc_xprt_set_local(&c->xprt, src, svc_addr_len(src));
	svc_xprt_set_remote(&c->xprt, dst, svc_addr_len(dst));
	/*
	 * Every connection has another port, chosen by the client's CM. nfsd recognises a call that
	 * is sent again after a reconnect by the address, so that must not change.
	 */
	rpc_set_port((struct sockaddr *)&c->xprt.xpt_remote, 0);
}

/* What we say of ourselves. */
static void rsvc_self(struct rail_rpcrdma_conn *self)
{
	self->send_max = READ_ONCE(rsvc_max_req_size);
	self->recv_max = self->send_max;
	self->remote_inval = true;
}

/**
 * rsvc_conn_alloc - make a connection for a client's request
 * @l: listener
 * @rail: the client's connection, not adopted yet
 * @priv: what the client said at connect time; hostile
 * @priv_len: bytes of it
 *
 * Context: sleeps.
 * Return: the connection, with one reference and one on the module; NULL when there is no memory.
 */
struct rsvc_conn *rsvc_conn_alloc(struct rsvc_listener *l, struct rail_conn *rail,
				  const void *priv, u8 priv_len)
{
	struct svc_serv *serv = l->xprt.xpt_server;
	struct rail_rpcrdma_conn client, self;
	struct rsvc_conn *c;
	int kind;

	if (!try_module_get(THIS_MODULE))
		return NULL;
	c = kzalloc(sizeof(*c), GFP_KERNEL);
	if (!c) {
		module_put(THIS_MODULE);
		return NULL;
	}
	atomic_inc(&rsvc_conns);
	svc_xprt_init(l->xprt.xpt_net, &rsvc_class, &c->xprt, serv);
	set_bit(XPT_CONG_CTRL, &c->xprt.xpt_flags);
	set_bit(XPT_CACHE_AUTH, &c->xprt.xpt_flags);
	c->rail = rail;
	rsvc_set_addresses(c);
	spin_lock_init(&c->lock);
	rail_recv_batch_init(&c->repost);
	INIT_LIST_HEAD(&c->ready);
	INIT_LIST_HEAD(&c->pulled);
	INIT_LIST_HEAD(&c->odd);
	INIT_LIST_HEAD(&c->doomed);
	INIT_LIST_HEAD(&c->quiet);
	for (kind = 0; kind < RSVC_NR_KINDS; kind++)
		INIT_LIST_HEAD(&c->idle[kind]);
	refcount_set(&c->users, 1);
	init_completion(&c->left);
	INIT_WORK(&c->odd_work, rsvc_odd_work);
	INIT_WORK(&c->free_work, rsvc_free_work);
	c->back_grant = 1;

	rsvc_self(&self);
	rail_rpcrdma_cm_decode(priv, priv_len, &client);
	rail_rpcrdma_agree(&client, &self, &c->agreed);
	c->head_size = self.send_max;
	c->max_calls = rsvc_calls(serv, self.recv_max);
	c->max_unsent = 2 * c->max_calls;
	c->nr_calls = c->max_calls + RSVC_BACK_SLOTS + RSVC_SPARE_RECVS + RSVC_RECV_BATCH;
	c->max_pages = DIV_ROUND_UP(serv->sv_max_mesg, PAGE_SIZE) + 1;
	c->rules = (struct rail_rpcrdma_rules) {
		.max_msg = serv->sv_max_mesg,
		.max_read_segs = RSVC_MAX_READ_SEGS,
		.max_read_chunks = RSVC_MAX_READ_CHUNKS,
		.max_write_chunks = RSVC_MAX_WRITE_CHUNKS,
		.max_chunk_segs = RSVC_MAX_CHUNK_SEGS,
		.home = RAIL_RPC_CALL,
	};
	return c;
}

/**
 * rsvc_conn_priv - what a client is told when it is accepted
 * @c: connection
 * @priv: filled in, RAIL_RPCRDMA_CM_LEN bytes
 */
void rsvc_conn_priv(struct rsvc_conn *c, void *priv)
{
	struct rail_rpcrdma_conn self;

	rsvc_self(&self);
	/* The size may have been set anew since. */
	self.send_max = c->head_size;
	self.recv_max = c->head_size;
	rail_rpcrdma_cm_encode(priv, &self);
}

/* ---------------------------------------------------------------- receives */

static void rsvc_recv_add(struct rail_recv_batch *batch, struct rsvc_call *call)
{
	rail_buf_for_device(call->buf, call->buf->sge.length);
	rail_recv_batch_add(batch, &call->wr, &call->cqe);
}

/**
 * rsvc_call_post - a call is done with: its buffer takes another message, by and by
 * @call: nobody looks at it any more
 *
 * What waits here are never receives that were granted: RSVC_RECV_BATCH more were made.
 *
 * Context: any but irq. When the connection is closing nothing happens.
 */
void rsvc_call_post(struct rsvc_call *call)
{
	struct rsvc_conn *c = call->conn;
	struct rail_recv_batch batch;

	call->nr_payloads = 0;
	spin_lock_bh(&c->lock);
	rsvc_recv_add(&c->repost, call);
	batch = c->repost;
	if (batch.n >= RSVC_RECV_BATCH)
		rail_recv_batch_init(&c->repost);
	spin_unlock_bh(&c->lock);
	if (batch.n >= RSVC_RECV_BATCH)
		rail_post_recvs(c->rail, &batch);
}

static int rsvc_make_calls(struct rsvc_conn *c)
{
	struct rail_recv_batch batch;
	u32 i;

	c->bufs = rail_buf_pool_create(c->pd, c->head_size, c->nr_calls, DMA_FROM_DEVICE,
				       NUMA_NO_NODE);
	if (IS_ERR(c->bufs)) {
		int err = PTR_ERR(c->bufs);

		c->bufs = NULL;
		return err;
	}
	c->calls = kvcalloc(c->nr_calls, sizeof(*c->calls), GFP_KERNEL);
	if (!c->calls)
		return -ENOMEM;
	rail_recv_batch_init(&batch);
	for (i = 0; i < c->nr_calls; i++) {
		struct rsvc_call *call = &c->calls[i];

		call->conn = c;
		call->buf = rail_buf_get(c->bufs);
		call->wr.sg_list = &call->buf->sge;
		call->wr.num_sge = 1;
		rail_cqe_init_recv(&call->cqe, rsvc_received);
		rsvc_recv_add(&batch, call);
	}
	return rail_post_recvs(c->rail, &batch);
}

static void rsvc_free_calls(struct rsvc_conn *c)
{
	u32 i;

	if (c->calls) {
		for (i = 0; i < c->nr_calls; i++) {
			/* Read, but no thread came to take it over. */
			if (c->calls[i].pull)
				rsvc_io_put(c->calls[i].pull);
			rail_buf_put(c->calls[i].buf);
		}
		kvfree(c->calls);
	}
	if (c->bufs)
		rail_buf_pool_destroy(c->bufs);
}

/* ---------------------------------------------------------------- what rail tells */

static int rsvc_configure(struct rail_conn *rail, struct rail_qp_attr *attr)
{
	struct rsvc_conn *c = rail_conn_context(rail);
	u32 pieces, sge_rd;

	c->dev = rail_conn_dev(rail);
	c->pd = rail_pd_alloc(c->dev);
	if (IS_ERR(c->pd)) {
		int err = PTR_ERR(c->pd);

		c->pd = NULL;
		return err;
	}
	c->max_sge = min_t(u32, RSVC_MAX_SGE, c->dev->max_sge);
	/* A whole message in one segment, page by page, is the longest there can be. */
	sge_rd = clamp_t(u32, c->dev->ib->attrs.max_sge_rd, 1, c->max_sge);
	pieces = c->max_pages + 2 * RSVC_MAX_RANGES;
	c->max_chain = DIV_ROUND_UP(pieces, sge_rd) + 1;

	attr->pd = c->pd;
	attr->max_send_sge = c->max_sge;
	attr->max_chain = c->max_chain;
	attr->send_depth = 2 * c->max_chain + 4 * c->max_calls;
	attr->rw_ctxs = 2 * c->max_calls;
	attr->recv_depth = c->nr_calls;
	/* A call is but decoded and put on a list there; threads do the work. */
	attr->poll = RAIL_POLL_SOFTIRQ;
	return 0;
}

static int rsvc_created(struct rail_conn *rail)
{
	return rsvc_make_calls(rail_conn_context(rail));
}

static void rsvc_established(struct rail_conn *rail, const void *priv, u8 len)
{
	rail_conn_watch_peer(rail, RSVC_SILENT_MS);
	rsvc_offer(rail_conn_context(rail));
}

static void rsvc_closing(struct rail_conn *rail, const void *priv, u8 len)
{
	struct rsvc_conn *c = rail_conn_context(rail);

	rsvc_leave(c);
	svc_xprt_deferred_close(&c->xprt);
	rsvc_unlist(c);
}

static void rsvc_drained(struct rail_conn *rail)
{
	struct rsvc_conn *c = rail_conn_context(rail);

	wait_for_completion(&c->left);
	rsvc_io_release_doomed(c);
}

/* The work that frees it waits for this to return. */
static void rsvc_closed(struct rail_conn *rail)
{
	struct rsvc_conn *c = rail_conn_context(rail);

	wait_for_completion(&c->left);
}

const struct rail_conn_ops rsvc_conn_ops = {
	.configure = rsvc_configure,
	.created = rsvc_created,
	.established = rsvc_established,
	.closing = rsvc_closing,
	.drained = rsvc_drained,
	.closed = rsvc_closed,
};

/* ---------------------------------------------------------------- the end */

/**
 * rsvc_detach - sunrpc gives the connection up; requests on it may still be worked on
 * @xprt: in the connection
 */
void rsvc_detach(struct svc_xprt *xprt)
{
	struct rsvc_conn *c = rsvc_conn_of(xprt);

	rsvc_back_gone(c);
	rail_conn_close(c->rail, 0);
}

static void rsvc_free_work(struct work_struct *work)
{
	struct rsvc_conn *c = container_of(work, struct rsvc_conn, free_work);

	if (c->rail) {
		rail_conn_close(c->rail, 0);
		rail_conn_wait_closed(c->rail);
		/* It posts receives, in vain now, so it needs c->rail. */
		cancel_work_sync(&c->odd_work);
		rail_conn_put(c->rail);
	}
	rsvc_free_calls(c);
	rsvc_io_free_idle(c);
	if (c->pd)
		rail_pd_put(c->pd);
	kfree(c);
	if (atomic_dec_and_test(&rsvc_conns))
		rsvc_spare_free();
}

/**
 * rsvc_free - the last request is done
 * @xprt: in the connection
 */
void rsvc_free(struct svc_xprt *xprt)
{
	struct rsvc_conn *c = rsvc_conn_of(xprt);

	queue_work(rsvc_wq, &c->free_work);
}
