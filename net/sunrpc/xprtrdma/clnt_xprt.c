// SPDX-License-Identifier: GPL-2.0-only
/*
 * The transport class "rdma" as sunrpc knows it: slots and their buffers, set-up and destruction,
 * what is shown in mountstats, and the settings in /proc/sys/sunrpc.
 */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/bc_xprt.h>
#include <linux/sunrpc/clnt.h>
#include <linux/sysctl.h>

#include "clnt.h"

/* A slot's buffers begin with so much and grow to what a call needs. */
#define CLNT_BUF_SIZE		2048

#define CLNT_BIND_TIMEOUT	(60 * HZ)
#define CLNT_IDLE_TIMEOUT	(5 * 60 * HZ)
#define CLNT_CONNECT_TIMEOUT	(30 * HZ)
#define CLNT_MAX_BACKOFF	(30 * HZ)

static const struct rpc_timeout clnt_default_timeout = {
	.to_initval = 60 * HZ,
	.to_maxval = 60 * HZ,
};

/* ---------------------------------------------------------------- slots */

static struct clnt_req *clnt_slot_make(void)
{
	struct clnt_req *req = kzalloc(sizeof(*req), rpc_task_gfp_mask());

	if (req)
		clnt_req_init(req);
	return req;
}

static void clnt_slot_free(struct clnt_req *req)
{
	kfree(req->call_buf);
	kfree(req->reply_buf);
	kfree(req->offer);
	kfree(req);
}

static void clnt_alloc_slot(struct rpc_xprt *xprt, struct rpc_task *task)
{
	struct clnt_xprt *cx = clnt_xprt(xprt);
	struct clnt_req *req;

	spin_lock(&xprt->reserve_lock);
	req = list_first_entry_or_null(&cx->slots, struct clnt_req, entry);
	if (req) {
		list_del(&req->entry);
	} else if (xprt->num_reqs < xprt->max_reqs) {
		xprt->num_reqs++;
		spin_unlock(&xprt->reserve_lock);
		req = clnt_slot_make();
		spin_lock(&xprt->reserve_lock);
		if (!req) {
			xprt->num_reqs--;
			task->tk_status = -ENOMEM;
			goto out;
		}
	} else {
		xprt_add_backlog(xprt, task);
		task->tk_status = -EAGAIN;
		goto out;
	}
	xprt->stat.max_slots = max_t(unsigned long, xprt->stat.max_slots, xprt->num_reqs);
	task->tk_status = 0;
	task->tk_rqstp = &req->rqst;
out:
	spin_unlock(&xprt->reserve_lock);
}

static void clnt_free_slot(struct rpc_xprt *xprt, struct rpc_rqst *rqst)
{
	struct clnt_xprt *cx = clnt_xprt(xprt);

	spin_lock(&xprt->reserve_lock);
	if (!xprt_wake_up_backlog(xprt, rqst)) {
		memset(rqst, 0, sizeof(*rqst));
		list_add(&clnt_req(rqst)->entry, &cx->slots);
	}
	spin_unlock(&xprt->reserve_lock);
}

static void clnt_free_slots(struct clnt_xprt *cx)
{
	struct clnt_req *req, *next;

	list_for_each_entry_safe(req, next, &cx->slots, entry) {
		cx->xprt.num_reqs--;
		clnt_slot_free(req);
	}
	WARN_ON_ONCE(cx->xprt.num_reqs);
}

static bool clnt_buf_fit(struct clnt_xprt *cx, void **buf, size_t *size, size_t need)
{
	size_t want = max_t(size_t, need, CLNT_BUF_SIZE);

	if (*size >= need && *buf)
		return true;
	if (*buf)
		cx->stats.grown_buffers += want;
	kfree(*buf);
	*size = 0;
	*buf = kmalloc(want, rpc_task_gfp_mask());
	if (!*buf)
		return false;
	*size = want;
	return true;
}

static int clnt_buf_alloc(struct rpc_task *task)
{
	struct rpc_rqst *rqst = task->tk_rqstp;
	struct clnt_xprt *cx = clnt_xprt(rqst->rq_xprt);
	struct clnt_req *req = clnt_req(rqst);

	if (!clnt_buf_fit(cx, &req->call_buf, &req->call_size, rqst->rq_callsize) ||
	    !clnt_buf_fit(cx, &req->reply_buf, &req->reply_size, rqst->rq_rcvsize))
		return -ENOMEM;
	req->error = 0;
	rqst->rq_buffer = req->call_buf;
	rqst->rq_rbuffer = req->reply_buf;
	return 0;
}

/* The task is done with the request: from here on its pages are somebody else's. */
static void clnt_buf_free(struct rpc_task *task)
{
	struct rpc_rqst *rqst = task->tk_rqstp;
	struct clnt_xprt *cx = clnt_xprt(rqst->rq_xprt);

	clnt_req_kill(clnt_req(rqst));
	rqst->rq_buffer = NULL;
	rqst->rq_rbuffer = NULL;
	if (unlikely(clnt_credit_stalled(&cx->credit)))
		xprt_force_disconnect(rqst->rq_xprt);
}

/*
 * transport_lock held. A call that was sent and not answered stays outstanding, whether or not
 * somebody waits for it: its credit is not given back, but counted as lost.
 */
static void clnt_release_request(struct rpc_task *task)
{
	struct rpc_rqst *rqst = task->tk_rqstp;
	struct clnt_xprt *cx = clnt_xprt(rqst->rq_xprt);

	if (bc_prealloc(rqst)) {
		rqst->rq_cong = 0;
		return;
	}
	if (!rqst->rq_cong)
		return;
	if (clnt_credit_release(&cx->credit, READ_ONCE(clnt_req(rqst)->state) == CLNT_SENT))
		xprt_release_rqst_cong(task);
	else
		rqst->rq_cong = 0;
}

/**
 * clnt_wake_senders - there is again what a sender found wanting
 * @cx: transport
 */
void clnt_wake_senders(struct clnt_xprt *cx)
{
	xprt_write_space(&cx->xprt);
}

/* queue_lock held. */
static void clnt_wait_for_reply(struct rpc_task *task)
{
	int error = clnt_req(task->tk_rqstp)->error;

	if (unlikely(error))
		task->tk_status = error;
	else
		xprt_wait_for_reply_request_def(task);
}

/* ---------------------------------------------------------------- addresses */

static void clnt_set_port(struct rpc_xprt *xprt, unsigned short port)
{
	rpc_set_port((struct sockaddr *)&xprt->addr, port);
	rail_xprt_print_port(xprt);
	if (port)
		xprt_set_bound(xprt);
}

/* ---------------------------------------------------------------- other operations */

static void clnt_set_connect_timeout(struct rpc_xprt *xprt, unsigned long connect_timeout,
				     unsigned long reconnect_timeout)
{
	spin_lock(&xprt->transport_lock);
	if (connect_timeout < xprt->connect_timeout)
		xprt->connect_timeout = max_t(unsigned long, connect_timeout, HZ);
	if (reconnect_timeout < xprt->max_reconnect_timeout)
		xprt->max_reconnect_timeout = max_t(unsigned long, reconnect_timeout, HZ);
	spin_unlock(&xprt->transport_lock);
}

/* The fields and their order are an ABI: mountstats(8) and nfsiostat(8) read them. */
static void clnt_print_stats(struct rpc_xprt *xprt, struct seq_file *seq)
{
	const struct clnt_stats *st = &clnt_xprt(xprt)->stats;
	long idle = 0;

	if (xprt_connected(xprt))
		idle = (long)(jiffies - xprt->last_used) / HZ;
	seq_printf(seq, "\txprt:\trdma %u %lu %lu %lu %ld %lu %lu %lu %llu %llu", 0,
		   xprt->stat.bind_count, xprt->stat.connect_count,
		   xprt->stat.connect_time / HZ, idle, xprt->stat.sends, xprt->stat.recvs,
		   xprt->stat.bad_xids, xprt->stat.req_u, xprt->stat.bklog_u);
	seq_printf(seq, " %lu %lu %lu %llu %llu %llu %llu %lu %lu %lu %lu", st->read_segs,
		   st->write_segs, st->reply_segs, st->rdma_sent, st->rdma_received, st->pullup,
		   st->fixup, st->grown_buffers, st->failed_sends, st->bad_replies,
		   st->long_calls);
	seq_printf(seq, " %lu %lu %lu %lu %lu %lu\n", st->regions_replaced, st->regions_left,
		   st->regions_made, st->local_invals, st->no_send_unit, st->reply_waits);
}

/*
 * Everything the send path needs is there before, but for a region's scatterlist; that may come
 * from the reserves, since sunrpc sends with PF_MEMALLOC while xprt->swapper is set.
 */
static int clnt_enable_swap(struct rpc_xprt *xprt)
{
	atomic_inc(&xprt->swapper);
	return 0;
}

static void clnt_disable_swap(struct rpc_xprt *xprt)
{
	atomic_dec(&xprt->swapper);
}

/* ---------------------------------------------------------------- set-up, destruction */

static void clnt_destroy(struct rpc_xprt *xprt)
{
	struct clnt_xprt *cx = clnt_xprt(xprt);

	clnt_conn_exit(cx);
	clnt_segs_free(cx);
	clnt_free_slots(cx);
	rail_xprt_free_address(xprt);
	xprt_free(xprt);
	module_put(THIS_MODULE);
}

static const struct rpc_xprt_ops clnt_ops = {
	.reserve_xprt		= xprt_reserve_xprt_cong,
	.release_xprt		= xprt_release_xprt_cong,
	.alloc_slot		= clnt_alloc_slot,
	.free_slot		= clnt_free_slot,
	.rpcbind		= rpcb_getport_async,
	.set_port		= clnt_set_port,
	.connect		= clnt_connect,
	.buf_alloc		= clnt_buf_alloc,
	.buf_free		= clnt_buf_free,
	.send_request		= clnt_send_request,
	.wait_for_reply_request	= clnt_wait_for_reply,
	.release_request	= clnt_release_request,
	.close			= clnt_close,
	.destroy		= clnt_destroy,
	.set_connect_timeout	= clnt_set_connect_timeout,
	.print_stats		= clnt_print_stats,
	.enable_swap		= clnt_enable_swap,
	.disable_swap		= clnt_disable_swap,
	.inject_disconnect	= clnt_inject_disconnect,
#ifdef CONFIG_SUNRPC_BACKCHANNEL
	.bc_setup		= clnt_back_setup,
	.bc_maxpayload		= clnt_back_maxpayload,
	.bc_num_slots		= clnt_back_num_slots,
	.bc_free_rqst		= clnt_back_free_rqst,
	.bc_destroy		= clnt_back_destroy,
#endif
};

static struct rpc_xprt *clnt_setup(struct xprt_create *args);

static struct xprt_class clnt_class = {
	.list	= LIST_HEAD_INIT(clnt_class.list),
	.name	= "rdma",
	.owner	= THIS_MODULE,
	.ident	= XPRT_TRANSPORT_RDMA,
	.setup	= clnt_setup,
	.netid	= { "rdma", "rdma6", "" },
};

static struct rpc_xprt *clnt_setup(struct xprt_create *args)
{
	struct clnt_xprt *cx;
	struct rpc_xprt *xprt;

	if (args->dstaddr->sa_family != AF_INET && args->dstaddr->sa_family != AF_INET6)
		return ERR_PTR(-EAFNOSUPPORT);
	if (args->addrlen > sizeof(xprt->addr))
		return ERR_PTR(-EBADF);

	/* Slots are larger than an rpc_rqst: we make them ourselves. */
	xprt = xprt_alloc(args->net, sizeof(*cx), 0, clnt_setting_slots());
	if (!xprt)
		return ERR_PTR(-ENOMEM);
	cx = clnt_xprt(xprt);
	INIT_LIST_HEAD(&cx->slots);
	spin_lock_init(&cx->lock);
	spin_lock_init(&cx->seg_lock);
	INIT_LIST_HEAD(&cx->segs);
	cx->inline_send = clnt_setting_inline_write();
	cx->inline_recv = clnt_setting_inline_read();
	clnt_credit_begin(&cx->credit, xprt->max_reqs);
	clnt_conn_init(cx);
	clnt_back_init(cx);

	memcpy(&xprt->addr, args->dstaddr, args->addrlen);
	xprt->addrlen = args->addrlen;
	if (args->srcaddr)
		memcpy(&cx->src, args->srcaddr, args->addrlen);
	xprt->ops = &clnt_ops;
	xprt->xprt_class = &clnt_class;
	xprt->prot = IPPROTO_TCP;
	xprt->timeout = &clnt_default_timeout;
	xprt->bind_timeout = CLNT_BIND_TIMEOUT;
	xprt->idle_timeout = CLNT_IDLE_TIMEOUT;
	xprt->connect_timeout = CLNT_CONNECT_TIMEOUT;
	xprt->max_reconnect_timeout = CLNT_MAX_BACKOFF;
	xprt->max_payload = CLNT_MAX_PAYLOAD;
	if (rail_xprt_print_address(xprt)) {
		rail_xprt_free_address(xprt);
		xprt_free(xprt);
		return ERR_PTR(-ENOMEM);
	}
	if (rpc_get_port((struct sockaddr *)&xprt->addr))
		xprt_set_bound(xprt);
	/* sunrpc holds the module while it calls us. */
	__module_get(THIS_MODULE);
	return xprt;
}

/* ---------------------------------------------------------------- settings */

static unsigned int clnt_slots = 128;
static unsigned int clnt_slots_min = RPC_MIN_SLOT_TABLE;
static unsigned int clnt_slots_max = 16384;
static unsigned int clnt_inline_read = RAIL_INLINE_SIZE;
static unsigned int clnt_inline_write = RAIL_INLINE_SIZE;
static unsigned int clnt_inline_min = RAIL_RPCRDMA_INLINE_DEFAULT;
static unsigned int clnt_inline_max = 65536;
static unsigned int clnt_zero;
static unsigned int clnt_one = 1;
static unsigned int clnt_pad_max = 65536;

/* Known to scripts and tuning guides; without a meaning here: the value is kept, no more. */
static unsigned int clnt_write_padding;
static unsigned int clnt_memreg = 5;
static unsigned int clnt_memreg_max = 6;
static unsigned int clnt_pad_optimize = 1;

#define CLNT_SETTING(file, var, lo, hi)			\
	{						\
		.procname	= (file),		\
		.data		= &(var),		\
		.maxlen		= sizeof(unsigned int),	\
		.mode		= 0644,			\
		.proc_handler	= proc_douintvec_minmax, \
		.extra1		= &(lo),		\
		.extra2		= &(hi),		\
	}

static struct ctl_table clnt_settings[] = {
	CLNT_SETTING("rdma_slot_table_entries", clnt_slots, clnt_slots_min, clnt_slots_max),
	CLNT_SETTING("rdma_max_inline_read", clnt_inline_read, clnt_inline_min, clnt_inline_max),
	CLNT_SETTING("rdma_max_inline_write", clnt_inline_write, clnt_inline_min, clnt_inline_max),
	CLNT_SETTING("rdma_inline_write_padding", clnt_write_padding, clnt_zero, clnt_pad_max),
	CLNT_SETTING("rdma_memreg_strategy", clnt_memreg, clnt_zero, clnt_memreg_max),
	CLNT_SETTING("rdma_pad_optimize", clnt_pad_optimize, clnt_zero, clnt_one),
	RAIL_CTL_END
};

static struct ctl_table_header *clnt_settings_header;

/**
 * clnt_setting_slots - rdma_slot_table_entries
 *
 * Return: slots, and credits asked for, of a new mount.
 */
unsigned int clnt_setting_slots(void)
{
	return READ_ONCE(clnt_slots);
}

/* The private data of a connection speaks of sizes in units of 1024 bytes. */
static unsigned int clnt_inline_units(unsigned int bytes)
{
	return rounddown(bytes, RAIL_RPCRDMA_INLINE_UNIT);
}

/**
 * clnt_setting_inline_read - rdma_max_inline_read
 *
 * Return: bytes.
 */
unsigned int clnt_setting_inline_read(void)
{
	return clnt_inline_units(READ_ONCE(clnt_inline_read));
}

/**
 * clnt_setting_inline_write - rdma_max_inline_write
 *
 * Return: bytes.
 */
unsigned int clnt_setting_inline_write(void)
{
	return clnt_inline_units(READ_ONCE(clnt_inline_write));
}

/* ---------------------------------------------------------------- module */

/**
 * rail_clnt_init - the client is there to be mounted with
 *
 * Return: 0 or an error; -EEXIST when another module is there to be mounted with.
 */
int rail_clnt_init(void)
{
	int err = xprt_register_transport(&clnt_class);

	if (err)
		return err;
	/* Whoever has the class has these names too, so they are not what fails first. */
	clnt_settings_header = register_sysctl("sunrpc", clnt_settings);
	if (!clnt_settings_header)
		pr_warn("no settings in /proc/sys/sunrpc: mounts have the built-in ones\n");
	return 0;
}

/**
 * rail_clnt_exit - the module goes, and no mount is left
 */
void rail_clnt_exit(void)
{
	unregister_sysctl_table(clnt_settings_header);
	xprt_unregister_transport(&clnt_class);
}
