# SPDX-License-Identifier: GPL-2.0-only
"""Virtual hosts, and the set of them that a test works with."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from . import kernels, logs, net
from .agent import Agent, CommandFailed, HostDied, HostTimeout, LogLine, Process, Result, Transcript
from .qemu import Qemu, QemuError, accelerator

BOOT_LIMIT = 60.0
# kmemleak passes over what was allocated less than 5 s before a scan.
KMEMLEAK_AGE = 5.5
FIRST_DISK_SLOT = 0x8
FIRST_NIC_SLOT = 0x10


@dataclass(frozen=True)
class HostSpec:
    """What the hosts of a set are made of."""

    kernel: str
    cpus: int = 2
    mem: int = 0  # MiB; 0: what the kernel needs
    modules: str = "test"  # see kernels.SOURCES
    rdma: str = "rxe"  # "rxe", "siw", or "" for none
    deterministic: bool = False
    cmdline: str = ""
    console: bool = False  # a shell on a socket, for a person
    # A Debian with systemd and the packages on a disk of its own, instead of this machine's root.
    # It finds eth0, ... and nothing set up on them.
    debian: bool = False
    data: int = 0  # MiB of a second disk, /dev/vdb, which such a host may have

    @classmethod
    def several(cls, count: int, **options: Any) -> list[HostSpec]:
        """Specs for so many hosts; an option that is a list has a value for each."""
        for name, value in options.items():
            if isinstance(value, (list, tuple)) and len(value) != count:
                raise ValueError(f"{name}={value!r} is for {len(value)} hosts, not for {count}")
        return [
            cls(**{name: value[index] if isinstance(value, (list, tuple)) else value
                   for name, value in options.items()})
            for index in range(count)
        ]

    def __post_init__(self) -> None:
        if self.modules not in kernels.SOURCES:
            raise ValueError(f"modules={self.modules!r}: use one of {kernels.SOURCES}")
        if self.rdma not in ("rxe", "siw", ""):
            raise ValueError(f"rdma={self.rdma!r}: use rxe, siw or an empty string")
        if self.debian and not kernels.IMAGE.exists():
            raise kernels.KernelMissing("no Debian to boot: scripts/test-deb --image makes it")


class Host:
    """A virtual host. It can be booted again after it was killed."""

    def __init__(self, index: int, spec: HostSpec, cluster: Cluster, run_dir: Path) -> None:
        self.name = host_name(index)
        self.index = index
        self.spec: HostSpec = spec
        self.cluster = cluster
        self.kernel = kernels.find(spec.kernel)
        self.nics: list[net.Nic] = []
        self.log_dir: Path = cluster.log_dir / self.name
        self.accel = "tcg" if spec.deterministic else accelerator(self.kernel)
        self.factor = self._factor()
        self.boot_seconds = 0.0
        self.lives = 0
        self.paused: bool = False
        self.baseline: dict[str, Any] = {}
        self.last_start = 0.0
        self._run_dir = run_dir
        self._qemu: Qemu | None = None
        self._agent: Agent | None = None
        self._start = 0  # of the test, in the kernel log
        self._judged = (0, 0)  # how much of the kernel log and of the serial log has been
        self._past: list[str] = []  # not judged yet, from lives that have ended
        self.log_dir.mkdir(parents=True, exist_ok=True)
        self.transcript = Transcript(self.log_dir / "agent.log")

    def __repr__(self) -> str:
        return f"<host {self.name} {self.kernel.name}>"

    def _factor(self) -> float:
        """By how much every timeout is longer than on stock kernels and TCG."""
        factor = float(os.environ.get("RAIL_TIMEOUT_FACTOR", "1"))
        if self.accel == "tcg":
            factor *= (4 if self.kernel.instrumented else 1)
            factor *= (3 if self.spec.deterministic else 1)
        return factor

    # -- life ------------------------------------------------------------------

    @property
    def mem(self) -> int:
        return self.spec.mem or (2048 if self.kernel.instrumented else 1024)

    @property
    def up(self) -> bool:
        return self._qemu is not None and self._qemu.alive and not self.agent.dead

    @property
    def agent(self) -> Agent:
        if self._agent is None:
            raise HostDied(f"{self.name} is not running")
        return self._agent

    @property
    def qemu(self) -> Qemu:
        if self._qemu is None:
            raise HostDied(f"{self.name} is not running")
        return self._qemu

    @property
    def serial_log(self) -> Path:
        return self.log_dir / f"serial-{self.lives}.log"

    @property
    def console_socket(self) -> Path:
        return self._run_dir / f"{self.name}.console"

    def power_on(self) -> None:
        """Start QEMU; `settle` waits until the host can be used."""
        assert self._qemu is None
        self.lives += 1
        self.last_start = time.monotonic()
        self._start = 0
        self._judged = (0, 0)
        initrd = self._run_dir / f"{self.name}.initrd"
        kernels.host_initramfs(self.kernel, {
            "RAIL_HOST": self.name,
            "RAIL_TOP": str(kernels.TOP),
            "RAIL_RELEASE": self.kernel.release,
            "RAIL_MODULES": str(kernels.module_tree(self.kernel, self.spec.modules)),
            "RAIL_PYTHON": kernels.PYTHON,
            "RAIL_AGENT": str(kernels.GUEST_AGENT),
        }, initrd, self.spec.debian)
        self._make_disks()
        # Its readers need no QEMU that came as far as to make it.
        self.serial_log.touch()
        ours, theirs = socket.socketpair()
        try:
            self._qemu = Qemu(self._qemu_args(initrd, theirs.fileno()),
                              self.log_dir / "qemu.log", [theirs.fileno()])
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._agent = Agent(ours, self.name, self.factor, self.transcript,
                            self.log_dir / "kernel.log")
        self.transcript.write(f"--- power on, {self.kernel.name}, {self.accel}")

    def _disks(self) -> list[Path]:
        """What is on them stays for as long as the set of hosts does."""
        if not self.spec.debian:
            return []
        names = ["root", "data"] if self.spec.data else ["root"]
        return [self._run_dir / f"{self.name}.{name}" for name in names]

    def _make_disks(self) -> None:
        for number, path in enumerate(self._disks()):
            if path.exists():
                continue
            if number:
                with path.open("wb") as file:
                    file.truncate(self.spec.data << 20)
            else:
                subprocess.run(["cp", "--sparse=always", "--reflink=auto", kernels.IMAGE, path],
                               check=True, timeout=120)

    def _qemu_args(self, initrd: Path, agent_fd: int) -> list[str]:
        spec = self.spec
        cmdline = (
            "console=ttyS0 loglevel=5 panic=-1 printk.devkmsg=on log_buf_len=4M nokaslr "
            "mitigations=off apparmor=0 random.trust_cpu=on no_timer_check "
            # A slow kernel on a busy machine is not one that hangs.
            f"watchdog_thresh={min(60, int(20 * self.factor))} "
            f"rcupdate.rcu_cpu_stall_timeout={min(300, int(60 * self.factor))} "
            f"{'net.ifnames=0 ' if spec.debian else ''}{spec.cmdline}").rstrip()
        args = [
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-name", f"guest={self.name}", "-machine", "q35", "-cpu", "max", "-m", str(self.mem),
            "-kernel", str(kernels.boot_image(self.kernel)), "-initrd", str(initrd),
            "-append", cmdline,
            "-chardev", f"file,id=serial,path={self.serial_log}", "-serial", "chardev:serial",
            "-device", "virtio-serial-pci,id=ports",
            "-chardev", f"socket,id=agent,fd={agent_fd}",
            "-device", "virtserialport,bus=ports.0,chardev=agent,name=rail.agent",
        ]
        if spec.deterministic:
            # Time is the number of instructions executed, and idle time is skipped.
            args += ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off",
                     "-smp", "1", "-rtc", "base=2026-01-01,clock=vm"]
        else:
            multi = ",thread=multi" if self.accel == "tcg" else ""
            args += ["-accel", self.accel + multi, "-smp", str(spec.cpus),
                     "-device", "virtio-rng-pci"]
        for position, disk in enumerate(self._disks()):
            args += ["-drive", f"if=none,id=disk{position},file={disk},format=raw,cache=unsafe",
                     "-device", f"virtio-blk-pci,drive=disk{position},"
                                f"addr={FIRST_DISK_SLOT + position:#x}"]
        shared = () if spec.debian else (("railroot", "/"), ("railtop", str(kernels.TOP)))
        for tag, path in shared:
            args += ["-fsdev", f"local,id={tag},path={path},security_model=none,readonly=on,"
                               "multidevs=remap",
                     "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
        if spec.console:
            self.console_socket.unlink(missing_ok=True)
            args += ["-chardev", f"socket,id=console,path={self.console_socket},server=on,"
                                 "wait=off",
                     "-device", "virtconsole,bus=ports.0,chardev=console"]
        for position, nic in enumerate(self.nics):
            if not nic.dummy:
                args += nic.qemu_args(self._run_dir, FIRST_NIC_SLOT + position)
        return args

    def _wait_for_agent(self) -> Agent:
        agent = self.agent
        try:
            agent.wait_for(lambda: agent.hello is not None, BOOT_LIMIT, "its agent to start")
        except (HostDied, HostTimeout) as error:
            tail = self.serial_log.read_text(errors="replace").splitlines()[-30:]
            raise type(error)(f"{error}\n--- end of its console\n" + "\n".join(tail)
                              + f"\n--- qemu: {self.qemu.last_words()}") from None
        return agent

    def settle(self) -> None:
        """Wait for the agent of a host that was powered on, and set the host up."""
        try:
            agent = self._wait_for_agent()
        except (HostDied, HostTimeout) as error:
            # Seen under TCG, both long before anything of ours is in the kernel: it stands still
            # while it starts its processors, and QEMU ends by an assertion of its own. A kernel
            # that panics ends QEMU in an orderly way.
            if isinstance(error, HostDied) and self.qemu.ended_well:
                raise
            self.transcript.write(f"--- once more, for {error}")
            self.end()
            self.power_on()
            agent = self._wait_for_agent()
        assert agent.hello is not None
        if agent.hello["release"] != self.kernel.release:
            raise QemuError(f"{self.name} runs {agent.hello['release']}, not "
                            f"{self.kernel.release}: run scripts/kernel ensure {self.kernel.name}")
        self._setup = agent.start(["/bin/sh", "-e"], data=self._setup_script().encode())

    def finish(self) -> None:
        """Wait for the end of the set-up that `settle` has begun."""
        self._setup.wait(timeout=BOOT_LIMIT, check=True)
        self.boot_seconds = time.monotonic() - self.last_start
        self.transcript.write(f"--- ready after {self.boot_seconds:.1f} s")
        for nic in self.nics:
            nic.isolated = False
            if nic.cut:
                nic.set_carrier(False)
        self.baseline = self.state()

    def _setup_script(self) -> str:
        if self.spec.debian:
            return ""
        hosts = [f"127.0.0.1 localhost {self.name}", "::1 localhost"]
        for link in self.cluster.links:
            hosts += [f"{nic.ip4} {nic.host.name}-{nic.name}" for nic in link.ends]
        script = "ip link set dev lo up\ncat >/etc/hosts <<END\n" + "\n".join(hosts) + "\nEND\n"
        # rxe alone may wait 50 s for the last packet of a QP to leave.
        hung = int(60 * self.factor)
        script += (f"echo {hung} >/proc/sys/kernel/hung_task_timeout_secs || :\n"
                   "echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad\n")
        if self.spec.rdma and self.nics:
            provider = {"rxe": "rdma_rxe", "siw": "siw"}[self.spec.rdma]
            # configfs is a module in Debian's kernels, so it could not be mounted before.
            script += f"modprobe -a {provider} rdma_ucm ib_uverbs\n"
            script += ("mountpoint -q /sys/kernel/config || "
                       "mount -t configfs configfs /sys/kernel/config\n")
        return script + "".join(nic.setup_script() for nic in self.nics)

    def kill(self) -> None:
        """The host is lost without a word, as when its power fails."""
        self.transcript.write("--- killed")
        self.end()

    def end(self) -> None:
        if self._qemu is not None:
            self._qemu.kill()
        if self._agent is not None:
            # What is still in the connection is read: the kernel's last words count.
            self._agent.close("it was killed")
            self._past += self._log_lines()
        self._qemu = None
        self._agent = None
        self.paused = False

    def shut_down(self, *command: str, timeout: float = 180) -> float:
        """Tell a host with systemd to go down, and wait until it has; how many seconds it took."""
        start = time.monotonic()
        self.agent.start(list(command or ("systemctl", "reboot")))
        try:
            # QEMU ends where a machine would begin anew.
            self.qemu.process.wait(timeout=timeout * self.factor)
        except subprocess.TimeoutExpired:
            tail = self.serial_log.read_text(errors="replace").splitlines()[-30:]
            raise HostTimeout(f"{self.name} has not gone down\n--- end of its console\n"
                              + "\n".join(tail)) from None
        self.end()
        return time.monotonic() - start

    def reboot(self) -> None:
        """A fresh boot: memory is lost, and all files written in the host that are on no disk."""
        self.end()
        self.power_on()
        self.settle()
        self.finish()
        self.cluster.captures.start(self)

    def pause(self) -> None:
        """The host stands still: it neither computes nor takes packets."""
        self.qmp("stop")
        self.paused = True
        # Else its peers' packets would wait in QEMU and block their senders.
        for nic in self.nics:
            if not nic.dummy and not nic.cut:
                self.qmp("set_link", name=nic.name, up=False)

    def resume(self) -> None:
        for nic in self.nics:
            if not nic.dummy and not nic.cut:
                self.qmp("set_link", name=nic.name, up=True)
        self.qmp("cont")
        self.paused = False

    def qmp(self, command: str, **arguments: Any) -> Any:
        self.transcript.write(f"qmp {command} {arguments}")
        return self.qemu.qmp(command, arguments, timeout=30 * self.factor)

    # -- commands, files, events -------------------------------------------------

    def run(self, command: str | Sequence[str], *, timeout: float = 30, check: bool = True,
            cwd: str | None = None, env: Mapping[str, str] | None = None,
            data: bytes = b"") -> Result:
        """Run a shell command, or a list of words, to its end.

        Raises CommandFailed on a status other than 0 unless check=False, and
        HostTimeout, with the kernel stacks of what hangs, when it takes too long.
        """
        __tracebackhide__ = True
        process = self.agent.start(command, cwd=cwd, env=env, data=data)
        return process.wait(timeout=timeout, check=check)

    def start(self, command: str | Sequence[str], *, cwd: str | None = None,
              env: Mapping[str, str] | None = None, data: bytes = b"") -> Process:
        """Run a command in the background; it is killed at the end of the test."""
        return self.agent.start(command, cwd=cwd, env=env, data=data)

    def put(self, path: str, content: bytes | str | Path, mode: int = 0o644) -> None:
        """Write a file in the host; a Path is a file of the machine to copy."""
        if isinstance(content, Path):
            mode, content = content.stat().st_mode & 0o777, content.read_bytes()
        self.agent.put(path, content.encode() if isinstance(content, str) else content, mode)

    def get(self, path: str) -> bytes:
        return self.agent.get(path)

    def read(self, path: str) -> str:
        """The content of a text file, without white space at its ends."""
        return self.agent.get(path).decode("utf-8", "replace").strip()

    def write(self, path: str, text: str) -> None:
        """Write to an attribute (sysfs, debugfs, procfs) in one write."""
        self.run(["/bin/sh", "-c", 'printf %s "$1" >"$2"', "sh", text, path])

    def log_mark(self) -> int:
        """A position in the kernel log, for `wait_log` and `log_since`."""
        self.agent.sync()
        return len(self.agent.kmsg)

    def wait_log(self, pattern: str, timeout: float = 30, since: int | None = None) -> LogLine:
        """Wait for a line of the kernel log; by default since the test's start."""
        start = self._start if since is None else since
        return self.agent.wait_log(pattern, start, timeout)

    def log_since(self, mark: int = 0) -> list[LogLine]:
        self.agent.sync()
        return self.agent.kmsg[mark:]

    def wait_file(self, path: str, pattern: str | None, timeout: float = 30) -> str:
        """Wait until a file's content matches; with None, until it is gone.

        A value that holds for less than 20 ms can be missed.
        """
        return self.agent.wait_file(path, pattern, timeout)

    def modprobe(self, name: str, *params: str, timeout: float = 60) -> None:
        self.run(["modprobe", name, *params], timeout=timeout)

    def modprobe_rail(self, name: str, *params: str, timeout: float = 60) -> None:
        """Load a module of ours with what it depends on, never its in-tree namesake."""
        wanted = re.sub("[-_]", "[-_]", name)
        build = kernels.build_dir(self.kernel, self.spec.modules)
        listed = self.run(["modprobe", "-D", name], check=False).stdout
        if not re.search(rf"/updates/{wanted}\.ko", listed):
            if self.kernel.name in kernels.KNOWN:
                how = f"make KERNEL={self.kernel.name}"
            else:
                how = "make"
            if self.spec.modules == "test":
                how += " RAIL_TESTS=1 RAIL_FAULTS=1"
            raise FileNotFoundError(
                f"{name}.ko was not in {build} when {self.name} booted: run {how}")
        self.modprobe(name, *params, timeout=timeout)

    def rmmod(self, *names: str, timeout: float = 60) -> None:
        self.run(["modprobe", "-r", *names], timeout=timeout)

    def addr(self, link: int = 0, v6: bool = False) -> str:
        nic = self.nic(link)
        return nic.ip6 if v6 else nic.ip4

    def nic(self, link: int) -> net.Nic:
        """Its end of a link, by the link's number."""
        for nic in self.nics:
            if nic.link.index == link:
                return nic
        raise IndexError(f"{self.name} has no end of link {link}")

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = self.agent.request("state")
        return state

    def clean_up(self) -> str:
        """Bring the host back to how it was after its boot; returns what is left over."""
        if self.spec.debian:
            return "files on its disk"
        for process in self.agent.running():
            process.kill()
        for nic in self.nics:
            if nic.treated:
                nic.clear_netem()
        now = self.state()
        ours = kernels.our_modules(self.kernel, self.spec.modules)
        loaded = [name for name in now["modules"]
                  if name in ours and name not in self.baseline["modules"]]
        if loaded:
            self.run(["modprobe", "-r", *loaded], timeout=60)
            now = self.state()
        for what in ("mounts", "netdevs", "rdma"):
            changed = set(now[what]) ^ set(self.baseline[what])
            if changed:
                return f"other {what}: {', '.join(sorted(changed))}"
        # What was killed may take a moment to be gone.
        deadline = time.monotonic() + 2 * self.factor
        while now["processes"] and time.monotonic() < deadline:
            time.sleep(0.05)
            now = self.state()
        strays = [words for _, words in now["processes"]]
        return f"processes: {', '.join(strays)}" if strays else ""

    # -- what the end of a test looks at ---------------------------------------------

    def begin_test(self, name: str) -> None:
        self.agent.sync()
        self._start = len(self.agent.kmsg)
        self.agent.request("mark", text=f"rail-test: {name}")
        self.transcript.write(f"=== {name}")

    def _log_lines(self) -> list[str]:
        """Of this life, what has not been judged: the kernel log, and of the serial
        console what the agent could no longer send."""
        assert self._agent is not None
        seen, offset = self._judged
        with self._agent.changed:
            lines = [line.text for line in self._agent.kmsg[seen:]]
            known = {line.text for line in self._agent.kmsg}
        with self.serial_log.open("rb") as file:
            file.seek(offset)
            serial = logs.serial_lines(file.read())
        return lines + [line for line in serial if line and line not in known]

    def findings(self, allowed: Sequence[re.Pattern[str]] = ()) -> list[logs.Finding]:
        """What the kernel has complained about and was not judged yet."""
        lines = list(self._past)
        if self._agent is not None:
            if self.up and not self.paused:
                try:
                    self._agent.sync()
                except (HostDied, HostTimeout):
                    pass  # the serial log has it
            lines += self._log_lines()
        return logs.scan(lines, [*allowed, *logs.noise_for(self.kernel.name)])

    def judged(self) -> None:
        """All that was logged so far is known to be in order."""
        self._past = []
        if self._agent is not None:
            self._judged = (len(self._agent.kmsg), self.serial_log.stat().st_size)

    @property
    def has_kmemleak(self) -> bool:
        agent = self._agent
        return agent is not None and agent.hello is not None and bool(agent.hello["kmemleak"])

    def kmemleak_begin(self) -> Process:
        """Start to look for leaked memory, without waiting for the outcome.

        An object is reported when it is old enough and two scans in a row find
        nothing that points to it.
        """
        return self.start(
            f"cd /sys/kernel/debug && sleep {KMEMLEAK_AGE} && echo scan >kmemleak && "
            "echo scan >kmemleak && cat kmemleak")

    def kmemleak(self) -> str:
        """The leaks since the last `kmemleak_clear`, as the kernel reports them."""
        return self.kmemleak_begin().wait(timeout=60, check=True).stdout

    def kmemleak_clear(self) -> None:
        self.write("/sys/kernel/debug/kmemleak", "clear")


class Cluster(Sequence[Host]):
    """Hosts with links between them; a sequence of its hosts."""

    def __init__(self, specs: Sequence[HostSpec], links: int | Sequence[tuple[int, int]],
                 log_dir: Path) -> None:
        if len(specs) > 1 and any(spec.deterministic for spec in specs):
            raise ValueError("deterministic mode is for one host: two have no common clock")
        joins = net.pairs(len(specs), links)
        self.log_dir = log_dir
        self.tests: list[str] = []
        self._run_dir = _run_dir()
        self.hosts = [Host(index, spec, self, self._run_dir) for index, spec in enumerate(specs)]
        self.links: list[net.Link] = []
        for index, pair in enumerate(joins):
            link = net.Link(index)
            for number in dict.fromkeys(pair):
                nic = net.Nic(self.hosts[number], link)
                link.ends.append(nic)
                self.hosts[number].nics.append(nic)
            self.links.append(link)
        self.captures = net.Captures([nic for host in self.hosts for nic in host.nics])

    @overload
    def __getitem__(self, index: int) -> Host: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Host]: ...

    def __getitem__(self, index: int | slice) -> Host | Sequence[Host]:
        return self.hosts[index]

    def __len__(self) -> int:
        return len(self.hosts)

    def __iter__(self) -> Iterator[Host]:
        return iter(self.hosts)

    def link(self, index: int) -> net.Link:
        return self.links[index]

    def boot(self) -> None:
        try:
            for host in self.hosts:
                host.power_on()
            for host in self.hosts:
                host.settle()
            for host in self.hosts:
                host.finish()
        except BaseException:
            self.shutdown()
            raise

    def shutdown(self) -> None:
        self.captures.stop()
        for host in self.hosts:
            host.end()
            host.transcript.close()
        shutil.rmtree(self._run_dir, ignore_errors=True)

    # -- around a test --------------------------------------------------------

    def begin_test(self, name: str) -> None:
        self.tests.append(name)
        for host in self.hosts:
            host.begin_test(name)
        self.captures.start()

    def findings(self, allowed: Sequence[re.Pattern[str]] = ()) -> list[tuple[Host, logs.Finding]]:
        return [(host, finding) for host in self.hosts for finding in host.findings(allowed)]

    def judged(self) -> None:
        for host in self.hosts:
            host.judged()

    def keep_logs(self, target: Path) -> None:
        """Copy what tells of a failure to a place where it stays."""
        shutil.copytree(self.log_dir, target, dirs_exist_ok=True)

    def reset(self) -> str:
        """Undo what a test has changed. Returns what could not be undone, or nothing."""
        self.captures.stop()
        for host in self.hosts:
            if not host.up:
                return f"{host.name} is down"
            if host.paused:
                host.resume()
        for link in self.links:
            if any(nic.cut for nic in link.ends):
                link.restore()
        try:
            for host in self.hosts:
                left = host.clean_up()
                if left:
                    return f"{host.name} is left with {left}"
        except (HostDied, HostTimeout, CommandFailed) as error:
            return str(error)
        return ""

    def leaks(self) -> list[tuple[Host, str]]:
        """Memory that the kernels with kmemleak have lost."""
        scans = [(host, host.kmemleak_begin()) for host in self.hosts
                 if host.up and not host.paused and host.has_kmemleak]
        results = [(host, scan.wait(timeout=60, check=True).stdout) for host, scan in scans]
        return [(host, text) for host, text in results if text.strip()]


def _run_dir() -> Path:
    """A directory for sockets; their paths may have no more than 107 bytes."""
    base = tempfile.gettempdir()
    if len(base) > 60:
        base = "/tmp"
    remove_dead(Path(base), "rail-vm-")
    return Path(tempfile.mkdtemp(prefix=f"rail-vm-{os.getpid()}-", dir=base))


def remove_dead(directory: Path, prefix: str) -> None:
    """Remove what processes that were killed have left in directories named after them."""
    for path in directory.glob(f"{prefix}[0-9]*-*"):
        pid = path.name.removeprefix(prefix).split("-")[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(path, ignore_errors=True)


def host_name(index: int) -> str:
    return chr(ord("a") + index) if index < 26 else f"host{index}"
