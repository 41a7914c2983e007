// SPDX-License-Identifier: GPL-2.0-only
/*
 * Provokes, one at a time, the reports of the kernel that fail a test, so that
 * the tests of the virtual hosts can see each of them found:
 *	echo KIND >/sys/module/rail_splat/parameters/provoke
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/panic.h>
#include <linux/platform_device.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

static DEFINE_MUTEX(splat_a);
static DEFINE_MUTEX(splat_b);
static DEFINE_SPINLOCK(splat_spin);
static int __rcu *splat_rcu;

static int splat_warn(void *unused)
{
	WARN(1, "rail_splat: provoked");
	return 0;
}

static int splat_opcode(void *unused)
{
	asm volatile("ud2");
	return 0;
}

static int splat_null(void *unused)
{
	int *nowhere = NULL;

	OPTIMIZER_HIDE_VAR(nowhere);
	WRITE_ONCE(*nowhere, 1);
	return 0;
}

static int splat_gpf(void *unused)
{
	int *nowhere = (int *)0x6b6b6b6b6b6b6b6bUL;

	OPTIMIZER_HIDE_VAR(nowhere);
	WRITE_ONCE(*nowhere, 1);
	return 0;
}

static int splat_kasan(void *unused)
{
	char *p = kmalloc(20, GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	OPTIMIZER_HIDE_VAR(p);
	READ_ONCE(p[20]);
	kfree(p);
	return 0;
}

static int splat_ubsan(void *unused)
{
	union {
		u8 byte;
		bool flag;
	} value = { .byte = 2 };

	OPTIMIZER_HIDE_VAR(value.byte);
	if (value.flag)
		pr_info("an invalid bool\n");
	return 0;
}

static int splat_lockdep(void *unused)
{
	mutex_lock(&splat_a);
	mutex_lock(&splat_b);
	mutex_unlock(&splat_b);
	mutex_unlock(&splat_a);

	mutex_lock(&splat_b);
	mutex_lock(&splat_a);
	mutex_unlock(&splat_a);
	mutex_unlock(&splat_b);
	return 0;
}

static int splat_rcu_deref(void *unused)
{
	return !rcu_dereference(splat_rcu);
}

static int splat_atomic(void *unused)
{
	spin_lock(&splat_spin);
	msleep(20);
	spin_unlock(&splat_spin);
	return 0;
}

static int splat_refcount(void *unused)
{
	refcount_t count = REFCOUNT_INIT(0);

	refcount_inc(&count);
	return 0;
}

static int splat_list(void *unused)
{
	struct list_head head, entry, stray;

	INIT_LIST_HEAD(&head);
	INIT_LIST_HEAD(&stray);
	head.prev = &stray;
	list_add_tail(&entry, &head);
	return 0;
}

static int splat_dma(void *unused)
{
	struct platform_device *pdev;

	pdev = platform_device_register_simple("rail_splat", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(pdev))
		return PTR_ERR(pdev);
	if (!dma_coerce_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64)))
		dma_unmap_single(&pdev->dev, 0x1000, 64, DMA_TO_DEVICE);
	platform_device_unregister(pdev);
	return 0;
}

static void splat_timer_fn(struct timer_list *timer)
{
}

static int splat_odebug(void *unused)
{
	struct timer_list *timer = kzalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return -ENOMEM;
	timer_setup(timer, splat_timer_fn, 0);
	mod_timer(timer, jiffies + 100 * HZ);
	kfree(timer);
	return 0;
}

static int splat_hung(void *unused)
{
	schedule_timeout_uninterruptible(30 * HZ);
	return 0;
}

static int splat_leak(void *unused)
{
	int i;

	for (i = 0; i < 4; i++) {
		void *p = kmalloc(1000, GFP_KERNEL);

		OPTIMIZER_HIDE_VAR(p);
	}
	return 0;
}

static int splat_panic(void *unused)
{
	panic("rail_splat: provoked");
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void *unused);
} kinds[] = {
	{ "warn", splat_warn },
	{ "opcode", splat_opcode },
	{ "null", splat_null },
	{ "gpf", splat_gpf },
	{ "kasan", splat_kasan },
	{ "ubsan", splat_ubsan },
	{ "lockdep", splat_lockdep },
	{ "rcu", splat_rcu_deref },
	{ "atomic", splat_atomic },
	{ "refcount", splat_refcount },
	{ "list", splat_list },
	{ "dma", splat_dma },
	{ "odebug", splat_odebug },
	{ "hung", splat_hung },
	{ "leak", splat_leak },
	{ "panic", splat_panic },
};

static int splat_set(const char *value, const struct kernel_param *param)
{
	struct task_struct *task;
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!sysfs_streq(value, kinds[i].name))
			continue;
		/* A thread of its own: some of these end it, or hold it for long. */
		task = kthread_run(kinds[i].run, NULL, "splat-%s", kinds[i].name);
		return PTR_ERR_OR_ZERO(task);
	}
	return -EINVAL;
}

static const struct kernel_param_ops splat_ops = {
	.set = splat_set,
};

module_param_cb(provoke, &splat_ops, NULL, 0200);
MODULE_PARM_DESC(provoke, "kind of report to provoke");

static int __init splat_init(void)
{
	/* The threads run on in this code, so the module stays for good. */
	__module_get(THIS_MODULE);
	return 0;
}
module_init(splat_init);

MODULE_DESCRIPTION("Provokes the reports that fail a test");
MODULE_LICENSE("GPL");
