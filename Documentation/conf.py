# SPDX-License-Identifier: GPL-2.0-only
"""How Sphinx builds the manual: `make docs`."""

from pathlib import Path

project = "RAIL"
author = "the RAIL authors"
copyright = author  # noqa: A001 (Sphinx's name for it)
release = (Path(__file__).parent.parent / "VERSION").read_text().strip()
version = release

extensions: list[str] = []
exclude_patterns: list[str] = []
html_theme = "alabaster"
html_theme_options = {
    "description": "RDMA-Accelerated I/O for Linux",
    "fixed_sidebar": True,
    "page_width": "1100px",
}
nitpicky = True
man_pages = [("railctl", "railctl", "block devices and NFS over RDMA", author, 8)]
