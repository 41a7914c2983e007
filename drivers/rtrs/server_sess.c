// SPDX-License-Identifier: GPL-2.0-only
/* RTRS server: sessions, their chunks, and what a user may ask of one. */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "server.h"

/* Copies of user headers begin at a cache line. */
static u32 rsrv_usr_stride(const struct rail_srv *srv)
{
	return ALIGN(max(srv->attr.usr_max, 1U), SMP_CACHE_BYTES);
}

/* ---------------------------------------------------------------- chunks */

static void rsrv_chunk_free(struct rsrv_chunk *chunk)
{
	u32 i;

	if (chunk->mapped)
		vunmap(chunk->addr);
	for (i = 0; i < chunk->nr_pieces; i++)
		__free_pages(chunk->pieces[i].bv_page, get_order(chunk->pieces[i].bv_len));
	kfree(chunk->pieces);
	if (chunk->small)
		__free_page(chunk->small);
}

/*
 * One piece where the kernel has it, else smaller ones: a session has to come up on a machine whose
 * memory is fragmented too. Zeroed, for a client may read what it did not write.
 */
static int rsrv_chunk_pages(struct rsrv_chunk *chunk, u32 size, int node)
{
	const gfp_t gfp = GFP_KERNEL | __GFP_ZERO | __GFP_COMP;
	unsigned int order = min_t(unsigned int, ilog2(size >> PAGE_SHIFT), rail_max_order());
	u32 left = size;
	struct page *page;

	while (left) {
		order = min_t(unsigned int, order, ilog2(left >> PAGE_SHIFT));
		page = alloc_pages_node(node, order ? gfp | __GFP_NORETRY | __GFP_NOWARN : gfp,
					order);
		if (page) {
			bvec_set_page(&chunk->pieces[chunk->nr_pieces++], page,
				      PAGE_SIZE << order, 0);
			left -= PAGE_SIZE << order;
		} else if (order) {
			order--;
		} else {
			return -ENOMEM;
		}
	}
	return 0;
}

/* What the pieces are for the CPU: one range of addresses. */
static int rsrv_chunk_map(struct rsrv_chunk *chunk, u32 size)
{
	struct page **pages;
	u32 i, j, n = 0;

	if (chunk->nr_pieces == 1) {
		chunk->addr = page_address(chunk->pieces[0].bv_page);
		return 0;
	}
	pages = kvmalloc_array(size >> PAGE_SHIFT, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	for (i = 0; i < chunk->nr_pieces; i++)
		for (j = 0; j < chunk->pieces[i].bv_len >> PAGE_SHIFT; j++)
			pages[n++] = chunk->pieces[i].bv_page + j;
	chunk->addr = vmap(pages, n, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	if (!chunk->addr)
		return -ENOMEM;
	chunk->mapped = true;
	return 0;
}

static int rsrv_chunk_make(struct rsrv_chunk *chunk, u32 size, int node)
{
	struct bio_vec *less;
	int err;

	spin_lock_init(&chunk->lock);
	INIT_LIST_HEAD(&chunk->waiting);
	chunk->small = alloc_pages_node(node, GFP_KERNEL | __GFP_ZERO, 0);
	if (!chunk->small)
		return -ENOMEM;
	chunk->pieces = kmalloc_array(size >> PAGE_SHIFT, sizeof(*chunk->pieces), GFP_KERNEL);
	if (!chunk->pieces)
		return -ENOMEM;
	err = rsrv_chunk_pages(chunk, size, node);
	if (err)
		return err;
	less = krealloc(chunk->pieces, chunk->nr_pieces * sizeof(*less), GFP_KERNEL);
	if (less)
		chunk->pieces = less;
	return rsrv_chunk_map(chunk, size);
}

static void rsrv_sess_free_chunks(struct rail_srv_sess *sess)
{
	u32 i;

	if (sess->chunks)
		for (i = 0; i < sess->params.queue_depth; i++)
			rsrv_chunk_free(&sess->chunks[i]);
	kvfree(sess->chunks);
	kvfree(sess->usr);
	sess->chunks = NULL;
	sess->usr = NULL;
}

/**
 * rsrv_sess_make_chunks - get the memory a session was admitted with
 * @sess: session, up_lock held
 * @node: NUMA node it should be on
 *
 * Return: 0, also when it is there already; else -ENOMEM.
 */
int rsrv_sess_make_chunks(struct rail_srv_sess *sess, int node)
{
	u32 stride = rsrv_usr_stride(sess->srv);
	u32 i, depth = sess->params.queue_depth;
	int err = 0;

	if (sess->chunks)
		return 0;
	sess->chunks = kvcalloc(depth, sizeof(*sess->chunks), GFP_KERNEL);
	sess->usr = kvmalloc_array(depth, stride, GFP_KERNEL);
	if (!sess->chunks || !sess->usr)
		err = -ENOMEM;
	for (i = 0; !err && i < depth; i++) {
		sess->chunks[i].usr = sess->usr + (size_t)i * stride;
		err = rsrv_chunk_make(&sess->chunks[i], sess->params.chunk_size, node);
		cond_resched();
	}
	if (err)
		rsrv_sess_free_chunks(sess);
	return err;
}

/* ---------------------------------------------------------------- sessions */

/**
 * rsrv_sess_find - a session by its uuid
 * @srv: server, locked
 * @uuid: the session's
 *
 * Return: the session, of which the caller takes a reference if it needs one; NULL: none.
 */
struct rail_srv_sess *rsrv_sess_find(struct rail_srv *srv, const u8 *uuid)
{
	struct rail_srv_sess *sess;

	lockdep_assert_held(&srv->lock);
	list_for_each_entry(sess, &srv->sessions, entry)
		if (!memcmp(sess->uuid, uuid, sizeof(sess->uuid)))
			return sess;
	return NULL;
}

static bool rsrv_host_is_full(struct rail_srv *srv, const struct sockaddr_storage *addr)
{
	u32 max = READ_ONCE(rsrv_max_sessions), n = 0;
	struct rail_srv_sess *sess;

	if (!max)
		return false;
	list_for_each_entry(sess, &srv->sessions, entry)
		n += rsrv_same_host(&sess->addr, addr);
	return n >= max;
}

/**
 * rsrv_sess_create - let a session in
 * @srv: server, locked
 * @uuid: the session's
 * @addr: where its first path comes from
 *
 * Its memory is counted here, so that a refusal can be told, and taken when its first path comes
 * up.
 *
 * Return: the session with one reference, or an ERR_PTR that the client is told.
 */
struct rail_srv_sess *rsrv_sess_create(struct rail_srv *srv, const u8 *uuid,
				       const struct sockaddr *addr)
{
	struct rail_srv_sess *sess;
	int err;

	sess = kzalloc(sizeof(*sess), GFP_KERNEL);
	if (!sess)
		return ERR_PTR(-ENOMEM);
	sess->srv = srv;
	refcount_set(&sess->refs, 1);
	mutex_init(&sess->up_lock);
	INIT_LIST_HEAD(&sess->paths);
	memcpy(sess->uuid, uuid, sizeof(sess->uuid));
	memcpy(&sess->addr, addr, rdma_addr_size(addr));

	err = -EUSERS;
	if (rsrv_host_is_full(srv, &sess->addr)) {
		pr_warn_ratelimited("rtrs-server: %pISc refused: it has %u sessions already; rtrs_server.max_sessions is the limit\n",
				    addr, READ_ONCE(rsrv_max_sessions));
		goto free;
	}
	err = rsrv_params(&sess->params);
	if (err)
		goto free;
	sess->charged = (u64)sess->params.queue_depth *
			(sess->params.chunk_size + PAGE_SIZE + sizeof(struct rsrv_chunk) +
			 sizeof(struct bio_vec) + rsrv_usr_stride(srv));
	err = rsrv_charge(sess->charged);
	if (err) {
		pr_warn_ratelimited("rtrs-server: %pISc refused: no %llu MiB left for its session; rtrs_server.max_memory is the limit, sess_queue_depth and max_chunk_size make a session smaller\n",
				    addr, sess->charged >> 20);
		goto free;
	}
	list_add_tail(&sess->entry, &srv->sessions);
	return sess;

free:
	kfree(sess);
	return ERR_PTR(err);
}

/**
 * rsrv_sess_forget - give back the reference of a path that was not made
 * @sess: the session; its server is locked
 */
void rsrv_sess_forget(struct rail_srv_sess *sess)
{
	if (!refcount_dec_and_test(&sess->refs))
		return;
	/* Only a new one can have had no other. */
	list_del(&sess->entry);
	rsrv_uncharge(sess->charged);
	kfree(sess);
}

/**
 * rsrv_sess_set_name - the client says what its session is called
 * @sess: session, up_lock held
 * @name: checked name
 *
 * Return: 0; -EEXIST: another session is called so; -EINVAL: it was called otherwise before.
 */
int rsrv_sess_set_name(struct rail_srv_sess *sess, const char *name)
{
	struct rail_srv *srv = sess->srv;
	struct rail_srv_sess *other;
	int err = 0;

	if (sess->name[0])
		return strcmp(sess->name, name) ? -EINVAL : 0;
	mutex_lock(&srv->lock);
	list_for_each_entry(other, &srv->sessions, entry)
		if (!strcmp(other->name, name))
			err = -EEXIST;
	if (!err)
		strscpy(sess->name, name, sizeof(sess->name));
	mutex_unlock(&srv->lock);
	return err;
}

/**
 * rsrv_sess_put - give a reference back
 * @sess: the session; with the last reference it ends
 *
 * Context: sleeps; one of our works.
 */
void rsrv_sess_put(struct rail_srv_sess *sess)
{
	struct rail_srv *srv = sess->srv;

	if (!refcount_dec_and_test(&sess->refs))
		return;
	if (sess->told)
		srv->attr.ops->sess_down(srv->attr.context, sess);
	rsrv_sysfs_del_sess(sess);
	rsrv_sess_free_chunks(sess);
	mutex_lock(&srv->lock);
	list_del(&sess->entry);
	mutex_unlock(&srv->lock);
	rsrv_uncharge(sess->charged);
	if (sess->told)
		pr_info("rtrs-server: session %s: closed\n", sess->name);
	kfree(sess);
	wake_up(&srv->empty);
}

/* ---------------------------------------------------------------- what a user may ask */

/**
 * rail_srv_sess_set_priv - have the session remember something
 * @sess: session, in ops->sess_up()
 * @priv: the user's
 */
void rail_srv_sess_set_priv(struct rail_srv_sess *sess, void *priv)
{
	sess->priv = priv;
}
EXPORT_SYMBOL_GPL(rail_srv_sess_set_priv);

/**
 * rail_srv_sess_priv - what it remembers
 * @sess: session
 *
 * Context: any, from ops->sess_up() until ops->sess_down() returned; so are the following.
 * Return: what rail_srv_sess_set_priv() was given.
 */
void *rail_srv_sess_priv(const struct rail_srv_sess *sess)
{
	return sess->priv;
}
EXPORT_SYMBOL_GPL(rail_srv_sess_priv);

/**
 * rail_srv_sess_name - what the client calls it
 * @sess: session
 */
const char *rail_srv_sess_name(const struct rail_srv_sess *sess)
{
	return sess->name;
}
EXPORT_SYMBOL_GPL(rail_srv_sess_name);

/**
 * rail_srv_sess_addr - where the session's first path came from
 * @sess: session
 */
const struct sockaddr *rail_srv_sess_addr(const struct rail_srv_sess *sess)
{
	return (const struct sockaddr *)&sess->addr;
}
EXPORT_SYMBOL_GPL(rail_srv_sess_addr);

/**
 * rail_srv_sess_queue_depth - how many requests it may have outstanding
 * @sess: session
 */
u32 rail_srv_sess_queue_depth(const struct rail_srv_sess *sess)
{
	return sess->params.queue_depth;
}
EXPORT_SYMBOL_GPL(rail_srv_sess_queue_depth);

/**
 * rail_srv_sess_max_io_size - most bytes of data in a request
 * @sess: session
 */
u32 rail_srv_sess_max_io_size(const struct rail_srv_sess *sess)
{
	return sess->params.max_io_size;
}
EXPORT_SYMBOL_GPL(rail_srv_sess_max_io_size);
