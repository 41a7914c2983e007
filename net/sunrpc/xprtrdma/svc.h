/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The server's end of RPC-over-RDMA: what its files share.
 *
 * Objects, who owns them, how they die
 * ------------------------------------
 *
 * rsvc_listener  an address nfsd listens on. sunrpc's, by the svc_xprt in it. xpo_detach ends
 *		  the rail listener and every connection that nfsd has not accepted yet;
 *		  xpo_free frees it.
 * rsvc_conn	  a client's connection. Made when the client asks. Until nfsd accepts it the
 *		  listener holds the svc_xprt's first reference, afterwards sunrpc does.
 * rsvc_call	  a receive buffer, and the call that came in it. The connection's; there is a
 *		  fixed number of them. Posted, or with exactly one of: the list of calls that
 *		  wait for a thread, a pull, a thread (rq_xprt_ctxt), sunrpc's deferred requests.
 * rsvc_io	  a pull (RDMA Reads of a call's read chunks) or a reply (RDMA Writes and a Send),
 *		  with the pages it works on. Idle in the connection's cache, with the one who
 *		  builds it, or in flight. Ends in its completion; a quiet reply, which has none,
 *		  in that of a reply posted after it (@riders); if a part of it could not be
 *		  posted, when the queue has been drained (@doomed).
 * rsvc_back	  the rpc_xprt by which nfsd calls the client back. sunrpc's.
 *
 * Life of a connection
 * --------------------
 *
 *   asked	rail's request(): made, on listener->waiting, accepted towards the client
 *   offered	rail's established(): on listener->ready, XPT_CONN tells nfsd
 *   accepted	xpo_accept(): sunrpc's
 *   closing	rail's closing(), or xpo_detach() which brings it about: no new work on the QP
 *		(rsvc_enter() fails), XPT_CLOSE
 *   freed	xpo_free() when the last request is done: a work waits for rail's closed(), then
 *		frees everything. Not in xpo_free() itself, whose caller may be a rail callback.
 *
 * A connection that ends before it was accepted is freed by whoever takes it off the listener.
 *
 * Using the QP: rsvc_enter() ... rsvc_leave() around whatever maps memory or makes rdma_rw
 * contexts; rail's drained() waits until all have left and releases what is left in @doomed.
 *
 * Locks, in the order they nest
 * -----------------------------
 *
 *	rsvc_accept_lock	listeners' lists, rsvc_conn.listener
 *	rsvc_conn.lock		a connection's lists; also taken in completions, in softirq
 *	rpc_xprt.queue_lock	sunrpc's; reverse calls waiting for their replies
 */
#ifndef RAIL_SVC_H
#define RAIL_SVC_H

#include <linux/completion.h>
#include <linux/percpu_counter.h>
#include <linux/refcount.h>
#include <linux/sunrpc/svc_xprt.h>
#include <linux/sunrpc/xprt.h>
#include <linux/workqueue.h>

#include <rail/verbs.h>
#include <rail/wire/rpcrdma.h>

#include "rpcrdma_priv.h"

/* What a call may carry beyond what its inline size bounds already. */
#define RSVC_MAX_READ_SEGS	256
#define RSVC_MAX_READ_CHUNKS	8
#define RSVC_MAX_WRITE_CHUNKS	8
#define RSVC_MAX_CHUNK_SEGS	256

/* Ranges of the message that stay when so many items are taken out of it. */
#define RSVC_MAX_RANGES		(RSVC_MAX_READ_CHUNKS + 1)

/* Scatter entries in a send. More than that many pieces are copied together. */
#define RSVC_MAX_SGE		16

/* Pieces of replies up to this size are copied behind the header: cheaper than to map them. */
#define RSVC_COPY_MAX		512

/* At the latest every so many replies the device tells that it sent one, and those before it. */
#define RSVC_SIGNAL_EVERY	8

/* Reverse calls in flight; the client says how many of them it really takes. */
#define RSVC_BACK_SLOTS		8

/* Receives for what costs the sender no credit: errors, DONE. */
#define RSVC_SPARE_RECVS	4

/* Receives are posted again so many at a time; as many more there are. */
#define RSVC_RECV_BATCH		8

/* Pages kept for pulls, of all connections together: 8 MiB, while there are any connections. */
#define RSVC_SPARE_PAGES	2048

/* Requests to connect that nfsd has not looked at yet. */
#define RSVC_BACKLOG		128

/* From a request to connect until the connection is up. */
#define RSVC_ACCEPT_MS		10000

/* Without a sign of life of the client's device for so long, the connection is given up. */
#define RSVC_SILENT_MS		10000

struct rsvc_conn;

/**
 * struct rsvc_range - bytes of an RPC message
 * @at: first byte
 * @len: how many
 */
struct rsvc_range {
	u32 at;
	u32 len;
};

/**
 * struct rsvc_chain - a chain and whose it is
 * @chain: work requests
 * @io: whose
 */
struct rsvc_chain {
	struct rail_chain chain;
	struct rsvc_io *io;
};

enum rsvc_io_kind {
	RSVC_PULL,
	RSVC_REPLY,
	RSVC_NR_KINDS,
};

/**
 * struct rsvc_io - RDMA Reads of a call, or RDMA Writes and the Send of a reply
 * @cqe: told of the last work request
 * @conn: connection; constant
 * @kind: constant
 * @entry: in the connection's cache, in @doomed, in @quiet, or in @riders of another
 * @doomed: on that list; rsvc_conn.lock
 * @quiet: reply: its completion is not told, since nothing but @head waits for it
 * @riders: reply that is told: quiet ones that were posted before it and end with it
 * @call: pull: the call it is for
 * @failed: pull: the connection broke before all bytes were there
 * @split: pull: one chunk, apart from the rest of the call (struct rsvc_layout)
 * @base_pages: pull: pages before that chunk's
 * @wr: reply: the Send
 * @head: reply: header, and copied bytes of the message behind it
 * @head_dma: where the device sees it; mapped as long as the rsvc_io lives
 * @sge: reply: what the Send gathers; [0] is in @head, the others are mapped pages or in @head
 * @nr_sge: how many
 * @mapped: which of them are pages: a bit for each
 * @uses_kvecs: the device is at the head or the tail of the message
 * @pages: pages held until the end
 * @nr_pages: how many
 * @max_pages: room
 * @sg: scatterlists of all of @rw, one behind the other
 * @nr_sg: how many entries are used
 * @max_sg: room
 * @rw: RDMA Reads or Writes
 * @nr_rw: how many of them are initialised
 * @max_rw: room
 * @rw_wrs: work requests of each
 * @chains: what is posted
 * @nr_chains: how many
 */
struct rsvc_io {
	struct rail_cqe cqe;
	struct rsvc_conn *conn;
	enum rsvc_io_kind kind;
	struct list_head entry;
	bool doomed;
	bool quiet;
	struct list_head riders;
	struct rsvc_call *call;
	bool failed;
	bool split;
	u32 base_pages;
	struct ib_send_wr wr;
	void *head;
	u64 head_dma;
	struct ib_sge sge[RSVC_MAX_SGE];
	u32 nr_sge;
	u32 mapped;
	bool uses_kvecs;
	struct page **pages;
	u32 nr_pages;
	u32 max_pages;
	struct scatterlist *sg;
	u32 nr_sg;
	u32 max_sg;
	struct rail_rw *rw;
	u32 *rw_wrs;
	u32 nr_rw;
	u32 max_rw;
	struct rsvc_chain *chains;
	u32 nr_chains;
};

/**
 * struct rsvc_call - a receive, and the call that came in it
 * @cqe: told of the receive
 * @wr: receive
 * @buf: memory
 * @conn: connection; constant
 * @entry: in rsvc_conn.ready, .pulled or .odd
 * @reason: why it is refused, in .odd
 * @hdr: transport header of the call
 * @pull: its read chunks, while they are being read and until a thread takes them over
 * @nr_payloads: results that nfsd marked as fit for a write chunk, in order
 * @payload: which bytes of the reply they are
 */
struct rsvc_call {
	struct rail_cqe cqe;
	struct ib_recv_wr wr;
	struct rail_buf *buf;
	struct rsvc_conn *conn;
	struct list_head entry;
	enum rail_rpcrdma_reason reason;
	struct rail_rpcrdma_hdr hdr;
	struct rsvc_io *pull;
	u32 nr_payloads;
	struct rsvc_range payload[RSVC_MAX_WRITE_CHUNKS];
};

/**
 * struct rsvc_listener - an address nfsd listens on
 * @xprt: for sunrpc
 * @rail: the listener; until detached
 * @waiting: connections that are not up yet; rsvc_accept_lock
 * @ready: connections that nfsd may accept; rsvc_accept_lock
 * @nr: connections on both; rsvc_accept_lock
 */
struct rsvc_listener {
	struct svc_xprt xprt;
	struct rail_listener *rail;
	struct list_head waiting;
	struct list_head ready;
	u32 nr;
};

/**
 * struct rsvc_conn - a client's connection
 * @xprt: for sunrpc
 * @rail: the connection, referenced
 * @listener: on whose lists it is; rsvc_accept_lock; NULL: sunrpc's
 * @waiting_entry: there
 * @agreed: sizes and remote invalidation; constant once asked
 * @max_calls: most credits a client is granted; constant
 * @max_unsent: replies that may wait for the client to take them; constant
 * @nr_calls: receives; constant
 * @max_chain: longest chain; constant
 * @max_sge: scatter entries in a send; constant
 * @head_size: size of rsvc_io.head; constant
 * @max_pages: pages a thread has for a call; constant
 * @rules: what calls may carry; constant
 * @pd: protection domain
 * @dev: device; valid between rsvc_enter() and rsvc_leave(), and as long as @pd
 * @bufs: memory of receives
 * @calls: the receives
 * @users: between rsvc_enter() and rsvc_leave(), and one until closing
 * @left: completed when @users is 0
 * @unsent: replies and errors built and not yet told of
 * @lock: the lists below, @repost, @back, @pulls, @starved
 * @repost: receives that wait to be posted again
 * @ready: calls that wait for a thread
 * @pulled: calls whose read chunks are there
 * @odd: messages that are no calls, or are refused: for @odd_work
 * @pulls: pulls in flight
 * @starved: a call waits for one of them to end
 * @idle: unused rsvc_io, by kind
 * @nr_idle: how many
 * @doomed: rsvc_io of which a part was posted
 * @quiet: quiet replies that were posted, for the next told one to take along
 * @nr_quiet: how many
 * @back: reverse direction, referenced; NULL: none
 * @back_grant: reverse calls the client takes at a time; written by @odd_work
 * @odd_work: sees to @odd, where it may sleep
 * @free_work: frees it
 */
struct rsvc_conn {
	struct svc_xprt xprt;
	struct rail_conn *rail;
	struct rsvc_listener *listener;
	struct list_head waiting_entry;
	struct rail_rpcrdma_agreed agreed;
	u32 max_calls;
	u32 max_unsent;
	u32 nr_calls;
	u32 max_chain;
	u32 max_sge;
	u32 head_size;
	u32 max_pages;
	struct rail_rpcrdma_rules rules;
	struct rail_pd *pd;
	struct rail_dev *dev;
	struct rail_buf_pool *bufs;
	struct rsvc_call *calls;

	refcount_t users;
	struct completion left;
	atomic_t unsent;

	spinlock_t lock;
	struct rail_recv_batch repost;
	struct list_head ready;
	struct list_head pulled;
	struct list_head odd;
	u32 pulls;
	bool starved;
	struct list_head idle[RSVC_NR_KINDS];
	u32 nr_idle[RSVC_NR_KINDS];
	struct list_head doomed;
	struct list_head quiet;
	u32 nr_quiet;
	struct rpc_xprt *back;
	u32 back_grant;

	struct work_struct odd_work;
	struct work_struct free_work;
};

static inline struct rsvc_conn *rsvc_conn_of(struct svc_xprt *xprt)
{
	return container_of(xprt, struct rsvc_conn, xprt);
}

/* Is that byte of a message in its pages? Else it is in head or tail. */
static inline bool rsvc_in_pages(const struct xdr_buf *buf, u32 at)
{
	return at - buf->head[0].iov_len < buf->page_len;
}

/**
 * rsvc_enter - keep the QP and the device
 * @c: connection
 *
 * Context: any.
 * Return: false when the connection is closing. Else rsvc_leave() has to follow, soon.
 */
static inline bool rsvc_enter(struct rsvc_conn *c)
{
	return refcount_inc_not_zero(&c->users);
}

/**
 * rsvc_leave - the QP and the device may go
 * @c: connection
 */
static inline void rsvc_leave(struct rsvc_conn *c)
{
	if (refcount_dec_and_test(&c->users))
		complete_all(&c->left);
}

#define rsvc_warn(c, fmt, ...) \
	pr_warn_ratelimited("rpcrdma: client %s: " fmt, (c)->xprt.xpt_remotebuf, ##__VA_ARGS__)

extern struct workqueue_struct *rsvc_wq;
extern struct svc_xprt_class rsvc_class;
extern const struct rail_listener_ops rsvc_listener_ops;
extern const struct rail_conn_ops rsvc_conn_ops;

/* svc_listener.c */
void rsvc_unlist(struct rsvc_conn *c);
void rsvc_offer(struct rsvc_conn *c);

/* svc_conn.c */
struct rsvc_conn *rsvc_conn_alloc(struct rsvc_listener *listener, struct rail_conn *rail,
				  const void *priv, u8 priv_len);
void rsvc_conn_priv(struct rsvc_conn *c, void *priv);
void rsvc_free(struct svc_xprt *xprt);
void rsvc_detach(struct svc_xprt *xprt);
void rsvc_call_post(struct rsvc_call *call);

/* svc_recv.c */
void rsvc_received(struct rail_cqe *cqe, struct ib_wc *wc);
void rsvc_odd_work(struct work_struct *work);
void rsvc_pull_done(struct rsvc_io *io);
int rsvc_recvfrom(struct svc_rqst *rqstp);
void rsvc_spare_free(void);
void rsvc_release_ctxt(struct svc_xprt *xprt, void *ctxt);

/* svc_send.c */
int rsvc_sendto(struct svc_rqst *rqstp);
int rsvc_result_payload(struct svc_rqst *rqstp, unsigned int offset, unsigned int length);
int rsvc_has_wspace(struct svc_xprt *xprt);
void rsvc_reply_done(struct rsvc_io *io);
void rsvc_send_error(struct rsvc_conn *c, const struct rail_rpcrdma_hdr *hdr,
		     enum rail_rpcrdma_verdict verdict);
struct rsvc_io *rsvc_reply_get(struct rsvc_conn *c);
int rsvc_reply_post(struct rsvc_io *io, u32 head_len, bool quiet);

/* svc_io.c */
struct rsvc_io *rsvc_io_get(struct rsvc_conn *c, enum rsvc_io_kind kind);
bool rsvc_io_room(struct rsvc_io *io, u32 pages, u32 rws);
int rsvc_io_transfer(struct rsvc_io *io, const struct xdr_buf *local,
		     const struct rsvc_range *range, u32 nr_ranges, const void *header,
		     const struct rail_rpcrdma_chunk *chunk, enum dma_data_direction dir);
bool rsvc_io_chains(struct rsvc_io *io);
int rsvc_io_post(struct rsvc_io *io);
void rsvc_io_unmap(struct rsvc_io *io);
void rsvc_io_put(struct rsvc_io *io);
void rsvc_io_release_doomed(struct rsvc_conn *c);
void rsvc_io_free_idle(struct rsvc_conn *c);
u32 rsvc_piece(const struct xdr_buf *buf, u32 at, u32 len, struct page **page, u32 *offset);
u32 rsvc_complement(const struct rsvc_range *cut, u32 nr, u32 len, struct rsvc_range *keep);

/* svc_back.c */
int rsvc_back_init(void);
void rsvc_back_exit(void);
void rsvc_back_reply(struct rsvc_conn *c, struct rsvc_call *call);
void rsvc_back_error(struct rsvc_conn *c, const struct rail_rpcrdma_hdr *hdr);
void rsvc_back_gone(struct rsvc_conn *c);

/* svc_sysctl.c */
enum rsvc_stat {
	RSVC_STAT_RECV,
	RSVC_STAT_READ,
	RSVC_STAT_WRITE,
	RSVC_STAT_SQ_STARVE,
	RSVC_STAT_RQ_STARVE,
	/* What the well-known names of no meaning here show; always 0. */
	RSVC_STAT_NONE,
	RSVC_NR_STATS,
};

extern struct percpu_counter rsvc_stats[RSVC_NR_STATS];
extern unsigned int rsvc_max_requests;
extern unsigned int rsvc_max_req_size;

int rsvc_stats_init(void);
void rsvc_stats_exit(void);
void rsvc_sysctl_init(void);
void rsvc_sysctl_exit(void);

#endif /* RAIL_SVC_H */
