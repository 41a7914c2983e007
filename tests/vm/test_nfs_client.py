# SPDX-License-Identifier: GPL-2.0-only
"""Our NFS/RDMA client against the kernel's own server."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from nfsrig import EXPORT, PORT, Load, Mount, NfsServer, agree, unload, work
from peerprog import Program
from railvm import SOAK, Cluster, CommandFailed, Host
from rpcpeer import SUCCESS, words

Hosts = Callable[..., Cluster]

pytestmark = pytest.mark.kernels("stock-6.1")
SLOW_SERVER = pytest.mark.allow_log(r"nfs: server .* (not responding|OK)")

VERSIONS = ["vers=3", "vers=4.0", "vers=4.1", "vers=4.2"]
# Number of a word of the "xprt: rdma" line: what mountstats(8) reads.
CONNECTS, READ_SEGS, WRITE_SEGS, REPLY_SEGS, BAD_REPLIES, LONG_CALLS = 3, 11, 12, 13, 20, 21
LOCAL_INVALS = 25
# Settings of ours below /proc/sys/sunrpc.
INLINE = ("rdma_max_inline_read", "rdma_max_inline_write")


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
    unload(cluster[0])


def ours(hosts: Hosts, **options: object) -> Cluster:
    return hosts(2, modules=["test", "in-tree"], **options)


def word(mount: Mount, number: int) -> int:
    return int(mount.xprt()[number])


def wait_connects(mount: Mount, more_than: int, timeout: float = 60) -> None:
    end = time.monotonic() + timeout * mount.host.factor
    while word(mount, CONNECTS) <= more_than:
        assert time.monotonic() < end, "the client did not connect again"
        time.sleep(0.2)


def set_inline(client: Host, size: int) -> None:
    for name in INLINE:
        client.write(f"/proc/sys/sunrpc/{name}", str(size))


def test_versions(hosts: Hosts) -> None:
    """Each version, by IPv4 and IPv6: files, long directories and links come back as they went."""
    cluster = ours(hosts)
    with served(cluster) as server:
        for seed, version in enumerate(VERSIONS):
            mount = server.mount(cluster[0], version, v6=version == "vers=4.2")
            agree(cluster[1], work(cluster[0], mount.where, str(seed)))
            # It was chunks that carried it.
            assert word(mount, READ_SEGS) and word(mount, WRITE_SEGS) and word(mount, REPLY_SEGS)
            assert word(mount, CONNECTS) == 1
            mount.umount()


@pytest.mark.soak
def test_inline_sizes(hosts: Hosts) -> None:
    """Small thresholds make long calls, large ones gathered sends."""
    cluster = ours(hosts)
    with served(cluster) as server:
        client = cluster[0]
        for inline in (1024, 65536):
            set_inline(client, inline)
            mount = server.mount(client, "vers=3")
            agree(cluster[1], work(client, mount.where))
            # No chunk of its own may carry it (RFC 8267), so the whole call goes by one.
            work(client, f"{mount.where}/f1", "--acl", "200")
            assert bool(word(mount, LONG_CALLS)) == (inline == 1024)
            mount.umount()
        set_inline(client, 5120)


@pytest.mark.soak
def test_peer_sizes(hosts: Hosts) -> None:
    """Ours and another inline size at the server: the smaller one holds, in either direction."""
    cluster = ours(hosts)
    size = "/proc/sys/sunrpc/svc_rdma/max_req_size"
    with served(cluster, lease=90) as server:
        client, b = cluster
        before = b.read(size)
        for seed, (theirs, version) in enumerate(((4096, "vers=3"), (4096, "vers=4.2"),
                                                  (16384, "vers=3"), (16384, "vers=4.2"))):
            b.write(size, str(theirs))
            mount = server.mount(client, version)
            agree(b, work(client, mount.where, str(seed)))
            assert word(mount, CONNECTS) == 1
            mount.umount()
        b.write(size, before)


@pytest.mark.soak
@SLOW_SERVER
@pytest.mark.timeout(400)
def test_faults(hosts: Hosts) -> None:
    """Faults under load cost time, no data, and leave nothing behind."""
    cluster = ours(hosts)
    with served(cluster) as server:
        client = cluster[0]
        mount = server.mount(client, "vers=4.1")
        running = Load(client, mount.where)

        # A link without carrier for 5 s.
        cluster.link(0).cut()
        time.sleep(5)
        cluster.link(0).restore()
        running.more()

        # The device goes, and another one comes.
        for _ in range(20 if SOAK else 2):
            connects = word(mount, CONNECTS)
            client.nic(0).rdma_del()
            client.nic(0).rdma_add()
            wait_connects(mount, connects)
            running.more()

        # Processes die amid their reads and writes.
        client.run(f"head -c 4m /dev/urandom >{mount.where}/big; sync")
        for i in range(50 if SOAK else 4):
            victim = client.start(f"dd if={mount.where}/big of=/dev/null bs=1M iflag=direct & "
                                  f"dd if=/dev/zero of={mount.where}/out bs=1M count=50 "
                                  "oflag=direct & wait")
            time.sleep(0.2 + 0.1 * (i % 10))
            victim.kill(9)
        running.more()

        # nfsd ends and comes back.
        connects = word(mount, CONNECTS)
        server.kill()
        server.nfsd()
        running.more(timeout=120)
        assert word(mount, CONNECTS) > connects
        running.stop()
        mount.umount()


def outstanding(client: Host) -> list[str]:
    """Calls that hold a credit, of each transport, as sunrpc counts them."""
    info = client.run("cat /sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma/xprt_info").stdout
    return re.findall(r"^cur_cong=(\d+)$", info, re.M)


@pytest.mark.soak
@pytest.mark.timeout(1200 if SOAK else 300)
def test_killed(hosts: Hosts) -> None:
    """Killed calls give back their credits when the server has answered them."""
    cluster = ours(hosts)
    with served(cluster) as server:
        client = cluster[0]
        # Their tasks die with the process; later versions let them run on.
        mount = server.mount(client, "vers=3,actimeo=0")
        client.run(f"for i in 0 1 2 3; do head -c 300000 /dev/zero >{mount.where}/f$i; done")
        bad = word(mount, BAD_REPLIES)
        for i in range(500 if SOAK else 40):
            victims = [client.start(f"cd {mount.where}; while :; do : <f{k}; : >n{k}; ls -l "
                                    f">/dev/null; rm n{k}; done") for k in range(4)]
            time.sleep(0.05 + 0.01 * (i % 20))
            for victim in victims:
                victim.kill(9)
        end = time.monotonic() + 30 * client.factor
        while outstanding(client) != ["0"]:
            assert time.monotonic() < end, outstanding(client)
            time.sleep(0.2)
        # That it was so there must have been some. A connection may have been lost with them, if the
        # server was about to write what nobody wanted any more.
        assert word(mount, BAD_REPLIES) > bad
        mount.umount()


@pytest.mark.soak
@SLOW_SERVER
def test_silent_server(hosts: Hosts) -> None:
    """A server that stops answering at all is given up after peer_timeout, and found again."""
    cluster = ours(hosts)
    with served(cluster) as server:
        client = cluster[0]
        client.write("/sys/module/rpcrdma/parameters/peer_timeout", "3")
        mount = server.mount(client, "vers=4.2")
        client.run("echo before >/mnt/nfs/file; sync")
        connects = word(mount, CONNECTS)
        mark = client.log_mark()
        cluster.link(0).cut()
        began = time.monotonic()
        client.wait_log(r"rpcrdma: .*lost", timeout=20, since=mark)
        assert time.monotonic() - began < 10 * client.factor
        cluster.link(0).restore()
        assert client.run("cat /mnt/nfs/file; echo after >/mnt/nfs/file2; cat /mnt/nfs/file2",
                          timeout=100).stdout == "before\nafter\n"
        wait_connects(mount, connects)
        mount.umount()


@pytest.mark.soak
@SLOW_SERVER
def test_umount_force(hosts: Hosts) -> None:
    """umount -f under load with a server that died returns, and so does rmmod."""
    cluster = ours(hosts, fresh=True)
    load(client := cluster[0])
    server = NfsServer(cluster[1])
    server.start()
    # soft: nothing waits for ever for a server that does not come back
    mount = server.mount(client, "vers=3,soft,timeo=20,retrans=1")
    running = Load(client, mount.where)
    cluster[1].kill()
    running.process.kill(9)
    for _ in range(20):
        if client.run(["umount", "-f", mount.where], check=False, timeout=60).status == 0:
            break
        time.sleep(0.5)
    else:
        pytest.fail("the mount is still busy")
    unload(client, timeout=60)


@pytest.mark.soak
def test_recall(hosts: Hosts) -> None:
    """A delegation is recalled through our connection: the server has no other way to call."""
    cluster = ours(hosts)
    with served(cluster, lease=90) as server:
        client, b = cluster
        b.run(f"echo one >{EXPORT}/file; chmod 666 {EXPORT}/file")
        for version in ("vers=4.1", "vers=4.2"):
            mount = server.mount(client, version)
            reader = server.wait_delegation(client, f"{mount.where}/file")
            assert not mount.op("DELEGRETURN")[0]
            # Without an answer to the recall this takes as long as the lease.
            b.run(f"echo {version} >{EXPORT}/file", timeout=30)
            mount.wait_op("DELEGRETURN", 1)
            assert client.run(["cat", f"{mount.where}/file"]).stdout == f"{version}\n"
            assert word(mount, CONNECTS) == 1
            reader.kill()
            mount.umount()
            # For the next one nfsd has forgotten the conflict when the file is another.
            b.run(f"rm {EXPORT}/file; echo one >{EXPORT}/file; chmod 666 {EXPORT}/file")


@pytest.mark.soak
def test_numbers(hosts: Hosts) -> None:
    """The tools of nfs-utils read our numbers; settings stand under their well-known names."""
    cluster = ours(hosts)
    with served(cluster) as server:
        client = cluster[0]
        where = "/proc/sys/sunrpc"
        for name, value in (("rdma_slot_table_entries", 64), ("rdma_max_inline_read", 8192),
                            ("rdma_max_inline_write", 8192), ("rdma_inline_write_padding", 16),
                            ("rdma_memreg_strategy", 5), ("rdma_pad_optimize", 0)):
            client.write(f"{where}/{name}", str(value))
            assert client.read(f"{where}/{name}").strip() == str(value)
        with pytest.raises(CommandFailed):
            client.run(f"echo 100 >{where}/rdma_max_inline_read")
        mount = server.mount(client, "vers=4.2")
        client.run(f"head -c 1000000 /dev/zero >{mount.where}/file; sync")
        words = mount.xprt()
        assert words[0] == "rdma" and len(words) == 1 + 27, words
        text = client.run("mountstats mountstats --xprt /mnt/nfs").stdout
        assert "Transport protocol: rdma" in text
        found = re.search(r"Read segments: (\d+)", text)
        assert found and int(found[1]) > 0, text
        mount.umount()


@pytest.mark.soak
def test_again_and_again(hosts: Hosts) -> None:
    """Mount, use, unmount, unload, as often as time allows."""
    cluster = ours(hosts)
    rounds = 500 if SOAK else 8
    with served(cluster) as server:
        client = cluster[0]
        for i in range(rounds):
            mount = server.mount(client, VERSIONS[i % len(VERSIONS)])
            client.run("head -c 100000 /dev/zero >/mnt/nfs/file; cat /mnt/nfs/file | wc -c")
            mount.umount()
            if i % 4 == 3:
                unload(client)
                load(client)


@pytest.mark.soak
@pytest.mark.allow_log(r"rpcrdma: another module provides")
def test_class_taken(hosts: Hosts) -> None:
    """Beside another module with the class ours refuses to load, and says why."""
    client = ours(hosts)[0]
    load(client)
    client.run("rmmod rpcrdma")
    where = "/lib/modules/$(uname -r)"
    mine = client.run(f"find -L {where}/updates -name rpcrdma.ko").stdout.strip()
    # The kernel takes no two modules of a name.
    client.put("/run/other.ko", client.get(mine).replace(b"rpcrdma\0", b"rpcrdmz\0"))
    for other in (f"$(find -L {where}/kernel/net/sunrpc -name 'rpcrdma.ko*')", mine):
        client.run(f"insmod {other}")
        mark = client.log_mark()
        assert "File exists" in client.run("insmod /run/other.ko", check=False).stderr
        client.wait_log("another module provides", since=mark)
        client.run("rmmod rpcrdma")
    client.run("insmod /run/other.ko; rmmod rpcrdmz; rm /run/other.ko")
    client.run(["insmod", mine])
    unload(client)


# What a rogue server says once it has answered the first call, all in answer to the second. {xid} is
# that one's. After each the client must go on, or give up, of itself.
NO_LISTS = words(0, 0, 0)
NULL_REPLY = "{xid}" + words(1, 8, 0) + NO_LISTS + "{xid}" + SUCCESS.hex()
ROGUE: dict[str, list[str]] = {
    "garbage, then ERR_CHUNK": [
        words(1, 1), words(77, 1, 0, 0) + NO_LISTS + words(77) + SUCCESS.hex(),
        words(77, 1, 8, 3), words(77, 1, 8, 4, 2), words(77, 1, 8, 9), "ff" * 60,
        # A call in the reverse direction that nobody has asked for.
        words(78, 1, 8, 0) + NO_LISTS + words(78, 0, 2, 0x40000000, 1, 0, 0, 0, 0, 0),
        "{xid}" + words(1, 0, 4, 2)],
    "ERR_VERS": ["{xid}" + words(1, 8, 4, 1, 2, 3)],
    "another version": ["{xid}" + words(2, 8, 0) + NO_LISTS + "{xid}" + SUCCESS.hex()],
    "a write chunk not offered": [
        "{xid}" + words(1, 8, 0, 0, 1, 1, 1, 2, 3, 4, 0, 0) + "{xid}" + SUCCESS.hex()],
    "a reply chunk not offered": ["{xid}" + words(1, 8, 1, 0, 0, 1, 1, 1, 100, 3, 4)],
    "a reply cut off": ["{xid}" + words(1, 0xffffffff, 0) + NO_LISTS + "{xid}" + words(1)],
    "a reverse call with chunks": [
        words(78, 1, 8, 0, 1, 40, 1, 4, 0, 0, 0, 0, 0)
        + words(78, 0, 2, 0x40000000, 1, 0, 0, 0, 0, 0)],
    "too long": ["00" * 6000],
    "silence": [],
}


@pytest.mark.soak
@pytest.mark.allow_log(r"rpcrdma: |rail: |NFS: |nfs: server")
@pytest.mark.timeout(600)
def test_rogue_server(hosts: Hosts) -> None:
    """Whatever a server answers, a mount fails and is done with."""
    client, rogue = ours(hosts)
    load(client)
    program = Program(rogue, "rpcrdma_peer")
    client.run("mkdir -p /mnt/nfs")
    for name, messages in ROGUE.items():
        script = [f"listen {PORT}", "accept f6ab0e18 01 01 03 03", "recv 20000",
                  "send " + NULL_REPLY, "recv 20000", *("send " + text for text in messages),
                  "recv 500", "close", ""]
        peer = rogue.start([program.path], data="\n".join(script).encode())
        peer.wait_output("listening", timeout=20)
        mounted = client.run(["timeout", "60", "mount", "-t", "nfs", "-o",
                              f"proto=rdma,port={PORT},vers=4.1,soft,timeo=10,retrans=1,retry=0",
                              f"{rogue.addr()}:/", "/mnt/nfs"], check=False, timeout=80)
        peer.wait(timeout=30)
        assert mounted.status not in (0, 124), f"{name}: {mounted}"
        assert "accepted" in peer.stdout, f"{name}: {peer.stdout}"
        if "reverse" in name:
            assert f"recv {words(78, 1, 32, 4, 2)}" in peer.stdout, peer.stdout
    unload(client)
