# SPDX-License-Identifier: GPL-2.0-only
"""Not in `make check` yet: fio and hostile servers against our NFS/RDMA client have not been run in
this form. That the class is taken cannot be tested so: the in-tree module has the name of ours, and
the kernel refuses a second one of a name before that says anything. To run: pytest
tests/vm/drafts/nfs_client.py
"""

from __future__ import annotations

import pytest
from nfsrig import PORT, unload
from peerprog import Program
from railvm import SOAK
from rpcpeer import SUCCESS, words
from test_nfs_client import Hosts, load, ours, served

pytestmark = pytest.mark.kernels("stock-6.1")


def test_fio(hosts: Hosts) -> None:
    """Many jobs at once, each verifies what it wrote; more jobs than credits."""
    cluster = ours(hosts)
    size, jobs, most = ("8m", 40, "4m") if SOAK else ("1m", 8, "512k")
    with served(cluster) as server:
        client = cluster[0]
        mount = server.mount(client, "vers=4.2,nconnect=2")
        for mode in ("--direct=1 --bsrange=512-" + most, "--fsync_on_close=1 --bsrange=1-" + most):
            client.run(f"fio --name=v --directory={mount.where} --size={size} --numjobs={jobs} "
                       "--rw=randrw --ioengine=psync --verify=crc32c --verify_fatal=1 "
                       f"--bs_unaligned=1 {mode} --group_reporting --output-format=terse "
                       f"&& rm -f {mount.where}/v.*", timeout=200)
        mount.umount()


@pytest.mark.allow_log(r"rpcrdma: another module provides")
def test_class_taken(hosts: Hosts) -> None:
    """Beside another module with the class ours refuses to load, and says why."""
    client = ours(hosts)[0]
    client.modprobe_rail("rpcrdma")
    client.run("rmmod rpcrdma")
    where = "/lib/modules/$(uname -r)"
    mine = client.run(f"find -L {where}/updates -name rpcrdma.ko").stdout.strip()
    client.run(f"insmod $(find -L {where}/kernel/net/sunrpc -name 'rpcrdma.ko*')")
    mark = client.log_mark()
    assert client.run(["insmod", mine], check=False).status
    client.wait_log("another module provides", since=mark)
    client.run("rmmod rpcrdma")
    client.run(["insmod", mine])
    unload(client)


# What a rogue server says once it has answered the first call, all in answer to the second. {xid} is
# that one's. After each the client must go on, or give up, of itself.
NO_LISTS = words(0, 0, 0)
NULL_REPLY = "{xid}" + words(1, 8, 0) + NO_LISTS + "{xid}" + SUCCESS.hex()
ROGUE = {
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
    "too long": ["00" * 5000],
}


@pytest.mark.allow_log(r"rpcrdma: |rail: |NFS: |nfs: server")
def test_rogue_server(hosts: Hosts) -> None:
    """Whatever a server answers, a mount fails and is done with."""
    client, rogue = ours(hosts)
    load(client)
    program = Program(rogue, "rpcrdma_peer")
    client.run("mkdir -p /mnt/nfs")
    for name, messages in ROGUE.items():
        peer = rogue.start([program.path], data="\n".join([
            f"listen {PORT}", "accept f6ab0e18 01 01 03 03", "recv 20000", "send " + NULL_REPLY,
            "recv 20000", *("send " + text for text in messages), "recv 500", "close",
            ""]).encode())
        peer.wait_output("listening", timeout=20)
        mounted = client.run(["timeout", "60", "mount", "-t", "nfs", "-o",
                              f"proto=rdma,port={PORT},vers=4.1,soft,timeo=10,retrans=1,retry=0",
                              f"{rogue.addr()}:/", "/mnt/nfs"], check=False, timeout=80)
        peer.wait(timeout=30)
        assert mounted.status not in (0, 124), f"{name}: {mounted}"
        assert "accepted" in peer.stdout, f"{name}: {peer.stdout}"
    unload(client)
