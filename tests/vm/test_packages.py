# SPDX-License-Identifier: GPL-2.0-only
"""The modules that DKMS built from the package, where scripts/test-deb has left them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from railvm import Cluster, kernels

Hosts = Callable[..., Cluster]

pytestmark = pytest.mark.kernels("stock-6.1")


def test_modules_load(hosts: Hosts, kernel: str) -> None:
    """modprobe finds them in updates/, they load, and say the version of the package."""
    known = kernels.find(kernel)
    if not kernels.our_modules(known, "packages"):
        pytest.skip("no modules of packages: make check-deb leaves them in build/deb/modules")
    host, = hosts(1, modules="packages")
    version = (kernels.TOP / "VERSION").read_text().strip()
    for name in sorted(kernels.our_modules(known, "packages")):
        host.modprobe_rail(name)
        loaded = name.replace("-", "_")
        assert host.read(f"/sys/module/{loaded}/version").strip() == version
        signer = host.run(["modinfo", "-F", "signer", name]).stdout.strip()
        assert signer, f"{name} is not signed"
