# SPDX-License-Identifier: GPL-2.0-only
"""Not seen green yet, for want of a quiet machine: rounds of mapping, and of loading modules. What
seemed to be lost after rounds of loading was found in the processors' lists of free pages, which
memory() now counts. Goes to test_rnbd.py."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from railvm import SOAK, Cluster, Host
from rnbdrig import Client, Server

Hosts = Callable[..., Cluster]

pytestmark = [pytest.mark.kernels("stock-6.1", "test-7"), pytest.mark.soak("test-7")]


def memory(host: Host) -> tuple[int, int]:
    """KiB of memory that the kernel keeps for itself, and that are in use at all. Pages in the
    processors' own lists, tens of MiB in the end, are free too, and /proc/meminfo does not say so."""
    lists = "awk '$1 == \"count:\" { n += $2 } END { print \"Lists: \" n * 4 }' /proc/zoneinfo"
    text = host.run("sync; for i in 1 2; do echo 3 >/proc/sys/vm/drop_caches; sleep 1; done; "
                    f"cat /proc/meminfo; {lists}").stdout
    info = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines()}
    return (info["SUnreclaim"] + info["Percpu"] + info["VmallocUsed"] + info["KernelStack"],
            info["MemTotal"] - info["MemFree"] - info["Lists"])


@pytest.mark.timeout(3000 if SOAK else 900)
def test_rounds_end_where_they_began(hosts: Hosts) -> None:
    """A disk is mapped, used and unmapped, and modules are loaded and unloaded, again and again: in
    the end both hosts have the memory and the RDMA objects they had after the first rounds."""
    a, b = hosts(2)
    # The first rounds fill what the kernel keeps for the next ones.
    for what, rounds, warm in (("map", 200 if SOAK else 8, 2), ("load", 100 if SOAK else 3, 2)):
        server, client = Server(b, depth=64), None
        server.ram(mib=4)
        server.export("disk", "/dev/ram0")
        before: list[tuple[int, int]] = []
        for number in range(warm + rounds):
            if number == warm:
                before = [memory(host) for host in (a, b)]
            if what == "load":
                server.clear()
                server = Server(b, depth=64)
                server.ram(mib=4)
                server.export("disk", "/dev/ram0")
            client = client or Client(a, server)
            disk = client.map("disk")
            a.run(["dd", "if=/dev/urandom", f"of={disk.dev}", "bs=64k", "count=16", "oflag=direct"])
            disk.unmap()
            if what == "load":
                client.clear()
                client = None
            b.run("until [ -z \"$(ls /sys/class/rtrs-server)\" ]; do sleep 0.1; done", timeout=60)
        for host, (kernel, used) in zip((a, b), before, strict=True):
            kernel_now, used_now = memory(host)
            assert kernel_now < kernel + 1024, f"{host.name}, {what}: {kernel} -> {kernel_now}"
            assert used_now < used + 2048, f"{host.name}, {what}: {used} -> {used_now}"
            assert host.run("rdma resource show qp | grep -cv 'type GSI' || :").stdout.strip() == "0"
        if client:
            client.clear()
        server.clear()
