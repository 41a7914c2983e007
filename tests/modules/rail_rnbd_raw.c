// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client of an RNBD server that sends what it is told to, sense or nonsense, over RTRS.
 *
 * /sys/kernel/debug/rail_rnbd_raw/control takes, with the server's errno as that of the write:
 *
 *	open SESSNAME ADDRESS	a session
 *	read LEN HEX		an RTRS read of LEN bytes with HEX as its user header
 *	write LEN HEX		a write of LEN bytes of 0xa5
 *	close
 *
 * ADDRESS is as in "ip:192.0.2.1". /sys/kernel/debug/rail_rnbd_raw/data has what the last read got.
 */
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>

#include <rail/addr.h>
#include <rail/compat.h>
#include <rail/rtrs.h>

#define DATA_MAX	4096
#define FILL		0xa5

static struct dentry *raw_dir;
/* All of the below, one command at a time. */
static DEFINE_MUTEX(raw_lock);
static struct rail_clt *raw_clt;
static u8 *raw_data;

/**
 * struct raw_io - a request
 * @io: RTRS's
 * @done: completed when it is over
 * @error: what came of it
 * @sg: raw_data
 * @usr: user header
 */
struct raw_io {
	struct rail_clt_io io;
	struct completion done;
	int error;
	struct scatterlist sg;
	u8 usr[RAIL_CLT_USR_MAX];
};

static void raw_fill(struct rail_clt_io *io, void *usr)
{
	memcpy(usr, container_of(io, struct raw_io, io)->usr, io->usr_len);
}

static void raw_done(struct rail_clt_io *io, int error)
{
	struct raw_io *raw = container_of(io, struct raw_io, io);

	raw->error = error;
	complete(&raw->done);
}

static int raw_send(enum dma_data_direction dir, unsigned int len, const char *hex)
{
	size_t usr_len = strlen(hex) / 2;
	struct rail_clt_permit *permit;
	struct raw_io *raw;
	int error = -EINVAL;

	if (!raw_clt)
		return -ENOTCONN;
	if (len > DATA_MAX || usr_len > rail_clt_limits(raw_clt)->max_usr_len)
		return -E2BIG;
	raw = kzalloc(sizeof(*raw), GFP_KERNEL);
	if (!raw)
		return -ENOMEM;
	if (hex2bin(raw->usr, hex, usr_len))
		goto out;
	init_completion(&raw->done);
	raw->io.dir = dir;
	raw->io.usr_len = usr_len;
	raw->io.fill = raw_fill;
	raw->io.done = raw_done;
	raw->io.len = len;
	if (len) {
		memset(raw_data, FILL, len);
		sg_init_one(&raw->sg, raw_data, len);
		raw->io.sg = &raw->sg;
		raw->io.nents = 1;
	}
	permit = rail_clt_permit_get(raw_clt, RAIL_CLT_ADMIN | RAIL_CLT_WAIT);
	rail_clt_submit(permit, &raw->io);
	wait_for_completion(&raw->done);
	rail_clt_permit_put(permit);
	error = raw->error;
out:
	kfree(raw);
	return error;
}

static int raw_open(const char *name, const char *dst)
{
	static const struct rail_clt_ops ops;
	struct rail_clt_addr addr;
	struct rail_clt_attr attr = {
		.net = &init_net,
		.name = name,
		.paths = &addr,
		.nr_paths = 1,
		.ops = &ops,
	};
	struct rail_clt *clt;
	int error;

	if (raw_clt)
		return -EISCONN;
	error = rail_path_parse(&init_net, dst, strlen(dst), RAIL_RTRS_PORT, &addr.src, &addr.dst);
	if (error)
		return error;
	clt = rail_clt_open(&attr);
	if (IS_ERR(clt))
		return PTR_ERR(clt);
	raw_clt = clt;
	return 0;
}

static void raw_close(void)
{
	if (raw_clt)
		rail_clt_close(raw_clt);
	raw_clt = NULL;
}

static int raw_command(char *text)
{
	char *word = strsep(&text, " "), *first = strsep(&text, " ");
	unsigned int len;

	if (!strcmp(word, "close")) {
		raw_close();
		return 0;
	}
	if (!first || !text)
		return -EINVAL;
	if (!strcmp(word, "open"))
		return raw_open(first, text);
	if (kstrtouint(first, 0, &len))
		return -EINVAL;
	if (!strcmp(word, "read"))
		return raw_send(DMA_FROM_DEVICE, len, text);
	if (!strcmp(word, "write"))
		return raw_send(DMA_TO_DEVICE, len, text);
	return -EINVAL;
}

static ssize_t control_write(struct file *file, const char __user *buf, size_t count, loff_t *pos)
{
	char *text;
	int error;

	text = memdup_user_nul(buf, min_t(size_t, count, PAGE_SIZE));
	if (IS_ERR(text))
		return PTR_ERR(text);
	mutex_lock(&raw_lock);
	error = raw_command(strim(text));
	mutex_unlock(&raw_lock);
	kfree(text);
	return error ?: count;
}

static ssize_t data_read(struct file *file, char __user *buf, size_t count, loff_t *pos)
{
	return simple_read_from_buffer(buf, count, pos, raw_data, DATA_MAX);
}

static const struct file_operations control_fops = {
	.owner	= THIS_MODULE,
	.write	= control_write,
};

static const struct file_operations data_fops = {
	.owner	= THIS_MODULE,
	.read	= data_read,
	.llseek	= default_llseek,
};

static int __init raw_init(void)
{
	raw_data = kzalloc(DATA_MAX, GFP_KERNEL);
	if (!raw_data)
		return -ENOMEM;
	raw_dir = debugfs_create_dir("rail_rnbd_raw", NULL);
	debugfs_create_file("control", 0200, raw_dir, NULL, &control_fops);
	debugfs_create_file("data", 0400, raw_dir, NULL, &data_fops);
	return 0;
}

static void __exit raw_exit(void)
{
	debugfs_remove_recursive(raw_dir);
	raw_close();
	kfree(raw_data);
}

module_init(raw_init);
module_exit(raw_exit);

MODULE_DESCRIPTION("RAIL: sends anything to an RNBD server");
MODULE_LICENSE("GPL");
