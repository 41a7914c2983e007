// SPDX-License-Identifier: GPL-2.0-only
/*
 * The client of the RTRS test pair; see rail_rtest.h. Commands are written to the file control in
 * debugfs:
 *
 *	open NAME paths=PATH[;PATH...] [poll=N] [timeout=S]
 *	start [jobs=N] [depth=N] [poll=1] [max=BYTES]	jobs that write, read and compare
 *	stop						and wait until all of it is answered
 *	fail ERRNO					one request that the server fails
 *	close
 *
 * A job has @depth blocks of the store to itself. On each it writes, reads back, erases or flushes,
 * one request at a time, with new content each time, in random sizes and pieces.
 */
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>
#include <rail/addr.h>
#include <rail/rtrs.h>
#include "rail_rtest.h"

#define MAX_PATHS	16
#define MAX_PAGES	(RTEST_BLOCK / PAGE_SIZE)

struct block {
	struct rail_clt_io io;
	struct rail_clt_permit *permit;
	struct job *job;
	struct completion done;
	atomic_t flying;
	int error;
	u64 index;
	u64 version;
	u32 op, off, len;	/* of the request */
	u32 have;		/* bytes of known content, from off 0 */
	u32 seed;		/* of it; 0: zeroes */
	struct page *pages[MAX_PAGES];
	struct scatterlist sg[MAX_PAGES + 1];
};

struct job {
	struct task_struct *task;
	struct block *blocks;
	struct rnd_state rnd;
};

static struct rail_clt *clt;
static struct job *jobs;
static unsigned int nr_jobs, depth, max_len;
static bool use_poll;
static u64 session;
static DEFINE_MUTEX(lock);
static struct dentry *dir;
static atomic_t ios, done_twice, mismatches, errors, last_error, links_up, links_down, hello_failed;
static atomic_t inflight, waits;

/* ---------------------------------------------------------------- requests */

static void fill(struct rail_clt_io *io, void *usr)
{
	struct block *b = container_of(io, struct block, io);
	struct rtest_hdr hdr = {
		.op = cpu_to_le32(b->op),
		.len = cpu_to_le32(b->len),
		.offset = cpu_to_le64(b->op == RTEST_FAIL ? b->off :
				      b->index * RTEST_BLOCK + b->off),
		.session = cpu_to_le64(READ_ONCE(session)),
		.version = cpu_to_le64(b->version),
	};

	memcpy(usr, &hdr, sizeof(hdr));
}

static void done(struct rail_clt_io *io, int error)
{
	struct block *b = container_of(io, struct block, io);

	if (atomic_dec_return(&b->flying))
		atomic_inc(&done_twice);
	b->error = error;
	atomic_dec(&inflight);
	atomic_inc(&ios);
	complete(&b->done);
}

static void submit(struct block *b, unsigned int flags)
{
	b->io.usr_len = sizeof(struct rtest_hdr);
	b->io.fill = fill;
	b->io.done = done;
	b->io.sg = b->sg;
	reinit_completion(&b->done);
	atomic_inc(&b->flying);
	atomic_inc(&inflight);
	b->permit = rail_clt_permit_get(clt, flags);
	if (!b->permit) {
		atomic_inc(&waits);
		b->permit = rail_clt_permit_get(clt, flags | RAIL_CLT_WAIT);
	}
	rail_clt_submit(b->permit, &b->io);
}

static void finish(struct block *b)
{
	if (b->io.queue || use_poll)
		while (!try_wait_for_completion(&b->done)) {
			if (!rail_clt_poll(clt, b->io.queue))
				usleep_range(20, 50);
		}
	else
		wait_for_completion(&b->done);
	rail_clt_permit_put(b->permit);
	b->permit = NULL;
}

/* @len bytes from @off on of the block's pages, in pieces of whole pages but for the ends. */
static void make_sg(struct block *b, struct rnd_state *rnd)
{
	u32 off = b->off, left = b->len, n = 0;

	sg_init_table(b->sg, MAX_PAGES + 1);
	while (left) {
		u32 len = min_t(u32, left, PAGE_SIZE - offset_in_page(off));

		sg_set_page(&b->sg[n++], b->pages[off / PAGE_SIZE], len, offset_in_page(off));
		off += len;
		left -= len;
	}
	if (n)
		sg_mark_end(&b->sg[n - 1]);
	b->io.nents = n;
	b->io.len = b->len;
}

static u32 pattern(u32 seed, u32 word)
{
	return seed ? seed * 2654435761U + word * 40503U : 0;
}

static void paint(struct block *b)
{
	u32 i;

	for (i = b->off; i < b->off + b->len; i += 4)
		*(u32 *)(page_address(b->pages[i / PAGE_SIZE]) + offset_in_page(i)) =
			pattern(b->seed, i);
}

static void compare(struct block *b)
{
	u32 i, have;

	for (i = b->off; i < b->off + b->len; i += 4) {
		have = *(u32 *)(page_address(b->pages[i / PAGE_SIZE]) + offset_in_page(i));
		if (have != pattern(b->seed, i)) {
			if (!atomic_fetch_inc(&mismatches))
				pr_warn("rtest: block %llu version %llu at %u: %08x, not %08x\n",
					b->index, b->version, i, have, pattern(b->seed, i));
			return;
		}
	}
}

static void begin(struct job *job, struct block *b)
{
	u32 dice = prandom_u32_state(&job->rnd) % 16;
	u32 words = max_len / 4;

	if (!b->have || dice < 7) {
		b->op = dice == 0 ? RTEST_ERASE : RTEST_WRITE;
		b->off = 0;
		b->len = prandom_u32_state(&job->rnd) % 4 ?
			 4 * (1 + prandom_u32_state(&job->rnd) % words) : max_len;
		b->have = b->len;
		b->seed = b->op == RTEST_WRITE ? prandom_u32_state(&job->rnd) | 1 : 0;
		b->version++;
	} else if (dice == 7) {
		b->op = RTEST_FLUSH;
		b->off = 0;
		b->len = 0;
	} else {
		u32 first = prandom_u32_state(&job->rnd) % (b->have / 4);

		b->op = RTEST_READ;
		b->off = 4 * first;
		b->len = 4 * (1 + prandom_u32_state(&job->rnd) % (b->have / 4 - first));
	}
	b->io.dir = b->op == RTEST_READ || b->op == RTEST_FLUSH ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	if (b->op == RTEST_WRITE) {
		paint(b);
		make_sg(b, &job->rnd);
	} else if (b->op == RTEST_READ) {
		u32 i;

		for (i = 0; i < MAX_PAGES; i++)
			memset(page_address(b->pages[i]), 0xee, PAGE_SIZE);
		make_sg(b, &job->rnd);
	} else {
		b->io.nents = 0;
		b->io.len = 0;
	}
	submit(b, use_poll ? RAIL_CLT_POLL : 0);
}

static void end(struct block *b)
{
	finish(b);
	if (b->error) {
		atomic_inc(&errors);
		atomic_set(&last_error, b->error);
		/* A write that failed may have been done or not. */
		b->have = 0;
	} else if (b->op == RTEST_READ) {
		compare(b);
	}
}

static int job_fn(void *data)
{
	struct job *job = data;
	unsigned int i;

	for (i = 0; i < depth; i++)
		begin(job, &job->blocks[i]);
	for (i = 0; !kthread_should_stop(); i = (i + 1) % depth) {
		end(&job->blocks[i]);
		begin(job, &job->blocks[i]);
		cond_resched();
	}
	for (i = 0; i < depth; i++)
		end(&job->blocks[i]);
	return 0;
}

/* ---------------------------------------------------------------- the session */

static struct block *block_alloc(u64 index)
{
	struct block *b = kvzalloc(sizeof(*b), GFP_KERNEL);

	if (b) {
		init_completion(&b->done);
		b->index = index;
	}
	return b;
}

/* An admin request: which session is this at the server? */
static int hello(void)
{
	struct block *b = block_alloc(0);
	u64 *number = kzalloc(sizeof(*number), GFP_KERNEL);
	int err = -ENOMEM;

	if (b && number) {
		b->op = RTEST_HELLO;
		b->len = sizeof(*number);
		b->io.dir = DMA_FROM_DEVICE;
		sg_init_one(b->sg, number, sizeof(*number));
		b->io.nents = 1;
		b->io.len = sizeof(*number);
		submit(b, RAIL_CLT_ADMIN);
		wait_for_completion(&b->done);
		rail_clt_permit_put(b->permit);
		err = b->error;
		if (!err)
			WRITE_ONCE(session, *number);
	}
	kfree(number);
	kvfree(b);
	return err;
}

static void link_down(void *priv)
{
	atomic_inc(&links_down);
}

static void link_up(void *priv)
{
	if (hello())
		atomic_inc(&hello_failed);
	atomic_inc(&links_up);
}

static const struct rail_clt_ops ops = {
	.link_down = link_down,
	.link_up = link_up,
};

static int option(char *word, const char *name, unsigned int *value)
{
	size_t n = strlen(name);

	if (strncmp(word, name, n) || word[n] != '=')
		return -ENOENT;
	return kstrtouint(word + n + 1, 0, value);
}

static int cmd_open(char *args)
{
	struct rail_clt_addr *paths;
	struct rail_clt_attr attr = {
		.net = &init_net,
		.no_path_timeout = -1,
		.ops = &ops,
		.place = &clt,
	};
	unsigned int timeout;
	struct rail_clt *new;
	char *word, *path;
	int err = 0;

	if (clt)
		return -EBUSY;
	paths = kcalloc(MAX_PATHS, sizeof(*paths), GFP_KERNEL);
	if (!paths)
		return -ENOMEM;
	attr.name = strsep(&args, " ");
	attr.paths = paths;
	while (!err && (word = strsep(&args, " "))) {
		if (!strncmp(word, "paths=", 6)) {
			word += 6;
			while (!err && (path = strsep(&word, ";"))) {
				err = attr.nr_paths < MAX_PATHS ? 0 : -E2BIG;
				if (!err)
					err = rail_path_parse(&init_net, path, strlen(path),
							      RAIL_RTRS_PORT,
							      &paths[attr.nr_paths].src,
							      &paths[attr.nr_paths].dst);
				attr.nr_paths++;
			}
		} else if (!option(word, "timeout", &timeout)) {
			attr.no_path_timeout = timeout;
		} else {
			err = option(word, "poll", &attr.nr_poll_queues);
		}
	}
	if (!err) {
		new = rail_clt_open(&attr);
		err = PTR_ERR_OR_ZERO(new);
	}
	kfree(paths);
	if (err)
		return err;
	clt = new;
	return hello();
}

static void free_jobs(void)
{
	unsigned int j, i, p;

	for (j = 0; j < nr_jobs; j++) {
		for (i = 0; jobs[j].blocks && i < depth; i++)
			for (p = 0; p < MAX_PAGES; p++)
				if (jobs[j].blocks[i].pages[p])
					__free_page(jobs[j].blocks[i].pages[p]);
		kvfree(jobs[j].blocks);
	}
	kfree(jobs);
	jobs = NULL;
	nr_jobs = 0;
}

static int make_job(unsigned int j)
{
	struct job *job = &jobs[j];
	unsigned int i, p;

	prandom_seed_state(&job->rnd, get_random_u64());
	job->blocks = kvcalloc(depth, sizeof(*job->blocks), GFP_KERNEL);
	if (!job->blocks)
		return -ENOMEM;
	for (i = 0; i < depth; i++) {
		struct block *b = &job->blocks[i];

		init_completion(&b->done);
		b->job = job;
		b->index = j * depth + i;
		b->version = ktime_get_real_ns();
		if (use_poll)
			b->io.queue = j % rail_clt_limits(clt)->nr_poll_queues;
		for (p = 0; p < MAX_PAGES; p++) {
			b->pages[p] = alloc_page(GFP_KERNEL);
			if (!b->pages[p])
				return -ENOMEM;
		}
	}
	return 0;
}

static int cmd_start(char *args)
{
	unsigned int j, n = 1, poll = 0;
	char *word;
	int err = 0;

	if (!clt)
		return -ENOTCONN;
	if (jobs)
		return -EBUSY;
	depth = 8;
	max_len = rail_clt_limits(clt)->max_io_size;
	while (!err && (word = strsep(&args, " ")))
		if (*word && option(word, "jobs", &n) && option(word, "depth", &depth) &&
		    option(word, "poll", &poll))
			err = option(word, "max", &max_len);
	max_len = min_t(u32, round_down(max_len, 4), rail_clt_limits(clt)->max_io_size);
	if (err || !n || !depth || !max_len || (poll && !rail_clt_limits(clt)->nr_poll_queues))
		return -EINVAL;
	use_poll = poll;
	jobs = kcalloc(n, sizeof(*jobs), GFP_KERNEL);
	if (!jobs)
		return -ENOMEM;
	nr_jobs = n;
	for (j = 0; !err && j < n; j++)
		err = make_job(j);
	if (err) {
		free_jobs();
		return err;
	}
	for (j = 0; j < n; j++) {
		jobs[j].task = kthread_create(job_fn, &jobs[j], "rtest/%u", j);
		if (!IS_ERR(jobs[j].task))
			wake_up_process(jobs[j].task);
	}
	return 0;
}

static int cmd_stop(void)
{
	unsigned int j;

	for (j = 0; j < nr_jobs; j++)
		if (!IS_ERR_OR_NULL(jobs[j].task))
			kthread_stop(jobs[j].task);
	free_jobs();
	return 0;
}

static int cmd_fail(char *args)
{
	struct block *b;
	unsigned int error;
	int err;

	if (!clt)
		return -ENOTCONN;
	err = kstrtouint(args, 0, &error);
	if (err)
		return err;
	b = block_alloc(0);
	if (!b)
		return -ENOMEM;
	b->op = RTEST_FAIL;
	b->off = error;
	b->io.dir = DMA_TO_DEVICE;
	submit(b, 0);
	wait_for_completion(&b->done);
	rail_clt_permit_put(b->permit);
	err = b->error;
	kvfree(b);
	return err;
}

static int cmd_close(void)
{
	if (!clt)
		return -ENOTCONN;
	if (jobs)
		cmd_stop();
	rail_clt_close(clt);
	clt = NULL;
	return 0;
}

static ssize_t control_write(struct file *file, const char __user *from, size_t count, loff_t *pos)
{
	char *text, *args, *cmd;
	int err;

	text = memdup_user_nul(from, count);
	if (IS_ERR(text))
		return PTR_ERR(text);
	args = strim(text);
	cmd = strsep(&args, " ");
	mutex_lock(&lock);
	if (!strcmp(cmd, "open") && args)
		err = cmd_open(args);
	else if (!strcmp(cmd, "start"))
		err = cmd_start(args);
	else if (!strcmp(cmd, "stop"))
		err = cmd_stop();
	else if (!strcmp(cmd, "fail") && args)
		err = cmd_fail(args);
	else if (!strcmp(cmd, "close"))
		err = cmd_close();
	else
		err = -EINVAL;
	mutex_unlock(&lock);
	kfree(text);
	return err ?: count;
}

static const struct file_operations control_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = control_write,
};

static int status_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "{\"ios\":%d,\"inflight\":%d,\"errors\":%d,\"last_error\":%d,\"mismatches\":%d,\"done_twice\":%d,\"links_up\":%d,\"links_down\":%d,\"hello_failed\":%d,\"permit_waits\":%d}\n",
		   atomic_read(&ios), atomic_read(&inflight), atomic_read(&errors),
		   atomic_read(&last_error), atomic_read(&mismatches), atomic_read(&done_twice),
		   atomic_read(&links_up), atomic_read(&links_down), atomic_read(&hello_failed),
		   atomic_read(&waits));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(status);

static int __init rtest_client_init(void)
{
	dir = debugfs_create_dir("rail_rtest_client", NULL);
	debugfs_create_file("control", 0200, dir, NULL, &control_fops);
	debugfs_create_file("status", 0400, dir, NULL, &status_fops);
	return 0;
}

static void __exit rtest_client_exit(void)
{
	debugfs_remove_recursive(dir);
	if (clt)
		cmd_close();
}

module_init(rtest_client_init);
module_exit(rtest_client_exit);

MODULE_DESCRIPTION("RAIL test: RTRS client");
MODULE_LICENSE("GPL");
