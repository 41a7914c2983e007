// SPDX-License-Identifier: GPL-2.0-only
/* Reading and writing the peer's memory: the kernel's rdma_rw, in our chains. */
#include "verbs_priv.h"

/**
 * rail_rw_init - prepare to move bytes between the peer's memory and ours
 * @rw: what is prepared; the caller's until rail_rw_destroy()
 * @conn: connection whose qp_attr.rw_ctxs allows one more
 * @sg: our memory, not mapped; mapped until rail_rw_destroy()
 * @nents: its entries
 * @offset: bytes of @sg to skip
 * @remote_addr: the peer's memory
 * @rkey: its key
 * @dir: DMA_FROM_DEVICE: RDMA Read; DMA_TO_DEVICE: RDMA Write
 *
 * Context: sleeps.
 * Return: how many work requests it takes, or an error.
 */
int rail_rw_init(struct rail_rw *rw, struct rail_conn *conn, struct scatterlist *sg, u32 nents,
		 u32 offset, u64 remote_addr, u32 rkey, enum dma_data_direction dir)
{
	if (rail_fault(RAIL_FAULT_MR))
		return -EIO;
	rw->sg = sg;
	rw->nents = nents;
	rw->dir = dir;
	return rdma_rw_ctx_init(&rw->ctx, conn->qp, conn->cm_id->port_num, sg, nents, offset,
				remote_addr, rkey, dir);
}
EXPORT_SYMBOL_GPL(rail_rw_init);

/**
 * rail_rw_chain - add its work requests to a chain
 * @rw: prepared by rail_rw_init()
 * @conn: the same connection
 * @chain: the chain
 * @cqe: told when the bytes have moved; NULL: a later work request of the chain will tell
 *
 * Context: any.
 */
void rail_rw_chain(struct rail_rw *rw, struct rail_conn *conn, struct rail_chain *chain,
		   struct rail_cqe *cqe)
{
	struct ib_send_wr *first;

	/* rdma_rw signals the last one; the chain decides again. */
	first = rdma_rw_ctx_wrs(&rw->ctx, conn->qp, conn->cm_id->port_num, &conn->unsignalled,
				NULL);
	rail_chain_splice(chain, first, cqe);
}
EXPORT_SYMBOL_GPL(rail_rw_chain);

/**
 * rail_rw_destroy - unmap our memory
 * @rw: what rail_rw_init() prepared; not in flight any more
 * @conn: the same connection, not later than ops->drained()
 *
 * Context: any.
 */
void rail_rw_destroy(struct rail_rw *rw, struct rail_conn *conn)
{
	rdma_rw_ctx_destroy(&rw->ctx, conn->qp, conn->cm_id->port_num, rw->sg, rw->nents, rw->dir);
}
EXPORT_SYMBOL_GPL(rail_rw_destroy);
