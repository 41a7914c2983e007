# SPDX-License-Identifier: GPL-2.0-only
"""RTRS between two hosts, driven by the test user of both its ends (tests/modules/rail_rtrs_echo)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from railvm import SOAK, Cluster, CommandFailed, Host

Hosts = Callable[..., Cluster]

pytestmark = [pytest.mark.kernels("stock-6.1", "test-7"), pytest.mark.soak("test-7")]

MORE = 20 if SOAK else 1

# Numbers that stay 0, whatever is provoked.
NEVER = ("srv_bad_header", "srv_bad_data", "srv_bad_order", "clt_bad_data", "clt_done_twice")


class End:
    """The test module on a host."""

    dir = "/sys/kernel/debug/rail_rtrs_echo"

    def __init__(self, host: Host) -> None:
        self.host = host

    def argv(self, command: str) -> list[str]:
        # bash, because dash does not say with which error a write failed.
        return ["/bin/bash", "-c", 'printf %s "$1" >"$2"', "sh", command, f"{self.dir}/control"]

    def do(self, command: str, timeout: float = 60) -> None:
        self.host.run(self.argv(command), timeout=timeout)

    def refuses(self, command: str, text: str, timeout: float = 60) -> None:
        """The command must fail with this errno, in the shell's words."""
        try:
            self.do(command, timeout)
        except CommandFailed as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"{command}: not {text}")

    def status(self) -> dict[str, int]:
        status: dict[str, int] = json.loads(self.host.read(f"{self.dir}/status"))
        return status


class Pair:
    """A client on the first host, a server on the last one."""

    def __init__(self, hosts: Cluster, *params: str, serve: str = "") -> None:
        self.client = End(hosts[0])
        self.server = End(hosts[-1])
        self.server.host.modprobe_rail("rtrs-server", *params)
        for end in (self.server, self.client):
            end.host.modprobe_rail("rail_rtrs_echo")
        self.server.do(f"serve {serve}")

    def path(self, link: int = 0) -> str:
        return f"{self.client.host.addr(link)}@{self.server.host.addr(link)}"

    def open(self, name: str = "echo", links: int = 1, options: str = "") -> None:
        paths = ",".join(f"ip:{self.client.host.addr(i)}@ip:{self.server.host.addr(i)}"
                         for i in range(links))
        self.client.do(f"open {name} {paths} {options}")

    def sound(self) -> None:
        for end in (self.client, self.server):
            status = end.status()
            bad = {name: status[name] for name in NEVER if status[name]}
            assert not bad, bad

    def unload(self) -> None:
        # A run that the test did not wait for.
        self.client.do("stop")
        for end in (self.client, self.server):
            end.host.run(["rmmod", "rail_rtrs_echo"], timeout=60)
            end.host.run(["rmmod", "rtrs-client", "rtrs-server", "rtrs-core", "rail_verbs"],
                         timeout=60)


@pytest.fixture(params=["new keys", "same keys"])
def pair(hosts: Hosts, request: pytest.FixtureRequest) -> Iterator[Pair]:
    """A server with and without rkey rotation; at the end nothing is wrong and all unloads."""
    rotate = "Y" if request.param == "new keys" else "N"
    pair = Pair(hosts(2, links=2, mem=768), f"always_invalidate={rotate}", "sess_queue_depth=128")
    yield pair
    pair.sound()
    pair.unload()


def test_data(pair: Pair) -> None:
    """Verified writes and reads of all sizes, one at a time and many, an admin request, an error."""
    pair.open()
    pair.client.do("info")
    pair.client.do("run count=20")
    pair.client.do(f"run count={40 * MORE} depth=16 size=65536", timeout=120 * MORE)
    for code in (1, 5, 28, 110):
        pair.client.do(f"fail {code}")
    pair.client.do("close")
    status = pair.server.status()
    assert status["srv_up"] == 1
    assert status["srv_requests"] > 20 + 16 * 40
