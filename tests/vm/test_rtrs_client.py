# SPDX-License-Identifier: GPL-2.0-only
"""The RTRS client against our server: every byte right, each request answered once, whatever
becomes of the paths."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from railvm import Cluster
from rtest import Pair

Hosts = Callable[..., Cluster]

pytestmark = pytest.mark.kernels("stock-6.1", "test-7")


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
