// SPDX-License-Identifier: GPL-2.0-only
/* Units: messages and writes with their memory, and the ways to post them. */
#include <linux/crc32c.h>
#include <linux/export.h>

#include "rail_vtest.h"

/**
 * rvt_hdr_seal - put the checksum of a header into it
 * @hdr: the header
 */
void rvt_hdr_seal(struct rvt_hdr *hdr)
{
	hdr->crc = cpu_to_le32(crc32c(~0, hdr, offsetof(struct rvt_hdr, crc)));
}
EXPORT_SYMBOL_GPL(rvt_hdr_seal);

/**
 * rvt_hdr_good - check a header
 * @hdr: what arrived
 *
 * Return: true if it is one of ours and whole.
 */
bool rvt_hdr_good(const struct rvt_hdr *hdr)
{
	return hdr->magic == cpu_to_le32(RVT_MAGIC) &&
	       hdr->crc == cpu_to_le32(crc32c(~0, hdr, offsetof(struct rvt_hdr, crc)));
}
EXPORT_SYMBOL_GPL(rvt_hdr_good);

/**
 * rvt_told - note that we were told of something we expected to be told of
 * @ep: where
 * @wc: how it ended
 */
void rvt_told(struct rvt_ep *ep, const struct ib_wc *wc)
{
	if (READ_ONCE(ep->dead))
		rvt_count(ep, RVT_STAT_LATE_CALL);
	if (atomic_dec_return(&ep->told) < 0)
		rvt_count(ep, RVT_STAT_TOLD_TWICE);
	if (wc && wc->status != IB_WC_SUCCESS)
		rvt_count(ep, RVT_STAT_FLUSHED);
}
EXPORT_SYMBOL_GPL(rvt_told);

/**
 * rvt_refused - a post that we expected to be told of was refused at once
 * @ep: where; may be closed by now, for we called, not rail_verbs
 */
void rvt_refused(struct rvt_ep *ep)
{
	atomic_dec(&ep->told);
}
EXPORT_SYMBOL_GPL(rvt_refused);

static void rvt_unit_done(struct rail_cqe *cqe, struct ib_wc *wc)
{
	struct rvt_unit *unit = container_of(cqe, struct rvt_unit, cqe);

	rvt_told(unit->ep, wc);
	unit->done(unit, wc->status == IB_WC_SUCCESS ? 0 : -EIO);
}

static void rvt_unit_failed(struct rail_chain *chain)
{
	struct rvt_unit *unit = container_of(chain, struct rvt_unit, chain);

	if (unit->signalled)
		rvt_told(unit->ep, NULL);
	unit->done(unit, -ENOTCONN);
}

/**
 * rvt_unit_init - give a unit its memory
 * @unit: the unit; zeroed
 * @ep: where it will be sent
 * @pieces: buffers for pattern
 * @done: called when it was sent, or will not be
 *
 * Return: 0 or -ENOMEM; rvt_unit_free() may be called in either case.
 */
int rvt_unit_init(struct rvt_unit *unit, struct rvt_ep *ep, u32 pieces,
		  void (*done)(struct rvt_unit *unit, int err))
{
	unit->ep = ep;
	unit->done = done;
	rail_cqe_init_send(&unit->cqe, rvt_unit_done);
	rail_chain_init(&unit->chain);
	unit->chain.failed = rvt_unit_failed;
	unit->head = rail_buf_get(ep->head_pool);
	if (!unit->head)
		return -ENOMEM;
	for (; unit->nr_pieces < pieces; unit->nr_pieces++) {
		struct rail_buf *buf = rail_buf_get(ep->piece_pool);

		if (!buf)
			return -ENOMEM;
		unit->pieces[unit->nr_pieces] = buf;
	}
	return 0;
}
EXPORT_SYMBOL_GPL(rvt_unit_init);

/**
 * rvt_unit_free - take its memory
 * @unit: a unit that is not in flight, or zeros
 */
void rvt_unit_free(struct rvt_unit *unit)
{
	while (unit->nr_pieces)
		rail_buf_put(unit->pieces[--unit->nr_pieces]);
	if (unit->head)
		rail_buf_put(unit->head);
	unit->head = NULL;
}
EXPORT_SYMBOL_GPL(rvt_unit_free);

/**
 * rvt_unit_begin - begin a message
 * @unit: a unit that is not in flight
 * @type: of the message
 *
 * Work requests that are to be posted before it may be added to unit->chain now.
 *
 * Return: the header, to be filled in.
 */
struct rvt_hdr *rvt_unit_begin(struct rvt_unit *unit, enum rvt_type type)
{
	struct rvt_hdr *hdr = unit->head->addr;

	memset(hdr, 0, sizeof(*hdr));
	hdr->magic = cpu_to_le32(RVT_MAGIC);
	hdr->type = type;
	memset(&unit->wr, 0, sizeof(unit->wr));
	rail_chain_init(&unit->chain);
	return hdr;
}
EXPORT_SYMBOL_GPL(rvt_unit_begin);

/**
 * rvt_unit_prepend - have work requests posted before the message, with one doorbell
 * @unit: after rvt_unit_begin()
 * @before: the work requests; unit->chain from now on
 */
void rvt_unit_prepend(struct rvt_unit *unit, const struct rail_chain *before)
{
	unit->chain.first = before->first;
	unit->chain.last = before->last;
	unit->chain.n = before->n;
	unit->chain.signalled = before->signalled;
}
EXPORT_SYMBOL_GPL(rvt_unit_prepend);

/* Cut @len bytes of pattern into all pieces, of unlike and odd sizes where there are enough. */
static u32 rvt_unit_gather(struct rvt_unit *unit, u32 len, u64 seed)
{
	u32 size = unit->nr_pieces ? rail_buf_pool_size(unit->ep->piece_pool) : 0;
	u32 i, offset = 0, sges = 1;

	for (i = 0; i < unit->nr_pieces && offset < len; i++) {
		u32 room = (unit->nr_pieces - 1 - i) * size;
		u32 left = len - offset;
		u32 part = left / (unit->nr_pieces - i) + (i & 1 ? 3 : 0);

		/* What is left has to fit into the pieces that are left. */
		if (left > room)
			part = max(part, left - room);
		part = clamp(part, 1U, min(left, size));
		rvt_fill(unit->pieces[i]->addr, part, seed, offset);
		rail_buf_for_device(unit->pieces[i], part);
		unit->sge[sges] = unit->pieces[i]->sge;
		unit->sge[sges++].length = part;
		offset += part;
	}
	return sges;
}

/**
 * rvt_unit_end - end a message: it can be posted now
 * @unit: the unit
 * @len: bytes of pattern behind the header; its seed stands in the header
 * @signalled: tell of its end
 */
void rvt_unit_end(struct rvt_unit *unit, u32 len, bool signalled)
{
	struct rvt_hdr *hdr = unit->head->addr;
	u32 sges;

	hdr->len = cpu_to_le32(len);
	hdr->consumed = cpu_to_le32(READ_ONCE(unit->ep->rx_consumed));
	rvt_hdr_seal(hdr);
	rail_buf_for_device(unit->head, sizeof(*hdr));
	unit->sge[0] = unit->head->sge;
	unit->sge[0].length = sizeof(*hdr);
	sges = rvt_unit_gather(unit, len, le64_to_cpu(hdr->seed));
	unit->wr.wr.sg_list = unit->sge;
	unit->wr.wr.num_sge = sges;
	unit->wr.wr.opcode = IB_WR_SEND;
	unit->signalled = signalled;
	if (signalled)
		rail_chain_add_signalled(&unit->chain, &unit->wr.wr, &unit->cqe);
	else
		rail_chain_add(&unit->chain, &unit->wr.wr);
}
EXPORT_SYMBOL_GPL(rvt_unit_end);

/**
 * rvt_unit_write_imm - turn the message into a write with immediate data
 * @unit: after rvt_unit_end()
 * @addr: where to at the peer
 * @rkey: key
 * @imm: immediate data
 */
void rvt_unit_write_imm(struct rvt_unit *unit, u64 addr, u32 rkey, u32 imm)
{
	unit->wr.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
	unit->wr.wr.ex.imm_data = cpu_to_be32(imm);
	unit->wr.remote_addr = addr;
	unit->wr.rkey = rkey;
}
EXPORT_SYMBOL_GPL(rvt_unit_write_imm);

/**
 * rvt_unit_zero_imm - make it a write of nothing with immediate data
 * @unit: after rvt_unit_end()
 * @imm: immediate data
 */
void rvt_unit_zero_imm(struct rvt_unit *unit, u32 imm)
{
	rvt_unit_write_imm(unit, 0, 0, imm);
	unit->wr.wr.sg_list = NULL;
	unit->wr.wr.num_sge = 0;
}
EXPORT_SYMBOL_GPL(rvt_unit_zero_imm);

/**
 * rvt_unit_invalidate - have the message invalidate a key of the peer's
 * @unit: after rvt_unit_end()
 * @rkey: key
 */
void rvt_unit_invalidate(struct rvt_unit *unit, u32 rkey)
{
	unit->wr.wr.opcode = IB_WR_SEND_WITH_INV;
	unit->wr.wr.ex.invalidate_rkey = rkey;
}
EXPORT_SYMBOL_GPL(rvt_unit_invalidate);

/**
 * rvt_unit_queue - post it, or leave it to be posted when there is space
 * @unit: after rvt_unit_end()
 *
 * Context: any but irq. unit->done() may be called from within.
 */
void rvt_unit_queue(struct rvt_unit *unit)
{
	struct rvt_ep *ep = unit->ep;

	if (unit->signalled)
		atomic_inc(&ep->told);
	rvt_count(ep, RVT_STAT_QUEUED);
	if (!rail_post_queued(ep->conn, &unit->chain))
		return;
	if (unit->signalled)
		rvt_refused(ep);
	unit->done(unit, -ENOTCONN);
}
EXPORT_SYMBOL_GPL(rvt_unit_queue);

/**
 * rvt_unit_try - post it if there is space
 * @unit: after rvt_unit_end()
 *
 * Context: any but irq.
 * Return: 0; -EAGAIN: role->kick() will be called when there is; or that the connection is down.
 */
int rvt_unit_try(struct rvt_unit *unit)
{
	struct rvt_ep *ep = unit->ep;
	int err;

	if (unit->signalled)
		atomic_inc(&ep->told);
	err = rail_post(ep->conn, &unit->chain);
	if (err && unit->signalled)
		rvt_refused(ep);
	if (err == -EAGAIN)
		rvt_count(ep, RVT_STAT_AGAIN);
	return err;
}
EXPORT_SYMBOL_GPL(rvt_unit_try);

/**
 * rvt_unit_wait - post it, waiting for space
 * @unit: after rvt_unit_end()
 *
 * Context: sleeps.
 * Return: 0 or that the connection is down.
 */
int rvt_unit_wait(struct rvt_unit *unit)
{
	struct rvt_ep *ep = unit->ep;
	int err;

	if (unit->signalled)
		atomic_inc(&ep->told);
	err = rail_post_wait(ep->conn, &unit->chain);
	if (err && unit->signalled)
		rvt_refused(ep);
	return err;
}
EXPORT_SYMBOL_GPL(rvt_unit_wait);
