# SPDX-License-Identifier: GPL-2.0-only
"""The RTRS client against our server: every byte right, each request answered once, whatever
becomes of the paths."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

import pytest

from railvm import Cluster, CommandFailed
from rtest import CLASS, Pair

Hosts = Callable[..., Cluster]

pytestmark = [pytest.mark.kernels("stock-6.1", "test-7"), pytest.mark.soak("test-7")]

FAULTS = "/sys/kernel/debug/rail/faults"


@pytest.mark.parametrize("rotation", [1, 0])
def test_one_path(hosts: Hosts, rotation: int) -> None:
    """Reads, writes, flushes and erases over one path, with and without a new key for each."""
    cluster = hosts(2)
    cluster[1].modprobe_rail("rtrs_server", f"always_invalidate={rotation}")
    pair = Pair(cluster)
    client = pair.client
    client.open(pair.addr())
    assert client.paths() == [pair.path()]
    assert client.path(pair.path(), "state") == "connected"
    client.do("start jobs=2 depth=16")
    client.progress(2000)
    client.do("stop")
    pair.sound()
    status = client.status()
    assert status["errors"] == 0 and status["inflight"] == 0
    client.do("close")
    pair.unload()


def two_paths(hosts: Hosts, options: str = "") -> Pair:
    pair = Pair(hosts(2, links=2))
    pair.client.open(pair.addr(0), pair.addr(1), options=options)
    return pair


def finish(pair: Pair, errors: int = 0) -> None:
    """The load stops, with nothing left behind and nothing wrong."""
    pair.client.do("stop", timeout=120)
    # Of the load nothing is left; what link_up() asks may just be on its way.
    pair.client.wait_idle()
    pair.sound()
    status = pair.client.status()
    if not errors:
        assert status["errors"] == 0, status
    pair.client.do("close")
    pair.unload()


@pytest.mark.soak
def test_server_error_and_permits(hosts: Hosts) -> None:
    """The server's errno reaches the user; more requests than permits wait for their turn."""
    pair = two_paths(hosts)
    for code, text in ((5, "Input/output error"), (28, "No space left on device")):
        with pytest.raises(Exception, match=text):
            pair.client.do(f"fail {code}")
    pair.client.do("start jobs=8 depth=60 max=4096")
    pair.client.progress(3000)
    finish(pair)


@pytest.mark.soak
def test_link_cut_under_load(hosts: Hosts) -> None:
    """Each link in turn goes and comes back: requests go over the other, none is lost or done
    twice, and both carry load in the end."""
    pair = two_paths(hosts)
    client = pair.client
    client.do("start jobs=2 depth=8")
    client.progress(300)
    for link in (0, 1):
        pair.cluster.link(link).cut()
        client.set_path(pair.path(link), "reconnect")
        client.progress(300)
        assert client.path(pair.path(link), "state") != "connected"
        assert client.path(pair.path(1 - link), "state") == "connected"
        pair.cluster.link(link).restore()
        client.wait_state(pair.path(link), "connected", 60)
        client.progress(300)
    assert client.status()["links_down"] == 0
    finish(pair)


@pytest.mark.soak
def test_no_path_for_a_while(hosts: Hosts) -> None:
    """Both paths go: requests wait, then go on in a new session at the server."""
    pair = two_paths(hosts, "timeout=60")
    client = pair.client
    client.do("start jobs=2 depth=8")
    client.progress(200)
    for link in (0, 1):
        client.set_path(pair.path(link), "disconnect")
    ios = client.status()["ios"]
    assert client.status()["inflight"] == 16
    for link in (0, 1):
        assert client.path(pair.path(link), "state") == "disconnected"
    assert client.status()["ios"] == ios
    for link in (0, 1):
        client.set_path(pair.path(link), "reconnect")
    client.progress(300)
    status = client.status()
    assert status["links_down"] == 1 and status["links_up"] == 1, status
    assert pair.server.status()["numbers"] == 2
    finish(pair)


@pytest.mark.soak
def test_no_path_for_too_long(hosts: Hosts) -> None:
    """Requests that waited no_path_timeout fail with ENOLINK; with 0 at once."""
    pair = two_paths(hosts, "timeout=2")
    client = pair.client
    client.do("start jobs=1 depth=4")
    client.progress(100)
    for link in (0, 1):
        client.set_path(pair.path(link), "disconnect")
    client.progress(4, timeout=20)
    status = client.status()
    assert status["errors"] >= 4 and status["last_error"] == -67, status
    client.set("no_path_timeout", "0")
    client.progress(1000, timeout=20)
    client.set_path(pair.path(0), "reconnect")
    client.wait_state(pair.path(0), "connected")
    finish(pair, errors=1)


@pytest.mark.soak
def test_paths_come_and_go(hosts: Hosts) -> None:
    """Paths are added and removed while requests run, by every policy."""
    pair = two_paths(hosts)
    client = pair.client
    client.do("start jobs=2 depth=8")
    for number, policy in enumerate(("round-robin", "min-inflight", "min-latency", "numa",
                                     "weighted")):
        client.set("mpath_policy", policy)
        assert client.get("mpath_policy").startswith(f"{policy} ("), number
        client.progress(200)
        link = number % 2
        client.set_path(pair.path(link), "remove_path")
        assert client.paths() == [pair.path(1 - link)]
        client.progress(100)
        client.set("add_path", pair.addr(link))
        assert sorted(client.paths()) == sorted([pair.path(0), pair.path(1)])
        client.progress(100)
    with pytest.raises(Exception, match="File exists"):
        client.set("add_path", pair.addr(0))
    with pytest.raises(Exception, match="Invalid argument"):
        client.set("mpath_policy", "best")
    finish(pair)


def test_wishes_beside_removal(hosts: Hosts) -> None:
    """Somebody goes on connecting and disconnecting paths that another one removes, by themselves or
    with their session: they go all the same, and nothing is left."""
    pair = two_paths(hosts)
    client = pair.client
    wishes = client.host.start(
        f"while :; do for p in {CLASS}/rtest/paths/*; do echo 1 >$p/reconnect; "
        "echo 1 >$p/disconnect; done; done 2>/dev/null")
    client.set_path(pair.path(1), "remove_path")
    assert client.paths() == [pair.path(0)]
    client.do("close")
    for _ in range(3):
        # It may be without a path before it can be used.
        with suppress(CommandFailed):
            client.open(pair.addr(0), pair.addr(1))
        with suppress(CommandFailed):
            client.do("close")
    assert client.host.run(f"ls {CLASS}").stdout == ""
    wishes.kill()
    wishes.wait(20, check=False)
    pair.unload()


@pytest.mark.soak
def test_link_flaps_while_opening(hosts: Hosts) -> None:
    """The first path is lost and comes back while the second still tries for the first time: the user
    is told when the session is open, and not before."""
    pair = Pair(hosts(2, links=2))
    client = pair.client
    pair.cluster.link(1).netem("loss 100%")
    opening = client.host.start(["/bin/bash", "-c", 'printf %s "$1" >"$2"', "sh",
                                 f"open rtest paths={pair.addr(0)};{pair.addr(1)}",
                                 "/sys/kernel/debug/rail_rtest_client/control"])
    path = f"/sys/class/rtrs-server/rtest/paths/{pair.path(0)}"
    pair.server.host.wait_file(f"{path}/hca_name", "", 30)
    pair.server.host.run(f"i=$(stat -c %i '{path}') && echo 1 >'{path}/disconnect' && "
                         f"until n=$(stat -c %i '{path}' 2>/dev/null) && [ $n != $i ]; do "
                         "sleep 0.1; done", timeout=60)
    assert opening.poll() is None, "it was not opening any more"
    pair.cluster.link(1).clear_netem()
    opening.wait(60, check=True)
    client.do("start jobs=2 depth=8")
    client.progress(300)
    status = client.status()
    assert status["links_down"] == status["links_up"] == 1, status
    finish(pair)


@pytest.mark.soak
def test_trace_events(hosts: Hosts) -> None:
    """Requests and paths can be followed in the kernel's trace at both ends."""
    pair = Pair(hosts(2))
    tracing = "/sys/kernel/tracing"
    ends = (pair.client.host, pair.server.host)
    for host in ends:
        host.run(f"mountpoint -q {tracing} || mount -t tracefs none {tracing}; "
                 f"echo 1 >{tracing}/events/rail_rtrs/enable")
    pair.client.open(pair.addr())
    pair.client.do("start jobs=1 depth=1")
    pair.client.progress(20)
    pair.client.do("stop")
    pair.client.do("close")
    for host, side, last in zip(ends, ("clt", "srv"), ("removed", "closing"), strict=True):
        trace = host.run(f"echo 0 >{tracing}/events/rail_rtrs/enable; cat {tracing}/trace; "
                         f"echo >{tracing}/trace").stdout
        for what in (rf"rail_{side}_path: sess=rtest path={pair.path()} \w+ -> {last} ",
                     rf"rail_{side}_req_start: sess=rtest path={pair.path()} id=\d+ cid=\d+ "
                     r"write \d+ bytes",
                     rf"rail_{side}_req_done: sess=rtest id=\d+ error=0 after [1-9]\d* ns"):
            assert re.search(what, trace), f"{what}\n{trace[-3000:]}"
    pair.unload()


@pytest.mark.soak
def test_poll_queues(hosts: Hosts) -> None:
    """Requests whose answers nobody is interrupted for."""
    pair = two_paths(hosts, "poll=2")
    pair.client.do("start jobs=2 depth=4 poll=1")
    pair.client.progress(500)
    pair.client.set_path(pair.path(0), "reconnect")
    pair.client.progress(500)
    finish(pair)


@pytest.mark.soak
def test_server_dies(hosts: Hosts) -> None:
    """The server is gone without a word, and comes back with an empty store: the client fails over
    to it, and what it had written is not there."""
    pair = two_paths(hosts, "timeout=120")
    client = pair.client
    client.do("start jobs=1 depth=4")
    client.progress(100)
    client.do("stop")
    pair.cluster[1].reboot()
    pair.server.load()
    for link in (0, 1):
        client.set_path(pair.path(link), "reconnect")
    client.do("start jobs=1 depth=4")
    client.progress(100, timeout=90)
    assert client.status()["links_up"] >= 1
    finish(pair)


@pytest.mark.soak
@pytest.mark.parametrize("side", [0, 1], ids=["client", "server"])
def test_device_goes(hosts: Hosts, side: int) -> None:
    """A path's RDMA device goes away under load, at either end, and comes back: so does the path."""
    pair = two_paths(hosts)
    client = pair.client
    client.do("start jobs=2 depth=8")
    client.progress(200)
    nic = pair.cluster[side].nic(1)
    nic.rdma_del()
    client.progress(300)
    assert client.path(pair.path(0), "state") == "connected"
    nic.rdma_add()
    client.set_path(pair.path(1), "reconnect")
    client.wait_state(pair.path(1), "connected", 60)
    client.progress(300)
    finish(pair)


@pytest.mark.soak
def test_flapping_path_is_on_probation(hosts: Hosts) -> None:
    """A path that keeps going down takes requests again later each time; the other carries them."""
    pair = two_paths(hosts)
    client = pair.client
    client.do("start jobs=1 depth=4 max=4096")
    for flap in range(4):
        client.set_path(pair.path(1), "reconnect")
        client.wait_state(pair.path(1), "connected")
        client.progress(50)
    # Half a second, doubled for each time: four seconds by now, of which little is over.
    before = int(client.path(pair.path(1), "stats/rdma").split()[0])
    client.progress(50)
    assert int(client.path(pair.path(1), "stats/rdma").split()[0]) == before
    ok, failed = client.path(pair.path(1), "stats/reconnects").split()
    assert int(ok) == 4 and int(failed) <= 4
    # Then it is trusted again.
    for _ in range(100):
        client.progress(50)
        if int(client.path(pair.path(1), "stats/rdma").split()[0]) > before:
            break
    else:
        raise AssertionError("the path is never used again")
    finish(pair)


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_client_dies_and_comes_back(hosts: Hosts) -> None:
    """A client that is gone without a word may open its session again under the same name."""
    pair = two_paths(hosts)
    pair.client.do("start jobs=2 depth=8")
    pair.client.progress(100)
    pair.cluster[0].reboot()
    pair.client.load()
    # The server refuses the name until it misses the dead paths.
    for _ in range(20):
        with suppress(CommandFailed):
            pair.client.open(pair.addr(0), pair.addr(1))
            break
    pair.client.do("start jobs=2 depth=8")
    pair.client.progress(200)
    finish(pair)


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_refused_by_the_device(hosts: Hosts) -> None:
    """Posts and receives that fail, links that drop: the path is made anew, and nothing is lost."""
    pair = two_paths(hosts)
    client = pair.client
    client.do("start jobs=2 depth=8")
    for name, value in (("fail_posts", "1@40"), ("fail_recvs", "1@20"), ("drop", "all"),
                        ("fail_posts", "2@11"), ("fail_recvs", "2@5")):
        client.progress(100)
        client.host.write(f"{FAULTS}/{name}", value)
        client.progress(200)
        for link in (0, 1):
            client.wait_state(pair.path(link), "connected", 60)
    finish(pair)


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_no_memory_for_a_path(hosts: Hosts) -> None:
    """Each allocation of a path's set-up fails in its turn; the next attempt gets on."""
    pair = two_paths(hosts)
    client = pair.client
    client.do("start jobs=1 depth=4 max=8192")
    failed = 0
    for number in range(30):
        client.host.write(f"{FAULTS}/fail_allocs", f"1@{number}")
        client.set_path(pair.path(1), "reconnect")
        client.wait_state(pair.path(1), "(re)?connecting|closing", 10)
        client.wait_state(pair.path(1), "connected", 60)
        if client.host.read(f"{FAULTS}/fail_allocs").strip().startswith("0"):
            failed += 1
    client.host.write(f"{FAULTS}/fail_allocs", "0")
    assert failed > 5
    client.progress(50)
    finish(pair)
