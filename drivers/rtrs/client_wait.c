// SPDX-License-Identifier: GPL-2.0-only
/*
 * No path: requests that wait for one, and telling the user of the link.
 *
 * clt->nr_up counts paths that are up. When it falls to 0 the gate shuts and clt->gen grows; the
 * link work, one at a time, then brings what the user was told (told_up, told_gen) in line with it:
 *
 *	told up, and that generation is over	-> link_down()
 *	not told up, and a path is up		-> link_up(); if that generation lasted, the gate
 *						   opens
 */
#include <linux/export.h>
#include "client.h"

static bool clt_may_send(const struct rail_clt *clt, const struct clt_req *req)
{
	return req->permit.kind == RAIL_CLT_ADMIN ? clt->nr_up : clt->open;
}

/* clt->lock held. When the oldest has waited long enough is when the work has to look. */
static void clt_arm_expiry(struct rail_clt *clt)
{
	struct clt_req *req = list_first_entry_or_null(&clt->waiting, struct clt_req, entry);
	unsigned long now = jiffies;

	if (req)
		mod_delayed_work(clt->wq, &clt->expire_work,
				 time_after(req->deadline, now) ? req->deadline - now : 0);
}

/**
 * clt_wait_for_path - there is no path for a request
 * @req: IDLE request, the caller's until now
 *
 * Context: any but hard irq.
 * Return: true: there may be one now, and the request is the caller's again. Else it waits, or is
 *	   over.
 */
bool clt_wait_for_path(struct clt_req *req)
{
	struct rail_clt *clt = req->permit.clt;
	unsigned long flags;
	int error = 0;

	spin_lock_irqsave(&clt->lock, flags);
	if (clt->closing) {
		error = -ESHUTDOWN;
	} else if (clt_may_send(clt, req)) {
		/* It came since we looked. */
		spin_unlock_irqrestore(&clt->lock, flags);
		return true;
	} else if (req->permit.kind == RAIL_CLT_ADMIN || !clt->no_path_timeout) {
		error = -ENOLINK;
	} else {
		req->state = CLT_REQ_WAITING;
		req->deadline = jiffies + clt->no_path_timeout * HZ;
		list_add_tail(&req->entry, &clt->waiting);
		if (!clt->nr_waiting++)
			clt_arm_expiry(clt);
	}
	spin_unlock_irqrestore(&clt->lock, flags);
	if (error)
		clt_req_done(req, error);
	return false;
}

/* clt->lock held. */
static void clt_unwait(struct rail_clt *clt, struct clt_req *req)
{
	list_del_init(&req->entry);
	clt->nr_waiting--;
	req->state = CLT_REQ_IDLE;
}

static void clt_expire_work(struct work_struct *work)
{
	struct rail_clt *clt = container_of(to_delayed_work(work), struct rail_clt, expire_work);
	struct clt_req *req;
	unsigned int n = 0;

	spin_lock_irq(&clt->lock);
	while ((req = list_first_entry_or_null(&clt->waiting, struct clt_req, entry)) &&
	       time_after_eq(jiffies, req->deadline)) {
		clt_unwait(clt, req);
		spin_unlock_irq(&clt->lock);
		clt_req_done(req, -ENOLINK);
		n++;
		spin_lock_irq(&clt->lock);
	}
	clt_arm_expiry(clt);
	spin_unlock_irq(&clt->lock);
	if (n)
		pr_warn_ratelimited("session %s: no path for %u s: %u requests failed\n", clt->name,
				    clt->no_path_timeout, n);
}

/* Send, or with an error end, everything that waits now. */
static void clt_wait_flush(struct rail_clt *clt, int error)
{
	struct clt_req *req, *next;
	LIST_HEAD(list);

	spin_lock_irq(&clt->lock);
	list_splice_init(&clt->waiting, &list);
	clt->nr_waiting = 0;
	list_for_each_entry(req, &list, entry)
		req->state = CLT_REQ_IDLE;
	spin_unlock_irq(&clt->lock);

	list_for_each_entry_safe(req, next, &list, entry) {
		list_del_init(&req->entry);
		if (error)
			clt_req_done(req, error);
		else
			clt_req_send(req);
	}
}

/**
 * clt_wait_fail_all - the session closes: end what waits, and what would
 * @clt: session with @closing set
 *
 * Context: sleeps not.
 */
void clt_wait_fail_all(struct rail_clt *clt)
{
	clt_wait_flush(clt, -ESHUTDOWN);
}

/**
 * rail_clt_set_no_path_timeout - how long requests wait for a path
 * @clt: session
 * @seconds: so long; 0: not at all. Counts for those that wait already, from now on
 *
 * Context: any but hard irq.
 */
void rail_clt_set_no_path_timeout(struct rail_clt *clt, unsigned int seconds)
{
	struct clt_req *req;

	seconds = min_t(unsigned int, seconds, INT_MAX / HZ);
	spin_lock_irq(&clt->lock);
	clt->no_path_timeout = seconds;
	list_for_each_entry(req, &clt->waiting, entry)
		req->deadline = jiffies + seconds * HZ;
	clt_arm_expiry(clt);
	spin_unlock_irq(&clt->lock);
}
EXPORT_SYMBOL_GPL(rail_clt_set_no_path_timeout);

/**
 * rail_clt_cancel - end a request that waits for a path
 * @permit: its permit, submitted
 *
 * Context: any but hard irq.
 * Return: true: io->done() was called with -ECANCELED. false: it is on a path, or just over.
 */
bool rail_clt_cancel(struct rail_clt_permit *permit)
{
	struct clt_req *req = clt_permit_req(permit);
	struct rail_clt *clt = permit->clt;
	unsigned long flags;
	bool mine;

	spin_lock_irqsave(&clt->lock, flags);
	mine = req->state == CLT_REQ_WAITING;
	if (mine)
		clt_unwait(clt, req);
	spin_unlock_irqrestore(&clt->lock, flags);
	if (mine)
		clt_req_done(req, -ECANCELED);
	return mine;
}
EXPORT_SYMBOL_GPL(rail_clt_cancel);

/* ---------------------------------------------------------------- the link */

/* What the user has to be told next; false: nothing. */
static bool clt_link_next(struct rail_clt *clt, bool *up, u32 *gen)
{
	bool tell = false;

	spin_lock_irq(&clt->lock);
	*gen = clt->gen;
	*up = !clt->told_up;
	if (clt->told_up)
		tell = clt->told_gen != clt->gen;
	else
		tell = clt->nr_up && !clt->closing;
	spin_unlock_irq(&clt->lock);
	return tell;
}

static void clt_link_work(struct work_struct *work)
{
	struct rail_clt *clt = container_of(work, struct rail_clt, link_work);
	bool up, open;
	u32 gen;

	/* Pairs with the release in rail_clt_open(), which queues us when the user may be told. */
	if (!smp_load_acquire(&clt->ready))
		return;
	while (clt_link_next(clt, &up, &gen)) {
		if (!up) {
			if (clt->ops->link_down)
				clt->ops->link_down(clt->priv);
			clt->told_up = false;
			continue;
		}
		if (clt->ops->link_up)
			clt->ops->link_up(clt->priv);
		clt->told_up = true;
		clt->told_gen = gen;
		spin_lock_irq(&clt->lock);
		open = clt->gen == gen && clt->nr_up;
		if (open)
			WRITE_ONCE(clt->open, true);
		spin_unlock_irq(&clt->lock);
		if (open)
			clt_wait_flush(clt, 0);
	}
}

/**
 * clt_link_found - a path is up
 * @path: the path
 * @usable: whether it has proved itself
 *
 * Its lane changes together with @nr_up: as long as there are paths up, there are usable ones.
 *
 * Context: the path's work.
 */
void clt_link_found(struct clt_path *path, enum clt_usable usable)
{
	struct rail_clt *clt = path->clt;
	bool first;

	spin_lock_irq(&clt->lock);
	/* Pairs with the read in clt_pick(), on which all the rest of the path depends. */
	smp_store_release(&path->lane.usable, usable);
	first = !clt->nr_up++;
	if (!clt->opened) {
		/* Within rail_clt_open(): the user knows. */
		clt->opened = true;
		clt->told_up = true;
		clt->told_gen = clt->gen;
		WRITE_ONCE(clt->open, true);
		first = false;
	}
	spin_unlock_irq(&clt->lock);
	wake_up_all(&clt->wait);
	if (first)
		queue_work(clt->wq, &clt->link_work);
}

/**
 * clt_link_lost - a path that was up is up no more
 * @path: the path
 *
 * Context: the path's work.
 */
void clt_link_lost(struct clt_path *path)
{
	struct rail_clt *clt = path->clt;
	bool last;

	spin_lock_irq(&clt->lock);
	WRITE_ONCE(path->lane.usable, CLT_UNUSABLE);
	last = !--clt->nr_up;
	if (last) {
		clt->gen++;
		WRITE_ONCE(clt->open, false);
	}
	spin_unlock_irq(&clt->lock);
	wake_up_all(&clt->wait);
	if (!last)
		return;
	if (!READ_ONCE(clt->closing))
		pr_warn("session %s: no path is left: I/O waits up to %u s for one\n", clt->name,
			READ_ONCE(clt->no_path_timeout));
	queue_work(clt->wq, &clt->link_work);
}

/**
 * clt_wait_init - prepare for waiting
 * @clt: new session
 */
void clt_wait_init(struct rail_clt *clt)
{
	spin_lock_init(&clt->lock);
	INIT_LIST_HEAD(&clt->waiting);
	INIT_WORK(&clt->link_work, clt_link_work);
	INIT_DELAYED_WORK(&clt->expire_work, clt_expire_work);
}
