# SPDX-License-Identifier: GPL-2.0-only
"""No memory while connections are set up: each allocation fails once, nothing is left behind.

Client and server are on one host, so each allocation of either side's set-up has its
turn. A script in the host goes through them: the n-th one fails, for n from 1 on, until
a connection comes up of which none failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from railvm import SOAK, Cluster, Host
from vtest import Pair

Hosts = Callable[..., Cluster]

# Bash, because it does all this without a single fork.
SCRIPT = r"""
debugfs=/sys/kernel/debug
client=$debugfs/rail_vtest/client/control
server=$debugfs/rail_vtest/server/control
say() { printf '%s' "$2" 2>/dev/null >"$1"; }

# The n-th allocation fails that rail_verbs' own switch counts.
arm_switch() { say $debugfs/rail/faults/fail_allocs "1@$(($1 - 1))"; }
fired_switch() { read -r left <$debugfs/rail/faults/fail_allocs; [ "${left%@*}" = 0 ]; }
disarm_switch() { say $debugfs/rail/faults/fail_allocs 0; }

# The n-th one fails that is made by, or below, a function of rail_verbs. The kernel's counter cannot
# be set: but it is known, and the next one it fails is that with the next multiple of the interval.
count=0
arm_kernel() {
    say $debugfs/$attr/interval $((count + $1))
    say $debugfs/$attr/times 1
    say $debugfs/$attr/probability 100
    # An interval of 1 is not counted.
    count=$((count + $1 > 1 ? count + $1 : 0))
}
fired_kernel() { read -r left <$debugfs/$attr/times; [ "$left" = 0 ]; }
disarm_kernel() { say $debugfs/$attr/probability 0; }

kind=$1 attr=$2 step=$3 path=$4 options=$5
n=0 failed=0 survived=0
while :; do
    n=$((n + step))
    arm_$kind $n
    say $client "connect $path $options"
    say $client "wait up 1" && up=1 || up=0
    fired_$kind && fired=1 || fired=0
    disarm_$kind
    say $client close
    say $client "wait conns 0"
    say $server "wait conns 0"
    [ $fired = 1 ] || break
    [ $up = 1 ] && survived=$((survived + 1)) || failed=$((failed + 1))
done
[ $up = 1 ] || { echo "failed without a failed allocation"; exit 1; }
echo "done n=$n failed=$failed survived=$survived"
"""

# As few objects as can be, all of them made anew each time, a CQ too.
OPTIONS = ("poll=direct conns=1 streams=1 sges=2 window=4 tags=1 chunks=1 mrs=1 mrmax=1 msg=64 "
           "mem=64 timeout=3000")
# What is allocated by the page.
PAGES = OPTIONS.replace("window=4", "window=64").replace("msg=64 mem=64", "msg=8192 mem=8192")


@pytest.fixture
def pair(hosts: Hosts) -> Iterator[Pair]:
    """Both modules on one host; at the end nothing is left behind, all works, all unloaded."""
    pair = Pair(hosts(1, fresh=True))
    pair.server.do("set poll=direct mrs=1 mrmax=1")
    # What is made once for all connections.
    works(pair)
    yield pair
    pair.gone()
    pair.sound()
    works(pair)
    pair.unload()


def works(pair: Pair) -> None:
    pair.connect(OPTIONS)
    pair.run("send=10 back=10 read=2 write=2 imm=2 imm0=2")
    pair.close()


def each_fails(pair: Pair, kind: str, attr: str, options: str, step: int = 1) -> int:
    """Returns how many set-ups failed."""
    host = pair.client.host
    host.put("/tmp/fail-each", SCRIPT)
    result = host.run(["/bin/bash", "/tmp/fail-each", kind, attr, str(step), pair.address(),
                       options], timeout=240)
    print(result.stdout)
    match = re.fullmatch(r"done n=\d+ failed=(\d+) survived=\d+\n", result.stdout)
    assert match, result
    return int(match[1])


@pytest.mark.kernels("stock-6.1", "test-7")
@pytest.mark.soak("test-7")
def test_allocations_of_rail_verbs(pair: Pair) -> None:
    """Those that rail_verbs itself makes, by its fault switch."""
    assert each_fails(pair, "switch", "", OPTIONS) > 10
    assert each_fails(pair, "switch", "", PAGES) > 10


def text_of(host: Host, function: str) -> tuple[int, int]:
    """Where a function's code is, from its first byte to the one after its last."""
    symbols = sorted((int(line[0], 16), line[2])
                     for line in map(str.split, host.read("/proc/kallsyms").splitlines()))
    start = next(address for address, name in symbols if name == function)
    return start, next(address for address, _ in symbols if address > start)


@pytest.mark.kernels("test-7")
# What kmemleak notes of an allocation is allocated in it, so that this fails too; it can do without.
@pytest.mark.allow_log(r"kmemleak: Cannot allocate a scan area")
@pytest.mark.parametrize("attr", ["failslab", pytest.param("fail_page_alloc", marks=pytest.mark.soak)])
def test_allocations_below_rail_verbs(pair: Pair, attr: str) -> None:
    """Those too that the kernel's RDMA core, CM and driver make when rail_verbs calls them, and
    those that its user makes when called by it."""
    host = pair.client.host
    start = int(host.read("/sys/module/rail_verbs/sections/.text"), 16)
    size = next(int(line.split()[1]) for line in host.read("/proc/modules").splitlines()
                if line.startswith("rail_verbs "))
    # rxe leaves the QP's responder stopped for ever if memory fails there, and says so: nothing
    # then drains that QP.
    spared, spared_end = text_of(host, "rxe_qp_from_attr")
    base = f"/sys/kernel/debug/{attr}"
    for name, value in (("require-start", hex(start)), ("require-end", hex(start + size)),
                        ("reject-start", hex(spared)), ("reject-end", hex(spared_end)),
                        ("stacktrace-depth", "32"), ("ignore-gfp-wait", "0"), ("verbose", "1")):
        host.write(f"{base}/{name}", value)
    if attr == "fail_page_alloc":
        host.write(f"{base}/min-order", "0")
    options = OPTIONS if attr == "failslab" else PAGES
    step = 1 if SOAK or attr == "fail_page_alloc" else 3
    assert each_fails(pair, "kernel", attr, options, step) > 10
