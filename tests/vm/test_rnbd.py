# SPDX-License-Identifier: GPL-2.0-only
"""RNBD between two hosts: data, modes, names and rights, faults; ours, and mainline's in either role."""

from __future__ import annotations

import errno
import json
import re
import shlex
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from railvm import SOAK, Cluster, Host
from rnbdrig import (
    DEVICES,
    EXPORTS,
    LINKS,
    MAP,
    Client,
    Disk,
    Raw,
    Server,
    refused,
    write,
)

Hosts = Callable[..., Cluster]
Rig = Callable[..., tuple[Client, Server]]

pytestmark = [pytest.mark.kernels("stock-6.1", "test-7"), pytest.mark.soak("test-7")]

OURS = ("ours", "ours")
ROLES = [OURS, ("ours", "mainline"), ("mainline", "ours")]


@pytest.fixture
def rig(hosts: Hosts) -> Iterator[Rig]:
    """A client and a server; at the end all is unloaded."""
    made: list[Client | Server] = []

    def make(roles: tuple[str, str] = OURS, *, links: int = 1,
             **options: Any) -> tuple[Client, Server]:
        a, b = hosts(2, links=links,
                     modules=["test" if role == "ours" else "in-tree" for role in roles])
        server = Server(b, ours=roles[1] == "ours", **options)
        made.append(server)
        client = Client(a, server, ours=roles[0] == "ours")
        made.append(client)
        return client, server

    yield make
    for end in reversed(made):
        if end.host.up:
            end.clear()


def texts_in(host: Host, path: str) -> dict[str, str]:
    names = host.run(f"cd {path} && find . -maxdepth 1 -type f -printf '%P\\n'").stdout.split()
    return {name: host.get(f"{path}/{name}").decode() for name in names}


def check_abi(client: Client, server: Server, disk: Disk, device: str, poll_queues: int = 0) -> None:
    """What scripts know of both ends: files, their texts, links."""
    usage = client.host.get(MAP).decode()
    assert usage.startswith('Usage: echo "[dest_port=')
    assert '" > map_device\n\naddr ::= [ ip:<ipv4> | ip:<ipv6> | gid:<gid> ]\n' in usage
    name = disk.attr("mapping_path")
    link = client.host.run(["readlink", "-f", f"{LINKS}/{name.replace('/', '!')}@s1"])
    assert link.stdout.strip() == f"/sys/devices/virtual/block/{disk.name}"
    ctl = client.host.run(["readlink", "-f", "/sys/class/rnbd-client/ctl"]).stdout.strip()
    assert ctl == "/sys/devices/virtual/rnbd-client/ctl"
    assert texts_in(client.host, f"{disk.dir}/rnbd") == {
        "unmap_device": "Usage: echo <normal|force> > unmap_device\n",
        "remap_device": "Usage: echo <1> > remap_device\n",
        "resize": "Usage: echo <new size in sectors> > resize\n",
        "state": "open\n", "session": "s1\n", "mapping_path": f"{name}\n",
        "access_mode": "rw\n", "nr_poll_queues": f"{poll_queues}\n"}
    there = f"{DEVICES}/{device}"
    assert server.host.run(["readlink", "-f", f"{there}/block_dev"]).stdout.strip() == \
        f"/sys/devices/virtual/block/{device}"
    assert texts_in(server.host, f"{there}/sessions/s1") == {
        "read_only": "0\n", "mapping_path": f"{name}\n", "access_mode": "rw\n",
        "force_close": "Usage: echo 1 > force_close\n"}


def every_operation(disk: Disk, server: Server, device: str) -> None:
    """Reads, writes, flushes, FUA, discards and zeroes; then both ends see the same bytes."""
    disk.fio("--rw=randrw", "--bsrange=512-256k", "--bs_unaligned=0", "--blockalign=512",
             "--iodepth=32", "--size=4M", "--fsync=16")
    disk.fio("--rw=randwrite", "--bs=4k", "--iodepth=256", "--size=1M", "--offset=4M", "--sync=1")
    disk.fio("--rw=write", "--bs=1M", "--iodepth=4", "--size=4M", "--offset=6M")
    disk.host.run(["blkdiscard", "-o", "1M", "-l", "1M", disk.dev])
    disk.host.run(["blkdiscard", "-z", "-o", "3M", "-l", "1M", disk.dev])
    zeros = disk.host.run(f"for at in 1 3; do dd if={disk.dev} bs=1M skip=$at count=1 "
                          "iflag=direct status=none; done | tr -d '\\0' | wc -c").stdout
    assert int(zeros) == 0
    assert disk.sum() == server.sum(device)


def check_small(client: Client, server: Server, roles: tuple[str, str]) -> None:
    """Small requests went as messages where both ends are ours, and else none did."""
    ends = [(client.host, "rtrs-client"), (server.host, "rtrs-server")]
    for (host, module), role in zip(ends, roles, strict=True):
        if role != "ours":
            continue
        count = json.loads(host.run(
            f"cat /sys/kernel/debug/rail/{module}/s1/*/stats.json").stdout)["counters"]
        assert (count["small"] > 100) == (roles == OURS), count
        # And others went as ever.
        assert count["reads"] + count["writes"] > count["small"] + 100, count


@pytest.mark.timeout(240)
@pytest.mark.parametrize("rotate", [True, pytest.param(False, marks=pytest.mark.soak)],
                         ids=["rotate", "fixed"])
@pytest.mark.parametrize("roles", ROLES, ids=["-".join(roles) for roles in ROLES])
def test_every_operation(rig: Rig, roles: tuple[str, str], rotate: bool) -> None:
    """Every operation through a disk with a volatile cache, byte for byte the same at both ends; and
    what is checked of our sysfs is true of mainline's."""
    client, server = rig(roles, rotate=rotate, search=None if roles[1] == "ours" else "/dev")
    device = server.loop(16)
    name = device.removeprefix("/dev/")
    if roles[1] == "ours":
        name = "disk"
        server.export(name, device)
    disk = client.map(name)
    assert disk.sectors() == 16 << 11
    check_abi(client, server, disk, device.removeprefix("/dev/"))
    assert disk.queue("write_cache") == "write back"
    assert int(disk.queue("discard_max_bytes")) > 0
    if roles == OURS:
        # Mainline of 6.1 does not have it yet: the zeroes are written.
        assert int(disk.queue("write_zeroes_max_bytes")) > 0
    every_operation(disk, server, device)
    check_small(client, server, roles)
    disk.unmap()
    assert server.host.run(["ls", DEVICES]).stdout == ""


def test_limits(rig: Rig) -> None:
    """The disk is what the server's disk is: block size, FUA, discard, read-only."""
    client, server = rig()
    server.export("fua", server.null(mib=16, blocksize=4096, discard=1, cache_size=4))
    server.export("ro", server.ram(mib=16)[0], access="ro")
    disk = client.map("fua")
    assert disk.queue("logical_block_size") == "4096"
    assert (disk.queue("write_cache"), disk.queue("fua")) == ("write back", "1")
    assert int(disk.queue("discard_granularity")) == 4096
    disk.fio("--rw=randwrite", "--bs=4k", "--iodepth=16", "--size=1M", "--sync=1")
    stats = disk.stats()
    assert stats["writes"] == 256 and stats["flushes"] == 0, "FUA is done by the server's disk"
    disk.host.run(["blkdiscard", disk.dev])
    # Plain ro; the disk without a cache has nothing to flush.
    client.refused("ro", errno.EROFS)
    ro = client.map("ro", access_mode="ro")
    assert ro.attr("access_mode") == "ro"
    assert ro.queue("write_cache") == "write through"
    assert client.host.read(f"{ro.dir}/ro").strip() == "1"
    out = client.host.run(f"dd if=/dev/zero of={ro.dev} count=1 oflag=direct", check=False)
    assert out.status != 0
    ro.unmap()
    disk.unmap()


def test_sysfs(rig: Rig) -> None:
    """Every file of the ABI, with the texts that scripts know."""
    client, server = rig()
    server.ram(mib=16)
    server.export("dir!disk", "/dev/ram0")
    disk = client.map("dir/disk", nr_poll_queues=1)
    check_abi(client, server, disk, "ram0", poll_queues=1)
    # What must not be written.
    client.refused("dir/disk", errno.EEXIST)
    for text in ("", "sessname=s2", "sessname=s2 device_path=x", "sessname=s1 device_path=",
                 "sessname=a.b path=ip:10.9.0.2 device_path=x",
                 "sessname=s2 path=10.9.0.2 device_path=x",
                 "sessname=s1 device_path=x access_mode=wo", "sessname=s1 device_path=x what=1",
                 "sessname=s1 sessname=s1 device_path=x", "sessname=s1 device_path=x dest_port=0",
                 "sessname=s1 device_path=x nr_poll_queues=7"):
        refused(client.host, MAP, text, errno.EINVAL)
    refused(client.host, f"{disk.dir}/rnbd/unmap_device", "now", errno.EINVAL)
    refused(client.host, f"{disk.dir}/rnbd/remap_device", "1", errno.EALREADY)
    refused(client.host, f"{disk.dir}/rnbd/resize", "0", errno.EINVAL)
    # Resize, as far as the client is concerned.
    disk.set("resize", "2048")
    assert disk.sectors() == 2048
    disk.unmap()
    assert client.host.run(["ls", LINKS]).stdout == ""
    assert client.host.run(["ls", "/sys/block"]).stdout.count("rnbd") == 0


@pytest.mark.soak
def test_nothing_is_exported(rig: Rig) -> None:
    """Without configuration: EACCES, and the log says what to do; done so, it works."""
    client, server = rig()
    server.ram(mib=16)
    client.refused("ram0", errno.EACCES)
    client.refused("/dev/ram0", errno.EACCES)
    said = server.host.wait_log(
        r"session s1 from ip:\S+ asks for ram0, and nothing is exported", 10)
    assert said
    log = server.host.run("dmesg").stdout
    advice = re.search(r"mkdir (/sys/kernel/config/rnbd/exports/ram0), .* mkdir its "
                       r"(allowed_clients/ip:\S+), ", log)
    assert advice, log
    server.host.run(f"mkdir {advice[1]} && echo /dev/ram0 >{advice[1]}/device_path && "
                    f"mkdir {advice[1]}/{advice[2]} && echo 1 >{advice[1]}/enable")
    client.map("ram0").unmap()


@pytest.mark.soak
def test_rights(rig: Rig) -> None:
    """Addresses, networks, patterns of names, and both; disabled, unknown, in use."""
    client, server = rig()
    devices = server.ram(count=4, mib=16)
    me = client.host.addr()
    rules = {
        f"ip:{me}": True, me: True, f"ip:{me}!32": True, f"{me.rsplit('.', 1)[0]}.0!24": True,
        "10.77.0.0!16": False, "0.0.0.0!0": True, "*": True, "s?": True, "t*": False,
        f"s1@{me}": True, f"t1@{me}": False, "s1@10.77.0.0!16": False,
    }
    path = server.export("disk", devices[0], allow=())
    client.refused("disk", errno.EACCES)
    for rule, good in rules.items():
        server.host.run(["mkdir", f"{path}/allowed_clients/{rule}"])
        if good:
            client.map("disk").unmap()
        else:
            client.refused("disk", errno.EACCES)
        server.host.run(["rmdir", f"{path}/allowed_clients/{rule}"])
    for rule in ("ip:10.9.0", "10.9.0.300", "10.9.0.0!33", "ip:10.9.0.1:7", "a.b", "@10.9.0.1",
                 "s1@", "fe80:::1", "gid:1"):
        out = server.host.run(["mkdir", f"{path}/allowed_clients/{rule}"], check=False)
        assert out.status != 0, rule
    server.host.run(["mkdir", f"{path}/allowed_clients/*"])
    # While it is enabled nothing of it changes, and disabled it is not there.
    refused(server.host, f"{path}/device_path", devices[1], errno.EBUSY)
    refused(server.host, f"{path}/access", "ro", errno.EBUSY)
    write(server.host, f"{path}/enable", "0")
    client.refused("disk", errno.EACCES)
    server.export("other", devices[1])
    client.refused("disk", errno.ENOENT)
    client.refused("others", errno.ENOENT)
    # An export needs a device, and what it names has to be one.
    server.host.run(f"mkdir {EXPORTS}/none '{EXPORTS}/none/allowed_clients/*'")
    refused(server.host, f"{EXPORTS}/none/enable", "1", errno.EINVAL)
    for bad in ("", "dev/ram0", "x" * 300):
        write_fails(server, f"{EXPORTS}/none/device_path", bad)
    for device, code in (("/dev/null", errno.ENOTBLK), ("/dev/nothere", errno.ENOENT)):
        write(server.host, f"{EXPORTS}/none/device_path", device)
        write(server.host, f"{EXPORTS}/none/enable", "1")
        client.refused("none", code)
        write(server.host, f"{EXPORTS}/none/enable", "0")


def write_fails(server: Server, path: str, text: str) -> None:
    out = server.host.run(["/bin/bash", "-c", 'printf "%s\\n" "$1" >"$2"', "sh", text, path],
                          check=False)
    assert out.status != 0, text


@pytest.mark.soak
def test_search_path(rig: Rig) -> None:
    """Mainline's way, on request: any disk below a folder, and none out of it."""
    client, server = rig(search="/dev/shm/%SESSNAME%")
    server.ram(mib=16)
    server.host.run("mkdir -p /dev/shm/s1/in /dev/shm/s2; cd /dev/shm/s1; "
                    "cp -a /dev/ram0 in/disk; ln -s in/disk good; ln -s /dev/ram0 out; "
                    "cp -a /dev/ram0 ../s2/disk; touch file; mkfifo fifo")
    client.map("good").unmap()
    client.map("/in/disk").unmap()
    for name, code in (("out", errno.EACCES), ("../s2/disk", errno.EACCES),
                       ("in/../../s2/disk", errno.EACCES), ("..", errno.EACCES),
                       ("nothere", errno.ENOENT), ("file", errno.ENOTBLK),
                       ("fifo", errno.ENOTBLK), ("in", errno.ENOTBLK)):
        client.refused(name, code)
    server.host.run("rm -r /dev/shm/s1 /dev/shm/s2")


@pytest.mark.soak
def test_modes(rig: Rig) -> None:
    """Any number of readers, one writer, a second one only for a migration."""
    client, server = rig()
    server.ram(mib=16)
    server.export("disk", "/dev/ram0")

    def take(sess: str, mode: str) -> Disk:
        return client.map("disk", sessname=sess, access_mode=mode)

    def fail(sess: str, mode: str) -> None:
        client.refused("disk", errno.EPERM, sessname=sess, access_mode=mode)

    r1 = take("r1", "ro")
    w1 = take("w1", "rw")
    fail("w2", "rw")
    r2 = take("r2", "ro")
    w2 = take("w2", "migration")
    fail("w3", "rw")
    fail("w3", "migration")
    listed = server.host.run(f"cd {DEVICES}/ram0/sessions; grep . */access_mode */read_only")
    assert sorted(listed.stdout.split()) == sorted(
        [f"{s}/access_mode:{m}" for s, m in
         (("r1", "ro"), ("r2", "ro"), ("w1", "rw"), ("w2", "migration"))]
        + [f"{s}/read_only:{n}" for s, n in (("r1", 1), ("r2", 1), ("w1", 0), ("w2", 0))])
    w1.unmap()
    fail("w3", "rw")
    take("w1", "migration").unmap()
    w2.unmap()
    w3 = take("w3", "rw")
    for disk in (w3, r1, r2):
        disk.unmap()


READ, WRITE, FLUSH, DISCARD, ERASE, ZEROES = range(6)


def test_hostile(hosts: Hosts) -> None:
    """A client without manners: what it opened read-only stays as it is, ids of others, ranges,
    sizes, types and texts without sense are refused, and a good client beside it goes on."""
    a, b = hosts(2)
    server = Server(b)
    server.ram(count=2, mib=16)
    device = server.loop(mib=16)
    server.export("disk", device)
    server.export("other", "/dev/ram1")
    raw = Raw(a, server)
    before = server.sum(device)
    ro = raw.open("disk", access=0)
    raw.io(ro, READ)
    raw.io(ro, FLUSH, size=0)
    for op in (WRITE, DISCARD, ERASE, ZEROES):
        raw.io(ro, op, code=errno.EPERM)
    assert server.sum(device) == before
    # Asking again, as after an answer that got lost, is no second mapping; otherwise, it is one.
    assert raw.open("disk", access=0) == ro
    raw.open("disk", access=1, code=errno.EEXIST)
    rw = raw.open("other")
    raw.io(rw, WRITE, sector=7, size=1024)
    assert raw.io(rw, READ, sector=8) == b"\xa5" * 512
    sectors = 16 << 11
    for op in (READ, WRITE, DISCARD, ZEROES):
        for sector in (sectors, sectors - 1, (1 << 64) - 1, 1 << 55):
            raw.io(rw, op, sector=sector, size=1024, code=errno.EIO)
    raw.io(rw, READ, sector=sectors - 1, size=512)
    for size in (0, 1, 511, 513):
        raw.io(rw, WRITE, size=size, code=errno.EINVAL)
    # Less data than is said, more, and some where there is none.
    for op, size, data in ((WRITE, 1024, 512), (WRITE, 512, 1024), (READ, 1024, 512),
                           (READ, 512, 0), (DISCARD, 512, 512), (FLUSH, 0, 512)):
        raw.io(rw, op, size=size, data=data, code=errno.EINVAL)
    raw.io(rw, 6, data=0, code=errno.EINVAL)
    raw.io(rw, 255, data=0, code=errno.EINVAL)
    raw.io(rw, READ, flags=0x1000, code=errno.EINVAL)
    for device_id in (rw ^ 1 if rw ^ 1 != ro else rw ^ 2, 0xffffffff, 0x7fffffff):
        raw.io(device_id, READ, code=errno.ENOTCONN)
    # Messages: short, of no known type, the wrong way round, with no end, of no sense.
    for usr in (b"", b"\4", b"\4\0\0\0", b"\6\0\0\0", b"\2\0\0\0\1\0disk\0", b"\0\0\0\0\2"):
        raw.send("read", usr or b"\0", 56, code=errno.EINVAL)
    raw.send("write", bytes(36), 0, code=errno.EINVAL)
    raw.send("read", struct.pack("<HHBB255s3x", 2, 0, 1, 0, b"d" * 255), 56, code=errno.EINVAL)
    raw.send("read", struct.pack("<HHBB255s3x", 2, 0, 3, 0, b"disk"), 56, code=errno.EINVAL)
    raw.send("read", struct.pack("<HHBB255s3x", 2, 0, 1, 0, b""), 56, code=errno.EINVAL)
    raw.send("read", struct.pack("<HHBB255s3x", 2, 0, 1, 0, b"d\ni"), 56, code=errno.EINVAL)
    raw.send("read", struct.pack("<HHBB255s3x", 2, 0, 1, 0, b"disk"), 55, code=errno.EINVAL)
    raw.send("write", struct.pack("<HHI", 5, 0, 0x7fffffff), code=errno.ENOTCONN)
    raw.send("write", struct.pack("<HHI", 5, 0, rw))
    raw.io(rw, READ, code=errno.ENOTCONN)
    again = raw.open("other")
    assert again != rw, "an id is not used again at once"
    # SESS_INFO of a later version; nothing of RAIL's own to whom does not know of it.
    assert raw.send("read", bytes([0, 0, 0, 0, 9]) + bytes(31), 36) == \
        bytes([1, 0, 0, 0, 2]) + bytes(31)
    # Who sends all that has harmed nobody.
    client = Client(a, server)
    raw.send("write", struct.pack("<HHI", 5, 0, ro))
    disk = client.map("disk")
    disk.fio("--rw=randrw", "--bs=4k", "--iodepth=16", "--size=1M")
    disk.unmap()
    a.rmmod("rail_rnbd_raw")
    client.clear()
    server.clear()


@pytest.mark.soak
def test_in_use(rig: Rig) -> None:
    """An open disk is unmapped by force alone: its I/O fails, its users live, another one maps it."""
    client, server = rig()
    server.ram(mib=32)
    server.export("disk", "/dev/ram0")
    disk = client.map("disk")
    client.host.run(f"mkfs.ext4 -q {disk.dev} && mkdir -p /run/mnt && mount {disk.dev} /run/mnt",
                    timeout=60)
    refused(client.host, f"{disk.dir}/rnbd/unmap_device", "normal", errno.EBUSY)
    assert disk.attr("state") == "open"
    client.host.run("umount /run/mnt")
    load = client.host.start(disk.fio_command("--rw=randrw", "--bs=4k", "--iodepth=64",
                                              "--size=16M", "--time_based", "--runtime=1000"))
    client.host.wait_file(f"{disk.dir}/stat", r"^ +[1-9]", 30)
    disk.unmap("force")
    assert load.wait(60, check=False).status != 0
    client.host.wait_file(disk.dir, None, 10)
    again = client.map("disk")
    again.fio("--rw=randrw", "--bs=4k", "--iodepth=16", "--size=1M")
    again.unmap()


@pytest.mark.soak
def test_force_close(rig: Rig) -> None:
    """The server takes a disk away: I/O fails and `state` says so; remap_device gets it back."""
    client, server = rig()
    server.ram(count=2, mib=16)
    path = server.export("disk", "/dev/ram0")
    server.export("other", "/dev/ram1")
    disk, other = client.map("disk"), client.map("other")
    for take, give in ((f"echo 1 >{DEVICES}/ram0/sessions/s1/force_close", "true"),
                       (f"echo 0 >{path}/enable", f"echo 1 >{path}/enable")):
        server.host.run(take)
        assert server.host.run(["ls", DEVICES]).stdout.split() == ["ram1"]
        out = client.host.run(f"dd if={disk.dev} of=/dev/null count=1 iflag=direct", check=False)
        assert out.status != 0
        assert disk.attr("state") == "closed"
        other.fio("--rw=randrw", "--bs=4k", "--iodepth=16", "--size=1M")
        server.host.run(give)
        disk.set("remap_device")
        assert disk.attr("state") == "open"
        disk.fio("--rw=randrw", "--bs=4k", "--iodepth=16", "--size=1M")
    disk.unmap()
    other.unmap()


@pytest.mark.soak
@pytest.mark.allow_log(r"null_blk|nullb|I/O error|Buffer I/O")
def test_device_goes(rig: Rig) -> None:
    """A disk pulled out of the server fails its own I/O; the one beside it does not notice."""
    client, server = rig()
    server.export("disk", server.null(mib=16))
    server.ram(mib=16)
    server.export("other", "/dev/ram0")
    disk, other = client.map("disk"), client.map("other")
    disk.fio("--rw=randrw", "--bs=4k", "--iodepth=16", "--size=1M")
    load = client.host.start(other.fio_command("--rw=randrw", "--bs=4k", "--iodepth=16",
                                               "--size=4M", "--loops=3"))
    write(server.host, "/sys/kernel/config/nullb/nullb0/power", "0")
    out = client.host.run(f"dd if={disk.dev} of=/dev/null count=1 iflag=direct", check=False)
    assert out.status != 0
    load.wait(120)
    disk.unmap()
    other.unmap()


@pytest.mark.soak
def test_resize(rig: Rig) -> None:
    """The server's disk grows and shrinks, and so does the client's by itself; what the user writes
    to `resize` holds, and what is beyond the end is refused by the server."""
    client, server = rig()
    device = server.loop(mib=16)
    server.export("disk", device)
    disk = client.map("disk")
    backing = server.host.run(["losetup", "-nO", "BACK-FILE", device]).stdout.strip()
    for mib in (24, 20, 16):
        server.host.run(f"truncate -s {mib}M {backing} && losetup -c {device}")
        client.host.wait_file(f"{disk.dir}/size", rf"^{mib << 11}$", 30)
        if mib == 24:
            disk.fio("--rw=write", "--bs=64k", "--iodepth=4", "--offset=16M", "--size=8M")
    disk.set("resize", str(32 << 11))
    assert disk.sectors() == 32 << 11
    out = client.host.run(f"dd if={disk.dev} of=/dev/null bs=4k skip=6144 count=1 iflag=direct",
                          check=False)
    assert out.status != 0
    assert disk.sectors() == 32 << 11
    disk.unmap()


PATHS = "/sys/class/rtrs-client/s1/paths"


@pytest.mark.soak
@pytest.mark.timeout(240)
def test_paths_lost(rig: Rig) -> None:
    """The only path goes and comes back under load: I/O waits, nothing fails, not a byte is wrong,
    though the server has forgotten its mappings and gives them new ids, in another order."""
    client, server = rig()
    server.ram(count=3, mib=16)
    for n in range(3):
        server.export(f"disk{n}", f"/dev/ram{n}")
    gone, disk, other = (client.map(f"disk{n}") for n in range(3))
    gone.unmap()
    load = client.host.start(disk.fio_command("--rw=randrw", "--bs=4k", "--iodepth=16",
                                              "--size=4M", "--loops=4"))
    (path,) = client.host.run(["ls", PATHS]).stdout.split()
    for _ in range(3):
        before = disk.stats()["writes"]
        while disk.stats()["writes"] == before and load.poll() is None:
            pass
        write(client.host, f"{PATHS}/{path}/disconnect", "1")
        assert disk.attr("state") == "closed"
        write(client.host, f"{PATHS}/{path}/reconnect", "1")
        client.host.wait_file(f"{disk.dir}/rnbd/state", "open", 60)
    load.wait(120)
    other.fio("--rw=randrw", "--bs=4k", "--iodepth=16", "--size=1M")
    assert disk.stats()["reopened"] == 3
    assert disk.sum() == server.sum("/dev/ram1")
    assert other.sum() == server.sum("/dev/ram2")
    disk.unmap()
    other.unmap()


def two_paths(client: Client, server: Server) -> list[str]:
    return [f"ip:{client.host.addr(link)},ip:{server.host.addr(link)}" for link in (0, 1)]


def start_verified(disk: Disk, *args: str, size: int = 4) -> Any:
    """Load that goes on, in rounds of so many MiB that are verified, until /run/stop is there."""
    command = shlex.join(disk.fio_command("--rw=randrw", f"--size={size}M", *args))
    return disk.host.start(f"rm -f /run/stop; while [ ! -e /run/stop ]; do {command} || exit 1; done")


def stop_verified(load: Any, host: Host) -> None:
    host.run("touch /run/stop")
    load.wait(180, check=True)


def goes_on(disk: Disk, load: Any, count: int = 200) -> None:
    """Wait for so many more writes."""
    until = disk.stats()["writes"] + count
    end = time.monotonic() + 120 * disk.host.factor
    while disk.stats()["writes"] < until:
        assert time.monotonic() < end, disk.stats()
        if load.poll() is not None:
            load.wait(1, check=True)
            raise AssertionError("the load has ended")
        time.sleep(0.1)


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_link_cut_under_load(rig: Rig) -> None:
    """Each link of two goes and comes back while data is written and verified: nothing fails, and
    both ends have the same bytes."""
    client, server = rig(links=2)
    server.ram(mib=16)
    server.export("disk", "/dev/ram0")
    disk = client.map("disk", paths=two_paths(client, server))
    load = start_verified(disk, "--bsrange=4k-64k", "--iodepth=16")
    for link in (0, 1):
        path = f"{PATHS}/ip:{client.host.addr(link)}@ip:{server.host.addr(link)}"
        client.host.wait_file(f"{disk.dir}/stat", r"^ +[1-9]", 60)
        client.host.cluster.link(link).cut()
        write(client.host, f"{path}/reconnect", "1")
        client.host.wait_file(f"{path}/state", "^(re)?connecting", 60)
        goes_on(disk, load)
        client.host.cluster.link(link).restore()
        client.host.wait_file(f"{path}/state", "^connected$", 120)
    goes_on(disk, load)
    stop_verified(load, client.host)
    assert disk.sum() == server.sum("/dev/ram0")
    disk.unmap()


@pytest.mark.soak
def test_no_path(rig: Rig) -> None:
    """Without a path I/O fails when its time is up, and a disk is unmapped by force at once."""
    client, server = rig()
    server.ram(count=2, mib=16)
    server.export("disk", "/dev/ram0")
    server.export("other", "/dev/ram1")
    disk, other = client.map("disk", no_path_timeout=2), client.map("other")
    (path,) = client.host.run(["ls", PATHS]).stdout.split()
    write(client.host, f"{PATHS}/{path}/disconnect", "1")
    out = client.host.run(f"dd if={disk.dev} of=/dev/null count=1 iflag=direct", check=False)
    assert "severed" in out.stderr, "not the errno of a lost link"
    assert disk.stats()["err_no_path"] >= 1
    write(client.host, "/sys/class/rtrs-client/s1/no_path_timeout", "600")
    load = client.host.start(f"dd if={disk.dev} of=/dev/null count=1 iflag=direct")
    client.host.wait_file(f"{disk.dir}/inflight", r"^ +1 ", 30)
    disk.unmap("force")
    assert load.wait(30, check=False).status != 0
    other.unmap()


@pytest.mark.soak
def test_poll_queues(rig: Rig) -> None:
    """I/O that is polled for is found by polling."""
    client, server = rig()
    server.ram(mib=16)
    server.export("disk", "/dev/ram0")
    disk = client.map("disk", nr_poll_queues=2)
    assert disk.queue("io_poll") == "1"
    client.host.run(["fio", "--name=x", f"--filename={disk.dev}", "--direct=1",
                     "--ioengine=io_uring", "--hipri=1", "--verify=crc32c", "--rw=randrw",
                     "--bs=4k", "--iodepth=8", "--size=1M"], timeout=120)
    assert disk.stats()["polled"] > 100
    disk.unmap()


@pytest.mark.soak
def test_filesystem_in_use(rig: Rig) -> None:
    """ext4 made, filled, trimmed and checked; what is freed is freed at the server."""
    client, server = rig()
    device = server.loop(mib=64)
    server.export("disk", device)
    disk = client.map("disk")
    backing = server.host.run(["losetup", "-nO", "BACK-FILE", device]).stdout.strip()
    client.host.run(f"mkfs.ext4 -q {disk.dev} && mkdir -p /run/mnt && mount {disk.dev} /run/mnt && "
                    "dd if=/dev/urandom of=/run/mnt/x bs=1M count=16 conv=fsync status=none && "
                    "cp /run/mnt/x /run/mnt/y && umount /run/mnt && mount -o ro "
                    f"{disk.dev} /run/mnt && cmp /run/mnt/x /run/mnt/y && umount /run/mnt && "
                    f"fsck.ext4 -fn {disk.dev}", timeout=120)
    full = int(server.host.run(["stat", "-c", "%b", backing]).stdout)
    client.host.run(f"mount {disk.dev} /run/mnt && rm /run/mnt/x && sync && fstrim /run/mnt && "
                    f"umount /run/mnt && fsck.ext4 -fn {disk.dev}", timeout=120)
    less = int(server.host.run(["stat", "-c", "%b", backing]).stdout)
    assert less < full - (12 << 11), (full, less)
    disk.unmap()


@pytest.mark.soak
def test_partition_in_use(rig: Rig) -> None:
    """A partition is seen, when it is made and when its disk is mapped, and keeps its disk in use."""
    client, server = rig()
    server.export("disk", server.ram(mib=16)[0])
    disk = client.map("disk")
    entry = struct.pack("<8B2I", 0, 0, 0, 0, 0x83, 0, 0, 0, 2048, 8192)
    client.host.run(["dd", f"of={disk.dev}", "bs=512", "oflag=direct"],
                    data=bytes(446) + entry + bytes(48) + b"\x55\xaa")
    client.host.run(["blockdev", "--rereadpt", disk.dev])
    assert client.host.read(f"{disk.dir}/{disk.name}p1/size").strip() == "8192"
    disk.unmap()
    disk = client.map("disk")
    client.host.wait_file(f"{disk.dev}p1", "", 10)
    user = client.host.start(f"exec sleep 1000 <{disk.dev}p1")
    client.host.run(f"until fuser -s {disk.dev}p1; do :; done", timeout=20)
    refused(client.host, f"{disk.dir}/rnbd/unmap_device", "normal", errno.EBUSY)
    user.kill()
    user.wait(10, check=False)
    disk.unmap()


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_server_reboots(rig: Rig) -> None:
    """The server dies and is there again: what was written meanwhile waits, and arrives."""
    client, server = rig()
    server.ram(mib=16)
    server.export("disk", "/dev/ram0")
    disk = client.map("disk", no_path_timeout=1000)
    server.host.kill()
    load = client.host.start(f"dd if=/dev/urandom of=/run/data bs=1M count=2 status=none; "
                             f"dd if=/run/data of={disk.dev} bs=64k oflag=direct status=none; "
                             f"md5sum </run/data")
    client.host.wait_file(f"{disk.dir}/rnbd/state", "closed", 120)
    server.host.reboot()
    server = Server(server.host)
    server.ram(mib=16)
    server.export("other", "/dev/ram0")
    server.export("disk", "/dev/ram0")
    # The client's pauses between attempts get longer.
    load.wait(180)
    there = server.host.run("dd if=/dev/ram0 bs=1M count=2 iflag=direct status=none | md5sum")
    assert there.stdout == load.stdout
    disk.unmap()
    server.clear()
    client.clear()


@pytest.mark.soak
@pytest.mark.timeout(1200 if SOAK else 240)
def test_many(rig: Rig) -> None:
    """Many mappings on one session, all in use at once."""
    count = 1000 if SOAK else 50
    client, server = rig(search="/dev")
    server.ram(count=count, mib=1)
    disks = [client.map(f"ram{n}") for n in range(count)]
    jobs = [arg for disk in disks for arg in (f"--name={disk.name}", f"--filename={disk.dev}")]
    client.host.run(["fio", "--direct=1", "--ioengine=libaio", "--verify=crc32c", "--rw=randrw",
                     "--bs=4k", "--iodepth=4", "--size=256k", "--thread", *jobs],
                    timeout=900 if SOAK else 200)
    assert len(client.host.run(["ls", "/sys/class/rtrs-client"]).stdout.split()) == 1
    for disk in disks:
        disk.unmap()


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.allow_log(r"rnbd\d|I/O error|Buffer I/O|raid1|md/raid|device-mapper")
def test_mirror_survives_a_server(hosts: Hosts) -> None:
    """md's RAID 1 over disks of two servers: one of them dies under load, nobody above notices."""
    a, b, c = hosts(3, links=[(0, 1), (0, 2)])
    ends = [Server(b), Server(c, link=1)]
    for server in ends:
        server.ram(mib=16)
        server.export("disk", "/dev/ram0")
    clients = [Client(a, server, sess=f"s{n}") for n, server in enumerate(ends)]
    disks = [client.map("disk", no_path_timeout=1) for client in clients]
    # dm-raid is md with a table for a tool; its notes of what is in sync are on disks of our own.
    a.modprobe("brd", "rd_nr=2", "rd_size=4096")
    a.modprobe("dm-raid")
    table = (f"0 {disks[0].sectors()} raid raid1 4 0 nosync region_size 1024 2 "
             f"/dev/ram0 {disks[0].dev} /dev/ram1 {disks[1].dev}")
    a.run(["dmsetup", "create", "mirror", "--table", table])
    mirror = Disk(clients[0], disks[0].name)
    # Without udev this is the only name it has.
    mirror.dev = "/dev/" + a.run(["dmsetup", "info", "-c", "--noheadings", "-o", "blkdevname",
                                  "mirror"]).stdout.strip()
    load = start_verified(mirror, "--bs=16k", "--iodepth=8")
    goes_on(disks[1], load, 100)
    b.kill()
    # It is out when it was tried for long enough.
    a.run("until dmsetup status mirror | grep -q 'raid1 2 D'; do sleep 0.2; done", timeout=120)
    goes_on(disks[1], load, 100)
    stop_verified(load, a)
    a.run(["dmsetup", "remove", "--retry", "mirror"], timeout=60)
    assert disks[1].sum() == ends[1].sum("/dev/ram0")
    disks[0].unmap("force")
    disks[1].unmap()
    clients[1].clear()
    a.run("modprobe -r dm-raid raid1 brd", check=False)
    ends[1].clear()
