// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sides: options, commands, numbers, what connections share, and how a module goes away.
 *
 * Commands, one a write to "control":
 *	set NAME=VALUE ...	for connections to come; see rvt_param_options
 *	wait WHAT [N]		returns when it is so; see enum rvt_until
 *	close [ID]		begin to close all connections, or one
 *	release			end what hold_closing and hold_drained hold
 *	forget			keep no PD without connections
 * "status" is JSON; "stats" and "stats.json" are the numbers alone.
 */
#include <linux/debugfs.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "rail_vtest.h"

static struct dentry *rvt_root;

/* ---------------------------------------------------------------- options */

static const char * const rvt_polls[] = { "softirq", "workqueue", "unbound", "direct", NULL };
static const char * const rvt_posts[] = { "try", "queued", "wait", "mix", NULL };
static const char * const rvt_fails[] = { "none", "configure", "created", "established", NULL };

#define RVT_PARAM(field, low, high) \
	{ .name = #field, .offset = offsetof(struct rvt_params, field), .min = low, .max = high }
#define RVT_WORDS(field, list) \
	{ .name = #field, .offset = offsetof(struct rvt_params, field), .words = list }

const struct rvt_option rvt_param_options[] = {
	RVT_WORDS(poll, rvt_polls),
	RVT_PARAM(depth, 1, 4096),		/* send queue */
	RVT_PARAM(chain, 2, 64),		/* longest chain */
	RVT_PARAM(interval, 0, 4096),		/* between forced signals */
	RVT_PARAM(window, 1, RVT_MAX_WINDOW),	/* data messages not yet consumed */
	RVT_PARAM(tags, 1, RVT_MAX_TAGS),	/* requests under way */
	RVT_PARAM(chunks, 0, RVT_MAX_TAGS),	/* of the server's memory to write to */
	RVT_PARAM(msg, RVT_MAX_SGE, RVT_MAX_MSG),
	RVT_PARAM(mem, 1, RVT_MAX_MEM),		/* of a request */
	RVT_PARAM(streams, 1, RVT_MAX_STREAMS),
	RVT_PARAM(sges, 2, RVT_MAX_SGE),	/* pieces a message is gathered from */
	RVT_PARAM(signal, 1, 64),		/* every so many messages of a stream */
	RVT_PARAM(rw, 1, RVT_MAX_TAGS),		/* rdma_rw contexts */
	RVT_PARAM(mrs, 1, 4096),		/* memory regions of a group */
	RVT_PARAM(mrmax, 0, 4096),
	RVT_WORDS(post, rvt_posts),
	RVT_PARAM(conns, 1, 256),
	RVT_PARAM(timeout, 1, 600000),		/* ms until up */
	RVT_PARAM(retries, 0, 7),
	RVT_PARAM(rnr, 0, 7),
	RVT_PARAM(ack, 0, 31),
	RVT_PARAM(privlen, 0, 255),		/* private data; 0: what there is to say */
	RVT_PARAM(watch, 0, 600000),		/* ms that a peer may be silent */
	RVT_PARAM(keep, 0, 1),			/* PD and regions stay without connections */
	RVT_WORDS(fail_in, rvt_fails),
	RVT_PARAM(defer, 0, 1),			/* answer requests later, at "answer" */
	RVT_PARAM(reject, 0, 133),		/* refuse requests with this errno */
	RVT_PARAM(hold_closing, 0, 600000),	/* ms that closing() takes, or until "release" */
	RVT_PARAM(hold_drained, 0, 600000),	/* ms that drained() takes, or until "release" */
	{ }
};
EXPORT_SYMBOL_GPL(rvt_param_options);

const struct rvt_params rvt_param_defaults = {
	.poll = RAIL_POLL_SOFTIRQ,
	.depth = 32,
	.chain = 8,
	.window = 64,
	.tags = 8,
	.chunks = 4,
	.msg = 1024,
	.mem = 12288,
	.streams = 2,
	.sges = 4,
	.signal = 4,
	.rw = 8,
	.mrs = 16,
	.mrmax = 64,
	.post = RVT_POST_TRY,
	.conns = 1,
	.timeout = 10000,
};
EXPORT_SYMBOL_GPL(rvt_param_defaults);

/**
 * rvt_word - find a word in a list
 * @words: the list, up to a NULL
 * @word: the word
 * @value: set to its index
 *
 * Return: 0 or -EINVAL.
 */
int rvt_word(const char * const *words, const char *word, u32 *value)
{
	int i = 0;

	for (; words[i]; i++) {
		if (!strcmp(words[i], word)) {
			*value = i;
			return 0;
		}
	}
	return -EINVAL;
}
EXPORT_SYMBOL_GPL(rvt_word);

static int rvt_parse_one(const struct rvt_option *option, void *base, char *token)
{
	char *value = strchr(token, '=');
	u32 number;
	int err;

	if (!value)
		return -EINVAL;
	*value++ = '\0';
	for (; option->name; option++)
		if (!strcmp(option->name, token))
			break;
	if (!option->name)
		return -ENOENT;
	if (option->words)
		err = rvt_word(option->words, value, &number);
	else
		err = kstrtou32(value, 0, &number);
	if (err)
		return err;
	if (!option->words && (number < option->min || number > option->max))
		return -ERANGE;
	*(u32 *)(base + option->offset) = number;
	return 0;
}

/**
 * rvt_parse - read "name=value name=value ..."
 * @options: which names there are, up to one without a name
 * @base: the struct they are in
 * @text: the text; eaten
 *
 * Return: 0, -ENOENT for an unknown name, -ERANGE or -EINVAL for a bad value.
 */
int rvt_parse(const struct rvt_option *options, void *base, char *text)
{
	char *token;
	int err;

	while ((token = strsep(&text, " \t\n"))) {
		if (!*token)
			continue;
		err = rvt_parse_one(options, base, token);
		if (err)
			return err;
	}
	return 0;
}
EXPORT_SYMBOL_GPL(rvt_parse);

/* ---------------------------------------------------------------- what connections share */

static void rvt_dom_refilled(void *context)
{
	struct rvt_dom *dom = context;
	struct rvt_side *side = dom->side;
	struct rvt_ep *ep;

	mutex_lock(&side->mutex);
	list_for_each_entry(ep, &side->eps, entry)
		if (side->role->kick)
			side->role->kick(ep);
	mutex_unlock(&side->mutex);
}

static void rvt_dom_free(struct rvt_dom *dom)
{
	/* Not under dom_mutex: waits for a removed() that runs, which takes it. */
	rail_dev_unwatch(&dom->watch);
	if (!IS_ERR_OR_NULL(dom->mrs))
		rail_mr_pool_destroy(dom->mrs);
	if (!IS_ERR_OR_NULL(dom->pd))
		rail_pd_put(dom->pd);
	kfree(dom);
}

static bool rvt_dom_put_locked(struct rvt_dom *dom)
{
	if (--dom->users)
		return false;
	list_del(&dom->entry);
	return true;
}

/**
 * rvt_dom_put - a user no longer uses it
 * @dom: what rvt_dom_get() returned
 */
void rvt_dom_put(struct rvt_dom *dom)
{
	struct rvt_side *side = dom->side;
	bool last;

	mutex_lock(&side->dom_mutex);
	last = rvt_dom_put_locked(dom);
	mutex_unlock(&side->dom_mutex);
	if (last)
		rvt_dom_free(dom);
}

static void rvt_dom_unkeep(struct work_struct *work)
{
	rvt_dom_put(container_of(work, struct rvt_dom, unkeep));
}

static void rvt_dom_removed(struct rail_dev_watch *watch)
{
	struct rvt_dom *dom = container_of(watch, struct rvt_dom, watch);
	struct rvt_side *side = dom->side;

	mutex_lock(&side->dom_mutex);
	rail_stats_inc(&side->stats, RVT_STAT_REMOVED);
	dom->gone = true;
	/* By a work, for whose end the module can wait before it goes. */
	if (dom->kept)
		queue_work(side->wq, &dom->unkeep);
	dom->kept = false;
	mutex_unlock(&side->dom_mutex);
}

static int rvt_dom_fill(struct rvt_dom *dom, const struct rvt_params *params)
{
	struct rail_mr_pool_attr attr = {
		.count = params->mrs,
		.max = params->mrmax,
		.pages = DIV_ROUND_UP(max(params->mem, params->msg), PAGE_SIZE) + 1,
		.refilled = rvt_dom_refilled,
		.context = dom,
	};

	dom->pd = rail_pd_alloc(dom->dev);
	if (IS_ERR(dom->pd))
		return PTR_ERR(dom->pd);
	attr.pd = dom->pd;
	dom->mrs = rail_mr_pool_create(&attr);
	return PTR_ERR_OR_ZERO(dom->mrs);
}

static struct rvt_dom *rvt_dom_find(struct rvt_side *side, struct rail_dev *dev, u32 group)
{
	struct rvt_dom *dom;

	list_for_each_entry(dom, &side->doms, entry) {
		if (dom->dev == dev && dom->group == group && !dom->gone) {
			dom->users++;
			return dom;
		}
	}
	return NULL;
}

/* Watched from here on, though removed() finds nothing to do before it is listed. */
static struct rvt_dom *rvt_dom_alloc(struct rvt_side *side, struct rail_dev *dev, u32 group)
{
	struct rvt_dom *dom = kzalloc(sizeof(*dom), GFP_KERNEL);
	int err;

	if (!dom)
		return ERR_PTR(-ENOMEM);
	dom->side = side;
	dom->dev = dev;
	dom->group = group;
	dom->watch.removed = rvt_dom_removed;
	INIT_WORK(&dom->unkeep, rvt_dom_unkeep);
	err = rail_dev_watch(dev, &dom->watch);
	if (err) {
		kfree(dom);
		return ERR_PTR(err);
	}
	return dom;
}

/**
 * rvt_dom_get - what a new connection shares with the others of its group
 * @side: whose
 * @dev: the connection's device
 * @group: the group
 * @params: options, where it is the first one
 *
 * Return: it, to be put; or an ERR_PTR.
 */
struct rvt_dom *rvt_dom_get(struct rvt_side *side, struct rail_dev *dev, u32 group,
			    const struct rvt_params *params)
{
	struct rvt_dom *dom, *made;
	int err = 0;

	mutex_lock(&side->dom_mutex);
	dom = rvt_dom_find(side, dev, group);
	mutex_unlock(&side->dom_mutex);
	if (dom)
		return dom;

	/* Not under dom_mutex: removed() takes it while the device is held. */
	made = rvt_dom_alloc(side, dev, group);
	if (IS_ERR(made))
		return made;
	mutex_lock(&side->dom_mutex);
	dom = rvt_dom_find(side, dev, group);
	if (!dom) {
		err = made->gone ? -ENODEV : rvt_dom_fill(made, params);
		if (!err) {
			made->users = 1 + params->keep;
			made->kept = params->keep;
			list_add_tail(&made->entry, &side->doms);
			dom = made;
		}
	}
	mutex_unlock(&side->dom_mutex);
	if (dom != made)
		rvt_dom_free(made);
	return err ? ERR_PTR(err) : dom;
}

/**
 * rvt_forget_doms - keep nothing without connections
 * @side: whose
 */
void rvt_forget_doms(struct rvt_side *side)
{
	struct rvt_dom *dom, *next;
	LIST_HEAD(old);

	mutex_lock(&side->dom_mutex);
	list_for_each_entry_safe(dom, next, &side->doms, entry) {
		if (!dom->kept)
			continue;
		dom->kept = false;
		if (rvt_dom_put_locked(dom))
			list_add(&dom->entry, &old);
	}
	mutex_unlock(&side->dom_mutex);
	list_for_each_entry_safe(dom, next, &old, entry)
		rvt_dom_free(dom);
}
EXPORT_SYMBOL_GPL(rvt_forget_doms);

/* ---------------------------------------------------------------- numbers */

static const char * const rvt_counters[RVT_NR_STATS] = {
	[RVT_STAT_CONNECTS] = "connects",
	[RVT_STAT_REQUESTS] = "requests",
	[RVT_STAT_UP] = "up",
	[RVT_STAT_CLOSED] = "closed",
	[RVT_STAT_REFUSED] = "refused",
	[RVT_STAT_SENT] = "sent",
	[RVT_STAT_RECEIVED] = "received",
	[RVT_STAT_BYTES] = "bytes",
	[RVT_STAT_READ] = "read",
	[RVT_STAT_WRITE] = "write",
	[RVT_STAT_INV] = "inv",
	[RVT_STAT_IMM] = "imm",
	[RVT_STAT_IMM0] = "imm0",
	[RVT_STAT_LOCAL_INV] = "local_inv",
	[RVT_STAT_CREDITS] = "credits",
	[RVT_STAT_RUNS] = "runs",
	[RVT_STAT_AGAIN] = "again",
	[RVT_STAT_QUEUED] = "queued",
	[RVT_STAT_MR_EMPTY] = "mr_empty",
	[RVT_STAT_REMOVED] = "removed",
	[RVT_STAT_GONE] = "gone",
	[RVT_STAT_FLUSHED] = "flushed",
	[RVT_STAT_PROTOCOL] = "protocol",
	[RVT_STAT_BAD_HEADER] = "bad_header",
	[RVT_STAT_BAD_CONTENT] = "bad_content",
	[RVT_STAT_BAD_ORDER] = "bad_order",
	[RVT_STAT_BAD_COUNT] = "bad_count",
	[RVT_STAT_BAD_KEY] = "bad_key",
	[RVT_STAT_SAME_KEY] = "same_key",
	[RVT_STAT_BAD_REPLY] = "bad_reply",
	[RVT_STAT_NOT_TOLD] = "not_told",
	[RVT_STAT_TOLD_TWICE] = "told_twice",
	[RVT_STAT_LATE_CALL] = "late_call",
};

static const char * const rvt_hists[RVT_NR_HISTS] = {
	[RVT_HIST_REQUEST] = "request_ns",
};

static const struct rail_stats_desc rvt_stats_desc = {
	.name = "stats",
	.nr_counters = RVT_NR_STATS,
	.nr_hists = RVT_NR_HISTS,
	.counters = rvt_counters,
	.hists = rvt_hists,
};

static const char * const rvt_phases[RVT_NR_PHASES] = {
	[RVT_PHASE_NEW] = "new",
	[RVT_PHASE_ASKED] = "asked",
	[RVT_PHASE_CONFIGURED] = "configured",
	[RVT_PHASE_CREATED] = "created",
	[RVT_PHASE_UP] = "up",
};

static u32 rvt_count_doms(struct rvt_side *side)
{
	struct rvt_dom *dom;
	u32 n = 0;

	mutex_lock(&side->dom_mutex);
	list_for_each_entry(dom, &side->doms, entry)
		n++;
	mutex_unlock(&side->dom_mutex);
	return n;
}

static int rvt_status_show(struct seq_file *m, void *unused)
{
	struct rvt_side *side = m->private;
	const char *comma = "";
	struct rvt_ep *ep;
	u32 i;

	seq_printf(m, "{\"doms\":%u,\"conns\":[", rvt_count_doms(side));
	mutex_lock(&side->mutex);
	list_for_each_entry(ep, &side->eps, entry) {
		seq_printf(m, "%s{\"id\":%u,\"name\":\"%s\",\"state\":\"%s\",\"phase\":\"%s\",",
			   comma, rail_conn_id(ep->conn), rail_conn_name(ep->conn),
			   rail_state_name(rail_conn_state(ep->conn)), rvt_phases[ep->phase]);
		seq_printf(m, "\"reason\":%d,\"group\":%u,\"parts\":%d,\"sent\":%u,\"acked\":%u}",
			   rail_conn_reason(ep->conn), ep->group, atomic_read(&ep->parts),
			   ep->tx_sent, ep->tx_acked);
		comma = ",";
	}
	seq_puts(m, "],\"past\":[");
	i = side->nr_past > RVT_HISTORY ? side->nr_past - RVT_HISTORY : 0;
	for (comma = ""; i < side->nr_past; i++) {
		const struct rvt_past *past = &side->past[i % RVT_HISTORY];

		seq_printf(m, "%s{\"id\":%u,\"reason\":%d,\"refusal\":%d,\"phase\":\"%s\"}", comma,
			   past->id, past->reason, past->refusal, rvt_phases[past->phase]);
		comma = ",";
	}
	mutex_unlock(&side->mutex);
	seq_puts(m, "],\"stats\":");
	rail_stats_show_json(&side->stats, m);
	seq_puts(m, "}\n");
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(rvt_status);

/* ---------------------------------------------------------------- commands */

enum rvt_until {
	RVT_UNTIL_RESOLVING,	/* so many connections in this state, or beyond it */
	RVT_UNTIL_CONNECTING,
	RVT_UNTIL_UP,
	RVT_UNTIL_CLOSING,
	RVT_UNTIL_CONNS,	/* exactly so many connections */
	RVT_UNTIL_CLOSED,	/* so many were ever closed */
	RVT_UNTIL_IDLE,		/* no run under way */
	RVT_UNTIL_REQUESTS,	/* so many requests ever came */
	RVT_UNTIL_RECEIVED,	/* so many data messages ever came */
};

static const char * const rvt_untils[] = {
	"resolving", "connecting", "up", "closing", "conns", "closed", "idle", "requests",
	"received", NULL,
};

static const enum rail_state rvt_until_states[] = {
	[RVT_UNTIL_RESOLVING] = RAIL_RESOLVING,
	[RVT_UNTIL_CONNECTING] = RAIL_CONNECTING,
	[RVT_UNTIL_UP] = RAIL_UP,
	[RVT_UNTIL_CLOSING] = RAIL_CLOSING,
};

/* Return: 1 yes, 0 not yet, -ENOTCONN never. */
static int rvt_reached(struct rvt_side *side, enum rvt_until until, u32 n)
{
	u32 conns = 0, in_state = 0, before = 0, running = 0;
	struct rvt_ep *ep;
	u32 closed;

	mutex_lock(&side->mutex);
	list_for_each_entry(ep, &side->eps, entry) {
		enum rail_state state = rail_conn_state(ep->conn);

		conns++;
		/* Who waits for "up" wants to use it: so not before the owner was told. */
		if (until > RVT_UNTIL_CLOSING)
			;
		else if (state < rvt_until_states[until] || (state == RAIL_UP && !ep->up))
			before++;
		else if (state == rvt_until_states[until])
			in_state++;
		if (state < RAIL_CLOSING && atomic_read(&ep->parts))
			running++;
	}
	closed = side->nr_past;
	mutex_unlock(&side->mutex);
	switch (until) {
	case RVT_UNTIL_CONNS:
		return conns == n;
	case RVT_UNTIL_CLOSED:
		return closed >= n;
	case RVT_UNTIL_IDLE:
		return !running;
	case RVT_UNTIL_REQUESTS:
		return rail_stats_read(&side->stats, RVT_STAT_REQUESTS) >= n;
	case RVT_UNTIL_RECEIVED:
		return rail_stats_read(&side->stats, RVT_STAT_RECEIVED) >= n;
	default:
		if (in_state >= n)
			return 1;
		/* Of itself a connection only moves on, and a client's come by command only. */
		return side->role->passive || in_state + before >= n ? 0 : -ENOTCONN;
	}
}

/* "wait WHAT [N]": returns when it is so. Not all of it is announced: look now and then. */
static int rvt_command_wait(struct rvt_side *side, char *args)
{
	const char *what = strsep(&args, " ");
	u32 until, n = 0;
	int event, ret;
	long left;

	if (rvt_word(rvt_untils, what, &until))
		return -EINVAL;
	if (args && *args && kstrtou32(strim(args), 0, &n))
		return -EINVAL;
	for (;;) {
		event = atomic_read(&side->event);
		ret = rvt_reached(side, until, n);
		if (ret)
			return min(ret, 0);
		if (READ_ONCE(side->leaving))
			return -ESHUTDOWN;
		left = wait_event_interruptible_timeout(side->waitq,
							atomic_read(&side->event) != event,
							msecs_to_jiffies(20));
		if (left < 0)
			return -EINTR;
	}
}

/* "close [ID]" */
static int rvt_command_close(struct rvt_side *side, const char *args)
{
	int err = -ENOENT;
	struct rvt_ep *ep;
	u32 id;

	if (!*args) {
		rvt_close_all(side, 0);
		return 0;
	}
	if (kstrtou32(args, 0, &id))
		return -EINVAL;
	mutex_lock(&side->mutex);
	list_for_each_entry(ep, &side->eps, entry) {
		if (rail_conn_id(ep->conn) != id)
			continue;
		rail_conn_close(ep->conn, 0);
		err = 0;
	}
	mutex_unlock(&side->mutex);
	return err;
}

static int rvt_command(struct rvt_side *side, char *text)
{
	char *args = text;
	const char *name = strsep(&args, " ");
	static char nothing[1];
	int err;

	if (!args)
		args = nothing;
	if (!strcmp(name, "wait"))
		return rvt_command_wait(side, args);
	if (!strcmp(name, "set")) {
		mutex_lock(&side->mutex);
		err = rvt_parse(rvt_param_options, &side->params, args);
		mutex_unlock(&side->mutex);
		return err;
	}
	if (!strcmp(name, "release")) {
		atomic_inc(&side->released);
		rvt_event(side);
		return 0;
	}
	if (!strcmp(name, "close"))
		return rvt_command_close(side, args);
	if (!strcmp(name, "forget")) {
		rvt_forget_doms(side);
		return 0;
	}
	return side->role->command(side, name, args);
}

static ssize_t rvt_control_write(struct file *file, const char __user *text, size_t len,
				 loff_t *pos)
{
	struct rvt_side *side = file_inode(file)->i_private;
	char *buf;
	int err;

	if (len > PAGE_SIZE)
		return -E2BIG;
	buf = memdup_user_nul(text, len);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	err = rvt_command(side, strim(buf));
	kfree(buf);
	return err ?: len;
}

static const struct file_operations rvt_control_fops = {
	.owner = THIS_MODULE,
	.open = nonseekable_open,
	.write = rvt_control_write,
};

/* ---------------------------------------------------------------- coming and going */

/**
 * rvt_event - something happened that a "wait" may wait for
 * @side: where
 *
 * Context: any.
 */
void rvt_event(struct rvt_side *side)
{
	atomic_inc(&side->event);
	wake_up_all(&side->waitq);
}
EXPORT_SYMBOL_GPL(rvt_event);

/**
 * rvt_close_all - begin to close all connections
 * @side: whose
 * @reason: why
 */
void rvt_close_all(struct rvt_side *side, int reason)
{
	struct rvt_ep *ep;

	mutex_lock(&side->mutex);
	list_for_each_entry(ep, &side->eps, entry)
		rail_conn_close(ep->conn, reason);
	mutex_unlock(&side->mutex);
}
EXPORT_SYMBOL_GPL(rvt_close_all);

/**
 * rvt_side_init - begin
 * @side: the side
 * @name: of its folder in debugfs
 * @role: what it does
 *
 * Return: 0 or an error.
 */
int rvt_side_init(struct rvt_side *side, const char *name, const struct rvt_role *role)
{
	int err;

	side->name = name;
	side->role = role;
	side->params = rvt_param_defaults;
	mutex_init(&side->mutex);
	mutex_init(&side->dom_mutex);
	INIT_LIST_HEAD(&side->eps);
	INIT_LIST_HEAD(&side->doms);
	init_waitqueue_head(&side->waitq);
	side->wq = alloc_workqueue("rail_vtest_%s", WQ_UNBOUND, 0, name);
	if (!side->wq)
		return -ENOMEM;
	side->dir = debugfs_create_dir(name, rvt_root);
	err = rail_stats_init(&side->stats, &rvt_stats_desc, side->dir);
	if (err) {
		debugfs_remove_recursive(side->dir);
		destroy_workqueue(side->wq);
		return err;
	}
	debugfs_create_file("status", 0400, side->dir, side, &rvt_status_fops);
	side->control = debugfs_create_file("control", 0200, side->dir, side, &rvt_control_fops);
	return 0;
}
EXPORT_SYMBOL_GPL(rvt_side_init);

/**
 * rvt_side_stop_commands - no more commands; waits for the one that runs
 * @side: the side
 */
void rvt_side_stop_commands(struct rvt_side *side)
{
	WRITE_ONCE(side->leaving, true);
	rvt_event(side);
	debugfs_remove(side->control);
}
EXPORT_SYMBOL_GPL(rvt_side_stop_commands);

static bool rvt_side_empty(struct rvt_side *side)
{
	bool empty;

	mutex_lock(&side->mutex);
	empty = list_empty(&side->eps);
	mutex_unlock(&side->mutex);
	return empty;
}

/**
 * rvt_side_exit - close everything and wait until it is gone
 * @side: a side that gets no new connections
 */
void rvt_side_exit(struct rvt_side *side)
{
	int event;

	rvt_close_all(side, -ESHUTDOWN);
	for (;;) {
		event = atomic_read(&side->event);
		if (rvt_side_empty(side))
			break;
		wait_event(side->waitq, atomic_read(&side->event) != event);
	}
	rvt_forget_doms(side);
	/* Waits for the reapers. */
	destroy_workqueue(side->wq);
	rail_stats_destroy(&side->stats);
	debugfs_remove_recursive(side->dir);
}
EXPORT_SYMBOL_GPL(rvt_side_exit);

static int __init rvt_init(void)
{
	rvt_root = debugfs_create_dir("rail_vtest", NULL);
	return 0;
}

static void __exit rvt_exit(void)
{
	debugfs_remove_recursive(rvt_root);
}

module_init(rvt_init);
module_exit(rvt_exit);

MODULE_DESCRIPTION("What the ends of the rail_verbs test pair share");
MODULE_LICENSE("GPL");
