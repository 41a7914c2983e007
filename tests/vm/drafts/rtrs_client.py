# SPDX-License-Identifier: GPL-2.0-only
"""Drafts, not seen green yet: the RTRS client under lossy links, faults of the device, no memory, and
after its own death. Move them to test_rtrs_client.py as they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from railvm import Cluster
from test_rtrs_client import finish, two_paths

Hosts = Callable[..., Cluster]

pytestmark = pytest.mark.kernels("stock-6.1", "test-7")


def test_lossy_links(hosts: Hosts) -> None:
    """Packets are lost, late and doubled: nothing is wrong and nothing hangs."""
    pair = two_paths(hosts)
    client = pair.client
    client.do("start jobs=2 depth=4")
    for link in (0, 1):
        pair.cluster.link(link).netem("delay 1ms 1ms loss 0.2% duplicate 0.2%")
    client.progress(300, timeout=90)
    for link in (0, 1):
        pair.cluster.link(link).clear_netem()
    client.progress(300)
    finish(pair)


def test_client_dies_and_comes_back(hosts: Hosts) -> None:
    """A client that is gone without a word may open its session again under the same name."""
    pair = two_paths(hosts)
    pair.client.do("start jobs=2 depth=8")
    pair.client.progress(100)
    pair.cluster[0].reboot()
    pair.client.load()
    # The server refuses the name until it misses the dead paths.
    for attempt in range(20):
        try:
            pair.client.open(pair.addr(0), pair.addr(1))
            break
        except Exception:
            if attempt == 19:
                raise
    pair.client.do("start jobs=2 depth=8")
    pair.client.progress(200)
    finish(pair)


def test_refused_by_the_device(hosts: Hosts) -> None:
    """Posts and receives that fail, links that drop: the path is made anew, and nothing is lost."""
    pair = two_paths(hosts)
    client = pair.client
    faults = "/sys/kernel/debug/rail/faults"
    client.do("start jobs=2 depth=8")
    for name, value in (("fail_posts", "1@40"), ("fail_recvs", "1@20"), ("drop", "all"),
                        ("fail_posts", "2@11"), ("fail_recvs", "2@5")):
        client.progress(100)
        client.host.write(f"{faults}/{name}", value)
        client.progress(200)
        for link in (0, 1):
            client.wait_state(pair.path(link), "connected", 60)
    finish(pair)


def test_no_memory_for_a_path(hosts: Hosts) -> None:
    """Each allocation of a path's set-up fails in its turn; the next attempt gets on."""
    pair = two_paths(hosts)
    client = pair.client
    client.do("start jobs=1 depth=4 max=8192")
    faults = "/sys/kernel/debug/rail/faults"
    failed = 0
    for number in range(0, 30):
        client.host.write(f"{faults}/fail_allocs", f"1@{number}")
        client.set_path(pair.path(1), "reconnect")
        client.wait_state(pair.path(1), "(re)?connecting|closing", 10)
        client.wait_state(pair.path(1), "connected", 60)
        if client.host.read(f"{faults}/fail_allocs").strip().startswith("0"):
            failed += 1
    client.host.write(f"{faults}/fail_allocs", "0")
    assert failed > 5
    client.progress(50)
    finish(pair)
