# SPDX-License-Identifier: GPL-2.0-only
"""The driver's end of the agent: commands, processes, the live kernel log, file watches."""

from __future__ import annotations

import itertools
import marshal
import re
import shlex
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHUNK = 1 << 16
SEND_LIMIT = 30
SHOWN = 4000  # of a command's output, what the transcript has


class HostDied(Exception):
    """The host, or the agent in it, has ended."""


class HostTimeout(Exception):
    """Something in a host did not happen in time."""


class CommandFailed(Exception):
    """A command ended with a status other than 0."""


@dataclass(frozen=True)
class LogLine:
    """One record of the kernel log."""

    seq: int
    time: float
    level: int
    text: str

    def __str__(self) -> str:
        return f"[{self.time:12.6f}] {self.text}"


@dataclass(frozen=True)
class Result:
    command: str
    status: int
    stdout: str
    stderr: str


_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")


def parse_record(record: bytes) -> list[LogLine]:
    """A record of /dev/kmsg; one with line breaks in it gives several lines."""
    head, _, body = record.decode("utf-8", "replace").partition(";")
    fields = head.split(",")
    text = body.split("\n", 1)[0]  # what follows are KEY=value pairs
    text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    return [LogLine(int(fields[1]), int(fields[2]) / 1e6, int(fields[0]) & 7, line)
            for line in text.split("\n")]


class Transcript:
    """What was asked of a host and what came of it, kept for a failed test."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()
        self._start = time.monotonic()

    def write(self, text: str) -> None:
        stamp = f"{time.monotonic() - self._start:9.3f}  "
        lines = text.rstrip("\n").replace("\n", "\n" + " " * len(stamp))
        with self._lock:
            if not self._file.closed:
                self._file.write(f"{stamp}{lines}\n")
                self._file.flush()

    def close(self) -> None:
        with self._lock:
            self._file.close()


class Process:
    """A command in a host, running or ended."""

    def __init__(self, agent: Agent, cid: int, command: str) -> None:
        self._agent = agent
        self._cid = cid
        self.command = command
        self.pid = 0
        self._status: int | None = None
        self._out = {1: bytearray(), 2: bytearray()}

    @property
    def stdout(self) -> str:
        with self._agent.changed:
            return self._out[1].decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        with self._agent.changed:
            return self._out[2].decode("utf-8", "replace")

    def poll(self) -> int | None:
        """The exit status (negative: the signal), or None while it runs."""
        with self._agent.changed:
            return self._status

    def result(self) -> Result:
        status = self.poll()
        assert status is not None
        return Result(self.command, status, self.stdout, self.stderr)

    def wait(self, timeout: float = 30, check: bool = False) -> Result:
        """Wait for its end; when that does not come in time, kill it and say where it hung."""
        __tracebackhide__ = True
        try:
            self._agent.wait_for(lambda: self._status is not None, timeout,
                                 f"the end of: {self.command}")
        except HostTimeout as error:
            self._agent.log(f"timed out: {self.command}")
            where = self._hang_report()
            try:
                self.kill()
            except HostTimeout:
                where += "\nit could not be killed either"
            raise HostTimeout(f"{error}\n{where}{self._tail()}") from None
        result = self.result()
        shown = result.stdout + result.stderr
        if len(shown) > SHOWN:
            shown = f"{shown[:SHOWN]}... ({len(shown)} characters)"
        self._agent.log(f"[{self.pid}] status {result.status}\n{shown}")
        if check and result.status != 0:
            raise CommandFailed(
                f"{self._agent.name}: status {result.status} from: {self.command}{self._tail()}")
        return result

    def wait_output(self, pattern: str, timeout: float = 30, stream: int = 1) -> re.Match[str]:
        """Wait until its output so far matches."""
        regex = re.compile(pattern, re.MULTILINE)

        def match() -> re.Match[str] | None:
            return regex.search(self._out[stream].decode("utf-8", "replace"))

        self._agent.wait_for(lambda: match() is not None or self._status is not None, timeout,
                             f"/{pattern}/ in the output of: {self.command}")
        with self._agent.changed:
            found = match()
        if found is None:
            raise CommandFailed(
                f"{self._agent.name}: ended with status {self._status} before /{pattern}/ was in "
                f"its output: {self.command}{self._tail()}")
        return found

    def kill(self, sig: int = signal.SIGKILL, wait: bool = True, timeout: float = 10) -> None:
        """Signal it and all that it started (its session)."""
        if self.poll() is not None:
            return
        self._agent.request("kill", cid=self._cid, sig=int(sig))
        if not wait:
            return
        self._agent.wait_for(lambda: self._status is not None, timeout,
                             f"the end of a killed process: {self.command}")
        # A shell ends at once; what it ran may have to wait for a device, with its files open.
        end = time.monotonic() + timeout * self._agent.factor
        while sig == signal.SIGKILL and self._agent.request("left", pid=self.pid):
            if time.monotonic() > end:
                raise HostTimeout(f"{self._agent.name}: killed, and not gone: {self.command}")
            time.sleep(0.05)

    def _hang_report(self) -> str:
        try:
            entries = self._agent.request("inspect", timeout=10, cid=self._cid)
        except (HostTimeout, HostDied) as error:
            return f"and where it hangs cannot be said: {error}"
        return "\n".join(f"  {pid} {state} {words}\n{stack}"
                         for pid, state, words, stack in entries)

    def _tail(self) -> str:
        parts = [(name, text[-4000:]) for name, text in
                 (("stdout", self.stdout), ("stderr", self.stderr)) if text]
        return "".join(f"\n--- {name}\n{text.rstrip()}" for name, text in parts)


class Agent:
    """The connection to one running guest. All waits end early when the guest dies."""

    def __init__(self, sock: socket.socket, name: str, factor: float,
                 transcript: Transcript, kernel_log: Path) -> None:
        self.name = name
        self.factor = factor
        self.changed = threading.Condition()
        self.kmsg: list[LogLine] = []
        self.hello: dict[str, Any] | None = None
        # The socket stays in blocking mode for the reader; only sending has a limit.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO,
                        struct.pack("ll", int(SEND_LIMIT * factor), 0))
        self._socket = sock
        self._transcript = transcript
        self._log_file = kernel_log.open("a", encoding="utf-8")
        self._ids = itertools.count(1)
        self._replies: dict[int, dict[str, Any]] = {}
        self._processes: dict[int, Process] = {}
        self._watched: dict[int, bytes | None] = {}
        self._dead = ""
        self._write_lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, name=f"agent-{name}", daemon=True)
        self._reader.start()

    def log(self, text: str) -> None:
        self._transcript.write(text)

    # -- the reader thread -------------------------------------------------

    def _read(self) -> None:
        stream = self._socket.makefile("rb")
        try:
            while True:
                head = stream.read(4)
                if len(head) < 4:
                    break
                size = int.from_bytes(head, "little")
                data = stream.read(size)
                if len(data) < size:
                    break
                with self.changed:
                    self._dispatch(marshal.loads(data))
                    self.changed.notify_all()
        except (OSError, ValueError):
            pass
        with self.changed:
            self._dead = self._dead or "its QEMU has ended"
            self._log_file.close()
            self.changed.notify_all()

    def _dispatch(self, message: dict[str, Any]) -> None:
        event = message["ev"]
        if event == "kmsg":
            for record in message["records"]:
                for line in parse_record(record):
                    self.kmsg.append(line)
                    self._log_file.write(f"{line}\n")
            self._log_file.flush()
        elif event == "out":
            process = self._processes.get(message["cid"])
            if process is not None:
                process._out[message["stream"]] += message["data"]
        elif event == "exit":
            process = self._processes.pop(message["cid"], None)
            if process is not None:
                process._status = message["status"]
        elif event == "reply":
            self._replies[message["id"]] = message
        elif event == "watch":
            if message["wid"] in self._watched:
                self._watched[message["wid"]] = message["content"]
        elif event == "hello":
            self.hello = message

    # -- waiting -------------------------------------------------------------

    def wait_for(self, condition: Callable[[], bool], timeout: float, what: str) -> None:
        """Wait until something that the guest tells of makes the condition true."""
        __tracebackhide__ = True
        scaled = timeout * self.factor
        deadline = time.monotonic() + scaled
        with self.changed:
            while not condition():
                if self._dead:
                    raise HostDied(f"{self.name} died ({self._dead}) while waiting for {what}")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise HostTimeout(f"{self.name}: waited {scaled:g} s for {what}")
                self.changed.wait(left)

    def request(self, op: str, timeout: float = 30, **arguments: Any) -> Any:
        mid = next(self._ids)
        data = marshal.dumps({"id": mid, "op": op, **arguments})
        try:
            with self._write_lock:
                self._socket.sendall(len(data).to_bytes(4, "little") + data)
        except BlockingIOError:
            # Part of the frame may be out, so the connection is of no more use.
            self.close("its agent took no more commands")
            raise HostTimeout(f"{self.name}: its agent takes no more commands ({op})") from None
        except OSError:
            raise HostDied(f"{self.name} is dead ({self._dead or 'its QEMU has ended'}): "
                           f"{op} not done") from None
        self.wait_for(lambda: mid in self._replies, timeout, f"the agent to {op}")
        with self.changed:
            reply = self._replies.pop(mid)
        if "error" in reply:
            raise OSError(f"{self.name}: {op}: {reply['error']}")
        return reply["result"]

    @property
    def dead(self) -> bool:
        with self.changed:
            return bool(self._dead)

    def close(self, why: str) -> None:
        with self.changed:
            self._dead = self._dead or why
            self.changed.notify_all()
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._reader.join(timeout=10)
        self._socket.close()

    # -- operations ------------------------------------------------------------

    def start(self, command: str | Sequence[str], *, cwd: str | None = None,
              env: Mapping[str, str] | None = None, data: bytes = b"") -> Process:
        if isinstance(command, str):
            argv, shown = ["/bin/sh", "-c", command], command
        else:
            argv, shown = [str(word) for word in command], shlex.join(map(str, command))
        if cwd is not None:
            argv = ["/bin/sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", cwd, *argv]
        cid = next(self._ids)
        process = Process(self, cid, shown)
        with self.changed:
            self._processes[cid] = process
        try:
            process.pid = self.request("spawn", cid=cid, argv=argv, env=dict(env or {}),
                                       data=data)
        except BaseException:
            with self.changed:
                self._processes.pop(cid, None)
            raise
        self.log(f"[{process.pid}] $ {shown}")
        return process

    def running(self) -> list[Process]:
        with self.changed:
            return list(self._processes.values())

    def sync(self, timeout: float = 30) -> None:
        """Return when all that the kernel has logged so far is here."""
        self.request("sync", timeout=timeout)

    def wait_log(self, pattern: str, since: int, timeout: float) -> LogLine:
        regex = re.compile(pattern)
        position = since
        found: list[LogLine] = []

        def look() -> bool:
            nonlocal position
            while position < len(self.kmsg):
                line = self.kmsg[position]
                position += 1
                if regex.search(line.text):
                    found.append(line)
                    return True
            return False

        self.wait_for(look, timeout, f"/{pattern}/ in the kernel log")
        return found[0]

    def wait_file(self, path: str, pattern: str | None, timeout: float) -> str:
        """Wait until the content of a file matches; None: until it is gone."""
        regex = re.compile(pattern, re.MULTILINE) if pattern is not None else None
        wid = next(self._ids)
        missing = object()
        with self.changed:
            self._watched[wid] = None
        seen: list[Any] = [missing]

        def look() -> bool:
            content = seen[0] = self._watched[wid]
            if regex is None or content is None:
                return regex is None and content is None
            return regex.search(content.decode("utf-8", "replace")) is not None

        what = f"/{pattern}/ in {path}" if pattern is not None else f"{path} to go away"
        try:
            self.request("watch", wid=wid, path=path)
            self.wait_for(look, timeout, what)
        except HostTimeout as error:
            last = seen[0]
            text = "not readable" if not isinstance(last, bytes) else repr(last[-500:].decode(
                "utf-8", "replace"))
            raise HostTimeout(f"{error}; last seen: {text}") from None
        finally:
            if not self.dead:
                self.request("unwatch", wid=wid)
            with self.changed:
                content = self._watched.pop(wid)
        return (content or b"").decode("utf-8", "replace")

    def put(self, path: str, data: bytes, mode: int) -> None:
        pieces = [data[i:i + CHUNK] for i in range(0, len(data), CHUNK)] or [b""]
        for number, piece in enumerate(pieces):
            self.request("put", path=path, data=piece, mode=mode, first=number == 0,
                         last=number == len(pieces) - 1)
        self.log(f"put {path} ({len(data)} bytes)")

    def get(self, path: str) -> bytes:
        parts: list[bytes] = []
        offset = 0
        end = False
        while not end:
            piece, end = self.request("get", path=path, offset=offset)
            parts.append(piece)
            offset += len(piece)
        self.log(f"get {path} ({offset} bytes)")
        return b"".join(parts)
