# SPDX-License-Identifier: GPL-2.0-only
"""Tests of the RTRS server that were not seen green yet. They go to test_rtrs_server.py when they were."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from railvm import Cluster
from rtrspeer import conn_req, conn_rsp
from test_rtrs import Pair
from test_rtrs_server import SIZE, good_client, no_session, peer_of

Hosts = Callable[..., Cluster]

pytestmark = pytest.mark.kernels("stock-6.1", "test-7")


def test_silent_client(hosts: Hosts) -> None:
    """A client of which nothing is heard, though its device acknowledges all, loses its path."""
    pair = Pair(hosts(2, links=2, mem=768), *SIZE)
    peer = peer_of(pair)
    answers = peer.run(*peer.up(), "recv 0 10000", "alive 0 15000", "alive 0 30000", timeout=120)
    assert answers[4][:2] == ["recv", "80000000"], "no heartbeat"
    assert answers[5:] == [["alive"], ["gone"]]
    good_client(pair)
    pair.sound()
    pair.unload()


def test_admission(hosts: Hosts) -> None:
    """What a host, and all of them, may have is bounded; refusals say why."""
    pair = Pair(hosts(2, links=2, mem=768), "max_sessions=2", *SIZE)
    params = "/sys/module/rtrs_server/parameters"
    server = pair.server.host
    peer = peer_of(pair)
    answers = peer.run(*peer.up("a", sess=1, path=1), *peer.up("b", sess=2, path=2, base=2),
                       peer.connect(4, conn_req(sess=3, path=3)),
                       peer.connect(5, conn_req(sess=2, path=4, first=False)))
    assert conn_rsp(answers[8][1])[0] == -errno.EUSERS
    assert answers[9][0] == "connected"
    server.wait_log("has 2 sessions already")
    # A session has 12 times 64 KiB and a bit.
    server.write(f"{params}/max_sessions", "0")
    no_session(pair)
    server.write(f"{params}/max_memory", "2")
    answers = peer.run(*peer.up("a", sess=1, path=1), *peer.up("b", sess=2, path=2, base=2),
                       peer.connect(4, conn_req(sess=3, path=3)))
    assert answers[7][0] == "chunks"
    assert conn_rsp(answers[8][1])[0] == -errno.ENOMEM
    server.wait_log("max_memory is the limit")
    no_session(pair)
    for name, value in (("max_chunk_size", "5000"), ("max_chunk_size", "4096"),
                        ("sess_queue_depth", "0"), ("sess_queue_depth", "70000")):
        assert server.run(f"echo {value} >{params}/{name}", check=False).status != 0
    server.write(f"{params}/max_memory", "0")
    good_client(pair)
    pair.sound()
    pair.unload()


def test_stale_session(hosts: Hosts) -> None:
    """A client that has no path left starts the session anew: what the server still has of it goes first,
    but only if nothing is heard there."""
    pair = Pair(hosts(2, links=2, mem=768), *SIZE)
    peer = peer_of(pair)
    answers = peer.run(*peer.up(), peer.connect(2, conn_req(path=2)), "write 0 90000000 0 0",
                       peer.connect(3, conn_req(path=2)), "alive 0 100",
                       peer.connect(4, conn_req(path=1, recon=1)), "alive 0 20000",
                       "sleep 1000",
                       *peer.up("other", sess=5, path=5, base=5), peer.connect(7, conn_req(sess=5, path=6)),
                       "sleep 6000", peer.connect(8, conn_req(sess=5, path=6)), "alive 5 20000",
                       "sleep 1000", peer.connect(9, conn_req(sess=5, path=6)))
    assert conn_rsp(answers[4][1])[0] == -errno.EBUSY
    assert answers[6][0] == "connected"
    assert answers[7] == ["alive"]
    # The path itself, reconnected: that the client has given it up is certain.
    assert conn_rsp(answers[8][1])[0] == -errno.EBUSY
    assert answers[9] == ["gone"]
    assert conn_rsp(answers[15][1])[0] == -errno.EBUSY
    assert conn_rsp(answers[17][1])[0] == -errno.EBUSY
    assert answers[18] == ["gone"]
    assert answers[20][0] == "connected"
    # Each was told to the user once, but for the last one, which did not come up.
    no_session(pair)
    status = pair.server.status()
    assert (status["srv_up"], status["srv_down"]) == (2, 2)
    good_client(pair)
    pair.sound()
    pair.unload()
