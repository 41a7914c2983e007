# SPDX-License-Identifier: GPL-2.0-only
"""The programs in peer/, which do on a host what no kernel would."""

from __future__ import annotations

import subprocess
from pathlib import Path

from railvm import Host, kernels

FOLDER = Path(__file__).parent / "peer"


def _build(name: str) -> Path:
    """The program, compiled if it is not there or older than its sources."""
    source = FOLDER / f"{name}.cc"
    out = Path(kernels.TOP) / "build" / "vm-peer" / name
    newest = max(path.stat().st_mtime for path in (source, FOLDER / "peer.h"))
    if not out.exists() or out.stat().st_mtime < newest:
        out.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["c++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-o", str(out),
                        str(source), "-lrdmacm", "-libverbs"], check=True)
    return out


class Program:
    """A program on a host, that takes commands and answers each with a line of words."""

    def __init__(self, host: Host, name: str) -> None:
        self.host = host
        self.path = f"/run/{name}"
        host.put(self.path, _build(name))

    def answers(self, *commands: str, timeout: float = 60) -> list[list[str]]:
        script = "\n".join([*commands, ""])
        out = self.host.run([self.path], data=script.encode(), timeout=timeout).stdout
        return [line.split() for line in out.splitlines()]
