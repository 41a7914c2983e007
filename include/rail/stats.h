/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers: per-CPU counters and log2 histograms, shown in debugfs as text and as JSON.
 *
 * A set is described once by a constant table (names only) and made once per object (device,
 * session, mount ...). Counting writes nothing but the counting CPU's own memory and may be done
 * in any context. Reading sums over the CPUs and is not a snapshot: a reader may see one counter
 * of an event and not yet the other.
 */
#ifndef RAIL_STATS_H
#define RAIL_STATS_H

#include <linux/bitops.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/types.h>

struct dentry;
struct seq_file;

/*
 * Bucket 0 counts the value 0, bucket b counts values from 2^(b-1) to 2^b - 1, and the last one
 * everything from 2^(RAIL_HIST_BUCKETS - 2) on: in ns that is some nine minutes.
 */
#define RAIL_HIST_BUCKETS	41

struct rail_hist {
	u64 bucket[RAIL_HIST_BUCKETS];
	u64 sum;
};

/* The longest name of a set, its NUL not counted. */
#define RAIL_STATS_NAME_MAX	31

/**
 * struct rail_stats_desc - what is counted in a set
 * @name: of the set: up to RAIL_STATS_NAME_MAX letters, digits, '_' and '-'; the debugfs
 *	file's name
 * @nr_counters: how many counters
 * @nr_hists: how many histograms
 * @counters: name of each counter: letters, digits and '_'
 * @hists: name of each histogram, with the unit as its last part ("read_ns", "chain_wrs")
 */
struct rail_stats_desc {
	const char *name;
	unsigned int nr_counters;
	unsigned int nr_hists;
	const char * const *counters;
	const char * const *hists;
};

/**
 * struct rail_stats - a set of counters and histograms
 * @desc: what is counted; constant
 * @count: per CPU, @desc->nr_counters values; NULL where there are none
 * @hist: per CPU, @desc->nr_hists histograms; NULL where there are none
 * @text: debugfs file, NULL where not shown
 * @json: debugfs file, NULL where not shown
 */
struct rail_stats {
	const struct rail_stats_desc *desc;
	u64 __percpu *count;
	struct rail_hist __percpu *hist;
	struct dentry *text;
	struct dentry *json;
};

int rail_stats_init(struct rail_stats *stats, const struct rail_stats_desc *desc,
		    struct dentry *parent);
void rail_stats_destroy(struct rail_stats *stats);
void rail_stats_reset(struct rail_stats *stats);
u64 rail_stats_read(const struct rail_stats *stats, unsigned int counter);
void rail_hist_read(const struct rail_stats *stats, unsigned int hist, struct rail_hist *sum);
u64 rail_hist_count(const struct rail_hist *hist);
u64 rail_hist_percentile(const struct rail_hist *hist, unsigned int permille);
void rail_stats_show_text(const struct rail_stats *stats, struct seq_file *m);
void rail_stats_show_json(const struct rail_stats *stats, struct seq_file *m);

/**
 * rail_hist_bucket - which bucket counts a value
 * @value: what was measured
 *
 * Return: the bucket's index, below RAIL_HIST_BUCKETS.
 */
static inline unsigned int rail_hist_bucket(u64 value)
{
	return min_t(unsigned int, fls64(value), RAIL_HIST_BUCKETS - 1);
}

/**
 * rail_hist_floor - the smallest value a bucket counts
 * @bucket: index, below RAIL_HIST_BUCKETS
 *
 * Return: that value.
 */
static inline u64 rail_hist_floor(unsigned int bucket)
{
	return bucket ? 1ULL << (bucket - 1) : 0;
}

/**
 * rail_hist_edge - the largest value a bucket counts
 * @bucket: index, below RAIL_HIST_BUCKETS
 *
 * Return: that value; U64_MAX for the last bucket, which has no upper edge.
 */
static inline u64 rail_hist_edge(unsigned int bucket)
{
	return bucket < RAIL_HIST_BUCKETS - 1 ? (1ULL << bucket) - 1 : U64_MAX;
}

/**
 * rail_stats_add - add to a counter
 * @stats: the set
 * @counter: index in the set's table
 * @n: how much
 *
 * Context: any.
 */
static inline void rail_stats_add(struct rail_stats *stats, unsigned int counter, u64 n)
{
	this_cpu_add(stats->count[counter], n);
}

/**
 * rail_stats_inc - count one event
 * @stats: the set
 * @counter: index in the set's table
 *
 * Context: any.
 */
static inline void rail_stats_inc(struct rail_stats *stats, unsigned int counter)
{
	this_cpu_inc(stats->count[counter]);
}

/**
 * rail_hist_record - count one measured value
 * @stats: the set
 * @hist: index in the set's table
 * @value: what was measured, in the histogram's unit
 *
 * Context: any.
 */
static inline void rail_hist_record(struct rail_stats *stats, unsigned int hist, u64 value)
{
	this_cpu_inc(stats->hist[hist].bucket[rail_hist_bucket(value)]);
	this_cpu_add(stats->hist[hist].sum, value);
}

#endif /* RAIL_STATS_H */
