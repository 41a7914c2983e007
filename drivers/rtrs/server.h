/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RTRS server: what its files share. Its user sees <rail/rtrs.h> alone.
 *
 * Objects, who owns them, how they die
 * ------------------------------------
 *
 * rail_srv	  a user's server: listeners and sessions. rail_srv_close() ends the listeners,
 *		  fails every path and waits until no session is left.
 * rail_srv_sess  a client's session, found by its uuid; owns the chunks. Made with its first
 *		  path, ended by the one who drops the last reference; every path has one.
 * rsrv_path	  a path of a session, found by its uuid; owns its connections, one memory region a
 *		  chunk, one request a chunk. Everything that ends it (client, error, heartbeats,
 *		  sysfs, unplug, close) goes through rsrv_path_fail(); its close work alone tears it
 *		  down. No reconnect: that is a new path with the same uuid.
 * rsrv_conn	  a connection. Its own until it is attached to a path, then the path's.
 * rsrv_req	  what a path does with a chunk; one for each buffer id. Holds a reference on
 *		  rsrv_path.inflight whenever it is not IDLE.
 * rsrv_chunk	  memory of one buffer id, shared by the paths of a session.
 *
 * States of a session
 * -------------------
 *
 *	NEW ----> UP ----> CLOSING ----> freed
 *	  '-------------------^
 *
 *	NEW	no path of it is up; the user does not know of it
 *	UP	the user was told by ops->sess_up(); its name is in sysfs
 *	CLOSING	the last path left the list; requests may still be with the user. The uuid is
 *		refused with EBUSY. ops->sess_down() follows where ops->sess_up() was.
 *
 * States of a path
 * ----------------
 *
 *	CONNECTING ----> INFO ----> UP ----> CLOSING ----> freed
 *	     |             '------------------^
 *	     '--------------------------------^
 *
 *	CONNECTING	connections are made; the client has not asked where the chunks are.
 *			Reaped after RSRV_HALF_OPEN_MS.
 *	INFO		INFO_REQ is here and all connections are up: the info work makes chunks,
 *			regions, tells the user. Still reaped.
 *	UP		requests are taken, heartbeats go
 *	CLOSING		the close work tears down, in this order: no new connections and
 *			requests; works; connections, each until drained; requests that wait,
 *			and all regions, protection domain and references on the device; sysfs;
 *			out of the session's list; then it waits for the user's replies and frees.
 *
 * States of a request
 * -------------------
 *
 *	IDLE ----> WAITING ----> BUSY ----> ANSWERED ----> IDLE
 *
 *	IDLE		the client may use the buffer id
 *	WAITING		it came, and waits until the chunk's key is dead (write, with rotation), or
 *			until the same buffer's request of another path is over: a client that fails
 *			over uses an id again which we still work on
 *	BUSY		owns the chunk (chunk->busy); with the user, or on the way to it
 *	ANSWERED	the user replied; the answer waits for the chunk's key to be dead (a read's
 *			may take longer than the device), or for room in the send queue
 *
 * A small request came as a message: it has nothing in the chunk, waits for no key and spoils
 * nothing.
 *
 * A request that waits for another path's to be over shares its chunk with it. If the first is a
 * read, the device may have written over what the second brought: as much as it may have is
 * @spoiled. The same read sent again has nothing there; anything else ends the path, and comes
 * again on another.
 *
 * An id that comes on a path where it is not IDLE breaks the protocol and ends the path. The answer
 * being posted makes it IDLE: no completion is waited for, since the client can only send again
 * what it got an answer for. That is why posting and the state change share chunk->lock.
 *
 * Locks, in the order they nest
 * -----------------------------
 *
 *	rail_srv_sess.up_lock	one info work of a session at a time; held across the user's
 *				callbacks
 *	rail_srv.lock		the lists of sessions and paths, rsrv_conn.path
 *	rsrv_chunk.lock		a buffer id's requests on all paths; irq safe
 *	rsrv_conn.again_lock	receives to be posted again, answers that gather; irq safe
 *	rsrv_conn.room_lock	requests that wait for room; irq safe
 *	rsrv_path.state_lock	state, reason, nr_up, info_seen; irq safe
 */
#ifndef RAIL_RTRS_SERVER_H
#define RAIL_RTRS_SERVER_H

#include <linux/completion.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <rail/rtrs.h>
#include <rail/verbs.h>

#include "rtrs.h"

/* Of a chunk, what is for headers; the value every RTRS server announces. */
#define RSRV_HDR_SIZE		4096

/* From a path's first connection until it is up. */
#define RSRV_HALF_OPEN_MS	30000

/* From a connection's request until it is up. */
#define RSRV_ACCEPT_MS		20000

/* Requests to connect that are being looked at, of a server. */
#define RSRV_MAX_PENDING	1024

/* Paths of one host that are not up yet. */
#define RSRV_MAX_HALF_OPEN	32

#define RSRV_MAX_PATHS		128

/* Receives are posted again so many at a time. */
#define RSRV_RECV_BATCH		8

/* Receives beyond the queue depth: heartbeats, what comes before its turn, a batch to be posted. */
#define RSRV_SPARE_RECVS	(16 + RSRV_RECV_BATCH)

/* Memory of a receive that takes a small request. */
#define RSRV_SMALL_SIZE		(RAIL_RTRS_SMALL_HDR + RAIL_RTRS_SMALL_DATA)

/* Messages with several answers that may be under way on a connection. */
#define RSRV_NR_RSPS		32

/* Receives of the service connection that have memory for an INFO_REQ. */
#define RSRV_INFO_RECVS		4

/* Longest chains: an answer's (register, data, invalidate, answer), and registering chunks. */
#define RSRV_ANSWER_CHAIN	4
#define RSRV_REG_CHAIN		16

/* Pieces of a chunk that are sent without its key; see rsrv_data_sges(). */
#define RSRV_MAX_SGE		4

enum rsrv_sess_state {
	RSRV_SESS_NEW,
	RSRV_SESS_UP,
	RSRV_SESS_CLOSING,
};

enum rsrv_path_state {
	RSRV_PATH_CONNECTING,
	RSRV_PATH_INFO,
	RSRV_PATH_UP,
	RSRV_PATH_CLOSING,
	RSRV_NR_PATH_STATES,
};

enum rsrv_req_state {
	RSRV_REQ_IDLE,
	RSRV_REQ_WAITING,
	RSRV_REQ_BUSY,
	RSRV_REQ_ANSWERED,
};

enum rsrv_stat {
	RSRV_STAT_READS,
	RSRV_STAT_READ_BYTES,
	RSRV_STAT_WRITES,
	RSRV_STAT_WRITE_BYTES,
	RSRV_STAT_ERRORS,
	RSRV_STAT_PARKED,
	RSRV_STAT_SMALL,
	RSRV_STAT_GATHERED,
	RSRV_STAT_NO_ROOM,
	RSRV_STAT_UNANSWERED,
	RSRV_NR_STATS,
};

enum rsrv_hist {
	RSRV_HIST_READ_NS,
	RSRV_HIST_WRITE_NS,
	RSRV_NR_HISTS,
};

struct rsrv_req;
struct rsrv_path;

/**
 * struct rsrv_chunk - memory of a buffer id
 * @lock: @busy, @waiting, and the state of the id's request on every path
 * @busy: the BUSY or ANSWERED request of this id
 * @waiting: requests of other paths that could be BUSY but for that, first come first served
 * @addr: the memory, contiguous for the CPU; constant
 * @mapped: @addr is a mapping of scattered pages
 * @usr: copy of the user header; whoever is @busy writes it
 * @small: data of a small read, which no key ever reaches; as @usr
 * @pieces: the memory, as few physically contiguous pieces as there were to be had; constant
 * @nr_pieces: how many
 */
struct rsrv_chunk {
	spinlock_t lock;
	struct rsrv_req *busy;
	struct list_head waiting;
	void *addr;
	bool mapped;
	void *usr;
	struct page *small;
	struct bio_vec *pieces;
	u32 nr_pieces;
};

/**
 * struct rsrv_recv - a receive
 * @cqe: told of it
 * @wr: receive
 * @conn: connection; constant
 * @buf: memory; NULL where only immediate data is expected
 * @data: memory of a small write's data; NULL where there are none
 * @sges: both
 */
struct rsrv_recv {
	struct rail_cqe cqe;
	struct ib_recv_wr wr;
	struct rsrv_conn *conn;
	struct rail_buf *buf;
	struct rail_buf *data;
	struct ib_sge sges[2];
};

/**
 * struct rsrv_rsps - a message with several answers
 * @conn: constant
 * @buf: the message; constant
 * @n: answers in it; conn->again_lock
 * @chain: what is posted
 * @wr: the Send
 * @cqe: told of it
 * @entry: in conn->rsps_free; conn->again_lock
 */
struct rsrv_rsps {
	struct rsrv_conn *conn;
	struct rail_buf *buf;
	u32 n;
	struct rail_chain chain;
	struct ib_send_wr wr;
	struct rail_cqe cqe;
	struct list_head entry;
};

/**
 * struct rsrv_conn - a connection of a client
 * @srv: constant
 * @rail: the connection, referenced
 * @path: whose; NULL until attached; written under rail_srv.lock
 * @ask: what the client said at connect time
 * @attaching: the attach work has not decided yet; rail_srv.lock
 * @closed: ops->closed() came before that; rail_srv.lock
 * @attach: work that finds session and path, and answers
 * @recvs: receives
 * @nr_recvs: how many
 * @again_lock: @again, and that receives are posted one batch at a time
 * @again: those to be posted again
 * @bufs: memory of receives
 * @data_bufs: memory of small writes' data
 * @small: takes small requests; constant once there is a QP
 * @runner: task that is handing small requests to the user just now; its own to write
 * @rsps: messages with several answers; constant
 * @rsps_bufs: their memory
 * @rsps_free: those that nobody uses; @again_lock
 * @gather: the one that answers go into just now; NULL: none; @again_lock
 * @flush: work that posts @gather
 * @room_lock: @no_room, and that none joins it after ops->space()
 * @no_room: requests with a chain that waits for room
 */
struct rsrv_conn {
	struct rail_srv *srv;
	struct rail_conn *rail;
	struct rsrv_path *path;
	struct rail_rtrs_conn ask;
	bool attaching;
	bool closed;
	struct work_struct attach;
	struct rsrv_recv *recvs;
	u32 nr_recvs;
	spinlock_t again_lock;
	struct rail_recv_batch again;
	struct rail_buf_pool *bufs;
	struct rail_buf_pool *data_bufs;
	bool small;
	struct task_struct *runner;
	struct rsrv_rsps *rsps;
	struct rail_buf_pool *rsps_bufs;
	struct list_head rsps_free;
	struct rsrv_rsps *gather;
	struct work_struct flush;
	spinlock_t room_lock;
	struct list_head no_room;
};

/**
 * struct rsrv_req - a buffer id on a path
 * @user: what the user sees; its to use while BUSY
 * @path: constant
 * @chunk: constant
 * @state: chunk->lock
 * @inv_pending: the key's invalidation is to complete; chunk->lock
 * @inv_unposted: it is not even posted, for want of room; chunk->lock
 * @decoded: @hdr is what was found in the chunk; owner
 * @small: came as a message, and the chunk has nothing of it; set with WAITING
 * @built: @chain has the answer, which waits for room; chunk->lock
 * @conn: where it came, and where the answer goes; set with WAITING, there as long as @mr is
 * @cid: of @conn
 * @spoiled: bytes of the chunk that others' reads may have written while it waited; chunk->lock
 * @off: where the header begins; set with WAITING
 * @written: bytes that were written; set with WAITING
 * @hdr: the header, checked
 * @recv: small write: where its data is, until the reply; there as long as @mr is; chunk->lock
 * @data: small: the user's vector; of a write with a reference on the page
 * @usr: small: the user header
 * @small_dma: where the device sees chunk->small, if @small_mapped; there as long as @mr is
 * @small_mapped: it does
 * @error: the user's answer
 * @mr: region of the chunk; NULL once the path is torn down; chunk->lock
 * @rkey_msg: message with the next key; with rotation
 * @inv_cqe: told of the invalidation
 * @chain: what is posted
 * @data_wr: read: the data
 * @data_sges: where it is
 * @inval_wr: Send With Invalidate
 * @imm_wr: the answer without rotation, or of a small request
 * @rkey_wr: the answer with rotation
 * @waiting: in chunk->waiting; chunk->lock
 * @room: in conn->no_room; conn->room_lock
 * @work: runs it, where its turn does not come in a receive
 * @started: ktime, ns, when it came
 */
struct rsrv_req {
	struct rail_srv_req user;
	struct rsrv_path *path;
	struct rsrv_chunk *chunk;
	enum rsrv_req_state state;
	bool inv_pending;
	bool inv_unposted;
	bool decoded;
	bool small;
	bool built;
	struct rsrv_conn *conn;
	u16 cid;
	u32 spoiled;
	u32 off;
	u32 written;
	struct rail_rtrs_req hdr;
	struct rsrv_recv *recv;
	struct bio_vec data;
	u8 usr[RAIL_RTRS_SMALL_USR];
	u64 small_dma;
	bool small_mapped;
	int error;
	struct rail_mr *mr;
	struct rail_buf *rkey_msg;
	struct rail_cqe inv_cqe;
	struct rail_chain chain;
	struct ib_rdma_wr data_wr;
	struct ib_sge data_sges[RSRV_MAX_SGE];
	struct ib_send_wr inval_wr;
	struct ib_rdma_wr imm_wr;
	struct ib_send_wr rkey_wr;
	struct list_head waiting;
	struct list_head room;
	struct work_struct work;
	u64 started;
} ____cacheline_aligned_in_smp;

/**
 * struct rsrv_path - a path of a session
 * @sess: referenced; constant
 * @entry: in sess->paths; rail_srv.lock
 * @listed: there; rail_srv.lock
 * @state_lock: @state, @reason, @nr_up, @info_seen
 * @state: see above; read without the lock as a hint
 * @reason: why it closes; set once with CLOSING
 * @nr_up: connections that are established
 * @info_seen: INFO_REQ is here
 * @uuid: constant
 * @recon_cnt: constant
 * @cid_num: connections; constant
 * @nr_small: how many of them take small requests; constant
 * @conns: by cid; rail_srv.lock to write
 * @pd: the session's protection domain on this device, referenced; until the connections are gone
 * @dev: device; as @pd
 * @inflight: requests that are not IDLE
 * @idle: completed when there is none any more
 * @reqs: by buffer id; from INFO on
 * @sgs: scatterlists of the regions
 * @mrs: regions
 * @rkey_bufs: memory of messages with a new key; with rotation
 * @rsp_bufs: memory of the INFO_RSP
 * @charged: bytes it was admitted with
 * @info_name: the session's name as told by INFO_REQ, or why it is refused
 * @info_reason: the latter
 * @info: the info work
 * @reap: ends a path that does not come up
 * @hb: heartbeats
 * @heard: something was received since @challenged; written by receives, but only if not set
 * @challenged: jiffies when the client was asked for a sign of life, 0: it was not; rail_srv.lock
 * @close: the close work
 * @stats: numbers
 * @dir: debugfs
 * @kobj: in sysfs, where @kobj_added
 * @kobj_added: info work, then close work
 * @kobj_gone: nobody uses @kobj any more
 * @port: the device's port
 * @hca: the device's name
 * @name: "source@destination" as the client says it
 * @src: the client's address
 * @dst: ours
 */
struct rsrv_path {
	struct rail_srv_sess *sess;
	struct list_head entry;
	bool listed;
	spinlock_t state_lock;
	enum rsrv_path_state state;
	int reason;
	u32 nr_up;
	bool info_seen;
	u8 uuid[RAIL_RTRS_UUID_LEN];
	u16 recon_cnt;
	u32 cid_num;
	u32 nr_small;
	struct rsrv_conn **conns;
	struct rail_pd *pd;
	struct rail_dev *dev;
	struct percpu_ref inflight;
	struct completion idle;
	struct rsrv_req *reqs;
	struct scatterlist *sgs;
	struct rail_mr_pool *mrs;
	struct rail_buf_pool *rkey_bufs;
	struct rail_buf_pool *rsp_bufs;
	u64 charged;
	char info_name[RAIL_RTRS_NAME_LEN];
	enum rail_rtrs_reason info_reason;
	struct work_struct info;
	struct delayed_work reap;
	struct rail_hb hb;
	bool heard;
	unsigned long challenged;
	struct work_struct close;
	struct rail_stats stats;
	struct dentry *dir;
	struct kobject kobj;
	bool kobj_added;
	struct completion kobj_gone;
	u8 port;
	char hca[IB_DEVICE_NAME_MAX];
	char name[RAIL_PATH_STRLEN];
	struct sockaddr_storage src;
	struct sockaddr_storage dst;
};

/**
 * struct rail_srv_sess - a session
 * @srv: constant
 * @entry: in srv->sessions; rail_srv.lock
 * @refs: one a path
 * @up_lock: one path at a time comes up
 * @state: rail_srv.lock
 * @told: ops->sess_up() returned 0; @up_lock, then the last reference
 * @paths: paths that are not torn down; rail_srv.lock
 * @nr_paths: how many; rail_srv.lock
 * @uuid: constant
 * @params: what it was admitted with; constant
 * @charged: bytes it was admitted with
 * @addr: where its first path came from; constant
 * @name: set once, under @up_lock and rail_srv.lock, before NEW is left
 * @chunks: by buffer id; made by the first path that comes up; @up_lock, then constant
 * @usr: memory of the copies of user headers
 * @priv: the user's
 * @device: in class rtrs-server; @up_lock
 * @paths_dir: "paths" in sysfs; @up_lock
 * @dir: debugfs; @up_lock
 */
struct rail_srv_sess {
	struct rail_srv *srv;
	struct list_head entry;
	refcount_t refs;
	struct mutex up_lock;
	enum rsrv_sess_state state;
	bool told;
	struct list_head paths;
	u32 nr_paths;
	u8 uuid[RAIL_RTRS_UUID_LEN];
	struct rail_rtrs_params params;
	u64 charged;
	struct sockaddr_storage addr;
	char name[RAIL_RTRS_NAME_LEN];
	struct rsrv_chunk *chunks;
	void *usr;
	void *priv;
	struct device *device;
	struct kobject *paths_dir;
	struct dentry *dir;
};

/* IPv4, IPv6, native InfiniBand. */
#define RSRV_NR_LISTENERS	3

/**
 * struct rail_srv - a user's server
 * @attr: what the user wants; constant
 * @lock: the lists, @closing, @nr_pending
 * @sessions: all sessions
 * @closing: nobody is let in any more
 * @nr_pending: connections that are not attached
 * @empty: woken when a session or a pending connection goes
 * @listeners: NULL where there is none
 */
struct rail_srv {
	struct rail_srv_attr attr;
	struct mutex lock;
	struct list_head sessions;
	bool closing;
	u32 nr_pending;
	wait_queue_head_t empty;
	struct rail_listener *listeners[RSRV_NR_LISTENERS];
};

static inline const char *rsrv_sess_label(const struct rail_srv_sess *sess)
{
	return sess->name[0] ? sess->name : "(new)";
}

#define rsrv_warn(path, fmt, ...) do { \
		const struct rsrv_path *__path = (path); \
		pr_warn_ratelimited("rtrs-server: session %s, path %s: " fmt, \
				    rsrv_sess_label(__path->sess), __path->name, \
				    ##__VA_ARGS__); \
	} while (0)

#define rsrv_info(path, fmt, ...) do { \
		const struct rsrv_path *__path = (path); \
		pr_info_ratelimited("rtrs-server: session %s, path %s: " fmt, \
				    rsrv_sess_label(__path->sess), __path->name, \
				    ##__VA_ARGS__); \
	} while (0)

/* Works that never wait for a path's end, and those that do. */
extern struct workqueue_struct *rsrv_wq;
extern struct workqueue_struct *rsrv_close_wq;
/* Of the same workers as completions: a work queued in one runs next, without a switch. */
extern struct workqueue_struct *rsrv_flush_wq;

/* server.c */
extern unsigned int rsrv_max_chunk_size;
extern unsigned int rsrv_sess_queue_depth;
extern bool rsrv_always_invalidate;
extern unsigned int rsrv_max_memory;
extern unsigned int rsrv_max_sessions;

/* server_admit.c */
int rsrv_charge(u64 bytes);
void rsrv_uncharge(u64 bytes);
int rsrv_params(struct rail_rtrs_params *params);
bool rsrv_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

/* server_sess.c */
struct rail_srv_sess *rsrv_sess_find(struct rail_srv *srv, const u8 *uuid);
struct rail_srv_sess *rsrv_sess_create(struct rail_srv *srv, const u8 *uuid,
				       const struct sockaddr *addr);
int rsrv_sess_set_name(struct rail_srv_sess *sess, const char *name);
int rsrv_sess_make_chunks(struct rail_srv_sess *sess, int node);
void rsrv_sess_forget(struct rail_srv_sess *sess);
void rsrv_sess_put(struct rail_srv_sess *sess);

/* server_conn.c */
extern const struct rail_listener_ops rsrv_listener_ops;
void rsrv_conn_free(struct rsrv_conn *conn);

/* server_path.c */
struct rsrv_path *rsrv_path_find(struct rail_srv_sess *sess, const u8 *uuid);
struct rsrv_path *rsrv_path_create(struct rail_srv_sess *sess, struct rsrv_conn *conn);
bool rsrv_path_small(const struct rsrv_path *path, const struct rsrv_conn *conn);
bool rsrv_path_challenge(struct rsrv_path *path);
bool rsrv_path_fail(struct rsrv_path *path, int reason);
void rsrv_path_info_req(struct rsrv_path *path, const void *msg, u32 len);
void rsrv_path_conn_up(struct rsrv_path *path, struct rsrv_conn *conn);

/* server_state.c */
bool rsrv_path_may(enum rsrv_path_state from, enum rsrv_path_state to);

/* server_io.c */
void rsrv_received(struct rail_cqe *cqe, struct ib_wc *wc);
void rsrv_space(struct rail_conn *rail);
void rsrv_req_init(struct rsrv_req *req, struct rsrv_path *path, u32 id);
struct rail_mr *rsrv_req_sweep(struct rsrv_req *req);

/* server_rsps.c */
void rsrv_rsps_init(struct rsrv_conn *conn);
int rsrv_rsps_make(struct rsrv_conn *conn);
void rsrv_rsps_free(struct rsrv_conn *conn);
bool rsrv_rsps_add(struct rsrv_conn *conn, u32 rsp);

/* server_sysfs.c */
int rsrv_sysfs_init(void);
void rsrv_sysfs_exit(void);
int rsrv_sysfs_add(struct rsrv_path *path);
void rsrv_sysfs_del(struct rsrv_path *path);
void rsrv_sysfs_del_sess(struct rail_srv_sess *sess);

#endif /* RAIL_RTRS_SERVER_H */
