# SPDX-License-Identifier: GPL-2.0-only
"""Finds in a kernel log what no test may leave there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

# A line that matches one of these makes a test fail. A report of the kernel
# has one such line near its start; what follows it is kept as its context.
SPLATS = (
    # WARN_ON, lockdep, RCU and KUnit all say WARNING; its absence of case
    # matters, "warning:" is what ordinary messages say.
    r"\bWARNING: ",
    # BUG_ON, KASAN, page faults, sleeping or scheduling while atomic, soft
    # lockup, bad page state, bad rss counter, workqueue lockup.
    r"\bBUG: ",
    r"\bBUG [\w-]+ \(.*\): ",  # slub debugging
    r"kernel BUG at ",
    r"\bOops\b",
    r"\bKASAN: ",
    r"\bUBSAN: ",
    r"\bKCSAN: ",
    r"\bKFENCE: ",
    r"INFO: possible (recursive|circular|irq|lock)",
    r"possible (recursive|circular|irq lock inversion)",
    r"suspicious RCU usage",
    r"inconsistent lock state",
    r"inconsistent \{.*\} -> \{.*\} usage",
    r"DEBUG_LOCKS_WARN_ON",
    r"bad unlock balance",
    r"held lock freed|lock held when returning to user space|lock held at task exit time",
    r"INFO: task .* blocked for more than",
    r"INFO: task .* blocked on ",
    r"soft lockup|hard LOCKUP",
    r"\brcu.*(detected stalls|self-detected stall|detected expedited stalls)",
    r"refcount_t: ",
    r"DMA-API: (?!(preallocated|debugging (enabled|disabled)|dynamic|.*debug_dma_entries))",
    r"scheduling while atomic",
    r"sleeping function called from invalid context",
    r"voluntary context switch within RCU",
    r"\bODEBUG: (?!(selftest passed|Out of memory|\d+ of \d+ active objects))",
    r"list_(add|del)(_valid)? corruption|list_(add|del) double",
    r"general protection fault",
    r"unable to handle (page fault|kernel)",
    r"(invalid opcode|divide error|stack segment|double fault|int3|alignment check): \d",
    r"Kernel panic",
    r"kmemleak: \d+ new suspected memory leaks",
    r"kmemleak: (Kernel memory leak detector disabled|Memory pool empty|Cannot )",
    r"unregister_netdevice: waiting for .* to become free",
    r"Bad (page|rss-counter) state",
    r"slab error in|kmem_cache_destroy.*(still has objects|objects remaining)",
    r"workqueue lockup|BUG: workqueue",
    r"corrupted stack end|stack-protector: ",
    r"nobody cared",
    r"NETDEV WATCHDOG",
    r"rail-agent: kernel log records were lost",
)

_SPLAT = re.compile("|".join(f"(?:{pattern})" for pattern in SPLATS))
_END = re.compile(r"---\[ end trace|---\[ end Kernel panic")
_RULE = re.compile(r"^={20,}$")
CONTEXT = 70


@dataclass(frozen=True)
class Noise:
    """A message that matches SPLATS and yet tells of no fault in what is tested."""

    kernels: str  # regular expression on the kernel's name
    text: str  # regular expression on the line
    reason: str


# Every entry narrows what a test can find, so each has to name its reason.
NOISE: tuple[Noise, ...] = ()


@dataclass
class Finding:
    line: str
    context: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(self.context or [self.line])


def noise_for(kernel: str) -> list[re.Pattern[str]]:
    return [re.compile(entry.text) for entry in NOISE if re.fullmatch(entry.kernels, kernel)]


def scan(lines: Sequence[str], allowed: Iterable[re.Pattern[str]] = ()) -> list[Finding]:
    """The reports in a log, each once; lines that are allowed are passed over.

    An allowed line hides itself alone: a second splat within the report that
    it opens is still found.
    """
    allowed = list(allowed)
    findings: list[Finding] = []
    inside = 0  # lines up to here belong to the last finding
    for number, line in enumerate(lines):
        if not _SPLAT.search(line) or any(pattern.search(line) for pattern in allowed):
            continue
        if number < inside:
            continue
        start = number
        # A report may open with a rule and with "cut here".
        while start > 0 and number - start < 3 and (
                "cut here" in lines[start - 1] or _RULE.match(lines[start - 1])):
            start -= 1
        inside = _end(lines, number)
        findings.append(Finding(line, list(lines[start:inside])))
    return findings


def _end(lines: Sequence[str], number: int) -> int:
    limit = min(len(lines), number + CONTEXT)
    for position in range(number + 1, limit):
        if _END.search(lines[position]) or _RULE.match(lines[position]):
            return position + 1
        if "cut here" in lines[position]:
            return position
    return limit


_STAMP = re.compile(r"^\[ *(\d+\.\d+)\](?:\[ *[TC]\d+\])? ?")


def serial_lines(data: bytes) -> list[str]:
    """The kernel's lines on a serial console, without their time stamps.

    A line may be cut in two where user space wrote to the console meanwhile.
    """
    text = data.decode("utf-8", "replace").replace("\r", "")
    return [_STAMP.sub("", line) for line in text.split("\n")]
