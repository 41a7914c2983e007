#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Take the test vectors of the codecs out of packet captures.

usage: extract.py [--all] CAPTURE.pcap... > vectors.txt

The captures are RoCE v2 over Ethernet (UDP 4791) in the classic pcap format. A line of the output
is: kind, capture:packet, key=value pairs joined by commas or "-", payload in hex or "-". Without
--all only a few messages of each shape are kept.
"""

import struct
import sys
from collections import Counter
from pathlib import Path

UD_SEND_ONLY = 0x64
SEND_FIRST, SEND_MIDDLE, SEND_ONLY = 0x00, 0x01, 0x04
SEND_IMM, SEND_INV = 0x05, 0x17
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY = 0x06, 0x07, 0x08, 0x0A
WRITE_LAST_IMM, WRITE_ONLY_IMM = 0x09, 0x0B
SEND_LAST = 0x02
WITH_RETH = (WRITE_FIRST, WRITE_ONLY, WRITE_ONLY_IMM)
WITH_IMM = (SEND_IMM, WRITE_LAST_IMM, WRITE_ONLY_IMM)
CM_REQ, CM_REJ, CM_REP = 0x10, 0x12, 0x13
# Private data: where it begins in the 256-byte MAD, behind the MAD's and the message's own fields.
CM_PRIVATE = {CM_REQ: 164, CM_REJ: 108, CM_REP: 60}
# An RDMA-CM over IP puts its own header before the user's data in a connect request.
CMA_HEADER = 36


def frames(path):
    """Packets of a pcap file, with their numbers as tshark counts them."""
    data = path.read_bytes()
    if struct.unpack_from("<I", data)[0] != 0xA1B2C3D4:
        sys.exit(f"{path}: not a classic little-endian pcap file; convert it with editcap -F pcap")
    at, number = 24, 0
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        number += 1
        yield number, data[at + 16 : at + 16 + length]
        at += 16 + length


class Packet:
    """One RoCE v2 packet, its transport headers taken apart."""

    def __init__(self, number, source, bth):
        self.number = number
        self.source = source
        self.op = bth[0]
        pad = (bth[1] >> 4) & 3
        self.qp = int.from_bytes(bth[5:8], "big")
        self.imm = self.reth_len = None
        at = 12
        if self.op == UD_SEND_ONLY:
            at += 8
        if self.op in WITH_RETH:
            self.reth_len = struct.unpack_from(">I", bth, at + 12)[0]
            at += 16
        if self.op in WITH_IMM:
            self.imm = struct.unpack_from(">I", bth, at)[0]
            at += 4
        if self.op == SEND_INV:
            at += 4
        self.payload = bth[at : len(bth) - 4 - pad]


def packets(path):
    """RoCE v2 packets of a capture."""
    for number, frame in frames(path):
        if frame[12:14] != b"\x08\x00" or frame[23] != 17:
            continue
        ip = frame[14:]
        head = (ip[0] & 15) * 4
        udp = ip[head : struct.unpack_from(">H", ip, 2)[0]]
        if struct.unpack_from(">H", udp, 2)[0] == 4791:
            yield Packet(number, ip[12:16], udp[8:])


def private_data(packet):
    """Kind of CM message and its private data."""
    kind = int.from_bytes(packet.payload[16:18], "big")
    at = CM_PRIVATE.get(kind)
    return (kind, packet.payload[at:]) if at else (None, b"")


def rpcrdma_shape(message):
    """What makes a message worth a vector of its own, and its direction."""
    words = struct.unpack(f">{len(message) // 4}I", message[: len(message) & ~3])
    shape, at = [words[3]], 4
    while words[at]:
        shape.append(f"r{words[at + 1]}")
        at += 6
    at += 1
    while words[at]:
        shape.append(f"w{words[at + 1]}")
        at += 2 + 4 * words[at + 1]
    at += 1
    if words[at]:
        lengths = words[at + 3 : at + 2 + 4 * words[at + 1] : 4]
        shape.append("p" + ".".join(str(bool(length)) for length in lengths))
        at += 1 + 4 * words[at + 1]
    at += 1
    if at < len(words):
        direction = "reply" if words[at + 1] else "call"
    else:
        direction = "reply" if shape[-1].startswith("p") else "call"
    return (direction, *shape, len(message) > 1024), direction


class Output:
    """Lines of the vector file; at most @limit of a shape."""

    def __init__(self, name, limit):
        self.name = name
        self.limit = limit
        self.seen: Counter[tuple[str, object]] = Counter()

    def add(self, kind, number, shape, payload, **fields):
        self.seen[kind, shape] += 1
        if self.limit and self.seen[kind, shape] > self.limit:
            return
        pairs = ",".join(f"{key}={value}" for key, value in fields.items()) or "-"
        print(kind, f"{self.name}:{number}", pairs, payload.hex() or "-")


def nfs(path, out):
    """RPC-over-RDMA: all Sends, and the private data."""
    parts = {}
    for packet in packets(path):
        key = packet.source, packet.qp
        message = packet.payload
        if packet.op == UD_SEND_ONLY:
            kind, private = private_data(packet)
            if kind in (CM_REQ, CM_REP):
                out.add("rpcrdma-cm", packet.number, kind, private)
        elif packet.op == SEND_FIRST:
            parts[key] = message
        elif packet.op == SEND_MIDDLE:
            parts[key] += message
        elif packet.op in (SEND_LAST, SEND_ONLY, SEND_INV):
            message = parts.pop(key, b"") + message
            if message:
                shape, direction = rpcrdma_shape(message)
                out.add("rpcrdma", packet.number, shape, message, dir=direction)


def rtrs_request(packet, data, out):
    """A write or read request; of a write's data only the length is kept."""
    off = packet.imm & 0xFFFFFF
    kind = struct.unpack_from("<H", data, off)[0] if len(data) >= off + 4 else 0
    is_write = kind == 2
    head = data[off:] if is_write else data
    if is_write:
        user = struct.unpack_from("<H", head, 2)[0]
        head = data[off - user :]
    out.add(
        "rtrs-req",
        packet.number,
        (is_write, head[:2], len(head)),
        head,
        imm=hex(packet.imm),
        written=len(data),
        user=head[0],
    )


def rnbd(path, out):
    """RTRS and RNBD: both directions, everything but bulk data."""
    server = None
    writes = {}
    rotation = "1" if path.stem.endswith("Y") else "0"
    for packet in packets(path):
        key = packet.source, packet.qp
        to_server = packet.source != server
        data = packet.payload
        if packet.op == UD_SEND_ONLY:
            kind, private = private_data(packet)
            if kind == CM_REQ:
                private = private[CMA_HEADER:]
                out.add("rtrs-conn-req", packet.number, kind, private)
            elif kind == CM_REP:
                server = packet.source
                out.add("rtrs-conn-rsp", packet.number, kind, private)
        elif packet.op == SEND_ONLY and data:
            kind = "rtrs-info-req" if to_server else "rtrs-info-rsp"
            out.add(kind, packet.number, kind, data, rotation=rotation)
        elif packet.op == SEND_IMM:
            out.add("rtrs-rkey-rsp", packet.number, 0, data, imm=hex(packet.imm))
        elif packet.op == WRITE_ONLY and len(data) in (36, 56):
            out.add("rnbd-answer", packet.number, len(data), data)
        elif packet.op == WRITE_FIRST:
            writes[key] = data
        elif packet.op == WRITE_MIDDLE:
            writes[key] += data
        elif packet.op == WRITE_LAST:
            writes.pop(key, None)
        elif packet.op in (WRITE_LAST_IMM, WRITE_ONLY_IMM):
            data = writes.pop(key, b"") + data
            if data:
                rtrs_request(packet, data, out)
            else:
                side = "server" if to_server else "client"
                out.add(f"rtrs-imm-{side}", packet.number, packet.imm >> 28, data, imm=hex(packet.imm))


def main(arguments):
    limit = 3
    if arguments[:1] == ["--all"]:
        limit, arguments = 0, arguments[1:]
    if not arguments:
        sys.exit(__doc__)
    print("# SPDX-License-Identifier: GPL-2.0-only")
    print("# Made by extract.py, see README.rst. kind capture:packet fields payload")
    for argument in arguments:
        path = Path(argument)
        walk = rnbd if path.stem.startswith("rnbd") else nfs
        walk(path, Output(path.stem, limit))


if __name__ == "__main__":
    main(sys.argv[1:])
