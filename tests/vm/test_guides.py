# SPDX-License-Identifier: GPL-2.0-only
"""The guides of the manual: what they say to type is typed, on two hosts.

A block of commands belongs to the host that a comment before it names: ".. run: client".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from nfsrig import NfsServer, unload
from railvm import Cluster, Host, kernels
from rnbdrig import Client, Server

Hosts = Callable[..., Cluster]

pytestmark = [pytest.mark.kernels("stock-6.1"), pytest.mark.usefixtures("railctl_built")]

TOOLS = kernels.TOOLS
BLOCK = re.compile(r"^\.\. run: (\S+)\n\n::\n\n((?:    .*\n|\n)+)", re.M)


@pytest.fixture
def pair(hosts: Hosts) -> Iterator[tuple[Host, Host]]:
    """A client and a server with two links between them, and a disk in memory."""
    a, b = hosts(2, links=2)
    b.modprobe("brd", "rd_nr=1", "rd_size=32768")
    yield a, b


def follow(guide: str, who: dict[str, Host], pair: tuple[Host, Host]) -> int:
    """Type all commands of a guide; how many blocks there were."""
    a, b = pair
    names = {"eth0": a.nic(0).name, "/dev/vg0/lv0": "/dev/ram0", "192.0.2.1": b.addr(),
             "192.0.2.7": a.addr(), "198.51.100.1": b.addr(1), "198.51.100.7": a.addr(1)}
    text = (kernels.TOP / "Documentation" / f"{guide}.rst").read_text()
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count(".. run: "), "a block that is not understood"
    for host, commands in blocks:
        for name, real in names.items():
            commands = re.sub(re.escape(name) + r"(?![0-9])", real, commands)
        who[host].run(f"export PATH={TOOLS}:$PATH\nset -e\n{commands}", timeout=60)
    return len(blocks)


def railctl(host: Host, *args: str) -> None:
    host.run([str(TOOLS / "railctl"), *args], timeout=60)


def test_start(pair: tuple[Host, Host]) -> None:
    a, b = pair
    server = Server(b)
    client = Client(a, server)
    for host in pair:
        railctl(host, "rxe", "down", host.nic(0).name)
    assert follow("start", {"client": a, "server": b}, pair) == 5
    for host in pair:
        railctl(host, "rxe", "down", host.nic(0).name)
        railctl(host, "rxe", "up", "-n", "rxe0", host.nic(0).name)
    client.clear()
    server.clear()


def test_block(pair: tuple[Host, Host]) -> None:
    a, b = pair
    server = Server(b)
    client = Client(a, server)
    assert follow("block", {"client": a, "server": b}, pair) == 4
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
    assert follow("nfs", {"nfs-client": a, "nfs-server": b}, pair) == 2
    a.run(["umount", "/mnt/nfs"], timeout=60)
    server.stop()
    b.run(["rmmod", "nfsd"], timeout=60)
    unload(a, b)
