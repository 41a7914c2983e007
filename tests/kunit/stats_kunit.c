// SPDX-License-Identifier: GPL-2.0-only
/* Counters and histograms. */
#include <kunit/test.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include <rail/stats.h>

#define LAST	(RAIL_HIST_BUCKETS - 1)

enum { READS, WRITES_FAILED, NR_COUNTERS };
enum { READ_NS, CHAIN_WRS, NR_HISTS };

static const char * const counters[] = { "reads", "writes_failed" };
static const char * const hists[] = { "read_ns", "chain_wrs" };

static const struct rail_stats_desc desc = {
	.name = "kunit-set_1",
	.nr_counters = NR_COUNTERS,
	.nr_hists = NR_HISTS,
	.counters = counters,
	.hists = hists,
};

/* One set for the test that runs: a work is handed no data. */
static struct rail_stats set;

static int set_init(struct kunit *test)
{
	return rail_stats_init(&set, &desc, NULL);
}

static void set_exit(struct kunit *test)
{
	rail_stats_destroy(&set);
}

static void hist_buckets(struct kunit *test)
{
	unsigned int k, b;
	u64 power;

	KUNIT_EXPECT_EQ(test, rail_hist_bucket(0), 0);
	KUNIT_EXPECT_EQ(test, rail_hist_bucket(1), 1);
	KUNIT_EXPECT_EQ(test, rail_hist_bucket(2), 2);
	KUNIT_EXPECT_EQ(test, rail_hist_bucket(3), 2);
	KUNIT_EXPECT_EQ(test, rail_hist_bucket(U64_MAX), LAST);
	for (k = 2; k < 64; k++) {
		power = 1ULL << k;
		KUNIT_EXPECT_EQ(test, rail_hist_bucket(power - 1), min(k, LAST));
		KUNIT_EXPECT_EQ(test, rail_hist_bucket(power), min(k + 1, LAST));
		KUNIT_EXPECT_EQ(test, rail_hist_bucket(power + 1), min(k + 1, LAST));
	}

	/* The buckets leave no gap and do not overlap. */
	KUNIT_EXPECT_EQ(test, rail_hist_floor(0), 0);
	for (b = 0; b < RAIL_HIST_BUCKETS; b++) {
		KUNIT_EXPECT_EQ(test, rail_hist_bucket(rail_hist_floor(b)), b);
		KUNIT_EXPECT_EQ(test, rail_hist_bucket(rail_hist_edge(b)), b);
		if (b < LAST)
			KUNIT_EXPECT_EQ(test, rail_hist_edge(b) + 1, rail_hist_floor(b + 1));
	}
	KUNIT_EXPECT_EQ(test, rail_hist_edge(LAST), U64_MAX);
}

static void hist_record(struct kunit *test)
{
	static const u64 values[] = { 0, 0, 1, 2, 3, 4, 1023, 1024, 1025, 1ULL << 38,
				      (1ULL << 39) - 1, 1ULL << 39, U64_MAX };
	u64 want[RAIL_HIST_BUCKETS] = { };
	struct rail_hist hist;
	u64 sum = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		rail_hist_record(&set, CHAIN_WRS, values[i]);
		sum += values[i];
	}
	want[0] = 2;
	want[1] = 1;
	want[2] = 2;
	want[3] = 1;
	want[10] = 1;
	want[11] = 2;
	want[39] = 2;
	want[40] = 2;

	rail_hist_read(&set, CHAIN_WRS, &hist);
	KUNIT_EXPECT_MEMEQ(test, hist.bucket, want, sizeof(want));
	KUNIT_EXPECT_EQ(test, hist.sum, sum);
	KUNIT_EXPECT_EQ(test, rail_hist_count(&hist), ARRAY_SIZE(values));

	/* Its neighbour counted nothing. */
	rail_hist_read(&set, READ_NS, &hist);
	KUNIT_EXPECT_EQ(test, rail_hist_count(&hist), 0);
	KUNIT_EXPECT_EQ(test, hist.sum, 0);
}

static int compare_u64(const void *a, const void *b)
{
	return cmp_int(*(const u64 *)a, *(const u64 *)b);
}

/* Against the exact percentile of the sorted values. */
static void percentile_model(struct kunit *test)
{
	static const unsigned int permilles[] = { 0, 1, 10, 250, 500, 900, 990, 999, 1000, 1001,
						  UINT_MAX };
	static const unsigned int counts[] = { 1, 2, 3, 9, 10, 99, 100, 101, 999, 1000, 1001 };
	struct rail_hist hist;
	struct rnd_state rnd;
	unsigned int i, c, n, p, permille;
	u64 *values, rank, exact;

	values = kunit_kcalloc(test, 1001, sizeof(*values), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, values);
	prandom_seed_state(&rnd, 41);

	for (c = 0; c < ARRAY_SIZE(counts); c++) {
		n = counts[c];
		rail_stats_reset(&set);
		for (i = 0; i < n; i++) {
			values[i] = prandom_u32_state(&rnd);
			values[i] = (values[i] << 32 | prandom_u32_state(&rnd)) >>
				    (prandom_u32_state(&rnd) % 64);
			rail_hist_record(&set, READ_NS, values[i]);
		}
		sort(values, n, sizeof(*values), compare_u64, NULL);
		rail_hist_read(&set, READ_NS, &hist);
		KUNIT_ASSERT_EQ(test, rail_hist_count(&hist), n);

		for (p = 0; p < ARRAY_SIZE(permilles); p++) {
			permille = permilles[p];
			rank = DIV_ROUND_UP(n * min(permille, 1000U), 1000);
			exact = values[rank ? rank - 1 : 0];
			KUNIT_EXPECT_EQ_MSG(test, rail_hist_percentile(&hist, permille),
					    rail_hist_edge(rail_hist_bucket(exact)),
					    "p%u of %u values", permille, n);
		}
	}
}

static void percentile_edges(struct kunit *test)
{
	struct rail_hist hist = { };

	KUNIT_EXPECT_EQ(test, rail_hist_percentile(&hist, 500), 0);
	KUNIT_EXPECT_EQ(test, rail_hist_percentile(&hist, 1000), 0);

	hist.bucket[0] = 1;
	KUNIT_EXPECT_EQ(test, rail_hist_percentile(&hist, 1000), 0);

	hist.bucket[0] = 0;
	hist.bucket[LAST] = 1;
	KUNIT_EXPECT_EQ(test, rail_hist_percentile(&hist, 0), U64_MAX);
	KUNIT_EXPECT_EQ(test, rail_hist_percentile(&hist, 500), U64_MAX);

	/* Counts whose product with 1000 does not fit in 64 bits. */
	hist.bucket[LAST] = 0;
	hist.bucket[1] = 1ULL << 62;
	hist.bucket[5] = 1ULL << 62;
	KUNIT_EXPECT_EQ(test, rail_hist_percentile(&hist, 1), 1);
	KUNIT_EXPECT_EQ(test, rail_hist_percentile(&hist, 500), 1);
	KUNIT_EXPECT_EQ(test, rail_hist_percentile(&hist, 501), 31);
	KUNIT_EXPECT_EQ(test, rail_hist_percentile(&hist, 1000), 31);
}

static void count_here(struct work_struct *unused)
{
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		rail_stats_inc(&set, READS);
		rail_stats_add(&set, WRITES_FAILED, 1ULL << 32);
		rail_hist_record(&set, READ_NS, 600);
	}
}

static void every_cpu(struct kunit *test)
{
	struct rail_hist hist;
	struct work_struct work;
	u64 cpus, each;
	int cpu;

	cpus_read_lock();
	cpus = num_online_cpus();
	cpus_read_unlock();
	if (cpus < 2)
		kunit_skip(test, "needs two CPUs");

	for_each_online_cpu(cpu) {
		INIT_WORK_ONSTACK(&work, count_here);
		schedule_work_on(cpu, &work);
		flush_work(&work);
		destroy_work_on_stack(&work);
		each = *per_cpu_ptr(set.count, cpu);
		KUNIT_EXPECT_EQ(test, each, 1000);
	}
	KUNIT_EXPECT_EQ(test, rail_stats_read(&set, READS), cpus * 1000);
	KUNIT_EXPECT_EQ(test, rail_stats_read(&set, WRITES_FAILED), cpus * 1000 << 32);
	rail_hist_read(&set, READ_NS, &hist);
	KUNIT_EXPECT_EQ(test, hist.bucket[10], cpus * 1000);
	KUNIT_EXPECT_EQ(test, hist.sum, cpus * 600000);

	rail_stats_reset(&set);
	KUNIT_EXPECT_EQ(test, rail_stats_read(&set, READS), 0);
	KUNIT_EXPECT_EQ(test, rail_stats_read(&set, WRITES_FAILED), 0);
	rail_hist_read(&set, READ_NS, &hist);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(&hist, 0, sizeof(hist)), NULL);
}

static int count_on(void *unused)
{
	while (!kthread_should_stop()) {
		count_here(NULL);
		cond_resched();
	}
	return 0;
}

typedef void (*show_fn)(const struct rail_stats *stats, struct seq_file *m);

static void print_into(struct seq_file *m, show_fn show)
{
	memset(m->buf, 0, m->size);
	m->count = 0;
	show(&set, m);
}

/* In parts, as a line of JSON is too long for a line of code. */
static void expect_output(struct kunit *test, const struct seq_file *m, const char * const *parts)
{
	const char *at = m->buf;

	KUNIT_ASSERT_FALSE(test, seq_has_overflowed((struct seq_file *)m));
	for (; *parts; parts++) {
		KUNIT_EXPECT_EQ_MSG(test, strncmp(at, *parts, strlen(*parts)), 0,
				    "\"%s\" should begin with \"%s\"", at, *parts);
		at += min(strlen(at), strlen(*parts));
	}
	KUNIT_EXPECT_STREQ(test, at, "");
}

static struct seq_file *seq_alloc(struct kunit *test, size_t size)
{
	struct seq_file *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->buf = kunit_kzalloc(test, size, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m->buf);
	m->size = size;
	return m;
}

/* Reading and resetting while every CPU counts: nothing is seen that was not counted. */
static void busy(struct kunit *test)
{
	struct seq_file *m = seq_alloc(test, 8192);
	struct task_struct *tasks[8] = { };
	unsigned int i, round, nr = 0;
	const char *wrong = NULL;
	struct rail_hist hist;
	u64 before, after;
	int cpu;

	for_each_online_cpu(cpu) {
		struct task_struct *task;

		if (nr == ARRAY_SIZE(tasks))
			break;
		task = kthread_create_on_cpu(count_on, NULL, cpu, "rail_stats/%u");
		if (IS_ERR(task))
			break;
		tasks[nr++] = task;
		wake_up_process(task);
	}

	before = 0;
	for (round = 0; !wrong && round < 2000; round++) {
		after = rail_stats_read(&set, READS);
		if (after < before)
			wrong = "a counter went back";
		before = after;
		rail_hist_read(&set, READ_NS, &hist);
		if (hist.bucket[10] != rail_hist_count(&hist) ||
		    rail_hist_percentile(&hist, 500) != (hist.bucket[10] ? 1023 : 0))
			wrong = "a value is in a bucket where none belongs";
	}
	for (round = 0; !wrong && round < 500; round++) {
		rail_stats_reset(&set);
		if (rail_stats_read(&set, WRITES_FAILED) & U32_MAX)
			wrong = "a counter is not the sum of what was added";
		print_into(m, rail_stats_show_text);
		print_into(m, rail_stats_show_json);
		cond_resched();
	}

	for (i = 0; i < nr; i++)
		kthread_stop(tasks[i]);
	KUNIT_EXPECT_NULL_MSG(test, wrong, "%s", wrong);
	KUNIT_EXPECT_GT(test, nr, 0);
	KUNIT_EXPECT_GT(test, before, 0);
	rail_stats_reset(&set);
	KUNIT_EXPECT_EQ(test, rail_stats_read(&set, READS), 0);
}

static void fill(void)
{
	unsigned int i;

	rail_stats_inc(&set, READS);
	rail_stats_add(&set, WRITES_FAILED, U64_MAX);
	for (i = 0; i < 90; i++)
		rail_hist_record(&set, READ_NS, 600);
	for (i = 0; i < 9; i++)
		rail_hist_record(&set, READ_NS, 5000);
	rail_hist_record(&set, READ_NS, 1ULL << 50);
}

static void text(struct kunit *test)
{
	static const char * const empty[] = {
		"reads                            0\n",
		"writes_failed                    0\n",
		"read_ns: count=0\n",
		"chain_wrs: count=0\n",
		NULL
	};
	static const char * const full[] = {
		"reads                            1\n",
		"writes_failed 18446744073709551615\n",
		"read_ns: count=100 mean=11258999069416 p50=1023 p90=1023 p99=8191",
		" p99.9>=549755813888 max>=549755813888\n",
		"           512 ..         1023                   90\n",
		"          4096 ..         8191                    9\n",
		"  549755813888 ..                                 1\n",
		"chain_wrs: count=1 mean=0 p50=0 p90=0 p99=0 p99.9=0 max=0\n",
		"             0 ..            0                    1\n",
		NULL
	};
	struct seq_file *m = seq_alloc(test, 4096);

	print_into(m, rail_stats_show_text);
	expect_output(test, m, empty);
	fill();
	rail_hist_record(&set, CHAIN_WRS, 0);
	print_into(m, rail_stats_show_text);
	expect_output(test, m, full);
}

static void json(struct kunit *test)
{
	static const char * const empty[] = {
		"{\"counters\":{\"reads\":0,\"writes_failed\":0},\"histograms\":{",
		"\"read_ns\":{\"count\":0,\"sum\":0,\"p50\":0,\"p90\":0,\"p99\":0,\"p999\":0,",
		"\"buckets\":[]},",
		"\"chain_wrs\":{\"count\":0,\"sum\":0,\"p50\":0,\"p90\":0,\"p99\":0,\"p999\":0,",
		"\"buckets\":[]}}}\n",
		NULL
	};
	static const char * const full[] = {
		"{\"counters\":{\"reads\":1,\"writes_failed\":18446744073709551615},",
		"\"histograms\":{\"read_ns\":{\"count\":100,\"sum\":1125899906941624,",
		"\"p50\":1023,\"p90\":1023,\"p99\":8191,\"p999\":18446744073709551615,",
		"\"buckets\":[[512,90],[4096,9],[549755813888,1]]},",
		"\"chain_wrs\":{\"count\":0,\"sum\":0,\"p50\":0,\"p90\":0,\"p99\":0,\"p999\":0,",
		"\"buckets\":[]}}}\n",
		NULL
	};
	struct seq_file *m = seq_alloc(test, 4096);

	print_into(m, rail_stats_show_json);
	expect_output(test, m, empty);
	fill();
	print_into(m, rail_stats_show_json);
	expect_output(test, m, full);
}

/* A buffer too short is what makes seq_file come again with a larger one. */
static void overflow(struct kunit *test)
{
	struct seq_file *m = seq_alloc(test, 64);

	fill();
	print_into(m, rail_stats_show_text);
	KUNIT_EXPECT_TRUE(test, seq_has_overflowed(m));
	print_into(m, rail_stats_show_json);
	KUNIT_EXPECT_TRUE(test, seq_has_overflowed(m));
}

static void sets_of_one_kind(struct kunit *test)
{
	const struct rail_stats_desc none = { .name = "none" };
	const struct rail_stats_desc count = { .name = "count", .nr_counters = NR_COUNTERS,
					       .counters = counters };
	const struct rail_stats_desc hist = { .name = "hist", .nr_hists = NR_HISTS,
					      .hists = hists };
	struct seq_file *m = seq_alloc(test, 4096);

	rail_stats_destroy(&set);
	KUNIT_ASSERT_EQ(test, rail_stats_init(&set, &none, ERR_PTR(-ENODEV)), 0);
	KUNIT_EXPECT_PTR_EQ(test, (__force void *)set.count, NULL);
	KUNIT_EXPECT_PTR_EQ(test, (__force void *)set.hist, NULL);
	rail_stats_reset(&set);
	print_into(m, rail_stats_show_text);
	KUNIT_EXPECT_STREQ(test, m->buf, "");
	print_into(m, rail_stats_show_json);
	KUNIT_EXPECT_STREQ(test, m->buf, "{\"counters\":{},\"histograms\":{}}\n");
	rail_stats_destroy(&set);

	KUNIT_ASSERT_EQ(test, rail_stats_init(&set, &count, NULL), 0);
	KUNIT_EXPECT_PTR_EQ(test, (__force void *)set.hist, NULL);
	rail_stats_inc(&set, WRITES_FAILED);
	print_into(m, rail_stats_show_json);
	KUNIT_EXPECT_STREQ(test, m->buf,
			   "{\"counters\":{\"reads\":0,\"writes_failed\":1},\"histograms\":{}}\n");
	rail_stats_reset(&set);
	KUNIT_EXPECT_EQ(test, rail_stats_read(&set, WRITES_FAILED), 0);
	rail_stats_destroy(&set);

	KUNIT_ASSERT_EQ(test, rail_stats_init(&set, &hist, NULL), 0);
	KUNIT_EXPECT_PTR_EQ(test, (__force void *)set.count, NULL);
	rail_hist_record(&set, CHAIN_WRS, 1);
	rail_stats_reset(&set);
	print_into(m, rail_stats_show_text);
	KUNIT_EXPECT_STREQ(test, m->buf, "read_ns: count=0\nchain_wrs: count=0\n");
	rail_stats_destroy(&set);
	/* Once more does nothing, and set_exit() does it a third time. */
	rail_stats_destroy(&set);
}

static void bad_names(struct kunit *test)
{
	static const char * const bad[] = { NULL, "", "a b", "a\"b", "a\\b", "a\nb", "a/b", "a.b",
					    "\xe4", "a%sb" };
	static const char thirty_one[] = "0123456789012345678901234567890";
	static const char thirty_two[] = "01234567890123456789012345678901";
	static const char * const dash = "a-b";
	struct rail_stats_desc d;
	struct rail_stats stats;
	const char *names[3];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		d = (struct rail_stats_desc){ .name = bad[i] };
		KUNIT_EXPECT_EQ(test, rail_stats_init(&stats, &d, NULL), -EINVAL);
		rail_stats_destroy(&stats);

		names[0] = "good";
		names[1] = "GOOD_9";
		names[2] = bad[i];
		d = (struct rail_stats_desc){ .name = "a", .nr_counters = 3, .counters = names };
		KUNIT_EXPECT_EQ(test, rail_stats_init(&stats, &d, NULL), -EINVAL);
		d = (struct rail_stats_desc){ .name = "a", .nr_hists = 3, .hists = names };
		KUNIT_EXPECT_EQ(test, rail_stats_init(&stats, &d, NULL), -EINVAL);
	}
	d = (struct rail_stats_desc){ .name = "a", .nr_counters = 1, .counters = &dash };
	KUNIT_EXPECT_EQ(test, rail_stats_init(&stats, &d, NULL), -EINVAL);
	d = (struct rail_stats_desc){ .name = thirty_two };
	KUNIT_EXPECT_EQ(test, rail_stats_init(&stats, &d, NULL), -EINVAL);
	d = (struct rail_stats_desc){ .name = thirty_one };
	KUNIT_EXPECT_EQ(test, rail_stats_init(&stats, &d, NULL), 0);
	rail_stats_destroy(&stats);
}

static bool is_there(const char *name, struct dentry *dir)
{
	struct dentry *file = debugfs_lookup(name, dir);

	dput(file);
	return file;
}

static void files(struct kunit *test)
{
	struct dentry *dir = debugfs_create_dir("rail_stats_kunit", NULL);
	struct rail_stats twin;

	if (IS_ERR(dir))
		kunit_skip(test, "needs debugfs");

	KUNIT_EXPECT_PTR_EQ(test, set.text, NULL);
	KUNIT_EXPECT_PTR_EQ(test, set.json, NULL);
	rail_stats_destroy(&set);
	KUNIT_EXPECT_EQ(test, rail_stats_init(&set, &desc, dir), 0);
	KUNIT_EXPECT_TRUE(test, is_there("kunit-set_1", dir));
	KUNIT_EXPECT_TRUE(test, is_there("kunit-set_1.json", dir));

	/* A name taken is no error, and leaves the files to whom they belong. */
	KUNIT_EXPECT_EQ(test, rail_stats_init(&twin, &desc, dir), 0);
	KUNIT_EXPECT_PTR_EQ(test, twin.text, NULL);
	KUNIT_EXPECT_PTR_EQ(test, twin.json, NULL);
	rail_stats_inc(&twin, READS);
	KUNIT_EXPECT_EQ(test, rail_stats_read(&twin, READS), 1);
	rail_stats_destroy(&twin);
	KUNIT_EXPECT_TRUE(test, is_there("kunit-set_1", dir));
	KUNIT_EXPECT_TRUE(test, is_there("kunit-set_1.json", dir));

	rail_stats_destroy(&set);
	KUNIT_EXPECT_FALSE(test, is_there("kunit-set_1", dir));
	KUNIT_EXPECT_FALSE(test, is_there("kunit-set_1.json", dir));
	debugfs_remove(dir);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(hist_buckets),
	KUNIT_CASE(hist_record),
	KUNIT_CASE(percentile_model),
	KUNIT_CASE(percentile_edges),
	KUNIT_CASE(every_cpu),
	KUNIT_CASE_SLOW(busy),
	KUNIT_CASE(text),
	KUNIT_CASE(json),
	KUNIT_CASE(overflow),
	KUNIT_CASE(sets_of_one_kind),
	KUNIT_CASE(bad_names),
	KUNIT_CASE(files),
	{ }
};

static struct kunit_suite suite = {
	.name = "rail_stats",
	.init = set_init,
	.exit = set_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("RAIL: KUnit tests of counters and histograms");
MODULE_LICENSE("GPL");
