// SPDX-License-Identifier: GPL-2.0-only
/* Moving bytes between a client's chunks and an RPC message: what pulls and replies share. */
#include <linux/dma-mapping.h>
#include <linux/highmem.h>
#include <linux/slab.h>
#include "svc.h"

/* Idle ones kept for the next call; the rest goes back to the kernel. */
#define RSVC_IDLE_MAX	64

/* ---------------------------------------------------------------- places in a message */

static u32 rsvc_piece_of(const void *addr, u32 left, u32 len, struct page **page, u32 *offset)
{
	*page = virt_to_page(addr);
	*offset = offset_in_page(addr);
	return min3(left, len, (u32)PAGE_SIZE - *offset);
}

/**
 * rsvc_piece - bytes of a message that lie in one page
 * @buf: message
 * @at: first byte
 * @len: at most so many, at least 1
 * @page: filled in
 * @offset: filled in
 *
 * Return: how many; 0 when the message has no such byte.
 */
u32 rsvc_piece(const struct xdr_buf *buf, u32 at, u32 len, struct page **page, u32 *offset)
{
	u32 pos;

	if (at < buf->head[0].iov_len)
		return rsvc_piece_of(buf->head[0].iov_base + at, buf->head[0].iov_len - at, len,
				     page, offset);
	at -= buf->head[0].iov_len;
	if (at < buf->page_len) {
		pos = buf->page_base + at;
		*page = buf->pages[pos >> PAGE_SHIFT];
		*offset = offset_in_page(pos);
		return min3(buf->page_len - at, len, (u32)PAGE_SIZE - *offset);
	}
	at -= buf->page_len;
	if (at < buf->tail[0].iov_len)
		return rsvc_piece_of(buf->tail[0].iov_base + at, buf->tail[0].iov_len - at, len,
				     page, offset);
	return 0;
}

/**
 * rsvc_complement - what stays of a message when ranges are taken out of it
 * @cut: ranges, in order
 * @nr: how many, less than RSVC_MAX_RANGES
 * @len: of the message
 * @keep: filled in; room for RSVC_MAX_RANGES
 *
 * Return: how many ranges stay.
 */
u32 rsvc_complement(const struct rsvc_range *cut, u32 nr, u32 len, struct rsvc_range *keep)
{
	u32 i, at = 0, n = 0;

	for (i = 0; i < nr; i++) {
		if (cut[i].at > at)
			keep[n++] = (struct rsvc_range){ at, cut[i].at - at };
		at = cut[i].at + cut[i].len;
	}
	if (len > at)
		keep[n++] = (struct rsvc_range){ at, len - at };
	return n;
}

/* ---------------------------------------------------------------- life */

static void rsvc_io_done(struct rail_cqe *cqe, struct ib_wc *wc)
{
	struct rsvc_io *io = container_of(cqe, struct rsvc_io, cqe);

	io->failed = wc->status != IB_WC_SUCCESS;
	if (io->kind == RSVC_PULL)
		rsvc_pull_done(io);
	else
		rsvc_reply_done(io);
}

static void rsvc_io_free(struct rsvc_io *io)
{
	if (io->head) {
		ib_dma_unmap_single(io->conn->dev->ib, io->head_dma, io->conn->head_size,
				    DMA_TO_DEVICE);
		kfree(io->head);
	}
	kvfree(io->pages);
	kvfree(io->sg);
	kvfree(io->rw);
	kvfree(io->rw_wrs);
	kvfree(io->chains);
	kfree(io);
}

static int rsvc_io_map_head(struct rsvc_io *io)
{
	struct rsvc_conn *c = io->conn;

	io->head = kmalloc(c->head_size, GFP_KERNEL);
	if (!io->head)
		return -ENOMEM;
	io->head_dma = ib_dma_map_single(c->dev->ib, io->head, c->head_size, DMA_TO_DEVICE);
	if (ib_dma_mapping_error(c->dev->ib, io->head_dma)) {
		kfree(io->head);
		io->head = NULL;
		return -EIO;
	}
	io->sge[0].addr = io->head_dma;
	io->sge[0].lkey = c->pd->ib->local_dma_lkey;
	return 0;
}

/**
 * rsvc_io_get - one to build something with
 * @c: connection, entered
 * @kind: pull or reply
 *
 * Context: sleeps.
 * Return: empty; NULL when there is no memory.
 */
struct rsvc_io *rsvc_io_get(struct rsvc_conn *c, enum rsvc_io_kind kind)
{
	struct rsvc_io *io;

	spin_lock_bh(&c->lock);
	io = list_first_entry_or_null(&c->idle[kind], struct rsvc_io, entry);
	if (io) {
		list_del(&io->entry);
		c->nr_idle[kind]--;
	}
	spin_unlock_bh(&c->lock);
	if (io)
		return io;

	io = kzalloc(sizeof(*io), GFP_KERNEL);
	if (!io)
		return NULL;
	io->conn = c;
	io->kind = kind;
	INIT_LIST_HEAD(&io->riders);
	rail_cqe_init_send(&io->cqe, rsvc_io_done);
	if (kind == RSVC_REPLY && rsvc_io_map_head(io)) {
		kfree(io);
		return NULL;
	}
	return io;
}

/* The old contents are not wanted: room is made before anything is put in. */
static bool rsvc_io_grow(void **array, u32 *have, u32 want, size_t size)
{
	void *more;

	if (want <= *have && *array)
		return true;
	more = kvcalloc(want, size, GFP_KERNEL);
	if (!more)
		return false;
	kvfree(*array);
	*array = more;
	*have = want;
	return true;
}

/**
 * rsvc_io_room - make room for a transfer
 * @io: empty one
 * @pages: pages that will be held
 * @rws: segments of chunks that will be read or written
 *
 * Context: sleeps. Allocates only for what is larger than anything before.
 * Return: false when there is no memory.
 */
bool rsvc_io_room(struct rsvc_io *io, u32 pages, u32 rws)
{
	u32 have = io->max_rw;
	/* Each segment and each range may begin in the middle of a page. */
	u32 sgs = pages + rws + 2 * RSVC_MAX_RANGES;

	if (!rsvc_io_grow((void **)&io->pages, &io->max_pages, pages, sizeof(*io->pages)))
		return false;
	if (!rws)
		return true;
	return rsvc_io_grow((void **)&io->sg, &io->max_sg, sgs, sizeof(*io->sg)) &&
	       rsvc_io_grow((void **)&io->rw_wrs, &have, rws, sizeof(*io->rw_wrs)) &&
	       rsvc_io_grow((void **)&io->rw, &io->max_rw, rws, sizeof(*io->rw));
}

/**
 * rsvc_io_unmap - give memory back to the CPU
 * @io: not in flight, or its queue is drained
 *
 * Context: connection entered, or in a completion of it, or in rail's drained().
 */
void rsvc_io_unmap(struct rsvc_io *io)
{
	struct rsvc_conn *c = io->conn;
	u32 i;

	for (i = 0; i < io->nr_rw; i++)
		rail_rw_destroy(&io->rw[i], c->rail);
	for (i = 1; io->mapped >> i; i++)
		if (io->mapped & BIT(i))
			ib_dma_unmap_page(c->dev->ib, io->sge[i].addr, io->sge[i].length,
					  DMA_TO_DEVICE);
	io->nr_rw = 0;
	io->nr_sg = 0;
	io->nr_sge = 0;
	io->mapped = 0;
	io->uses_kvecs = false;
}

/**
 * rsvc_io_put - release what it holds, and back into the cache
 * @io: as for rsvc_io_unmap(), or already unmapped
 *
 * Context: sleeps; as for rsvc_io_unmap(), or any where it is unmapped.
 */
void rsvc_io_put(struct rsvc_io *io)
{
	struct rsvc_conn *c = io->conn;
	u32 i;

	rsvc_io_unmap(io);
	for (i = 0; i < io->nr_pages; i++)
		if (io->pages[i])
			put_page(io->pages[i]);
	io->nr_pages = 0;
	io->call = NULL;
	io->failed = false;
	io->doomed = false;
	io->quiet = false;

	spin_lock_bh(&c->lock);
	if (c->nr_idle[io->kind] < RSVC_IDLE_MAX) {
		list_add(&io->entry, &c->idle[io->kind]);
		c->nr_idle[io->kind]++;
		io = NULL;
	}
	spin_unlock_bh(&c->lock);
	if (io)
		rsvc_io_free(io);
}

/**
 * rsvc_io_free_idle - free the cache
 * @c: connection that is closed
 */
void rsvc_io_free_idle(struct rsvc_conn *c)
{
	struct rsvc_io *io, *next;
	int kind;

	for (kind = 0; kind < RSVC_NR_KINDS; kind++)
		list_for_each_entry_safe(io, next, &c->idle[kind], entry)
			rsvc_io_free(io);
}

/* ---------------------------------------------------------------- transfers */

/* One segment: the scatterlist of its bytes, which may lie in several ranges of the message. */
static int rsvc_io_segment(struct rsvc_io *io, const struct xdr_buf *local,
			   const struct rsvc_range *range, u32 nr_ranges, u32 *nth, u32 *done,
			   u32 len, const struct rail_rpcrdma_seg *seg,
			   enum dma_data_direction dir)
{
	struct scatterlist *first = &io->sg[io->nr_sg];
	u32 offset, n, left = len, nents = 0;
	struct page *page;
	int wrs;

	while (left) {
		if (WARN_ON_ONCE(*nth == nr_ranges || io->nr_sg + nents == io->max_sg))
			return -EMSGSIZE;
		n = min(left, range[*nth].len - *done);
		io->uses_kvecs |= !rsvc_in_pages(local, range[*nth].at + *done);
		n = rsvc_piece(local, range[*nth].at + *done, n, &page, &offset);
		if (WARN_ON_ONCE(!n))
			return -EMSGSIZE;
		/* It may have been a last one. */
		sg_unmark_end(&first[nents]);
		sg_set_page(&first[nents++], page, n, offset);
		left -= n;
		*done += n;
		if (*done == range[*nth].len) {
			++*nth;
			*done = 0;
		}
	}
	sg_mark_end(&first[nents - 1]);

	wrs = rail_rw_init(&io->rw[io->nr_rw], io->conn->rail, first, nents, 0, seg->offset,
			   seg->handle, dir);
	if (wrs < 0)
		return wrs;
	/* A device whose regions are small; else configure() saw to it. */
	if (wrs > io->conn->max_chain) {
		rail_rw_destroy(&io->rw[io->nr_rw], io->conn->rail);
		return -EMSGSIZE;
	}
	io->rw_wrs[io->nr_rw++] = wrs;
	io->nr_sg += nents;
	return 0;
}

/**
 * rsvc_io_transfer - prepare to read or write a chunk
 * @io: rsvc_io_room() made room
 * @local: message
 * @range: which bytes of it, in order
 * @nr_ranges: how many ranges
 * @header: transport header of the call
 * @chunk: chunk in it, of at least as many bytes
 * @dir: DMA_FROM_DEVICE: the client's memory is read; DMA_TO_DEVICE: it is written
 *
 * Context: sleeps; connection entered.
 * Return: 0; -EAGAIN when the device has no region left for now; or an error.
 */
int rsvc_io_transfer(struct rsvc_io *io, const struct xdr_buf *local,
		     const struct rsvc_range *range, u32 nr_ranges, const void *header,
		     const struct rail_rpcrdma_chunk *chunk, enum dma_data_direction dir)
{
	u32 i, len, left = 0, nth = 0, done = 0;
	struct rail_rpcrdma_seg seg;
	int err;

	for (i = 0; i < nr_ranges; i++)
		left += range[i].len;
	for (i = 0; left && i < chunk->nr_segs; i++) {
		rail_rpcrdma_get_seg(header, chunk, i, &seg);
		len = min(left, seg.length);
		if (!len)
			continue;
		if (WARN_ON_ONCE(io->nr_rw == io->max_rw))
			return -EMSGSIZE;
		err = rsvc_io_segment(io, local, range, nr_ranges, &nth, &done, len, &seg, dir);
		if (err)
			return err;
		left -= len;
	}
	return WARN_ON_ONCE(left) ? -EMSGSIZE : 0;
}

/* Told of when the queue is drained, since a part of it may be in flight. */
static void rsvc_io_doom(struct rsvc_io *io)
{
	struct rsvc_conn *c = io->conn;

	/* A quiet one is released then in any case. */
	if (io->quiet)
		return;
	spin_lock_bh(&c->lock);
	if (!io->doomed) {
		io->doomed = true;
		list_add_tail(&io->entry, &c->doomed);
	}
	spin_unlock_bh(&c->lock);
}

static void rsvc_chain_failed(struct rail_chain *chain)
{
	rsvc_io_doom(container_of(chain, struct rsvc_chain, chain)->io);
}

/**
 * rsvc_io_release_doomed - release what could not be posted as a whole, and what nobody tells of
 * @c: connection whose queue is drained and that nobody can enter
 */
void rsvc_io_release_doomed(struct rsvc_conn *c)
{
	struct rsvc_io *io;

	for (;;) {
		spin_lock_bh(&c->lock);
		io = list_first_entry_or_null(&c->doomed, struct rsvc_io, entry);
		if (!io)
			io = list_first_entry_or_null(&c->quiet, struct rsvc_io, entry);
		if (io)
			list_del(&io->entry);
		spin_unlock_bh(&c->lock);
		if (!io)
			return;
		io->failed = true;
		if (io->kind == RSVC_PULL)
			rsvc_pull_done(io);
		else
			rsvc_reply_done(io);
	}
}

/**
 * rsvc_io_chains - make room for what will be posted
 * @io: built
 *
 * Context: sleeps.
 * Return: false when there is no memory.
 */
bool rsvc_io_chains(struct rsvc_io *io)
{
	struct rsvc_conn *c = io->conn;
	u32 i, chains = 1, n = 0;

	for (i = 0; i < io->nr_rw; i++) {
		n += io->rw_wrs[i];
		if (n > c->max_chain) {
			chains++;
			n = io->rw_wrs[i];
		}
	}
	/* One more for the Send, should the last one be full. */
	if (!rsvc_io_grow((void **)&io->chains, &io->nr_chains, chains + 1, sizeof(*io->chains)))
		return false;
	return true;
}

static struct rail_chain *rsvc_io_chain(struct rsvc_io *io, u32 *nr, u32 wrs)
{
	struct rsvc_chain *chain = *nr ? &io->chains[*nr - 1] : NULL;

	if (!chain || chain->chain.n + wrs > io->conn->max_chain) {
		chain = &io->chains[(*nr)++];
		rail_chain_init(&chain->chain);
		chain->chain.failed = rsvc_chain_failed;
		chain->io = io;
	}
	return &chain->chain;
}

/**
 * rsvc_io_post - post all of it; its end is told by its completion
 * @io: built, and rsvc_io_chains() called
 *
 * Context: any but irq; connection entered.
 * Return: 0: the caller must not touch it any more. Else nothing was posted and it is the caller's.
 */
int rsvc_io_post(struct rsvc_io *io)
{
	struct rsvc_conn *c = io->conn;
	bool reply = io->kind == RSVC_REPLY;
	struct rail_chain *chain;
	u32 i, nr = 0;
	int err;

	for (i = 0; i < io->nr_rw; i++) {
		chain = rsvc_io_chain(io, &nr, io->rw_wrs[i]);
		rail_rw_chain(&io->rw[i], c->rail, chain,
			      !reply && i == io->nr_rw - 1 ? &io->cqe : NULL);
	}
	if (reply) {
		chain = rsvc_io_chain(io, &nr, 1);
		if (io->quiet)
			rail_chain_add(chain, &io->wr);
		else
			rail_chain_add_signalled(chain, &io->wr, &io->cqe);
	}

	for (i = 0; i < nr; i++) {
		/* The last chain's end may free it at once. */
		err = rail_post_queued(c->rail, &io->chains[i].chain);
		if (!err)
			continue;
		if (!i)
			return err;
		rsvc_io_doom(io);
		return 0;
	}
	return 0;
}
