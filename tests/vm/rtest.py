# SPDX-License-Identifier: GPL-2.0-only
"""Drives the RTRS test pair (tests/modules/rail_rtest_*): a client on one host, a server on another."""

from __future__ import annotations

import json
import time
from typing import Any

from railvm import Cluster, Host

CLASS = "/sys/class/rtrs-client"


class Server:
    """The store."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def load(self, *params: str) -> None:
        self.host.modprobe_rail("rail_rtest_server", *params)

    def set(self, name: str, value: int) -> None:
        self.host.write(f"/sys/module/rail_rtest_server/parameters/{name}", str(value))

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(
            self.host.read("/sys/kernel/debug/rail_rtest_server/status"))
        return status


class Client:
    """The load that verifies."""

    def __init__(self, host: Host, name: str = "rtest") -> None:
        self.host = host
        self.name = name

    def load(self) -> None:
        self.host.modprobe_rail("rail_rtest_client")

    def do(self, command: str, timeout: float = 60) -> None:
        self._write("/sys/kernel/debug/rail_rtest_client/control", command, timeout)

    def open(self, *paths: str, options: str = "", timeout: float = 60) -> None:
        self.do(f"open {self.name} paths={';'.join(paths)} {options}".strip(), timeout)

    def status(self) -> dict[str, int]:
        status: dict[str, int] = json.loads(
            self.host.read("/sys/kernel/debug/rail_rtest_client/status"))
        return status

    def progress(self, ios: int, timeout: float = 60) -> None:
        """Wait until so many more requests are over."""
        until = self.status()["ios"] + ios
        end = time.monotonic() + timeout
        while self.status()["ios"] < until:
            assert time.monotonic() < end, f"no {ios} requests in {timeout} s: {self.status()}"
            time.sleep(0.1)

    def wait_idle(self, timeout: float = 10) -> None:
        """Wait until nothing is outstanding."""
        end = time.monotonic() + timeout
        while self.status()["inflight"]:
            assert time.monotonic() < end, self.status()
            time.sleep(0.1)

    def paths(self) -> list[str]:
        return self.host.run(f"ls {CLASS}/{self.name}/paths").stdout.split()

    def path(self, path: str, name: str) -> str:
        return self.host.read(f"{CLASS}/{self.name}/paths/{path}/{name}").strip()

    def _write(self, name: str, value: str, timeout: float = 60) -> None:
        # bash, because dash does not say with which error a write failed.
        self.host.run(["/bin/bash", "-c", 'printf %s "$1" >"$2"', "sh", value, name],
                      timeout=timeout)

    def set_path(self, path: str, name: str, value: str = "1") -> None:
        self._write(f"{CLASS}/{self.name}/paths/{path}/{name}", value)

    def set(self, name: str, value: str) -> None:
        self._write(f"{CLASS}/{self.name}/{name}", value)

    def get(self, name: str) -> str:
        return self.host.read(f"{CLASS}/{self.name}/{name}").strip()

    def wait_state(self, path: str, state: str, timeout: float = 60) -> None:
        self.host.wait_file(f"{CLASS}/{self.name}/paths/{path}/state", rf"^{state}$", timeout)

    def sound(self) -> None:
        """Nothing that may never happen has."""
        status = self.status()
        assert status["mismatches"] == 0, status
        assert status["done_twice"] == 0, status


class Pair:
    """Both, over any number of links."""

    def __init__(self, cluster: Cluster, *params: str) -> None:
        self.cluster = cluster
        self.client = Client(cluster[0])
        self.server = Server(cluster[1])
        self.server.load(*params)
        self.client.load()

    def addr(self, link: int = 0) -> str:
        """A path over a link."""
        return f"ip:{self.cluster[0].addr(link)},ip:{self.cluster[1].addr(link)}"

    def path(self, link: int = 0) -> str:
        """Its name in sysfs."""
        return f"ip:{self.cluster[0].addr(link)}@ip:{self.cluster[1].addr(link)}"

    def sound(self) -> None:
        self.client.sound()
        status = self.server.status()
        for what in ("stale", "twice", "old", "bad"):
            assert status[what] == 0, status

    def unload(self) -> None:
        self.client.host.rmmod("rail_rtest_client", "rtrs_client")
        self.server.host.rmmod("rail_rtest_server", "rtrs_server")
