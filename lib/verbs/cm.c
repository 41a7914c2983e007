// SPDX-License-Identifier: GPL-2.0-only
/*
 * A connection's life: from connect or a peer's request, through the CM's events, to the close
 * work that tears it down. States and locks stand in <rail/verbs.h>.
 */
#include <linux/idr.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>
#include "verbs_priv.h"

#define CREATE_TRACE_POINTS
#include <trace/events/rail_verbs.h>

static DEFINE_IDA(rail_conn_ids);

static void rail_conn_close_work(struct work_struct *work);
static void rail_conn_timeout(struct work_struct *work);
static void rail_resolve_work(struct work_struct *work);

/* One try to find the peer, and the pause before the next; until the owner's time is over. */
#define RAIL_ADDR_MS	1000
#define RAIL_ADDR_PAUSE	(HZ / 10)
#define RAIL_ROUTE_MS	3000

/**
 * rail_conn_move - move a connection to its next state, CLOSING excepted
 * @conn: the connection
 * @to: next state
 *
 * Context: any.
 * Return: false if it is closing or dead by now; the caller stops what it does.
 */
bool rail_conn_move(struct rail_conn *conn, enum rail_state to)
{
	enum rail_state from;
	unsigned long flags;
	bool may;

	spin_lock_irqsave(&conn->state_lock, flags);
	from = conn->state;
	may = rail_state_may(from, to);
	if (may)
		WRITE_ONCE(conn->state, to);
	spin_unlock_irqrestore(&conn->state_lock, flags);
	if (may)
		trace_rail_conn_state(conn->id, conn->name, from, to, 0);
	else
		WARN_ON_ONCE(from < RAIL_CLOSING);
	return may;
}

/* @below: only if the state is below this one. */
static bool rail_conn_fail_below(struct rail_conn *conn, enum rail_state below, int reason)
{
	enum rail_state from;
	unsigned long flags;
	bool first;

	spin_lock_irqsave(&conn->state_lock, flags);
	from = conn->state;
	first = from < below && rail_state_may(from, RAIL_CLOSING);
	if (first) {
		conn->reason = reason;
		WRITE_ONCE(conn->state, RAIL_CLOSING);
	}
	spin_unlock_irqrestore(&conn->state_lock, flags);
	if (!first)
		return false;
	/* A hint that saves posts in vain; the close work makes sure. */
	WRITE_ONCE(conn->sq.dead, true);
	trace_rail_conn_state(conn->id, conn->name, from, RAIL_CLOSING, reason);
	queue_work(rail_close_wq, &conn->close_work);
	return true;
}

/**
 * rail_conn_fail - the one way to end a connection
 * @conn: the connection
 * @reason: why, negative errno
 *
 * Context: any.
 * Return: true for the first one, whose reason counts.
 */
bool rail_conn_fail(struct rail_conn *conn, int reason)
{
	return rail_conn_fail_below(conn, RAIL_CLOSING, reason);
}

/**
 * rail_conn_flushed - a work request was flushed: somebody put the QP into its error state
 * @conn: the connection
 *
 * Before the connection is up that was the CM, for a reason of the peer's or the device's that it
 * tells next; a completion may be faster.
 *
 * Context: any.
 */
void rail_conn_flushed(struct rail_conn *conn)
{
	unsigned long flags;
	bool early;

	spin_lock_irqsave(&conn->state_lock, flags);
	early = conn->state < RAIL_UP;
	if (early)
		conn->flushed = true;
	spin_unlock_irqrestore(&conn->state_lock, flags);
	if (!early)
		rail_conn_fail(conn, -ECONNRESET);
}

/* ---------------------------------------------------------------- set-up */

static void rail_conn_name_it(struct rail_conn *conn)
{
	rail_path_print(conn->name, sizeof(conn->name), (struct sockaddr *)&conn->src,
			(struct sockaddr *)&conn->dst);
}

/**
 * rail_conn_take_addresses - learn both addresses from the cm_id
 * @conn: connection whose cm_id is bound
 */
void rail_conn_take_addresses(struct rail_conn *conn)
{
	conn->src = conn->cm_id->route.addr.src_addr;
	conn->dst = conn->cm_id->route.addr.dst_addr;
	rail_conn_name_it(conn);
}

/**
 * rail_conn_alloc - make a connection that has no cm_id yet
 * @ops: the owner's; NULL: set later by rail_conn_adopt()
 * @context: the owner's
 *
 * Context: sleeps.
 * Return: the connection, IDLE, with two references, one of which the close work drops;
 *	   NULL when there is no memory.
 */
struct rail_conn *rail_conn_alloc(const struct rail_conn_ops *ops, void *context)
{
	struct rail_conn *conn;
	int id;

	if (rail_fault(RAIL_FAULT_ALLOC))
		return NULL;
	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn)
		return NULL;
	id = ida_alloc_min(&rail_conn_ids, 1, GFP_KERNEL);
	if (id < 0) {
		kfree(conn);
		return NULL;
	}
	conn->id = id;
	conn->ops = ops;
	conn->context = context;
	conn->state = RAIL_IDLE;
	mutex_init(&conn->cm_lock);
	spin_lock_init(&conn->state_lock);
	INIT_LIST_HEAD(&conn->dev_entry);
	refcount_set(&conn->refs, 2);
	init_completion(&conn->closed);
	INIT_WORK(&conn->close_work, rail_conn_close_work);
	INIT_DELAYED_WORK(&conn->timer, rail_conn_timeout);
	INIT_DELAYED_WORK(&conn->resolve, rail_resolve_work);
	rail_conn_init_queues(conn);
	rail_conn_init_probe(conn);
	rail_conn_name_it(conn);
	return conn;
}

/**
 * rail_conn_free_unused - free a connection nobody but the caller knows
 * @conn: IDLE connection whose cm_id is somebody else's to destroy
 */
void rail_conn_free_unused(struct rail_conn *conn)
{
	rail_dev_del_conn(conn);
	ida_free(&rail_conn_ids, conn->id);
	kfree(conn);
}

/**
 * rail_conn_create - make a connection, to be connected
 * @net: network namespace whose addresses it uses
 * @ops: the owner's callbacks
 * @context: the owner's
 *
 * Context: sleeps.
 * Return: the connection, with one reference for the caller, who has to call rail_conn_close() even
 *	   if it never connects; or an ERR_PTR.
 */
struct rail_conn *rail_conn_create(struct net *net, const struct rail_conn_ops *ops, void *context)
{
	struct rail_conn *conn = rail_conn_alloc(ops, context);
	struct rdma_cm_id *id;

	if (!conn)
		return ERR_PTR(-ENOMEM);
	id = rdma_create_id(net, rail_conn_cm_event, conn, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		rail_conn_free_unused(conn);
		return ERR_CAST(id);
	}
	conn->cm_id = id;
	return conn;
}
EXPORT_SYMBOL_GPL(rail_conn_create);

/**
 * rail_conn_start_timer - bound the time until the connection is up
 * @conn: the connection
 * @timeout_ms: from now; 0: no bound
 */
void rail_conn_start_timer(struct rail_conn *conn, unsigned int timeout_ms)
{
	conn->started = ktime_get_ns();
	if (timeout_ms)
		queue_delayed_work(rail_wq, &conn->timer, msecs_to_jiffies(timeout_ms));
}

static void rail_conn_timeout(struct work_struct *work)
{
	struct rail_conn *conn = container_of(to_delayed_work(work), struct rail_conn, timer);
	enum rail_state state = READ_ONCE(conn->state);

	if (!rail_conn_fail_below(conn, RAIL_UP, -ETIMEDOUT))
		return;
	rail_conn_warn(conn, "still %s after its time: closing\n", rail_state_name(state));
	if (conn->dev)
		rail_stats_inc(&conn->dev->stats, RAIL_STAT_TIMEOUTS);
}

/* InfiniBand addresses have a port space of their own, and an id cannot change its. */
static int rail_conn_use_ib_ports(struct rail_conn *conn)
{
	struct rdma_cm_id *id = rdma_create_id(conn->cm_id->route.addr.dev_addr.net,
					       rail_conn_cm_event, conn, RDMA_PS_IB, IB_QPT_RC);

	if (IS_ERR(id))
		return PTR_ERR(id);
	rdma_destroy_id(conn->cm_id);
	conn->cm_id = id;
	return 0;
}

/*
 * cm_lock held. ib_core may miss a neighbour's answer, and looks again only when the time it was
 * given is over; so it is given little, more than once.
 */
static int rail_resolve(struct rail_conn *conn)
{
	struct sockaddr *src = (struct sockaddr *)&conn->src;

	return rdma_resolve_addr(conn->cm_id, src->sa_family == AF_UNSPEC ? NULL : src,
				 (struct sockaddr *)&conn->dst, RAIL_ADDR_MS);
}

static void rail_resolve_work(struct work_struct *work)
{
	struct rail_conn *conn = container_of(to_delayed_work(work), struct rail_conn, resolve);
	int err = 0;

	mutex_lock(&conn->cm_lock);
	if (conn->state == RAIL_RESOLVING)
		err = rail_resolve(conn);
	if (err)
		rail_conn_fail(conn, err);
	mutex_unlock(&conn->cm_lock);
}

/* Handler lock held. A neighbour that is not there now may be in a moment. */
static int rail_addr_error(struct rail_conn *conn, int err)
{
	if (conn->state != RAIL_RESOLVING || (err != -ETIMEDOUT && err != -EHOSTUNREACH))
		return err;
	/* Not from here: ib_core would wait for the very work that calls us. */
	queue_delayed_work(rail_close_wq, &conn->resolve, RAIL_ADDR_PAUSE);
	return 0;
}

/**
 * rail_conn_connect - begin to connect
 * @conn: connection from rail_conn_create(), once only
 * @how: to whom and how; not used after the call
 *
 * Returns at once. What comes of it is told by ops->established() or ops->closed().
 *
 * Context: sleeps.
 * Return: 0: ops will tell. Else nothing has begun, and the caller closes the connection.
 */
int rail_conn_connect(struct rail_conn *conn, const struct rail_connect *how)
{
	int err;

	if (how->priv_len > RAIL_CONNECT_PRIV_LEN || !how->timeout_ms)
		return -EINVAL;
	if (!rdma_addr_size(how->dst))
		return -EAFNOSUPPORT;
	mutex_lock(&conn->cm_lock);
	if (conn->passive || conn->state != RAIL_IDLE) {
		err = -EISCONN;
		goto out;
	}
	if (how->dst->sa_family == AF_IB) {
		err = rail_conn_use_ib_ports(conn);
		if (err)
			goto out;
	}
	memcpy(&conn->dst, how->dst, rdma_addr_size(how->dst));
	if (how->src)
		memcpy(&conn->src, how->src, rdma_addr_size(how->src));
	rail_conn_name_it(conn);
	conn->param.retry_count = how->retries ?: 7;
	conn->param.rnr_retry_count = how->rnr_retries ?: 7;
	conn->ack_timeout = how->ack_timeout;
	conn->priv_len = how->priv_len;
	memcpy(conn->priv, how->priv, how->priv_len);
	if (how->tos)
		rdma_set_service_type(conn->cm_id, how->tos);

	err = -ENOTCONN;
	if (!rail_conn_move(conn, RAIL_RESOLVING))
		goto out;
	rail_conn_start_timer(conn, how->timeout_ms);
	err = rail_resolve(conn);
	/* From here on ops->closed() is the one who tells. */
	if (err)
		rail_conn_fail(conn, err);
	err = 0;
out:
	mutex_unlock(&conn->cm_lock);
	return err;
}
EXPORT_SYMBOL_GPL(rail_conn_connect);

/* Ask the owner what QP it wants, make it, have receives posted. Handler lock held. */
static int rail_conn_build(struct rail_conn *conn)
{
	struct rail_qp_attr attr = { .comp_vector = -1 };
	const struct ib_device_attr *dev = &conn->dev->ib->attrs;
	int err;

	err = conn->ops->configure(conn, &attr);
	if (err)
		return err;
	err = rail_make_queues(conn, &attr);
	if (err)
		return err;
	conn->param.initiator_depth = min_t(u32, dev->max_qp_init_rd_atom, U8_MAX);
	conn->param.responder_resources = min_t(u32, dev->max_qp_rd_atom, U8_MAX);
	return conn->ops->created ? conn->ops->created(conn) : 0;
}

static int rail_addr_resolved(struct rail_conn *conn)
{
	int err;

	rail_conn_take_addresses(conn);
	conn->dev = rail_dev_find(conn->cm_id->device);
	err = conn->dev ? rail_dev_add_conn(conn) : -ENODEV;
	if (err)
		return err;
	if (conn->ack_timeout)
		rdma_set_ack_timeout(conn->cm_id, conn->ack_timeout);
	return rdma_resolve_route(conn->cm_id, RAIL_ROUTE_MS);
}

static int rail_route_resolved(struct rail_conn *conn)
{
	int err;

	if (!rail_conn_move(conn, RAIL_CONNECTING))
		return 0;
	err = rail_conn_build(conn);
	if (err)
		return err;
	conn->param.private_data = conn->priv;
	conn->param.private_data_len = conn->priv_len;
	rail_stats_inc(&conn->dev->stats, RAIL_STAT_CONNECTS);
	return rdma_connect_locked(conn->cm_id, &conn->param);
}

static void rail_established(struct rail_conn *conn, const struct rdma_conn_param *param)
{
	WRITE_ONCE(conn->disconnect, true);
	if (!rail_conn_move(conn, RAIL_UP))
		return;
	if (conn->flushed) {
		rail_conn_fail(conn, -ECONNRESET);
		return;
	}
	cancel_delayed_work(&conn->timer);
	rail_hist_record(&conn->dev->stats, RAIL_HIST_CONNECT_US,
			 (ktime_get_ns() - conn->started) / NSEC_PER_USEC);
	rail_post_open(conn);
	conn->ops->established(conn, param->private_data, param->private_data_len);
}

static void rail_rejected(struct rail_conn *conn, struct rdma_cm_event *event)
{
	const void *priv;
	u8 len = 0;

	priv = rdma_consumer_reject_data(conn->cm_id, event, &len);
	if (conn->state >= RAIL_CLOSING)
		return;
	conn->rejected = true;
	conn->priv_len = priv ? min_t(u8, len, sizeof(conn->priv)) : 0;
	memcpy(conn->priv, priv, conn->priv_len);
	if (conn->dev)
		rail_stats_inc(&conn->dev->stats, RAIL_STAT_REFUSALS);
	rail_conn_fail(conn, -ECONNREFUSED);
}

static int rail_event_reason(const struct rdma_cm_event *event, int otherwise)
{
	return event->status < 0 ? event->status : otherwise;
}

/**
 * rail_conn_cm_event - what the CM tells of a connection
 * @id: its cm_id
 * @event: what happened
 *
 * Context: handler lock held; sleeps.
 * Return: 0: the cm_id stays; the close work destroys it.
 */
int rail_conn_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rail_conn *conn = id->context;
	int err = 0;

	trace_rail_conn_event(conn->id, conn->name, event->event, event->status);
	rail_set_handler(conn, true);
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (conn->state == RAIL_RESOLVING)
			err = rail_addr_resolved(conn);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (conn->state == RAIL_RESOLVING)
			err = rail_route_resolved(conn);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (conn->state == RAIL_CONNECTING)
			rail_established(conn, &event->param.conn);
		break;
	case RDMA_CM_EVENT_REJECTED:
		rail_rejected(conn, event);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		err = rail_addr_error(conn, rail_event_reason(event, -EHOSTUNREACH));
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		err = rail_event_reason(event, -EHOSTUNREACH);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		err = rail_event_reason(event, -ETIMEDOUT);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		err = rail_event_reason(event, -ECONNABORTED);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		err = -ECONNRESET;
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		err = -EADDRNOTAVAIL;
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		err = -ENODEV;
		break;
	default:
		break;
	}
	if (err)
		rail_conn_fail(conn, err);
	rail_set_handler(conn, false);
	return 0;
}

/* ---------------------------------------------------------------- a peer's request */

/**
 * rail_conn_adopt - become the owner of a connection a peer asked for
 * @conn: connection, within rail_listener_ops.request
 * @ops: the owner's callbacks
 * @context: the owner's
 *
 * The owner has a reference from here on, and will be called back at ops->closed().
 */
void rail_conn_adopt(struct rail_conn *conn, const struct rail_conn_ops *ops, void *context)
{
	conn->ops = ops;
	conn->context = context;
}
EXPORT_SYMBOL_GPL(rail_conn_adopt);

/*
 * Inside a CM handler of this connection the handler lock is ours already. From elsewhere the
 * close work may have been faster: then there is no cm_id any more.
 */
static bool rail_conn_in_handler(const struct rail_conn *conn)
{
	return READ_ONCE(conn->handler) == current;
}

static bool rail_conn_lock_cm(struct rail_conn *conn)
{
	if (rail_conn_in_handler(conn))
		return true;
	mutex_lock(&conn->cm_lock);
	if (conn->cm_id) {
		rdma_lock_handler(conn->cm_id);
		return true;
	}
	mutex_unlock(&conn->cm_lock);
	return false;
}

static void rail_conn_unlock_cm(struct rail_conn *conn)
{
	if (rail_conn_in_handler(conn))
		return;
	rdma_unlock_handler(conn->cm_id);
	mutex_unlock(&conn->cm_lock);
}

/**
 * rail_conn_accept - accept a peer's request
 * @conn: adopted connection
 * @how: what to tell the peer; not used after the call
 *
 * Calls ops->configure() and ops->created(). Posting is possible when this returns 0.
 *
 * Context: sleeps; from within the request, or from elsewhere.
 * Return: 0: accepted; ops will tell when it is up. Else the connection is closing; ops->closed()
 *	   will be called all the same.
 */
int rail_conn_accept(struct rail_conn *conn, const struct rail_accept *how)
{
	int err = -ENOTCONN;

	if (!rail_conn_lock_cm(conn))
		return err;
	if (conn->state != RAIL_CONNECTING || !conn->passive || conn->qp)
		goto out;
	err = rail_conn_build(conn);
	if (err)
		goto out;
	conn->param.private_data = how->priv;
	conn->param.private_data_len = how->priv_len;
	conn->param.rnr_retry_count = how->rnr_retries ?: 7;
	err = rdma_accept(conn->cm_id, &conn->param);
	if (err)
		goto out;
	conn->disconnect = true;
	rail_stats_inc(&conn->dev->stats, RAIL_STAT_ACCEPTS);
	rail_post_open(conn);
out:
	if (err)
		rail_conn_fail(conn, err);
	rail_conn_unlock_cm(conn);
	return err;
}
EXPORT_SYMBOL_GPL(rail_conn_accept);

/**
 * rail_conn_reject - refuse a peer's request
 * @conn: adopted connection that was not accepted
 * @priv: what to tell the peer
 * @len: its length, at most RAIL_REJECT_LEN
 *
 * Context: as rail_conn_accept().
 */
void rail_conn_reject(struct rail_conn *conn, const void *priv, u8 len)
{
	if (!rail_conn_lock_cm(conn))
		return;
	if (conn->state == RAIL_CONNECTING && conn->passive && !conn->disconnect)
		rdma_reject(conn->cm_id, priv, min_t(u8, len, RAIL_REJECT_LEN),
			    IB_CM_REJ_CONSUMER_DEFINED);
	rail_conn_fail(conn, -ECONNREFUSED);
	rail_conn_unlock_cm(conn);
}
EXPORT_SYMBOL_GPL(rail_conn_reject);

/* ---------------------------------------------------------------- tear-down */

static void rail_conn_close_work(struct work_struct *work)
{
	struct rail_conn *conn = container_of(work, struct rail_conn, close_work);
	const struct rail_conn_ops *ops = conn->ops;
	struct rdma_cm_id *id;

	/*
	 * Wait for whoever began before the state changed: an owner who connects or accepts, a CM
	 * handler, the timer they may have started. Later ones see the state and do nothing.
	 */
	mutex_lock(&conn->cm_lock);
	id = conn->cm_id;
	rdma_lock_handler(id);
	rdma_unlock_handler(id);
	mutex_unlock(&conn->cm_lock);
	cancel_delayed_work_sync(&conn->timer);
	cancel_delayed_work_sync(&conn->resolve);
	cancel_delayed_work_sync(&conn->probe);

	rail_post_shut(conn);
	if (conn->dev && conn->reason)
		rail_stats_inc(&conn->dev->stats, RAIL_STAT_FAILURES);
	if (ops->closing)
		ops->closing(conn, conn->rejected ? conn->priv : NULL,
			     conn->rejected ? conn->priv_len : 0);
	if (conn->disconnect)
		rdma_disconnect(id);
	if (conn->qp) {
		rail_conn_drain(conn);
		if (ops->drained)
			ops->drained(conn);
		rail_unmake_queues(conn);
	}
	mutex_lock(&conn->cm_lock);
	conn->cm_id = NULL;
	mutex_unlock(&conn->cm_lock);
	rdma_destroy_id(id);
	rail_conn_move(conn, RAIL_DEAD);
	ops->closed(conn);
	rail_dev_del_conn(conn);
	complete_all(&conn->closed);
	rail_conn_put(conn);
}

/**
 * rail_conn_close - end a connection, whatever its state
 * @conn: the connection
 * @reason: why, for logs and rail_conn_reason(); negative errno, 0: the owner is done with it
 *
 * Returns at once; ops->closed() tells the end. Closing twice does nothing.
 *
 * Context: any.
 */
void rail_conn_close(struct rail_conn *conn, int reason)
{
	rail_conn_fail(conn, reason);
}
EXPORT_SYMBOL_GPL(rail_conn_close);

/**
 * rail_conn_wait_closed - wait until a closing connection is gone
 * @conn: closed connection, on which the caller has a reference
 *
 * ops->closed() has returned when this returns; none of the owner's code is called any more.
 *
 * Context: sleeps; not from a callback of the connection.
 */
void rail_conn_wait_closed(struct rail_conn *conn)
{
	wait_for_completion(&conn->closed);
}
EXPORT_SYMBOL_GPL(rail_conn_wait_closed);

/**
 * rail_conn_get - take one more reference
 * @conn: connection the caller has a reference on
 *
 * Context: any.
 */
void rail_conn_get(struct rail_conn *conn)
{
	refcount_inc(&conn->refs);
}
EXPORT_SYMBOL_GPL(rail_conn_get);

/**
 * rail_conn_put - give a reference back
 * @conn: the connection
 *
 * Context: any.
 */
void rail_conn_put(struct rail_conn *conn)
{
	if (!refcount_dec_and_test(&conn->refs))
		return;
	ida_free(&rail_conn_ids, conn->id);
	kfree(conn);
}
EXPORT_SYMBOL_GPL(rail_conn_put);

/**
 * rail_conns_exit - the module goes, and no connection is left
 */
void rail_conns_exit(void)
{
	ida_destroy(&rail_conn_ids);
}

/* ---------------------------------------------------------------- what an owner may ask */

/**
 * rail_conn_context - what the owner gave with the connection
 * @conn: the connection
 *
 * Return: it.
 */
void *rail_conn_context(const struct rail_conn *conn)
{
	return conn->context;
}
EXPORT_SYMBOL_GPL(rail_conn_context);

/**
 * rail_conn_dev - the device a connection is on
 * @conn: the connection, from ops->configure() until ops->closed() returned
 *
 * Return: the device, without a reference of the caller's own.
 */
struct rail_dev *rail_conn_dev(const struct rail_conn *conn)
{
	return conn->dev;
}
EXPORT_SYMBOL_GPL(rail_conn_dev);

/**
 * rail_conn_qp - the QP
 * @conn: the connection, from ops->created() until ops->drained() returned
 *
 * Return: the QP, for what rail_verbs does not wrap; nothing is posted on it directly.
 */
struct ib_qp *rail_conn_qp(const struct rail_conn *conn)
{
	return conn->qp;
}
EXPORT_SYMBOL_GPL(rail_conn_qp);

/**
 * rail_conn_port - the device's port
 * @conn: as for rail_conn_qp()
 *
 * Return: its number, from 1.
 */
u8 rail_conn_port(const struct rail_conn *conn)
{
	return conn->cm_id->port_num;
}
EXPORT_SYMBOL_GPL(rail_conn_port);

/**
 * rail_conn_id - a number for people
 * @conn: the connection
 *
 * Return: a small number, not in use by another connection.
 */
u32 rail_conn_id(const struct rail_conn *conn)
{
	return conn->id;
}
EXPORT_SYMBOL_GPL(rail_conn_id);

/**
 * rail_conn_state - where the connection is
 * @conn: the connection
 *
 * Context: any. May have changed when the caller looks at it.
 * Return: the state.
 */
enum rail_state rail_conn_state(const struct rail_conn *conn)
{
	return READ_ONCE(conn->state);
}
EXPORT_SYMBOL_GPL(rail_conn_state);

/**
 * rail_conn_reason - why it closed
 * @conn: connection that is closing or dead
 *
 * Return: negative errno: -ECONNREFUSED the peer (or, of a request, we) refused, -ETIMEDOUT nobody
 *	   answered, -ECONNRESET the peer went away, -ENODEV unplugged, -EADDRNOTAVAIL our address
 *	   moved to another device, -EACCES a key or access was wrong; 0: the owner was done.
 */
int rail_conn_reason(const struct rail_conn *conn)
{
	return READ_ONCE(conn->reason);
}
EXPORT_SYMBOL_GPL(rail_conn_reason);

/**
 * rail_conn_name - "source@destination", for people
 * @conn: the connection
 *
 * Return: the text, valid as long as the caller's reference.
 */
const char *rail_conn_name(const struct rail_conn *conn)
{
	return conn->name;
}
EXPORT_SYMBOL_GPL(rail_conn_name);

/**
 * rail_conn_src - own address
 * @conn: connection
 *
 * Return: the address; family AF_UNSPEC before it is known.
 */
const struct sockaddr *rail_conn_src(const struct rail_conn *conn)
{
	return (const struct sockaddr *)&conn->src;
}
EXPORT_SYMBOL_GPL(rail_conn_src);

/**
 * rail_conn_dst - the peer's address
 * @conn: connection
 *
 * Return: the address.
 */
const struct sockaddr *rail_conn_dst(const struct rail_conn *conn)
{
	return (const struct sockaddr *)&conn->dst;
}
EXPORT_SYMBOL_GPL(rail_conn_dst);
