// SPDX-License-Identifier: GPL-2.0-only
/* What client and server do alike as users of sunrpc: names of a transport, reverse messages. */
#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/clnt.h>

#include "rpcrdma_priv.h"

/**
 * rail_xprt_print_port - have a transport's strings say which port its address has
 * @xprt: transport
 *
 * Context: sleeps.
 * Return: 0 or -ENOMEM.
 */
int rail_xprt_print_port(struct rpc_xprt *xprt)
{
	unsigned short port = rpc_get_port((struct sockaddr *)&xprt->addr);
	const char **text = xprt->address_strings;
	const char *old = text[RPC_DISPLAY_PORT];
	const char *old_hex = text[RPC_DISPLAY_HEX_PORT];

	text[RPC_DISPLAY_PORT] = kasprintf(GFP_KERNEL, "%u", port);
	text[RPC_DISPLAY_HEX_PORT] = kasprintf(GFP_KERNEL, "%4hx", port);
	kfree(old);
	kfree(old_hex);
	return text[RPC_DISPLAY_PORT] && text[RPC_DISPLAY_HEX_PORT] ? 0 : -ENOMEM;
}

/**
 * rail_xprt_print_address - make a transport's strings
 * @xprt: transport with its address, IPv4 or IPv6
 *
 * Context: sleeps.
 * Return: 0 or an error; rail_xprt_free_address() is due in any case.
 */
int rail_xprt_print_address(struct rpc_xprt *xprt)
{
	const struct sockaddr *addr = (struct sockaddr *)&xprt->addr;
	const char **text = xprt->address_strings;
	/* An address of IPv6 and its scope. */
	char buf[INET6_ADDRSTRLEN + 20];

	if (!rpc_ntop(addr, buf, sizeof(buf)))
		return -EINVAL;
	text[RPC_DISPLAY_ADDR] = kstrdup(buf, GFP_KERNEL);
	if (addr->sa_family == AF_INET6) {
		text[RPC_DISPLAY_HEX_ADDR] =
			kasprintf(GFP_KERNEL, "%pi6", &((struct sockaddr_in6 *)addr)->sin6_addr);
		text[RPC_DISPLAY_NETID] = RPCBIND_NETID_RDMA6;
	} else {
		text[RPC_DISPLAY_HEX_ADDR] =
			kasprintf(GFP_KERNEL, "%08x",
				  ntohl(((struct sockaddr_in *)addr)->sin_addr.s_addr));
		text[RPC_DISPLAY_NETID] = RPCBIND_NETID_RDMA;
	}
	text[RPC_DISPLAY_PROTO] = "rdma";
	if (!text[RPC_DISPLAY_ADDR] || !text[RPC_DISPLAY_HEX_ADDR])
		return -ENOMEM;
	return rail_xprt_print_port(xprt);
}

/**
 * rail_xprt_free_address - free a transport's strings, as far as there are any
 * @xprt: transport
 */
void rail_xprt_free_address(struct rpc_xprt *xprt)
{
	kfree(xprt->address_strings[RPC_DISPLAY_ADDR]);
	kfree(xprt->address_strings[RPC_DISPLAY_HEX_ADDR]);
	kfree(xprt->address_strings[RPC_DISPLAY_PORT]);
	kfree(xprt->address_strings[RPC_DISPLAY_HEX_PORT]);
}

/**
 * rail_reverse_build - write a message of the reverse direction: no chunks, all inline (RFC 8167)
 * @to: where to
 * @room: bytes there; the caller has seen to it that the message fits behind the header
 * @credit: asked for, or granted
 * @rqst: the message is in its rq_snd_buf
 *
 * Return: bytes written.
 */
u32 rail_reverse_build(void *to, u32 room, u32 credit, const struct rpc_rqst *rqst)
{
	const struct xdr_buf *xdr = &rqst->rq_snd_buf;
	struct rail_rpcrdma_enc enc;
	u32 len;

	rail_rpcrdma_enc_init(&enc, to, room);
	rail_rpcrdma_enc_fixed(&enc, be32_to_cpu(rqst->rq_xid), credit, RAIL_RPCRDMA_MSG);
	rail_rpcrdma_enc_reads_end(&enc);
	rail_rpcrdma_enc_writes_end(&enc);
	rail_rpcrdma_enc_no_reply(&enc);
	len = rail_rpcrdma_enc_finish(&enc);
	WARN_ON_ONCE(read_bytes_from_xdr_buf(xdr, 0, to + len, xdr->len));
	return len + xdr->len;
}
