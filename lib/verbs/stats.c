// SPDX-License-Identifier: GPL-2.0-only
/* Per-CPU counters and histograms, and their files in debugfs. */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/ctype.h>
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/printk.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <linux/string.h>

#include <rail/compat.h>
#include <rail/stats.h>

#define JSON_SUFFIX	".json"

static int text_show(struct seq_file *m, void *unused)
{
	rail_stats_show_text(m->private, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(text);

static int json_show(struct seq_file *m, void *unused)
{
	rail_stats_show_json(m->private, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(json);

static bool name_valid(const char *name, const char *punctuation)
{
	if (!name || !*name)
		return false;
	for (; *name; name++)
		if (!isascii(*name) || (!isalnum(*name) && !strchr(punctuation, *name)))
			return false;
	return true;
}

static bool desc_valid(const struct rail_stats_desc *desc)
{
	unsigned int i;

	if (!name_valid(desc->name, "_-") || strlen(desc->name) > RAIL_STATS_NAME_MAX)
		return false;
	for (i = 0; i < desc->nr_counters; i++)
		if (!name_valid(desc->counters[i], "_"))
			return false;
	for (i = 0; i < desc->nr_hists; i++)
		if (!name_valid(desc->hists[i], "_"))
			return false;
	return true;
}

static struct dentry *file_create(struct rail_stats *stats, const char *name,
				  struct dentry *parent, const struct file_operations *fops)
{
	struct dentry *file = debugfs_create_file(name, 0444, parent, stats, fops);

	return IS_ERR(file) ? NULL : file;
}

/**
 * rail_stats_init - make a set of counters and histograms, all of them 0
 * @stats: the set; needs no initialization before
 * @desc: what is counted; must live as long as the set
 * @parent: the debugfs directory for the files "<name>" (text) and "<name>.json"; NULL or an error
 *	pointer where the set is not to be shown
 *
 * That the files could not be made is no error: the set counts all the same. The set must not
 * move while it is there.
 *
 * Context: process; may sleep.
 * Return: 0, -ENOMEM, or -EINVAL where a name in @desc breaks the rules, which is logged. After
 * an error nothing needs to be destroyed, though rail_stats_destroy() may be called.
 */
int rail_stats_init(struct rail_stats *stats, const struct rail_stats_desc *desc,
		    struct dentry *parent)
{
	char json[RAIL_STATS_NAME_MAX + sizeof(JSON_SUFFIX)];

	memset(stats, 0, sizeof(*stats));
	if (!desc_valid(desc)) {
		pr_err("rail_verbs: set of counters \"%s\": a name in its table breaks the rules\n",
		       desc->name);
		return -EINVAL;
	}

	if (desc->nr_counters) {
		stats->count = __alloc_percpu(desc->nr_counters * sizeof(*stats->count),
					      __alignof__(*stats->count));
		if (!stats->count)
			return -ENOMEM;
	}
	if (desc->nr_hists) {
		stats->hist = __alloc_percpu(desc->nr_hists * sizeof(*stats->hist),
					     __alignof__(*stats->hist));
		if (!stats->hist) {
			free_percpu(stats->count);
			stats->count = NULL;
			return -ENOMEM;
		}
	}
	stats->desc = desc;

	if (!IS_ERR_OR_NULL(parent)) {
		scnprintf(json, sizeof(json), "%s" JSON_SUFFIX, desc->name);
		stats->text = file_create(stats, desc->name, parent, &text_fops);
		stats->json = file_create(stats, json, parent, &json_fops);
	}
	return 0;
}
EXPORT_SYMBOL_GPL(rail_stats_init);

/**
 * rail_stats_destroy - destroy a set
 * @stats: the set; one that is all zeros or destroyed already is left as it is
 *
 * Nobody may count any more. Waits for who is reading the files. To be called before the debugfs
 * directory that holds the files is removed.
 *
 * Context: process; may sleep.
 */
void rail_stats_destroy(struct rail_stats *stats)
{
	debugfs_remove(stats->json);
	debugfs_remove(stats->text);
	free_percpu(stats->hist);
	free_percpu(stats->count);
	memset(stats, 0, sizeof(*stats));
}
EXPORT_SYMBOL_GPL(rail_stats_destroy);

static void reset_cpu(const struct rail_stats *stats, int cpu)
{
	const struct rail_stats_desc *desc = stats->desc;

	if (stats->count)
		memset(per_cpu_ptr(stats->count, cpu), 0,
		       desc->nr_counters * sizeof(*stats->count));
	if (stats->hist)
		memset(per_cpu_ptr(stats->hist, cpu), 0, desc->nr_hists * sizeof(*stats->hist));
}

static void reset_this_cpu(void *stats)
{
	reset_cpu(stats, smp_processor_id());
}

/**
 * rail_stats_reset - set everything in a set to 0
 * @stats: the set
 *
 * Each CPU resets its own part: were another to do it, it could be undone by an addition that had
 * read the old value. What is counted meanwhile may be counted or not.
 *
 * Context: process, not in a CPU hotplug callback; may sleep.
 */
void rail_stats_reset(struct rail_stats *stats)
{
	int cpu;

	cpus_read_lock();
	on_each_cpu(reset_this_cpu, stats, true);
	for_each_possible_cpu(cpu)
		if (!cpu_online(cpu))
			reset_cpu(stats, cpu);
	cpus_read_unlock();
}
EXPORT_SYMBOL_GPL(rail_stats_reset);

/**
 * rail_stats_read - read a counter
 * @stats: the set
 * @counter: index in the set's table
 *
 * Context: any.
 * Return: the sum over all CPUs.
 */
u64 rail_stats_read(const struct rail_stats *stats, unsigned int counter)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(stats->count, cpu)[counter]);
	return sum;
}
EXPORT_SYMBOL_GPL(rail_stats_read);

/**
 * rail_hist_read - read a histogram
 * @stats: the set
 * @hist: index in the set's table
 * @sum: where to put the sum over all CPUs
 *
 * Context: any.
 */
void rail_hist_read(const struct rail_stats *stats, unsigned int hist, struct rail_hist *sum)
{
	unsigned int b;
	int cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const struct rail_hist *h = per_cpu_ptr(stats->hist, cpu) + hist;

		for (b = 0; b < RAIL_HIST_BUCKETS; b++)
			sum->bucket[b] += READ_ONCE(h->bucket[b]);
		sum->sum += READ_ONCE(h->sum);
	}
}
EXPORT_SYMBOL_GPL(rail_hist_read);

/**
 * rail_hist_count - how many values a histogram has counted
 * @hist: the histogram, from rail_hist_read()
 *
 * Context: any.
 * Return: the sum over all buckets.
 */
u64 rail_hist_count(const struct rail_hist *hist)
{
	u64 count = 0;
	unsigned int b;

	for (b = 0; b < RAIL_HIST_BUCKETS; b++)
		count += hist->bucket[b];
	return count;
}
EXPORT_SYMBOL_GPL(rail_hist_count);

/**
 * rail_hist_percentile - a bound for the values up to a percentile
 * @hist: the histogram, from rail_hist_read()
 * @permille: 500 is the median, 999 the 99.9th percentile, 1000 and above the maximum
 *
 * At least @permille thousandths of the values counted are not above the value returned, and a
 * bucket lower that would not be so: it is the upper edge of the bucket that the percentile falls
 * in, less than twice the exact value.
 *
 * Context: any.
 * Return: that edge; U64_MAX where it is the last bucket; 0 where nothing has been counted.
 */
u64 rail_hist_percentile(const struct rail_hist *hist, unsigned int permille)
{
	u64 count = rail_hist_count(hist);
	unsigned int b;
	u64 rank;

	if (!count)
		return 0;
	/* ceil(count * permille / 1000), which may not fit in 64 bits half-way */
	rank = count - mul_u64_u32_div(count, 1000 - min(permille, 1000U), 1000);
	rank = max_t(u64, rank, 1);
	for (b = 0; b < RAIL_HIST_BUCKETS - 1 && hist->bucket[b] < rank; b++)
		rank -= hist->bucket[b];
	return rail_hist_edge(b);
}
EXPORT_SYMBOL_GPL(rail_hist_percentile);

static void show_edge(struct seq_file *m, const char *label, u64 edge)
{
	if (edge == U64_MAX)
		seq_printf(m, " %s>=%llu", label, rail_hist_floor(RAIL_HIST_BUCKETS - 1));
	else
		seq_printf(m, " %s=%llu", label, edge);
}

static void show_hist_text(struct seq_file *m, const char *name, const struct rail_hist *hist)
{
	u64 count = rail_hist_count(hist);
	unsigned int b;

	seq_printf(m, "%s: count=%llu", name, count);
	if (!count) {
		seq_putc(m, '\n');
		return;
	}
	seq_printf(m, " mean=%llu", div64_u64(hist->sum, count));
	show_edge(m, "p50", rail_hist_percentile(hist, 500));
	show_edge(m, "p90", rail_hist_percentile(hist, 900));
	show_edge(m, "p99", rail_hist_percentile(hist, 990));
	show_edge(m, "p99.9", rail_hist_percentile(hist, 999));
	show_edge(m, "max", rail_hist_percentile(hist, 1000));
	seq_putc(m, '\n');

	for (b = 0; b < RAIL_HIST_BUCKETS; b++) {
		if (!hist->bucket[b])
			continue;
		seq_printf(m, "  %12llu .. ", rail_hist_floor(b));
		if (b < RAIL_HIST_BUCKETS - 1)
			seq_printf(m, "%12llu", rail_hist_edge(b));
		else
			seq_printf(m, "%12s", "");
		seq_printf(m, " %20llu\n", hist->bucket[b]);
	}
}

/**
 * rail_stats_show_text - write a set for people to read
 * @stats: the set
 * @m: where to
 *
 * A line "name value" a counter, in the table's order. Then a block a histogram: a line with
 * count, mean and percentiles (see rail_hist_percentile(); only the count where that is 0), and an
 * indented line for each bucket that is not empty: its lowest value, its highest, its count.
 *
 * Context: any that @m allows.
 */
void rail_stats_show_text(const struct rail_stats *stats, struct seq_file *m)
{
	const struct rail_stats_desc *desc = stats->desc;
	struct rail_hist hist;
	int width = 0;
	unsigned int i;

	for (i = 0; i < desc->nr_counters; i++)
		width = max_t(int, width, strlen(desc->counters[i]));
	for (i = 0; i < desc->nr_counters; i++)
		seq_printf(m, "%-*s %20llu\n", width, desc->counters[i], rail_stats_read(stats, i));
	for (i = 0; i < desc->nr_hists; i++) {
		rail_hist_read(stats, i, &hist);
		show_hist_text(m, desc->hists[i], &hist);
	}
}
EXPORT_SYMBOL_GPL(rail_stats_show_text);

static void show_hist_json(struct seq_file *m, const char *name, const struct rail_hist *hist)
{
	const char *comma = "";
	unsigned int b;

	seq_printf(m, "\"%s\":{\"count\":%llu,\"sum\":%llu", name, rail_hist_count(hist),
		   hist->sum);
	seq_printf(m, ",\"p50\":%llu,\"p90\":%llu,\"p99\":%llu,\"p999\":%llu",
		   rail_hist_percentile(hist, 500), rail_hist_percentile(hist, 900),
		   rail_hist_percentile(hist, 990), rail_hist_percentile(hist, 999));
	seq_puts(m, ",\"buckets\":[");
	for (b = 0; b < RAIL_HIST_BUCKETS; b++) {
		if (!hist->bucket[b])
			continue;
		seq_printf(m, "%s[%llu,%llu]", comma, rail_hist_floor(b), hist->bucket[b]);
		comma = ",";
	}
	seq_puts(m, "]}");
}

/**
 * rail_stats_show_json - write a set for programs to read
 * @stats: the set
 * @m: where to
 *
 * One object in one line: "counters" has a number for each name, "histograms" an object for each
 * name with "count", "sum", "p50", "p90", "p99", "p999" (see rail_hist_percentile()) and
 * "buckets", which holds a pair [lowest value, count] for each bucket that is not empty. Numbers
 * are up to U64_MAX. Names are written as they are: rail_stats_init() lets in none to be escaped.
 *
 * Context: any that @m allows.
 */
void rail_stats_show_json(const struct rail_stats *stats, struct seq_file *m)
{
	const struct rail_stats_desc *desc = stats->desc;
	struct rail_hist hist;
	unsigned int i;

	seq_puts(m, "{\"counters\":{");
	for (i = 0; i < desc->nr_counters; i++)
		seq_printf(m, "%s\"%s\":%llu", i ? "," : "", desc->counters[i],
			   rail_stats_read(stats, i));
	seq_puts(m, "},\"histograms\":{");
	for (i = 0; i < desc->nr_hists; i++) {
		if (i)
			seq_putc(m, ',');
		rail_hist_read(stats, i, &hist);
		show_hist_json(m, desc->hists[i], &hist);
	}
	seq_puts(m, "}}\n");
}
EXPORT_SYMBOL_GPL(rail_stats_show_json);
