# SPDX-License-Identifier: GPL-2.0-only
"""rail_verbs ends connections cleanly: whatever fails, in whatever state they are.

After each failure both ends must have been told, exactly once, of the end of each
connection and of all that was posted on it; no RDMA object may be left behind; a new
connection must work; and all modules must go without force.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

import pytest

from railvm import Cluster
from vtest import SOAK, Pair, Side

Hosts = Callable[..., Cluster]

pytestmark = pytest.mark.kernels("stock-6.1", "test-7")

# Gives up on a peer that does not answer after some three seconds. No sooner: on a busy machine an
# acknowledgement takes its time, and rxe of 6.1 cannot retransmit a registration.
IMPATIENT = "ack=18 retries=2"
# Nor does a QP of rxe always give up by itself: who has to know looks, as the transports do.
WATCH = "watch=5000"
# Everything at once, for longer than any test takes.
LOAD = " ".join(f"{what}=100000000" for what in
                ("send", "back", "read", "write", "inv", "imm", "imm0"))


@pytest.fixture
def pair(hosts: Hosts) -> Iterator[Pair]:
    """Both modules loaded; at the end all unloaded."""
    pair = Pair(hosts(2))
    yield pair
    pair.unload()


def works(pair: Pair) -> None:
    """A new connection works, and goes."""
    pair.connect()
    pair.run("send=20 back=20 read=4 write=4 imm=4 imm0=4")
    pair.close()


# -- refusals ------------------------------------------------------------------------


def test_private_data(pair: Pair) -> None:
    """Private data of every size that fits arrives, padded with zeros: the server refuses what
    has been cut, and says so with private data of its own; what does not fit is refused at
    once."""
    sizes = range(1, 57) if SOAK else (1, 7, 27, 28, 29, 55, 56)
    for size in sizes:
        enough = size >= 28
        pair.connect(f"privlen={size}", up=enough)
        if enough:
            pair.client.do("close")
        pair.client.wait("conns", 0)
        past = pair.client.status()["past"][-1]
        if enough:
            assert past["phase"] == "up"
        else:
            assert (-past["reason"], -past["refusal"]) == (errno.ECONNREFUSED, errno.EPROTO)
    pair.client.refuses(f"connect {pair.address()} privlen=57", errno.EINVAL)
    pair.gone()
    pair.sound()
    works(pair)


def test_refusals(pair: Pair) -> None:
    """A port without a listener; a refusal at once and a late one, with their reason; an owner on
    either side that changes its mind at each step of the set-up."""
    client, server = pair.sides
    pair.connect(path=pair.address(port=7175), up=False)
    pair.gone()
    assert client.reasons() == [errno.ECONNREFUSED]

    server.do("set reject=13")
    pair.connect(up=False, conns=3)
    pair.gone()
    assert [-past["refusal"] for past in client.status()["past"][-3:]] == [errno.EACCES] * 3

    server.do("set reject=0 defer=1")
    pair.connect(up=False, conns=3)
    server.wait("connecting", 3)
    server.do("answer reject=16")
    pair.gone()
    assert [-past["refusal"] for past in client.status()["past"][-3:]] == [errno.EBUSY] * 3
    assert server.reasons()[-3:] == [errno.ECONNREFUSED] * 3

    pair.connect(up=False, conns=3)
    server.wait("connecting", 3)
    server.do("answer")
    client.wait("up", 3)
    pair.run("send=10 back=10")
    pair.close()
    server.do("set defer=0")

    for step in ("configure", "created", "established"):
        pair.connect(f"fail_in={step}", up=False, conns=2)
        pair.gone()
        assert client.reasons()[-2:] == [errno.EPERM] * 2
        server.do(f"set fail_in={step}")
        pair.connect(up=False, conns=2)
        pair.gone()
        assert server.reasons()[-2:] == [errno.EPERM] * 2
        server.do("set fail_in=none")
    pair.sound()
    works(pair)


def test_hostile_client(pair: Pair) -> None:
    """Whatever a client sends, the server only closes that connection: its other ones go on."""
    client, server = pair.sides
    pair.connect()
    # What the server itself finds out, and what its device or the client's does.
    found = ("crc", "short", "length", "type", "credit", "tag", "size", "op", "imm_index")
    refused = ("long", "read_key", "write_key", "write_ro", "inv_key", "imm_key", "imm_long")
    for count, what in enumerate(found + refused, 1):
        pair.connect("conns=1")
        client.do(f"hostile {what}")
        client.wait("closed", count)
        server.wait("closed", count)
        reason = server.reasons()[-1]
        assert reason in ((errno.EPROTO, errno.EMSGSIZE, errno.EBADMSG) if what in found else
                          (errno.EACCES, errno.EMSGSIZE, errno.EIO, errno.ECONNRESET)), (
            what, errno.errorcode[reason])
    client.wait("up", 1)
    server.wait("up", 1)
    pair.run("send=50 back=50 read=5 write=5 imm=5")
    stats = server.stats()
    assert stats["protocol"] == len(found)
    pair.close()
    pair.sound(provoked=("protocol", "bad_header"))


def test_nobody_answers(pair: Pair) -> None:
    """Time is bounded in each step: nobody has the address, nobody answers the request, the
    request is not answered by its owner."""
    nobody = pair.client.host.addr().rpartition(".")[0] + ".99"
    pair.connect("timeout=2000", path=f"ip:{nobody}", up=False)
    pair.client.wait("conns", 0)
    pair.server.do("set defer=1")
    pair.connect("timeout=2000", up=False)
    pair.gone()
    link = pair.client.host.cluster.link(0)
    link.netem("loss 100%")
    pair.connect("timeout=2000", up=False)
    pair.client.wait("conns", 0)
    link.clear_netem()
    reasons = pair.client.reasons()
    assert reasons[0] in (errno.ETIMEDOUT, errno.EHOSTUNREACH)
    assert reasons[1:] == [errno.ETIMEDOUT] * 2
    assert [past["phase"] for past in pair.client.status()["past"]] == [
        "asked", "created", "created"]
    pair.server.do("set defer=0")
    pair.gone()
    pair.sound()
    works(pair)


def test_server_owner_never_answers(hosts: Hosts) -> None:
    """A request that its owner forgets ends by the listener's time."""
    pair = Pair(hosts(2), "timeout=2000")
    pair.server.do("set defer=1")
    pair.connect("timeout=60000", up=False)
    pair.gone()
    assert pair.server.reasons() == [errno.ETIMEDOUT]
    pair.server.do("answer")
    pair.sound()
    pair.server.do("set defer=0")
    works(pair)
    pair.unload()


# -- every state -----------------------------------------------------------------------


def every_state(pair: Pair) -> None:
    """Connections in every state at once: RESOLVING; CONNECTING on both sides; UP under load, by
    each way to poll; CLOSING, held in closing() and in drained(), on both sides."""
    client, server = pair.sides
    for hold in ("hold_closing", "hold_drained"):
        server.do(f"set {hold}=600000")
        pair.connect(f"{hold}=600000 {IMPATIENT}")
        server.do(f"set {hold}=0")
        # Who is held in closing() has not told its peer yet.
        for side in pair.sides:
            side.do(f"close {side.status()['conns'][-1]['id']}")
    client.wait("closing", 2)
    server.wait("closing", 2)

    for poll in ("softirq", "workqueue", "unbound", "direct"):
        server.do(f"set poll={poll} depth=16 {WATCH}")
        pair.connect(f"poll={poll} depth=16 post=mix streams=3 sges=12 {IMPATIENT} {WATCH} "
                     "timeout=20000")
    server.do("set watch=0")
    client.do(f"run {LOAD}")

    server.do("set defer=1")
    pair.connect("timeout=20000", up=False, conns=2)
    client.wait("connecting", 2)
    server.wait("connecting", 2)
    server.do("set defer=0")
    nobody = client.host.addr().rpartition(".")[0] + ".99"
    pair.connect("timeout=20000", path=f"ip:{nobody}", up=False)
    client.wait("resolving", 1)
    assert count_states(client) == {"closing": 2, "up": 4, "connecting": 2, "resolving": 1}
    assert count_states(server) == {"closing": 2, "up": 4, "connecting": 2}
    for side in pair.sides:
        side.wait("received", side.stats()["received"] + 100)


def count_states(side: Side) -> dict[str, int]:
    counts: dict[str, int] = {}
    for conn in side.status()["conns"]:
        counts[conn["state"]] = counts.get(conn["state"], 0) + 1
    return counts


def over(pair: Pair) -> None:
    """What is left ends too, nothing is left behind, and it all works again."""
    for side in pair.sides:
        side.do("release")
    # The address that nobody has is looked for without a device, so until now.
    pair.client.do("close")
    pair.gone()
    pair.sound()
    works(pair)


def ended(side: Side, count: int) -> list[int]:
    """Why the last connections ended."""
    return side.reasons()[-count:]


def test_closed_by_its_owner(pair: Pair) -> None:
    """rail_conn_close() in each state."""
    every_state(pair)
    pair.client.do("close")
    # All but those that their owners hold.
    pair.client.wait("conns", 2)
    pair.server.wait("conns", 2)
    assert count_states(pair.client) == count_states(pair.server) == {"closing": 2}
    assert ended(pair.client, 7) == [0] * 7
    # Disconnected while up, turned away while connecting.
    assert set(ended(pair.server, 6)) <= {errno.ECONNRESET, errno.ECONNREFUSED}
    over(pair)


# -- what belongs to a device ------------------------------------------------------------


def test_kept_without_connections(pair: Pair) -> None:
    """A user that keeps its protection domain and regions between connections gives them back
    when the device goes, or when it is told to."""
    client = pair.client
    pair.connect("keep=1", conns=2)
    pair.run("read=10 imm=10")
    pair.client.do("close")
    client.wait("conns", 0)
    assert client.status()["doms"] == 1
    client.host.nic(0).rdma_del()
    assert client.status()["doms"] == 0
    assert client.stats()["removed"] == 1
    client.host.nic(0).rdma_add()
    pair.gone()
    pair.connect("keep=1")
    pair.client.do("close")
    client.wait("conns", 0)
    client.do("forget")
    pair.gone()
    pair.sound()
    works(pair)


# -- fault switches ------------------------------------------------------------------------


def test_drop(pair: Pair) -> None:
    """faults/drop ends one connection, or all, as if their link had died."""
    pair.connect(conns=4)
    ids = [conn["id"] for conn in pair.client.status()["conns"]]
    pair.client.do(f"run {LOAD}")
    pair.client.fault("drop", str(ids[2]))
    pair.client.wait("closed", 1)
    assert [conn["id"] for conn in pair.client.status()["conns"]] == ids[:2] + ids[3:]
    pair.server.wait("closed", 1)
    pair.server.fault("drop", "all")
    pair.gone()
    assert pair.client.reasons() == [errno.ECONNRESET] * 4
    pair.sound()
    works(pair)
