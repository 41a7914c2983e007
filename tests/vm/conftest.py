# SPDX-License-Identifier: GPL-2.0-only
"""Fixtures: `hosts` boots virtual hosts; what their kernels complain about fails the test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

sys.dont_write_bytecode = True  # the checkout stays clean

from railvm import SOAK, Cluster, KernelMissing, kernels  # noqa: E402
from railvm.pool import Pool, failure_dir  # noqa: E402

DEFAULT_KERNELS = ("stock-6.1",)
# Of the longest a test may take, by how much longer on an instrumented kernel.
INSTRUMENTED_FACTOR = 4
COMPLAINT = "a kernel has complained"

_pool_key = pytest.StashKey[Pool]()
_failed_key = pytest.StashKey[bool]()


def _kernels_of(node: pytest.Item | pytest.Function) -> list[str]:
    marker = node.get_closest_marker("kernels")
    return list(marker.args) if marker else list(DEFAULT_KERNELS)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kernel" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("kernels")
        names = list(marker.args) if marker else list(DEFAULT_KERNELS)
        # Module scope makes pytest run all tests on one kernel before those on
        # the next, so that hosts can be used again.
        metafunc.parametrize("kernel", names, indirect=True, scope="module")


def _only_in_a_soak(item: pytest.Item, kernel: str | None) -> bool:
    """What `make check` has no time for."""
    marker = item.get_closest_marker("soak")
    if not marker or SOAK or os.environ.get("BRIEF", "0") == "0":
        return False
    # What boots nothing, or chooses for itself, is run with one of the kernels.
    return not marker.args or (kernel or os.environ.get("KERNEL")) in marker.args


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    only = os.environ.get("KERNEL")
    limit = float(config.getini("timeout") or 0) if config.pluginmanager.hasplugin("timeout") else 0
    keep, drop = [], []
    for item in items:
        callspec = getattr(item, "callspec", None)
        kernel = callspec.params.get("kernel") if callspec else None
        if (only and kernel and kernel != only) or _only_in_a_soak(item, kernel):
            drop.append(item)
            continue
        keep.append(item)
        if limit and kernel and kernel.startswith("test"):
            own = item.get_closest_marker("timeout")
            seconds = own.args[0] if own and own.args else limit
            item.add_marker(pytest.mark.timeout(seconds * INSTRUMENTED_FACTOR), append=False)
    if drop:
        config.hook.pytest_deselected(items=drop)
        items[:] = keep


@pytest.fixture(scope="module")
def kernel(request: pytest.FixtureRequest) -> str:
    """The name of the kernel that the test runs on."""
    name: str = request.param
    try:
        kernels.find(name)
    except KernelMissing as error:
        pytest.skip(str(error))
    return name


@pytest.fixture(scope="module")
def _pool(kernel: str) -> Iterator[Pool]:
    pool = Pool(kernel)
    yield pool
    pool.close()
    for note in pool.notes:
        print(note)
    if pool.faults:
        pytest.fail("\n\n".join(pool.faults), pytrace=False)


@pytest.fixture(scope="session")
def railctl_built() -> None:
    """railctl is in kernels.TOOLS."""
    subprocess.run([kernels.TOP / "scripts" / "tools", "build"], check=True, timeout=900,
                   stdout=subprocess.DEVNULL)


@pytest.fixture
def hosts(request: pytest.FixtureRequest, _pool: Pool) -> Iterator[Callable[..., Cluster]]:
    """A factory: `a, b = hosts(2, links=2)`.

    Options, each a value for all hosts or a list with one for each: kernel,
    cpus, mem, modules, rdma, cmdline, deterministic. fresh=True: hosts that no
    test has used before.
    """
    item = request.node
    item.stash[_pool_key] = _pool
    item.stash[_failed_key] = False
    _pool.begin_test(item.nodeid, [mark.args[0] for mark in item.iter_markers("allow_log")])

    def factory(count: int = 2, links: int | list[tuple[int, int]] = 1, *,
                fresh: bool = False, **options: object) -> Cluster:
        try:
            return _pool.get(count, links, fresh, **options)
        except KernelMissing as error:
            pytest.skip(str(error))

    yield factory
    late = _pool.end_test(item.stash[_failed_key])
    if late:
        pytest.fail(f"a kernel has complained while the hosts were reset\n\n{late}"
                    f"logs: {failure_dir(item.nodeid)}", pytrace=False)


@pytest.hookimpl(trylast=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Runs after a test that has passed so far, as a part of it."""
    pool = item.stash.get(_pool_key, None)
    found = pool.findings() if pool is not None else ""
    if found:
        pytest.fail(f"{COMPLAINT}\n\n{found}", pytrace=False)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    outcome = yield
    report = outcome.get_result()
    pool = item.stash.get(_pool_key, None)
    if pool is None or report.when == "teardown" or not report.failed:
        return
    item.stash[_failed_key] = True
    report.sections.append(("virtual hosts", f"logs: {failure_dir(item.nodeid)}"))
    if COMPLAINT not in str(report.longrepr):
        found = pool.findings(allowed=False)
        if found:
            report.sections.append(("kernel logs", found))
