// SPDX-License-Identifier: GPL-2.0-only
/* rpcrdma: the module's beginning and end. */
#include <linux/module.h>
#include "rpcrdma_priv.h"

#undef pr_fmt
#define pr_fmt(fmt) "rpcrdma: " fmt

static int __init rpcrdma_init(void)
{
	int err;

	err = rail_svc_init();
	if (!err) {
		err = rail_clnt_init();
		if (err)
			rail_svc_exit();
	}
	if (err == -EEXIST)
		pr_err("another module provides sunrpc's transport class \"rdma\": unload it (it may be built into the kernel or loaded under another name), then load this one again\n");
	else if (err)
		pr_err("cannot offer sunrpc a transport class \"rdma\" (%pe)\n", ERR_PTR(err));
	return err;
}

static void __exit rpcrdma_exit(void)
{
	rail_clnt_exit();
	rail_svc_exit();
}

module_init(rpcrdma_init);
module_exit(rpcrdma_exit);

MODULE_DESCRIPTION("RAIL: NFS/RDMA transport for sunrpc, client and server");
MODULE_LICENSE("GPL");
MODULE_VERSION(RAIL_VERSION);
/* The names by which sunrpc and people ask for it. */
MODULE_ALIAS("xprtrdma");
MODULE_ALIAS("svcrdma");
MODULE_ALIAS("rpcrdma6");
