# SPDX-License-Identifier: GPL-2.0-only
"""rail_verbs moves every byte right: the test pair over rxe, between two hosts.

Both ends check each message, and each piece of memory read or written, against a
pattern; messages also against their order. SOAK=1 moves more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from railvm import SOAK, Cluster
from vtest import Pair

Hosts = Callable[..., Cluster]

pytestmark = pytest.mark.kernels("stock-6.1", "test-7")

MORE = 20 if SOAK else 1


@pytest.fixture
def pair(hosts: Hosts) -> Iterator[Pair]:
    """Both modules loaded; at the end no fault counted, nothing left behind, all unloaded."""
    pair = Pair(hosts(2))
    yield pair
    pair.sound()
    pair.close()
    pair.unload()


@pytest.mark.timeout(240 * MORE)
def test_sends(pair: Pair) -> None:
    """100,000 messages each way (under KASAN a tenth of them, but for a soak), gathered from up to
    a dozen pieces, by every way to be told of completions and to post, through send queues that
    are far too small for what is to be sent."""
    kinds = [
        # Where completions are worked on here and there, then the client's other options.
        ("softirq", "softirq", "post=try depth=8 signal=1 streams=2 window=64 sges=12"),
        ("workqueue", "direct", "post=queued depth=12 streams=2 window=100 sges=5"),
        ("unbound", "workqueue", "post=wait depth=16 interval=3 streams=1 window=128 sges=2"),
        ("direct", "unbound", "post=mix depth=24 signal=8 streams=3 window=256 sges=7"),
    ]
    for here, there, options in kinds:
        depth = options.partition("depth=")[2].split()[0]
        post = options.partition("post=")[2].split()[0]
        pair.server.do(f"set poll={there} depth={depth} post={post}")
        pair.connect(f"poll={here} {options} msg=256")
    count = 100_000 * MORE
    if pair.client.host.kernel.instrumented and not SOAK:
        count //= 10
    share = count // len(kinds)
    pair.run(f"send={share} back={share} seed=1", timeout=200 * MORE)
    for side in pair.sides:
        stats = side.stats()
        assert stats["sent"] == stats["received"] == count
        assert stats["bytes"] > 100 * count
        assert stats["again"] > count // 1000, f"{side.name}: there was always space"


def test_remote_memory(pair: Pair) -> None:
    """The server reads and writes the client's memory, by rail_rw and by plain work requests, and
    ends each with Send With Invalidate, or leaves the key to be invalidated by its owner; the
    client writes the server's chunks with immediate data, each time under a new key, and writes
    of nothing, which the server answers with the same."""
    before = pair.server.resources()["rxe0"]["pd"]
    pair.connect(conns=2)
    pair.connect(conns=2, v6=True)
    # One protection domain for each group, whatever the number of its connections.
    for side in pair.sides:
        assert side.resources()["rxe0"]["pd"] == before + 2
    count = 250 * MORE
    ops = ("read", "write", "inv", "imm", "imm0")
    pair.run(" ".join(f"{op}={count}" for op in ops), timeout=120 * MORE)
    for side in pair.sides:
        stats = side.stats()
        assert {op: stats[op] for op in ops} == {op: 4 * count for op in ops}
    assert pair.client.stats()["local_inv"] > count


def test_everything_is_short(pair: Pair) -> None:
    """Sends both ways and all operations at once over one connection whose queues and pools hold
    next to nothing: everybody waits for everything, and everything ends."""
    pair.server.do("set depth=8 rw=1 interval=1")
    pair.connect("depth=8 interval=1 window=2 tags=6 chunks=1 mrs=1 mrmax=1 streams=4 post=mix "
                 "signal=3 msg=777 mem=20000")
    pair.run(f"send={500 * MORE} back={500 * MORE} read={100 * MORE} write={100 * MORE} "
             f"inv={100 * MORE} imm={100 * MORE} imm0={100 * MORE}", timeout=120 * MORE)
    assert pair.client.stats()["mr_empty"] > 0, "there was always a region"


def test_big_messages(pair: Pair) -> None:
    """Messages, chunks and requests of many packets each."""
    pair.server.do("set mrs=20")
    pair.connect("msg=65536 mem=262144 sges=12 window=16 tags=4 chunks=2 mrs=8")
    pair.run(f"send={40 * MORE} back={40 * MORE} read={20 * MORE} write={20 * MORE} "
             f"imm={20 * MORE}", timeout=120 * MORE)


def test_lossy_link(pair: Pair) -> None:
    """Packets get lost and come late: retransmission does not show."""
    link = pair.client.host.cluster.link(0)
    # Seven tries of 17 ms, or of a second where it may take that long to run at all.
    ack = 18 if pair.client.host.kernel.instrumented else 12
    pair.connect(f"ack={ack} msg=3000 window=32", conns=2)
    link.netem("delay 1ms 1ms loss 1%")
    # No reads and writes: when rxe has to retransmit after a registration, it stands still for good
    # (6.1) or the QP fails (7.3).
    pair.run(f"send={300 * MORE} back={300 * MORE} imm0={100 * MORE}", timeout=120 * MORE)
    link.clear_netem()


@pytest.mark.soak("test-7")
def test_rw_through_regions(hosts: Hosts) -> None:
    """rail_rw on a device that cannot do without memory regions for it, which the kernel's
    force_mr makes one of rxe: register, move and invalidate share a chain."""
    pair = Pair(hosts(2, cmdline="ib_core.force_mr=1"))
    pair.server.do("set depth=16 chain=16 rw=4")
    pair.connect("msg=2048 mem=30000", conns=2)
    pair.run(f"read={100 * MORE} write={100 * MORE} send={100 * MORE}", timeout=120 * MORE)
    pair.sound()
    pair.close()
    pair.unload()


@pytest.mark.soak("test-7")
def test_addresses(hosts: Hosts) -> None:
    """IPv4, IPv6, link-local IPv6 with its scope, a given source, on either of two links; one
    wildcard listener for each family hears them all, and goes when it is told to."""
    pair = Pair(hosts(2, links=2))
    a, b = pair.client.host, pair.server.host
    local = [line.split()[3].split("/")[0] for line in
             b.run("ip -o -6 addr show dev link1 scope link").stdout.splitlines()]
    paths = [
        f"ip:{b.addr(0)}", f"ip:{b.addr(1)}:7174",
        f"ip:{b.addr(0, v6=True)}", f"ip:[{b.addr(1, v6=True)}]:7174",
        f"ip:{a.addr(1)}@ip:{b.addr(1)}", f"ip:{a.addr(0, v6=True)},ip:{b.addr(0, v6=True)}",
        f"ip:{local[0]}%link1",
    ]
    for path in paths:
        pair.connect(path=path)
    names = [conn["name"] for conn in pair.client.status()["conns"]]
    assert names[:2] == [f"ip:{a.addr(0)}@ip:{b.addr(0)}", f"ip:{a.addr(1)}@ip:{b.addr(1)}"]
    assert names[6].split("@")[1].startswith(f"ip:{local[0]}%"), names[6]
    pair.run("send=50 back=50 read=10 write=10 imm=10")
    pair.sound()
    pair.close()

    pair.server.do("unlisten")
    pair.note()
    pair.connect(up=False)
    pair.gone()
    assert pair.client.reasons()[-1] == 111  # ECONNREFUSED
    pair.server.do(f"listen ip:{b.addr(1)}:9999")
    pair.note()
    pair.connect(path=f"ip:{b.addr(1)}:9999")
    pair.connect(path=f"ip:{b.addr(0)}:9999", up=False)
    pair.client.wait("conns", 1)
    assert pair.client.reasons()[-1] == 111
    pair.close()
    pair.unload()
