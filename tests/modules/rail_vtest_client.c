// SPDX-License-Identifier: GPL-2.0-only
/*
 * The asking end of the test pair.
 *
 * Commands besides the common ones (see vtest_side.c):
 *	connect PATH [NAME=VALUE ...]	begin to connect; names as for "set", for these connections
 *	run [NAME=VALUE ...]		on every connection that is up; see rvt_run_options
 *	hostile WHAT			have the first connection misbehave; see rvt_hostile_names
 */
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "rail_vtest.h"

static struct rvt_side rvt_client;

/* What a run does on each connection. All members are u32: the option table writes them. */
struct rvt_run {
	u32 send;
	u32 back;
	u32 ops[RVT_NR_OPS];
	u32 size;
	u32 reqsize;
	u32 seed;
};

static const struct rvt_option rvt_run_options[] = {
	{ .name = "send", .offset = offsetof(struct rvt_run, send), .max = U32_MAX },
	{ .name = "back", .offset = offsetof(struct rvt_run, back), .max = U32_MAX },
	{ .name = "read", .offset = offsetof(struct rvt_run, ops[RVT_READ]), .max = U32_MAX },
	{ .name = "write", .offset = offsetof(struct rvt_run, ops[RVT_WRITE]), .max = U32_MAX },
	{ .name = "inv", .offset = offsetof(struct rvt_run, ops[RVT_INV]), .max = U32_MAX },
	{ .name = "imm", .offset = offsetof(struct rvt_run, ops[RVT_IMM]), .max = U32_MAX },
	{ .name = "imm0", .offset = offsetof(struct rvt_run, ops[RVT_IMM0]), .max = U32_MAX },
	/* Bytes at the most; 0: as many as fit. */
	{ .name = "size", .offset = offsetof(struct rvt_run, size), .max = RVT_MAX_MSG },
	{ .name = "reqsize", .offset = offsetof(struct rvt_run, reqsize), .max = RVT_MAX_MEM },
	{ .name = "seed", .offset = offsetof(struct rvt_run, seed), .max = U32_MAX },
	{ }
};

/**
 * struct rvt_ask - a request under way
 * @cep: endpoint
 * @unit: the request
 * @mem: memory offered
 * @mr: its region
 * @key: last key
 * @inv_cqe: told of our own invalidation
 * @inv_chain: of our own invalidation
 * @left: what has to happen yet until it can be used again
 * @busy: under way; ep->lock
 * @answered: the reply came; ep->lock
 * @refused: the server could not do it
 * @op: what is asked
 * @flags: RVT_F_*
 * @seq: number of the request
 * @seed: of the pattern
 * @started: when
 */
struct rvt_ask {
	struct rvt_cep *cep;
	struct rvt_unit unit;
	struct rvt_mem mem;
	struct rail_mr *mr;
	u32 key;
	struct rail_cqe inv_cqe;
	struct rail_chain inv_chain;
	atomic_t left;
	bool busy;
	bool answered;
	bool refused;
	enum rvt_op op;
	u32 flags;
	u64 seq;
	u64 seed;
	u64 started;
};

/**
 * struct rvt_target - a chunk of the server's
 * @unit: writes it
 * @left: what has to happen yet until it can be written again
 * @offered: the server offers it; ep->lock
 * @under_way: written, not offered again yet; ep->lock
 * @addr: where; ep->lock until offered
 * @key: key
 * @size: size
 * @writes: how often it was written
 */
struct rvt_target {
	struct rvt_unit unit;
	atomic_t left;
	bool offered;
	bool under_way;
	u64 addr;
	u32 key;
	u32 size;
	u64 writes;
};

/* A write of nothing under way. @busy, @echoed: ep->lock */
struct rvt_zero {
	struct rvt_unit unit;
	atomic_t left;
	bool busy;
	bool echoed;
};

/**
 * struct rvt_cep - the client's endpoint
 * @ep: common part
 * @asks: requests
 * @targets: chunks of the server's
 * @zeros: writes of nothing
 * @run: what the run does
 * @todo: how many of each operation have to begin yet; work only, but for the start
 * @open: how many have to end yet
 * @seq: counts requests; work only
 * @hostile: misbehaves
 */
struct rvt_cep {
	struct rvt_ep ep;
	struct rvt_ask *asks;
	struct rvt_target *targets;
	struct rvt_zero *zeros;
	struct rvt_run run;
	u32 todo[RVT_NR_OPS];
	atomic_t open;
	u64 seq;
	struct rvt_unit hostile;
};

static struct rvt_cep *to_cep(struct rvt_ep *ep)
{
	return container_of(ep, struct rvt_cep, ep);
}

static void rvt_client_kick(struct rvt_ep *ep)
{
	if (READ_ONCE(ep->up))
		queue_work(rvt_client.wq, &ep->work);
}

static void rvt_set_idle(struct rvt_ep *ep, bool *busy)
{
	spin_lock_bh(&ep->lock);
	*busy = false;
	spin_unlock_bh(&ep->lock);
}

static void rvt_op_done(struct rvt_cep *cep, enum rvt_op op)
{
	static const enum rvt_stat stats[RVT_NR_OPS] = {
		[RVT_READ] = RVT_STAT_READ,
		[RVT_WRITE] = RVT_STAT_WRITE,
		[RVT_INV] = RVT_STAT_INV,
		[RVT_IMM] = RVT_STAT_IMM,
		[RVT_IMM0] = RVT_STAT_IMM0,
	};

	rvt_count(&cep->ep, stats[op]);
	if (atomic_dec_and_test(&cep->open))
		rvt_ep_part_done(&cep->ep);
	rvt_client_kick(&cep->ep);
}

/* ---------------------------------------------------------------- requests */

/* Sent, answered, and invalidated by whom it may be: three things, the last one ends it. */
static void rvt_ask_step(struct rvt_ask *ask)
{
	struct rvt_ep *ep = &ask->cep->ep;
	enum rvt_op op;

	if (!atomic_dec_and_test(&ask->left))
		return;
	rail_mr_put(ask->mr);
	ask->mr = NULL;
	if (ask->op == RVT_WRITE && !ask->refused && !rvt_mem_matches(&ask->mem, ask->seed))
		rvt_count(ep, RVT_STAT_BAD_CONTENT);
	rail_hist_record(&ep->side->stats, RVT_HIST_REQUEST, ktime_get_ns() - ask->started);
	/* Once idle it may be somebody else's. */
	op = ask->op;
	rvt_set_idle(ep, &ask->busy);
	rvt_op_done(to_cep(ep), op);
}

static void rvt_ask_sent(struct rvt_unit *unit, int err)
{
	if (!err)
		rvt_ask_step(container_of(unit, struct rvt_ask, unit));
}

static void rvt_ask_unmap(struct rvt_ask *ask)
{
	rail_mr_invalidated(ask->mr);
	rail_mr_unmap(ask->mr);
	rvt_ask_step(ask);
}

static void rvt_ask_invalidated(struct rail_cqe *cqe, struct ib_wc *wc)
{
	struct rvt_ask *ask = container_of(cqe, struct rvt_ask, inv_cqe);

	rvt_told(&ask->cep->ep, wc);
	if (wc->status == IB_WC_SUCCESS)
		rvt_ask_unmap(ask);
}

static void rvt_ask_inv_failed(struct rail_chain *chain)
{
	rvt_told(&container_of(chain, struct rvt_ask, inv_chain)->cep->ep, NULL);
}

static int rvt_reply(struct rvt_ep *ep, const struct rvt_hdr *hdr, u32 key)
{
	u16 tag = le16_to_cpu(hdr->tag);
	struct rvt_ask *ask;
	bool expected;

	if (tag >= ep->p.tags)
		return -EPROTO;
	ask = &to_cep(ep)->asks[tag];
	spin_lock_bh(&ep->lock);
	expected = ask->busy && !ask->answered;
	ask->answered = true;
	spin_unlock_bh(&ep->lock);
	if (!expected || le64_to_cpu(hdr->seq) != ask->seq)
		return -EPROTO;
	ask->refused = hdr->op;
	if (ask->refused)
		rvt_count(ep, RVT_STAT_BAD_REPLY);
	if (!(ask->flags & RVT_F_KEEP)) {
		if (key != ask->key) {
			rvt_count(ep, RVT_STAT_BAD_KEY);
			return -EKEYREJECTED;
		}
		rvt_ask_unmap(ask);
	} else {
		rail_chain_init(&ask->inv_chain);
		rail_chain_add_signalled(&ask->inv_chain, rail_mr_inv_wr(ask->mr), &ask->inv_cqe);
		rvt_count(ep, RVT_STAT_LOCAL_INV);
		atomic_inc(&ep->told);
		if (rail_post_queued(ep->conn, &ask->inv_chain))
			rvt_refused(ep);
	}
	rvt_ask_step(ask);
	return 0;
}

/* Map the memory and put the registration into the unit's chain, for the peer to do @op. */
static int rvt_ask_register(struct rvt_ask *ask, enum rvt_op op, u32 size)
{
	bool write = op == RVT_WRITE;
	int err;

	rvt_mem_resize(&ask->mem, size);
	rvt_mem_fill(&ask->mem, write ? ~ask->seed : ask->seed);
	err = rail_mr_map(ask->mr, ask->mem.sg, ask->mem.nents, size,
			  write ? DMA_FROM_DEVICE : DMA_TO_DEVICE);
	if (err)
		return err;
	rail_chain_add(&ask->unit.chain,
		       rail_mr_reg_wr(ask->mr, write ? IB_ACCESS_LOCAL_WRITE |
						       IB_ACCESS_REMOTE_WRITE :
						       IB_ACCESS_REMOTE_READ));
	if (ask->key == rail_mr_rkey(ask->mr))
		rvt_count(&ask->cep->ep, RVT_STAT_SAME_KEY);
	ask->key = rail_mr_rkey(ask->mr);
	return 0;
}

static struct rvt_hdr *rvt_ask_begin(struct rvt_ask *ask, enum rvt_op op, u32 size)
{
	struct rvt_hdr *hdr = rvt_unit_begin(&ask->unit, RVT_REQUEST);
	int err;

	err = rvt_ask_register(ask, op, size);
	if (err)
		return ERR_PTR(err);
	hdr->tag = cpu_to_le16(ask - ask->cep->asks);
	hdr->op = cpu_to_le32(op);
	hdr->seq = cpu_to_le64(ask->seq);
	hdr->seed = cpu_to_le64(ask->seed);
	hdr->addr = cpu_to_le64(ask->mr->ib->iova);
	hdr->rkey = cpu_to_le32(ask->key);
	hdr->size = cpu_to_le32(size);
	hdr->flags = cpu_to_le32(ask->flags);
	return hdr;
}

static struct rvt_ask *rvt_ask_take(struct rvt_cep *cep)
{
	struct rvt_ep *ep = &cep->ep;
	struct rvt_ask *ask = NULL;
	u32 i;

	spin_lock_bh(&ep->lock);
	for (i = 0; i < ep->p.tags && !ask; i++)
		if (!cep->asks[i].busy)
			ask = &cep->asks[i];
	if (ask) {
		ask->busy = true;
		ask->answered = false;
	}
	spin_unlock_bh(&ep->lock);
	return ask;
}

/* Return: whether one began. */
static bool rvt_ask(struct rvt_cep *cep, enum rvt_op op)
{
	struct rvt_ask *ask = rvt_ask_take(cep);
	struct rvt_ep *ep = &cep->ep;
	u32 size;

	if (!ask)
		return false;
	ask->mr = rail_mr_get(ep->dom->mrs);
	if (!ask->mr) {
		rvt_count(ep, RVT_STAT_MR_EMPTY);
		rvt_set_idle(ep, &ask->busy);
		return false;
	}
	ask->op = op;
	ask->seq = cep->seq++;
	ask->seed = rvt_mix(cep->run.seed + ask->seq);
	/* Every way to do it, in turn. */
	ask->flags = (ask->seq & 1 ? RVT_F_PLAIN : 0) | (ask->seq % 3 ? 0 : RVT_F_KEEP);
	ask->started = ktime_get_ns();
	size = 1 + (ask->seed >> 24) % (cep->run.reqsize ?: ep->p.mem);
	if (IS_ERR(rvt_ask_begin(ask, op, size))) {
		rail_mr_put(ask->mr);
		ask->mr = NULL;
		rail_conn_close(ep->conn, -EIO);
		return false;
	}
	rvt_unit_end(&ask->unit, 0, true);
	atomic_set(&ask->left, 3);
	rvt_unit_queue(&ask->unit);
	return true;
}

/* ---------------------------------------------------------------- chunks */

static void rvt_target_step(struct rvt_unit *unit, int err)
{
	struct rvt_target *target = container_of(unit, struct rvt_target, unit);
	struct rvt_ep *ep = unit->ep;

	if (err || !atomic_dec_and_test(&target->left))
		return;
	spin_lock_bh(&ep->lock);
	target->offered = true;
	spin_unlock_bh(&ep->lock);
	rvt_op_done(to_cep(ep), RVT_IMM);
}

static int rvt_chunk_offered(struct rvt_ep *ep, const struct rvt_hdr *hdr)
{
	u16 index = le16_to_cpu(hdr->tag);
	struct rvt_target *target;
	bool again, good = true;

	if (index >= ep->p.chunks || le32_to_cpu(hdr->size) < sizeof(*hdr))
		return -EPROTO;
	target = &to_cep(ep)->targets[index];
	spin_lock_bh(&ep->lock);
	again = target->under_way;
	if (!again && target->offered)
		good = false;
	target->under_way = false;
	if (target->key == le32_to_cpu(hdr->rkey))
		rvt_count(ep, RVT_STAT_SAME_KEY);
	target->addr = le64_to_cpu(hdr->addr);
	target->key = le32_to_cpu(hdr->rkey);
	target->size = le32_to_cpu(hdr->size);
	if (le64_to_cpu(hdr->seq) != target->writes)
		good = false;
	if (!again)
		target->offered = true;
	spin_unlock_bh(&ep->lock);
	if (!good)
		return -EPROTO;
	if (again)
		rvt_target_step(&target->unit, 0);
	else
		rvt_client_kick(ep);
	return 0;
}

static bool rvt_write_imm(struct rvt_cep *cep)
{
	struct rvt_target *target = NULL;
	struct rvt_ep *ep = &cep->ep;
	struct rvt_hdr *hdr;
	u32 i, size;
	u64 seed;

	spin_lock_bh(&ep->lock);
	for (i = 0; i < ep->p.chunks && !target; i++)
		if (cep->targets[i].offered)
			target = &cep->targets[i];
	if (target) {
		target->offered = false;
		target->under_way = true;
	}
	spin_unlock_bh(&ep->lock);
	if (!target)
		return false;
	seed = rvt_mix(cep->run.seed + ++cep->seq);
	size = (seed >> 24) % (cep->run.size + 1);
	hdr = rvt_unit_begin(&target->unit, RVT_DATA);
	hdr->seq = cpu_to_le64(target->writes++);
	hdr->seed = cpu_to_le64(seed);
	rvt_unit_end(&target->unit, min_t(u32, size, target->size - sizeof(*hdr)), true);
	rvt_unit_write_imm(&target->unit, target->addr, target->key,
			   RVT_IMM_CHUNK | (u32)(target - cep->targets));
	atomic_set(&target->left, 2);
	rvt_unit_queue(&target->unit);
	return true;
}

static void rvt_zero_step(struct rvt_unit *unit, int err)
{
	struct rvt_zero *zero = container_of(unit, struct rvt_zero, unit);

	if (err || !atomic_dec_and_test(&zero->left))
		return;
	rvt_set_idle(unit->ep, &zero->busy);
	rvt_op_done(to_cep(unit->ep), RVT_IMM0);
}

static bool rvt_write_zero(struct rvt_cep *cep)
{
	struct rvt_zero *zero = NULL;
	struct rvt_ep *ep = &cep->ep;
	u32 i;

	spin_lock_bh(&ep->lock);
	for (i = 0; i < ep->p.tags && !zero; i++)
		if (!cep->zeros[i].busy)
			zero = &cep->zeros[i];
	if (zero) {
		zero->busy = true;
		zero->echoed = false;
	}
	spin_unlock_bh(&ep->lock);
	if (!zero)
		return false;
	atomic_set(&zero->left, 2);
	rvt_unit_begin(&zero->unit, 0);
	rvt_unit_end(&zero->unit, 0, true);
	rvt_unit_zero_imm(&zero->unit, RVT_IMM_ZERO | (u32)(zero - cep->zeros));
	rvt_unit_queue(&zero->unit);
	return true;
}

static int rvt_client_imm(struct rvt_ep *ep, u32 imm)
{
	u32 index = imm & RVT_IMM_INDEX;
	struct rvt_zero *zero;
	bool expected;

	if ((imm & RVT_IMM_KIND) != RVT_IMM_ZERO || index >= ep->p.tags)
		return -EPROTO;
	zero = &to_cep(ep)->zeros[index];
	spin_lock_bh(&ep->lock);
	expected = zero->busy && !zero->echoed;
	zero->echoed = true;
	spin_unlock_bh(&ep->lock);
	if (!expected)
		return -EPROTO;
	rvt_zero_step(&zero->unit, 0);
	return 0;
}

static int rvt_client_message(struct rvt_ep *ep, const struct rvt_hdr *hdr, u32 key)
{
	switch (hdr->type) {
	case RVT_REPLY:
		return rvt_reply(ep, hdr, key);
	case RVT_CHUNK:
		return rvt_chunk_offered(ep, hdr);
	default:
		return -EPROTO;
	}
}

static bool rvt_begin(struct rvt_cep *cep, enum rvt_op op)
{
	switch (op) {
	case RVT_IMM:
		return rvt_write_imm(cep);
	case RVT_IMM0:
		return rvt_write_zero(cep);
	default:
		return rvt_ask(cep, op);
	}
}

static void rvt_client_work(struct work_struct *work)
{
	struct rvt_cep *cep = to_cep(container_of(work, struct rvt_ep, work));
	enum rvt_op op;
	bool any;

	/* A round takes one of each, so that all are mixed. */
	do {
		any = false;
		for (op = 0; op < RVT_NR_OPS; op++) {
			if (!READ_ONCE(cep->todo[op]) ||
			    rail_conn_state(cep->ep.conn) != RAIL_UP)
				continue;
			if (rvt_begin(cep, op)) {
				cep->todo[op]--;
				any = true;
			}
		}
		cond_resched();
	} while (any);
}

/* ---------------------------------------------------------------- set-up and tear-down */

static int rvt_asks_alloc(struct rvt_cep *cep)
{
	struct rvt_ep *ep = &cep->ep;
	u32 i;
	int err;

	cep->asks = kcalloc(ep->p.tags, sizeof(*cep->asks), GFP_KERNEL);
	cep->zeros = kcalloc(ep->p.tags, sizeof(*cep->zeros), GFP_KERNEL);
	if (!cep->asks || !cep->zeros)
		return -ENOMEM;
	for (i = 0; i < ep->p.tags; i++) {
		struct rvt_ask *ask = &cep->asks[i];

		ask->cep = cep;
		rail_cqe_init_send(&ask->inv_cqe, rvt_ask_invalidated);
		ask->inv_chain.failed = rvt_ask_inv_failed;
		err = rvt_mem_alloc(&ask->mem, ep->p.mem);
		if (!err)
			err = rvt_unit_init(&ask->unit, ep, 0, rvt_ask_sent);
		if (!err)
			err = rvt_unit_init(&cep->zeros[i].unit, ep, 0, rvt_zero_step);
		if (err)
			return err;
	}
	return 0;
}

static void rvt_hostile_done(struct rvt_unit *unit, int err)
{
}

static int rvt_client_setup(struct rvt_ep *ep)
{
	struct rvt_cep *cep = to_cep(ep);
	u32 i;
	int err;

	err = rvt_asks_alloc(cep);
	if (err)
		return err;
	cep->targets = kcalloc(ep->p.chunks, sizeof(*cep->targets), GFP_KERNEL);
	if (!cep->targets)
		return -ENOMEM;
	for (i = 0; i < ep->p.chunks && !err; i++)
		err = rvt_unit_init(&cep->targets[i].unit, ep, ep->p.sges - 1, rvt_target_step);
	return err ?: rvt_unit_init(&cep->hostile, ep, ep->p.sges - 1, rvt_hostile_done);
}

static void rvt_client_up(struct rvt_ep *ep)
{
}

static void rvt_client_teardown(struct rvt_ep *ep)
{
	struct rvt_cep *cep = to_cep(ep);
	u32 i;

	for (i = 0; cep->asks && i < ep->p.tags; i++) {
		struct rvt_ask *ask = &cep->asks[i];

		/* The server may know the key yet: the pool forgets it before the memory goes. */
		if (ask->mr)
			rail_mr_put(ask->mr);
		rvt_mem_free(&ask->mem);
		rvt_unit_free(&ask->unit);
	}
	for (i = 0; cep->zeros && i < ep->p.tags; i++)
		rvt_unit_free(&cep->zeros[i].unit);
	for (i = 0; cep->targets && i < ep->p.chunks; i++)
		rvt_unit_free(&cep->targets[i].unit);
	rvt_unit_free(&cep->hostile);
	kfree(cep->asks);
	kfree(cep->zeros);
	kfree(cep->targets);
}

/* ---------------------------------------------------------------- commands */

static int rvt_connect_one(struct net *net, const struct rvt_params *params, u32 group,
			   const struct sockaddr *src, const struct sockaddr *dst)
{
	u8 priv[U8_MAX] = {};
	struct rail_conn *conn;
	struct rvt_ep *ep;
	int err;

	ep = rvt_ep_create(&rvt_client, params, group, false);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	conn = rail_conn_create(net, &rvt_conn_ops, ep);
	if (IS_ERR(conn)) {
		rvt_ep_discard(ep);
		return PTR_ERR(conn);
	}
	rvt_pack_priv((struct rvt_priv *)priv, ep);
	mutex_lock(&rvt_client.mutex);
	rvt_ep_link(ep, conn);
	mutex_unlock(&rvt_client.mutex);
	rvt_count(ep, RVT_STAT_CONNECTS);
	err = rail_conn_connect(conn, &(struct rail_connect) {
		.dst = dst,
		.src = src,
		.timeout_ms = params->timeout,
		.priv = priv,
		.priv_len = params->privlen ?: sizeof(struct rvt_priv),
		.ack_timeout = params->ack,
		.retries = params->retries,
		.rnr_retries = params->rnr,
	});
	if (err)
		rail_conn_close(conn, err);
	return err;
}

static int rvt_command_connect(char *args)
{
	struct net *net = current->nsproxy->net_ns;
	const char *path = strsep(&args, " ");
	struct sockaddr_storage src, dst;
	struct rvt_params params;
	u32 i, group;
	int err;

	mutex_lock(&rvt_client.mutex);
	params = rvt_client.params;
	mutex_unlock(&rvt_client.mutex);
	err = rail_path_parse(net, path, strlen(path), RVT_PORT, &src, &dst);
	if (!err && args)
		err = rvt_parse(rvt_param_options, &params, args);
	if (err)
		return err;
	get_random_bytes(&group, sizeof(group));
	for (i = 0; i < params.conns && !err; i++)
		err = rvt_connect_one(net, &params, group, (struct sockaddr *)&src,
				      (struct sockaddr *)&dst);
	return err;
}

static void rvt_run_start(struct rvt_cep *cep, const struct rvt_run *run)
{
	struct rvt_ep *ep = &cep->ep;
	u32 ops = 0, parts = 0;
	enum rvt_op op;

	cep->run = *run;
	if (!cep->run.size)
		cep->run.size = ep->p.msg;
	ep->tx_seed = rvt_mix(run->seed + ep->group + rail_conn_id(ep->conn));
	for (op = 0; op < RVT_NR_OPS; op++)
		ops += run->ops[op];
	parts = !!run->send + !!run->back + !!ops;
	if (!parts)
		return;
	ep->back = run->back;
	ep->back_size = cep->run.size;
	/* Nothing may end before everything is set. */
	atomic_set(&cep->open, ops);
	atomic_set(&ep->parts, parts);
	if (run->back)
		rvt_ep_ctl(ep, RVT_CTL_START);
	if (run->send)
		rvt_ep_send_run(ep, run->send, cep->run.size, ep->tx_seed);
	if (ops) {
		for (op = 0; op < RVT_NR_OPS; op++)
			WRITE_ONCE(cep->todo[op], run->ops[op]);
		rvt_client_kick(ep);
	}
}

static int rvt_command_run(char *args)
{
	struct rvt_run run = {};
	struct rvt_ep *ep;
	int err;

	err = rvt_parse(rvt_run_options, &run, args);
	if (err)
		return err;
	err = -ENOTCONN;
	mutex_lock(&rvt_client.mutex);
	list_for_each_entry(ep, &rvt_client.eps, entry) {
		if (rail_conn_state(ep->conn) != RAIL_UP || !READ_ONCE(ep->up))
			continue;
		if (atomic_read(&ep->parts)) {
			err = -EBUSY;
			break;
		}
		err = -ERANGE;
		if (run.size > ep->p.msg || run.reqsize > ep->p.mem ||
		    (run.ops[RVT_IMM] && !ep->p.chunks))
			break;
		err = 0;
		rvt_run_start(to_cep(ep), &run);
	}
	mutex_unlock(&rvt_client.mutex);
	return err;
}

/* ---------------------------------------------------------------- misbehaviour */

enum rvt_hostile {
	RVT_HOSTILE_CRC,	/* header with a wrong checksum */
	RVT_HOSTILE_SHORT,	/* less than a header */
	RVT_HOSTILE_LENGTH,	/* header lies about the length */
	RVT_HOSTILE_LONG,	/* more than the receive takes */
	RVT_HOSTILE_TYPE,	/* unknown type */
	RVT_HOSTILE_CREDIT,	/* acknowledges what was not sent */
	RVT_HOSTILE_TAG,	/* request with a tag beyond all */
	RVT_HOSTILE_SIZE,	/* request for more than may be */
	RVT_HOSTILE_OP,		/* request for what there is not */
	RVT_HOSTILE_READ_KEY,	/* has the server read under a key that is none */
	RVT_HOSTILE_WRITE_KEY,	/* has the server write under a key that is none */
	RVT_HOSTILE_WRITE_RO,	/* has the server write what it may only read */
	RVT_HOSTILE_INV_KEY,	/* has the server invalidate what is not ours */
	RVT_HOSTILE_IMM_KEY,	/* writes a chunk under the wrong key */
	RVT_HOSTILE_IMM_LONG,	/* writes beyond a chunk */
	RVT_HOSTILE_IMM_INDEX,	/* writes to a chunk that is not */
};

static const char * const rvt_hostile_names[] = {
	"crc", "short", "length", "long", "type", "credit", "tag", "size", "op", "read_key",
	"write_key", "write_ro", "inv_key", "imm_key", "imm_long", "imm_index", NULL,
};

static int rvt_hostile_request(struct rvt_cep *cep, enum rvt_hostile how)
{
	bool wrong_key = how == RVT_HOSTILE_READ_KEY || how == RVT_HOSTILE_WRITE_KEY ||
			 how == RVT_HOSTILE_INV_KEY;
	struct rvt_ask *ask = &cep->asks[0];
	struct rvt_hdr *hdr;

	if (ask->busy)
		return -EBUSY;
	ask->mr = rail_mr_get(cep->ep.dom->mrs);
	if (!ask->mr)
		return -ENOBUFS;
	ask->flags = RVT_F_PLAIN;
	hdr = rvt_ask_begin(ask, how == RVT_HOSTILE_WRITE_KEY ? RVT_WRITE : RVT_READ, 64);
	/* Freed by teardown. */
	if (IS_ERR(hdr))
		return PTR_ERR(hdr);
	if (how == RVT_HOSTILE_TAG)
		hdr->tag = cpu_to_le16(cep->ep.p.tags);
	if (how == RVT_HOSTILE_SIZE)
		hdr->size = cpu_to_le32(cep->ep.p.mem + 1);
	if (how == RVT_HOSTILE_OP)
		hdr->op = cpu_to_le32(RVT_IMM);
	if (how == RVT_HOSTILE_WRITE_RO)
		hdr->op = cpu_to_le32(RVT_WRITE);
	if (how == RVT_HOSTILE_INV_KEY)
		hdr->op = cpu_to_le32(RVT_INV);
	if (wrong_key)
		hdr->rkey = cpu_to_le32(ask->key ^ 0x55);
	rvt_unit_end(&ask->unit, 0, true);
	rvt_unit_queue(&ask->unit);
	return 0;
}

static int rvt_hostile_write(struct rvt_cep *cep, enum rvt_hostile how)
{
	struct rvt_target *target = &cep->targets[0];
	struct rvt_unit *unit = &cep->hostile;
	u64 addr = target->addr;
	u32 key = target->key;
	u32 index = 0;

	if (!cep->ep.p.chunks || !target->offered)
		return -EBUSY;
	if (how == RVT_HOSTILE_IMM_KEY)
		key ^= 0x55;
	if (how == RVT_HOSTILE_IMM_LONG)
		addr += target->size - sizeof(struct rvt_hdr) + 1;
	if (how == RVT_HOSTILE_IMM_INDEX)
		index = cep->ep.p.chunks;
	rvt_unit_begin(unit, RVT_DATA);
	rvt_unit_end(unit, 0, true);
	rvt_unit_write_imm(unit, addr, key, RVT_IMM_CHUNK | index);
	rvt_unit_queue(unit);
	return 0;
}

static int rvt_hostile_message(struct rvt_cep *cep, enum rvt_hostile how)
{
	u32 len = how == RVT_HOSTILE_LONG ? cep->ep.p.msg : 0;
	struct rvt_unit *unit = &cep->hostile;
	struct rvt_hdr *hdr = unit->head->addr;

	rvt_unit_begin(unit, how == RVT_HOSTILE_TYPE ? 99 : RVT_CREDIT);
	rvt_unit_end(unit, len, true);
	if (how == RVT_HOSTILE_LENGTH)
		hdr->len = cpu_to_le32(100);
	if (how == RVT_HOSTILE_CREDIT)
		hdr->consumed = cpu_to_le32(1000000);
	rvt_hdr_seal(hdr);
	if (how == RVT_HOSTILE_CRC)
		hdr->crc ^= cpu_to_le32(1);
	if (how == RVT_HOSTILE_SHORT)
		unit->sge[0].length = 13;
	if (how == RVT_HOSTILE_LONG)
		unit->sge[0].length += 1;
	rvt_unit_queue(unit);
	return 0;
}

static int rvt_command_hostile(char *args)
{
	struct rvt_ep *ep;
	u32 how;
	int err;

	err = rvt_word(rvt_hostile_names, strim(args), &how);
	if (err)
		return err;
	err = -ENOTCONN;
	mutex_lock(&rvt_client.mutex);
	list_for_each_entry(ep, &rvt_client.eps, entry) {
		if (rail_conn_state(ep->conn) != RAIL_UP || !READ_ONCE(ep->up))
			continue;
		if (how >= RVT_HOSTILE_IMM_KEY)
			err = rvt_hostile_write(to_cep(ep), how);
		else if (how >= RVT_HOSTILE_TAG)
			err = rvt_hostile_request(to_cep(ep), how);
		else
			err = rvt_hostile_message(to_cep(ep), how);
		break;
	}
	mutex_unlock(&rvt_client.mutex);
	return err;
}

static int rvt_client_command(struct rvt_side *side, const char *name, char *args)
{
	if (!strcmp(name, "connect"))
		return rvt_command_connect(args);
	if (!strcmp(name, "run"))
		return rvt_command_run(args);
	if (!strcmp(name, "hostile"))
		return rvt_command_hostile(args);
	return -EINVAL;
}

static const struct rvt_role rvt_client_role = {
	.size = sizeof(struct rvt_cep),
	.setup = rvt_client_setup,
	.up = rvt_client_up,
	.message = rvt_client_message,
	.imm = rvt_client_imm,
	.kick = rvt_client_kick,
	.work = rvt_client_work,
	.teardown = rvt_client_teardown,
	.command = rvt_client_command,
};

static int __init rvt_client_init(void)
{
	return rvt_side_init(&rvt_client, "client", &rvt_client_role);
}

static void __exit rvt_client_exit(void)
{
	rvt_side_stop_commands(&rvt_client);
	rvt_side_exit(&rvt_client);
}

module_init(rvt_client_init);
module_exit(rvt_client_exit);

MODULE_DESCRIPTION("Asking end of the rail_verbs test pair");
MODULE_LICENSE("GPL");
