# SPDX-License-Identifier: GPL-2.0-only
"""The guides of the manual: what they say to type is typed, on two hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from guides import Guide
from nfsrig import NfsServer, unload
from railvm import Cluster, Host, kernels
from rnbdrig import Client, Server

Hosts = Callable[..., Cluster]

pytestmark = [pytest.mark.kernels("stock-6.1"), pytest.mark.usefixtures("railctl_built")]

TOOLS = kernels.TOOLS


@pytest.fixture
def pair(hosts: Hosts) -> Iterator[tuple[Host, Host]]:
    """A client and a server with two links between them, and a disk in memory."""
    a, b = hosts(2, links=2)
    b.modprobe("brd", "rd_nr=1", "rd_size=32768")
    yield a, b


def guide(name: str, who: dict[str, Host], pair: tuple[Host, Host]) -> Guide:
    a, b = pair
    names = {"eth0": a.nic(0).name, "eth1": a.nic(1).name, "/dev/vg0/lv0": "/dev/ram0",
             "192.0.2.1": b.addr(), "192.0.2.7": a.addr(),
             "198.51.100.1": b.addr(1), "198.51.100.7": a.addr(1)}
    return Guide(name, who, names, str(TOOLS))


def railctl(host: Host, *args: str) -> None:
    host.run([str(TOOLS / "railctl"), *args], timeout=60)


def test_start(pair: tuple[Host, Host]) -> None:
    a, b = pair
    server = Server(b)
    client = Client(a, server)
    for host in pair:
        for nic in host.nics:
            railctl(host, "rxe", "down", nic.name)
    page = guide("start", {"client": a, "server": b}, pair)
    # There is no systemd on these hosts.
    assert page.follow(skip=("client-systemd", "server-systemd")) == 7
    for host in pair:
        for nic in host.nics:
            railctl(host, "rxe", "down", nic.name)
            railctl(host, "rxe", "up", "-n", nic.rdma, nic.name)
    client.clear()
    server.clear()


def test_block(pair: tuple[Host, Host]) -> None:
    a, b = pair
    server = Server(b)
    client = Client(a, server)
    assert guide("block", {"client": a, "server": b}, pair).follow() == 4
    # The guide ends with a disk that was taken away.
    railctl(b, "export", "allow", "disk", a.addr())
    railctl(a, "remap", "disk@s1")
    page = guide("tuning", {"client": a, "server": b}, pair)
    assert page.follow(skip=("nfs-client", "nfs-server")) == 4
    railctl(a, "unmap", "--force", "disk@s1")
    railctl(b, "export", "remove", "disk")
    client.clear()
    server.clear()


def test_nfs(pair: tuple[Host, Host]) -> None:
    a, b = pair
    server = NfsServer(b)
    server.prepare()
    # The guide begins with a server of NFS by TCP.
    b.run(["rpc.nfsd", "--no-udp", "4"], timeout=60)
    a.modprobe("nfs")
    assert guide("nfs", {"nfs-client": a, "nfs-server": b}, pair).follow() == 2
    assert guide("tuning", {"nfs-client": a, "nfs-server": b}, pair).follow(
        skip=("client", "server")) == 2
    a.run(["umount", "/mnt/nfs"], timeout=60)
    server.stop()
    b.run(["rmmod", "nfsd"], timeout=60)
    unload(a, b)
