# SPDX-License-Identifier: GPL-2.0-only
"""How Sphinx builds the manual: `make docs`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "ext"))
sys.dont_write_bytecode = True  # the checkout stays clean

project = "RAIL"
author = "the RAIL authors"
copyright = author  # noqa: A001 (Sphinx's name for it)
release = (Path(__file__).parent.parent / "VERSION").read_text().strip()
version = release

extensions = ["exchange"]
exclude_patterns: list[str] = []
html_theme = "alabaster"
html_theme_options = {
    "description": "RDMA-Accelerated I/O for Linux",
    "fixed_sidebar": True,
    "page_width": "1100px",
}
nitpicky = True
man_pages = [("railctl", "railctl", "block devices and NFS over RDMA", author, 8)]
