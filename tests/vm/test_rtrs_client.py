# SPDX-License-Identifier: GPL-2.0-only
"""The RTRS client against our server: every byte right, each request answered once, whatever
becomes of the paths."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from railvm import Cluster
from rtest import Pair

Hosts = Callable[..., Cluster]

pytestmark = [pytest.mark.kernels("stock-6.1", "test-7"), pytest.mark.soak("test-7")]


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
