# SPDX-License-Identifier: GPL-2.0-only
"""Our NFS/RDMA client against the kernel's own server: data of many sizes in each version."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from nfsrig import EXPORT, Mount, NfsServer
from railvm import Cluster, Host

Hosts = Callable[..., Cluster]

pytestmark = pytest.mark.kernels("stock-6.1")

VERSIONS = ["vers=3", "vers=4.0", "vers=4.1", "vers=4.2"]
# Around the inline threshold, a page, a region, and odd ones.
SIZES = "1 3 4 100 1000 2900 3500 3900 4095 4096 4097 8191 10000 65536 100001 1048576 3000001"

WRITE = f"""
set -e
cd /mnt/nfs
for n in {SIZES}; do
    head -c $n /dev/urandom >/tmp/data.$n
    cp /tmp/data.$n data.$n
done
sync
"""

COMPARE = f"""
set -e
cd /mnt/nfs
echo 3 >/proc/sys/vm/drop_caches
for n in {SIZES}; do
    cmp /tmp/data.$n data.$n
done
"""

NAMES = """
set -e
cd /mnt/nfs
mkdir names
for i in $(seq 2000); do : >names/a-rather-long-name-of-a-file-$i; done
echo 3 >/proc/sys/vm/drop_caches
[ $(ls -l names | grep -c rather) = 2000 ]
ln -s "$(head -c 3000 /dev/zero | tr '\\0' / | sed 's,//////////,directory/,g')" link
echo 3 >/proc/sys/vm/drop_caches
[ $(readlink link | wc -c) = 3001 ]
rm -r names link
"""

# Number of a word of the "xprt: rdma" line: what mountstats(8) reads.
CONNECTS, READ_SEGS, WRITE_SEGS, REPLY_SEGS, LONG_CALLS = 3, 11, 12, 13, 21


def load(client: Host) -> None:
    client.modprobe("nfs")
    client.modprobe_rail("rpcrdma")


@contextmanager
def served(cluster: Cluster, threads: int = 4, lease: int = 0) -> Iterator[NfsServer]:
    """Our client on the first host, nfsd with the kernel's transport on the second."""
    load(cluster[0])
    server = NfsServer(cluster[1], threads=threads)
    server.start(lease=lease)
    yield server
    server.stop()
    cluster[0].rmmod("rpcrdma", "rail_verbs")


def ours(hosts: Hosts, **options: object) -> Cluster:
    return hosts(2, modules=["test", "in-tree"], **options)


def word(mount: Mount, number: int) -> int:
    return int(mount.xprt()[number])


def wait_connects(mount: Mount, more_than: int, timeout: float = 60) -> None:
    end = time.monotonic() + timeout * mount.host.factor
    while word(mount, CONNECTS) <= more_than:
        assert time.monotonic() < end, "the client did not connect again"
        time.sleep(0.5)


@pytest.mark.parametrize("version", VERSIONS)
def test_data(hosts: Hosts, version: str) -> None:
    """Files of many sizes, long directories and links come back as they went."""
    cluster = ours(hosts)
    with served(cluster) as server:
        client = cluster[0]
        mount = server.mount(client, version)
        client.run(WRITE, timeout=120)
        client.run(COMPARE, timeout=120)
        client.run(NAMES, timeout=180)
        # It was chunks that carried it.
        assert word(mount, READ_SEGS) and word(mount, WRITE_SEGS) and word(mount, REPLY_SEGS)
        there = cluster[1].run(f"cd {EXPORT}; sha256sum data.*").stdout
        here = client.run("cd /tmp; sha256sum data.*").stdout
        assert there == here
        mount.umount()


def test_ipv6(hosts: Hosts) -> None:
    cluster = ours(hosts)
    with served(cluster) as server:
        cluster[1].run("echo rdma6 20049 >/proc/fs/nfsd/portlist", check=False)
        mount = server.mount(cluster[0], "vers=4.2", v6=True)
        cluster[0].run(WRITE, timeout=120)
        cluster[0].run(COMPARE, timeout=120)
        mount.umount()
