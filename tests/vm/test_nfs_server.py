# SPDX-License-Identifier: GPL-2.0-only
"""The server's end of rpcrdma.ko: nfsd over it, against the in-tree client and against a peer that
says every right and wrong thing there is to say."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import rpcpeer
from nfsrig import EXPORT, Load, NfsServer, agree, often, unload, work
from railvm import Cluster, Host
from rpcpeer import ERROR, MSG, NOMSG, ROOT, SUCCESS, Peer, Reply, header, seg, words

pytestmark = pytest.mark.kernels("stock-6.1")

Hosts = Callable[..., Cluster]
REFUSED = pytest.mark.allow_log(r"^rpcrdma: client .* (message refused|refused:|fits neither)")
STATS = "/proc/sys/sunrpc/svc_rdma"


@contextmanager
def serving(hosts: Hosts) -> Iterator[tuple[Host, NfsServer]]:
    """A client with the in-tree transport, and a server with ours."""
    a, b = hosts(2, modules=["in-tree", "test"])
    b.modprobe_rail("rpcrdma")
    server = NfsServer(b)
    server.start()
    yield a, server
    # Everything must be gone: then the modules can go too.
    server.stop()
    b.run(["rmmod", "nfsd"], timeout=60)
    unload(b)


# ---------------------------------------------------------------- mounts

def counter(host: Host, name: str) -> int:
    return int(host.read(f"{STATS}/rdma_stat_{name}"))


@pytest.mark.soak
def test_files(hosts: Hosts) -> None:
    """Each version, by IPv4 and IPv6, and what the counters say of it."""
    with serving(hosts) as (a, server):
        b = server.host
        assert server.listeners() == ["rdma 20049", "rdma 20049"]
        for seed, version in enumerate(("3", "4.0", "4.1", "4.2")):
            mount = server.mount(a, f"vers={version}", v6=version in ("3", "4.2"))
            agree(b, work(a, mount.where, str(seed)))
            assert mount.xprt()[0] == "rdma"
            if version == "4.1":
                # nfsd reaches the client over the client's own connection; there is no other.
                info = b.run("cat /proc/fs/nfsd/clients/*/info").stdout
                assert "callback state: UP" in info, info
            mount.umount()

        mount = server.mount(a, "vers=3,rsize=65536,wsize=65536")
        before = {name: counter(b, name) for name in ("recv", "read", "write")}
        a.run("dd if=/dev/urandom of=/mnt/nfs/f bs=64k count=16 oflag=direct")
        wrote = {name: counter(b, name) for name in before}
        assert wrote["read"] >= before["read"] + 16 and wrote["recv"] >= before["recv"] + 16
        a.run("dd if=/mnt/nfs/f of=/dev/null bs=64k iflag=direct")
        assert counter(b, "write") >= wrote["write"] + 16
        b.write(f"{STATS}/rdma_stat_recv", "0")
        assert counter(b, "recv") < wrote["recv"]
        for name in ("sq_starve", "rq_starve", "rq_poll", "rq_prod", "sq_poll", "sq_prod"):
            assert counter(b, name) >= 0
        for name in ("max_requests", "max_req_size", "max_outbound_read_requests"):
            assert int(b.read(f"{STATS}/{name}")) > 0
        mount.umount()


@pytest.mark.soak
def test_recall(hosts: Hosts) -> None:
    """A delegation is recalled over the client's own connection."""
    with serving(hosts) as (a, server):
        b = server.host
        b.run(f"echo old >{EXPORT}/f; chmod 666 {EXPORT}/f")
        mount = server.mount(a, "vers=4.1")
        reader = server.wait_delegation(a, "/mnt/nfs/f")
        assert not mount.op("DELEGRETURN")[0]
        start = time.monotonic()
        b.run(f"echo new >{EXPORT}/f", timeout=60)
        assert time.monotonic() - start < 10 * b.factor
        mount.wait_op("DELEGRETURN", 1)
        assert a.run("cat /mnt/nfs/f").stdout == "new\n"
        # Nothing went by TCP: nfsd was never told to use it.
        assert not b.run("ss -Htn state established '( sport = :2049 or dport = :2049 )'").stdout
        reader.kill()
        mount.umount()


@pytest.mark.soak
@pytest.mark.allow_log(r"nfs: server .* (not responding|OK)")
def test_ends(hosts: Hosts) -> None:
    """nfsd ends and begins again under load; then the client dies without a word."""
    with serving(hosts) as (a, server):
        b = server.host
        mount = server.mount(a, "vers=4.1,timeo=50")
        running = Load(a, mount.where)
        for _ in range(often(a, 50, 2)):
            server.kill()
            server.nfsd()
            running.more(timeout=120)

        connections = "cat /sys/kernel/debug/rail/*/connections"
        assert re.search(r"^\d+ up ", b.run(connections).stdout, re.M)
        a.kill()
        deadline = time.monotonic() + 30 * b.factor
        while re.search(r"^\d+ up ", (found := b.run(connections).stdout), re.M):
            assert time.monotonic() < deadline, found
            time.sleep(0.5)


# ---------------------------------------------------------------- the wire

def nfs_ok(reply: Reply, xid: int, proc: int = MSG) -> bytes:
    """What follows the tag and the count of a COMPOUND that went well."""
    assert (reply.xid, reply.vers, reply.proc) == (xid, 1, proc)
    body = reply.body
    assert body[:24] == struct.pack(">I", xid) + SUCCESS, body.hex()
    assert body[24:32] == bytes(8), f"status or tag: {body.hex()}"
    return body[36:]


def wait_grace(a: Host, server: NfsServer) -> None:
    """While somebody might have locks to reclaim nfsd lets nobody read; lockd's time is its own."""
    server.host.run(f"echo >{EXPORT}/grace")
    call = rpcpeer.compound(1, ROOT, rpcpeer.lookup("grace"), rpcpeer.read(0, 1))
    deadline = time.monotonic() + 60 * a.factor
    while True:
        answers = Peer(a, server.host.addr()).run("send " + header(1) + call.hex(), "recv 5000")
        if Reply(answers[2]).body[24:28] == bytes(4):
            return
        assert time.monotonic() < deadline, answers
        time.sleep(0.5)


def wire_basics(a: Host, server: NfsServer) -> None:
    peer = Peer(a, server.host.addr())
    priv = "f6ab0e18 01 01 03 03"
    answers = peer.run("send " + header(1, credit=0) + rpcpeer.null(1).hex(), "recv 5000",
                       "send " + header(2, credit=20000) + rpcpeer.null(2).hex(), "recv 5000",
                       "recv 200", priv=priv)
    assert answers[0][0] == "connected"
    assert answers[0][1].startswith("f6ab0e1801010404")
    for xid, answer in ((1, answers[2]), (2, answers[4])):
        reply = Reply(answer)
        assert reply.raw[28:] == struct.pack(">I", xid) + SUCCESS
        assert reply.proc == MSG and not reply.writes and reply.reply is None
    assert Reply(answers[2]).credit == 1  # never 0
    assert 8 <= Reply(answers[4]).credit <= 64
    assert answers[5] == ["nothing"]
    # One that says nothing of itself is served all the same.
    answers = peer.run("send " + header(3) + rpcpeer.null(3).hex(), "recv 5000")
    assert Reply(answers[2]).raw[28:] == struct.pack(">I", 3) + SUCCESS


def wire_results(a: Host, server: NfsServer) -> None:
    """Write chunks and reply chunk in every combination."""
    b = server.host
    data = bytes(range(256)) * 32
    b.put(f"{EXPORT}/f", data)
    b.run(f"ln -s {'t' * 301} {EXPORT}/l")
    peer = Peer(a, b.addr())

    def one(ops: list[bytes], **lists: object) -> tuple[Reply, list[list[str]]]:
        head = header(7, **lists)  # type: ignore[arg-type]
        answers = peer.run("mr w 16384", "mr v 16384", "mr r 32768",
                           "send " + head + rpcpeer.compound(7, *ops).hex(), "recv 5000",
                           "dump w 0 8192", "dump v 0 8192", "dump r 0 32768")
        return Reply(answers[5]), answers[6:]

    file = [ROOT, rpcpeer.lookup("f")]
    # Inline, into one segment, into three of odd sizes.
    reply, _ = one([*file, rpcpeer.read(0, 100)])
    assert nfs_ok(reply, 7)[-100:] == data[:100]
    reply, mem = one([*file, rpcpeer.read(5, 8000)], writes=[[seg("w", 8000)]])
    assert reply.lengths() == [[8000]] and bytes.fromhex(mem[0][1])[:8000] == data[5:8005]
    assert nfs_ok(reply, 7)[-4:] == struct.pack(">I", 8000)
    reply, mem = one([*file, rpcpeer.read(0, 4099)],
                     writes=[[seg("w", 1), seg("w", 4097, 100), seg("w", 500, 6000)]])
    assert reply.lengths() == [[1, 4097, 1]]
    got = bytes.fromhex(mem[0][1])
    assert got[:1] + got[100:4197] + got[6000:6001] == data[:4099]
    assert got[6001:6101] == b"\xee" * 100
    assert nfs_ok(reply, 7)[-4:] == struct.pack(">I", 4099)
    # Two results, three chunks: the third one comes back empty.
    reply, mem = one([*file, rpcpeer.read(0, 1000), rpcpeer.read(1000, 2001)],
                     writes=[[seg("w", 4000)], [seg("v", 1000), seg("v", 4000, 2000)],
                             [seg("w", 100, 7000)]])
    assert reply.lengths() == [[1000], [1000, 1001], [0]]
    got = bytes.fromhex(mem[1][1])
    assert bytes.fromhex(mem[0][1])[:1000] == data[:1000]
    assert got[:1000] + got[2000:3001] == data[1000:3001]
    # A chunk of no bytes asks for the result inline.
    reply, _ = one([*file, rpcpeer.read(0, 100)], writes=[[]])
    assert reply.lengths() == [[]] and nfs_ok(reply, 7)[-100:] == data[:100]
    # READLINK, whose text is an item of its own.
    reply, mem = one([ROOT, rpcpeer.lookup("l"), rpcpeer.readlink()], writes=[[seg("w", 1024)]])
    assert reply.lengths() == [[301]] and bytes.fromhex(mem[0][1])[:301] == b"t" * 301
    # The reply chunk is used only when the reply does not fit inline.
    reply, _ = one([*file, rpcpeer.read(0, 100)], reply=[seg("r", 32768)])
    assert nfs_ok(reply, 7)[-100:] == data[:100]
    reply, mem = one([*file, rpcpeer.read(0, 8000)], reply=[seg("r", 3), seg("r", 20000, 1000)])
    assert reply.proc == NOMSG and reply.reply is not None
    got = bytes.fromhex(mem[2][1])
    length = [part[1] for part in reply.reply]
    assert length[0] == 3
    body = got[:3] + got[1000:1000 + length[1]]
    assert body[:24] == struct.pack(">I", 7) + SUCCESS and body[-8000:] == data[:8000]
    # Both: the first result by the write chunk, the second one with the rest in the reply chunk.
    # (Not a READDIR after a READ: Linux 6.1's nfsd writes into memory of others then, by TCP too.)
    reply, mem = one([*file, rpcpeer.read(0, 8000), rpcpeer.read(1, 6000)],
                     writes=[[seg("w", 8192)]], reply=[seg("r", 32768)])
    assert reply.proc == NOMSG and reply.lengths() == [[8000]] and reply.reply is not None
    body = bytes.fromhex(mem[2][1])[:reply.reply[0][1]]
    assert body[:24] == struct.pack(">I", 7) + SUCCESS and body[-6000:] == data[1:6001]
    assert bytes.fromhex(mem[0][1])[:8000] == data[:8000]


def wire_arguments(a: Host, server: NfsServer) -> None:
    """Read chunks: one, several, position zero, and both."""
    b = server.host
    b.run(f": >{EXPORT}/f; chmod 666 {EXPORT}/f")
    peer = Peer(a, b.addr())
    xid = 9

    def one(text: str, *mrs: str) -> Reply:
        nonlocal xid
        answers = peer.run(*mrs, f"send {text}", "recv 5000")
        reply = Reply(answers[-1])
        assert reply.xid == xid
        # A call with the same XID again would be answered from nfsd's memory.
        xid += 1
        return reply

    def written() -> bytes:
        return b.get(f"{EXPORT}/f")

    data = bytes((7 * i) & 255 for i in range(10001))
    getattr_op = struct.pack(">3I", 9, 1, 0x10)  # size

    def head(count: int) -> bytes:
        return rpcpeer.compound(xid, ROOT, rpcpeer.lookup("f"), rpcpeer.write_head(0, count),
                                getattr_op)[:-len(getattr_op)]

    def size_of(reply: Reply) -> int:
        return int.from_bytes(nfs_ok(reply, reply.xid)[-8:], "big")

    mr = f"mr d 16384 {data.hex()}"
    # One chunk of two segments, of the item's length and rounded up.
    at = len(head(10001))
    for length in (10001, 10004):
        b.run(f": >{EXPORT}/f")
        reply = one(header(xid, reads=[(at, seg("d", 5003)), (at, seg("d", length - 5003, 5003))])
                    + (head(10001) + getattr_op).hex(), mr)
        assert size_of(reply) == 10001 and written() == data
    # The whole call at position zero.
    b.run(f": >{EXPORT}/f")
    call = head(10001) + data + bytes(3) + getattr_op
    reply = one(header(xid, NOMSG, reads=[(0, seg("c", 77)), (0, seg("c", len(call) - 77, 77))]),
                f"mr c 16384 {call.hex()}")
    assert size_of(reply) == 10001 and written() == data
    # The call at position zero, its data in a chunk of their own.
    b.run(f": >{EXPORT}/f")
    call = head(10001) + getattr_op
    reply = one(header(xid, NOMSG, reads=[(0, seg("c", len(call))), (at, seg("d", 10001))]),
                mr, f"mr c 4096 {call.hex()}")
    assert size_of(reply) == 10001 and written() == data

    # Two WRITEs, the data of both in chunks; inline and at position zero.
    first, second = data[:1001], data[3000:3902]
    part = [rpcpeer.compound(xid, ROOT, rpcpeer.lookup("f"), rpcpeer.write_head(0, 1001), b"",
                             getattr_op)[:-len(getattr_op)],
            rpcpeer.write_head(1001, 902), getattr_op]
    where = len(part[0]), len(part[0]) + 1004 + len(part[1])
    chunks = [(where[0], seg("d", 1001)), (where[1], seg("d", 902, 3000))]
    for zero in (False, True):
        b.run(f": >{EXPORT}/f")
        call = struct.pack(">I", xid) + b"".join(part)[4:]
        if zero:
            reply = one(header(xid, NOMSG, reads=[(0, seg("c", len(call))), *chunks]),
                        mr, f"mr c 4096 {call.hex()}")
        else:
            reply = one(header(xid, reads=chunks) + call.hex(), mr)
        assert size_of(reply) == 1903 and written() == first + second


def wire_refusals(a: Host, server: NfsServer) -> None:
    """What is wrong is answered as the paper says, and the connection goes on."""
    b = server.host
    b.put(f"{EXPORT}/f", bytes(9000))
    peer = Peer(a, b.addr())
    call = rpcpeer.null(5).hex()
    read = rpcpeer.compound(5, ROOT, rpcpeer.lookup("f"), rpcpeer.read(0, 8000)).hex()
    chunk = words(5, 1, 8, ERROR, 2)
    version = words(5, 1, 8, ERROR, 1, 1, 1)
    nothing = ""
    cases = {
        "version": (header(5, vers=2) + call, version),
        "procedure": (header(5, 9) + call, chunk),
        "MSGP": (words(5, 1, 8, 2, 4, 64, 0, 0, 0) + call, chunk),
        "DONE": (words(5, 1, 8, 3), nothing),
        "error": (words(5, 1, 8, 4, 2), nothing),
        "error of version": (words(5, 1, 8, 4, 1, 1, 1), nothing),
        "error in another version": (words(5, 9, 8, 4, 2), nothing),
        "short": (words(5, 1, 8), nothing),
        "no lists": (words(5, 1, 8, 0), chunk),
        "endless read list": (words(5, 1, 8, 0) + (words(1, 40) + seg("m", 4)) * 8, chunk),
        "segment count": (words(5, 1, 8, 0, 0, 1, 0xffffffff, 0, 0) + call, chunk),
        "another XID": (header(6) + call, words(6, 1, 8, ERROR, 2)),
        "a reply": (header(5) + (words(5, 1) + "00" * 16), nothing),
        "NOMSG without a call": (header(5, 1), chunk),
        "position past the end": (header(5, reads=[(400, seg("m", 4))]) + call, chunk),
        "too long": (header(5, reads=[(40, seg("m", 0x7fffffff))]) + call, chunk),
        "small write chunk": (header(5, writes=[[seg("m", 7999)]]) + read, chunk),
        "no place for the reply": (header(5) + read, chunk),
        "small reply chunk": (header(5, reply=[seg("m", 8000)]) + read, chunk),
    }
    commands = ["mr m 16384"]
    for text, _ in cases.values():
        commands += [f"send {text}", "recv 700", "send " + header(1) + rpcpeer.null(1).hex(),
                     "recv 5000"]
    answers = peer.run(*commands, timeout=120)[2:]
    for i, (name, (_, wanted)) in enumerate(cases.items()):
        got = answers[4 * i + 1] if wanted else ["recv"]
        after = answers[4 * i + 3]
        if not wanted:
            assert answers[4 * i + 1] == ["nothing"], f"{name}: {answers[4 * i + 1]}"
        else:
            assert got == ["recv", wanted], f"{name}: {got}"
        assert Reply(after).raw[28:] == struct.pack(">I", 1) + SUCCESS, f"after {name}: {after}"


def wire_sizes(a: Host, server: NfsServer) -> None:
    """A reply goes inline up to what either end said of itself, and no further."""
    server.host.put(f"{EXPORT}/f", bytes(9000))
    peer = Peer(a, server.host.addr())

    def ask(priv: str, count: int) -> list[str]:
        call = rpcpeer.compound(5, ROOT, rpcpeer.lookup("f"), rpcpeer.read(0, count))
        return peer.run("send " + header(5) + call.hex(), "recv 5000", priv=priv)[2]

    around = len(Reply(ask("", 100)).raw) - 100
    for priv, most in (("", 1024), ("f6ab0e18 01 01 00 00", 1024), ("f6ab0e18 01 01 ff 03", 4096),
                       ("f6ab0e18 01 01 04 04", 5120), ("f6ab0e18 01 01 00 ff", 5120),
                       ("00000000 f6ab0e18 01 00 03 01", 2048)):
        assert len(Reply(ask(priv, most - around)).raw) == most
        assert ask(priv, most - around + 4) == ["recv", words(5, 1, 8, ERROR, 2)]


def wire_quiet(a: Host, server: NfsServer) -> None:
    """Small replies, of which nobody is told that they were sent: then others, an error, the end."""
    b = server.host
    b.put(f"{EXPORT}/f", bytes(9000))
    call = "send " + header(5) + rpcpeer.null(5).hex()
    read = "send " + header(5, writes=[[seg("m", 8000)]]) + rpcpeer.compound(
        5, ROOT, rpcpeer.lookup("f"), rpcpeer.read(0, 8000)).hex()
    nonsense = "send " + header(5, 9) + rpcpeer.null(5).hex()
    peer = Peer(a, b.addr())
    afters: list[list[str]] = [
        [], [read, "recv 5000"], [nonsense, "recv 5000"], [call, call, "sleep 50"],
        # Too long for a receive: the connection fails.
        ["send " + "00" * 6000, "recv 5000"]]
    for after in afters:
        # More than may be unsent, in all.
        for count in (1, 7, 8) if after else (1, 100):
            answers = peer.run("mr m 16384", *[call, "recv 5000"] * count, *after)
            assert all(Reply(answer).raw[28:] == struct.pack(">I", 5) + SUCCESS
                       for answer in answers[3:2 + 2 * count:2]), answers
    # Nothing of them is left.
    deadline = time.monotonic() + 30 * b.factor
    while (found := b.run("cat /sys/kernel/debug/rail/*/connections | grep -v '^#' || :").stdout):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def wire_secrets(a: Host, server: NfsServer) -> None:
    """The pages that one client's data came in are used for the next one's: of that it sees nothing."""
    b = server.host
    secret = b"never" * 13200
    b.run(f": >{EXPORT}/s; chmod 666 {EXPORT}/s; : >{EXPORT}/e; truncate -s 70001 {EXPORT}/e; "
          f"mkdir {EXPORT}/d; touch {EXPORT}/d/x")
    call = rpcpeer.compound(5, ROOT, rpcpeer.lookup("s"), rpcpeer.write_head(0, len(secret)))
    one = Peer(a, b.addr())
    commands = [f"mr m {len(secret)} {secret.hex()}"]
    for xid in range(10, 18):
        commands += ["send " + header(xid, reads=[(len(call), seg("m", len(secret)))])
                     + struct.pack(">I", xid).hex() + call[4:].hex(), "recv 5000"]
    for xid, answer in enumerate(one.run(*commands)[3::2], 10):
        nfs_ok(Reply(answer), xid)
    assert b.get(f"{EXPORT}/s") == secret

    other = Peer(a, b.addr())
    for ops, lists in (
            ([rpcpeer.lookup("s"), rpcpeer.read(0, 100000)], {"writes": [[seg("w", 100000)]]}),
            ([rpcpeer.lookup("e"), rpcpeer.read(0, 100000)], {"writes": [[seg("w", 100000)]]}),
            ([rpcpeer.lookup("e"), rpcpeer.read(1, 69999)], {"reply": [seg("r", 100000)]}),
            ([rpcpeer.lookup("e"), rpcpeer.read(70000, 2000)], {}),
            ([rpcpeer.lookup("d"), rpcpeer.readdir()], {"reply": [seg("r", 100000)]})):
        answers = other.run("mr w 100000", "mr r 100000",
                            "send " + header(7, **lists)  # type: ignore[arg-type]
                            + rpcpeer.compound(7, ROOT, *ops).hex(), "recv 5000",
                            "dump w 0 100000", "dump r 0 100000")
        reply = Reply(answers[4])
        got = [reply.raw, *(bytes.fromhex(answer[1]) for answer in answers[5:])]
        seen = any(b"never"[i:] + b"never"[:i] in part for part in got for i in range(5))
        assert seen == (ops[0] == rpcpeer.lookup("s"))
        # And nothing at all lies behind what the lists say was written.
        for part, sizes in zip(got[1:], (reply.lengths(), [[s[1] for s in reply.reply or []]])):
            written = sum(sum(chunk) for chunk in sizes)
            assert part[written:] == b"\xee" * (len(part) - written)


@REFUSED
def test_wire(hosts: Hosts) -> None:
    """Every list there is, right and wrong, and what is answered, byte by byte."""
    with serving(hosts) as (a, server):
        wait_grace(a, server)
        for part in (wire_basics, wire_results, wire_arguments, wire_refusals):
            part(a, server)


@pytest.mark.soak
@REFUSED
@pytest.mark.allow_log(r"^rail: ip:")
@pytest.mark.kernels("stock-6.1", "test-7")
def test_wire_more(hosts: Hosts) -> None:
    """Sizes, quiet replies, and pages that are used again."""
    with serving(hosts) as (a, server):
        wait_grace(a, server)
        for part in (wire_sizes, wire_quiet, wire_secrets):
            part(a, server)


@pytest.mark.soak
@pytest.mark.allow_log(r"^(rpcrdma: client|rail: ip:)")
@pytest.mark.kernels("stock-6.1", "test-7")
def test_wire_hostile(hosts: Hosts) -> None:
    """Keys that are none, and messages too long, end their own connection and nothing else."""
    with serving(hosts) as (a, server):
        mount = server.mount(a, "vers=3")
        honest = Load(a, mount.where)
        a.run(f"cp {mount.where}/load65536 {mount.where}/h")
        peer = Peer(a, server.host.addr())
        bad = words(0x12345678, 4096, 0, 4096)
        call = rpcpeer.compound(5, ROOT, rpcpeer.lookup("h"), rpcpeer.write_head(0, 4096))
        read = rpcpeer.compound(5, ROOT, rpcpeer.lookup("h"), rpcpeer.read(0, 4096)).hex()
        for text in (header(5, reads=[(len(call), bad)]) + call.hex(),
                     header(5, 1, reads=[(0, bad)]),
                     header(5, writes=[[bad]]) + read,
                     header(5, reply=[bad]) + rpcpeer.compound(
                         5, ROOT, rpcpeer.lookup("h"), rpcpeer.read(0, 4000)).hex(),
                     "00" * 6000):
            for _ in range(often(a, 3, 1)):
                answers = peer.run("send " + text, "recv 5000")
                assert answers[2] == ["gone"] or answers[1][0] == "failed", answers
        # Nothing but what is no call, and gone before it has been looked at.
        for text in (words(5, 1, 8, 3), words(5, 1, 8, 4, 2), header(5, 9),
                     header(5) + words(5, 1) + "00" * 16):
            peer.run(*["send " + text] * 40)
        # Asks, and takes no answers: sends more than its credits allow, and goes.
        peer.run(*["send " + header(5) + rpcpeer.null(5).hex()] * 40)
        honest.more(1)
        honest.stop()
        mount.umount()
