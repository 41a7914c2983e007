/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The RTRS client. What it promises its user stands in <rail/rtrs.h>.
 *
 * Objects, who owns them, how they die
 * ------------------------------------
 *
 * rail_clt	a session. Made by rail_clt_open(), freed when rail_clt_close() has ended all its
 *		paths and the last sysfs file is closed (device reference).
 * clt_req	a request, one a permit (queue depth), made with the first path's first answer and
 *		freed with the session.
 * clt_path	a path. Made with the session or by add_path. clt_path_remove() ends its life, then
 *		sysfs and debugfs, then takes it from clt->paths: who finds none there any more may
 *		end the session. An RCU grace period and the last reference later it is freed.
 * clt_conn	a connection of a path; one array a path, as long as the path. Its rail_conn,
 *		receives and buffers are made for each attempt, and die in
 *		clt_path_teardown().
 * clt_slot	what a path has for a request: the chunk's address and key at the server, a header
 *		buffer, a memory region, room for a small one's data. Made and unmade as the
 *		rail_conn is.
 * clt_bounce	that room of some slots, and the region over it by which the server reaches it as
 *		long as the path lives. Nothing but data of small requests is ever there.
 *
 * A path's life (clt_path.state; only the path's work moves it)
 * -------------------------------------------------------------
 *
 *	OFF ------> CONNECTING ------> UP
 *	 ^  ^        |    ^             |
 *	 |  |        v    |             v
 *	 |  '---- CLOSING <-------------'
 *	 |           |    |
 *	 |           v    |
 *	 '------- WAITING-'            OFF ---> GONE
 *
 *	OFF		not wanted, or given up after max_reconnect_attempts: nothing of it exists
 *	CONNECTING	connection 0, then the others at once, then INFO
 *	UP		takes requests
 *	CLOSING		connections end; then nothing on the wire knows its requests any more,
 *			and they go elsewhere
 *	WAITING		until the next attempt
 *	GONE		removed
 *
 * What ends an attempt or a path that is up goes through clt_path_fail(): the first one leaves its
 * reason and wakes the work.
 *
 * Tear-down: not usable for new requests; all connections closed and waited for: no completion is
 * to come, no peer can reach memory through them; an RCU grace period: nobody is submitting any
 * more; heartbeat stopped; regions given back, so that every key is dead; data unmapped; buffers,
 * pools, protection domain given back; requests sent elsewhere.
 *
 * A request's life (clt_req.state)
 * --------------------------------
 *
 *	IDLE ---> FLYING ---> IDLE		answered
 *	 |         |   ^
 *	 |         v   |
 *	 '------> WAITING ---> IDLE		timeout, cancel, close
 *
 *	FLYING	req->path has it. It ends when req->pending is 0: its send completed (the device
 *		does not read its memory any more), the answer is here, and a local invalidation,
 *		if any, completed. If the path dies first, the teardown has it.
 *		Of a small one it is enough that it was posted and answered: what its send reads is
 *		the path's own, and a device that sends it again, for it got no acknowledgment, is
 *		not listened to.
 *	WAITING	in clt->waiting, for a path
 *
 * There is one owner at any time: the submitter until the post; completions while FLYING; the
 * teardown, when completions are over; whoever takes it off clt->waiting, under clt->lock.
 *
 * The gate. I/O passes while clt->open; admin requests pass while a path is up. The gate shuts when
 * the last path goes and opens when link_up() has returned and that path or another is still up
 * (client_wait.c).
 *
 * Locks, in the order they nest
 * -----------------------------
 *
 *	clt_sessions_lock	names of sessions; a mutex
 *	clt.mutex		clt->paths to write, request table; a mutex
 *	clt.lock		waiting requests, gate, number of paths up; spinlock, irq safe
 *	RCU			clt->paths to read; a path chosen under it stays until it is left
 */
#ifndef RTRS_CLIENT_H
#define RTRS_CLIENT_H

#include <linux/device.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sbitmap.h>
#include <linux/spinlock.h>
#include <linux/uuid.h>
#include <linux/wait.h>

#include "client_pure.h"
#include "rtrs.h"

#undef pr_fmt
#define pr_fmt(fmt) "rtrs-client: " fmt

#define CLT_MAX_PATHS		128
/* Pieces of a send; data in more pieces is registered. */
#define CLT_MAX_SGE		32
/* Bytes of a header buffer. */
#define CLT_HDR_SIZE		512
/* Bytes of a receive: a new key, answers to small requests, or nothing. */
#define CLT_RECV_SIZE		sizeof(struct rail_rtrs_small_rsps)
/* Receives of connection 0. A peer that sends more waits: it is asked to, without end. */
#define CLT_ADMIN_RECVS		256
/* Receives are posted again so many at a time; as many more there are. */
#define CLT_RECV_BATCH		8
/* Completions a poll works on. */
#define CLT_POLL_BUDGET		32

#define CLT_CONNECT_MS		30000
/* The same while other paths wait for this one to be the session's first. */
#define CLT_FIRST_MS		4000
/* One that stayed up so long has not flapped. */
#define CLT_STEADY_MS		60000
/* Heartbeats of a path that proves itself. */
#define CLT_PROVE_HB_MS		100

enum clt_stat {
	CLT_STAT_READS,
	CLT_STAT_READ_BYTES,
	CLT_STAT_WRITES,
	CLT_STAT_WRITE_BYTES,
	CLT_STAT_STARTED,
	CLT_STAT_ENDED,
	CLT_STAT_FAILED_OVER,
	CLT_STAT_ERRORS,
	CLT_STAT_MIGRATED_FROM,
	CLT_STAT_MIGRATED_TO,
	CLT_STAT_REGISTERED_WRITES,
	CLT_STAT_LOCAL_INVS,
	CLT_STAT_SMALL,
	CLT_NR_STATS,
};

enum clt_hist {
	CLT_HIST_READ_NS,
	CLT_HIST_WRITE_NS,
	CLT_NR_HISTS,
};

struct clt_path;
struct clt_conn;

enum clt_req_state {
	CLT_REQ_IDLE,
	CLT_REQ_FLYING,
	CLT_REQ_WAITING,
};

/**
 * struct clt_req - a request
 * @permit: the user's part; first
 * @state: see above; the owner's
 * @io: the user's; the owner's
 * @path: that has it, while FLYING; set by the submitter, read by the teardown
 * @conn: of @path; set last before the post (release), so that an answer for a request that is not
 *	  there, or not there yet, is told from one that is; cleared by the owner
 * @slot: of @path
 * @pending: see above
 * @answered: the answer is here; connection's completions
 * @counted: is in lane.inflight
 * @error: the answer's
 * @mr: @slot's region is in use
 * @small: sent as a message
 * @mapped: entries of io->sg mapped by us for a write without region; 0: none
 * @started_ns: when it was submitted
 * @deadline: when it has waited long enough, in jiffies; clt.lock
 * @entry: in clt.waiting (clt.lock), or a teardown's list
 * @sent: told of the send
 * @chain: registration if any, and the send; rail_verbs' until posted
 * @wr: the send
 * @sge: its pieces: data, header
 * @inved: told of our invalidation
 * @inv_chain: the invalidation
 */
struct clt_req {
	struct rail_clt_permit permit;
	enum clt_req_state state;
	struct rail_clt_io *io;
	struct clt_path *path;
	struct clt_conn *conn;
	struct clt_slot *slot;
	atomic_t pending;
	bool answered;
	bool counted;
	int error;
	bool mr;
	bool small;
	int mapped;
	u64 started_ns;
	unsigned long deadline;
	struct list_head entry;
	struct rail_cqe sent;
	struct rail_chain chain;
	struct ib_rdma_wr wr;
	struct ib_sge sge[CLT_MAX_SGE];
	struct rail_cqe inved;
	struct rail_chain inv_chain;
} ____cacheline_aligned_in_smp;

/**
 * struct clt_slot - what a path has for a request
 * @addr: of the chunk at the server; constant while the path is up
 * @rkey: its key; a new one comes with the answer, before the request ends
 * @hdr: header buffer
 * @mr: region for a read's data, or a write's in many pieces; the request's owner's
 * @small: a small request's data, RAIL_RTRS_SMALL_DATA bytes at the start of a page; NULL: there
 *	   are no small requests
 * @small_dma: where the device sees it
 * @small_addr: where the server does
 * @small_key: the key for that; constant while the path is up
 */
struct clt_slot {
	u64 addr;
	u32 rkey;
	struct rail_buf *hdr;
	struct rail_mr *mr;
	void *small;
	u64 small_dma;
	u64 small_addr;
	u32 small_key;
};

/**
 * struct clt_bounce - room for small requests' data, of some slots
 * @page: first of 1 << @order pages
 * @order: see @page
 * @sg: the pages
 * @mr: region over them
 */
struct clt_bounce {
	struct page *page;
	unsigned int order;
	struct scatterlist sg;
	struct rail_mr *mr;
};

/**
 * struct clt_recv - a receive
 * @cqe: told of it
 * @conn: of which connection
 * @buf: where it goes
 * @wr: the receive
 */
struct clt_recv {
	struct rail_cqe cqe;
	struct clt_conn *conn;
	struct rail_buf *buf;
	struct ib_recv_wr wr;
};

/**
 * struct clt_conn - a connection of a path
 * @path: of which
 * @cid: which; constant
 * @poll: has no interrupts; constant
 * @rail: the attempt's; NULL while none
 * @up: established; set by its callback
 * @small: the server takes small requests here; set by its callback
 * @inval: a Send With Invalidate came last; its completions' (one at a time)
 * @inval_rkey: for this key
 * @batch: receives to be posted again; its completions'
 * @recvs: all of them
 * @bufs: their buffers
 * @nr_recvs: how many
 */
struct clt_conn {
	struct clt_path *path;
	u16 cid;
	bool poll;
	struct rail_conn *rail;
	bool up;
	bool small;
	bool inval;
	u32 inval_rkey;
	struct rail_recv_batch batch;
	struct clt_recv *recvs;
	struct rail_buf_pool *bufs;
	u32 nr_recvs;
} ____cacheline_aligned_in_smp;

/* Bits of clt_path.flags. */
enum {
	CLT_PATH_FAILED,	/* the attempt or the path is over; see clt_path_fail() */
	CLT_PATH_INFO,		/* INFO_RSP is here */
	CLT_PATH_TRIED,		/* was up or failed once */
};

/* What the user wants of a path. */
enum clt_want {
	CLT_WANT_ON,
	CLT_WANT_OFF,
	CLT_WANT_GONE,
};

/**
 * struct clt_path - a path
 * @lane: what policies choose by; lane.usable says whether it takes requests
 * @clt: session; constant
 * @state: see above; path's work to write
 * @want: what the user wants; any to write
 * @flags: bits above
 * @error: why it failed; set once per attempt with CLT_PATH_FAILED
 * @conns: nr_conns of them; constant
 * @nr_conns: constant
 * @slots: queue depth of them; NULL while not connecting or up
 * @params: agreed at this attempt
 * @max_sge: pieces of a send, on this attempt's device
 * @pd: this attempt's protection domain
 * @mrs: regions of @slots
 * @bounces: room for small requests; NULL: there are none
 * @nr_bounces: how many
 * @bounce_mrs: regions of @bounces
 * @hdrs: buffers of @slots
 * @hb: heartbeat
 * @nr_up: connections up; attempt
 * @rsp: connection 0's accept; attempt
 * @rsp_len: its length
 * @info: INFO message buffers; attempt
 * @addr: where it goes; constant
 * @name: source@destination; constant once it was up
 * @uuid: constant
 * @recon_cnt: attempts after the first success
 * @was_up: at least once
 * @tries: attempts in vain since it was up
 * @flaps: times it went down soon after it was up
 * @up_at: when it was up, jiffies
 * @next_try: when the next attempt is due, jiffies
 * @work: the path's life
 * @prove: looks whether it has proved itself
 * @tell: tells user space of the state
 * @wq: woken when the attempt gets on or fails, or @state changes
 * @reconnects_ok: for sysfs
 * @reconnects_failed: for sysfs
 * @stats: numbers
 * @dir: debugfs
 * @kobj: sysfs; holds the path
 * @removing: somebody removes it; taken once
 * @hca_name: of this or the last attempt
 * @hca_port: the same
 * @rcu: for freeing
 */
struct clt_path {
	struct clt_lane lane;
	struct rail_clt *clt;
	enum clt_path_state state;
	enum clt_want want;
	unsigned long flags;
	int error;
	struct clt_conn *conns;
	u32 nr_conns;
	struct clt_slot *slots;
	struct rail_rtrs_params params;
	u32 max_sge;
	struct rail_pd *pd;
	struct rail_mr_pool *mrs;
	struct clt_bounce *bounces;
	u32 nr_bounces;
	struct rail_mr_pool *bounce_mrs;
	struct rail_buf_pool *hdrs;
	struct rail_hb hb;
	atomic_t nr_up;
	u8 rsp[RAIL_ACCEPT_PRIV_LEN];
	u8 rsp_len;
	struct clt_info *info;
	struct rail_clt_addr addr;
	char name[RAIL_PATH_STRLEN];
	uuid_t uuid;
	u16 recon_cnt;
	bool was_up;
	unsigned int tries;
	unsigned int flaps;
	unsigned long up_at;
	unsigned long next_try;
	struct delayed_work work;
	struct delayed_work prove;
	struct work_struct tell;
	wait_queue_head_t wq;
	u32 reconnects_ok;
	u32 reconnects_failed;
	struct rail_stats stats;
	struct dentry *dir;
	struct kobject kobj;
	unsigned long removing;
	char hca_name[IB_DEVICE_NAME_MAX];
	u8 hca_port;
	struct rcu_head rcu;
};

/**
 * struct clt_paths - a session's paths
 * @rcu: for freeing
 * @n: how many
 * @lane: a lane each, which is part of its path
 */
struct clt_paths {
	struct rcu_head rcu;
	u32 n;
	struct clt_lane *lane[];
};

/**
 * struct rail_clt - a session
 * @reqs: queue depth of them; set before the first path is up, constant then
 * @paths: RCU to read, @mutex to write
 * @open: the gate; @lock to write
 * @policy: enum clt_policy; any to write
 * @permits: which are free
 * @hungry: somebody found no permit
 * @turn: per CPU: whose turn it is
 * @limits: constant once there are @reqs
 * @ops: constant
 * @priv: constant
 * @net: constant, referenced
 * @name: constant
 * @uuid: constant
 * @mutex: see above
 * @lock: see above
 * @waiting: requests that wait for a path, the oldest first; @lock
 * @nr_waiting: how many; @lock
 * @nr_up: paths up; @lock
 * @gen: grows each time the last path goes; @lock
 * @told_gen: @gen of which the user was told; link work's
 * @told_up: the user knows that it is up; link work's
 * @closing: rail_clt_close(); @lock to write
 * @opened: the first path was up within rail_clt_open()
 * @ready: rail_clt_open() was successful: paths may be added, and the user told of the link
 * @first: path that tries to be the session's first; @lock
 * @no_path_timeout: seconds
 * @max_reconnect: attempts; negative: without end
 * @link_work: tells the user of the link
 * @expire_work: ends requests that waited long enough
 * @wq: where works of the session and its paths run
 * @wait: woken with any change of @nr_up, @first, of a path's CLT_PATH_TRIED, and when a permit is
 *	  free and @hungry
 * @dev: in class rtrs-client; holds the session
 * @paths_kobj: sysfs, paths/
 * @dir: debugfs
 * @entry: in the list of sessions
 */
struct rail_clt {
	struct clt_req *reqs;
	struct clt_paths __rcu *paths;
	bool open;
	u8 policy;
	struct sbitmap permits;
	struct clt_turn __percpu *turn;
	struct rail_clt_limits limits;
	const struct rail_clt_ops *ops;
	void *priv;
	unsigned long hungry ____cacheline_aligned_in_smp;
	struct net *net;
	char name[RAIL_RTRS_NAME_LEN];
	uuid_t uuid;
	struct mutex mutex;
	spinlock_t lock;
	struct list_head waiting;
	u32 nr_waiting;
	u32 nr_up;
	u32 gen;
	u32 told_gen;
	bool told_up;
	bool closing;
	bool opened;
	bool ready;
	struct clt_path *first;
	unsigned int no_path_timeout;
	int max_reconnect;
	struct work_struct link_work;
	struct delayed_work expire_work;
	struct workqueue_struct *wq;
	wait_queue_head_t wait;
	struct device dev;
	struct kobject *paths_kobj;
	struct dentry *dir;
	struct list_head entry;
};

static inline struct clt_path *clt_lane_path(struct clt_lane *lane)
{
	return container_of(lane, struct clt_path, lane);
}

static inline struct clt_req *clt_permit_req(struct rail_clt_permit *permit)
{
	return container_of(permit, struct clt_req, permit);
}

#define clt_info(path, fmt, ...) do { \
		const struct clt_path *__p = (path); \
		pr_info("session %s, path %s: " fmt, __p->clt->name, __p->name, ##__VA_ARGS__); \
	} while (0)
#define clt_warn(path, fmt, ...) do { \
		const struct clt_path *__p = (path); \
		pr_warn_ratelimited("session %s, path %s: " fmt, __p->clt->name, __p->name, \
				    ##__VA_ARGS__); \
	} while (0)

/* client_io.c */
void clt_req_init(struct rail_clt *clt, struct clt_req *req, u32 id);
void clt_req_send(struct clt_req *req);
void clt_req_release(struct clt_req *req);
void clt_req_done(struct clt_req *req, int error);
int clt_conn_post_recvs(struct clt_conn *conn);
void clt_conn_recv_done(struct rail_cqe *cqe, struct ib_wc *wc);

/* client_small.c */
void clt_small_make(struct clt_path *path);
int clt_small_register(struct clt_path *path);
void clt_small_free(struct clt_path *path);

/* client_wait.c */
bool clt_wait_for_path(struct clt_req *req);
void clt_wait_init(struct rail_clt *clt);
void clt_wait_fail_all(struct rail_clt *clt);
void clt_link_found(struct clt_path *path, enum clt_usable usable);
void clt_link_lost(struct clt_path *path);

/* client_path.c */
extern const char * const clt_path_state_names[CLT_NR_PATH_STATES];
struct clt_path *clt_path_create(struct rail_clt *clt, const struct rail_clt_addr *addr);
void clt_path_free(struct clt_path *path);
int clt_path_add(struct clt_path *path);
void clt_path_want(struct clt_path *path, enum clt_want want);
void clt_path_reconnect(struct clt_path *path);
void clt_path_remove(struct clt_path *path);
bool clt_path_fail(struct clt_path *path, int error);

/* client_main.c */
int clt_make_reqs(struct rail_clt *clt, const struct rail_rtrs_params *params,
		  const struct rail_dev *dev);
void clt_free(struct rail_clt *clt);

/* client_sysfs.c */
int clt_sysfs_init(void);
void clt_sysfs_exit(void);
int clt_sysfs_add(struct rail_clt *clt);
void clt_sysfs_del(struct rail_clt *clt);
void clt_sysfs_del_last(struct rail_clt *clt);
void clt_sysfs_init_path(struct clt_path *path);
int clt_sysfs_add_path(struct clt_path *path);
void clt_sysfs_del_path(struct clt_path *path);
void clt_sysfs_tell_path(struct clt_path *path);

#endif /* RTRS_CLIENT_H */
