# SPDX-License-Identifier: GPL-2.0-only
"""What the pages of the manual say to type, taken from them and typed.

A block of commands belongs to the host that a comment before it names: ".. run: client".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from railvm import Host, kernels

# A heading with the line below it, or a block.
PIECE = re.compile(r"^(?P<title>\S.*)\n(?:-{3,}|={3,})\n"
                   r"|^\.\. run: (?P<host>\S+)\n\n::\n\n(?P<commands>(?:    .*\n|\n)+)", re.M)


class Guide:
    """A page, and the hosts that its blocks are for."""

    def __init__(self, name: str, hosts: Mapping[str, Host], names: Mapping[str, str] | None = None,
                 path: str = "") -> None:
        self.hosts = hosts
        self.names = dict(names or {})  # of the page, and what they are here
        self.path = f"export PATH={path}:$PATH\n" if path else ""
        text = (kernels.TOP / "Documentation" / f"{name}.rst").read_text()
        self.blocks: list[tuple[str, str, str]] = []
        section = ""
        for piece in PIECE.finditer(text):
            if piece["title"]:
                section = piece["title"]
            else:
                self.blocks.append((section, piece["host"], piece["commands"]))
        assert len(self.blocks) == text.count(".. run: "), "a block that is not understood"

    def follow(self, *sections: str, skip: tuple[str, ...] = (), timeout: float = 60) -> int:
        """Type all that is in these sections, or in all; how many blocks there were."""
        done = 0
        for section, host, commands in self.blocks:
            if host in skip or (sections and section not in sections):
                continue
            for name, real in self.names.items():
                commands = re.sub(re.escape(name) + r"(?![0-9])", real, commands)
            self.hosts[host].run(f"{self.path}set -e\n{commands}", timeout=timeout)
            done += 1
        return done
