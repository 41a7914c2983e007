# SPDX-License-Identifier: GPL-2.0-only
"""railctl on real hosts: what an operator does, by the tool alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from railvm import Cluster, Host, kernels
from rnbdrig import Client, Server

Hosts = Callable[..., Cluster]

pytestmark = [pytest.mark.kernels("stock-6.1"), pytest.mark.usefixtures("railctl_built")]

PROGRAM = kernels.TOOLS / "railctl"
# Exit statuses, as the manual has them.
REFUSED, UNKNOWN, NOT_LOADED, IN_USE, FOUND, EXISTS = 1, 3, 5, 6, 8, 9


class Tool:
    """railctl on a host."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def __call__(self, *args: str, status: int = 0) -> str:
        """What it prints; with another exit status than 0, what it says to standard error."""
        result = self.host.run([str(PROGRAM), *args], check=False, timeout=60)
        assert result.status == status, result
        return result.stderr if status not in (0, FOUND) else result.stdout

    def json(self, *args: str, status: int = 0) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self("--json", *args, status=status))
        assert said["schema"] == 1
        assert not undocumented_members(said), said
        return said


def undocumented_members(said: Any) -> set[str]:
    """Members of railctl's JSON that its manual does not have."""
    page = (kernels.TOP / "Documentation" / "railctl.rst").read_text()
    section = page[page.index("\nJSON\n----\n"):page.index("\nExit status\n")]
    words = set(re.findall(r"\w+", section))

    def members(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for name, inner in value.items():
                yield name
                # What is in these has the kernel's names: the page on files has them.
                if name == "histograms":
                    inner = list(inner.values())
                if name not in ("counters", "settings_and_counters"):
                    yield from members(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from members(inner)

    return set(members(said)) - words


def undocumented(host: Host, *roots: str) -> list[str]:
    """Files of ours, and numbers in those of debugfs, that the page on files does not have."""
    page = (kernels.TOP / "Documentation" / "abi.rst").read_text()
    words = set(re.findall(r"[\w./]+", page))
    words |= {word.rpartition("/")[2] for word in words}
    missing = []
    for root in roots:
        files = host.run(f"find $(readlink -f {root}) -type f").stdout.split()
        assert files, root
        for file in files:
            name = file.rpartition("/")[2]
            if name == "uevent" or "/power/" in file:
                continue
            if name.endswith(".json"):
                said = json.loads(host.run(["cat", file]).stdout)
                missing += [f"{file}: {number}" for number in {**said["counters"],
                                                               **said["histograms"]}
                            if number not in words]
            elif name not in words:
                missing.append(file)
    return missing


@pytest.fixture
def tools(hosts: Hosts) -> Iterator[tuple[Tool, Tool]]:
    """For a client and a server with two links between them, and the modules loaded."""
    a, b = hosts(2, links=2)
    before = Tool(a)("map", b.addr(), "disk", status=NOT_LOADED)
    assert "modprobe rnbd" in before, before
    server = Server(b)
    client = Client(a, server)
    yield Tool(a), Tool(b)
    client.clear()
    server.clear()


def test_block(tools: tuple[Tool, Tool]) -> None:
    """Export, map, look, add a path, use, unmap, remove."""
    client, server = tools
    a, b = client.host, server.host
    b.modprobe("brd", "rd_nr=1", "rd_size=32768")
    server("export", "add", "disk", "/dev/ram0", "--allow", "198.51.100.7")
    said = client("map", "-s", "s1", b.addr(), "disk", status=REFUSED)
    assert "does not let this host map it" in said and "railctl export allow disk" in said, said
    server("export", "allow", "disk", f"{a.addr()}")
    server("export", "add", "disk", "/dev/ram0", status=EXISTS)

    node = client("map", "-s", "s1", b.addr(), "disk").split()[-1]
    assert node.startswith("/dev/rnbd")
    client("map", "-s", "s1", b.addr(), "disk", status=EXISTS)
    device, = client.json("list")["devices"]
    assert (device["node"], device["remote"], device["session"], device["bytes"]) == (
        node, "disk", "s1", 32 << 20), device
    a.run(f"dd if=/dev/urandom of={node} bs=1M count=4 oflag=direct")

    # The server admits the second address before there is a path from it.
    server("export", "allow", "disk", f"{a.addr(1)}")
    client("path", "add", "s1", f"{a.addr(1)},{b.addr(1)}")
    session, = client.json("path", "list")["sessions"]
    assert [path["state"] for path in session["paths"]] == ["connected"] * 2
    client("policy", "s1", "min-inflight")
    assert client.json("policy", "s1")["sessions"][0]["policy"] == "min-inflight"
    client("path", "disconnect", "s1", b.addr(1))
    states = [path["state"] for path in client.json("path", "list")["sessions"][0]["paths"]]
    assert sorted(states) == ["connected", "disconnected"]
    client("path", "connect", "s1", b.addr(1))
    client("path", "remove", "s1", b.addr(1))
    client("path", "remove", "s1", b.addr(0), status=IN_USE)

    export, = server.json("export", "show", "disk")["exports"]
    assert [mapping["session"] for mapping in export["mappings"]] == ["s1"]
    session, = server.json("sessions")["sessions"]
    assert session["name"] == "s1" and len(session["paths"]) == 1
    name = node.rpartition("/")[2]
    stats = client.json("stats", name)["stats"]
    assert stats and stats[0]["kind"] == "device"

    debugfs = "/sys/kernel/debug/rail"
    assert not undocumented(a, "/sys/class/rtrs-client/s1", f"/sys/block/{name}/rnbd",
                            "/sys/class/rnbd-client/ctl", f"{debugfs}/rtrs-client",
                            f"{debugfs}/rnbd-client", *(f"/sys/module/{module}/parameters"
                                                        for module in ("rpcrdma",)
                                                        if module in a.state()["modules"]))
    assert not undocumented(b, "/sys/class/rtrs-server/s1", "/sys/class/rnbd-server/ctl",
                            "/sys/kernel/config/rnbd/exports", f"{debugfs}/rtrs-server",
                            f"{debugfs}/rnbd-server", "/sys/module/rtrs_server/parameters",
                            "/sys/module/rnbd_server/parameters")

    # Nothing goes from under its user.
    holder = a.start(f"exec 3<{node}; echo open; sleep 1000")
    holder.wait_output("open")
    assert "is in use" in client("unmap", node, status=IN_USE)
    holder.kill()
    client("unmap", node)
    client("show", node, status=UNKNOWN)
    assert client.json("list")["devices"] == []
    server("export", "remove", "disk")
    assert server.json("export", "list")["exports"] == []


WANTED = """
[[session]]
name = "s2"
paths = ["{a},{b}"]

[[session.device]]
name = "disk"
"""


def test_apply(tools: tuple[Tool, Tool]) -> None:
    """A file of what is wanted: done once, then nothing to do; what is in use stays."""
    client, server = tools
    a, b = client.host, server.host
    b.modprobe("brd", "rd_nr=1", "rd_size=32768")
    b.put("/tmp/rail.toml", f'[[export]]\nname = "disk"\ndevice = "/dev/ram0"\n'
                            f'allow = ["ip:{a.addr()}"]\n')
    server("apply", "--dry-run", "/tmp/rail.toml", status=FOUND)
    server("apply", "/tmp/rail.toml")
    server("apply", "--dry-run", "/tmp/rail.toml")
    a.put("/tmp/rail.toml", WANTED.format(a=a.addr(), b=b.addr()))
    client("apply", "/tmp/rail.toml")
    client("apply", "--dry-run", "/tmp/rail.toml")
    device, = client.json("list")["devices"]
    a.put("/tmp/again.toml", client("export", "--toml"))
    client("apply", "--dry-run", "/tmp/again.toml")

    a.put("/tmp/none.toml", "")
    holder = a.start(f"exec 3<{device['node']}; echo open; sleep 1000")
    holder.wait_output("open")
    client("apply", "--prune", "/tmp/none.toml", status=IN_USE)
    assert len(client.json("list")["devices"]) == 1
    holder.kill()
    client("apply", "--prune", "/tmp/none.toml")
    assert client.json("list")["devices"] == []
    b.put("/tmp/none.toml", "")
    server("apply", "--prune", "/tmp/none.toml")


def test_links(tools: tuple[Tool, Tool]) -> None:
    """A mapped device has a link that says which it is, as soon as it is mapped."""
    client, server = tools
    a, b = client.host, server.host
    rules = kernels.TOP / "tools" / "host" / "60-rail.rules"
    # Where it is alone with our rules: those of this machine are not what is tried.
    udevd = a.start("unshare -m sh -ec 'mount -t tmpfs rules /usr/lib/udev/rules.d; "
                    f"cp {rules} /usr/lib/udev/rules.d; mkdir -p /run/udev; "
                    "exec /lib/systemd/systemd-udevd'")
    a.run("until [ -S /run/udev/control ]; do sleep 0.2; done", timeout=60)
    b.modprobe("brd", "rd_nr=1", "rd_size=32768")
    server("export", "add", "vg0/disk", "/dev/ram0", "--allow", f"{a.addr()}")
    watch = a.start([str(PROGRAM), "watch", "--count", "1"])
    watch.wait_output("watching", timeout=60, stream=2)
    node = client("map", "-s", "s1", b.addr(), "vg0/disk").split()[-1]
    link = "/dev/rail/by-session/s1/vg0/disk"
    assert a.run(["readlink", "-f", link]).stdout.strip() == node
    assert client.json("show", link)["device"]["node"] == node
    watch.wait(60)
    assert "+ path s1 " in watch.stdout or "+ device rnbd" in watch.stdout, watch.stdout
    client("unmap", link)
    a.wait_file(link, None, timeout=60)
    server("export", "remove", "vg0/disk")
    udevd.kill()
    # Or the next one to map would wait for it.
    a.run("rm -rf /run/udev")


def test_events(tools: tuple[Tool, Tool]) -> None:
    """The kernel tells of what becomes of a path, and `watch` has it."""
    client, server = tools
    a, b = client.host, server.host
    b.modprobe("brd", "rd_nr=1", "rd_size=32768")
    server("export", "add", "disk", "/dev/ram0", "--allow", a.addr(), "--allow", a.addr(1))
    kernel = a.start(["udevadm", "monitor", "--kernel", "--property", "--subsystem-match=block",
                      "--subsystem-match=rtrs-client"])
    kernel.wait_output("KERNEL - the kernel uevent", timeout=60)
    watch = a.start([str(PROGRAM), "--json", "watch"])
    client("map", "-s", "s1", b.addr(), "disk")
    kernel.wait_output(r"change .*/block/rnbd0 ", timeout=60)
    path = f"ip:{a.addr(1)}@ip:{b.addr(1)}"
    client("path", "add", "s1", f"{a.addr(1)},{b.addr(1)}")
    for what, state in (("disconnect", "disconnected"), ("connect", "connected"),
                        ("remove", "removed")):
        client("path", what, "s1", b.addr(1))
        kernel.wait_output(rf"DEVPATH=\S*/rtrs-client/s1\n(?:\w+=.*\n)*RTRS_PATH={path}\n"
                           rf"RTRS_PATH_STATE={state}\n", timeout=60)
    watch.wait_output(rf'"kind":"path","name":"s1 {path}","was":.*"is":null', timeout=60)
    said = [json.loads(line) for line in watch.stdout.splitlines()]
    assert all(change["schema"] == 1 for change in said)
    states = [change["is"] for change in said if change["name"] == f"s1 {path}"]
    assert states[0] in ("connecting", "connected") and states[-1] is None, said
    assert "disconnected" in states, said
    watch.kill()
    kernel.kill()
    client("unmap", "disk@s1")
    server("export", "remove", "disk")


def test_doctor(tools: tuple[Tool, Tool]) -> None:
    """It knows ours, and says what is not well with how to mend it."""
    client, server = tools
    findings = client.json("doctor")["findings"]
    levels = {finding["about"]: finding["level"] for finding in findings}
    assert levels["rnbd_client"] == "ok" and "bad" not in levels.values(), findings
    client.host.put("/tmp/other", server("--json", "doctor"))
    addr = server.host.addr()
    said = client("doctor", "--with", "/tmp/other", addr)
    assert "other end: is of the same version" in said and f"{addr} port 1234: answers" in said, said
    # Nobody serves NFS there; no host has the third address; no device leads to the fourth.
    assert "nobody listens" in said, said
    for wrong, words in ((addr.rpartition(".")[0] + ".99", "does not answer by RDMA"),
                         ("192.0.2.1", "no RDMA device of this host")):
        said = client("doctor", "--brief", wrong, status=FOUND)
        assert f"BAD   {wrong}: " in said and words in said, said
    for link in (0, 1):
        client("rxe", "down", client.host.nic(link).name)
    bad = [finding for finding in client.json("doctor", status=FOUND)["findings"]
           if finding["level"] == "bad"]
    assert bad and all(finding["mend"] for finding in bad), bad
    client("rxe", "up", "-n", "rxe0", client.host.nic(0).name)
    client("rxe", "up", "-n", "rxe1", client.host.nic(1).name)
    client("doctor")
