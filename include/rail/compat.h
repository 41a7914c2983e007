/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only place in RAIL that knows kernel versions. Everything else is written for the newest
 * kernel; what an older one lacks or names otherwise is made up here.
 */
#ifndef RAIL_COMPAT_H
#define RAIL_COMPAT_H

#include <linux/version.h>
#include <linux/workqueue.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "RAIL needs Linux 6.1 or newer: install the headers of a newer kernel and set KDIR to them."
#endif

#ifndef CONFIG_INFINIBAND_ADDR_TRANS
#error "RAIL needs a kernel with CONFIG_INFINIBAND_ADDR_TRANS (the RDMA connection manager)."
#endif

/* 6.17 made "bound to a CPU" a flag of its own; before, it was what no flag meant. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0) && !defined(WQ_PERCPU)
#define WQ_PERCPU 0
#endif

/* ---- sunrpc server ---- */

/*
 * 7.1 gave a thread's call and reply page arrays of their own. Before, the reply's pages follow the
 * call's in one array, so that the transport has to say where.
 *
 * rail_svc_arg_pages	the call takes the first n of rq_pages
 * rail_svc_took_pages	the transport took the first n of rq_pages away
 * rail_svc_no_arg	there is no call after all
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 1, 0)
#define rail_svc_arg_pages(rqstp, n) do { \
		(rqstp)->rq_respages = &(rqstp)->rq_pages[n]; \
		(rqstp)->rq_next_page = (rqstp)->rq_respages + 1; \
	} while (0)
#define rail_svc_took_pages(rqstp, n)
#define rail_svc_no_arg(rqstp) do { \
		(rqstp)->rq_respages = (rqstp)->rq_pages; \
		(rqstp)->rq_next_page = (rqstp)->rq_respages; \
	} while (0)
#else
#define rail_svc_arg_pages(rqstp, n)	do { } while (0)
#define rail_svc_took_pages(rqstp, n)	((rqstp)->rq_pages_nfree = (n))
#define rail_svc_no_arg(rqstp)		do { } while (0)
#endif

/* Before 6.3 sunrpc asked for this after each receive. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define RAIL_SVC_SECURE_PORT	.xpo_secure_port = rsvc_secure_port,
#else
#define RAIL_SVC_SECURE_PORT
#endif

/* 6.11 made sysctl tables constant for their handlers and did away with an empty last entry. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define RAIL_CTL_CONST
#define RAIL_CTL_END		{ }
#else
#define RAIL_CTL_CONST		const
#define RAIL_CTL_END
#endif

/* ---- sunrpc client ---- */

/*
 * rail_bc_enqueue(rqst): hand a reverse call to the service that answers it. false: there is none,
 * and the call is still the caller's. A macro, for only rpcrdma has the structs. 6.7 made the queue
 * lockless; a late 7.x does the whole of it in sunrpc, which then also frees what nobody wants.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#define rail_bc_enqueue(rqst) ({ \
		struct rpc_xprt *__xprt = (rqst)->rq_xprt; \
		struct svc_serv *__serv = READ_ONCE(__xprt->bc_serv); \
		if (__serv) { \
			xprt_get(__xprt); \
			spin_lock(&__serv->sv_cb_lock); \
			list_add_tail(&(rqst)->rq_bc_list, &__serv->sv_cb_list); \
			wake_up(&__serv->sv_cb_waitq); \
			spin_unlock(&__serv->sv_cb_lock); \
		} \
		__serv != NULL; })
#elif LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define rail_bc_enqueue(rqst) ({ \
		struct rpc_xprt *__xprt = (rqst)->rq_xprt; \
		struct svc_serv *__serv = READ_ONCE(__xprt->bc_serv); \
		if (__serv) { \
			xprt_get(__xprt); \
			lwq_enqueue(&(rqst)->rq_bc_list, &__serv->sv_cb_list); \
			svc_pool_wake_idle_thread(&__serv->sv_pools[0]); \
		} \
		__serv != NULL; })
#else
#define rail_bc_enqueue(rqst)	({ xprt_enqueue_bc_request(rqst); true; })
#endif

#endif /* RAIL_COMPAT_H */
