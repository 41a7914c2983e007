# SPDX-License-Identifier: GPL-2.0-only
"""The virtual hosts themselves: what every other test here builds on."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from railvm import Cluster, CommandFailed, Host, HostDied, HostSpec, HostTimeout
from railvm import kernels, logs, net, qemu
from railvm.pool import OUTPUT, Pool, failure_dir

Hosts = Callable[..., Cluster]
HERE = Path(__file__).parent

pytestmark = [pytest.mark.kernels("stock-6.1", "test-7"), pytest.mark.soak("test-7")]
everyday = pytest.mark.kernels("stock-6.1")

# -- without a host ----------------------------------------------------------

SPLATS = [
    "WARNING: CPU: 0 PID: 1 at net/core/dev.c:100 netif_foo+0x1/0x2 [rail_verbs]",
    "WARNING: net/core/dev.c:100 at netif_foo+0x1/0x2, CPU#0: modprobe/100",
    "WARNING: possible circular locking dependency detected",
    "WARNING: possible recursive locking detected",
    "WARNING: possible irq lock inversion dependency detected",
    "WARNING: inconsistent lock state",
    "WARNING: suspicious RCU usage",
    "WARNING: bad unlock balance detected!",
    "WARNING: lock held when returning to user space!",
    "WARNING: held lock freed!",
    "INFO: possible recursive locking detected",
    "DEBUG_LOCKS_WARN_ON(1)",
    "BUG: KASAN: slab-use-after-free in foo+0x1/0x2 [rpcrdma]",
    "BUG: unable to handle page fault for address: ffff888000000000",
    "BUG: kernel NULL pointer dereference, address: 0000000000000000",
    "BUG: scheduling while atomic: swapper/0/0/0x00000002",
    "BUG: sleeping function called from invalid context at mm/slab.h:1",
    "BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 30s!",
    "BUG: Bad page state in process x  pfn:12345",
    "BUG: spinlock bad magic on CPU#0, x/1",
    "BUG kmalloc-32 (Not tainted): Redzone overwritten",
    "kernel BUG at lib/list_debug.c:30!",
    "Oops: 0002 [#1] PREEMPT SMP KASAN NOPTI",
    "Oops: general protection fault, probably for non-canonical address 0x6b: 0000 [#1] SMP",
    "general protection fault, probably for non-canonical address 0x6b6b: 0000 [#1] SMP",
    "invalid opcode: 0000 [#1] PREEMPT SMP",
    "divide error: 0000 [#1] SMP",
    "KASAN: null-ptr-deref in range [0x0000000000000000-0x0000000000000007]",
    "UBSAN: array-index-out-of-bounds in drivers/x.c:1:2",
    "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [modprobe:100]",
    "watchdog: Watchdog detected hard LOCKUP on cpu 0",
    "INFO: task modprobe:100 blocked for more than 20 seconds.",
    "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks: { P100 }",
    "rcu: INFO: rcu_preempt self-detected stall on CPU",
    "refcount_t: underflow; use-after-free.",
    "list_add corruption. next->prev should be prev (x), but was y. (next=z).",
    "list_del corruption, x->next is LIST_POISON1 (dead000000000100)",
    "DMA-API: virtio-pci 0000:00:03.0: device driver frees DMA memory with different size",
    "DMA-API: device driver has pending DMA allocations while released from device [count=1]",
    "ODEBUG: free active (active state 0) object type: timer_list hint: foo+0x0/0x1",
    "Kernel panic - not syncing: Fatal exception",
    "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "unregister_netdevice: waiting for link0 to become free. Usage count = 2",
    "slab error in kmem_cache_destroy(): Cache x: Objects remaining",
    "kmem_cache_destroy rail_x: Slab cache still has objects when called from y",
    "NETDEV WATCHDOG: link0 (virtio_net): transmit queue 0 timed out",
    "irq 11: nobody cared (try booting with the \"irqpoll\" option)",
    "rail-agent: kernel log records were lost",
]

ORDINARY = [
    "rail_verbs: loading out-of-tree module taints kernel.",
    "rail_verbs: module verification failed: signature and/or required key missing",
    "DMA-API: preallocated 65536 debug entries",
    "DMA-API: debugging enabled by kernel config",
    "kmemleak: Kernel memory leak detector initialized (mem pool available: 36998)",
    "kmemleak: Automatic memory scanning thread started",
    "ODEBUG: selftest passed",
    "rcu: Preemptible hierarchical RCU implementation.",
    "rcu: \tRCU lockdep checking is enabled.",
    "Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar",
    "ipv4: warning: something that is only said",
    "debug: DEBUG x",
    "FAULT_INJECTION: forcing a failure.",
    "Call Trace:",
    "nfs: server b not responding, still trying",
    "rdma_rxe: rxe_requester: an error without a splat",
]


@pytest.mark.parametrize("line", SPLATS)
def test_scan_finds(line: str) -> None:
    assert [found.line for found in logs.scan(["before", line, "after"])] == [line]


@pytest.mark.parametrize("line", ORDINARY)
def test_scan_passes_over(line: str) -> None:
    assert logs.scan(["before", line, "after"]) == []


def test_scan_takes_a_report_as_one() -> None:
    report = ["------------[ cut here ]------------", "refcount_t: addition on 0; use-after-free.",
              "WARNING: CPU: 0 PID: 1 at lib/refcount.c:25", "Call Trace:", " foo+0x1/0x2",
              "---[ end trace 0000000000000000 ]---"]
    other = ["BUG: KASAN: slab-out-of-bounds in bar", "Read of size 1"]
    first, second = logs.scan(["before", *report, "between", *other])
    assert first.context == report
    assert second.context == other


def test_scan_lets_through_only_what_is_allowed() -> None:
    log = ["WARNING: CPU: 0 PID: 1 at x.c:1 provoked+0x1/0x2", "Call Trace:",
           "BUG: KASAN: slab-use-after-free in other+0x1/0x2"]
    allowed = [re.compile(r"^WARNING: .* provoked\+")]
    assert [found.line for found in logs.scan(log, allowed)] == [log[2]]


def test_serial_lines_lose_their_stamp() -> None:
    data = b"[    1.234567] one\r\n[    1.3][   T12] two\r\n[ 1.4] "
    assert logs.serial_lines(data) == ["one", "two", ""]


def test_every_noise_entry_has_a_reason() -> None:
    for entry in logs.NOISE:
        assert len(entry.reason) > 20 and re.compile(entry.text) and re.compile(entry.kernels)


def test_pairs_of_hosts() -> None:
    assert net.pairs(1, 2) == [(0, 0), (0, 0)]
    assert net.pairs(2, 2) == [(0, 1), (0, 1)]
    assert net.pairs(3, 1) == [(0, 1), (0, 2), (1, 2)]
    assert net.pairs(3, [(0, 1), (2, 1)]) == [(0, 1), (2, 1)]
    for wrong in ([(0, 2)], [(1, 1)], [(-1, 0)]):
        with pytest.raises(ValueError):
            net.pairs(2, wrong)


def test_options_for_each_host() -> None:
    a, b = HostSpec.several(2, kernel="stock-6.1", modules=["test", "in-tree"])
    assert (a.kernel, a.modules, b.kernel, b.modules) == (
        "stock-6.1", "test", "stock-6.1", "in-tree")
    with pytest.raises(ValueError, match="for 3 hosts, not for 2"):
        HostSpec.several(2, kernel=["stock-6.1"] * 3)
    with pytest.raises(ValueError, match="modules='typo'"):
        HostSpec.several(1, kernel="stock-6.1", modules="typo")


def test_missing_kernel_says_what_to_run() -> None:
    with pytest.raises(kernels.KernelMissing, match="run scripts/kernel ensure no-such"):
        kernels.find("no-such")


@everyday
def test_accelerator_is_tried_within_a_limit(kernel: str) -> None:
    image = kernels.find(kernel)
    assert qemu.trial(image, "tcg", limit=60)
    assert not qemu.trial(image, "tcg", limit=0.3)
    assert not qemu.trial(image, "no-such-accelerator", limit=60)


def test_qemu_does_not_outlive_its_driver(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import pathlib, sys, time
        from railvm import qemu
        process = qemu.spawn(["sleep", "1000"], pathlib.Path(sys.argv[1]))
        print(process.pid, flush=True)
        time.sleep(1000)
    """)
    with subprocess.Popen([sys.executable, "-B", "-c", script, tmp_path / "log"],
                          cwd=HERE, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        child = int(driver.stdout.readline())
        assert _wait_until(lambda: "sleep" in _comm(child))
        driver.send_signal(signal.SIGKILL)
        assert _wait_until(lambda: not _comm(child))


def _comm(pid: int) -> str:
    """The name of a living process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return "" if stat.rpartition(")")[2].split()[0] == "Z" else stat.split("(")[1].split(")")[0]


def _wait_until(condition: Callable[[], bool], limit: float = 10) -> bool:
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


# -- hosts and links -----------------------------------------------------------


@everyday
def test_boots_in_time(hosts: Hosts) -> None:
    """In ten seconds, if the processors are ours; we may have to share them, with the tests on
    another kernel for one."""
    times = []
    for _ in range(3):
        a, = hosts(1, links=1, fresh=True)
        times.append(a.boot_seconds)
        share = max(1, os.getloadavg()[0] / (os.cpu_count() or 1))
        if times[-1] < 10 * a.factor * share:
            return
    pytest.fail(f"boots took {times} s")


def test_links_carry_packets_and_rdma(hosts: Hosts) -> None:
    a, b = hosts(2, links=2)
    for link in (0, 1):
        a.run(["ping", "-c1", "-W5", b.addr(link)])
        a.run(["ping", "-c1", "-W5", b.addr(link, v6=True)])
        # A full packet, whole: IP and ICMP headers take 28 bytes of the MTU.
        a.run(["ping", "-c1", "-W5", "-Mdo", f"-s{net.MTU - 28}", f"b-link{link}"])
        server = b.start(["rping", "-s", "-a", b.addr(link), "-C", "5"])
        a.run(f"until rping -c -a {b.addr(link)} -C 5; do sleep 0.1; done")
        server.wait(check=True)
    assert a.nic(1).peer.host is b
    assert "4096" in a.run(["ibv_devinfo", "-d", a.nic(0).rdma]).stdout.split("active_mtu:")[1]


def test_commands(hosts: Hosts) -> None:
    a, _ = hosts(2, links=2)
    result = a.run("echo out; echo err >&2; exit 3", check=False)
    assert (result.status, result.stdout, result.stderr) == (3, "out\n", "err\n")
    with pytest.raises(CommandFailed, match="status 3"):
        a.run("exit 3")
    assert a.run("kill -9 $$", check=False).status == -9
    assert a.run(["printf", "%s|", "a b", "$HOME", ""]).stdout == "a b|$HOME||"
    assert a.run("cat; pwd; echo $X", data=b"in\n", cwd="/usr", env={"X": "y"}).stdout == (
        "in\n/usr\ny\n")
    assert a.run("hostname").stdout == "a\n"
    with pytest.raises(OSError, match="no-such-program"):
        a.run(["/no-such-program"])
    large = a.run("head -c 3000000 /dev/zero | tr '\\0' x").stdout
    assert large == "x" * 3000000


def test_timeout_ends_all_that_a_command_started(hosts: Hosts) -> None:
    a, _ = hosts(2, links=2)
    with pytest.raises(HostTimeout, match=r"(?s)sleep 1234.*sleep"):
        a.run("sleep 1234 & sleep 1234 & echo begun; wait", timeout=1)
    assert a.run("pgrep -c sleep", check=False).stdout == "0\n"


def test_background(hosts: Hosts) -> None:
    a, _ = hosts(2, links=2)
    process = a.start("echo first; read -r line; echo $line", data=b"second\n")
    process.wait_output("^first$")
    assert process.wait(check=True).stdout == "first\nsecond\n"
    process = a.start("echo on; sleep 1234")
    process.wait_output("on")
    assert process.poll() is None
    process.kill(signal.SIGTERM)
    assert process.poll() == -signal.SIGTERM
    with pytest.raises(CommandFailed, match="status 4"):
        a.start("exit 4").wait_output("never")


def test_files(hosts: Hosts, tmp_path: Path) -> None:
    a, _ = hosts(2, links=2)
    content = os.urandom(300_000)
    a.put("/tmp/data", content)
    assert a.get("/tmp/data") == content
    source = tmp_path / "script"
    source.write_text("#!/bin/sh\necho ran\n")
    source.chmod(0o755)
    a.put("/usr/bin/rail-script", source)
    assert a.run("rail-script").stdout == "ran\n"
    assert not Path("/usr/bin/rail-script").exists(), "the machine's own root was written to"
    with pytest.raises(OSError, match="FileNotFoundError"):
        a.get("/no/such/file")


def test_waiting_for_events(hosts: Hosts) -> None:
    a, _ = hosts(2, links=2)
    a.start("sleep 0.3; echo rail: event 1 >/dev/kmsg; echo rail: event 2 >/dev/kmsg")
    assert a.wait_log(r"rail: event (\d)").text == "rail: event 1"
    mark = a.log_mark()
    with pytest.raises(HostTimeout, match="event 3"):
        a.wait_log("rail: event 3", timeout=0.5)
    a.run("echo rail: event 4 >/dev/kmsg")
    assert [line.text for line in a.log_since(mark)] == ["rail: event 4"]

    a.start("sleep 0.3; echo one >/tmp/event; sleep 0.3; echo two >/tmp/event; sleep 0.3; "
            "rm /tmp/event")
    assert a.wait_file("/tmp/event", "^two$") == "two\n"
    a.wait_file("/tmp/event", None)
    with pytest.raises(HostTimeout, match="last seen: '0"):
        a.wait_file("/proc/sys/net/ipv6/conf/all/disable_ipv6", "2", timeout=0.5)
    a.wait_file("/sys/class/net/link0/carrier", "1")


# -- faults ----------------------------------------------------------------------


def _reaches(a: Host, address: str) -> bool:
    return a.run(["ping", "-c1", "-W1", address], check=False).status == 0


def test_link_cut_and_restored(hosts: Hosts) -> None:
    a, b = hosts(2, links=2)
    link = a.cluster.link(0)
    for _ in range(2):
        link.cut()
        for nic in link.ends:
            nic.host.wait_file("/sys/class/net/link0/carrier", "1" if nic.needs_carrier else "0")
        assert not _reaches(a, b.addr(0))
        assert _reaches(a, b.addr(1))
        link.restore()
        for host in (a, b):
            host.wait_file("/sys/class/net/link0/carrier", "1")
        a.run(["ping", "-c1", "-w10", b.addr(0)])
    a.nic(1).set_carrier(False)
    a.wait_file("/sys/class/net/link1/carrier", "0")
    assert b.read("/sys/class/net/link1/carrier") == "1"


def test_netem(hosts: Hosts) -> None:
    a, b = hosts(2, links=2)
    a.nic(0).netem("loss 100%")
    assert not _reaches(a, b.addr(0))
    assert _reaches(a, b.addr(1))
    a.nic(0).netem("delay 300ms")
    out = a.run(["ping", "-c3", "-W5", b.addr(0)]).stdout
    fastest = float(out.rpartition("= ")[2].split("/")[0])
    assert fastest >= 300
    a.cluster.link(0).clear_netem()
    assert "netem" not in a.run("tc qdisc show dev link0").stdout


def test_rdma_device_goes_and_comes(hosts: Hosts) -> None:
    a, _ = hosts(2, links=2)
    nic = a.nic(1)
    nic.rdma_del()
    assert a.state()["rdma"] == ["rxe0"]
    nic.rdma_add()
    a.wait_file(f"/sys/class/infiniband/{nic.rdma}/ports/1/state", "ACTIVE")


def test_nic_goes_and_comes(hosts: Hosts) -> None:
    a, b = hosts(2, links=2)
    a.nic(1).unplug()
    assert (a.state()["netdevs"], a.state()["rdma"]) == (["link0", "lo"], ["rxe0"])
    a.nic(1).replug()
    a.run(["ping", "-c1", "-w10", b.addr(1)])
    assert a.state()["rdma"] == ["rxe0", "rxe1"]


def test_pause(hosts: Hosts) -> None:
    a, b = hosts(2, links=2)
    b.pause()
    assert not _reaches(a, b.addr(0))
    # Many more packets than any queue on the way holds.
    a.run(["ping", "-c600", "-f", "-W1", "-w1", b.addr(0)], check=False)
    assert a.read("/sys/class/net/link0/carrier") == "1"
    a.cluster.link(1).cut()
    b.resume()
    a.run(["ping", "-c1", "-w10", b.addr(0)])
    b.wait_file("/sys/class/net/link1/carrier", "0")
    assert b.run("echo alive").stdout == "alive\n"


def test_kill_and_reboot(hosts: Hosts) -> None:
    a, b = hosts(2, links=2)
    b.run("touch /tmp/mark /usr/mark")
    waiting = b.start("sleep 1234")
    b.kill()
    assert not b.up
    with pytest.raises(HostDied):
        waiting.wait()
    with pytest.raises(HostDied):
        b.run("true")
    assert not _reaches(a, b.addr(0))
    b.reboot()
    assert b.run("ls /tmp/mark /usr/mark", check=False).stdout == ""
    a.run(["ping", "-c1", "-w10", b.addr(1)])


@everyday
def test_a_qemu_that_fails_is_started_again(hosts: Hosts) -> None:
    host, = hosts(1)
    host.end()
    host.power_on()
    host.qemu.process.send_signal(signal.SIGABRT)
    host.settle()
    host.finish()
    assert host.run("echo alive").stdout == "alive\n"


@everyday
def test_hosts_are_used_again_when_clean(kernel: str) -> None:
    pool = Pool(kernel)
    try:
        pool.begin_test("first")
        first = pool.get(1, 1)
        first[0].start("sleep 1234")
        first[0].run("modprobe dummy; modprobe sch_netem")
        assert not pool.end_test(failed=False)
        pool.begin_test("second")
        second = pool.get(1, 1)
        assert second is first, pool.notes
        assert second[0].run("pgrep -c sleep", check=False).stdout == "0\n"
        second[0].run("mount -t tmpfs tmpfs /mnt")
        assert not pool.end_test(failed=False)
        assert "other mounts" in pool.notes[0]
        assert not first[0].up
    finally:
        pool.close()
    assert not pool.faults


@everyday
def test_what_a_kernel_says_at_any_time_is_judged(kernel: str) -> None:
    said = "WARNING: CPU: 0 PID: 1 at late.c:1"
    pool = Pool(kernel)
    try:
        pool.begin_test("first")
        a, = pool.get(1, 0)
        a.run(f"echo '{said}' >/dev/kmsg")
        a.kill()
        assert said in pool.findings()
        a.reboot()
        assert said in pool.findings()
        a.cluster.judged()
        assert not pool.findings()
        a.run(f"(sleep 2; echo '{said}' >/dev/kmsg) &")
        a.pause()
        assert not pool.findings()
        a.resume()
        a.wait_log("late.c")
        assert said in pool.end_test(failed=False)
        assert not a.up
        pool.begin_test("second")
        b, = pool.get(1, 0)
        assert not pool.end_test(failed=False)
        b.run(f"echo '{said}' >/dev/kmsg")
    finally:
        pool.close()
        for name in ("first", "second-after"):
            shutil.rmtree(failure_dir(name), ignore_errors=True)
    assert len(pool.faults) == 1 and said in pool.faults[0]


@everyday
def test_own_modules_come_before_the_kernels(hosts: Hosts) -> None:
    a, = hosts(1, links=0, rdma="", modules="in-tree")
    a.modprobe_rail("rtrs_client")
    assert "rtrs_core" in a.state()["modules"]
    with pytest.raises(FileNotFoundError, match=r"run make KERNEL=stock-6\.1"):
        a.modprobe_rail("ib_core")
    with pytest.raises(FileNotFoundError, match=r"no_such\.ko was not in "):
        a.modprobe_rail("no_such")


# -- reports of the kernel ---------------------------------------------------------

# In this order: after some of them the kernel no longer looks for others.
PROVOKED = [
    ("leak", "instrumented", r"unreferenced object"),
    ("warn", "all", r"^WARNING: .*splat_warn"),
    ("rcu", "instrumented", r"^WARNING: suspicious RCU usage"),
    ("lockdep", "instrumented", r"possible circular locking dependency"),
    ("dma", "instrumented", r"^DMA-API: .*rail_splat"),
    ("odebug", "instrumented", r"^ODEBUG: free active .*timer_list"),
    ("refcount", "all", r"^refcount_t: addition on 0"),
    ("ubsan", "instrumented", r"^UBSAN: invalid-load"),
    ("atomic", "all", r"^BUG: scheduling while atomic: splat-atomic"),
    ("hung", "all", r"^INFO: task splat-hung:\d+ blocked for more than"),
    ("list", "all", r"^list_add corruption"),
    ("kasan", "instrumented", r"^BUG: KASAN: slab-out-of-bounds in splat_kasan"),
    ("null", "all", r"^BUG: kernel NULL pointer dereference|Oops"),
    ("gpf", "all", r"general protection fault"),
    ("opcode", "all", r"invalid opcode"),
    ("panic", "all", r"Kernel panic"),
]


def _splat_module(kernel: kernels.Kernel) -> Path:
    """The module that provokes reports, built for this kernel."""
    build = OUTPUT / f"splat-{kernel.release}"
    build.mkdir(parents=True, exist_ok=True)
    for source in (HERE / "splat").iterdir():
        shutil.copy2(source, build)
    subprocess.run(["make", "-C", kernel.directory / "build", f"M={build}", "modules"],
                   check=True, capture_output=True, timeout=300)
    return build / "rail_splat.ko"


def _provoke(host: Host, kind: str) -> None:
    host.write("/sys/module/rail_splat/parameters/provoke", kind)


# A NOTE for whoever adds a kind: no other test may have all reports allowed.
@pytest.mark.allow_log("")
def test_reports_are_found(hosts: Hosts) -> None:
    a, = hosts(1, links=0, fresh=True)
    a.run(["insmod", str(_splat_module(a.kernel))])
    a.write("/proc/sys/kernel/hung_task_timeout_secs", "2")
    missed = []
    for kind, where, pattern in PROVOKED:
        if where == "instrumented" and not a.kernel.instrumented:
            continue
        mark = a.log_mark()
        with contextlib.suppress(HostDied):
            _provoke(a, kind)
        if kind == "leak":
            if not re.search(pattern, a.kmemleak()):
                missed.append(kind)
        elif kind == "panic":
            assert _wait_until(lambda: not a.up, 30 * a.factor)
            missed += [] if _found(a, pattern) else [kind]
        else:
            try:
                a.wait_log(pattern, timeout=15, since=mark)
            except HostTimeout:
                missed.append(kind)
                continue
            missed += [] if _found(a, pattern) else [kind]
    assert missed == []


def _found(host: Host, pattern: str) -> bool:
    return any(re.search(pattern, line) for finding in host.findings()
               for line in finding.context)


@pytest.mark.kernels("test-7")
def test_leak_fails_the_module(kernel: str) -> None:
    pool = Pool(kernel)
    try:
        pool.begin_test("leaky")
        a, = pool.get(1, 0)
        a.run(["insmod", str(_splat_module(a.kernel))])
        _provoke(a, "leak")
        assert not pool.end_test(failed=False)
    finally:
        pool.close()
        shutil.rmtree(failure_dir("leaky-after"), ignore_errors=True)
    assert len(pool.faults) == 1 and "unreferenced object" in pool.faults[0]


@everyday
def test_a_report_fails_a_test_and_logs_are_kept(tmp_path: Path) -> None:
    """A whole run of pytest, in which the log alone makes the difference."""
    (tmp_path / "test_inner.py").write_text(textwrap.dedent("""
        import pytest

        def say(hosts):
            a, b = hosts(2, links=1)
            a.run(["ping", "-c1", b.addr()])
            b.run("echo 'WARNING: CPU: 0 PID: 1 at inner.c:1' >/dev/kmsg")

        @pytest.mark.allow_log("at inner.c:1$")
        def test_green(hosts):
            say(hosts)

        def test_red(hosts):
            say(hosts)
    """))
    environment = dict(os.environ, PYTHONPATH=str(HERE), PYTHONDONTWRITEBYTECODE="1")
    environment.pop("PYTEST_CURRENT_TEST", None)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", HERE / "pytest.ini", "-p", "conftest",
         "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path / "test_inner.py"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "1 failed, 1 passed" in run.stdout
    assert "a kernel has complained" in run.stdout
    kept = failure_dir("test_inner.py::test_red[stock-6.1]")
    try:
        names = {path.name for path in (kept / "b").iterdir()}
        assert {"kernel.log", "serial-1.log", "agent.log", "qemu.log"} <= names
        assert "inner.c:1" in (kept / "b" / "kernel.log").read_text()
        pcap, = (kept / "a").glob("link0-*.pcap")
        assert pcap.stat().st_size > 200
        assert not failure_dir("test_inner.py::test_green[stock-6.1]").exists()
    finally:
        shutil.rmtree(kept, ignore_errors=True)


# -- deterministic mode ----------------------------------------------------------------

# A span in which the guest waits for the machine (a file is opened over 9p, a
# program is started) cannot repeat. So the time is taken within one process,
# and after a first round that has brought everything into memory.
WORK = """
import hashlib, os, time
def work():
    digest = hashlib.sha256()
    reader, writer = os.pipe()
    for _ in range(500):
        digest.update(bytes(16384))
        os.write(writer, bytes(4096))
        os.read(reader, 4096)
work()
start = time.monotonic()
work()
print(time.monotonic() - start)
"""


@everyday
def test_deterministic_mode_repeats(hosts: Hosts) -> None:
    seconds, bandwidth = [], []
    for _ in range(2):
        a, = hosts(1, links=1, deterministic=True, fresh=True)
        a.put("/tmp/work", WORK)
        seconds.append(float(a.run(["python3", "/tmp/work"]).stdout))
        send = "ib_send_bw -d rxe0 -x 1 -n 1000 -s 4096 -e -F"
        server = a.start(send)
        out = a.run(f"until {send} 10.9.0.1 2>/dev/null; do sleep 0.5; done", timeout=60).stdout
        server.wait(check=True)
        row = re.search(r"^ 4096 +1000 +(\S+)", out, re.MULTILINE)
        assert row is not None
        bandwidth.append(float(row[1]))
    print(f"guest time: {seconds} s; peak bandwidth over rxe: {bandwidth} MB/s")
    for one, other in (seconds, bandwidth):
        assert abs(one - other) / one < 0.005
