# SPDX-License-Identifier: GPL-2.0-only
"""Not in `make check` yet, for not all of them have passed: faults, reverse direction and numbers of
our NFS/RDMA client. To run: pytest tests/vm/drafts/nfs_client.py
"""

from __future__ import annotations

import re
import time

import pytest

from nfsrig import EXPORT, NfsServer
from railvm import CommandFailed
from test_nfs_client import (COMPARE, CONNECTS, LONG_CALLS, VERSIONS, WRITE, Hosts, load, ours,
                             served, wait_connects, word)

pytestmark = pytest.mark.kernels("stock-6.1", "test-7")


@pytest.mark.parametrize("inline", [1024, 65536])
def test_inline_sizes(hosts: Hosts, inline: int) -> None:
    """Small thresholds make long calls and replies, large ones gathered sends."""
    cluster = ours(hosts)
    with served(cluster) as server:
        client = cluster[0]
        for name in ("read", "write"):
            client.write(f"/proc/sys/sunrpc/rdma_max_inline_{name}", str(inline))
        mount = server.mount(client, "vers=4.2")
        client.run(WRITE, timeout=120)
        client.run(COMPARE, timeout=120)
        # The server's tmpfs has user attributes from 6.6 on.
        client.run("cd /mnt/nfs && touch x && setfattr -n user.a -v b x 2>/dev/null || exit 0\n"
                   "for i in 1 2 3; do\n"
                   "  setfattr -n user.n$i -v $(head -c 2000 /dev/zero | tr '\\0' v) x\n"
                   "done\n"
                   "echo 3 >/proc/sys/vm/drop_caches\n"
                   "[ $(getfattr -d x | tr -cd v | wc -c) -ge 6000 ]\n", timeout=60)
        if inline == 1024:
            assert word(mount, LONG_CALLS)
        mount.umount()
        for name in ("read", "write"):
            client.write(f"/proc/sys/sunrpc/rdma_max_inline_{name}", "4096")


@pytest.mark.parametrize("version", ["vers=3", "vers=4.2"])
@pytest.mark.timeout(600)
def test_fio(hosts: Hosts, version: str) -> None:
    """Many jobs at once, each verifies what it wrote; more jobs than credits."""
    cluster = ours(hosts)
    with served(cluster) as server:
        client = cluster[0]
        mount = server.mount(client, version)
        for mode in ("--direct=1", "--direct=0 --fsync_on_close=1"):
            client.run("fio --name=v --directory=/mnt/nfs --size=2m --numjobs=8 --rw=randrw "
                       "--bsrange=512-1m --ioengine=psync --verify=crc32c --verify_fatal=1 "
                       f"--bs_unaligned=0 --group_reporting {mode} --output-format=terse "
                       "&& rm -f /mnt/nfs/v.*", timeout=240)
        mount.umount()


@pytest.mark.allow_log(r"nfs: server .* not responding")
def test_link_cut(hosts: Hosts) -> None:
    """Five seconds without a link under load cost time, no data."""
    cluster = ours(hosts)
    with served(cluster) as server:
        client = cluster[0]
        mount = server.mount(client, "vers=4.2")
        work = client.start(WRITE + COMPARE)
        time.sleep(1)
        cluster.link(0).cut()
        time.sleep(5)
        cluster.link(0).restore()
        work.wait(timeout=120)
        mount.umount()


@pytest.mark.allow_log(r"nfs: server .* (not responding|OK)")
def test_silent_server(hosts: Hosts) -> None:
    """A server that stops answering at all is given up after peer_timeout, and found again."""
    cluster = ours(hosts)
    with served(cluster) as server:
        client = cluster[0]
        mount = server.mount(client, "vers=4.2")
        client.run("echo before >/mnt/nfs/file; sync")
        connects = word(mount, CONNECTS)
        mark = client.log_mark()
        cluster.link(0).cut()
        client.wait_log(r"rpcrdma: .*lost", timeout=40, since=mark)
        cluster.link(0).restore()
        assert client.run("cat /mnt/nfs/file; echo after >/mnt/nfs/file2; cat /mnt/nfs/file2",
                          timeout=120).stdout == "before\nafter\n"
        wait_connects(mount, connects)
        mount.umount()


@pytest.mark.parametrize("version", ["vers=3", "vers=4.2"])
@pytest.mark.allow_log(r"nfs: server .* (not responding|OK)")
def test_server_restart(hosts: Hosts, version: str) -> None:
    """nfsd ends under load and comes back."""
    cluster = ours(hosts)
    with served(cluster, lease=10) as server:
        client = cluster[0]
        mount = server.mount(client, version)
        work = client.start(WRITE + COMPARE)
        time.sleep(1)
        server.kill()
        time.sleep(2)
        server.nfsd()
        work.wait(timeout=200)
        assert word(mount, CONNECTS) >= 2
        mount.umount()


@pytest.mark.allow_log(r"nfs: server .* (not responding|OK)")
def test_unplug(hosts: Hosts) -> None:
    """The client's device goes under load; when one is back the mount goes on."""
    cluster = ours(hosts)
    with served(cluster) as server:
        client = cluster[0]
        mount = server.mount(client, "vers=4.1")
        for _ in range(3):
            connects = word(mount, CONNECTS)
            work = client.start(WRITE + COMPARE)
            time.sleep(0.5)
            client.nic(0).rdma_del()
            time.sleep(1)
            client.nic(0).rdma_add()
            work.wait(timeout=120)
            wait_connects(mount, connects)
        mount.umount()


def test_kill(hosts: Hosts) -> None:
    """Processes killed amid large reads and writes leave nothing behind."""
    cluster = ours(hosts)
    with served(cluster) as server:
        client = cluster[0]
        mount = server.mount(client, "vers=4.2")
        client.run("head -c 8m /dev/urandom >/mnt/nfs/big; sync")
        for i in range(10):
            work = client.start("dd if=/mnt/nfs/big of=/dev/null bs=1M iflag=direct & "
                                "dd if=/dev/zero of=/mnt/nfs/out bs=1M count=50 oflag=direct & "
                                "wait")
            time.sleep(0.2 + 0.1 * i)
            work.kill(9)
        client.run(WRITE, timeout=120)
        client.run(COMPARE, timeout=120)
        mount.umount()


@pytest.mark.allow_log(r"nfs: server .* (not responding|OK)")
def test_umount_force(hosts: Hosts) -> None:
    """umount -f under load with a server that died returns, and so does rmmod."""
    cluster = ours(hosts, fresh=True)
    load(client := cluster[0])
    server = NfsServer(cluster[1])
    server.start()
    # soft: nothing waits for ever for a server that does not come back
    mount = server.mount(client, "vers=3,soft,timeo=20,retrans=1")
    work = client.start("dd if=/dev/zero of=/mnt/nfs/out bs=1M count=200 oflag=direct")
    time.sleep(1)
    cluster[1].kill()
    time.sleep(1)
    work.kill(9)
    for _ in range(20):
        if client.run(["umount", "-f", mount.where], check=False, timeout=60).status == 0:
            break
        time.sleep(0.5)
    else:
        pytest.fail("the mount is still busy")
    end = time.monotonic() + 60 * client.factor
    while client.run(["rmmod", "rpcrdma"], check=False).status:
        assert time.monotonic() < end, "the transport is still in use"
        time.sleep(0.5)
    client.rmmod("rail_verbs")


@pytest.mark.parametrize("version", ["vers=4.1", "vers=4.2"])
def test_recall(hosts: Hosts, version: str) -> None:
    """A delegation is recalled through our connection: the server has no other way to call."""
    cluster = ours(hosts)
    with served(cluster, lease=90) as server:
        client = cluster[0]
        mount = server.mount(client, version)
        client.run("echo one >/mnt/nfs/file; sync")
        for text in ("two", "three"):
            reader = client.start("exec 3</mnt/nfs/file; cat <&3; echo open; sleep 1000")
            reader.wait_output("open", timeout=30)
            returned = mount.op("DELEGRETURN")[0]
            # Without an answer to the recall this takes as long as the lease.
            cluster[1].run(f"echo {text} >{EXPORT}/file", timeout=30)
            assert mount.op("DELEGRETURN")[0] > returned
            assert client.run("cat /mnt/nfs/file").stdout == f"{text}\n"
            reader.kill()
        assert word(mount, CONNECTS) == 1
        mount.umount()


def test_mountstats(hosts: Hosts) -> None:
    """The tools of nfs-utils read our numbers."""
    cluster = ours(hosts)
    with served(cluster) as server:
        client = cluster[0]
        mount = server.mount(client, "vers=4.2")
        client.run(WRITE, timeout=120)
        words = mount.xprt()
        assert words[0] == "rdma" and len(words) == 1 + 27, words
        text = client.run("mountstats --rpc /mnt/nfs || mountstats /mnt/nfs").stdout
        assert "Transport protocol: rdma" in text
        found = re.search(r"Read segments: (\d+)", text)
        assert found and int(found[1]) > 0, text
        mount.umount()


def test_settings(hosts: Hosts) -> None:
    """The settings stand under their well-known names, with their bounds."""
    cluster = ours(hosts)
    load(client := cluster[0])
    where = "/proc/sys/sunrpc"
    for name, value in (("rdma_slot_table_entries", 64), ("rdma_max_inline_read", 8192),
                        ("rdma_max_inline_write", 8192), ("rdma_inline_write_padding", 16),
                        ("rdma_memreg_strategy", 5), ("rdma_pad_optimize", 0)):
        client.write(f"{where}/{name}", str(value))
        assert client.read(f"{where}/{name}").strip() == str(value)
    with pytest.raises(CommandFailed):
        client.run(f"echo 100 >{where}/rdma_max_inline_read")
    client.rmmod("rpcrdma", "rail_verbs")


@pytest.mark.allow_log(r"rpcrdma: another module provides")
def test_class_taken(hosts: Hosts) -> None:
    """Beside another module with the class ours refuses to load, and says why."""
    client = ours(hosts)[0]
    client.modprobe_rail("rpcrdma")
    path = client.run("modinfo -n rpcrdma").stdout.strip()
    client.rmmod("rpcrdma")
    client.run("insmod $(find /lib/modules/$(uname -r)/kernel -name 'rpcrdma.ko*')")
    mark = client.log_mark()
    assert client.run(["insmod", path], check=False).status
    client.rmmod("rpcrdma")
    assert not client.run(f"insmod {path}", check=False).status, client.log_since(mark)
    client.rmmod("rpcrdma", "rail_verbs")


def test_again_and_again(hosts: Hosts) -> None:
    """Mount, use, unmount, unload, as often as time allows."""
    cluster = ours(hosts)
    with served(cluster) as server:
        for i in range(20):
            version = VERSIONS[i % len(VERSIONS)]
            mount = server.mount(cluster[0], version)
            cluster[0].run("head -c 100000 /dev/zero >/mnt/nfs/file; cat /mnt/nfs/file | wc -c")
            mount.umount()
            if i % 5 == 4:
                cluster[0].rmmod("rpcrdma", "rail_verbs")
                load(cluster[0])
