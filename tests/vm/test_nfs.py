# SPDX-License-Identifier: GPL-2.0-only
"""NFS over our transport at both ends."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nfsrig import EXPORT, Load, NfsServer, agree, often, unload, work
from railvm import SOAK, Cluster, Host, kernels
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


@pytest.mark.kernels("stock-6.1", "test-7")
@pytest.mark.soak("test-7")
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


@pytest.mark.kernels("stock-6.1", "test-7")
@pytest.mark.soak
@SLOW_SERVER
@pytest.mark.timeout(1200 if SOAK else 300)
def test_faults(hosts: Hosts) -> None:
    """The link, either device and nfsd fail under load; the data is right, and all is freed."""
    cluster = hosts(2)
    with served(cluster) as server:
        a = cluster[0]
        mount = server.mount(a, "vers=4.1")
        running = Load(a, mount.where)
        for _ in range(often(a, 10, 1)):
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


# Of our own sources, in DIR: written by tar, kept by git, fetched back from it, and cloned.
TREE = """
set -e
cd {where}
mkdir tree
tar -C {top} -cf - {parts} | tar -C tree -xf -
cd tree
same() {{ for part in {parts}; do diff -r {top}/$part $part; done; }}
echo 3 >/proc/sys/vm/drop_caches
same
git init -q .
git add -A
git commit -q -m "a tree"
git fsck --full 2>&1
rm -rf {parts}
echo 3 >/proc/sys/vm/drop_caches
git checkout -q -- .
same
git clone -q --no-local . ../clone
cd ../clone
same
cd ..
rm -rf tree clone
"""
GIT = {f"GIT_CONFIG_{what}_{n}": text for n, setting in enumerate(
    ("user.name=rail", "user.email=rail@example.org", "gc.auto=0", "core.fsync=all"))
    for what, text in zip(("KEY", "VALUE"), setting.split("="))} | {"GIT_CONFIG_COUNT": "4"}


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_tree(hosts: Hosts) -> None:
    """Many small files, as tar and git make them, and a long directory."""
    cluster = hosts(2)
    a, b = cluster
    with served(cluster) as server:
        for version in ("vers=3", "vers=4.2"):
            mount = server.mount(a, version)
            a.run(TREE.format(where=mount.where, top=kernels.TOP, parts="include lib net"),
                  env=GIT, timeout=250)
            work(b, f"{EXPORT}/many", "--make", "20000")
            work(a, f"{mount.where}/many", "--list", "20000")
            b.run(f"rm -r {EXPORT}/many", timeout=60)
            mount.umount()


def make_disk(b: Host) -> None:
    """What tmpfs of this kernel cannot: attributes, and to be frozen."""
    b.run(f"modprobe -a loop ext4; mkdir -p {EXPORT} /run/disk; mount -t tmpfs tmpfs /run/disk; "
          f"truncate -s 64M /run/disk/image; mkfs.ext4 -q -O ea_inode /run/disk/image; "
          f"mount -o loop /run/disk/image {EXPORT}", timeout=60)


@pytest.mark.soak
def test_slow_server(hosts: Hosts) -> None:
    """Who is alive and does not answer for long is not given up, neither by the client nor by nfsd."""
    cluster = hosts(2)
    a, b = cluster
    make_disk(b)
    with served(cluster) as server:
        a.write("/sys/module/rpcrdma/parameters/peer_timeout", "3")
        mount = server.mount(a, "vers=3")
        a.run(f"echo before >{mount.where}/file; sync")
        b.run(f"fsfreeze -f {EXPORT}")
        writers = [a.start(f"exec dd if=/dev/zero of={mount.where}/f{i} bs=1M count=4 conv=fsync")
                   for i in range(4)]
        time.sleep(25)
        assert all(writer.poll() is None for writer in writers)
        b.run(f"fsfreeze -u {EXPORT}")
        for writer in writers:
            writer.wait(timeout=60, check=True)
        assert word(mount, CONNECTS) == 1
        mount.umount()
    b.run("umount /run/disk")


@pytest.mark.soak
@SLOW_SERVER
def test_address(hosts: Hosts) -> None:
    """The client's address goes away and comes back, as when its network is restarted."""
    cluster = hosts(2)
    a = cluster[0]
    with served(cluster) as server:
        mount = server.mount(a, "vers=4.1")
        running = Load(a, mount.where)
        for seconds in (0, 15):
            a.run("ip -4 -o addr show dev link0 | awk '{ print $4 }' >/run/address; "
                  "ip -4 addr flush dev link0; ip link set link0 down")
            time.sleep(seconds)
            a.run("ip link set link0 up; ip addr add $(cat /run/address) dev link0")
            running.more(timeout=120)
        running.stop()
        mount.umount()


@pytest.mark.soak
def test_xattr(hosts: Hosts) -> None:
    """Attributes as long as they may be. No chunk of their own may carry them (RFC 8267)."""
    cluster = hosts(2)
    a, b = cluster
    make_disk(b)
    with served(cluster) as server:
        mount = server.mount(a, "vers=4.2")
        a.run(f"echo >{mount.where}/file")
        for size in (1, 1000, 3900, 4096, 30000, 65536):
            work(a, f"{mount.where}/file", "--xattr", str(size))
        mount.umount()
    b.run("umount /run/disk")


@pytest.mark.soak
def test_capture(hosts: Hosts, tmp_path: Path) -> None:
    """Wireshark's decoder has nothing to say against what is on the wire."""
    cluster = hosts(2)
    a, b = cluster
    with served(cluster) as server:
        # The connection's beginning has to be there: by that it knows what it is.
        dump = b.start("exec tcpdump -i link0 -s 0 -w /run/capture udp port 4791")
        dump.wait_output("listening on", stream=2)
        for seed, options in enumerate(("vers=3", "vers=4.2")):
            mount = server.mount(a, options)
            work(a, mount.where, str(seed))
            mount.umount()
        dump.kill(2)
        dump.wait()
    capture = tmp_path / "capture"
    capture.write_bytes(b.get("/run/capture"))
    b.run("rm /run/capture")

    def frames(which: str) -> list[str]:
        # It cannot know of NFS results that go by RDMA Writes.
        return subprocess.run(["tshark", "-r", capture, "--disable-protocol", "nfs", "-Y", which],
                              check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()

    for kind in range(2):
        assert frames(f"rpcordma.msg_type == {kind}")
    # Sends, also with invalidation; of several packets the last, with which it decodes them.
    assert not frames("infiniband.bth.opcode in {2,4,22,23} && !rpcordma")
    assert not frames("_ws.malformed")
    assert not frames("rpcordma.msg_type > 1")


@pytest.mark.soak
@SLOW_SERVER
def test_device_of_server(hosts: Hosts) -> None:
    """The server's device goes and comes back under load, and with it what listens on it."""
    cluster = hosts(2)
    a, b = cluster
    with served(cluster) as server:
        mount = server.mount(a, "vers=4.1")
        running = Load(a, mount.where)
        for _ in range(often(a, 20, 2)):
            connects = word(mount, CONNECTS)
            b.nic(0).rdma_del()
            time.sleep(0.5)
            b.nic(0).rdma_add()
            wait_connects(mount, connects)
            running.more(timeout=120)
        running.stop()
        mount.umount()


@pytest.mark.soak
@pytest.mark.timeout(1800 if SOAK else 600)
def test_fio(hosts: Hosts) -> None:
    """Many jobs at once, each verifies what it wrote; more jobs than credits."""
    cluster = hosts(2)
    a = cluster[0]
    size, jobs, most = ("8m", 40, "4m") if SOAK else ("1m", 8, "512k")
    with served(cluster) as server:
        mount = server.mount(a, "vers=4.2,nconnect=2")
        for mode in (f"--ioengine=psync --direct=1 --bsrange=512-{most}",
                     f"--ioengine=psync --fsync_on_close=1 --bsrange=100-{most}",
                     "--ioengine=mmap --bsrange=512-64k"):
            a.run(f"fio --name=v --directory={mount.where} --size={size} --numjobs={jobs} "
                  "--rw=randrw --verify=crc32c --verify_fatal=1 --bs_unaligned=1 "
                  f"{mode} --group_reporting --output-format=terse && rm -f {mount.where}/v.*",
                  timeout=400 if SOAK else 150)
        mount.umount()


STRESSORS = ("hdd 1", "dir 1 --dir-dirs 64", "dentry 1 --dentries 64", "rename 1", "utime 1", "seek 1",
             "fallocate 1", "flock 1", "lockf 1", "sync-file 1", "readahead 1", "iomix 1")


@pytest.mark.soak
@SLOW_SERVER
@pytest.mark.timeout(2400 if SOAK else 600)
def test_stress(hosts: Hosts) -> None:
    """stress-ng's file workers, and dbench: all that file systems are asked for, much at a time."""
    cluster = hosts(2)
    a = cluster[0]
    seconds = 60 if SOAK else 4
    with served(cluster) as server:
        mount = server.mount(a, "vers=4.2")
        a.run(f"dbench -c /usr/share/dbench/client.txt -D {mount.where} -t {10 * seconds} 8",
              timeout=20 * seconds + 60)
        # In turns, 6 at a time.
        for i in range(0, len(STRESSORS), 6):
            what = " ".join(f"--{name}" for name in STRESSORS[i:i + 6])
            a.run(f"mkdir {mount.where}/stress; stress-ng --temp-path {mount.where}/stress "
                  f"--verify --hdd-bytes 8m --fallocate-bytes 8m --readahead-bytes 8m "
                  f"--iomix-bytes 8m --timeout {3 * seconds}s {what} && "
                  f"rm -rf {mount.where}/stress", timeout=20 * seconds + 120)
        mount.umount()


@pytest.mark.soak
@pytest.mark.allow_log(r"NFS: |nfs: server .* (not responding|OK)")
def test_reboot(hosts: Hosts) -> None:
    """The server is reset, and is found again. What it had in memory is gone, but not the mount."""
    cluster = hosts(2, fresh=True)
    a, b = cluster
    with served(cluster) as server:
        mount = server.mount(a, "vers=4.1")
        a.run(f"echo before >{mount.where}/old")
        connects = word(mount, CONNECTS)
        b.reboot()
        b.modprobe_rail("rpcrdma")
        server.start()
        wait_connects(mount, connects, timeout=120)
        a.run(f"echo after >{mount.where}/new", timeout=120)
        assert b.run(f"ls {EXPORT}; cat {EXPORT}/new").stdout == "new\nafter\n"
        agree(b, work(a, mount.where))
        mount.umount()


def connections(host: Host) -> list[str]:
    text = host.run("cat /sys/kernel/debug/rail/*/connections").stdout
    return re.findall(r"^\d+ up .*$", text, re.M)


@pytest.mark.soak
@SLOW_SERVER
def test_no_storm(hosts: Hosts, tmp_path: Path) -> None:
    """Clients of a server that refuses them come back ever more seldom, each at its own time."""
    cluster = hosts(2)
    a, b = cluster
    with served(cluster) as server:
        # Each connection is a client of its own as far as this goes.
        mount = server.mount(a, "vers=3,nconnect=8")
        work(a, mount.where)
        assert len(connections(a)) == 8
        dump = b.start("exec tcpdump -i link0 -s 0 -w /run/capture udp port 4791")
        dump.wait_output("listening on", stream=2)
        # Nobody listens; the host answers all the same.
        server.kill()
        lost = time.monotonic()
        running = Load(a, mount.where, wait=False)
        time.sleep(40)
        server.nfsd()
        away = time.monotonic() - lost
        running.more(2, timeout=120)
        running.stop()
        dump.kill(2)
        dump.wait()
        mount.umount()
    capture = tmp_path / "capture"
    capture.write_bytes(b.get("/run/capture"))
    b.run("rm /run/capture")
    # What was asked for by CM, and when.
    asked = subprocess.run(["tshark", "-r", capture, "-Y",
                            f"infiniband.mad.attributeid == 0x0010 && ip.src == {a.addr()}",
                            "-T", "fields", "-e", "frame.time_relative"], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.split()
    times = [float(when) for when in asked]
    assert times
    # Of each one no more than it would with 1, 2, 4, ... seconds between, of which half may be cut.
    assert len(times) <= 8 * (4 + away / 5), times
    # They are not all there in the same moment, but for the first time.
    late = [when for when in times if when > 5]
    busiest = max(sum(when <= other < when + 0.1 for other in late) for when in late)
    assert busiest < 8, times


def held(host: Host) -> dict[str, int]:
    """What of a host's memory is in use and cannot be reclaimed, in KiB."""
    host.run("sync; echo 3 >/proc/sys/vm/drop_caches; sleep 1; echo 3 >/proc/sys/vm/drop_caches")
    info = {name: int(size) for name, size in
            re.findall(r"^(\w+):\s+(\d+) kB", host.read("/proc/meminfo"), re.M)}
    return {"slab": info["SUnreclaim"], "percpu": info["Percpu"], "vmalloc": info["VmallocUsed"],
            "all": info["MemTotal"] - info["MemAvailable"]}


@pytest.mark.soak
@pytest.mark.timeout(3600 if SOAK else 600)
def test_rounds(hosts: Hosts) -> None:
    """Mounts that come and go, modules too, leave no memory behind."""
    cluster = hosts(2, fresh=True)
    a, b = cluster

    def mounts(count: int) -> None:
        with served(cluster) as server:
            for i in range(count):
                mount = server.mount(a, ("vers=3", "vers=4.2")[i % 2])
                a.run(f"head -c 3000000 /dev/zero >{mount.where}/file; rm {mount.where}/file")
                mount.umount()

    # What is made once and kept, by us and by others, is there after these.
    mounts(4)
    mounts(4)
    before = [held(host) for host in cluster]
    for _ in range(100 if SOAK else 4):
        mounts(5)
    after = [held(host) for host in cluster]
    for was, now in zip(before, after):
        grown = {name: now[name] - was[name] for name in was}
        assert max(grown["slab"], grown["percpu"], grown["vmalloc"]) < 2048, (was, now)
        assert grown["all"] < 16384, (was, now)
