# SPDX-License-Identifier: GPL-2.0-only
"""One QEMU process: its command line, its monitor, and which accelerator works here."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import kernels

BINARY = "qemu-system-x86_64"
# A kernel under a KVM that works reports within a second or two.
TRIAL_LIMIT = 8.0


class QemuError(Exception):
    """QEMU could not be started, ended, or refused a monitor command."""


_running: set[subprocess.Popen[bytes]] = set()


@atexit.register
def _kill_all() -> None:
    for process in list(_running):
        process.kill()


def spawn(args: Sequence[str], log: Path, pass_fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start QEMU so that it cannot outlive us, however we end.

    The kernel kills it when the thread that started it ends, so hosts are
    started from the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("virtual hosts must be started from the main thread")
    command = ["setpriv", "--pdeathsig", "KILL", *args]
    with log.open("ab") as file:
        file.write((" ".join(args) + "\n").encode())
        file.flush()
        # A session of its own: Ctrl-C in the terminal is for the driver, which
        # then ends the hosts in order.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            pass_fds=pass_fds, start_new_session=True)
    _running.add(process)
    return process


def binary() -> str:
    found = shutil.which(BINARY)
    if found is None:
        raise QemuError(f"{BINARY} is not installed: run scripts/setup")
    return found


class Qemu:
    """A running QEMU and its monitor (QMP)."""

    def __init__(self, args: Sequence[str], log: Path, pass_fds: Sequence[int] = ()) -> None:
        self.log = log
        ours, theirs = socket.socketpair()
        try:
            monitor = ["-chardev", f"socket,id=qmp,fd={theirs.fileno()}",
                       "-mon", "chardev=qmp,mode=control"]
            self.process = spawn([binary(), *args, *monitor], log,
                                 [*pass_fds, theirs.fileno()])
        finally:
            theirs.close()
        self._socket = ours
        self._buffer = b""
        self._lock = threading.Lock()
        self._negotiated = False
        self.events: deque[dict[str, Any]] = deque(maxlen=256)

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            self._socket.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                data = self._socket.recv(65536)
            except TimeoutError:
                raise QemuError("QEMU's monitor does not answer") from None
            if not data:
                raise QemuError(f"QEMU has ended: {self.last_words()}")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def qmp(self, command: str, arguments: dict[str, Any] | None = None,
            timeout: float = 30) -> Any:
        deadline = time.monotonic() + timeout
        with self._lock:
            if not self._negotiated:
                self._receive(deadline)  # the greeting
                self._negotiated = True
                self._command("qmp_capabilities", {}, deadline)
            return self._command(command, arguments or {}, deadline)

    def _command(self, command: str, arguments: dict[str, Any], deadline: float) -> Any:
        request = {"execute": command, "arguments": arguments}
        try:
            self._socket.sendall(json.dumps(request).encode())
        except OSError:
            raise QemuError(f"QEMU has ended: {self.last_words()}") from None
        while True:
            message = self._receive(deadline)
            if "return" in message:
                return message["return"]
            if "error" in message:
                raise QemuError(f"QEMU refused {command}: {message['error'].get('desc')}")
            self.events.append(message)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def ended_well(self) -> bool:
        """It has ended, and neither by a signal nor with an error."""
        try:
            return self.process.wait(timeout=30) == 0
        except subprocess.TimeoutExpired:
            return False

    def last_words(self) -> str:
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        # The first line is the command.
        return " | ".join(lines[1:][-5:]) or f"exit status {self.process.poll()}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=30)
        _running.discard(self.process)
        self._socket.close()


# -- accelerator -----------------------------------------------------------


def accelerator(kernel: kernels.Kernel) -> str:
    """`kvm` where a kernel was seen to boot with it, else `tcg`. ACCEL overrides."""
    override = os.environ.get("ACCEL")
    if override:
        if override not in ("kvm", "tcg"):
            raise QemuError(f"ACCEL={override} is not known: use kvm or tcg")
        return override
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    version = subprocess.run([binary(), "--version"], check=True, capture_output=True,
                             timeout=30).stdout
    identity = "\n".join([*os.uname()[2:], version.decode(), _cpu_model()])
    key = hashlib.sha256(identity.encode()).hexdigest()[:16]
    verdict = kernels.cache_root() / "vm" / f"accel-{key}"
    if verdict.exists():
        return verdict.read_text().split()[0]
    result = "kvm" if trial(kernel, "kvm", TRIAL_LIMIT) else "tcg"
    verdict.parent.mkdir(parents=True, exist_ok=True)
    draft = verdict.with_suffix(f".{os.getpid()}")
    draft.write_text(f"{result}\n{identity}\n")
    draft.replace(verdict)
    return result


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line
    return ""


def trial(kernel: kernels.Kernel, accel: str, limit: float) -> bool:
    """Whether the kernel reaches user space with this accelerator, within the limit."""
    with tempfile.TemporaryDirectory(prefix="rail-trial-") as directory:
        serial = Path(directory) / "serial"
        process = spawn([
            binary(), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-machine", "q35", "-accel", accel, "-cpu", "max", "-smp", "2", "-m", "512",
            "-kernel", str(kernels.boot_image(kernel)), "-initrd", str(kernels.initramfs(kernel)),
            "-append", "console=ttyS0 rail.trial panic=-1", "-serial", f"file:{serial}",
        ], Path(directory) / "log")
        deadline = time.monotonic() + limit
        try:
            while time.monotonic() < deadline:
                if serial.exists() and b"rail-trial-ok" in serial.read_bytes():
                    return True
                if process.poll() is not None:
                    return False
                time.sleep(0.05)
            return False
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=30)
            _running.discard(process)
