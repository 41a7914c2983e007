# SPDX-License-Identifier: GPL-2.0-only
"""Not in `make check` yet, for they have not been run: a server that is reset, and memory after many
mounts. To run: pytest tests/vm/drafts/nfs.py
"""

from __future__ import annotations

import re

import pytest
from nfsrig import EXPORT, Mount, agree, work
from railvm import SOAK, Host
from test_nfs import Hosts, served
from test_nfs_client import CONNECTS, wait_connects, word

pytestmark = pytest.mark.kernels("stock-6.1")


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


def held(host: Host) -> dict[str, int]:
    """What of a host's memory is in use and cannot be reclaimed, in KiB."""
    host.run("sync; echo 3 >/proc/sys/vm/drop_caches; sleep 1; echo 3 >/proc/sys/vm/drop_caches")
    info = {name: int(size) for name, size in
            re.findall(r"^(\w+):\s+(\d+) kB", host.read("/proc/meminfo"), re.M)}
    return {"slab": info["SUnreclaim"], "percpu": info["Percpu"], "vmalloc": info["VmallocUsed"],
            "all": info["MemTotal"] - info["MemAvailable"]}


@pytest.mark.soak
@pytest.mark.timeout(3600 if SOAK else 400)
def test_rounds(hosts: Hosts) -> None:
    """Mounts that come and go, modules too, leave no memory behind."""
    cluster = hosts(2, fresh=True)
    a, b = cluster

    def mounts(count: int) -> None:
        with served(cluster) as server:
            for i in range(count):
                mount: Mount = server.mount(a, ("vers=3", "vers=4.2")[i % 2])
                a.run(f"head -c 300000 /dev/zero >{mount.where}/file; rm {mount.where}/file")
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
