# SPDX-License-Identifier: GPL-2.0-only
"""The RTRS server against clients that break the protocol, and against what happens to its paths.

The hostile client is peer/rtrs_peer.cc; the server's user is tests/modules/rail_rtrs_echo.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

import pytest

from railvm import Cluster
from rtrspeer import (ECHO_FAIL, ECHO_FLUSH, ECHO_READ, EXT, SMALL_ALONE, SMALL_READ, SMALL_WRITE, USR,
                      Peer, conn_req, conn_rsp, echo_hdr, echo_read, echo_write, imm, info_req, read_hdr,
                      small, small_read, small_write, write_hdr)
from test_rtrs import Pair

Hosts = Callable[..., Cluster]

pytestmark = [pytest.mark.kernels("stock-6.1", "test-7"), pytest.mark.soak("test-7")]

DEPTH = 12
CHUNK = 65536
SIZE = (f"sess_queue_depth={DEPTH}", f"max_chunk_size={CHUNK}")


@pytest.fixture(params=["Y", "N"], ids=["new keys", "same keys"])
def rotation(request: pytest.FixtureRequest) -> str:
    value: str = request.param
    return value


@pytest.fixture
def pair(hosts: Hosts, rotation: str) -> Iterator[Pair]:
    """A server with the test user, and the test user as a client; at the end all is well."""
    pair = Pair(hosts(2, links=2, mem=768), f"always_invalidate={rotation}", *SIZE)
    yield pair
    pair.sound()
    pair.unload()


def peer_of(pair: Pair) -> Peer:
    return Peer(pair.client.host, pair.server.host.addr(0))


def two_peers(pair: Pair) -> tuple[Peer, Peer]:
    """For two paths of a session: a server has no two between the same addresses, and the program uses
    one device."""
    return peer_of(pair), Peer(pair.client.host, pair.server.host.addr(0, v6=True))


def good_client(pair: Pair) -> None:
    """A client that keeps to the protocol is not disturbed."""
    pair.open("good")
    pair.client.do("run count=5 depth=4 size=30000")
    pair.client.do("close")


def no_session(pair: Pair) -> None:
    """Wait until no session is left."""
    pair.server.host.run("until [ -z \"$(ls /sys/class/rtrs-server)\" ]; do sleep 0.1; done",
                         timeout=60)


# ---------------------------------------------------------------- connecting

@pytest.mark.soak
def test_connect_requests(pair: Pair, rotation: str) -> None:
    """What is wrong with a connect request is told in the refusal."""
    peer = peer_of(pair)
    bad = [
        (conn_req(magic=0x1BBC), errno.EINVAL),
        (conn_req(version=0x0300), errno.EPROTONOSUPPORT),
        (conn_req(version=0x0100), errno.EPROTONOSUPPORT),
        (conn_req(cid=2), errno.EINVAL),
        (conn_req(cid_num=1), errno.EINVAL),
        (conn_req(cid_num=5000), errno.EINVAL),
        ("", errno.EINVAL),
        (conn_req(first=False), errno.ENOENT),
    ]
    answers = peer.run(*(peer.connect(i, req) for i, (req, _) in enumerate(bad)))
    for (req, code), answer in zip(bad, answers, strict=True):
        assert answer[0] == "refused", (req, answer)
        assert conn_rsp(answer[1])[0] == -code, (req, answer)
    answers = peer.run(
        peer.connect(0, conn_req(version=0x0207)),     # a minor version is no obstacle
        peer.connect(1, conn_req(cid=0)),              # that one is there
        peer.connect(2, conn_req(cid=1, cid_num=3)),   # not what was said before
        peer.connect(3, conn_req(cid=1, recon=1)),     # another reconnect than the first
        peer.connect(4, conn_req(cid=1)))
    assert answers[0][0] == "connected"
    error, depth, io, hdr, flags = conn_rsp(answers[0][1])
    assert (error, depth, io, hdr) == (0, DEPTH, CHUNK - 4096, 4096)
    assert flags == (2 if rotation == "Y" else 0)
    assert [conn_rsp(answer[1])[0] for answer in answers[1:4]] == [-errno.EBUSY, -errno.EINVAL,
                                                                   -errno.EBUSY]
    good_client(pair)


@pytest.mark.soak
def test_info_requests(pair: Pair) -> None:
    """A session name that is none, a message of another type, a second one: the path ends."""
    peer = peer_of(pair)
    names = [b"a/b", b"a.b", b"", b"x" * 255, b"a\x01"]
    reqs = [info_req(name) for name in names] + [info_req(b"a", 1), info_req(b"a")[:-2], "00" * 300]
    commands = []
    for i, req in enumerate(reqs):
        base = 2 * i
        commands += [*peer.up(sess=100 + i, path=100 + i, base=base)[:2], f"send {base} {req}",
                     f"alive {base} 20000"]
    answers = peer.run(*commands)
    for i, req in enumerate(reqs):
        assert answers[4 * i + 1][0] == "connected"
        assert answers[4 * i + 3] == ["gone"], (req, answers[4 * i:])
    answers = peer.run(*peer.up(), f"send 0 {info_req(b'peer')}", "alive 1 20000")
    assert answers[3] == ["chunks", str(DEPTH), str(CHUNK)]
    assert answers[5] == ["gone"]
    # The name of another session; the same session under another name.
    answers = peer.run(*peer.up("one", sess=1, path=1),
                       *peer.up("one", sess=2, path=2, base=2)[:3], "alive 2 20000",
                       *peer.up("two", sess=1, path=3, base=4, first=False)[:3],
                       "alive 4 20000", "alive 0 100")
    assert answers[3][0] == "chunks"
    assert answers[7] == ["gone"]
    assert answers[11] == ["gone"]
    assert answers[12] == ["alive"]
    good_client(pair)


@pytest.mark.soak
def test_half_open_paths(pair: Pair) -> None:
    """A path that does not come up is ended; so many of them a host may have at a time."""
    peer = peer_of(pair)
    commands = [peer.connect(i, conn_req(sess=i, path=i)) for i in range(40)]
    answers = peer.run(*commands, "alive 0 60000", "alive 31 20000",
                       peer.connect(99, conn_req(sess=99, path=99)), timeout=120)
    assert [answer[0] for answer in answers[:32]] == ["connected"] * 32
    for answer in answers[32:40]:
        assert (answer[0], conn_rsp(answer[1])[0]) == ("refused", -errno.EBUSY)
    assert answers[40:42] == [["gone"], ["gone"]]
    assert answers[42][0] == "connected"
    good_client(pair)


# ---------------------------------------------------------------- requests

@pytest.mark.soak
def test_reads_and_writes(pair: Pair, rotation: str) -> None:
    """What a well-behaved client sees on the wire."""
    peer = peer_of(pair)
    data = bytes(range(256)) * 40
    off_w, write = echo_write(1000, data)
    off_r, read = echo_read(1100, 500, "m")
    flush = echo_hdr(ECHO_FLUSH, 0, 0) + read_hdr(USR)
    answers = peer.run(*peer.up(), "mr m 8192",
                       f"write 1 {imm(3, off_w, DEPTH)} 3 0 {write}", "recv 1 20000",
                       f"write 1 {imm(5, off_r, DEPTH)} 5 500 {read}", "recv 1 20000",
                       "show m 0 501",
                       f"write 1 {imm(3, USR, DEPTH)} 3 0 {flush}", "recv 1 20000", "alive 0 500")
    assert answers[9] == ["show", data[100:600].hex() + "ee"]
    for answer, buf in ((answers[6], 3), (answers[8], 5), (answers[11], 3)):
        assert answer[:3] == ["recv", f"1{buf:07x}", "-"]
        if rotation == "Y":
            assert answer[3].startswith(f"0400{buf:02x}00")
        else:
            assert len(answer) == 3
    assert answers[-1] == ["alive"]


@pytest.mark.soak
def test_broken_requests(pair: Pair) -> None:
    """Each breaks the protocol in its own way: the path ends, and nobody else notices."""
    peer = peer_of(pair)
    usr = echo_hdr(ECHO_READ, 0, 512)
    big = CHUNK - 4096 + 4
    requests = {
        "usr past start": (imm(0, 8, DEPTH), 0, "00" * 8 + write_hdr(9)),
        "usr too long": (imm(0, 4000, DEPTH), 0, "00" * 4000 + write_hdr(4000)),
        "type": (imm(0, USR, DEPTH), 0, usr + write_hdr(USR, 4)),
        "two descriptors": (imm(0, 512 + USR, DEPTH), 512,
                            usr + read_hdr(USR, "m", 512, sg_cnt=2)),
        "flags": (imm(0, 512 + USR, DEPTH), 512, usr + read_hdr(USR, "m", 512, flags=2)),
        "data too long": (imm(0, big + USR, DEPTH), big, usr + read_hdr(USR, "m", big)),
        "no descriptor": (imm(0, 512 + USR, DEPTH), 512, usr + read_hdr(USR)),
        "short descriptor": (imm(0, 512 + USR, DEPTH), 512, usr + read_hdr(USR, "m", 511)),
        "more written": (imm(0, 100 + USR, DEPTH), 0, "00" * 100 + usr + write_hdr(USR) + "0000"),
        "buffer id": (imm(DEPTH, USR, DEPTH), 0, usr + write_hdr(USR)),
        "offset": (imm(0, (1 << 24) - 1, DEPTH), 0, usr + write_hdr(USR)),
        "imm type": ("70000000", 0, ""),
        "hb on 1": ("80000000", 0, ""),
        "message": ("", 0, "00" * 16),
    }
    before = pair.server.status()["srv_requests"]
    commands = peer.up("other", sess=99, path=99, base=99)
    for i, (what, (value, at, text)) in enumerate(requests.items()):
        base = 2 * i
        send = f"send {base + 1} {text}" if what == "message" else \
            f"write {base + 1} {value} 0 {at} {text}"
        commands += [*peer.up(what, sess=i, path=i, base=base), "mr m 65536", send,
                     f"alive {base} 20000"]
    answers = peer.run(*commands, "alive 99 100", timeout=120)
    for i, what in enumerate(requests):
        mine = answers[4 + 7 * i:11 + 7 * i]
        assert mine[3][0] == "chunks", (what, mine)
        assert mine[6] == ["gone"], (what, mine)
    assert answers[-1] == ["alive"]
    # None of them came as far as the user.
    assert pair.server.status()["srv_requests"] == before
    good_client(pair)


def test_small_requests(pair: Pair) -> None:
    """Requests that are messages, and the answers to them, beside others with the same buffer ids."""
    peer = peer_of(pair)
    data = bytes(range(256)) * 16
    off, write = echo_write(0, b"large" * 2000)
    off_r, read = echo_read(2, 5, "m")
    fail = echo_hdr(ECHO_FAIL, 0, 4096, serial=28)
    flush = echo_hdr(ECHO_FLUSH, 0, 0)
    wait = "recv 1 20000"
    answers = peer.run(*peer.up(ext=EXT), "mr m 8192",
                       f"write 1 {imm(3, off, DEPTH)} 3 0 {write}", wait,
                       f"send 1 {small_write(3, 20000, data, SMALL_ALONE)}", wait,
                       f"send 1 {small_read(3, 20000, len(data), 'm')}", wait, "show m 0 4097",
                       f"send 1 {small_read(4, 20001, 1, 'm')}", wait, "show m 0 2",
                       f"send 1 {small(SMALL_READ, 5, fail, 4096, 'm')}", wait, "show m 0 2",
                       f"send 1 {small(SMALL_READ, 5, flush, 0, flags=SMALL_ALONE)}", wait,
                       f"write 1 {imm(3, off_r, DEPTH)} 3 5 {read}", wait, "show m 0 6",
                       "alive 0 500")
    # Both connections say that they are agreed.
    assert [bytes.fromhex(answer[1])[20:24] for answer in answers[:2]] == [EXT, EXT]
    # No key comes with these answers.
    assert [answers[i] for i in (8, 10, 13, 19)] == [
        ["recv", value, "-"] for value in ("10000003", "10000003", "10000004", "10000005")]
    # This one could have shared its message with others.
    value = (1 << 28 | 28 << 19 | 5).to_bytes(4, "little").hex()
    assert answers[16] == ["recv", "-", "-", f"03520100{value}"]
    assert answers[11] == ["show", data.hex() + "ee"]
    assert answers[14] == ["show", data[1:2].hex() + data[1:2].hex()]
    assert answers[17] == answers[14]
    assert answers[22] == ["show", b"rgela".hex() + data[5:6].hex()]
    assert answers[-1] == ["alive"]
    good_client(pair)


@pytest.mark.soak
def test_broken_small_requests(pair: Pair) -> None:
    """Each is no such message as was agreed on: the path ends, and nobody else notices."""
    peer = peer_of(pair)
    usr = echo_hdr(ECHO_READ, 0, 512)
    requests = {
        "short": "00" * 16,
        "a byte short": small(SMALL_READ, 0, usr, 512, "m")[:-2],
        "type": small(3, 0, usr, 512, "m"),
        "info": info_req(b"again"),
        "buffer id": small(SMALL_READ, DEPTH, usr, 512, "m"),
        "usr too long": small(SMALL_READ, 0, usr, 512, "m", usr_len=33),
        "flags": small(SMALL_READ, 0, usr, 512, "m", flags=2),
        "data too long": small(SMALL_READ, 0, usr, 4097, "m"),
        "short descriptor": small(SMALL_READ, 0, usr, 512, "m", mem_len=511),
        "no descriptor": small(SMALL_READ, 0, usr, 512),
        "read brings data": small(SMALL_READ, 0, usr, 512, "m", bytes(512)),
        "less data": small(SMALL_WRITE, 0, usr, 512, data=bytes(511)),
        "more data": small(SMALL_WRITE, 0, usr, 512, data=bytes(513)),
        "no data": small(SMALL_WRITE, 0, usr, 512),
    }
    before = pair.server.status()["srv_requests"]
    commands = peer.up("other", sess=99, path=99, base=99, ext=EXT)
    for i, (what, text) in enumerate(requests.items()):
        base = 2 * i
        commands += [*peer.up(what, sess=i, path=i, base=base, ext=EXT), "mr m 65536",
                     f"send {base + 1} {text}", f"alive {base} 20000"]
    # Not agreed on at all; agreed on, by another tag; of the service connection.
    for base, ext, cid in ((200, b"", 1), (202, b"RAJ\x01", 1), (204, EXT, 0)):
        commands += [*peer.up(str(base), sess=base, path=base, base=base, ext=ext), "mr m 65536",
                     f"send {base + cid} {small(SMALL_READ, 0, usr, 512, 'm')}", f"alive {base} 20000"]
    answers = peer.run(*commands, "alive 99 100", timeout=120)
    for i in range(len(requests) + 3):
        mine = answers[4 + 7 * i:11 + 7 * i]
        assert mine[3][0] == "chunks", (i, mine)
        assert mine[6] == ["gone"], (i, mine)
    # More data than any receive has room for is the device's to refuse.
    answers += peer.run(*peer.up("big", sess=98, path=98, ext=EXT),
                        f"send 1 {small(SMALL_WRITE, 0, usr, 4096, data=bytes(8192))}", "alive 0 20000")
    assert answers[-1] == ["gone"]
    assert pair.server.status()["srv_requests"] == before
    good_client(pair)


@pytest.mark.soak
def test_small_id_in_flight(pair: Pair) -> None:
    """The buffer id of a request that is not answered comes again: small after small, small after another,
    another after small."""
    pair.server.do("delay 3000")
    off, write = echo_write(0, b"first" * 100)
    large = f"write 1 {imm(0, off, DEPTH)} 0 0 {write}"
    little = f"send 1 {small_write(0, 0, b'first' * 100)}"
    before = pair.server.status()["srv_requests"]
    for first, second in ((little, little), (large, little), (little, large)):
        answers = peer_of(pair).run(*peer_of(pair).up(ext=EXT), first, second, "alive 0 20000")
        assert answers[-1] == ["gone"]
        no_session(pair)
    pair.server.do("delay 0")
    assert pair.server.status()["srv_requests"] == before + 3
    pair.server.host.wait_log("an id that is in flight")
    good_client(pair)


@pytest.mark.soak
def test_small_fails_over(pair: Pair) -> None:
    """A path ends while its small write is with the server's user, whose data stays as it is; the same id
    on another path waits for it, and nothing of a read spoils it."""
    pair.server.do("delay 4000")
    peer, second = two_peers(pair)
    old, new = b"old" * 1000, b"new" * 1000
    up = [*peer.up(ext=EXT), "save 0", "mr m 8192",
          *second.up(path=2, base=2, first=False, ext=EXT)]
    # The first path breaks the protocol, with another id.
    answers = peer.run(*up, f"send 1 {small_write(0, 0, old)}",
                       f"send 1 {small(3, 1, '', 0)}", "alive 0 20000",
                       f"send 3 {small_write(0, 0, new)}", "recv 3 30000",
                       f"send 3 {small_read(0, 0, len(new), 'm')}", "recv 3 30000", "show m 0 3000")
    assert answers[12] == ["gone"]
    assert answers[14] == answers[16] == ["recv", "10000000", "-"]
    assert answers[-1] == ["show", new.hex()]
    no_session(pair)
    answers = peer.run(*up, f"send 1 {small_read(0, 0, 3000, 'm')}",
                       f"send 3 {small_write(0, 0, old)}", "recv 3 30000", "alive 0 500")
    assert answers[-2:] == [["recv", "10000000", "-"], ["alive"]]
    pair.server.do("delay 0")
    good_client(pair)


@pytest.mark.soak
def test_request_before_info(pair: Pair) -> None:
    peer = peer_of(pair)
    answers = peer.run(*peer.up()[:2], f"write 1 {imm(0, USR, DEPTH)} 0 0", "alive 0 20000")
    assert answers[-1] == ["gone"]
    good_client(pair)


@pytest.mark.soak
def test_id_in_flight(pair: Pair) -> None:
    """A second request with the id of one that is not answered: it is not taken for a new one."""
    pair.server.do("delay 3000")
    peer = peer_of(pair)
    off, write = echo_write(0, b"first" * 100)
    before = pair.server.status()["srv_requests"]
    answers = peer.run(*peer.up(),
                       *(f"write 1 {imm(i, off, DEPTH)} {i} 0 {write}" for i in range(DEPTH)),
                       f"write 1 {imm(0, off, DEPTH)} 0 0", "alive 0 20000")
    assert answers[-1] == ["gone"]
    pair.server.do("delay 0")
    assert pair.server.status()["srv_requests"] == before + DEPTH
    pair.server.host.wait_log("an id that is in flight")
    good_client(pair)


@pytest.mark.soak
def test_spoiled_request(pair: Pair) -> None:
    """While a read is with the server's user its buffer id comes on another path: the same read is
    done in its turn, another request, which lies where the first read's data goes, is not done."""
    pair.server.do("delay 6000")
    peer, second = two_peers(pair)
    off_r, read = echo_read(0, 500, "m")
    off_w, write = echo_write(0, b"other" * 100)
    up = [*peer.up(), "save 0", "mr m 8192", *second.up(path=2, base=2, first=False),
          f"write 1 {imm(0, off_r, DEPTH)} =0 500 {read}"]
    before = pair.server.status()["srv_requests"]
    answers = peer.run(*up, f"write 3 {imm(0, off_r, DEPTH)} 0 500 {read}", "recv 3 30000")
    assert answers[-1][:2] == ["recv", "10000000"]
    assert pair.server.status()["srv_requests"] == before + 2
    no_session(pair)
    answers = peer.run(*up, f"write 3 {imm(0, off_w, DEPTH)} 0 0 {write}", "alive 2 30000",
                       "alive 0 500")
    assert answers[-2:] == [["gone"], ["alive"]]
    assert pair.server.status()["srv_requests"] == before + 3
    pair.server.do("delay 0")
    good_client(pair)


@pytest.mark.soak
def test_header_rewritten(pair: Pair, rotation: str) -> None:
    """A client rewrites a request's header after the immediate that announced it. With new keys it
    cannot; with the same keys what is checked is what is done, whatever it is then."""
    pair.server.do("delay 6000")
    peer, second = two_peers(pair)
    off, write = echo_write(0, b"first" * 100)
    # The second waits for the first, and is looked at only then.
    up = [*peer.up(), "save 0", *second.up(path=2, base=2, first=False),
          f"write 1 {imm(0, off, DEPTH)} =0 0 {write}", f"write 3 {imm(0, off, DEPTH)} 0 0 {write}"]
    answers = peer.run(*up, f"write 3 - 0 500 {echo_hdr(ECHO_FAIL, 0, 500, serial=5)}",
                       "recv 3 30000", "alive 0 500")
    assert answers[-1] == ["alive"]
    if rotation == "Y":
        # Unless it is faster than the death of the key, which nobody minds.
        assert answers[-2][0] == ("gone" if answers[-3][0] == "failed" else "recv")
    else:
        # The server's user failed it with EIO, as it was told by the second header.
        assert answers[-2][:2] == ["recv", f"1{5 << 19:07x}"]
        no_session(pair)
        answers = peer.run(*up, f"write 3 - 0 {500 + USR} {write_hdr(0xFFFF)}", "alive 2 30000",
                           "alive 0 500")
        assert answers[-2:] == [["gone"], ["alive"]]
    pair.server.do("delay 0")
    good_client(pair)


@pytest.mark.soak
def test_keys(hosts: Hosts) -> None:
    """With rotation, the key of a request's chunk is dead before the server looks at a write, and the
    next is another; without, and with: no key is of use in another session."""
    pair = Pair(hosts(2, links=2, mem=768), "always_invalidate=Y", *SIZE)
    peer = peer_of(pair)
    off, write = echo_write(0, b"x" * 64)
    # While the request is worked on.
    pair.server.do("delay 2000")
    answers = peer.run(*peer.up(), "save 2", f"write 1 {imm(2, off, DEPTH)} 2 0 {write}",
                       "write 1 - =2 0 00", "alive 0 20000")
    assert answers[5] == ["sent"]
    assert answers[6][0] == "failed"
    assert answers[7] == ["gone"]
    pair.server.do("delay 0")
    no_session(pair)
    # Once it is answered.
    answers = peer.run(*peer.up(), "save 2", f"write 1 {imm(2, off, DEPTH)} 2 0 {write}",
                       "recv 1 20000", "write 1 - 2 0 00", "write 1 - =2 0 00", "alive 0 20000")
    assert answers[7] == ["sent"]
    assert answers[8][0] == "failed"
    assert answers[9] == ["gone"]

    # Many rounds: the keys are all over the place.
    commands = []
    for _ in range(40):
        commands += [f"write 1 {imm(2, off, DEPTH)} 2 0 {write}", "recv 1 20000"]
    answers = peer.run(*peer.up(), *commands)
    keys = [int(answer[3][8:10], 16) for answer in answers[5::2]]
    steps = {(b - a) % 256 for a, b in zip(keys, keys[1:])}
    assert len(keys) == 40
    assert 0 not in steps
    assert len(steps) > 10, keys

    answers = peer.run(*peer.up(), "save 1", *peer.up("b", sess=2, path=2, base=2),
                       "write 3 - 1 0 00", "write 3 - =1 0 00", "alive 2 20000", "alive 0 100")
    assert answers[9] == ["sent"]
    assert answers[10][0] == "failed"
    assert answers[11:] == [["gone"], ["alive"]]
    good_client(pair)
    pair.sound()
    pair.unload()


@pytest.mark.soak
def test_bad_read_key(pair: Pair) -> None:
    """A read into memory that is not there ends the path of the one who asked."""
    peer = peer_of(pair)
    off, read = echo_read(0, 512, "m")
    read = read.replace("{m.key}", "78563412")
    answers = peer.run(*peer.up(), "mr m 512", f"write 1 {imm(0, off, DEPTH)} 0 512 {read}",
                       "alive 0 20000")
    assert answers[-1] == ["gone"]
    good_client(pair)


# ---------------------------------------------------------------- paths

@pytest.mark.soak
def test_failover_waits_for_the_first(pair: Pair) -> None:
    """Paths are ended by the server while it owes answers: the client sends those requests again, with
    ids that the server still works on. Every byte is right, and nothing is done twice at a time."""
    pair.server.do("delay 400")
    pair.open(links=2)
    run = pair.client.host.start(pair.client.argv("run count=25 depth=12 size=20000"))
    paths = "/sys/class/rtrs-server/echo/paths"
    ends = 0
    while ends < 6 and run.poll() is None:
        name = f"ip:{pair.client.host.addr(ends % 2)}@ip:{pair.server.host.addr(ends % 2)}"
        pair.server.host.wait_file(f"{paths}/{name}/stats/rdma", r"[1-9]", timeout=60)
        pair.server.host.run(f"echo 1 >'{paths}/{name}/disconnect'")
        ends += 1
    run.wait(120, check=True)
    pair.client.do("close")
    assert ends >= 4


@pytest.mark.soak
def test_unplug_and_close_under_load(pair: Pair) -> None:
    """The server's device goes, comes back, then the server itself goes: requests find another path or
    fail, in the end nothing is left."""
    pair.server.do("delay 20")
    pair.open(links=2, options="timeout=60")
    run = pair.client.host.start(pair.client.argv("run count=60 depth=8 size=20000"))
    pair.server.host.run("sleep 1")
    nic = pair.server.host.nic(1)
    nic.rdma_del()
    pair.server.host.run("sleep 1")
    nic.rdma_add()
    run.wait(200, check=True)
    run = pair.client.host.start(pair.client.argv("run count=150 depth=8 size=20000"))
    pair.server.host.run("sleep 1")
    pair.server.do("unserve")
    status = pair.server.status()
    assert status["srv_sessions"] == 0
    assert status["srv_up"] == status["srv_down"]
    pair.server.do("serve")
    run.wait(120, check=True)
    pair.client.do("close")
    no_session(pair)


@pytest.mark.soak
def test_silent_client(hosts: Hosts) -> None:
    """A client of which nothing is heard, though its device acknowledges all, loses its path."""
    pair = Pair(hosts(2, links=2, mem=768), *SIZE)
    peer = peer_of(pair)
    answers = peer.run(*peer.up(), "recv 0 10000", "alive 0 15000", "alive 0 30000", timeout=120)
    assert answers[4][:2] == ["recv", "80000000"], "no heartbeat"
    assert answers[5:] == [["alive"], ["gone"]]
    good_client(pair)
    pair.sound()
    pair.unload()


@pytest.mark.soak
def test_admission(hosts: Hosts) -> None:
    """What a host, and all of them, may have is bounded; refusals say why."""
    pair = Pair(hosts(2, links=2, mem=768), "max_sessions=2", *SIZE)
    params = "/sys/module/rtrs_server/parameters"
    server = pair.server.host
    peer = peer_of(pair)
    answers = peer.run(*peer.up("a", sess=1, path=1), *peer.up("b", sess=2, path=2, base=2),
                       peer.connect(4, conn_req(sess=3, path=3)),
                       peer.connect(5, conn_req(sess=2, path=4, first=False)))
    assert conn_rsp(answers[8][1])[0] == -errno.EUSERS
    assert answers[9][0] == "connected"
    server.wait_log("has 2 sessions already")
    # A session has 12 times 64 KiB and a bit.
    server.write(f"{params}/max_sessions", "0")
    no_session(pair)
    server.write(f"{params}/max_memory", "2")
    answers = peer.run(*peer.up("a", sess=1, path=1), *peer.up("b", sess=2, path=2, base=2),
                       peer.connect(4, conn_req(sess=3, path=3)))
    assert answers[7][0] == "chunks"
    assert conn_rsp(answers[8][1])[0] == -errno.ENOMEM
    server.wait_log("max_memory is the limit")
    no_session(pair)
    for name, value in (("max_chunk_size", "5000"), ("max_chunk_size", "4096"),
                        ("sess_queue_depth", "0"), ("sess_queue_depth", "70000")):
        assert server.run(f"echo {value} >{params}/{name}", check=False).status != 0
    server.write(f"{params}/max_memory", "0")
    good_client(pair)
    pair.sound()
    pair.unload()


@pytest.mark.soak
def test_stale_session(hosts: Hosts) -> None:
    """A client that has no path left starts the session anew: what the server still has of it goes first,
    but only if nothing is heard there."""
    pair = Pair(hosts(2, links=2, mem=768), *SIZE)
    peer = peer_of(pair)
    answers = peer.run(*peer.up(), peer.connect(2, conn_req(path=2)), "write 0 90000000 0 0",
                       peer.connect(3, conn_req(path=2)), "alive 0 100",
                       peer.connect(4, conn_req(path=1, recon=1)), "alive 0 20000",
                       "sleep 1000",
                       *peer.up("other", sess=5, path=5, base=5), peer.connect(7, conn_req(sess=5, path=6)),
                       "sleep 6000", peer.connect(8, conn_req(sess=5, path=6)), "alive 5 20000",
                       "sleep 1000", peer.connect(9, conn_req(sess=5, path=6)))
    assert conn_rsp(answers[4][1])[0] == -errno.EBUSY
    assert answers[6][0] == "connected"
    assert answers[7] == ["alive"]
    # The path itself, reconnected: that the client has given it up is certain.
    assert conn_rsp(answers[8][1])[0] == -errno.EBUSY
    assert answers[9] == ["gone"]
    assert conn_rsp(answers[15][1])[0] == -errno.EBUSY
    assert conn_rsp(answers[17][1])[0] == -errno.EBUSY
    assert answers[18] == ["gone"]
    assert answers[20][0] == "connected"
    # Each was told to the user once, but for the last one, which did not come up.
    no_session(pair)
    status = pair.server.status()
    assert (status["srv_up"], status["srv_down"]) == (2, 2)
    good_client(pair)
    pair.sound()
    pair.unload()
