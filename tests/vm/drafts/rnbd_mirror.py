# SPDX-License-Identifier: GPL-2.0-only
"""Not seen green yet: a mirror over disks of two servers. Goes to test_rnbd.py."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from railvm import Cluster
from rnbdrig import Client, Disk, Server
from test_rnbd import goes_on, start_verified, stop_verified

Hosts = Callable[..., Cluster]

pytestmark = [pytest.mark.kernels("stock-6.1", "test-7"), pytest.mark.soak("test-7")]


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
