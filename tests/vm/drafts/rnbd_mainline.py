# SPDX-License-Identifier: GPL-2.0-only
"""Not seen green yet: links cut under verified load, and all paths lost, with mainline in either role. Takes
the place of test_rnbd.py's test of that name, and of drafts/rtrs_mainline.py."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rnbdrig import Client, Server, write
from test_rnbd import OURS, PATHS, ROLES, goes_on, rig, start_verified, stop_verified, two_paths

Rig = Callable[..., tuple[Client, Server]]

__all__ = ["rig"]

pytestmark = [pytest.mark.kernels("stock-6.1", "test-7"), pytest.mark.soak("test-7")]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("roles", "rotate"), [
    (OURS, True),
    *(pytest.param(roles, rotate, marks=pytest.mark.soak) for roles, rotate in (
        (OURS, False), (ROLES[1], True), (ROLES[1], False), (ROLES[2], True)))],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else
    "rotate" if value else "fixed")
def test_link_cut_under_load(rig: Rig, roles: tuple[str, str], rotate: bool) -> None:
    """Each link of two goes and comes back while data is written and verified: nothing fails, and
    both ends have the same bytes. So it is with mainline in either role."""
    client, server = rig(roles, links=2, rotate=rotate,
                         search="/dev" if roles[1] == "mainline" else None)
    server.ram(mib=16)
    if roles[1] == "ours":
        server.export("ram0", "/dev/ram0")
    disk = client.map("ram0", paths=two_paths(client, server))
    mine = roles[0] == "ours"
    load = start_verified(disk, "--bsrange=4k-64k", "--iodepth=16")
    for link in (0, 1):
        path = f"{PATHS}/ip:{client.host.addr(link)}@ip:{server.host.addr(link)}"
        client.host.wait_file(f"{disk.dir}/stat", r"^ +[1-9]", 60)
        client.host.cluster.link(link).cut()
        # Mainline's file waits for the attempt it asks for.
        reconnect = client.host.start(f"echo 1 >{path}/reconnect")
        client.host.wait_file(f"{path}/state", "^(re)?connecting", 60)
        if mine:
            goes_on(disk, load)
        client.host.cluster.link(link).restore()
        client.host.wait_file(f"{path}/state", "^connected$", 120)
        reconnect.wait(120, check=False)
    if mine:
        goes_on(disk, load)
    stop_verified(load, client.host)
    assert disk.sum() == server.sum("/dev/ram0")
    disk.unmap()


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("roles", ROLES[:2], ids=["-".join(roles) for roles in ROLES[:2]])
def test_all_paths_lost(rig: Rig, roles: tuple[str, str]) -> None:
    """Both paths go and come back under load: it waits, the device is opened anew, nothing is lost."""
    client, server = rig(roles, links=2, search="/dev")
    server.ram(mib=16)
    disk = client.map("ram0", paths=two_paths(client, server))
    names = [f"{PATHS}/ip:{client.host.addr(link)}@ip:{server.host.addr(link)}" for link in (0, 1)]
    load = start_verified(disk, "--bs=8k", "--iodepth=8")
    goes_on(disk, load)
    for name in names:
        write(client.host, f"{name}/disconnect", "1")
    assert disk.attr("state") == "closed"
    for name in names:
        write(client.host, f"{name}/reconnect", "1")
    for name in names:
        client.host.wait_file(f"{name}/state", "^connected$", 90)
    goes_on(disk, load)
    stop_verified(load, client.host)
    assert disk.sum() == server.sum("/dev/ram0")
    disk.unmap()
