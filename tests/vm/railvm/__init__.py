# SPDX-License-Identifier: GPL-2.0-only
"""Virtual hosts on QEMU for tests and for people."""

import os

from .agent import CommandFailed, HostDied, HostTimeout, LogLine, Process, Result
from .host import Cluster, Host, HostSpec
from .kernels import KernelMissing
from .net import Link, Nic
from .qemu import QemuError

__all__ = [
    "Cluster", "CommandFailed", "Host", "HostDied", "HostSpec", "HostTimeout", "KernelMissing",
    "Link", "LogLine", "Nic", "Process", "QemuError", "Result", "SOAK",
]

# The big counts and long times.
SOAK = os.environ.get("SOAK", "0") != "0"
