# SPDX-License-Identifier: GPL-2.0-only
"""NFS over our transport at both ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from nfsrig import EXPORT, Load, NfsServer, agree, unload, work
from railvm import SOAK, Cluster
from test_nfs_client import CONNECTS, READ_SEGS, REPLY_SEGS, WRITE_SEGS, wait_connects, word

pytestmark = pytest.mark.kernels("stock-6.1")
SLOW_SERVER = pytest.mark.allow_log(r"nfs: server .* (not responding|OK)")

Hosts = Callable[..., Cluster]


@contextmanager
def served(cluster: Cluster, lease: int = 0) -> Iterator[NfsServer]:
    """The client on the first host, nfsd on the second."""
    cluster[0].modprobe("nfs")
    for host in cluster:
        host.modprobe_rail("rpcrdma")
    server = NfsServer(cluster[1])
    server.start(lease=lease)
    yield server
    # Everything must be gone: then the modules can go too.
    server.stop()
    server.host.run(["rmmod", "nfsd"], timeout=60)
    unload(*cluster)


def test_data(hosts: Hosts) -> None:
    """What is written is what is there, and a delegation comes back when it is asked for."""
    cluster = hosts(2)
    with served(cluster, lease=90) as server:
        a, b = cluster
        for seed, options in enumerate(("vers=3", "vers=4.2,nconnect=2")):
            mount = server.mount(a, options, v6=bool(seed))
            agree(b, work(a, mount.where, str(seed)))
            assert word(mount, READ_SEGS) and word(mount, WRITE_SEGS) and word(mount, REPLY_SEGS)
            mount.umount()

        b.run(f"echo old >{EXPORT}/file; chmod 666 {EXPORT}/file")
        mount = server.mount(a, "vers=4.2")
        reader = server.wait_delegation(a, f"{mount.where}/file")
        b.run(f"echo new >{EXPORT}/file", timeout=30)
        mount.wait_op("DELEGRETURN", 1)
        assert a.run(["cat", f"{mount.where}/file"]).stdout == "new\n"
        assert word(mount, CONNECTS) == 1
        reader.kill()
        mount.umount()


@pytest.mark.soak
@SLOW_SERVER
@pytest.mark.timeout(300)
def test_faults(hosts: Hosts) -> None:
    """The link, either device and nfsd fail under load; the data is right, and all is freed."""
    cluster = hosts(2)
    with served(cluster) as server:
        a = cluster[0]
        mount = server.mount(a, "vers=4.1")
        running = Load(a, mount.where)
        for _ in range(10 if SOAK else 1):
            cluster.link(0).cut()
            time.sleep(5)
            cluster.link(0).restore()
            running.more()

            connects = word(mount, CONNECTS)
            a.nic(0).rdma_del()
            a.nic(0).rdma_add()
            wait_connects(mount, connects)
            running.more()

            server.kill()
            server.nfsd()
            running.more(timeout=120)

            victim = a.start(f"dd if=/dev/zero of={mount.where}/out bs=1M count=50 oflag=direct")
            time.sleep(0.3)
            victim.kill(9)
            running.more()
        running.stop()
        mount.umount()
