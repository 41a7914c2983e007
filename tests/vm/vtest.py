# SPDX-License-Identifier: GPL-2.0-only
"""Drives the rail_verbs test pair (tests/modules): two hosts, one side on each."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from typing import Any

from railvm import Cluster, CommandFailed, Host, HostTimeout

PORT = 7174

# Counters of a side that stay 0 unless a test provokes them.
FAULTS = ("protocol", "bad_header", "bad_content", "bad_order", "bad_count", "bad_key", "same_key",
          "bad_reply", "not_told", "told_twice", "late_call")
# Of these no test may provoke any: they are errors of rail_verbs.
NEVER = ("bad_content", "bad_order", "bad_count", "same_key", "not_told", "told_twice", "late_call")

# What there must be as many of as before, once all connections are gone. Not CQs: the kernel's
# pool keeps them for the next connection.
RESOURCES = ("pd", "qp", "mr", "cm_id")


class Side:
    """The client or the server module on a host."""

    def __init__(self, host: Host, name: str) -> None:
        self.host = host
        self.name = name
        self.module = f"rail_vtest_{name}"
        self.dir = f"/sys/kernel/debug/rail_vtest/{name}"

    def load(self, *params: str) -> None:
        self.host.modprobe_rail(self.module, *params)

    def unload(self, timeout: float = 60) -> None:
        self.host.run(["rmmod", self.module], timeout=timeout)

    def do(self, command: str, timeout: float = 60) -> None:
        # bash, because dash does not say with which error a write failed.
        self.host.run(["/bin/bash", "-c", 'printf %s "$1" >"$2"', "sh", command,
                       f"{self.dir}/control"], timeout=timeout)

    def refuses(self, command: str, code: int) -> None:
        """The command must fail with this errno."""
        try:
            self.do(command)
        except CommandFailed as error:
            assert os.strerror(code) in str(error), error
        else:
            raise AssertionError(f"{command}: no {errno.errorcode[code]}")

    def wait(self, what: str, count: int = 0, timeout: float = 60) -> None:
        """Wait for a state; fails at once where it can no longer be reached."""
        try:
            self.do(f"wait {what} {count}", timeout)
        except (CommandFailed, HostTimeout) as error:
            raise AssertionError(f"{self.name}: waited in vain for {what} {count}\n{error}\n"
                                 f"{self.status()}\n{self.listed()}") from None

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(self.host.read(f"{self.dir}/status"))
        return status

    def stats(self) -> dict[str, int]:
        counters: dict[str, int] = self.status()["stats"]["counters"]
        return counters

    def reasons(self) -> list[int]:
        """Why the last connections ended, as errno, in the order in which they did."""
        return [-past["reason"] for past in self.status()["past"]]

    def fault(self, name: str, value: str) -> None:
        """One of rail_verbs' fault switches on the side's host."""
        self.host.write(f"/sys/kernel/debug/rail/faults/{name}", value)

    def resources(self) -> dict[str, dict[str, int]]:
        """How many RDMA objects each device has."""
        listed = json.loads(self.host.run(["rdma", "-j", "resource", "show"]).stdout)
        return {dev["ifname"]: {kind: dev[kind] for kind in RESOURCES} for dev in listed}

    def listed(self) -> str:
        """What rail_verbs says there is of connections."""
        return self.host.run("cat /sys/kernel/debug/rail/*/connections | grep -v '^#' || :").stdout


class Pair:
    """A client on the first host, a server on the last one."""

    def __init__(self, hosts: Cluster, *params: str) -> None:
        self.client = Side(hosts[0], "client")
        self.server = Side(hosts[-1], "server")
        self.before: dict[str, dict[str, dict[str, int]]] = {}
        self.server.load(*(params or [f"timeout={self.patience}"]))
        self.client.load()
        self.note()

    def ms(self, stock: int) -> int:
        """A time that stock-6.1 needs, for the hosts' kernels."""
        return int(stock * max(side.host.factor for side in self.sides))

    @property
    def patience(self) -> int:
        """How long to try to connect, ms: long enough to get everything into place meanwhile, on a
        busy machine too."""
        return 90000 if self.client.host.kernel.instrumented else 25000

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.client, self.server

    def note(self) -> None:
        """From here on, `gone` takes what there is now for nothing."""
        for side in self.sides:
            self.before[side.name] = side.resources()

    def address(self, link: int = 0, v6: bool = False, port: int = 0) -> str:
        ip = self.server.host.addr(link, v6)
        if port:
            return f"ip:[{ip}]:{port}" if v6 else f"ip:{ip}:{port}"
        return f"ip:{ip}"

    def connect(self, options: str = "", *, path: str = "", conns: int = 1, up: bool = True,
                link: int = 0, v6: bool = False) -> None:
        """Begin to connect, and wait until that many more are up unless told not to."""
        if self.client.host.kernel.instrumented and "ack=" not in options:
            # Four seconds: where others run too, an acknowledgement may take one.
            options = f"ack=20 {options}"
        have = sum(conn["state"] == "up" for conn in self.client.status()["conns"]) if up else 0
        self.client.do(f"connect {path or self.address(link, v6)} conns={conns} {options}")
        if up:
            self.client.wait("up", have + conns)

    def run(self, what: str, timeout: float = 120) -> None:
        """A run on every connection, to its end."""
        runs = self.client.stats()["runs"]
        conns = sum(conn["state"] == "up" for conn in self.client.status()["conns"])
        self.client.do(f"run {what}")
        self.client.wait("idle", timeout=timeout)
        assert self.client.stats()["runs"] == runs + conns, self.client.status()

    def close(self, timeout: float = 60) -> None:
        self.client.do("close")
        self.gone(timeout)

    def gone(self, timeout: float = 60, sides: Iterable[Side] = ()) -> None:
        """Wait until no connection is left; then nothing else may be left of them either."""
        for side in sides or self.sides:
            side.wait("conns", 0, timeout)
            assert side.listed() == ""
            assert side.status()["doms"] == 0
            now = side.resources()
            assert now == self.before[side.name], f"{side.name}: not as before"

    def sound(self, provoked: Iterable[str] = ()) -> None:
        """No fault was counted, but for those that the test provokes."""
        for side in self.sides:
            if not side.host.up:
                continue
            stats = side.stats()
            bad = {name: stats[name] for name in FAULTS
                   if stats[name] and (name not in provoked or name in NEVER)}
            assert not bad, f"{side.name}: {bad}"

    def unload(self) -> None:
        """All the modules must go, without force."""
        for side in self.sides:
            side.unload()
        for host in {side.host.name: side.host for side in self.sides}.values():
            host.run(["rmmod", "rail_vtest"])
            host.run(["rmmod", "rail_verbs"])
