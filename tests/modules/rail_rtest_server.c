// SPDX-License-Identifier: GPL-2.0-only
/* The server of the RTRS test pair; see rail_rtest.h. */
#include <linux/atomic.h>
#include <linux/bvec.h>
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/uio.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <rail/rtrs.h>
#include "rail_rtest.h"

static unsigned int store_mb = 64;
module_param(store_mb, uint, 0444);
MODULE_PARM_DESC(store_mb, "size of the store, MiB");
static unsigned int delay_ms;
module_param(delay_ms, uint, 0644);
MODULE_PARM_DESC(delay_ms, "answer so much later");
static bool refuse;
module_param(refuse, bool, 0644);
MODULE_PARM_DESC(refuse, "refuse sessions with EACCES");

static u8 *store;
static u64 *versions;
static size_t store_size;
static struct rail_srv *srv;
static struct dentry *dir;
static struct workqueue_struct *wq;
static atomic_t sessions, requests, outstanding, stale, twice, old, bad;
static atomic64_t numbers;

struct work_item {
	struct delayed_work work;
	struct rail_srv_req *req;
};

struct sess {
	u64 number;
	atomic_t outstanding;
	unsigned long *busy;	/* buffer ids */
};

static void copy(struct rail_srv_req *req, u8 *mem, u32 len, bool in)
{
	struct iov_iter iter;
	size_t copied;

	/* A segment may be of several pages. */
	iov_iter_bvec(&iter, in ? WRITE : READ, req->data, req->nr_data, len);
	copied = in ? copy_from_iter(mem, len, &iter) : copy_to_iter(mem, len, &iter);
	if (copied < len)
		atomic_inc(&bad);
}

static int serve(struct sess *sess, struct rail_srv_req *req)
{
	const struct rtest_hdr *hdr = req->usr;
	u64 offset, version, number;
	u32 op, len;

	if (req->usr_len != sizeof(*hdr))
		return -EBADMSG;
	op = le32_to_cpu(hdr->op);
	len = le32_to_cpu(hdr->len);
	offset = le64_to_cpu(hdr->offset);
	version = le64_to_cpu(hdr->version);
	if (op == RTEST_HELLO) {
		number = sess->number;
		return rail_srv_req_put_data(req, &number, sizeof(number));
	}
	if (le64_to_cpu(hdr->session) != sess->number) {
		atomic_inc(&stale);
		return -ESTALE;
	}
	if (op == RTEST_FAIL)
		return -(int)offset;
	if (op == RTEST_FLUSH)
		return req->data_len ? -EINVAL : 0;
	if (offset > store_size || len > store_size - offset)
		return -ERANGE;
	if (op != RTEST_ERASE && len != req->data_len)
		return -EMSGSIZE;
	switch (op) {
	case RTEST_READ:
		copy(req, store + offset, len, false);
		return 0;
	case RTEST_WRITE:
	case RTEST_ERASE:
		/* Sent again after a failover is fine; a ghost of an older one is not. */
		if (version < versions[offset / RTEST_BLOCK])
			atomic_inc(&old);
		versions[offset / RTEST_BLOCK] = version;
		if (op == RTEST_WRITE)
			copy(req, store + offset, len, true);
		else
			memset(store + offset, 0, len);
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static void answer(struct rail_srv_req *req)
{
	struct sess *sess = rail_srv_sess_priv(req->sess);
	int err = serve(sess, req);

	clear_bit(req->id, sess->busy);
	atomic_dec(&sess->outstanding);
	atomic_dec(&outstanding);
	rail_srv_reply(req, err);
}

static void late(struct work_struct *work)
{
	struct work_item *item = container_of(to_delayed_work(work), struct work_item, work);

	answer(item->req);
	kfree(item);
}

static void on_request(struct rail_srv_sess *rail, struct rail_srv_req *req)
{
	struct sess *sess = rail_srv_sess_priv(rail);
	unsigned int delay = READ_ONCE(delay_ms);
	struct work_item *item = NULL;

	atomic_inc(&requests);
	atomic_inc(&outstanding);
	atomic_inc(&sess->outstanding);
	if (test_and_set_bit(req->id, sess->busy))
		atomic_inc(&twice);
	if (delay && !req->admin)
		item = kmalloc(sizeof(*item), GFP_KERNEL);
	if (!item) {
		answer(req);
		return;
	}
	item->req = req;
	INIT_DELAYED_WORK(&item->work, late);
	queue_delayed_work(wq, &item->work, msecs_to_jiffies(get_random_u32_below(2 * delay + 1)));
}

static int on_sess_up(void *context, struct rail_srv_sess *rail)
{
	struct sess *sess;

	if (refuse)
		return -EACCES;
	sess = kzalloc(sizeof(*sess), GFP_KERNEL);
	if (!sess)
		return -ENOMEM;
	sess->busy = bitmap_zalloc(rail_srv_sess_queue_depth(rail), GFP_KERNEL);
	if (!sess->busy) {
		kfree(sess);
		return -ENOMEM;
	}
	sess->number = atomic64_inc_return(&numbers);
	rail_srv_sess_set_priv(rail, sess);
	atomic_inc(&sessions);
	return 0;
}

static void on_sess_down(void *context, struct rail_srv_sess *rail)
{
	struct sess *sess = rail_srv_sess_priv(rail);

	if (atomic_read(&sess->outstanding))
		atomic_inc(&bad);
	bitmap_free(sess->busy);
	kfree(sess);
	atomic_dec(&sessions);
}

static const struct rail_srv_ops ops = {
	.sess_up = on_sess_up,
	.sess_down = on_sess_down,
	.request = on_request,
};

static int status_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "{\"sessions\":%d,\"requests\":%d,\"outstanding\":%d,\"stale\":%d,\"twice\":%d,\"old\":%d,\"bad\":%d,\"numbers\":%lld}\n",
		   atomic_read(&sessions), atomic_read(&requests), atomic_read(&outstanding),
		   atomic_read(&stale), atomic_read(&twice), atomic_read(&old), atomic_read(&bad),
		   atomic64_read(&numbers));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(status);

static int __init rtest_server_init(void)
{
	struct rail_srv_attr attr = {
		.net = &init_net,
		.usr_max = 512,
		.ops = &ops,
	};
	int err = -ENOMEM;

	store_size = (size_t)store_mb << 20;
	store = vzalloc(store_size);
	versions = kvcalloc(store_size / RTEST_BLOCK + 1, sizeof(*versions), GFP_KERNEL);
	wq = alloc_workqueue("rtest", WQ_UNBOUND, 0);
	if (!store || !versions || !wq)
		goto free;
	srv = rail_srv_open(&attr);
	if (IS_ERR(srv)) {
		err = PTR_ERR(srv);
		goto free;
	}
	dir = debugfs_create_dir("rail_rtest_server", NULL);
	debugfs_create_file("status", 0400, dir, NULL, &status_fops);
	return 0;

free:
	if (wq)
		destroy_workqueue(wq);
	kvfree(versions);
	vfree(store);
	return err;
}

static void __exit rtest_server_exit(void)
{
	debugfs_remove_recursive(dir);
	rail_srv_close(srv);
	destroy_workqueue(wq);
	kvfree(versions);
	vfree(store);
}

module_init(rtest_server_init);
module_exit(rtest_server_exit);

MODULE_DESCRIPTION("RAIL test: RTRS server");
MODULE_LICENSE("GPL");
