# SPDX-License-Identifier: GPL-2.0-only
"""Hosts with Debian 12, systemd and the packages, as an operator has them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from railvm import Host

# What a virtual host's journal has of errors that are none of ours.
HARMLESS = re.compile(
    r"Failed to find module|nfs-blkmap|blkmapd|blocklayout|firmware|regulatory"
    r"|systemd-networkd-wait-online|ACPI|rail-agent")
# What no host may say as it goes down.
WRONG = re.compile(
    r"[Ff]ailed (un)?mounting|[Ff]ailed to unmount|timed out|SIGKILL|I/O error|is in use"
    r"|(rail-\w+|mirror)\S*\.service: Failed|[Ff]ailed to stop")


def set_up(host: Host, addresses: Sequence[str]) -> None:
    """The addresses of eth0, eth1, ..., as an installer would have asked for them."""
    for number, address in enumerate(addresses):
        host.put(f"/etc/systemd/network/eth{number}.network",
                 f"[Match]\nName=eth{number}\n[Network]\nAddress={address}/24\n")
    booted(host)
    host.run(["systemctl", "enable", "--now", "systemd-networkd"], timeout=60)


def journal(host: Host, *args: str) -> str:
    return host.run(["journalctl", "--no-pager", "-o", "short-monotonic", *args],
                    timeout=60).stdout


def booted(*hosts: Host) -> None:
    """To the end, whatever came of it."""
    for host in hosts:
        host.run(["systemctl", "is-system-running", "--wait"], timeout=240, check=False)


def settled(*hosts: Host) -> None:
    """Booted to the end, and nothing has failed on the way."""
    booted(*hosts)
    for host in hosts:
        failed = host.run(["systemctl", "--failed", "--no-legend", "--plain"]).stdout
        assert not failed.strip(), failed + journal(host, "-b", "-p", "warning")
        errors = [line for line in journal(host, "-b", "-p", "err").splitlines()
                  if not HARMLESS.search(line) and not line.startswith("-- ")]
        assert not errors, "\n".join(errors)


def restart(host: Host) -> None:
    """`systemctl reboot`: down in good time and order, and up again with all there was."""
    seconds = host.shut_down()
    assert seconds < 90 * host.factor, f"it took {seconds:.0f} s to go down"
    host.reboot()
    settled(host)
    wrong = [line for line in journal(host, "-b", "-1").splitlines() if WRONG.search(line)]
    assert not wrong, "\n".join(wrong)
