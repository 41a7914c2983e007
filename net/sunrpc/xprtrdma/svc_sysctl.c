// SPDX-License-Identifier: GPL-2.0-only
/* /proc/sys/sunrpc/svc_rdma: the server's limits, and its counters under their well-known names. */
#include <linux/slab.h>
#include <linux/sysctl.h>
#include "svc.h"

#define RSVC_REQUESTS_MIN	8
#define RSVC_REQUESTS_MAX	1024
#define RSVC_REQ_SIZE_MIN	RAIL_RPCRDMA_INLINE_DEFAULT
#define RSVC_REQ_SIZE_MAX	(64 * 1024)

/* Most credits a client is granted, and inline size; for connections made from then on. */
unsigned int rsvc_max_requests = 64;
unsigned int rsvc_max_req_size = RAIL_INLINE_SIZE;

/*
 * Known to scripts; how many reads a connection has outstanding, the device and the connection
 * manager decide: the value is kept, no more.
 */
static unsigned int rsvc_max_reads = 32;

struct percpu_counter rsvc_stats[RSVC_NR_STATS];

static unsigned int rsvc_requests_min = RSVC_REQUESTS_MIN;
static unsigned int rsvc_requests_max = RSVC_REQUESTS_MAX;
static unsigned int rsvc_reads_min = 1;
static unsigned int rsvc_reads_max = 4096;
static unsigned int rsvc_req_size_min = RSVC_REQ_SIZE_MIN;
static unsigned int rsvc_req_size_max = RSVC_REQ_SIZE_MAX;

static struct ctl_table_header *rsvc_table_header;

/* Reading shows the count; writing sets it to 0, whatever is written. */
static int rsvc_counter(RAIL_CTL_CONST struct ctl_table *table, int write, void *buf, size_t *len,
			loff_t *pos)
{
	struct percpu_counter *stat = table->data;
	char text[24];
	int n;

	if (write) {
		percpu_counter_set(stat, 0);
		return 0;
	}
	if (*pos) {
		*len = 0;
		return 0;
	}
	n = scnprintf(text, sizeof(text), "%lld\n", percpu_counter_sum_positive(stat));
	n = min_t(size_t, n, *len);
	memcpy(buf, text, n);
	*len = n;
	*pos = n;
	return 0;
}

/* Inline sizes are told to the client in units of 1024 bytes. */
static int rsvc_size(RAIL_CTL_CONST struct ctl_table *table, int write, void *buf, size_t *len,
		     loff_t *pos)
{
	int err = proc_douintvec_minmax(table, write, buf, len, pos);

	if (!err && write)
		WRITE_ONCE(rsvc_max_req_size,
			   rounddown(rsvc_max_req_size, RAIL_RPCRDMA_INLINE_UNIT));
	return err;
}

#define RSVC_COUNTER(name, stat) \
	{ \
		.procname = name, \
		.data = &rsvc_stats[stat], \
		.maxlen = sizeof(u64), \
		.mode = 0644, \
		.proc_handler = rsvc_counter, \
	}

static struct ctl_table rsvc_table[] = {
	{
		.procname = "max_requests",
		.data = &rsvc_max_requests,
		.maxlen = sizeof(unsigned int),
		.mode = 0644,
		.proc_handler = proc_douintvec_minmax,
		.extra1 = &rsvc_requests_min,
		.extra2 = &rsvc_requests_max,
	},
	{
		.procname = "max_req_size",
		.data = &rsvc_max_req_size,
		.maxlen = sizeof(unsigned int),
		.mode = 0644,
		.proc_handler = rsvc_size,
		.extra1 = &rsvc_req_size_min,
		.extra2 = &rsvc_req_size_max,
	},
	{
		.procname = "max_outbound_read_requests",
		.data = &rsvc_max_reads,
		.maxlen = sizeof(unsigned int),
		.mode = 0644,
		.proc_handler = proc_douintvec_minmax,
		.extra1 = &rsvc_reads_min,
		.extra2 = &rsvc_reads_max,
	},
	RSVC_COUNTER("rdma_stat_recv", RSVC_STAT_RECV),
	RSVC_COUNTER("rdma_stat_read", RSVC_STAT_READ),
	RSVC_COUNTER("rdma_stat_write", RSVC_STAT_WRITE),
	RSVC_COUNTER("rdma_stat_sq_starve", RSVC_STAT_SQ_STARVE),
	RSVC_COUNTER("rdma_stat_rq_starve", RSVC_STAT_RQ_STARVE),
	RSVC_COUNTER("rdma_stat_rq_poll", RSVC_STAT_NONE),
	RSVC_COUNTER("rdma_stat_rq_prod", RSVC_STAT_NONE),
	RSVC_COUNTER("rdma_stat_sq_poll", RSVC_STAT_NONE),
	RSVC_COUNTER("rdma_stat_sq_prod", RSVC_STAT_NONE),
	RAIL_CTL_END
};

/**
 * rsvc_stats_init - begin to count
 *
 * Return: 0 or an error.
 */
int rsvc_stats_init(void)
{
	int i, err;

	for (i = 0; i < RSVC_NR_STATS; i++) {
		err = percpu_counter_init(&rsvc_stats[i], 0, GFP_KERNEL);
		if (err)
			goto fail;
	}
	return 0;
fail:
	while (i--)
		percpu_counter_destroy(&rsvc_stats[i]);
	return err;
}

/**
 * rsvc_stats_exit - no longer count
 */
void rsvc_stats_exit(void)
{
	int i;

	for (i = 0; i < RSVC_NR_STATS; i++)
		percpu_counter_destroy(&rsvc_stats[i]);
}

/**
 * rsvc_sysctl_init - make the files
 *
 * The transport works without them.
 */
void rsvc_sysctl_init(void)
{
	rsvc_table_header = register_sysctl("sunrpc/svc_rdma", rsvc_table);
	if (!rsvc_table_header)
		pr_warn("rpcrdma: no files in /proc/sys/sunrpc/svc_rdma: limits stay as they are\n");
}

/**
 * rsvc_sysctl_exit - remove them
 */
void rsvc_sysctl_exit(void)
{
	unregister_sysctl_table(rsvc_table_header);
}
