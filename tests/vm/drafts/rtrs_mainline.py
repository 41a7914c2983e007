# SPDX-License-Identifier: GPL-2.0-only
"""Not seen green yet: the RTRS client against mainline's server, failover and coming back under
verified load."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from railvm import Cluster
from rnbdrig import Client, Server

Hosts = Callable[..., Cluster]

pytestmark = pytest.mark.kernels("stock-6.1", "test-7")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("rotate", [True, False], ids=["rotate", "fixed"])
def test_failover(hosts: Hosts, rotate: bool) -> None:
    """Each path in turn is connected anew, and a link cut, while fio writes and verifies."""
    cluster = hosts(2, links=2, modules=["test", "in-tree"])
    a, b = cluster
    server = Server(b, ours=False, rotate=rotate, search="/dev")
    server.ram(mib=32)
    client = Client(a, server)
    paths = [f"ip:{a.addr(link)},ip:{b.addr(link)}" for link in (0, 1)]
    disk = client.map("ram0", paths=paths)
    top = "/sys/class/rtrs-client/s1/paths"
    names = [f"{top}/ip:{a.addr(link)}@ip:{b.addr(link)}" for link in (0, 1)]
    load = a.start(disk.fio_command("--rw=randrw", "--bsrange=4k-128k", "--iodepth=8",
                                    "--size=16M", "--time_based", "--runtime=20",
                                    "--verify_backlog=32"))
    for link in (0, 1):
        a.write(f"{names[link]}/reconnect", "1")
        a.wait_file(f"{names[link]}/stats/reconnects", r"^1 ", 60)
        a.wait_file(f"{names[link]}/state", "^connected$", 60)
    cluster.link(1).cut()
    a.write(f"{names[1]}/reconnect", "1")
    a.wait_file(f"{names[1]}/state", "^(re)?connecting$", 60)
    cluster.link(1).restore()
    a.wait_file(f"{names[1]}/state", "^connected$", 90)
    load.wait(150)
    assert client.host.read(f"{names[0]}/state").strip() == "connected"
    assert disk.sum() == server.sum("/dev/ram0")
    disk.unmap()
    client.clear()
    server.clear()


@pytest.mark.timeout(240)
def test_all_paths_lost(hosts: Hosts) -> None:
    """Both paths go and come back: the load waits, the device is opened anew, nothing is lost."""
    cluster = hosts(2, links=2, modules=["test", "in-tree"])
    a, b = cluster
    server = Server(b, ours=False, search="/dev")
    server.ram(mib=32)
    client = Client(a, server)
    paths = [f"ip:{a.addr(link)},ip:{b.addr(link)}" for link in (0, 1)]
    disk = client.map("ram0", paths=paths)
    top = "/sys/class/rtrs-client/s1/paths"
    names = [f"{top}/ip:{a.addr(link)}@ip:{b.addr(link)}" for link in (0, 1)]
    load = a.start(disk.fio_command("--rw=randrw", "--bs=8k", "--iodepth=8", "--size=8M",
                                    "--time_based", "--runtime=15", "--verify_backlog=32"))
    for name in names:
        a.write(f"{name}/disconnect", "1")
    for name in names:
        assert a.read(f"{name}/state").strip() == "disconnected"
        a.write(f"{name}/reconnect", "1")
    for name in names:
        a.wait_file(f"{name}/state", "^connected$", 90)
    load.wait(120)
    assert disk.sum() == server.sum("/dev/ram0")
    disk.unmap()
    client.clear()
    server.clear()
