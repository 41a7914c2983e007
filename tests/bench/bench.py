#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-only
"""The benchmark: ours and its peers, case by case, in one run. Behind make bench.

A virtual host with one processor is client and server at once, over rxe on a dummy interface. Its
time is the number of instructions it executes, so that runs agree on any machine, however busy.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vm"))

from nfsrig import NfsServer  # noqa: E402
from railvm import Cluster, Host, HostSpec, kernels  # noqa: E402
from rnbdrig import Client, Server, mount_configfs, null_disk  # noqa: E402

KERNEL = "stock-6.1"
OUT = kernels.TOP / "build" / "bench"
DISK_MIB = 128
NQN = "nqn.2026-01.org.example:rail-bench"


@dataclass(frozen=True)
class Case:
    """One load. `ios` are of `size` KiB each, `depth` of them under way."""

    name: str
    mode: str
    size: int
    depth: int
    ios: int

    def fio(self, path: str, ios: int) -> list[str]:
        return ["fio", "--name=bench", f"--filename={path}", f"--rw={self.mode}",
                f"--bs={self.size}k", f"--iodepth={self.depth}", f"--number_ios={ios}",
                "--ioengine=libaio", "--direct=1", "--randseed=7174", "--allow_file_create=0",
                "--thread", "--norandommap", f"--size={DISK_MIB // 2}m", "--output-format=json",
                *(["--rwmixread=70"] if self.mode == "randrw" else [])]


def loads() -> list[Case]:
    cases = []
    for depth, ios in ((1, 3000), (16, 6000), (64, 6000)):
        for mode in ("randread", "randwrite"):
            cases.append(Case(f"4k {mode} qd{depth}", mode, 4, depth, ios))
    cases.append(Case("4k mixed 70/30 qd16", "randrw", 4, 16, 6000))
    for size, ios in ((64, 1000), (512, 250)):
        for mode in ("read", "write"):
            cases.append(Case(f"{size}k {mode} qd16", mode, size, 16, ios))
    return cases


METADATA = """
import os, sys, time
where, count = sys.argv[1], int(sys.argv[2])
names = [f"{where}/f{i}" for i in range(count)]
def create(name): os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o644))
def stat(name): os.stat(name)
for work, act in (("create", create), ("stat", stat), ("unlink", os.unlink)):
    if work == "stat":
        open("/proc/sys/vm/drop_caches", "w").write("2")
    start = time.monotonic()
    for name in names:
        act(name)
    print(work, count / (time.monotonic() - start))
"""


@dataclass(frozen=True)
class Result:
    case: str
    who: str
    value: float
    unit: str


class Run:
    """One boot, one contender: yields results."""

    def __init__(self, who: str, modules: str, scale: float, only: str) -> None:
        self.who = who
        self.modules = modules
        self.scale = scale
        self.only = only
        self.results: list[Result] = []

    def boot(self, work: Callable[[Host], None]) -> None:
        logs = Path(tempfile.mkdtemp(prefix="rail-bench-"))
        spec = HostSpec.several(1, kernel=KERNEL, modules=self.modules, deterministic=True,
                                cpus=1, mem=2048)
        cluster = Cluster(spec, 1, logs)
        try:
            cluster.boot()
            work(cluster[0])
            found = "".join(f"{finding}\n" for _, finding in cluster.findings([]))
            if found:
                raise SystemExit(f"{self.who}: the kernel has complained:\n{found}")
        finally:
            cluster.shutdown()
            shutil.rmtree(logs, ignore_errors=True)

    def note(self, case: str, value: float, unit: str) -> None:
        self.results.append(Result(case, self.who, value, unit))
        print(f"  {self.who:<24} {case:<34} {value:>12,.1f} {unit}", flush=True)

    def fio(self, host: Host, family: str, path: str) -> None:
        for case in loads():
            name = f"{family} {case.name}"
            if self.only and self.only not in name:
                continue
            count = max(int(case.ios * self.scale), 50)
            # The first round brings everything into memory.
            host.run(case.fio(path, 40), timeout=120)
            said = host.run(case.fio(path, count), timeout=600).stdout
            job: dict[str, Any] = json.loads(said[said.index("{"):])["jobs"][0]
            self.note(name, job["read"]["iops"] + job["write"]["iops"], "IOPS")


def nfs(run: Run) -> None:
    def work(host: Host) -> None:
        if run.modules == "in-tree":
            host.modprobe("rpcrdma")
        else:
            host.modprobe_rail("rpcrdma")
        server = NfsServer(host)
        server.start()
        mount = server.mount(host, "vers=4.2")
        host.run(f"dd if=/dev/urandom of={mount.where}/data bs=1M count={DISK_MIB // 2} conv=fsync",
                 timeout=300)
        run.fio(host, "nfs", f"{mount.where}/data")
        if not run.only or run.only in "nfs metadata":
            host.put("/tmp/metadata", METADATA)
            count = str(max(int(1000 * run.scale), 100))
            for line in host.run(["python3", "/tmp/metadata", mount.where, count],
                                 timeout=600).stdout.splitlines():
                name, value = line.split()
                run.note(f"nfs metadata {name}", float(value), "op/s")
        mount.umount()

    run.boot(work)


def disk(host: Host) -> str:
    mount_configfs(host)
    return null_disk(host, 0, DISK_MIB, blocksize=4096, irqmode=0, queue_mode=2)


def rnbd(family: str, rotate: bool) -> Callable[[Run], None]:
    def contend(run: Run) -> None:
        ours = run.modules != "in-tree"

        def work(host: Host) -> None:
            server = Server(host, ours=ours, rotate=rotate, search=None if ours else "/")
            name = disk(host)
            if ours:
                server.export("bench", name)
            client = Client(host, server, ours=ours)
            device = client.map("bench" if ours else name)
            run.fio(host, family, device.dev)
            device.unmap("normal")

        run.boot(work)

    return contend


def nvme(run: Run) -> None:
    def work(host: Host) -> None:
        name = disk(host)
        host.modprobe("nvmet-rdma")
        host.modprobe("nvme-rdma")
        base = "/sys/kernel/config/nvmet"
        host.run(f"""set -e
cd {base}
mkdir subsystems/{NQN}
echo 1 >subsystems/{NQN}/attr_allow_any_host
mkdir subsystems/{NQN}/namespaces/1
echo {name} >subsystems/{NQN}/namespaces/1/device_path
echo 1 >subsystems/{NQN}/namespaces/1/enable
mkdir ports/1
echo rdma >ports/1/addr_trtype
echo ipv4 >ports/1/addr_adrfam
echo {host.addr()} >ports/1/addr_traddr
echo 4420 >ports/1/addr_trsvcid
ln -s {base}/subsystems/{NQN} ports/1/subsystems/
""")
        host.run(f"exec 3<>/dev/nvme-fabrics; echo transport=rdma,traddr={host.addr()},"
                 f"trsvcid=4420,nqn={NQN},nr_io_queues=1,queue_size=128 >&3", timeout=120)
        device = host.run("for i in $(seq 100); do d=$(ls -d /sys/block/nvme[0-9]n1 2>/dev/null) && break;"
                          " sleep 0.1; done; basename $d").stdout.strip()
        run.fio(host, "block", f"/dev/{device}")

    run.boot(work)


def local(run: Run) -> None:
    def work(host: Host) -> None:
        run.fio(host, "block", disk(host))

    run.boot(work)


# Who contends, with which modules, and how. Ours come first, in each family.
CONTENDERS: dict[str, list[tuple[str, str, Callable[[Run], None]]]] = {
    "nfs": [("rail", "all", nfs), ("in-tree", "in-tree", nfs)],
    "block": [("rail", "all", rnbd("block", True)), ("mainline rnbd", "in-tree", rnbd("block", True)),
              ("nvme-rdma", "in-tree", nvme), ("local disk", "in-tree", local)],
    "fixed": [("rail", "all", rnbd("fixed", False)), ("mainline rnbd", "in-tree", rnbd("fixed", False))],
}


def table(results: dict[str, dict[str, Result]]) -> str:
    lines = []
    for case, by_who in results.items():
        ours = by_who.get("rail")
        if not ours:
            continue
        words = [f"{case:<34} {ours.value:>10,.0f} {ours.unit:<5}"]
        words += [f"{who} {other.value:,.0f} (x{ours.value / other.value:.2f})"
                  for who, other in by_who.items() if who != "rail"]
        lines.append("  ".join(words))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=list(CONTENDERS), help="nfs, block, fixed")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--who", default="", help="contenders whose name has this in it")
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of I/Os")
    args = parser.parse_args()
    kernel = kernels.find(KERNEL)
    subprocess.run(["make", "-C", kernels.TOP, "modules", f"KERNEL={KERNEL}", "RAIL_TESTS=1",
                    "RAIL_FAULTS=0"], check=True, stdout=subprocess.DEVNULL)
    assert kernels.build_dir(kernel, "all").is_dir()
    OUT.mkdir(parents=True, exist_ok=True)
    results: dict[str, dict[str, Result]] = {}
    for family in args.families:
        print(f"{family}:", flush=True)
        for who, modules, contend in CONTENDERS[family]:
            if args.who not in who:
                continue
            run = Run(who, modules, args.scale, args.only)
            contend(run)
            for result in run.results:
                results.setdefault(result.case, {})[who] = result
    rows = [{"case": case, "who": who, "value": result.value, "unit": result.unit,
             "ratio": {} if who != "rail" else
             {other: result.value / against.value for other, against in by_who.items()
              if other != "rail"}}
            for case, by_who in results.items() for who, result in by_who.items()]
    (OUT / "results.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
