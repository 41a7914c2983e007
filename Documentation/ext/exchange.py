# SPDX-License-Identifier: GPL-2.0-only
"""Sphinx: draws an exchange of messages from lines of text.

    .. exchange:: client server

       client -> server: a Send
       client => server: an RDMA Write, drawn thicker
       client .. registers memory
       -- a remark across the drawing

HTML gets a drawing (SVG), everything else the lines.
"""

from __future__ import annotations

import re
import textwrap
from html import escape
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx import addnodes

ARROW = re.compile(r"(\S+) (->|=>) (\S+): (.+)")
DEED = re.compile(r"(\S+) \.\. (.+)")
REMARK = re.compile(r"-- (.+)")

WIDTH = 760  # of the drawing, and what is between things in it
EDGE = 120
LINE = 16
LETTERS = 62  # of a text on an arrow, in a line


def _text(x: float, y: float, lines: list[str], anchor: str, style: str = "") -> str:
    return "".join(
        f'<text x="{x:g}" y="{y + LINE * number:g}" text-anchor="{anchor}" {style}>'
        f"{escape(line)}</text>" for number, line in enumerate(lines))


class Drawing:
    """The pieces of a drawing, from the top down."""

    def __init__(self, ends: list[str]) -> None:
        step = (WIDTH - 2 * EDGE) / max(len(ends) - 1, 1)
        self.x = {end: EDGE + number * step for number, end in enumerate(ends)}
        self.y = 40.0
        self.parts: list[str] = []

    def arrow(self, source: str, kind: str, target: str, text: str) -> None:
        start, end = self.x[source], self.x[target]
        lines = textwrap.wrap(text, LETTERS)
        self.parts.append(_text((start + end) / 2, self.y + 12, lines, "middle"))
        self.y += LINE * len(lines) + 4
        way = 1 if end > start else -1
        wide = 3 if kind == "=>" else 1.2
        self.parts.append(
            f'<path d="M{start:g} {self.y:g} H{end - 8 * way:g}" stroke-width="{wide}"/>'
            f'<path d="M{end:g} {self.y:g} l{-10 * way} -5 v10 z" class="tip"/>')
        self.y += 10

    def deed(self, end: str, text: str) -> None:
        lines = textwrap.wrap(text, 24)
        height = LINE * len(lines) + 6
        x = self.x[end]
        self.parts.append(f'<rect x="{x - 92:g}" y="{self.y + 2:g}" width="184" '
                          f'height="{height:g}" rx="4"/>')
        self.parts.append(_text(x, self.y + 16, lines, "middle"))
        self.y += height + 8

    def remark(self, text: str) -> None:
        lines = textwrap.wrap(text, 100)
        self.parts.append(_text(WIDTH / 2, self.y + 14, lines, "middle", 'style="font-style:italic"'))
        self.y += LINE * len(lines) + 8

    def svg(self) -> str:
        height = self.y + 14
        heads = "".join(
            f'<path d="M{x:g} 28 V{height - 4:g}" stroke-dasharray="3 4"/>'
            + _text(x, 18, [end], "middle", 'style="font-weight:bold"') for end, x in self.x.items())
        return (f'<svg viewBox="0 0 {WIDTH} {height:g}" class="exchange" role="img" '
                f'xmlns="http://www.w3.org/2000/svg" style="max-width:{WIDTH}px">'
                "<style>.exchange text{font:13px sans-serif;fill:#222}"
                ".exchange path{stroke:#456;fill:none}.exchange .tip{fill:#456}"
                ".exchange rect{fill:#eef3f8;stroke:#9ab}</style>"
                f"{heads}{''.join(self.parts)}</svg>")


class Exchange(Directive):
    """The directive."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        ends = self.arguments[0].split()
        drawing = Drawing(ends)
        for line in self.content:
            arrow, deed, remark = (kind.fullmatch(line) for kind in (ARROW, DEED, REMARK))
            if arrow and arrow[1] in ends and arrow[3] in ends:
                drawing.arrow(*arrow.groups())
            elif deed and deed[1] in ends:
                drawing.deed(*deed.groups())
            elif remark:
                drawing.remark(remark[1])
            elif line.strip():
                raise self.error(f"not a line of an exchange between {' and '.join(ends)}: {line}")
        picture = addnodes.only(expr="html")
        picture += nodes.raw("", drawing.svg(), format="html")
        text = "\n".join(self.content)
        words = addnodes.only(expr="not html")
        words += nodes.literal_block(text, text)
        return [picture, words]


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("exchange", Exchange)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
