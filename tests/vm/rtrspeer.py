# SPDX-License-Identifier: GPL-2.0-only
"""A client of an RTRS server that speaks RTRS byte by byte, right or wrong (peer/rtrs_peer.cc)."""

from __future__ import annotations

import struct

from peerprog import Program
from railvm import Host

PORT = 1234
MAGIC = 0x1BBD
VERSION = 0x0200

# RAIL's extension: small requests are messages.
EXT = b"RAI\x01"
SMALL_WRITE, SMALL_READ = 0x5201, 0x5202
# Nothing else is under way: an answer of its own is wanted.
SMALL_ALONE = 1

# Of the test user (tests/modules/rail_rtrs_echo).
ECHO_MAGIC = 0x4F484345
ECHO_INFO, ECHO_WRITE, ECHO_READ, ECHO_FAIL, ECHO_FLUSH = range(5)


def uuid(nr: int) -> bytes:
    return struct.pack("<Q8x", nr)


def conn_req(cid: int = 0, cid_num: int = 2, *, path: int = 1, sess: int = 1, first: bool = True,
             recon: int = 0, magic: int = MAGIC, version: int = VERSION, ext: bytes = b"") -> str:
    return struct.pack("<2x5H16s16sB4s7x", magic, version, cid, cid_num, recon, uuid(path),
                       uuid(sess), first, ext).hex()


def conn_rsp(text: str) -> tuple[int, int, int, int, int]:
    """errno, queue depth, largest I/O, room for headers, flags."""
    magic, version, error, depth, io, hdr, flags = struct.unpack_from("<HHhHIII",
                                                                      bytes.fromhex(text))
    assert (magic, version) == (MAGIC, VERSION)
    return error, depth, io, hdr, flags


def info_req(name: bytes, kind: int = 0) -> str:
    return struct.pack("<H255s15x", kind, name).hex()


def imm(buf: int, off: int, depth: int) -> str:
    """Immediate value of a request."""
    return f"{buf << (28 - (depth - 1).bit_length()) | off:08x}"


def write_hdr(usr_len: int, kind: int = 2) -> str:
    return struct.pack("<HH", kind, usr_len).hex()


def read_hdr(usr_len: int, memory: str = "", length: int = 0, *, flags: int = 0,
             sg_cnt: int | None = None, kind: int = 3) -> str:
    count = bool(memory) if sg_cnt is None else sg_cnt
    text = struct.pack("<4H", kind, usr_len, flags, count).hex()
    if memory:
        text += f"{{{memory}.addr}}{{{memory}.key}}" + struct.pack("<I", length).hex()
    return text


def small(kind: int, buf: int, usr: str, length: int, memory: str = "", data: bytes = b"", *,
          usr_len: int | None = None, flags: int = 0, mem_len: int | None = None) -> str:
    """A request that is a message: RAIL's own, where both ends are."""
    user = bytes.fromhex(usr)
    text = struct.pack("<HHHHI4x", kind, len(user) if usr_len is None else usr_len, buf, flags,
                       length).hex()
    text += f"{{{memory}.addr}}{{{memory}.key}}" if memory else "00" * 12
    text += struct.pack("<I", (length if memory else 0) if mem_len is None else mem_len).hex()
    return text + user.ljust(32, b"\0").hex() + data.hex()


def crc32c(data: bytes) -> int:
    """As the kernel's crc32c(~0, data)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


def echo_hdr(op: int, at: int, length: int, data: bytes = b"", serial: int = 0) -> str:
    head = struct.pack("<6I", ECHO_MAGIC, op, at, length, crc32c(data), serial)
    return (head + struct.pack("<I", crc32c(head))).hex()


USR = 28


def echo_write(at: int, data: bytes) -> tuple[int, str]:
    """A whole write request: where its header begins, and its bytes."""
    return len(data) + USR, (data.hex() + echo_hdr(ECHO_WRITE, at, len(data), data)
                             + write_hdr(USR))


def echo_read(at: int, length: int, memory: str, flags: int = 0) -> tuple[int, str]:
    """A whole read request, which goes to @length of the chunk: where its header begins, ..."""
    return length + USR, (echo_hdr(ECHO_READ, at, length)
                          + read_hdr(USR, memory, length, flags=flags))


def small_write(buf: int, at: int, data: bytes, flags: int = 0) -> str:
    return small(SMALL_WRITE, buf, echo_hdr(ECHO_WRITE, at, len(data), data), len(data), data=data,
                 flags=flags)


def small_read(buf: int, at: int, length: int, memory: str) -> str:
    return small(SMALL_READ, buf, echo_hdr(ECHO_READ, at, length), length, memory)


class Peer:
    """Runs scripts against a server; the answers are lines of words."""

    def __init__(self, host: Host, server: str) -> None:
        self.program = Program(host, "rtrs_peer")
        self.server = server

    def connect(self, cid: int, req: str) -> str:
        return f"connect {cid} {self.server} {PORT} {req}"

    def up(self, name: str = "peer", *, sess: int = 1, path: int = 1, base: int = 0,
           first: bool = True, ext: bytes = b"") -> list[str]:
        """Commands that bring a path of two connections up; three answers, then a fourth."""
        return [self.connect(base, conn_req(0, sess=sess, path=path, first=first, ext=ext)),
                self.connect(base + 1, conn_req(1, sess=sess, path=path, first=first, ext=ext)),
                f"send {base} {info_req(name.encode())}", f"chunks {base} 20000"]

    def run(self, *commands: str, timeout: float = 60) -> list[list[str]]:
        return self.program.answers(*commands, timeout=timeout)
