# SPDX-License-Identifier: GPL-2.0-only
"""rail_verbs ends connections cleanly: whatever fails, in whatever state they are.

After each failure both ends must have been told, exactly once, of the end of each
connection and of all that was posted on it; no RDMA object may be left behind; a new
connection must work; and all modules must go without force.
"""

from __future__ import annotations

import errno
import itertools
import time
from collections.abc import Callable, Iterator

import pytest

from railvm import SOAK, Cluster
from vtest import Pair, Side

Hosts = Callable[..., Cluster]

pytestmark = pytest.mark.kernels("stock-6.1", "test-7")
slow_on_7 = pytest.mark.soak("test-7")

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


@slow_on_7
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


@slow_on_7
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


@slow_on_7
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


@pytest.mark.soak
def test_many_give_up_at_once(hosts: Hosts) -> None:
    """Connections whose time is over while ib_core still looks for the address: nothing waits for
    what it may not wait for, of which older kernels complain."""
    pair = Pair(hosts(2))
    nobody = pair.client.host.addr().rpartition(".")[0] + ".99"
    # As long as one look for an address.
    pair.connect("timeout=1000", path=f"ip:{nobody}", conns=64, up=False)
    pair.client.wait("conns", 0)
    pair.sound()
    works(pair)
    pair.unload()


@slow_on_7
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


@slow_on_7
def test_silent_peer(pair: Pair) -> None:
    """A peer that falls silent is missed by who watches it, though nothing is sent, and only
    then: who does not watch stays, and a peer that merely has nothing to say is not missed."""
    client, server = pair.sides
    watch = pair.ms(2000)
    pair.connect(f"watch={watch} retries=1", conns=2)
    server.do(f"set watch={watch}")
    pair.connect()
    server.do("set watch=0")
    # Twice the time, for nothing: the only way to see that nothing happens.
    time.sleep(watch / 500)
    client.wait("up", 3)
    link = client.host.cluster.link(0)
    link.cut()
    # The others may follow: rdma_cm tells all when the peer's address does not answer.
    client.wait("closed", 2)
    server.wait("closed", 1)
    assert set(client.reasons()) == set(server.reasons()) == {errno.ETIMEDOUT}
    link.restore()
    client.do("close")
    server.do("close")
    pair.gone()
    pair.sound()
    works(pair)


# -- every state -----------------------------------------------------------------------


def every_state(pair: Pair) -> None:
    """Connections in every state at once: RESOLVING; CONNECTING on both sides; UP under load, by
    each way to poll; CLOSING, held in closing() and in drained(), on both sides."""
    client, server = pair.sides
    # A QP gives up on a peer that does not answer after some six seconds, twenty under KASAN. No
    # sooner: on a busy machine an acknowledgement takes its time, and rxe cannot retransmit
    # everything. Nor does it always give up by itself: who has to know looks, as transports do.
    impatient = "ack=21 retries=1" if client.host.kernel.instrumented else "ack=19 retries=2"
    watch = f"watch={max(8000, pair.ms(4000))}"
    timeout = f"timeout={pair.patience}"
    for hold in ("hold_closing", "hold_drained"):
        server.do(f"set {hold}=600000")
        pair.connect(f"{hold}=600000 {impatient}")
        server.do(f"set {hold}=0")
        # Who is held in closing() has not told its peer yet.
        for side in pair.sides:
            side.do(f"close {side.status()['conns'][-1]['id']}")
    client.wait("closing", 2)
    server.wait("closing", 2)

    for poll in ("softirq", "workqueue", "unbound", "direct"):
        server.do(f"set poll={poll} depth=16 {watch}")
        pair.connect(f"poll={poll} depth=16 post=mix streams=3 sges=12 {impatient} {watch} "
                     f"{timeout}")
    server.do("set watch=0")
    client.do(f"run {LOAD}")

    server.do("set defer=1")
    pair.connect(timeout, up=False, conns=2)
    client.wait("connecting", 2)
    server.wait("connecting", 2)
    server.do("set defer=0")
    nobody = client.host.addr().rpartition(".")[0] + ".99"
    pair.connect(timeout, path=f"ip:{nobody}", up=False)
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


@slow_on_7
def test_closed_by_the_server(pair: Pair) -> None:
    """The same, by the one who was asked."""
    every_state(pair)
    pair.server.do("close")
    pair.server.wait("conns", 2)
    pair.client.wait("conns", 3)
    assert count_states(pair.client) == {"closing": 2, "resolving": 1}
    over(pair)


@slow_on_7
def test_link_cut(pair: Pair) -> None:
    """The link dies without a word: who is up finds out as it watches its peer, who waits by
    its time."""
    every_state(pair)
    link = pair.client.host.cluster.link(0)
    link.cut()
    pair.client.wait("conns", 2)
    pair.server.wait("conns", 2)
    reasons = ended(pair.client, 7)
    # Of a QP that gives up, rxe may tell a flush first; those that are not up have none.
    assert set(reasons) <= {errno.ETIMEDOUT, errno.ECONNRESET}, reasons
    assert reasons.count(errno.ETIMEDOUT) >= 3, reasons
    link.restore()
    over(pair)


@pytest.mark.parametrize("which", [pytest.param("client", marks=slow_on_7), "server"])
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


# -- what belongs to a device ------------------------------------------------------------


@slow_on_7
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


@slow_on_7
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


@slow_on_7
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


@slow_on_7
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
