# SPDX-License-Identifier: GPL-2.0-only
"""A client of an NFS server that speaks RPC-over-RDMA byte by byte (peer/rpcrdma_peer.cc)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from peerprog import Program
from railvm import Host

MSG, NOMSG, MSGP, DONE, ERROR = range(5)
NFS = 100003
ACCEPTED = struct.pack(">4I", 1, 0, 0, 0)  # REPLY, MSG_ACCEPTED, verifier of no bytes
SUCCESS = ACCEPTED + struct.pack(">I", 0)


class Peer:
    """Runs scripts against a server; the answers are lines of words."""

    def __init__(self, host: Host, server: str, port: int = 20049) -> None:
        self.program = Program(host, "rpcrdma_peer")
        self.server = server
        self.port = port

    def run(self, *commands: str, priv: str = "", timeout: float = 60) -> list[list[str]]:
        """The answers to the commands, that to connecting included."""
        return self.program.answers(f"connect {self.server} {self.port} {priv}", *commands,
                                    "close", timeout=timeout)[:-1]


def words(*values: int) -> str:
    return struct.pack(f">{len(values)}I", *values).hex()


def seg(name: str, length: int, offset: int = 0) -> str:
    return f"{{{name}.key}}{words(length)}{{{name}.addr+{offset}}}"


def header(xid: int, proc: int = MSG, *, credit: int = 8, vers: int = 1,
           reads: Iterable[tuple[int, str]] = (), writes: Iterable[Sequence[str]] = (),
           reply: Sequence[str] | None = None) -> str:
    """A transport header: read segments with positions, write chunks of segments, reply chunk."""
    text = words(xid, vers, credit, proc)
    for position, segment in reads:
        text += words(1, position) + segment
    text += words(0)
    for chunk in writes:
        text += words(1, len(chunk)) + "".join(chunk)
    text += words(0)
    if reply is None:
        return text + words(0)
    return text + words(1, len(reply)) + "".join(reply)


def opaque(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def rpc(xid: int, body: bytes = b"", *, vers: int = 4, proc: int = 1) -> bytes:
    cred = struct.pack(">I", 0) + opaque(b"peer") + struct.pack(">3I", 0, 0, 0)
    return (struct.pack(">6I", xid, 0, 2, NFS, vers, proc) + struct.pack(">I", 1) + opaque(cred)
            + struct.pack(">2I", 0, 0) + body)


def null(xid: int) -> bytes:
    return rpc(xid, vers=3, proc=0)


def compound(xid: int, *ops: bytes) -> bytes:
    """NFSv4.0, which needs no session."""
    return rpc(xid, opaque(b"") + struct.pack(">2I", 0, len(ops)) + b"".join(ops))


ROOT = struct.pack(">I", 24)
ANONYMOUS = bytes(16)


def lookup(name: str) -> bytes:
    return struct.pack(">I", 15) + opaque(name.encode())


def read(offset: int, count: int) -> bytes:
    return struct.pack(">I", 25) + ANONYMOUS + struct.pack(">QI", offset, count)


def readdir() -> bytes:
    return struct.pack(">I", 26) + bytes(16) + struct.pack(">4I", 8000, 8000, 1, 0x10)


def readlink() -> bytes:
    return struct.pack(">I", 27)


def write_head(offset: int, count: int) -> bytes:
    """A WRITE up to its data."""
    return (struct.pack(">I", 38) + ANONYMOUS + struct.pack(">QI", offset, 2)
            + struct.pack(">I", count))


class Reply:
    """A message from the server, taken apart."""

    def __init__(self, answer: list[str]) -> None:
        assert answer[0] == "recv", answer
        self.inval = answer[-1] == "inval"
        self.raw = bytes.fromhex(answer[1])
        self.xid, self.vers, self.credit, self.proc = struct.unpack_from(">4I", self.raw)
        self.writes: list[list[tuple[int, int, int]]] = []
        self.reply: list[tuple[int, int, int]] | None = None
        self.body = b""
        if self.proc in (MSG, NOMSG):
            self._lists()
        else:
            self.body = self.raw[16:]

    def _lists(self) -> None:
        at = 16
        assert self.raw[at:at + 4] == bytes(4), "read list in a reply"
        at += 4
        while self._word(at):
            at, chunk = self._chunk(at + 4)
            self.writes.append(chunk)
        at += 4
        if self._word(at):
            at, self.reply = self._chunk(at + 4)
        else:
            at += 4
        self.body = self.raw[at:]

    def _word(self, at: int) -> int:
        return int.from_bytes(self.raw[at:at + 4], "big")

    def _chunk(self, at: int) -> tuple[int, list[tuple[int, int, int]]]:
        count = self._word(at)
        chunk: list[tuple[int, int, int]] = []
        for i in range(count):
            handle, length, offset = struct.unpack_from(">IIQ", self.raw, at + 4 + 16 * i)
            chunk.append((handle, length, offset))
        return at + 4 + 16 * count, chunk

    def lengths(self) -> list[list[int]]:
        return [[length for _, length, _ in chunk] for chunk in self.writes]
