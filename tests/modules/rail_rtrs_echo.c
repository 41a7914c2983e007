// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test user of both ends of RTRS: the server keeps a store of bytes in memory, the client writes
 * patterns to it and reads them back. One module has both, to be driven through debugfs,
 * rail_rtrs_echo/:
 *
 *	control		a command a write; returns when it is done, with its errno
 *	  serve [port=N] [delay=MS] [refuse=ERRNO]	start the server
 *	  delay MS	replies come that late, or half of that, in any order
 *	  unserve
 *	  open NAME PATH[,PATH...] [poll=N] [timeout=S]	open a session; a path is src@dst or dst
 *	  run count=N [depth=N] [size=BYTES] [seed=N]	so many requests by each of depth workers
 *	  fail ERRNO		one request that the server answers with that
 *	  info			admin request; checks the answer
 *	  stop			ends a run early
 *	  close
 *	status		numbers as JSON
 */
#include <linux/completion.h>
#include <linux/crc32c.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <net/net_namespace.h>

#include <rail/addr.h>
#include <rail/rtrs.h>

MODULE_DESCRIPTION("RAIL: test user of RTRS");
MODULE_LICENSE("GPL");
MODULE_VERSION(RAIL_VERSION);

#define ECHO_MAGIC	0x4f484345
#define ECHO_STORE	(16U << 20)
#define ECHO_MAX_DEPTH	64
#define ECHO_MAX_PATHS	8

enum echo_op {
	ECHO_INFO,
	ECHO_WRITE,
	ECHO_READ,
	ECHO_FAIL,
	ECHO_FLUSH,
};

/* User header. */
struct echo_hdr {
	__le32 magic;
	__le32 op;
	__le32 at;
	__le32 len;
	__le32 data_crc;
	__le32 serial;
	__le32 crc;
};

struct echo_info {
	__le32 magic;
	__le32 store;
	__le32 sessions;
};

enum echo_stat {
	ECHO_SRV_REQUESTS,
	ECHO_SRV_BAD_HEADER,
	ECHO_SRV_BAD_DATA,
	ECHO_SRV_BAD_ORDER,
	ECHO_SRV_UP,
	ECHO_SRV_DOWN,
	ECHO_CLT_WRITES,
	ECHO_CLT_READS,
	ECHO_CLT_ERRORS,
	ECHO_CLT_BAD_DATA,
	ECHO_CLT_DONE_TWICE,
	ECHO_CLT_LINK_UP,
	ECHO_CLT_LINK_DOWN,
	ECHO_NR_STATS,
};

static const char * const echo_stat_names[ECHO_NR_STATS] = {
	"srv_requests", "srv_bad_header", "srv_bad_data", "srv_bad_order", "srv_up", "srv_down",
	"clt_writes", "clt_reads", "clt_errors", "clt_bad_data", "clt_done_twice", "clt_link_up",
	"clt_link_down",
};

static atomic64_t echo_stats[ECHO_NR_STATS];
static struct dentry *echo_dir;
/* One command at a time, but for stop. */
static DEFINE_MUTEX(echo_lock);

static void echo_count(enum echo_stat stat)
{
	atomic64_inc(&echo_stats[stat]);
}

static void echo_seal(struct echo_hdr *hdr)
{
	hdr->crc = cpu_to_le32(crc32c(~0, hdr, offsetof(struct echo_hdr, crc)));
}

/* ---------------------------------------------------------------- server */

/**
 * struct echo_reply - a reply that comes later
 * @work: gives it
 * @req: to what
 * @error: what
 */
struct echo_reply {
	struct delayed_work work;
	struct rail_srv_req *req;
	int error;
};

static struct rail_srv *echo_srv;
static u8 *echo_store;
static struct workqueue_struct *echo_wq;
static unsigned int echo_delay;
static int echo_refuse;
static atomic_t echo_sessions;

/* Between a session's first use and its end; the API promises that nothing is outside. */
struct echo_sess {
	atomic_t outstanding;
	DECLARE_BITMAP(ids, 65536);
};

static void echo_answer(struct rail_srv_req *req, int error)
{
	struct echo_sess *es = rail_srv_sess_priv(req->sess);

	atomic_dec(&es->outstanding);
	if (!test_and_clear_bit(req->id, es->ids))
		echo_count(ECHO_SRV_BAD_ORDER);
	rail_srv_reply(req, error);
}

static void echo_reply_work(struct work_struct *work)
{
	struct echo_reply *reply = container_of(to_delayed_work(work), struct echo_reply, work);

	echo_answer(reply->req, reply->error);
	kfree(reply);
}

static void echo_reply(struct rail_srv_req *req, int error)
{
	unsigned int delay = READ_ONCE(echo_delay);
	struct echo_reply *reply = NULL;

	if (delay)
		reply = kmalloc(sizeof(*reply), GFP_KERNEL);
	if (!reply) {
		echo_answer(req, error);
		return;
	}
	reply->req = req;
	reply->error = error;
	INIT_DELAYED_WORK(&reply->work, echo_reply_work);
	queue_delayed_work(echo_wq, &reply->work,
			   msecs_to_jiffies(delay / 2 + get_random_u32() % (delay / 2 + 1)));
}

static void echo_copy(struct rail_srv_req *req, u8 *store, bool to_store)
{
	u32 i, n, left = req->data_len;

	for (i = 0; i < req->nr_data && left; i++) {
		u8 *piece = page_address(req->data[i].bv_page) + req->data[i].bv_offset;

		n = min(left, req->data[i].bv_len);
		memcpy(to_store ? store : piece, to_store ? piece : store, n);
		store += n;
		left -= n;
	}
	if (left)
		echo_count(ECHO_SRV_BAD_HEADER);
}

static bool echo_hdr_good(const struct rail_srv_req *req, struct echo_hdr *hdr)
{
	u32 at, len;

	if (req->usr_len != sizeof(*hdr))
		return false;
	memcpy(hdr, req->usr, sizeof(*hdr));
	at = le32_to_cpu(hdr->at);
	len = le32_to_cpu(hdr->len);
	return hdr->magic == cpu_to_le32(ECHO_MAGIC) && len == req->data_len && at <= ECHO_STORE &&
	       len <= ECHO_STORE - at &&
	       hdr->crc == cpu_to_le32(crc32c(~0, hdr, offsetof(struct echo_hdr, crc)));
}

static int echo_do(struct rail_srv_req *req, const struct echo_hdr *hdr)
{
	bool write = req->dir == DMA_FROM_DEVICE;
	u8 *store = echo_store + le32_to_cpu(hdr->at);
	struct echo_info info = {
		.magic = cpu_to_le32(ECHO_MAGIC),
		.store = cpu_to_le32(ECHO_STORE),
		.sessions = cpu_to_le32(atomic_read(&echo_sessions)),
	};

	switch (le32_to_cpu(hdr->op)) {
	case ECHO_INFO:
		return req->admin ? rail_srv_req_put_data(req, &info, sizeof(info)) : -EPERM;
	case ECHO_WRITE:
		if (!write)
			return -EBADMSG;
		echo_copy(req, store, true);
		if (crc32c(~0, store, req->data_len) != le32_to_cpu(hdr->data_crc))
			echo_count(ECHO_SRV_BAD_DATA);
		return 0;
	case ECHO_READ:
		if (write)
			return -EBADMSG;
		echo_copy(req, store, false);
		return 0;
	case ECHO_FLUSH:
		return write || req->data_len ? -EBADMSG : 0;
	case ECHO_FAIL:
		return -(int)le32_to_cpu(hdr->serial);
	default:
		return -EOPNOTSUPP;
	}
}

static void echo_request(struct rail_srv_sess *sess, struct rail_srv_req *req)
{
	struct echo_sess *es = rail_srv_sess_priv(sess);
	struct echo_hdr hdr;
	int err = -EBADMSG;

	echo_count(ECHO_SRV_REQUESTS);
	atomic_inc(&es->outstanding);
	if (req->id >= rail_srv_sess_queue_depth(sess) || test_and_set_bit(req->id, es->ids))
		echo_count(ECHO_SRV_BAD_ORDER);
	if (echo_hdr_good(req, &hdr))
		err = echo_do(req, &hdr);
	else
		echo_count(ECHO_SRV_BAD_HEADER);
	echo_reply(req, err);
}

static int echo_sess_up(void *context, struct rail_srv_sess *sess)
{
	struct echo_sess *es;

	if (READ_ONCE(echo_refuse))
		return -echo_refuse;
	es = kvzalloc(sizeof(*es), GFP_KERNEL);
	if (!es)
		return -ENOMEM;
	rail_srv_sess_set_priv(sess, es);
	atomic_inc(&echo_sessions);
	echo_count(ECHO_SRV_UP);
	return 0;
}

static void echo_sess_down(void *context, struct rail_srv_sess *sess)
{
	struct echo_sess *es = rail_srv_sess_priv(sess);

	if (atomic_read(&es->outstanding))
		echo_count(ECHO_SRV_BAD_ORDER);
	kvfree(es);
	atomic_dec(&echo_sessions);
	echo_count(ECHO_SRV_DOWN);
}

static const struct rail_srv_ops echo_srv_ops = {
	.sess_up = echo_sess_up,
	.sess_down = echo_sess_down,
	.request = echo_request,
};

static int echo_serve(u16 port)
{
	struct rail_srv_attr attr = {
		.net = &init_net,
		.port = port,
		.usr_max = 256,
		.ops = &echo_srv_ops,
	};
	struct rail_srv *srv;

	if (echo_srv)
		return -EBUSY;
	if (!echo_store)
		echo_store = vzalloc(ECHO_STORE);
	if (!echo_store)
		return -ENOMEM;
	srv = rail_srv_open(&attr);
	if (IS_ERR(srv))
		return PTR_ERR(srv);
	echo_srv = srv;
	return 0;
}

static int echo_unserve(void)
{
	if (!echo_srv)
		return -ENOENT;
	rail_srv_close(echo_srv);
	echo_srv = NULL;
	return 0;
}

/* ---------------------------------------------------------------- client */

/**
 * struct echo_worker - one request after the other, over a part of the store of its own
 * @io: the request
 * @hdr: its header
 * @done: it is over
 * @error: how
 * @over: times it was told of; 1 when it is over
 * @buf: memory, one allocation a page
 * @want: what there has to be
 * @sg: over @buf
 * @at: its part of the store
 * @size: how large
 * @count: requests to make
 * @seed: of its numbers
 * @task: the thread
 * @finished: the thread is
 */
struct echo_worker {
	struct rail_clt_io io;
	struct echo_hdr hdr;
	struct completion done;
	int error;
	atomic_t over;
	u8 *buf;
	u8 *want;
	struct scatterlist *sg;
	u32 at;
	u32 size;
	u32 count;
	u32 seed;
	struct task_struct *task;
	struct completion finished;
};

static struct rail_clt *echo_clt;
static bool echo_stopping;

static void echo_link_up(void *priv)
{
	echo_count(ECHO_CLT_LINK_UP);
}

static void echo_link_down(void *priv)
{
	echo_count(ECHO_CLT_LINK_DOWN);
}

static const struct rail_clt_ops echo_clt_ops = {
	.link_up = echo_link_up,
	.link_down = echo_link_down,
};

static void echo_fill(struct rail_clt_io *io, void *usr)
{
	memcpy(usr, &container_of(io, struct echo_worker, io)->hdr, sizeof(struct echo_hdr));
}

static void echo_done(struct rail_clt_io *io, int error)
{
	struct echo_worker *w = container_of(io, struct echo_worker, io);

	if (atomic_inc_return(&w->over) != 1)
		echo_count(ECHO_CLT_DONE_TWICE);
	w->error = error;
	complete(&w->done);
}

/* The worker's memory from @off on, page by page: borders of entries are those of pages. */
static u32 echo_sg(struct echo_worker *w, u32 off, u32 len)
{
	u32 n = 0, piece;

	sg_init_table(w->sg, DIV_ROUND_UP(w->size, PAGE_SIZE) + 1);
	while (len) {
		u8 *at = w->buf + off;

		piece = min_t(u32, len, PAGE_SIZE - offset_in_page(at));
		sg_set_page(&w->sg[n++], vmalloc_to_page(at), piece, offset_in_page(at));
		off += piece;
		len -= piece;
	}
	if (n)
		sg_mark_end(&w->sg[n - 1]);
	return n;
}

static int echo_io(struct echo_worker *w, enum echo_op op, u32 off, u32 len, u32 serial,
		   unsigned int flags)
{
	bool write = op == ECHO_WRITE;
	struct rail_clt_permit *permit;

	permit = rail_clt_permit_get(echo_clt, flags | RAIL_CLT_WAIT);
	if (IS_ERR_OR_NULL(permit))
		return permit ? PTR_ERR(permit) : -EAGAIN;
	w->hdr = (struct echo_hdr) {
		.magic = cpu_to_le32(ECHO_MAGIC),
		.op = cpu_to_le32(op),
		.at = cpu_to_le32(w->at + off),
		.len = cpu_to_le32(len),
		.data_crc = cpu_to_le32(write ? crc32c(~0, w->buf + off, len) : 0),
		.serial = cpu_to_le32(serial),
	};
	echo_seal(&w->hdr);
	w->io = (struct rail_clt_io) {
		.dir = write ? DMA_TO_DEVICE : DMA_FROM_DEVICE,
		.usr_len = sizeof(w->hdr),
		.sg = w->sg,
		.nents = echo_sg(w, off, len),
		.len = len,
		.fill = echo_fill,
		.done = echo_done,
	};
	atomic_set(&w->over, 0);
	reinit_completion(&w->done);
	rail_clt_submit(permit, &w->io);
	wait_for_completion(&w->done);
	rail_clt_permit_put(permit);
	return w->error;
}

static u32 echo_random(u32 *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* One round: write somewhere, read something that was written once, compare. */
static int echo_round(struct echo_worker *w, u32 i)
{
	u32 len = echo_random(&w->seed) % w->size + 1;
	u32 off = echo_random(&w->seed) % (w->size - len + 1);
	u32 j;
	int err;

	/* Now and then what block devices do. */
	if (i % 2) {
		len = ALIGN(len, 512);
		off = 0;
		len = min(len, w->size);
	}
	for (j = 0; j < len; j++)
		w->buf[off + j] = echo_random(&w->seed);
	memcpy(w->want + off, w->buf + off, len);
	err = echo_io(w, ECHO_WRITE, off, len, i, 0);
	if (err)
		return err;
	echo_count(ECHO_CLT_WRITES);
	memset(w->buf, 0x5a, w->size);
	len = echo_random(&w->seed) % w->size + 1;
	off = echo_random(&w->seed) % (w->size - len + 1);
	err = echo_io(w, ECHO_READ, off, len, i, 0);
	if (err)
		return err;
	echo_count(ECHO_CLT_READS);
	if (memcmp(w->buf + off, w->want + off, len)) {
		echo_count(ECHO_CLT_BAD_DATA);
		pr_err("rail_rtrs_echo: at %u, round %u: %u bytes from %u differ\n", w->at, i, len,
		       off);
	}
	if (i % 16 == 15)
		err = echo_io(w, ECHO_FLUSH, 0, 0, i, 0);
	return err;
}

static int echo_work(void *data)
{
	struct echo_worker *w = data;
	int err;
	u32 i;

	/* What is in the store from earlier runs is not ours to know. */
	memset(w->buf, 0, w->size);
	err = echo_io(w, ECHO_WRITE, 0, w->size, 0, 0);
	for (i = 0; !err && i < w->count && !READ_ONCE(echo_stopping); i++)
		err = echo_round(w, i);
	if (err) {
		echo_count(ECHO_CLT_ERRORS);
		pr_info("rail_rtrs_echo: worker at %u ends with %pe\n", w->at, ERR_PTR(err));
	}
	w->error = err;
	complete(&w->finished);
	return 0;
}

static void echo_worker_free(struct echo_worker *w)
{
	vfree(w->buf);
	vfree(w->want);
	kvfree(w->sg);
	kfree(w);
}

static struct echo_worker *echo_worker_make(u32 size)
{
	struct echo_worker *w = kzalloc(sizeof(*w), GFP_KERNEL);

	if (!w)
		return NULL;
	init_completion(&w->done);
	init_completion(&w->finished);
	w->size = size;
	w->buf = vzalloc(size);
	w->want = vzalloc(size);
	w->sg = kvcalloc(DIV_ROUND_UP(size, PAGE_SIZE) + 1, sizeof(*w->sg), GFP_KERNEL);
	if (w->buf && w->want && w->sg)
		return w;
	echo_worker_free(w);
	return NULL;
}

static int echo_run(u32 count, u32 depth, u32 size, u32 seed)
{
	struct echo_worker *workers[ECHO_MAX_DEPTH] = {};
	u32 i, started = 0;
	int err = 0;

	if (!echo_clt)
		return -ENOTCONN;
	if (!size)
		size = rail_clt_limits(echo_clt)->max_io_size;
	if (!depth || depth > ECHO_MAX_DEPTH || (u64)size * depth > ECHO_STORE ||
	    size > rail_clt_limits(echo_clt)->max_io_size)
		return -EINVAL;
	WRITE_ONCE(echo_stopping, false);
	for (i = 0; i < depth && !err; i++) {
		struct echo_worker *w = echo_worker_make(size);

		workers[i] = w;
		if (!w) {
			err = -ENOMEM;
			break;
		}
		w->at = i * size;
		w->count = count;
		w->seed = seed + i * 7919;
		w->task = kthread_run(echo_work, w, "rtrs_echo/%u", i);
		if (IS_ERR(w->task))
			err = PTR_ERR(w->task);
		else
			started++;
	}
	for (i = 0; i < depth && workers[i]; i++) {
		if (i < started) {
			wait_for_completion(&workers[i]->finished);
			err = err ?: workers[i]->error;
		}
		echo_worker_free(workers[i]);
	}
	return err;
}

static int echo_info(void)
{
	struct echo_worker *w = echo_worker_make(PAGE_SIZE);
	struct echo_info info;
	int err;

	if (!w)
		return -ENOMEM;
	memset(w->buf, 0x5a, PAGE_SIZE);
	/* More than there is: the rest has to be zeroes. */
	err = echo_io(w, ECHO_INFO, 0, 100, 0, RAIL_CLT_ADMIN);
	if (!err) {
		memcpy(&info, w->buf, sizeof(info));
		if (info.magic != cpu_to_le32(ECHO_MAGIC) ||
		    info.store != cpu_to_le32(ECHO_STORE) ||
		    memchr_inv(w->buf + sizeof(info), 0, 100 - sizeof(info)) ||
		    memchr_inv(w->buf + 100, 0x5a, PAGE_SIZE - 100))
			err = -EBADMSG;
	}
	echo_worker_free(w);
	return err;
}

static int echo_fail(u32 code)
{
	struct echo_worker *w = echo_worker_make(PAGE_SIZE);
	int err;

	if (!w)
		return -ENOMEM;
	err = echo_io(w, ECHO_FAIL, 0, 512, code, 0);
	echo_worker_free(w);
	return err == -(int)code ? 0 : err ?: -EBADMSG;
}

static int echo_open(const char *name, char *paths, u32 poll, int timeout)
{
	struct rail_clt_addr *addrs;
	struct rail_clt_attr attr = {
		.net = &init_net,
		.name = name,
		.nr_poll_queues = poll,
		.no_path_timeout = timeout,
		.ops = &echo_clt_ops,
	};
	struct rail_clt *clt;
	char *path;
	int err = 0;

	if (echo_clt)
		return -EBUSY;
	addrs = kcalloc(ECHO_MAX_PATHS, sizeof(*addrs), GFP_KERNEL);
	if (!addrs)
		return -ENOMEM;
	while (!err && (path = strsep(&paths, ","))) {
		if (attr.nr_paths == ECHO_MAX_PATHS) {
			err = -E2BIG;
			break;
		}
		err = rail_path_parse(attr.net, path, strlen(path), RAIL_RTRS_PORT,
				      &addrs[attr.nr_paths].src, &addrs[attr.nr_paths].dst);
		attr.nr_paths++;
	}
	attr.paths = addrs;
	if (!err) {
		clt = rail_clt_open(&attr);
		if (IS_ERR(clt))
			err = PTR_ERR(clt);
		else
			echo_clt = clt;
	}
	kfree(addrs);
	return err;
}

static int echo_close(void)
{
	if (!echo_clt)
		return -ENOENT;
	rail_clt_close(echo_clt);
	echo_clt = NULL;
	return 0;
}

/* ---------------------------------------------------------------- debugfs */

/* The value of "name=value" among the words, else @otherwise. */
static int echo_arg(char **words, int nr, const char *name, int otherwise)
{
	size_t len = strlen(name);
	int i, value;

	for (i = 1; i < nr; i++)
		if (!strncmp(words[i], name, len) && words[i][len] == '=' &&
		    !kstrtoint(words[i] + len + 1, 0, &value))
			return value;
	return otherwise;
}

static int echo_command(char *line)
{
	char *words[10], *word;
	int nr = 0, code;

	while ((word = strsep(&line, "\n ")) && nr < ARRAY_SIZE(words))
		if (*word)
			words[nr++] = word;
	if (!nr)
		return -EINVAL;
	if (!strcmp(words[0], "serve")) {
		WRITE_ONCE(echo_delay, echo_arg(words, nr, "delay", 0));
		WRITE_ONCE(echo_refuse, echo_arg(words, nr, "refuse", 0));
		return echo_serve(echo_arg(words, nr, "port", 0));
	}
	if (!strcmp(words[0], "delay") && nr == 2) {
		code = kstrtouint(words[1], 0, &echo_delay);
		return code;
	}
	if (!strcmp(words[0], "unserve"))
		return echo_unserve();
	if (!strcmp(words[0], "open") && nr >= 3)
		return echo_open(words[1], words[2], echo_arg(words, nr, "poll", 0),
				 echo_arg(words, nr, "timeout", -1));
	if (!strcmp(words[0], "run"))
		return echo_run(echo_arg(words, nr, "count", 1), echo_arg(words, nr, "depth", 1),
				echo_arg(words, nr, "size", 0), echo_arg(words, nr, "seed", 1));
	if (!strcmp(words[0], "close"))
		return echo_close();
	if (!echo_clt)
		return -ENOTCONN;
	if (!strcmp(words[0], "info"))
		return echo_info();
	if (!strcmp(words[0], "fail") && nr == 2 && !kstrtoint(words[1], 0, &code))
		return echo_fail(code);
	return -EINVAL;
}

static ssize_t echo_control_write(struct file *file, const char __user *buf, size_t len,
				  loff_t *pos)
{
	char *line;
	int err;

	if (len > 1024)
		return -E2BIG;
	line = memdup_user_nul(buf, len);
	if (IS_ERR(line))
		return PTR_ERR(line);
	if (!strncmp(line, "stop", 4)) {
		WRITE_ONCE(echo_stopping, true);
		err = 0;
	} else {
		mutex_lock(&echo_lock);
		err = echo_command(line);
		mutex_unlock(&echo_lock);
	}
	kfree(line);
	return err ?: len;
}

static const struct file_operations echo_control_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = echo_control_write,
};

static int echo_status_show(struct seq_file *m, void *unused)
{
	int i;

	seq_puts(m, "{");
	for (i = 0; i < ECHO_NR_STATS; i++)
		seq_printf(m, "\"%s\": %lld, ", echo_stat_names[i],
			   (long long)atomic64_read(&echo_stats[i]));
	seq_printf(m, "\"srv_sessions\": %d}\n", atomic_read(&echo_sessions));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(echo_status);

static int __init echo_init(void)
{
	echo_wq = alloc_workqueue("rail_rtrs_echo", WQ_UNBOUND, 0);
	if (!echo_wq)
		return -ENOMEM;
	echo_dir = debugfs_create_dir("rail_rtrs_echo", NULL);
	debugfs_create_file("control", 0600, echo_dir, NULL, &echo_control_fops);
	debugfs_create_file("status", 0400, echo_dir, NULL, &echo_status_fops);
	return 0;
}

static void __exit echo_exit(void)
{
	debugfs_remove_recursive(echo_dir);
	echo_close();
	echo_unserve();
	destroy_workqueue(echo_wq);
	vfree(echo_store);
}

module_init(echo_init);
module_exit(echo_exit);
