/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A pair of test modules that use rail_verbs as its real users do: like an RPC transport (gathered
 * sends, remote invalidation) and like a block transport (chunks of memory that the peer writes to
 * with immediate data, re-keyed at each use). Whatever arrives is checked to the byte.
 *
 * rail_vtest.ko has what both ends share, rail_vtest_server.ko listens and serves, and
 * rail_vtest_client.ko connects and asks. All are driven by text written to
 * /sys/kernel/debug/rail_vtest/{client,server}/control, see the tables of commands there.
 *
 * Lock order: rvt_side.mutex; rvt_ep.lock. rvt_side.dom_mutex is never held with either.
 */
#ifndef RAIL_VTEST_H
#define RAIL_VTEST_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <rail/verbs.h>

struct rvt_ep;
struct rvt_side;
struct rvt_stream;

/* ---------------------------------------------------------------- wire */

#define RVT_MAGIC	0x52565431
#define RVT_PORT	7174

/* What a peer may ask for at the most. */
#define RVT_MAX_SGE	12
#define RVT_MAX_STREAMS	4
#define RVT_MAX_MSG	(64U << 10)
#define RVT_MAX_MEM	(256U << 10)
#define RVT_MAX_WINDOW	1024
#define RVT_MAX_TAGS	256

enum rvt_type {
	RVT_DATA = 1,		/* one way, under the window */
	RVT_CREDIT,		/* @consumed only */
	RVT_START,		/* send me @seq messages of @size bytes; @seed */
	RVT_FIN,		/* that were all: @seq */
	RVT_FIN_ACK,		/* @seq of them came, @op were wrong */
	RVT_REQUEST,		/* @op on my memory at @addr, @rkey, @size */
	RVT_REPLY,		/* to request @tag: @op is 0 or an errno */
	RVT_CHUNK,		/* chunk @tag of mine may be written: @addr, @rkey, @size */
};

enum rvt_op {
	RVT_READ,		/* server reads the client's memory */
	RVT_WRITE,		/* server writes it */
	RVT_INV,		/* server only invalidates the key */
	RVT_IMM,		/* client writes a chunk of the server's, with immediate data */
	RVT_IMM0,		/* the same without data; the server answers the same way */
	RVT_NR_OPS,
};

#define RVT_F_PLAIN	1	/* plain work requests, not rail_rw */
#define RVT_F_KEEP	2	/* leave the key valid: the client invalidates it */

struct rvt_hdr {
	__le32 magic;
	u8 type;
	u8 stream;
	__le16 tag;
	__le32 len;		/* bytes of pattern behind the header */
	__le32 op;
	__le64 seq;
	__le64 seed;		/* of the pattern */
	__le64 addr;
	__le32 rkey;
	__le32 size;
	__le32 consumed;	/* data messages taken by the sender, modulo 2^32 */
	__le32 flags;
	__le32 pad;
	__le32 crc;		/* crc32c of all before it */
};

static_assert(sizeof(struct rvt_hdr) == 64);
static_assert(offsetof(struct rvt_hdr, crc) == 60);

/* Private data of connect and accept. The CM pads it with zeros: @tail shows that all came. */
struct rvt_priv {
	__le32 magic;
	__le32 group;
	__le16 window;
	__le16 tags;
	__le16 chunks;
	u8 sges;
	u8 streams;
	__le32 msg;
	__le32 mem;
	__le32 tail;
};

static_assert(sizeof(struct rvt_priv) == 28);

/* Private data of a refusal. */
struct rvt_refusal {
	__le32 magic;
	__le32 err;
	__le32 len;		/* of the private data that was refused */
};

#define RVT_IMM_CHUNK	0x10000000U
#define RVT_IMM_ZERO	0x20000000U
#define RVT_IMM_KIND	0xf0000000U
#define RVT_IMM_INDEX	0x0000ffffU

/* ---------------------------------------------------------------- options */

enum rvt_post {
	RVT_POST_TRY,		/* rail_post(), and wait for ops->space() */
	RVT_POST_QUEUED,	/* rail_post_queued() */
	RVT_POST_WAIT,		/* rail_post_wait() */
	RVT_POST_MIX,		/* each stream another */
};

enum rvt_fail {
	RVT_FAIL_NONE,
	RVT_FAIL_CONFIGURE,
	RVT_FAIL_CREATED,
	RVT_FAIL_ESTABLISHED,
};

/* All members are u32: the option table writes them. */
struct rvt_params {
	u32 poll;
	u32 depth;
	u32 chain;
	u32 interval;
	u32 window;
	u32 tags;
	u32 chunks;
	u32 msg;
	u32 mem;
	u32 streams;
	u32 sges;
	u32 signal;
	u32 rw;
	u32 mrs;
	u32 mrmax;
	u32 post;
	u32 conns;
	u32 timeout;
	u32 retries;
	u32 rnr;
	u32 ack;
	u32 privlen;
	u32 watch;
	u32 keep;
	u32 fail_in;
	u32 defer;
	u32 reject;
	u32 hold_closing;
	u32 hold_drained;
};

struct rvt_option {
	const char *name;
	size_t offset;
	u32 min;
	u32 max;
	const char * const *words;	/* or the values' names, up to a NULL */
};

extern const struct rvt_option rvt_param_options[];
extern const struct rvt_params rvt_param_defaults;

int rvt_word(const char * const *words, const char *word, u32 *value);
int rvt_parse(const struct rvt_option *options, void *base, char *text);

/* ---------------------------------------------------------------- pattern and memory */

/**
 * struct rvt_mem - scattered pages with a pattern
 * @sg: as many entries as are needed for @len bytes, the first one at an odd place in its page
 * @nents: entries for @len
 * @len: bytes in use
 * @pages: entries there are
 */
struct rvt_mem {
	struct scatterlist *sg;
	u32 nents;
	u32 len;
	u32 pages;
};

u64 rvt_mix(u64 value);
void rvt_fill(void *buf, u32 len, u64 seed, u32 offset);
bool rvt_matches(const void *buf, u32 len, u64 seed, u32 offset);
int rvt_mem_alloc(struct rvt_mem *mem, u32 size);
void rvt_mem_free(struct rvt_mem *mem);
void rvt_mem_resize(struct rvt_mem *mem, u32 len);
void rvt_mem_fill(struct rvt_mem *mem, u64 seed);
bool rvt_mem_matches(struct rvt_mem *mem, u64 seed);
void rvt_mem_copy_out(struct rvt_mem *mem, void *to, u32 len);
bool rvt_mem_matches_at(struct rvt_mem *mem, u32 at, u32 len, u64 seed);

/* ---------------------------------------------------------------- sides */

enum rvt_stat {
	RVT_STAT_CONNECTS,
	RVT_STAT_REQUESTS,
	RVT_STAT_UP,
	RVT_STAT_CLOSED,
	RVT_STAT_REFUSED,
	RVT_STAT_SENT,
	RVT_STAT_RECEIVED,
	RVT_STAT_BYTES,
	RVT_STAT_READ,
	RVT_STAT_WRITE,
	RVT_STAT_INV,
	RVT_STAT_IMM,
	RVT_STAT_IMM0,
	RVT_STAT_LOCAL_INV,
	RVT_STAT_CREDITS,
	RVT_STAT_RUNS,
	RVT_STAT_AGAIN,
	RVT_STAT_QUEUED,
	RVT_STAT_MR_EMPTY,
	RVT_STAT_REMOVED,
	RVT_STAT_GONE,
	RVT_STAT_FLUSHED,
	/* From here on each one counted is a fault: of rail_verbs, or wanted by a test. */
	RVT_STAT_PROTOCOL,
	RVT_STAT_BAD_HEADER,
	RVT_STAT_BAD_CONTENT,
	RVT_STAT_BAD_ORDER,
	RVT_STAT_BAD_COUNT,
	RVT_STAT_BAD_KEY,
	RVT_STAT_SAME_KEY,
	RVT_STAT_BAD_REPLY,
	RVT_STAT_NOT_TOLD,
	RVT_STAT_TOLD_TWICE,
	RVT_STAT_LATE_CALL,
	RVT_NR_STATS,
};

enum rvt_hist {
	RVT_HIST_REQUEST,
	RVT_NR_HISTS,
};

/* How far an endpoint came: what tests ask for a closed one. */
enum rvt_phase {
	RVT_PHASE_NEW,
	RVT_PHASE_ASKED,	/* connect called or request received */
	RVT_PHASE_CONFIGURED,
	RVT_PHASE_CREATED,
	RVT_PHASE_UP,
	RVT_NR_PHASES,
};

#define RVT_HISTORY	64

struct rvt_past {
	u32 id;
	int reason;
	int refusal;
	enum rvt_phase phase;
};

/**
 * struct rvt_role - what a side does beyond the common part
 * @size: of its endpoint, which begins with a struct rvt_ep
 * @passive: its connections are made by others
 * @setup: the QP is there: allocate
 * @up: the connection is up: may send
 * @message: a request, reply or chunk message
 * @imm: a write with immediate data arrived
 * @kick: there may be work to do, space to post or a region: any context but irq
 * @work: of the endpoint, may still be called when the connection is down; NULL: none
 * @drained: nothing is in flight any more
 * @teardown: the connection is gone: free; also after @setup failed half-way
 * @command: of the control file; side->mutex not held
 */
struct rvt_role {
	size_t size;
	bool passive;
	int (*setup)(struct rvt_ep *ep);
	void (*up)(struct rvt_ep *ep);
	int (*message)(struct rvt_ep *ep, const struct rvt_hdr *hdr, u32 key);
	int (*imm)(struct rvt_ep *ep, u32 imm);
	void (*kick)(struct rvt_ep *ep);
	void (*work)(struct work_struct *work);
	void (*drained)(struct rvt_ep *ep);
	void (*teardown)(struct rvt_ep *ep);
	int (*command)(struct rvt_side *side, const char *name, char *args);
};

/**
 * struct rvt_side - client or server
 * @name: of its folder in debugfs
 * @role: what it does
 * @params: of endpoints to come
 * @mutex: @eps, @past, @params
 * @eps: endpoints, until they are reaped
 * @past: the last ones reaped
 * @nr_past: how many were ever reaped
 * @dom_mutex: @doms
 * @doms: what connections of one group on one device share
 * @wq: all work
 * @waitq: woken whenever something happened
 * @event: counts what happened
 * @released: counts "release" commands: ends a hold
 * @leaving: the module goes; holds and waits are void
 * @stats: numbers
 * @dir: debugfs
 * @control: in it
 */
struct rvt_side {
	const char *name;
	const struct rvt_role *role;
	struct rvt_params params;
	struct mutex mutex;
	struct list_head eps;
	struct rvt_past past[RVT_HISTORY];
	u32 nr_past;
	struct mutex dom_mutex;
	struct list_head doms;
	struct workqueue_struct *wq;
	wait_queue_head_t waitq;
	atomic_t event;
	atomic_t released;
	bool leaving;
	struct rail_stats stats;
	struct dentry *dir;
	struct dentry *control;
};

/**
 * struct rvt_dom - what the connections of one group on one device share
 * @side: whose
 * @entry: in @side->doms
 * @group: the client's session
 * @dev: device; valid while there are users
 * @watch: tells of unplug
 * @pd: protection domain
 * @mrs: memory regions
 * @users: connections, and one for @kept; dom_mutex
 * @kept: stays without connections, until unplug or "forget"; dom_mutex
 * @gone: the device goes; dom_mutex
 * @unkeep: puts what @kept stood for
 */
struct rvt_dom {
	struct rvt_side *side;
	struct list_head entry;
	u32 group;
	struct rail_dev *dev;
	struct rail_dev_watch watch;
	struct rail_pd *pd;
	struct rail_mr_pool *mrs;
	u32 users;
	bool kept;
	bool gone;
	struct work_struct unkeep;
};

int rvt_side_init(struct rvt_side *side, const char *name, const struct rvt_role *role);
void rvt_side_stop_commands(struct rvt_side *side);
void rvt_side_exit(struct rvt_side *side);
void rvt_event(struct rvt_side *side);
void rvt_close_all(struct rvt_side *side, int reason);
void rvt_forget_doms(struct rvt_side *side);
struct rvt_dom *rvt_dom_get(struct rvt_side *side, struct rail_dev *dev, u32 group,
			    const struct rvt_params *params);
void rvt_dom_put(struct rvt_dom *dom);

/* ---------------------------------------------------------------- units: what is sent */

/**
 * struct rvt_unit - a message or a write, with its memory
 * @ep: where it is sent
 * @cqe: told of its end, where signalled
 * @chain: work requests posted together, its own one last
 * @wr: its own work request
 * @sge: the header, then the pieces
 * @head: buffer of the header
 * @pieces: buffers of the pattern, none for a mere header
 * @nr_pieces: how many
 * @done: it was sent (0), or failed or was flushed; only if signalled, or never posted
 * @entry: the user's
 * @stream: the user's
 * @signalled: is told of
 */
struct rvt_unit {
	struct rvt_ep *ep;
	struct rail_cqe cqe;
	struct rail_chain chain;
	struct ib_rdma_wr wr;
	struct ib_sge sge[RVT_MAX_SGE];
	struct rail_buf *head;
	struct rail_buf *pieces[RVT_MAX_SGE - 1];
	u32 nr_pieces;
	void (*done)(struct rvt_unit *unit, int err);
	struct list_head entry;
	struct rvt_stream *stream;
	bool signalled;
};

int rvt_unit_init(struct rvt_unit *unit, struct rvt_ep *ep, u32 pieces,
		  void (*done)(struct rvt_unit *unit, int err));
void rvt_unit_free(struct rvt_unit *unit);
struct rvt_hdr *rvt_unit_begin(struct rvt_unit *unit, enum rvt_type type);
void rvt_unit_prepend(struct rvt_unit *unit, const struct rail_chain *before);
void rvt_unit_end(struct rvt_unit *unit, u32 len, bool signalled);
void rvt_unit_write_imm(struct rvt_unit *unit, u64 addr, u32 rkey, u32 imm);
void rvt_unit_zero_imm(struct rvt_unit *unit, u32 imm);
void rvt_unit_invalidate(struct rvt_unit *unit, u32 rkey);
void rvt_unit_queue(struct rvt_unit *unit);
int rvt_unit_try(struct rvt_unit *unit);
int rvt_unit_wait(struct rvt_unit *unit);
void rvt_told(struct rvt_ep *ep, const struct ib_wc *wc);
void rvt_refused(struct rvt_ep *ep);

/* ---------------------------------------------------------------- endpoints */

/**
 * struct rvt_stream - sends data messages one after the other
 * @ep: where
 * @index: in ep->streams, and on the wire
 * @work: sends as much as it can
 * @post: how
 * @units: what it sends with
 * @nr_units: how many
 * @free: units to use; ep->lock
 * @inflight: units in the order in which they are posted; ep->lock
 * @starved: waits for a unit; ep->lock
 * @since: unsignalled ones since the last signalled one; work only
 * @ready: built, not yet posted; work only
 * @next: sequence number; work only
 * @count: how many to send; set before the work is queued
 * @active: has something to send; work only, but for the start
 */
struct rvt_stream {
	struct rvt_ep *ep;
	u32 index;
	struct work_struct work;
	enum rvt_post post;
	struct rvt_unit *units;
	u32 nr_units;
	struct list_head free;
	struct list_head inflight;
	bool starved;
	u32 since;
	struct rvt_unit *ready;
	u64 next;
	u64 count;
	bool active;
};

/* Messages about the run: one unit each, which is sent again if it was wanted while busy. */
enum rvt_ctl_kind {
	RVT_CTL_CREDIT,
	RVT_CTL_START,
	RVT_CTL_FIN,
	RVT_CTL_FIN_ACK,
	RVT_NR_CTLS,
};

/* @busy, @again: ep->lock */
struct rvt_ctl {
	struct rvt_unit unit;
	bool busy;
	bool again;
};

struct rvt_recv {
	struct rvt_ep *ep;
	struct rail_cqe cqe;
	struct ib_recv_wr wr;
	struct rail_buf *buf;
	struct ib_wc wc;
	struct list_head entry;
};

/**
 * struct rvt_ep - a connection and all that belongs to it
 * @side: client or server
 * @entry: in @side->eps; side->mutex
 * @conn: the connection, referenced until reaped
 * @p: its options; constant once connecting
 * @group: the client's session
 * @passive: made by a peer's request
 * @phase: how far it came
 * @refusal: errno that the peer refused with
 * @dom: shared things
 * @rx_pool: receive buffers
 * @head_pool: headers to send
 * @piece_pool: pieces of pattern to send
 * @recvs: receives
 * @nr_recvs: how many
 * @streams: senders
 * @nr_streams: how many
 * @ctl: units for messages about the run
 * @poller: thread that polls a direct CQ
 * @work: the role's
 * @reap: frees it
 * @dead: ops->closed() was called: whoever still calls is wrong
 * @told: signalled sends and other such that we are still to be told of
 * @recvs_out: receives that we are still to be told of
 * @lock: what follows
 * @up: may send and handle messages
 * @early: receives that completed before
 * @spent: receives to be posted again
 * @nr_spent: how many
 * @tx_sent: data messages sent
 * @tx_acked: data messages consumed by the peer
 * @rx_consumed: data messages consumed
 * @rx_told: data messages that the peer knows are consumed
 * @tx_blocked: a stream waits for the window
 * @ack_count: what the next FIN_ACK tells
 * @ack_wrong: what the next FIN_ACK tells
 * @rx_run: data messages of the peer's run
 * @rx_wrong: wrong ones among them
 * @rx_next: sequence number that comes next, by stream
 * @tx_left: streams that still send
 * @tx_count: data messages of our run
 * @tx_size: bytes of pattern at the most
 * @tx_seed: of our run
 * @parts: what our run still waits for; 0: no run
 * @back: data messages that the peer is to send in our run
 * @back_size: bytes of pattern in them at the most
 */
struct rvt_ep {
	struct rvt_side *side;
	struct list_head entry;
	struct rail_conn *conn;
	struct rvt_params p;
	u32 group;
	bool passive;
	enum rvt_phase phase;
	int refusal;
	struct rvt_dom *dom;
	struct rail_buf_pool *rx_pool;
	struct rail_buf_pool *head_pool;
	struct rail_buf_pool *piece_pool;
	struct rvt_recv *recvs;
	u32 nr_recvs;
	struct rvt_stream *streams;
	u32 nr_streams;
	struct rvt_ctl ctl[RVT_NR_CTLS];
	struct task_struct *poller;
	struct work_struct work;
	struct work_struct reap;
	bool dead;
	atomic_t told;
	atomic_t recvs_out;

	spinlock_t lock;
	bool up;
	struct list_head early;
	struct list_head spent;
	u32 nr_spent;
	u32 tx_sent;
	u32 tx_acked;
	u32 rx_consumed;
	u32 rx_told;
	bool tx_blocked;
	u64 ack_count;
	u64 ack_wrong;
	u64 rx_run;
	u64 rx_wrong;
	u64 rx_next[RVT_MAX_STREAMS];
	atomic_t tx_left;
	u64 tx_count;
	u32 tx_size;
	u64 tx_seed;
	atomic_t parts;
	u64 back;
	u32 back_size;
};

extern const struct rail_conn_ops rvt_conn_ops;

struct rvt_ep *rvt_ep_create(struct rvt_side *side, const struct rvt_params *params, u32 group,
			     bool passive);
void rvt_ep_discard(struct rvt_ep *ep);
void rvt_ep_link(struct rvt_ep *ep, struct rail_conn *conn);
void rvt_ep_fail(struct rvt_ep *ep, enum rvt_stat stat, int err);
void rvt_ep_ctl(struct rvt_ep *ep, enum rvt_ctl_kind kind);
void rvt_ep_send_run(struct rvt_ep *ep, u64 count, u32 size, u64 seed);
void rvt_ep_part_done(struct rvt_ep *ep);
bool rvt_hdr_good(const struct rvt_hdr *hdr);
void rvt_hdr_seal(struct rvt_hdr *hdr);
void rvt_pack_priv(struct rvt_priv *priv, const struct rvt_ep *ep);
int rvt_unpack_priv(struct rvt_params *params, u32 *group, const void *priv, u8 len);

static inline void rvt_count(struct rvt_ep *ep, enum rvt_stat stat)
{
	rail_stats_inc(&ep->side->stats, stat);
}

#endif /* RAIL_VTEST_H */
