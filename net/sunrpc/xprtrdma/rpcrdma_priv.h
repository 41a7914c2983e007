/* SPDX-License-Identifier: GPL-2.0-only */
/* What the client (clnt.h), the server (svc.h) and module.c of rpcrdma share. */
#ifndef RPCRDMA_PRIV_H
#define RPCRDMA_PRIV_H

#include <linux/sunrpc/xprt.h>

#include <rail/verbs.h>
#include <rail/wire/rpcrdma.h>

/* Either end's inline size, unless told otherwise: 4 KiB of data and the headers around it. */
#define RAIL_INLINE_SIZE	5120

/* Client (clnt_xprt.c) and server. The module's init calls each, and its exit in reverse order. */
int rail_clnt_init(void);
void rail_clnt_exit(void);
int rail_svc_init(void);
void rail_svc_exit(void);

/* both.c */
int rail_xprt_print_port(struct rpc_xprt *xprt);
int rail_xprt_print_address(struct rpc_xprt *xprt);
void rail_xprt_free_address(struct rpc_xprt *xprt);
u32 rail_reverse_build(void *to, u32 room, u32 credit, const struct rpc_rqst *rqst);

#endif /* RPCRDMA_PRIV_H */
