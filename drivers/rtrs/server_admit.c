// SPDX-License-Identifier: GPL-2.0-only
/* Who is let in: how much memory clients may have, of what size a session is. */
#include <linux/mm.h>

#include <rail/addr.h>

#include "server.h"

/* Bytes of all sessions and paths of all servers. */
static atomic64_t rsrv_charged;

static u64 rsrv_memory_limit(void)
{
	u64 mib = READ_ONCE(rsrv_max_memory);

	return mib ? mib << 20 : (u64)totalram_pages() << (PAGE_SHIFT - 1);
}

/**
 * rsrv_charge - may so much memory be taken?
 * @bytes: for a session or a path
 *
 * Context: any.
 * Return: 0: it was counted, and has to be given back by rsrv_uncharge(). -ENOMEM: no.
 */
int rsrv_charge(u64 bytes)
{
	if (atomic64_add_return(bytes, &rsrv_charged) <= rsrv_memory_limit())
		return 0;
	atomic64_sub(bytes, &rsrv_charged);
	return -ENOMEM;
}

/**
 * rsrv_uncharge - give back
 * @bytes: as they were charged
 */
void rsrv_uncharge(u64 bytes)
{
	atomic64_sub(bytes, &rsrv_charged);
}

/**
 * rsrv_params - the size of a new session, as the module's parameters have it
 * @params: filled in
 *
 * Return: 0, or -EINVAL: they do not go together, and the log says why.
 */
int rsrv_params(struct rail_rtrs_params *params)
{
	u32 depth = READ_ONCE(rsrv_sess_queue_depth);
	u32 chunk = READ_ONCE(rsrv_max_chunk_size);
	enum rail_rtrs_reason reason;

	reason = rail_rtrs_params_init(params, depth, chunk - RSRV_HDR_SIZE, RSRV_HDR_SIZE,
				       READ_ONCE(rsrv_always_invalidate));
	if (!reason)
		return 0;
	pr_err("rtrs-server: sess_queue_depth=%u with max_chunk_size=%u: %s; make one of them smaller\n",
	       depth, chunk, rail_rtrs_reason_text(reason));
	return -EINVAL;
}

/**
 * rsrv_same_host - do two addresses differ in the port at the most?
 * @a: an address
 * @b: another one
 */
bool rsrv_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	struct sockaddr_storage a_host = *a, b_host = *b;

	rail_addr_set_port((struct sockaddr *)&a_host, 0);
	rail_addr_set_port((struct sockaddr *)&b_host, 0);
	return rail_addr_equal((struct sockaddr *)&a_host, (struct sockaddr *)&b_host);
}
