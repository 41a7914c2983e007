/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of rail_verbs share. The rules of locking and dying stand in <rail/verbs.h>. */
#ifndef RAIL_VERBS_PRIV_H
#define RAIL_VERBS_PRIV_H

#include <linux/ratelimit.h>
#include <linux/sched.h>
#include <rail/verbs.h>

#include "fault.h"

/* Numbers kept a device. Work requests posted are counted by kind, from RAIL_STAT_WR on. */
enum rail_dev_stat {
	RAIL_STAT_DOORBELLS,
	RAIL_STAT_WR_WRITE,
	RAIL_STAT_WR_WRITE_IMM,
	RAIL_STAT_WR_SEND,
	RAIL_STAT_WR_SEND_IMM,
	RAIL_STAT_WR_READ,
	RAIL_STAT_WR_SEND_INV,
	RAIL_STAT_WR_LOCAL_INV,
	RAIL_STAT_WR_REG_MR,
	RAIL_STAT_WR_OTHER,
	RAIL_STAT_SEND_DONE,
	RAIL_STAT_RECV_DOORBELLS,
	RAIL_STAT_RECV_POSTED,
	RAIL_STAT_RECV_DONE,
	RAIL_STAT_FORCED_SIGNALS,
	RAIL_STAT_SQ_FULL,
	RAIL_STAT_CONNECTS,
	RAIL_STAT_ACCEPTS,
	RAIL_STAT_REFUSALS,
	RAIL_STAT_FAILURES,
	RAIL_STAT_TIMEOUTS,
	RAIL_STAT_SILENT_PEERS,
	RAIL_STAT_MR_REPLACED,
	RAIL_STAT_MR_EMPTY,
	RAIL_NR_DEV_STATS,
};

enum rail_dev_hist {
	RAIL_HIST_CHAIN_WRS,
	RAIL_HIST_CONNECT_US,
	RAIL_NR_DEV_HISTS,
};

/**
 * struct rail_conn - a QP and its cm_id
 * @post_lock: the send queue: @sq's head side, @waiting, @space_need, @next_marker, order of posts
 * @qp: set before posting is possible, until every completion was told of
 * @dev: device; set before @qp; referenced until after ops->closed()
 * @open: the QP can send; post_lock
 * @waiting: chains that wait for space, first come first served; post_lock
 * @space_need: rail_post() was refused so many slots; 0: it was not; post_lock
 * @next_marker: next of @markers to use; post_lock
 * @nr_markers: more of them than can be in flight; constant
 * @markers: completions of our own, where the accounting forces a signal
 * @orphans: signalled work requests that the device refused behind others it took; post_lock
 * @unsignalled: what an unsignalled work request's failure calls
 * @sq: accounting
 * @ops: the owner's; set once, before anything calls it
 * @context: the owner's
 * @recv_lock: order of posted receives and @recv_dead
 * @recv_dead: no more receives; recv_lock
 * @recv_orphans: as @orphans, of receives; recv_lock
 * @state_lock: @state, @reason, @flushed
 * @state: see <rail/verbs.h>; read without the lock as a hint
 * @reason: why it closed, negative errno; set once with CLOSING
 * @flushed: the QP failed before the connection was up; set before UP only
 * @polling: bit 0: somebody polls the direct CQ
 * @delayed: completions held back by a test fault
 * @cm_lock: keeps @cm_id while the owner connects, accepts or rejects; outside the handler lock
 * @cm_id: from creation until torn down by the close work; cm_lock or handler lock
 * @handler: the task inside our CM handler, which holds the handler lock
 * @pd: protection domain of @qp, referenced
 * @cq: completion queue of @qp
 * @nr_cqe: entries reserved in it
 * @poll: where completions are worked on
 * @passive: a peer asked for it
 * @disconnect: the QP was connected, so that the peer has to be told
 * @rejected: the peer refused; @priv is its reason
 * @refs: the owner's, and one that the close work drops
 * @id: number for people
 * @closed: completed after ops->closed() returned
 * @close_work: the one that tears down
 * @timer: ends a connection that does not come up
 * @resolve: asks for the peer's address again
 * @probe: looks whether the peer lives, every half @probe_ms
 * @probe_ms: how long the peer may be silent
 * @probe_tail: @sq's tail when it last looked; @probe's
 * @probing: @probe_chain is in flight
 * @probe_chain: posts @probe_wr
 * @probe_wr: zero-length RDMA Write
 * @probe_cqe: its completion
 * @started: ktime of connect or request, ns
 * @timeout_ms: how long it may take to come up
 * @dev_entry: in @dev->conns; @dev->lock
 * @param: what the CM is told; retries
 * @ack_timeout: as in struct rail_connect
 * @priv_len: length of @priv
 * @priv: private data to send; afterwards the peer's reason for a refusal
 * @src: own address
 * @dst: peer's address
 * @name: "source@destination" for people
 */
struct rail_conn {
	spinlock_t post_lock;
	struct ib_qp *qp;
	struct rail_dev *dev;
	bool open;
	struct list_head waiting;
	u32 space_need;
	u32 next_marker;
	u32 nr_markers;
	struct rail_cqe *markers;
	struct rail_cqe *orphans;
	struct ib_cqe unsignalled;
	struct rail_sq sq;

	const struct rail_conn_ops *ops;
	void *context;

	spinlock_t recv_lock;
	bool recv_dead;
	struct rail_cqe *recv_orphans;

	spinlock_t state_lock;
	enum rail_state state;
	int reason;
	bool flushed;

	unsigned long polling;
	atomic_t delayed;

	struct mutex cm_lock;
	struct rdma_cm_id *cm_id;
	struct task_struct *handler;
	struct rail_pd *pd;
	struct ib_cq *cq;
	u32 nr_cqe;
	enum rail_poll poll;
	bool passive;
	bool disconnect;
	bool rejected;
	refcount_t refs;
	u32 id;
	struct completion closed;
	struct work_struct close_work;
	struct delayed_work timer;
	struct delayed_work resolve;
	struct delayed_work probe;
	unsigned int probe_ms;
	u32 probe_tail;
	bool probing;
	struct rail_chain probe_chain;
	struct ib_rdma_wr probe_wr;
	struct rail_cqe probe_cqe;
	u64 started;
	unsigned int timeout_ms;
	struct list_head dev_entry;
	struct rdma_conn_param param;
	u8 ack_timeout;
	u8 priv_len;
	u8 priv[RAIL_REJECT_LEN];
	struct sockaddr_storage src;
	struct sockaddr_storage dst;
	char name[RAIL_PATH_STRLEN];
};

#define RAIL_POLLING	0

#define rail_conn_warn(conn, fmt, ...) \
	pr_warn_ratelimited("rail: %s: " fmt, (conn)->name, ##__VA_ARGS__)

/* All but close_work and resolve, for which ib_core may wait for what takes memory. */
extern struct workqueue_struct *rail_wq;
/* Completions of connections with RAIL_POLL_UNBOUND. */
extern struct workqueue_struct *rail_cq_wq;
extern struct workqueue_struct *rail_close_wq;

/* conn.c */
void rail_conn_init_queues(struct rail_conn *conn);
void rail_post_open(struct rail_conn *conn);
void rail_post_shut(struct rail_conn *conn);
void rail_conn_drain(struct rail_conn *conn);
int rail_make_queues(struct rail_conn *conn, const struct rail_qp_attr *attr);
void rail_unmake_queues(struct rail_conn *conn);

/* probe.c */
void rail_conn_init_probe(struct rail_conn *conn);

/* cm.c */
bool rail_conn_fail(struct rail_conn *conn, int reason);
void rail_conn_flushed(struct rail_conn *conn);
bool rail_conn_move(struct rail_conn *conn, enum rail_state to);
struct rail_conn *rail_conn_alloc(const struct rail_conn_ops *ops, void *context);
int rail_conn_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event);
void rail_conn_free_unused(struct rail_conn *conn);
void rail_conn_take_addresses(struct rail_conn *conn);
void rail_conns_exit(void);
void rail_conn_start_timer(struct rail_conn *conn, unsigned int timeout_ms);

/* device.c */
int rail_devs_init(void);
void rail_devs_exit(void);
int rail_dev_add_conn(struct rail_conn *conn);
void rail_dev_del_conn(struct rail_conn *conn);
void rail_devs_visit_conns(void (*fn)(struct rail_conn *conn, void *arg), void *arg);

/**
 * rail_set_handler - note that this task is inside a CM handler of the connection
 * @conn: the connection
 * @on: entering or leaving
 */
static inline void rail_set_handler(struct rail_conn *conn, bool on)
{
	WRITE_ONCE(conn->handler, on ? current : NULL);
}

#endif /* RAIL_VERBS_PRIV_H */
