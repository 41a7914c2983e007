# SPDX-License-Identifier: GPL-2.0-only
"""The KUnit suites of tests/kunit, each result as a result of its own.

A suite is a module that runs as it is loaded. What ought to run is read from
the sources, what did run from debugfs: a case that is missing has not passed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from railvm import Cluster

Hosts = Callable[..., Cluster]
SOURCES = Path(__file__).parent.parent / "kunit"
RESULTS = "/sys/kernel/debug/kunit/{suite}/results"
# In seconds of a stock kernel; the test kernel has four times as many.
LONGEST = 60

pytestmark = pytest.mark.kernels("test-7")


# -- what ought to run ---------------------------------------------------------


def suites_of(source: str) -> dict[str, list[str]]:
    """The suites that a C source defines, with their cases."""
    cases = {
        name: re.findall(r"\bKUNIT_CASE\w*\(\s*(\w+)", body)
        for name, body in re.findall(
            r"struct kunit_case (\w+)\[\] = \{(.*?)\n\};", source, re.DOTALL)
    }
    suites = {}
    for body in re.findall(r"struct kunit_suite \w+ = \{(.*?)\n\};", source, re.DOTALL):
        name = re.search(r'\.name = "([^"]+)"', body)
        array = re.search(r"\.test_cases = (\w+)", body)
        assert name and array, f"a suite without name or cases:\n{body}"
        suites[name[1]] = cases[array[1]]
    return suites


def module_of(source: Path) -> str:
    return f"rail_{source.stem}"


SUITES = {module_of(path): suites_of(path.read_text())
          for path in sorted(SOURCES.glob("*_kunit.c"))}
CASES = [(module, suite, case) for module, suites in SUITES.items()
         for suite, cases in suites.items() for case in cases]


# -- what did run ----------------------------------------------------------------


@dataclass
class Outcome:
    """One line of KTAP: a suite, a case or a parameter of a case."""

    ok: bool
    number: int
    name: str
    skip: str | None
    diagnostics: list[str] = field(default_factory=list)
    parts: list[Outcome] = field(default_factory=list)
    planned: int | None = None

    def leaves(self) -> Iterator[Outcome]:
        if self.parts:
            for part in self.parts:
                yield from part.leaves()
        else:
            yield self

    def problems(self, path: str = "") -> list[str]:
        """Why this has not passed; empty if it has."""
        path = f"{path}/{self.name}" if path else self.name
        found = []
        if self.planned is not None and self.planned != len(self.parts):
            found.append(f"{path}: {self.planned} results were announced, {len(self.parts)} came")
        if [part.number for part in self.parts] != list(range(1, len(self.parts) + 1)):
            found.append(f"{path}: results are missing or out of order")
        if self.skip is not None:
            found.append(f"{path}: skipped: {self.skip}")
        for part in self.parts:
            found += part.problems(path)
        if not self.ok and not found:
            found.append("\n".join([f"{path}: failed", *self.diagnostics]))
        elif not self.ok:
            found += self.diagnostics
        return found


LINE = re.compile(r"(?P<indent> *)(?P<not>not )?ok (?P<number>\d+)(?: -)? "
                  r"(?P<name>.*?)(?: # SKIP ?(?P<skip>.*))?$")
PLAN = re.compile(r"(?P<indent> *)1\.\.(?P<count>\d+)$")
INDENT = 4


def parse_ktap(text: str) -> list[Outcome]:
    """The outermost results, with what they consist of. A result follows its parts."""
    open_parts: dict[int, list[Outcome]] = {}
    plans: dict[int, int] = {}
    said: list[str] = []
    for line in text.splitlines():
        if plan := PLAN.match(line):
            plans[len(plan["indent"]) // INDENT] = int(plan["count"])
        elif match := LINE.match(line):
            depth = len(match["indent"]) // INDENT
            outcome = Outcome(match["not"] is None, int(match["number"]), match["name"],
                              match["skip"], said, open_parts.pop(depth + 1, []),
                              plans.pop(depth + 1, None))
            open_parts.setdefault(depth, []).append(outcome)
            said = []
        elif line.strip() and not line.lstrip().startswith(("KTAP version", "# Subtest:")):
            said.append(line.strip())
    left = [name for depth, parts in open_parts.items() if depth for name in parts]
    assert not left, f"the results end in the middle:\n{text[-2000:]}"
    return open_parts.get(0, [])


@dataclass
class Run:
    suites: dict[str, Outcome]
    seconds: float


_runs: dict[str, Run | str] = {}


def run_module(hosts: Hosts, module: str) -> Run:
    """Load a module of suites and collect what they say. Once only a session."""
    known = _runs.get(module)
    if isinstance(known, str):
        pytest.fail(f"{module} did not run: {known}", pytrace=False)
    if known is None:
        _runs[module] = "see the first test of it"
        known = _runs[module] = _run_module(hosts, module)
    return known


def _run_module(hosts: Hosts, module: str) -> Run:
    (host,) = hosts(1, links=1)
    # What the suites need is loaded before, so that the time is theirs.
    host.modprobe("kunit")
    host.modprobe_rail("rail_verbs")
    start = time.monotonic()
    host.modprobe_rail(module, timeout=LONGEST)
    seconds = time.monotonic() - start
    suites = {}
    for suite in SUITES[module]:
        text = host.run(["cat", RESULTS.format(suite=suite)]).stdout
        outcomes = parse_ktap(text)
        assert len(outcomes) == 1, f"one suite was expected:\n{text}"
        suites[suite] = outcomes[0]
    host.rmmod(module)
    return Run(suites, seconds)


# -- the tests -------------------------------------------------------------------


KTAP = """\
KTAP version 1
1..1
    KTAP version 1
    # Subtest: suite
    # module: m
    1..4
    ok 1 plain
        KTAP version 1
        # Subtest: many
        1..2
        ok 1 depth 1: # of things
    # many: EXPECTATION FAILED at x.c:1
    Expected a == b
        not ok 2 depth 2
    # many: pass:1 fail:1 skip:0 total:2
    not ok 2 many
    ok 3 gone # SKIP no device
    # suite: 3 of them
not ok 1 suite
"""


def test_parser() -> None:
    (suite,) = parse_ktap(KTAP)
    assert [part.name for part in suite.parts] == ["plain", "many", "gone"]
    plain, many, gone = suite.parts
    assert (plain.ok, plain.parts, plain.skip) == (True, [], None)
    assert [(part.ok, part.name) for part in many.parts] == [
        (True, "depth 1: # of things"), (False, "depth 2")]
    assert (many.ok, many.planned, gone.skip) == (False, 2, "no device")
    assert plain.problems() == []
    said = "\n".join(suite.problems())
    assert "4 results were announced, 3 came" in said
    assert "suite/many/depth 2: failed\n# many: EXPECTATION FAILED at x.c:1" in said
    assert "suite/gone: skipped: no device" in said
    assert len(list(suite.leaves())) == 4
    with pytest.raises(AssertionError, match="in the middle"):
        parse_ktap("KTAP version 1\n1..1\n    ok 1 plain\n")


def test_sources() -> None:
    assert CASES, f"there is no KUnit suite in {SOURCES}"
    empty = [(module, suite) for module, suites in SUITES.items()
             for suite, cases in (suites or {"no suite": []}).items() if not cases]
    assert not empty, f"these have no cases: {empty}"
    names = [suite for suites in SUITES.values() for suite in suites]
    assert len(names) == len(set(names)), f"two suites have the same name: {sorted(names)}"


@pytest.mark.parametrize("module", SUITES)
def test_module(hosts: Hosts, kernel: str, module: str, capsys: pytest.CaptureFixture[str],
                record_property: Callable[[str, object], None]) -> None:
    """The module loads, runs what its source says, and its kernel has no complaint."""
    run = run_module(hosts, module)
    count = 0
    for suite, outcome in run.suites.items():
        assert [part.name for part in outcome.parts] == SUITES[module][suite]
        count += len(list(outcome.leaves()))
    assert count > 0
    record_property("kunit_results", count)
    with capsys.disabled():
        print(f" {module}: {count} results in {run.seconds:.1f} s", end=" ")


@pytest.mark.parametrize(("module", "suite", "case"), CASES,
                         ids=[f"{suite}-{case}" for _, suite, case in CASES])
def test_case(hosts: Hosts, kernel: str, module: str, suite: str, case: str) -> None:
    run = run_module(hosts, module)
    outcomes = [part for part in run.suites[suite].parts if part.name == case]
    assert len(outcomes) == 1, f"{suite}/{case} has {len(outcomes)} results"
    if problems := outcomes[0].problems(suite):
        pytest.fail("\n".join(problems), pytrace=False)
