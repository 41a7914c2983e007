# SPDX-License-Identifier: GPL-2.0-only
"""Hosts for tests: booted when asked for, used again while they are clean, judged at the end."""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import kernels
from .agent import CommandFailed, HostDied, HostTimeout
from .host import Cluster, HostSpec, remove_dead

OUTPUT = kernels.TOP / "build" / "vm"
_numbers = itertools.count()


class Pool:
    """The hosts of one module of tests.

    At most one set of hosts stays up between tests: memory and CPUs are few.
    """

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self.faults: list[str] = []  # found when hosts were given up
        self.notes: list[str] = []
        self._test = ""
        self._allowed: list[re.Pattern[str]] = []
        self._idle: tuple[Any, Cluster] | None = None
        self._used: list[tuple[Any, Cluster]] = []
        remove_dead(OUTPUT / "live", "")

    def begin_test(self, test: str, allowed: Sequence[str] = ()) -> None:
        self._test = test
        self._allowed = [re.compile(pattern) for pattern in allowed]
        shutil.rmtree(failure_dir(test), ignore_errors=True)

    def get(self, count: int, links: int | Sequence[tuple[int, int]],
            fresh: bool = False, **options: Any) -> Cluster:
        options.setdefault("kernel", self.kernel)
        specs = HostSpec.several(count, **options)
        shape = (tuple(specs), links if isinstance(links, int) else tuple(links))
        cluster = None
        if self._idle is not None:
            if self._idle[0] == shape and not fresh:
                cluster, self._idle = self._idle[1], None
            else:
                self._retire()
        if cluster is None:
            cluster = self._boot(specs, links)
        self._used.append((shape, cluster))
        cluster.begin_test(self._test)
        return cluster

    def _boot(self, specs: Sequence[HostSpec], links: int | Sequence[tuple[int, int]]) -> Cluster:
        log_dir = OUTPUT / "live" / f"{os.getpid()}-{next(_numbers)}"
        cluster = Cluster(specs, links, log_dir)
        try:
            cluster.boot()
        except BaseException:
            cluster.keep_logs(failure_dir(self._test))
            shutil.rmtree(log_dir, ignore_errors=True)
            raise
        return cluster

    def findings(self, allowed: bool = True) -> str:
        """What the kernels of this test's hosts have complained about."""
        return "".join(self._findings(cluster, self._allowed if allowed else [])
                       for _, cluster in self._used)

    @staticmethod
    def _findings(cluster: Cluster, allowed: Sequence[re.Pattern[str]]) -> str:
        return "".join(f"{host.name} ({host.kernel.name}): {finding.line}\n{finding}\n\n"
                       for host, finding in cluster.findings(allowed))

    def end_test(self, failed: bool) -> str:
        """Keep the logs of a failure; keep the hosts for the next test if they are as new.

        Returns what the kernels have complained about while the hosts were reset.
        """
        used, self._used = self._used, []
        late = ""
        for shape, cluster in used:
            if failed:
                cluster.keep_logs(failure_dir(self._test))
                self._end(cluster)
                continue
            reason = cluster.reset()
            found = self._findings(cluster, self._allowed)
            if found:
                late += found
                cluster.keep_logs(failure_dir(self._test))
                self._end(cluster)
                continue
            cluster.judged()
            if reason:
                self.notes.append(f"{self._test}: hosts not used again: {reason}")
                self._give_up(cluster)
            elif self._idle is not None:
                self._give_up(cluster)
            else:
                self._idle = (shape, cluster)
        return late

    def close(self) -> None:
        for entry in self._used:
            self._end(entry[1])
        self._used = []
        self._retire()

    def _retire(self) -> None:
        if self._idle is not None:
            cluster = self._idle[1]
            self._idle = None
            self._give_up(cluster)

    def _give_up(self, cluster: Cluster) -> None:
        """End hosts that have passed their tests, after a last look at them."""
        faults = []
        try:
            faults = [f"{host.name} ({host.kernel.name}) has leaked memory:\n{text}"
                      for host, text in cluster.leaks()]
            found = self._findings(cluster, [])
            if found and not faults:  # a leak is in the kernel log too
                faults.append(f"a kernel has complained after the tests:\n{found}")
        except (CommandFailed, HostDied, HostTimeout, OSError) as error:
            faults.append(f"could not look for leaked memory: {error}")
        if faults:
            target = failure_dir(cluster.tests[-1] + "-after")
            cluster.keep_logs(target)
            self.faults += [f"{fault}\nThe hosts were used by: {', '.join(cluster.tests)}\n"
                            f"logs: {target}" for fault in faults]
        self._end(cluster)

    @staticmethod
    def _end(cluster: Cluster) -> None:
        cluster.shutdown()
        shutil.rmtree(cluster.log_dir, ignore_errors=True)


def failure_dir(test: str) -> Path:
    """Where the logs of a failed test are kept."""
    return OUTPUT / re.sub(r"[^\w.-]+", "_", test).strip("_")
