/* SPDX-License-Identifier: GPL-2.0-only */
/* For the suites that need an RDMA device: the first one that belongs to a network interface. */
#ifndef RAIL_KUNIT_RDMA_DEV_H
#define RAIL_KUNIT_RDMA_DEV_H

#include <kunit/resource.h>
#include <kunit/test.h>
#include <linux/netdevice.h>
#include <net/net_namespace.h>

#include <rail/verbs.h>

static inline struct ib_device *rdma_dev_get(void)
{
	struct ib_device *ib = NULL;
	struct net_device *ndev;

	rcu_read_lock();
	for_each_netdev_rcu(&init_net, ndev) {
		ib = ib_device_get_by_netdev(ndev, RDMA_DRIVER_UNKNOWN);
		if (ib)
			break;
	}
	rcu_read_unlock();
	return ib;
}

static inline void rdma_dev_put_pd(void *pd)
{
	rail_pd_put(pd);
}

static inline void rdma_dev_put_dev(void *dev)
{
	rail_dev_put(dev);
}

/* A device; given back when the test ends. Without one the test is skipped. */
static inline struct rail_dev *rdma_dev_find(struct kunit *test)
{
	struct ib_device *ib = rdma_dev_get();
	struct rail_dev *dev;

	if (!ib)
		kunit_skip(test, "no RDMA device on a network interface");
	dev = rail_dev_find(ib);
	ib_device_put(ib);
	KUNIT_ASSERT_NOT_NULL_MSG(test, dev, "rail_verbs does not know the RDMA device");
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, rdma_dev_put_dev, dev), 0);
	return dev;
}

/* A protection domain of the test's own; given back when the test ends. */
static inline struct rail_pd *rdma_dev_pd(struct kunit *test)
{
	struct rail_dev *dev = rdma_dev_find(test);
	struct rail_pd *pd = rail_pd_alloc(dev);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, pd);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, rdma_dev_put_pd, pd), 0);
	return pd;
}

#endif /* RAIL_KUNIT_RDMA_DEV_H */
