/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rail_verbs: what RAIL's transports need of RDMA.
 *
 * Only this module creates and destroys PDs, CQs, QPs, MRs and cm_ids, and posts work requests.
 * It serves an RPC transport (one QP a mount, asynchronous connect, gathered sends) and a block
 * transport (hundreds of QPs, polled CQs, pre-registered chunks, immediate data).
 *
 * Objects, who owns them, how they die
 * ------------------------------------
 *
 * rail_dev	an RDMA device, made and ended by the kernel's plug events. Whatever lives on a
 *		device holds a reference on it. Unplug fails every connection on the device, calls
 *		each watcher, and waits until all references are gone.
 * rail_pd	protection domain, reference counted; made by whoever shares it.
 * rail_conn	one QP and its cm_id; reference counted. Made by rail_conn_create(), or by a
 *		listener for a peer's request. Ends by rail_conn_close() or by itself; either way
 *		its owner gets ops->closed() exactly once, after which nothing calls it again.
 * rail_listener an address that peers connect to; ended by its owner.
 * rail_mr_pool, rail_buf_pool
 *		memory; made and ended by their owner, who first has every unit back.
 *
 * Connection states
 * -----------------
 *
 *	IDLE ----------> RESOLVING ----------> CONNECTING ----------> UP
 *	   \                 |                     |                   |
 *	    \                v                     v                   v
 *	     `----------> CLOSING <---------------'--------------------'
 *	                     |
 *	                     v
 *	                    DEAD
 *
 *	IDLE		made; a request of a peer starts here too and goes to CONNECTING
 *	RESOLVING	looking for the device and the route to the peer
 *	CONNECTING	QP there, receives posted; waiting for the peer's answer; posts wait
 *	UP		the QP sends
 *	CLOSING		nothing more can be posted; the close work drains and tears down
 *	DEAD		QP and cm_id gone, ops->closed() called or being called
 *
 * Everything that ends a connection (the owner, the peer, an error, a timeout, unplug) goes through
 * rail_conn_fail(): the first one moves it to CLOSING, leaves its reason and queues the close work,
 * which alone tears down. There is no reconnect: that is a new connection.
 *
 * Locks, in the order they nest
 * -----------------------------
 *
 *	cm_id handler mutex	the kernel's; set-up callbacks run under it
 *	rail_dev.watch_lock	list of watchers; held while they are told
 *	rail_dev.lock		list of connections; never held across a callback
 *	rail_conn.post_lock	posting: accounting and ib_post_send, irq safe
 *	rail_conn.recv_lock	posting receives, irq safe
 *	rail_conn.state_lock	state and reason, irq safe
 */
#ifndef RAIL_VERBS_H
#define RAIL_VERBS_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <rdma/rw.h>

#include <rail/addr.h>
#include <rail/compat.h>
#include <rail/sq.h>
#include <rail/stats.h>

struct rail_conn;
struct rail_listener;
struct rail_mr_pool;
struct rail_buf_pool;

/* ---------------------------------------------------------------- device */

/**
 * struct rail_dev - an RDMA device
 * @ib: the kernel's device; valid while a reference is held
 * @refs: one for the plugged device, one for everything that lives on it
 * @gone: completed when the last reference is dropped
 * @lock: @conns, and @unplugged to write
 * @conns: connections on the device
 * @watch_lock: @watchers, and that none is called after it said it is no longer interested
 * @watchers: who else wants to hear of unplug
 * @teller: task that tells them just now
 * @unplugged: no more references are given
 * @all: in the list of devices
 * @max_sge: scatter entries in a send; constant
 * @max_recv_sge: scatter entries in a receive; constant
 * @max_mr_pages: pages of one memory region; constant
 * @mr_type: kind of memory region the device does best; constant
 * @node: NUMA node; constant
 * @stats: per-CPU numbers, in debugfs
 * @dir: debugfs
 */
struct rail_dev {
	struct ib_device *ib;
	refcount_t refs;
	struct completion gone;
	spinlock_t lock;
	struct list_head conns;
	struct mutex watch_lock;
	struct list_head watchers;
	struct task_struct *teller;
	bool unplugged;
	struct list_head all;
	u32 max_sge;
	u32 max_recv_sge;
	u32 max_mr_pages;
	enum ib_mr_type mr_type;
	int node;
	struct rail_stats stats;
	struct dentry *dir;
};

/**
 * struct rail_dev_watch - asks to be told of unplug
 * @removed: called once, sleepable, on unplug; must see to it that the watcher's own objects on the
 *	     device go away and that rail_dev_unwatch() is called, now or later
 * @dev: set by rail_dev_watch()
 * @entry: in the device's list
 */
struct rail_dev_watch {
	void (*removed)(struct rail_dev_watch *watch);
	struct rail_dev *dev;
	struct list_head entry;
};

struct rail_dev *rail_dev_find(struct ib_device *ib);
void rail_dev_get(struct rail_dev *dev);
void rail_dev_put(struct rail_dev *dev);
int rail_dev_watch(struct rail_dev *dev, struct rail_dev_watch *watch);
void rail_dev_unwatch(struct rail_dev_watch *watch);

/**
 * struct rail_pd - protection domain
 * @ib: the kernel's
 * @dev: device it is on, referenced
 * @refs: users
 */
struct rail_pd {
	struct ib_pd *ib;
	struct rail_dev *dev;
	refcount_t refs;
};

struct rail_pd *rail_pd_alloc(struct rail_dev *dev);
void rail_pd_get(struct rail_pd *pd);
void rail_pd_put(struct rail_pd *pd);

/* ---------------------------------------------------------------- work requests */

/**
 * struct rail_cqe - who is told of a completion
 * @cqe: what the kernel's CQ code calls; set by rail_cqe_init()
 * @done: called once for each signalled work request and for each receive posted with this
 *	  rail_cqe, whatever the outcome (@wc->status), also on flush. Context: the CQ's (softirq,
 *	  workqueue or the poller); never under a lock of rail_verbs. Of a receive, @wc->byte_len
 *	  is valid on success only.
 * @conn: where it was posted last
 * @pos: position in the send queue
 * @next: among those the device refused
 *
 * May be posted again from within @done. Must not be in flight twice.
 */
struct rail_cqe {
	struct ib_cqe cqe;
	void (*done)(struct rail_cqe *cqe, struct ib_wc *wc);
	struct rail_conn *conn;
	u32 pos;
	struct rail_cqe *next;
};

void rail_cqe_init_send(struct rail_cqe *cqe, void (*done)(struct rail_cqe *cqe, struct ib_wc *wc));
void rail_cqe_init_recv(struct rail_cqe *cqe, void (*done)(struct rail_cqe *cqe, struct ib_wc *wc));

/**
 * struct rail_chain - work requests that go with one doorbell
 * @first: first work request
 * @last: last work request
 * @n: how many
 * @signalled: position (from 1) of the last signalled one; 0: none
 * @failed: after rail_post_queued() returned 0: called if the chain, queued for want of space, will
 *	    never be posted because the connection died; the chain is the caller's again. A chain
 *	    that gets posted is told of by its completions alone. Sleepable.
 * @wait: rail_post_wait()'s own
 * @err: rail_post_wait()'s own
 * @entry: queue of chains waiting for space
 *
 * Only a signalled work request is told of, with its own rail_cqe. Unsignalled ones complete
 * silently; if one fails, the connection is closed. An unsignalled work request's memory may
 * be used again once a later one on the same QP has completed or @closed was called.
 */
struct rail_chain {
	struct ib_send_wr *first;
	struct ib_send_wr *last;
	u32 n;
	u32 signalled;
	void (*failed)(struct rail_chain *chain);
	struct completion *wait;
	int err;
	struct list_head entry;
};

/**
 * rail_chain_init - start an empty chain
 * @chain: the chain
 */
static inline void rail_chain_init(struct rail_chain *chain)
{
	chain->first = NULL;
	chain->last = NULL;
	chain->n = 0;
	chain->signalled = 0;
}

/**
 * rail_chain_add - append an unsignalled work request
 * @chain: the chain
 * @wr: the work request; valid until posted
 */
static inline void rail_chain_add(struct rail_chain *chain, struct ib_send_wr *wr)
{
	wr->next = NULL;
	wr->send_flags &= ~IB_SEND_SIGNALED;
	if (chain->last)
		chain->last->next = wr;
	else
		chain->first = wr;
	chain->last = wr;
	chain->n++;
}

/**
 * rail_chain_add_signalled - append a work request whose end is told
 * @chain: the chain
 * @wr: the work request; valid until posted
 * @cqe: who is told; valid until it was
 */
static inline void rail_chain_add_signalled(struct rail_chain *chain, struct ib_send_wr *wr,
					    struct rail_cqe *cqe)
{
	rail_chain_add(chain, wr);
	wr->send_flags |= IB_SEND_SIGNALED;
	wr->wr_cqe = &cqe->cqe;
	chain->signalled = chain->n;
}

void rail_chain_splice(struct rail_chain *chain, struct ib_send_wr *first, struct rail_cqe *cqe);

int rail_post(struct rail_conn *conn, struct rail_chain *chain);
int rail_post_queued(struct rail_conn *conn, struct rail_chain *chain);
int rail_post_wait(struct rail_conn *conn, struct rail_chain *chain);

/**
 * struct rail_recv_batch - receives that are posted together
 * @first: first
 * @last: last
 * @n: how many
 */
struct rail_recv_batch {
	struct ib_recv_wr *first;
	struct ib_recv_wr *last;
	u32 n;
};

/**
 * rail_recv_batch_init - start an empty batch
 * @batch: the batch
 */
static inline void rail_recv_batch_init(struct rail_recv_batch *batch)
{
	batch->first = NULL;
	batch->last = NULL;
	batch->n = 0;
}

/**
 * rail_recv_batch_add - append a receive
 * @batch: the batch
 * @wr: the receive; valid until posted
 * @cqe: told of the message; valid until it was
 */
static inline void rail_recv_batch_add(struct rail_recv_batch *batch, struct ib_recv_wr *wr,
				       struct rail_cqe *cqe)
{
	wr->next = NULL;
	wr->wr_cqe = &cqe->cqe;
	if (batch->last)
		batch->last->next = wr;
	else
		batch->first = wr;
	batch->last = wr;
	batch->n++;
}

int rail_post_recvs(struct rail_conn *conn, struct rail_recv_batch *batch);

/* ---------------------------------------------------------------- connection */

enum rail_state {
	RAIL_IDLE,
	RAIL_RESOLVING,
	RAIL_CONNECTING,
	RAIL_UP,
	RAIL_CLOSING,
	RAIL_DEAD,
	RAIL_NR_STATES,
};

const char *rail_state_name(enum rail_state state);
bool rail_state_may(enum rail_state from, enum rail_state to);

/* Where completions are worked on. */
enum rail_poll {
	RAIL_POLL_SOFTIRQ,	/* interrupt, softirq */
	RAIL_POLL_WORKQUEUE,	/* interrupt, per-CPU workqueue: @done may sleep */
	RAIL_POLL_UNBOUND,	/* interrupt, unbound queue of normal priority: @done may sleep */
	RAIL_POLL_DIRECT,	/* no interrupt: the owner calls rail_conn_poll() */
};

/**
 * struct rail_qp_attr - the QP an owner wants; filled in by ops->configure()
 * @pd: protection domain; the connection takes a reference of its own
 * @send_depth: work requests of the owner that may be outstanding; cut to what the device has
 * @max_chain: longest chain the owner posts; 1 where 0
 * @signal_interval: at the latest every so many work requests one is signalled; 0: chosen
 * @recv_depth: receives that may be outstanding
 * @max_send_sge: scatter entries in a send; 1 where 0
 * @max_recv_sge: scatter entries in a receive; 1 where 0
 * @rw_ctxs: rdma_rw contexts in flight (rail_rw), 0: none
 * @poll: where completions are worked on
 * @comp_vector: completion vector to be near to; -1: any
 */
struct rail_qp_attr {
	struct rail_pd *pd;
	u32 send_depth;
	u32 max_chain;
	u32 signal_interval;
	u32 recv_depth;
	u32 max_send_sge;
	u32 max_recv_sge;
	u32 rw_ctxs;
	enum rail_poll poll;
	int comp_vector;
};

/**
 * struct rail_conn_ops - how a connection talks to its owner
 * @configure: the device is known (conn->dev): fill in @attr (zeroed but for comp_vector -1).
 *	       Sleepable. An error closes the connection with that reason.
 * @created: the QP is there: post receives. Sleepable. An error closes the connection. May be NULL.
 * @established: the connection is up. @priv is the peer's private data, valid during the call.
 *		 Sleepable. On the accepting side a receive may complete before it; what is posted
 *		 in answer waits until the QP can send.
 * @closing: the connection left its state for CLOSING. conn->reason says why; of a refusal @priv is
 *	     what the peer gave as reason. Nothing more can be posted. Sleepable. May be NULL.
 * @drained: every posted work request was told of; the QP is still there: give back rdma_rw
 *	     contexts. Sleepable. May be NULL.
 * @closed: QP and cm_id are gone, and nothing of the connection calls the owner again: give back
 *	    receive buffers, MRs and the owner's reference. Sleepable. A module that goes away
 *	    first calls rail_conn_wait_closed() for each of its connections.
 * @space: after rail_post() said -EAGAIN: there is space again. Context: as rail_cqe.done; also
 *	   called when the connection dies. May be NULL where rail_post() is never refused.
 *
 * @configure and @created are called with the cm_id's handler lock held: they must not wait for a
 * connection to close.
 */
struct rail_conn_ops {
	int (*configure)(struct rail_conn *conn, struct rail_qp_attr *attr);
	int (*created)(struct rail_conn *conn);
	void (*established)(struct rail_conn *conn, const void *priv, u8 len);
	void (*closing)(struct rail_conn *conn, const void *priv, u8 len);
	void (*drained)(struct rail_conn *conn);
	void (*closed)(struct rail_conn *conn);
	void (*space)(struct rail_conn *conn);
};

/* Consumer data of a refusal: the most InfiniBand's REJ carries. */
#define RAIL_REJECT_LEN		148

/**
 * struct rail_connect - how to connect
 * @dst: peer
 * @src: own address; NULL or family AF_UNSPEC: any
 * @timeout_ms: from now until up; then the connection closes with -ETIMEDOUT
 * @priv: private data for the peer, copied
 * @priv_len: its length; InfiniBand carries 56 bytes
 * @tos: type of service (RFC 2474), 0: default
 * @ack_timeout: as rdma_set_ack_timeout(), 4.096 us * 2^value; 0: default
 * @retries: transport retries, 1 to 7; 0: 7
 * @rnr_retries: receiver-not-ready retries, 1 to 7 (7: for ever); 0: 7
 */
struct rail_connect {
	const struct sockaddr *dst;
	const struct sockaddr *src;
	unsigned int timeout_ms;
	const void *priv;
	u8 priv_len;
	u8 tos;
	u8 ack_timeout;
	u8 retries;
	u8 rnr_retries;
};

/* What a connect request or accept can carry at the most. */
#define RAIL_CONNECT_PRIV_LEN	56
#define RAIL_ACCEPT_PRIV_LEN	196

struct rail_conn *rail_conn_create(struct net *net, const struct rail_conn_ops *ops, void *context);
int rail_conn_connect(struct rail_conn *conn, const struct rail_connect *how);
void rail_conn_close(struct rail_conn *conn, int reason);
void rail_conn_wait_closed(struct rail_conn *conn);
void rail_conn_get(struct rail_conn *conn);
void rail_conn_put(struct rail_conn *conn);
int rail_conn_poll(struct rail_conn *conn, int budget);
void rail_conn_watch_peer(struct rail_conn *conn, unsigned int timeout_ms);

void *rail_conn_context(const struct rail_conn *conn);
struct rail_dev *rail_conn_dev(const struct rail_conn *conn);
struct ib_qp *rail_conn_qp(const struct rail_conn *conn);
u8 rail_conn_port(const struct rail_conn *conn);
u32 rail_conn_id(const struct rail_conn *conn);
enum rail_state rail_conn_state(const struct rail_conn *conn);
int rail_conn_reason(const struct rail_conn *conn);
const char *rail_conn_name(const struct rail_conn *conn);
const struct sockaddr *rail_conn_src(const struct rail_conn *conn);
const struct sockaddr *rail_conn_dst(const struct rail_conn *conn);

/* ---------------------------------------------------------------- listener */

/**
 * struct rail_request - a peer asks to connect
 * @priv: its private data, valid during the call; hostile
 * @priv_len: its length
 * @reject_priv: on refusal: what to tell the peer, filled in by the owner
 * @reject_len: its length, at most RAIL_REJECT_LEN
 */
struct rail_request {
	const void *priv;
	u8 priv_len;
	u8 reject_priv[RAIL_REJECT_LEN];
	u8 reject_len;
};

/**
 * struct rail_listener_ops - how a listener talks to its owner
 * @request: a peer asks. To take it, set the connection's owner with rail_conn_adopt(), and
 *	     answer with rail_conn_accept() from within the call or with rail_conn_accept() /
 *	     rail_conn_reject() from elsewhere later; return 0. Anything else refuses. The
 *	     connection that is not up after the listener's timeout is closed. Sleepable; the
 *	     listener is not destroyed meanwhile.
 * @gone: the address or device it was bound to went away: nobody can connect any more. The
 *	  owner still destroys it, not from within the call. May be NULL.
 */
struct rail_listener_ops {
	int (*request)(struct rail_listener *listener, struct rail_conn *conn,
		       struct rail_request *req);
	void (*gone)(struct rail_listener *listener);
};

/**
 * struct rail_listen - where to listen
 * @addr: address and port; a wildcard hears one family only
 * @backlog: requests waiting
 * @timeout_ms: from a request until up
 */
struct rail_listen {
	const struct sockaddr *addr;
	int backlog;
	unsigned int timeout_ms;
};

/**
 * struct rail_accept - how to accept
 * @priv: private data for the peer
 * @priv_len: its length
 * @rnr_retries: as in struct rail_connect
 */
struct rail_accept {
	const void *priv;
	u8 priv_len;
	u8 rnr_retries;
};

struct rail_listener *rail_listen(struct net *net, const struct rail_listen *where,
				  const struct rail_listener_ops *ops, void *context);
void rail_listener_destroy(struct rail_listener *listener);
void *rail_listener_context(const struct rail_listener *listener);
const struct sockaddr *rail_listener_addr(const struct rail_listener *listener);

void rail_conn_adopt(struct rail_conn *conn, const struct rail_conn_ops *ops, void *context);
int rail_conn_accept(struct rail_conn *conn, const struct rail_accept *how);
void rail_conn_reject(struct rail_conn *conn, const void *priv, u8 len);

/* ---------------------------------------------------------------- buffers */

/**
 * struct rail_buf - a DMA-mapped unit for sends or receives
 * @addr: where the CPU sees it
 * @sge: where the device sees it; length is the whole unit's and may be lowered by the user
 * @pool: where it goes back to
 * @free: in the pool's list of free units
 */
struct rail_buf {
	void *addr;
	struct ib_sge sge;
	struct rail_buf_pool *pool;
	struct rail_buf *free;
};

struct rail_buf_pool *rail_buf_pool_create(struct rail_pd *pd, u32 size, u32 count,
					   enum dma_data_direction dir, int node);
void rail_buf_pool_destroy(struct rail_buf_pool *pool);
struct rail_buf *rail_buf_get(struct rail_buf_pool *pool);
void rail_buf_put(struct rail_buf *buf);
void rail_buf_for_cpu(struct rail_buf *buf, u32 len);
void rail_buf_for_device(struct rail_buf *buf, u32 len);
u32 rail_buf_pool_size(const struct rail_buf_pool *pool);

/* ---------------------------------------------------------------- memory regions */

/*
 * A region's life:
 *
 *	FREE -- rail_mr_map -> MAPPED -- rail_mr_reg_wr --> VALID -- rail_mr_inv_wr -> INVALIDATING
 *	 ^                       |  ^                          |                          |
 *	 '----- rail_mr_unmap ---'  '--- rail_mr_invalidated: by the peer, or ours completed ---'
 *
 * A MAPPED region can be registered again over the same memory, under a new key.
 *
 * BAD: a work request for it failed (rail_mr_failed()), so nobody knows what the device knows.
 *
 * rail_mr_put() of a FREE or MAPPED region recycles it. Of a VALID, INVALIDATING or BAD one it
 * deregisters the region first, so that the key is dead and the memory unmapped when it returns;
 * the pool's worker makes another region in its place.
 *
 * Who holds a region (from rail_mr_get() to rail_mr_put()) is alone with it: no lock.
 */
enum rail_mr_state {
	RAIL_MR_FREE,
	RAIL_MR_MAPPED,
	RAIL_MR_VALID,
	RAIL_MR_INVALIDATING,
	RAIL_MR_BAD,
};

/**
 * struct rail_mr - a fast-registration memory region
 * @ib: the kernel's
 * @state: see above
 * @dir: of the mapping
 * @sg: the mapped scatterlist; the user's, valid until unmapped
 * @nents: its entries
 * @reg: register work request
 * @inv: invalidate work request
 * @pool: where it goes back to
 * @entry: in the pool's lists
 */
struct rail_mr {
	struct ib_mr *ib;
	enum rail_mr_state state;
	enum dma_data_direction dir;
	struct scatterlist *sg;
	int nents;
	struct ib_reg_wr reg;
	struct ib_send_wr inv;
	struct rail_mr_pool *pool;
	struct list_head entry;
};

/**
 * struct rail_mr_pool_attr - the pool an owner wants
 * @pd: protection domain; the pool takes a reference of its own
 * @count: regions to begin with
 * @max: regions at the most; the worker makes more when few are left. 0: @count
 * @pages: pages a region can cover; cut to what the device can
 * @gaps: wants regions over scattered pieces (IB_MR_TYPE_SG_GAPS where the device has it)
 * @refilled: called when regions are there again after rail_mr_get() found none; sleepable;
 *	      may be NULL
 * @context: for @refilled
 */
struct rail_mr_pool_attr {
	struct rail_pd *pd;
	u32 count;
	u32 max;
	u32 pages;
	bool gaps;
	void (*refilled)(void *context);
	void *context;
};

struct rail_mr_pool *rail_mr_pool_create(const struct rail_mr_pool_attr *attr);
void rail_mr_pool_destroy(struct rail_mr_pool *pool);
void rail_mr_pool_stop(struct rail_mr_pool *pool);
u32 rail_mr_pool_pages(const struct rail_mr_pool *pool);
struct rail_mr *rail_mr_get(struct rail_mr_pool *pool);
void rail_mr_put(struct rail_mr *mr);
int rail_mr_map(struct rail_mr *mr, struct scatterlist *sg, int nents, u32 len,
		enum dma_data_direction dir);
void rail_mr_unmap(struct rail_mr *mr);
void rail_mr_for_cpu(struct rail_mr *mr);
void rail_mr_for_device(struct rail_mr *mr);
struct ib_send_wr *rail_mr_reg_wr(struct rail_mr *mr, int access);
int rail_mr_reg_all(struct rail_conn *conn, struct rail_mr *(*mr)(void *arg, u32 i), void *arg,
		    u32 n, int access);
struct ib_send_wr *rail_mr_inv_wr(struct rail_mr *mr);
void rail_mr_invalidated(struct rail_mr *mr);
void rail_mr_failed(struct rail_mr *mr);
u8 rail_key_byte(u8 last);

/**
 * rail_mr_rkey - the key under which the peer reaches the region
 * @mr: a region whose register work request was built
 */
static inline u32 rail_mr_rkey(const struct rail_mr *mr)
{
	return mr->ib->rkey;
}

/* ---------------------------------------------------------------- the peer's memory */

/**
 * struct rail_rw - the peer's memory read into, or written from, a scatterlist of ours
 * @ctx: the kernel's rdma_rw context
 * @sg: ours
 * @nents: its entries
 * @dir: DMA_FROM_DEVICE: RDMA Read; DMA_TO_DEVICE: RDMA Write
 */
struct rail_rw {
	struct rdma_rw_ctx ctx;
	struct scatterlist *sg;
	u32 nents;
	enum dma_data_direction dir;
};

int rail_rw_init(struct rail_rw *rw, struct rail_conn *conn, struct scatterlist *sg, u32 nents,
		 u32 offset, u64 remote_addr, u32 rkey, enum dma_data_direction dir);
void rail_rw_chain(struct rail_rw *rw, struct rail_conn *conn, struct rail_chain *chain,
		   struct rail_cqe *cqe);
void rail_rw_destroy(struct rail_rw *rw, struct rail_conn *conn);

/* ---------------------------------------------------------------- module */

struct dentry *rail_debugfs_root(void);

#endif /* RAIL_VERBS_H */
