# SPDX-License-Identifier: GPL-2.0-only
"""Links between hosts: names, addresses, and the faults that a link can have."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .qemu import QemuError

if TYPE_CHECKING:
    from .host import Host

MTU = 4200  # room for a 4096-byte RoCE payload and its headers
# Of each packet, what a capture keeps: all headers and the start of the payload.
SNAPLEN = 256
# Of each NIC's packets, between once and twice this many bytes are kept.
CAPTURE_SIZE = 32 << 20


def pairs(hosts: int, links: int | Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The two hosts that each link joins.

    A number stands for that many links between any two hosts; with one host
    it is that many dummy interfaces, on which rxe talks to itself.
    """
    if not isinstance(links, int):
        for a, b in links:
            if not (0 <= a < hosts and 0 <= b < hosts) or a == b:
                raise ValueError(f"a link cannot join hosts {a} and {b} of {hosts}")
        return list(links)
    if hosts == 1:
        return [(0, 0)] * links
    return [pair for _ in range(links) for pair in itertools.combinations(range(hosts), 2)]


@dataclass
class Nic:
    """One end of a link."""

    host: Host
    link: Link
    cut: bool = field(default=False, init=False)
    isolated: bool = field(default=False, init=False)  # by isolate(), in this run of QEMU
    treated: bool = field(default=False, init=False)  # by netem

    @property
    def dummy(self) -> bool:
        return len(self.link.ends) == 1

    @property
    def name(self) -> str:
        return f"link{self.link.index}"

    @property
    def rdma(self) -> str:
        """The name of its RDMA device."""
        return f"{self.host.spec.rdma}{self.link.index}"

    @property
    def mac(self) -> str:
        return f"52:54:00:{self.link.index:02x}:00:{self.host.index + 1:02x}"

    @property
    def ip4(self) -> str:
        return f"10.{9 + self.link.index}.0.{self.host.index + 1}"

    @property
    def ip6(self) -> str:
        return f"fd52:4149:4c00:{self.link.index:x}::{self.host.index + 1:x}"

    @property
    def peer(self) -> Nic:
        return next((nic for nic in self.link.ends if nic is not self), self)

    @property
    def needs_carrier(self) -> bool:
        """Its RDMA device would not outlive the loss of the carrier."""
        return self.host.spec.rdma == "rxe" and self.host.kernel.rxe_needs_carrier

    def isolate(self) -> None:
        """Drop, outside the guest, what it sends and what is sent to it: it does not see why."""
        self.cut = True
        if self.host.up and not self.isolated:
            sink, drop = f"sink-{self.name}", f"drop-{self.name}"
            self.host.qmp("chardev-add", id=sink, backend={"type": "null", "data": {}})
            self.host.qmp("object-add", **{"qom-type": "filter-redirector", "id": drop,
                                           "netdev": self.name, "queue": "all", "outdev": sink})
            self.isolated = True

    def set_carrier(self, up: bool) -> None:
        """Pull or plug the cable on this side: the guest sees its carrier change."""
        self.cut = not up
        if up and self.isolated:
            self.isolated = False
            self.host.qmp("object-del", id=f"drop-{self.name}")
            self.host.qmp("chardev-remove", id=f"sink-{self.name}")
        # A paused host is told when it goes on, one that is down when it boots.
        if self.host.up and not self.host.paused:
            self.host.qmp("set_link", name=self.name, up=up)

    def netem(self, what: str) -> None:
        """Treat what this host sends: "loss 5%", "delay 10ms 2ms", "duplicate 1%", ..."""
        self.treated = True
        self.host.run("modprobe sch_netem && "
                      f"tc qdisc replace dev {self.name} root netem limit 100000 {what}")

    def clear_netem(self) -> None:
        self.host.run(f"tc qdisc del dev {self.name} root 2>/dev/null || :")
        self.treated = False

    def rdma_del(self) -> None:
        """`rdma link delete`: the RDMA device goes away under its users."""
        self.host.run(f"rdma link delete {self.rdma}", timeout=60)

    def rdma_add(self) -> None:
        self.host.run(f"rdma link add {self.rdma} type {self.host.spec.rdma} "
                      f"netdev {self.name}")

    def unplug(self) -> None:
        """Remove the NIC from its bus, and wait until the RDMA device on it is gone too."""
        # The driver is bound to the virtio device, whose parent is the PCI one.
        self.host.run(f"echo 1 >$(readlink -f /sys/class/net/{self.name}/device/..)/remove",
                      timeout=60)
        self.host.wait_file(f"/sys/class/infiniband/{self.rdma}/node_type", None, timeout=60)

    def replug(self) -> None:
        """Find the NIC again and set it up as at boot."""
        self.host.run(f"echo 1 >/sys/bus/pci/rescan\n{self.setup_script()}", timeout=60)

    def setup_script(self) -> str:
        """Shell code for the guest that names the interface, gives it its addresses
        and puts the RDMA device on it."""
        if self.dummy:
            find = (f"modprobe dummy numdummies=0\n"
                    f"ip link add {self.name} mtu {MTU} address {self.mac} type dummy\n"
                    f"ip link set dev {self.name} multicast on\n")
        else:
            find = (f"for dev in /sys/class/net/*; do\n"
                    f"  read -r mac <$dev/address\n"
                    f"  [ $mac != {self.mac} ] || ip link set dev ${{dev##*/}} name {self.name}\n"
                    f"done\n")
        script = find + (
            f"echo 0 >/proc/sys/net/ipv6/conf/{self.name}/accept_dad\n"
            f"echo 0 >/proc/sys/net/ipv6/conf/{self.name}/accept_ra\n"
            f"ip -batch - <<END\n"
            f"addr add {self.ip4}/24 dev {self.name}\n"
            f"addr add {self.ip6}/64 dev {self.name} nodad\n"
            f"link set dev {self.name} up\n"
            f"END\n")
        if self.host.spec.rdma:
            script += f"rdma link add {self.rdma} type {self.host.spec.rdma} netdev {self.name}\n"
        return script

    # -- QEMU's side ---------------------------------------------------------

    def socket_path(self, run_dir: Path) -> Path:
        # Short: the address of a unix socket holds no more than 107 bytes.
        return run_dir / f"{self.link.index}.{self.host.index}"

    def qemu_args(self, run_dir: Path, slot: int) -> list[str]:
        ours = self.socket_path(run_dir)
        theirs = self.peer.socket_path(run_dir)
        ours.unlink(missing_ok=True)  # left over when the host was killed
        # rxe of 7.3 frees the packets of a QP that failed with interrupts off, which lockdep does
        # not like of those from a page pool. So none: big buffers that are not merged.
        buffers = "mrg_rxbuf=off," if self.host.kernel.instrumented else ""
        return [
            "-netdev", f"dgram,id={self.name},local.type=unix,local.path={ours},"
                       f"remote.type=unix,remote.path={theirs}",
            "-device", f"virtio-net-pci,netdev={self.name},id=nic-{self.name},mac={self.mac},"
                       f"{buffers}host_mtu={MTU},romfile=,addr={slot:#x}",
        ]


@dataclass
class Link:
    index: int
    ends: list[Nic] = field(default_factory=list)

    def cut(self) -> None:
        """Nothing gets through; neither side has a carrier, unless its rxe needs one."""
        for nic in self.ends:
            if nic.needs_carrier:
                nic.isolate()
            else:
                nic.set_carrier(False)

    def restore(self) -> None:
        for nic in self.ends:
            nic.set_carrier(True)

    def netem(self, what: str) -> None:
        """The same treatment in both directions."""
        for nic in self.ends:
            nic.netem(what)

    def clear_netem(self) -> None:
        for nic in self.ends:
            nic.clear_netem()


class Captures:
    """Packet captures of all NICs while a test runs; old packets give way to new ones."""

    def __init__(self, nics: Sequence[Nic]) -> None:
        self._nics = [nic for nic in nics if not nic.dummy]
        self._files: dict[int, list[tuple[int, Path]]] = {}
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, host: Host | None = None) -> None:
        """Begin to capture; of one host, go on after it was booted again."""
        if host is not None and self._thread is None:
            return
        with self._lock:
            for nic in self._nics:
                if nic.host.up and host in (None, nic.host):
                    self._open(nic)
        if self._thread is None and self._nics:
            self._stop.clear()
            self._thread = threading.Thread(target=self._rotate, name="captures", daemon=True)
            self._thread.start()

    def _open(self, nic: Nic) -> None:
        number = next(self._numbers)
        path = nic.host.log_dir / f"{nic.name}-{number}.pcap"
        nic.host.qemu.qmp("object-add", {
            "qom-type": "filter-dump", "id": f"dump{number}", "netdev": nic.name,
            "file": str(path), "maxlen": SNAPLEN})
        self._files.setdefault(id(nic), []).append((number, path))

    def _rotate(self) -> None:
        while not self._stop.wait(0.5):
            with self._lock:
                for nic in self._nics:
                    files = self._files.get(id(nic), [])
                    try:
                        if files and nic.host.up and _size(files[-1][1]) > CAPTURE_SIZE:
                            self._open(nic)
                            nic.host.qemu.qmp("object-del", {"id": f"dump{files[-2][0]}"})
                            for _, path in files[:-2]:
                                path.unlink(missing_ok=True)
                            del files[:-2]
                    except Exception:
                        # The host may end at any moment; its test will tell.
                        continue

    def stop(self) -> None:
        """End all captures and remove their files: keep them first if they matter."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None
        with self._lock:
            for nic in self._nics:
                files = self._files.pop(id(nic), [])
                if files and nic.host.up:
                    try:
                        nic.host.qemu.qmp("object-del", {"id": f"dump{files[-1][0]}"})
                    except QemuError:
                        pass  # it belonged to an earlier life of the host
                for _, path in files:
                    path.unlink(missing_ok=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
