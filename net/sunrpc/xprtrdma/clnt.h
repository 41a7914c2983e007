/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The client: sunrpc's transport class "rdma" over rail_verbs.
 *
 * Objects, who owns them, how they die
 * ------------------------------------
 *
 * clnt_xprt	a mount's transport, made by sunrpc and destroyed by it (clnt_destroy()). Outlives
 *		all the others.
 * clnt_conn	one attempt to connect and what came of it: a rail_conn, its PD, regions and
 *		buffers. Made by the connect work. What is on the device dies in clnt_conn_closed();
 *		the struct is freed by whoever begins the next attempt, or by clnt_destroy(), after
 *		rail_conn_wait_closed().
 * clnt_req	a slot: sunrpc's rpc_rqst and what the transport needs beside it. Kept in
 *		clnt_xprt.slots while not in use; freed by clnt_destroy().
 * clnt_seg	a memory region in use and its scatterlist; cached in clnt_xprt.segs.
 * clnt_send, clnt_recv
 *		units of a connection, each with a mapped buffer.
 * clnt_back	a slot of the reverse direction (clnt_back.c).
 *
 * A connection's life
 * -------------------
 *
 *	xprt_connect() sets XPRT_CONNECTING and calls clnt_connect(), which queues the connect work
 *	after the back-off. The work makes a clnt_conn and returns. What comes of it is told by
 *	clnt_conn_established(): XPRT_CONNECTED, tasks woken; or by clnt_conn_closed(): tasks woken
 *	with the reason. XPRT_LOCKED is not held meanwhile, so a kill or an unmount need not wait
 *	for a server that does not answer: clnt_close() cancels the work and closes the attempt.
 *
 *	A connection that was up and fails (the peer, the link, the device) calls
 *	xprt_force_disconnect(). sunrpc then takes XPRT_LOCKED, so that nobody sends, and calls
 *	clnt_close(): it waits until the connection is gone, and with it every registration, and
 *	only then wakes the tasks to send again. So a request is never on two connections.
 *
 * A request's life (clnt_req.state, clnt_xprt.lock)
 * -------------------------------------------------
 *
 *	IDLE -- posted --> SENT -- a reply claims it -------> ENDING -- last reference --> IDLE
 *	                     '---- killed (clnt_buf_free) ----^
 *	                     '---- the connection closed -----'
 *
 *	IDLE	no memory of it is registered or mapped, nothing refers to it
 *	SENT	the device may read its pages, the server may read and write its chunks
 *	ENDING	one of the three ends (clnt_req.how) has it: it takes back the memory. A reply to a
 *		call that sunrpc has forgotten but not yet released ends it as a kill does.
 *
 * clnt_req.refs counts, from the post on, who still needs the request's memory: one for the end
 * that claims it, one for a gathered send, one for the invalidation. The last one to let go gives
 * back the regions and tells sunrpc, or whoever waits in clnt_buf_free().
 *
 * Locks, in the order they nest
 * -----------------------------
 *
 *	xprt.state XPRT_LOCKED	who sends, and who closes
 *	clnt_xprt.conn_lock	beginning and ending of connections; a mutex
 *	xprt.queue_lock, xprt.transport_lock, xprt.reserve_lock: sunrpc's; none within another here
 *	clnt_xprt.lock		states of requests and lists of connections; posting of sends
 *	clnt_xprt.seg_lock	cached segments
 */
#ifndef RPCRDMA_CLNT_H
#define RPCRDMA_CLNT_H

#include <linux/completion.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/sunrpc/sched.h>
#include <linux/sunrpc/xprt.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "clnt_pure.h"
#include "rpcrdma_priv.h"

/* What was included before has the kernel's own. */
#undef pr_fmt
#define pr_fmt(fmt) "rpcrdma: " fmt

/* Pages of a region: 1 MiB, with which most payloads take one. */
#define CLNT_MR_PAGES		256
#define CLNT_MAX_PAYLOAD	(4U << 20)
/* Reverse calls that may be outstanding: what a session's back channel gets, and more. */
#define CLNT_BACK_SLOTS		32
/* Receives are posted again so many at a time; as many more there are. */
#define CLNT_RECV_BATCH		8
/* At the latest every so many sends one is signalled. */
#define CLNT_SIGNAL_EVERY	16
/* Pieces of a gathered send: buffer, pages, tail. */
#define CLNT_SEND_SGE		8
/*
 * Page data shorter than this is copied into the send. To gather it instead takes a mapping, and a
 * completion of its own that wakes a worker.
 */
#define CLNT_GATHER_MIN		8192

struct clnt_xprt;
struct clnt_conn;

enum clnt_state {
	CLNT_IDLE,
	CLNT_SENT,
	CLNT_ENDING,
};

/* What ends a request. */
enum clnt_how {
	CLNT_REPLIED,		/* clnt_req.recv has it; clnt_req.verdict says what it is worth */
	CLNT_KILLED,
	CLNT_DISCONNECTED,
};

/**
 * struct clnt_seg - a memory region in use
 * @mr: the region
 * @entry: in clnt_req.segs, or in clnt_xprt.segs
 * @sg: what the region covers; CLNT_MR_PAGES entries
 */
struct clnt_seg {
	struct rail_mr *mr;
	struct list_head entry;
	struct scatterlist *sg;
};

/**
 * struct clnt_req - a slot
 * @rqst: sunrpc's; must be first
 * @entry: in clnt_xprt.slots while free; reserve_lock
 * @conn_entry: in clnt_conn.reqs from the post on until IDLE; clnt_xprt.lock
 * @state: see above; clnt_xprt.lock
 * @how: what ended it; set with ENDING
 * @wait_drain: a reference is held until the connection is drained; clnt_xprt.lock
 * @error: the RPC ends with it, since what came is no reply; xprt.queue_lock
 * @verdict: what @error will be when the memory is taken back
 * @conn: the connection it was posted on; valid while not IDLE
 * @refs: see above
 * @quiet: done while IDLE
 * @segs: registered memory; the sender's, then the end's
 * @plan: how it travels
 * @inv: told when the last invalidation completed
 * @inv_chain: the invalidations
 * @recv: the reply, until it was handed up
 * @hdr: the reply's header
 * @offered: lists of the call, in @offer
 * @offer: the call's header, kept where it offers chunks that come back
 * @release_encrypted: sunrpc's own rq_release_snd_buf, where ours stands in for it
 * @call_buf: what rq_buffer points to; kept with the slot
 * @reply_buf: what rq_rbuffer points to; kept with the slot
 * @call_size: bytes in @call_buf
 * @reply_size: bytes in @reply_buf
 */
struct clnt_req {
	struct rpc_rqst rqst;
	struct list_head entry;
	struct list_head conn_entry;
	enum clnt_state state;
	enum clnt_how how;
	bool wait_drain;
	int error;
	int verdict;
	struct clnt_conn *conn;
	refcount_t refs;
	struct completion quiet;
	struct list_head segs;
	struct clnt_plan plan;
	struct rail_cqe inv;
	struct rail_chain inv_chain;
	struct clnt_recv *recv;
	struct rail_rpcrdma_hdr hdr;
	struct rail_rpcrdma_lists offered;
	u8 *offer;
	void (*release_encrypted)(struct rpc_rqst *rqst);
	void *call_buf;
	void *reply_buf;
	size_t call_size;
	size_t reply_size;
};

/**
 * struct clnt_send - a message that is sent
 * @cqe: told when it is signalled
 * @buf: header and what is copied
 * @wr: the send
 * @sge: pieces: [0] of @buf, then pages, then perhaps the tail in @buf
 * @nr_pages: pieces that are mapped pages, from sge[1] on
 * @req: request whose pages they are; it has a reference
 * @conn: connection
 * @entry: in clnt_conn.free_sends; clnt_xprt.lock
 * @signalled: its completion will be told
 * @passed: a later one's completion came before its own
 */
struct clnt_send {
	struct rail_cqe cqe;
	struct rail_buf *buf;
	struct ib_send_wr wr;
	struct ib_sge sge[CLNT_SEND_SGE];
	u32 nr_pages;
	struct clnt_req *req;
	struct clnt_conn *conn;
	struct list_head entry;
	bool signalled;
	bool passed;
};

/**
 * struct clnt_recv - a receive
 * @cqe: told of the message
 * @buf: where it goes
 * @wr: the receive
 * @conn: connection
 */
struct clnt_recv {
	struct rail_cqe cqe;
	struct rail_buf *buf;
	struct ib_recv_wr wr;
	struct clnt_conn *conn;
};

/**
 * struct clnt_conn - a connection
 * @cx: transport
 * @rc: the connection of rail_verbs; referenced
 * @pd: protection domain, of this connection alone; as all down to @recvs from configure() until
 *	clnt_conn_closed()
 * @mrs: regions
 * @send_bufs: mapped buffers
 * @recv_bufs: mapped buffers
 * @sends: as many as calls, reverse replies and errors can be in the queue
 * @recvs: receives
 * @nr_sends: how many
 * @nr_recvs: how many
 * @max_sge: pieces of a send
 * @asked: credits asked for
 * @limits: inline thresholds and size of a region; set before XPRT_CONNECTED
 * @remote_inval: the server may invalidate; set before XPRT_CONNECTED
 * @was_up: it was established
 * @ending: clnt_close() ends it: no need to tell sunrpc
 * @gone: nothing of it is on the device any more; clnt_xprt.lock
 * @reqs: requests that are not IDLE; clnt_xprt.lock
 * @idle: somebody waits for @reqs to be empty
 * @free_sends: units to take; clnt_xprt.lock
 * @ring: posted units in their order; clnt_xprt.lock
 * @ring_head: next to fill; clnt_xprt.lock
 * @ring_tail: oldest; clnt_xprt.lock
 * @ring_mask: size of @ring less one
 * @unsignalled: sends since the last signalled one; clnt_xprt.lock
 * @repost: receives that wait to be posted again; clnt_xprt.lock
 */
struct clnt_conn {
	struct clnt_xprt *cx;
	struct rail_conn *rc;
	struct rail_pd *pd;
	struct rail_mr_pool *mrs;
	struct rail_buf_pool *send_bufs;
	struct rail_buf_pool *recv_bufs;
	struct clnt_send *sends;
	struct clnt_recv *recvs;
	u32 nr_sends;
	u32 nr_recvs;
	u32 max_sge;
	u32 asked;
	struct clnt_limits limits;
	bool remote_inval;
	bool was_up;
	bool ending;
	bool gone;
	struct list_head reqs;
	wait_queue_head_t idle;
	struct list_head free_sends;
	struct clnt_send **ring;
	u32 ring_head;
	u32 ring_tail;
	u32 ring_mask;
	u32 unsignalled;
	struct rail_recv_batch repost;
};

/**
 * struct clnt_stats - the rdma part of the "xprt:" line in mountstats, in its order
 *
 * Each is written by one context at a time: senders hold XPRT_LOCKED, replies come from one
 * completion queue. Where both count the same, a lost count does no harm.
 */
struct clnt_stats {
	unsigned long read_segs;
	unsigned long write_segs;
	unsigned long reply_segs;
	u64 rdma_sent;
	u64 rdma_received;
	u64 pullup;
	u64 fixup;
	unsigned long grown_buffers;
	unsigned long failed_sends;
	unsigned long bad_replies;
	unsigned long long_calls;
	unsigned long regions_replaced;
	unsigned long regions_left;
	unsigned long regions_made;
	unsigned long local_invals;
	unsigned long no_send_unit;
	unsigned long reply_waits;
};

/**
 * struct clnt_xprt - a mount's transport
 * @xprt: sunrpc's; must be first
 * @src: own address; family AF_UNSPEC: any
 * @inline_send: most bytes we send inline, constant
 * @inline_recv: most bytes we receive inline, constant
 * @slots: free slots; reserve_lock
 * @lock: see above
 * @conn_lock: @conn, and its beginning and end
 * @conn: the connection, or what is left of the last one. Senders, who hold XPRT_LOCKED, may look
 *	  at it while XPRT_CONNECTED.
 * @connect_work: begins a connection
 * @was_lost: the last connection failed: the next one waits a little, a random time
 * @credit: forward credits; transport_lock
 * @seg_lock: @segs
 * @segs: cached segments
 * @back_lock: @back_free, @back_ready
 * @back_free: free slots of the reverse direction
 * @back_ready: sessions that take reverse calls
 * @back_max: bytes of a reverse call or reply, as of the last connection
 * @stats: numbers
 */
struct clnt_xprt {
	struct rpc_xprt xprt;
	struct sockaddr_storage src;
	u32 inline_send;
	u32 inline_recv;
	struct list_head slots;
	spinlock_t lock;
	struct mutex conn_lock;
	struct clnt_conn *conn;
	struct delayed_work connect_work;
	bool was_lost;
	struct clnt_credit credit;
	spinlock_t seg_lock;
	struct list_head segs;
	spinlock_t back_lock;
	struct list_head back_free;
	unsigned int back_ready;
	u32 back_max;
	struct clnt_stats stats;
};

static inline struct clnt_xprt *clnt_xprt(struct rpc_xprt *xprt)
{
	return container_of(xprt, struct clnt_xprt, xprt);
}

static inline struct clnt_req *clnt_req(struct rpc_rqst *rqst)
{
	return container_of(rqst, struct clnt_req, rqst);
}

/* clnt_xprt.c */
unsigned int clnt_setting_slots(void);
unsigned int clnt_setting_inline_read(void);
unsigned int clnt_setting_inline_write(void);
void clnt_wake_senders(struct clnt_xprt *cx);

/* clnt_conn.c */
extern unsigned int clnt_peer_timeout;
void clnt_conn_init(struct clnt_xprt *cx);
void clnt_connect(struct rpc_xprt *xprt, struct rpc_task *task);
void clnt_close(struct rpc_xprt *xprt);
void clnt_conn_exit(struct clnt_xprt *cx);
void clnt_inject_disconnect(struct rpc_xprt *xprt);

/* clnt_send.c */
int clnt_send_request(struct rpc_rqst *rqst);
struct clnt_send *clnt_send_get(struct clnt_conn *conn);
void clnt_send_put(struct clnt_conn *conn, struct clnt_send *send);
int clnt_send_post(struct clnt_conn *conn, struct clnt_send *send, struct rail_chain *chain,
		   struct clnt_req *req);
void clnt_send_init(struct clnt_send *send);
void clnt_send_error(struct clnt_conn *conn, u32 xid, enum rail_rpcrdma_verdict verdict);
void clnt_segs_free(struct clnt_xprt *cx);

/* clnt_recv.c */
void clnt_recv_init(struct clnt_recv *recv);
void clnt_recv_again(struct clnt_conn *conn, struct clnt_recv *recv);
void clnt_req_init(struct clnt_req *req);
void clnt_req_put(struct clnt_req *req);
void clnt_req_kill(struct clnt_req *req);
void clnt_reqs_disconnected(struct clnt_conn *conn);
void clnt_segs_put(struct clnt_xprt *cx, struct clnt_req *req);

/* clnt_back.c */
#ifdef CONFIG_SUNRPC_BACKCHANNEL
void clnt_back_init(struct clnt_xprt *cx);
int clnt_back_setup(struct rpc_xprt *xprt, unsigned int min_reqs);
size_t clnt_back_maxpayload(struct rpc_xprt *xprt);
unsigned int clnt_back_num_slots(struct rpc_xprt *xprt);
void clnt_back_free_rqst(struct rpc_rqst *rqst);
void clnt_back_destroy(struct rpc_xprt *xprt, unsigned int max_reqs);
int clnt_back_send(struct clnt_conn *conn, struct rpc_rqst *rqst);
void clnt_back_call(struct clnt_conn *conn, const void *msg, const struct rail_rpcrdma_hdr *hdr);
#else
static inline void clnt_back_init(struct clnt_xprt *cx)
{
}

static inline int clnt_back_send(struct clnt_conn *conn, struct rpc_rqst *rqst)
{
	return -ENOTCONN;
}

static inline void clnt_back_call(struct clnt_conn *conn, const void *msg,
				  const struct rail_rpcrdma_hdr *hdr)
{
}
#endif

#endif /* RPCRDMA_CLNT_H */
