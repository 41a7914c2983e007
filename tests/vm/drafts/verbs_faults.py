# SPDX-License-Identifier: GPL-2.0-only
"""Not in `make check` yet, for not all of them have passed: rail_verbs when something breaks in
every state. To run: pytest tests/vm/drafts/verbs_faults.py
"""

from __future__ import annotations

import errno
import itertools
import time

import pytest

from vtest import SOAK, Pair
from test_verbs_faults import count_states, ended, every_state, LOAD, over, pair, works  # noqa: F401

pytestmark = pytest.mark.kernels("stock-6.1", "test-7")


def test_silent_peer(pair: Pair) -> None:
    """A peer that falls silent is missed by who watches it, though nothing is sent, and only
    then: who does not watch stays, and a peer that merely has nothing to say is not missed."""
    client, server = pair.sides
    pair.connect("watch=2000 retries=1", conns=2)
    server.do("set watch=2000")
    pair.connect()
    server.do("set watch=0")
    # Twice the time, for nothing: the only way to see that nothing happens.
    time.sleep(4)
    client.wait("up", 3)
    link = client.host.cluster.link(0)
    link.cut()
    client.wait("conns", 1)
    server.wait("conns", 2)
    assert ended(client, 2) == [errno.ETIMEDOUT] * 2
    assert ended(server, 1) == [errno.ETIMEDOUT]
    link.restore()
    client.do("close")
    server.do("close")
    pair.gone()
    pair.sound()
    works(pair)


def test_closed_by_the_server(pair: Pair) -> None:
    """The same, by the one who was asked."""
    every_state(pair)
    pair.server.do("close")
    pair.server.wait("conns", 2)
    pair.client.wait("conns", 3)
    assert count_states(pair.client) == {"closing": 2, "resolving": 1}
    over(pair)


def test_link_cut(pair: Pair) -> None:
    """The link dies without a word: who is up finds out as it watches its peer, who waits by
    its time."""
    every_state(pair)
    link = pair.client.host.cluster.link(0)
    link.cut()
    pair.client.wait("conns", 2)
    pair.server.wait("conns", 2)
    reasons = ended(pair.client, 7)
    assert reasons.count(errno.ETIMEDOUT) >= 6, reasons
    link.restore()
    over(pair)


@pytest.mark.parametrize("which", ["client", "server"])
def test_peer_killed(pair: Pair, which: str) -> None:
    """A host is lost: the other one lets go of everything, and speaks to it again when it is
    back."""
    every_state(pair)
    lost, left = pair.sides if which == "client" else reversed(pair.sides)
    lost.host.kill()
    left.do("release")
    # Who only waits for a request's answer, or for a neighbour, has time until its time is over.
    left.wait("conns", 0)
    assert left.listed() == ""
    lost.host.reboot()
    lost.load()
    pair.note()
    pair.gone()
    pair.sound()
    works(pair)


@pytest.mark.parametrize("which", ["client", "server"])
def test_device_removed(pair: Pair, which: str) -> None:
    """`rdma link delete` under load: it returns when all that was on the device is gone."""
    every_state(pair)
    side, other = pair.sides if which == "client" else reversed(pair.sides)
    removal = side.host.start(["rdma", "link", "delete", side.host.nic(0).rdma])
    # Those that are held do not let the device go.
    side.wait("closed", 4)
    assert removal.poll() is None
    side.do("release")
    removal.wait(timeout=60, check=True)
    assert ended(side, 8).count(errno.ENODEV) >= 4
    assert count_states(side) == ({"resolving": 1} if which == "client" else {})
    assert side.listed() == ""
    # Who was connected is told or finds out.
    other.do("release")
    other.wait("conns", 1 if which == "server" else 0)
    side.host.nic(0).rdma_add()
    over(pair)


@pytest.mark.parametrize("which", ["client", "server"])
def test_module_unloaded(pair: Pair, which: str) -> None:
    """The user's module goes, under load, with connections in every state, those included whose
    callbacks are just running; then rail_verbs itself goes."""
    every_state(pair)
    side, other = pair.sides if which == "client" else reversed(pair.sides)
    side.unload()
    assert side.listed() == ""
    assert side.resources()["rxe0"]["qp"] == 1
    side.host.run(["rmmod", "rail_vtest"])
    side.host.run(["rmmod", "rail_verbs"])
    other.do("release")
    other.wait("conns", 1 if which == "server" else 0)
    side.load()
    over(pair)


@pytest.mark.parametrize("which", ["client", "server"])
def test_posts_fail(pair: Pair, which: str) -> None:
    """The device refuses work requests, receives or mappings: whoever is at it just then, the
    connection ends, and nothing is lost."""
    side = pair.client if which == "client" else pair.server
    refused = {"fail_posts": (errno.ENOMEM,), "fail_recvs": (errno.ENOMEM,),
               "fail_mrs": (errno.EIO, 0)}
    for switch, skip in itertools.product(refused, (0, 7, 50, 133) if SOAK else (0, 23)):
        pair.connect("post=mix streams=3")
        pair.client.do(f"run {LOAD}")
        side.fault(switch, f"1@{skip}")
        side.host.wait_file(f"/sys/kernel/debug/rail/faults/{switch}", "^0@")
        # What rail_rw could not map is answered with an error, and that was it.
        if switch == "fail_mrs" and which == "server":
            side.do("close")
        pair.gone()
        assert side.reasons()[-1] in refused[switch]
    pair.sound(provoked=("bad_reply",))
    works(pair)


def test_completions_late(pair: Pair) -> None:
    """Completions that come late, and after others: space, order and the drain do not suffer."""
    for side in pair.sides:
        side.fault("delay_ms", "30")
    pair.connect("post=mix streams=3 depth=8", conns=2)
    for side in pair.sides:
        side.fault("delay_completions", "200@20")
    pair.run("send=1000 back=1000", timeout=120)
    # And while it closes.
    pair.client.do(f"run {LOAD}")
    for side in pair.sides:
        side.fault("delay_completions", "50")
    pair.close()
    # Receives were among them, so data messages may well have come out of order.
    works(pair)
