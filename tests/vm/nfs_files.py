#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Works on a mount from inside a virtual host, in one process since forks are slow there, and looks
whether what comes back is what went.

    nfs_files.py DIR [SEED]          once; prints "NAME SHA256" of each file, for the server to agree
    nfs_files.py DIR SEED --load     over and over: "round N" after each, until /run/stop is there
    nfs_files.py DIR --make COUNT    make so many files in a new directory
    nfs_files.py DIR --list COUNT    find those, and no others
    nfs_files.py FILE --mix COUNT    so many random writes, reads, cuts and holes
    nfs_files.py FILE --acl COUNT    give it an ACL of so many users, and read that back
    nfs_files.py FILE --xattr BYTES  give it a user attribute of that size, and read that back
"""

import ctypes
import hashlib
import mmap
import os
import random
import struct
import sys

# Around the inline thresholds, a page, a region of memory, and odd ones.
SIZES = (1, 3, 1000, 2900, 3900, 4095, 4096, 4097, 65536, 1048577)
NAMES = 100
LINK = "directory/" * 300


def content(seed: int, size: int) -> bytes:
    return random.Random(seed * 4000037 + size).randbytes(size)


def forget() -> None:
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("3")


def save(path: str, data: bytes, at: int = 0) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        while at < len(data):
            at += os.pwrite(fd, data[at:], at)
        os.fsync(fd)
    finally:
        os.close(fd)


def same(path: str, data: bytes) -> None:
    with open(path, "rb") as file:
        got = file.read()
    if got != data:
        wrong = next((i for i, (a, b) in enumerate(zip(got, data)) if a != b), None)
        raise SystemExit(f"{path}: {len(got)} of {len(data)} bytes, first wrong one at {wrong}")


def files(top: str, seed: int) -> None:
    for size in SIZES:
        save(f"{top}/f{size}", content(seed, size))
    forget()
    for size in SIZES:
        data = content(seed, size)
        same(f"{top}/f{size}", data)
        print(f"f{size}", hashlib.sha256(data).hexdigest())


def direct(top: str, seed: int) -> None:
    """Past the page cache, at odd places and in odd sizes."""
    data = content(seed, 1 << 20)
    save(f"{top}/direct", data)
    fd = os.open(f"{top}/direct", os.O_RDWR | os.O_DIRECT)
    with mmap.mmap(-1, 1 << 20) as memory:
        for at, size in ((0, 1 << 19), (4096, 12288), (512, 1536), (1 << 19, 1 << 19)):
            memory[:size] = content(seed + 1, size)
            if os.pwritev(fd, [memoryview(memory)[:size]], at) != size:
                raise SystemExit("short write")
            data = data[:at] + content(seed + 1, size) + data[at + size:]
        if os.preadv(fd, [memory], 0) != len(data) or memory[:] != data:
            raise SystemExit("O_DIRECT: other data")
    os.close(fd)
    forget()
    same(f"{top}/direct", data)


def mapped(top: str, seed: int) -> None:
    data = content(seed, 300000)
    with open(f"{top}/mapped", "w+b") as file:
        file.truncate(len(data))
        with mmap.mmap(file.fileno(), len(data)) as memory:
            memory[:] = data
    forget()
    same(f"{top}/mapped", data)


def many(count: int) -> set[str]:
    return {f"a-rather-long-name-of-a-file-{i}" for i in range(count)}


def make(where: str, count: int) -> None:
    os.mkdir(where)
    for name in many(count):
        os.mknod(f"{where}/{name}")


def listed(where: str, count: int) -> None:
    forget()
    got = os.listdir(where)
    if len(got) != count or set(got) != many(count):
        raise SystemExit(f"{where}: {len(got)} names, of {count}")


def names(top: str) -> None:
    where = f"{top}/names"
    wanted = many(NAMES)
    make(where, NAMES)
    os.symlink("short", f"{where}/short")
    os.symlink(LINK, f"{where}/long")
    forget()
    with os.scandir(where) as entries:
        got = {entry.name for entry in entries if entry.stat(follow_symlinks=False).st_nlink}
    if got != wanted | {"short", "long"}:
        raise SystemExit(f"{where}: other names: {got ^ wanted}")
    if os.readlink(f"{where}/long") != LINK or os.readlink(f"{where}/short") != "short":
        raise SystemExit("another link")
    for name in got:
        os.unlink(f"{where}/{name}")
    os.rmdir(where)


def mix(path: str, count: int, most: int = 300000) -> None:
    """Against a copy in memory, as fsx(8) does."""
    rand = random.Random(count)
    model = bytearray()
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    straight = os.open(path, os.O_RDWR | os.O_DIRECT)
    memory = mmap.mmap(-1, most)
    for step in range(count):
        at, size = rand.randrange(most), rand.randrange(1, 1 << rand.randrange(1, 18))
        size = min(size, most - at)
        # One after the other: who mixes them may get old data, by TCP too (Linux 6.1).
        if step == count // 2:
            os.fsync(fd)
            forget()
        what = rand.choice(("write", "write", "mapped", "cut", "hole", "forget", "sync")
                           + ("read",) * 4 if step < count // 2 else
                           ("direct", "direct", "cut", "hole", "read direct", "read direct"))
        data = rand.randbytes(size)
        if what in ("write", "direct", "mapped"):
            model.extend(bytes(max(0, at + size - len(model))))
            model[at:at + size] = data
        if what == "write":
            os.pwrite(fd, data, at)
        elif what == "direct":
            memory[:size] = data
            if os.pwritev(straight, [memoryview(memory)[:size]], at) != size:
                raise SystemExit(f"step {step}: short write")
        elif what == "mapped":
            os.ftruncate(fd, len(model))
            with mmap.mmap(fd, len(model)) as view:
                view[at:at + size] = data
        elif what == "cut":
            del model[at:]
            model.extend(bytes(at - len(model)))
            os.ftruncate(fd, at)
        elif what == "hole" and at < len(model):
            size = min(size, len(model) - at)
            # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE; before NFS 4.2 there are none.
            if not libc.fallocate(fd, 3, ctypes.c_long(at), ctypes.c_long(size)):
                model[at:at + size] = bytes(size)
        elif what == "forget":
            forget()
        elif what == "sync":
            os.fsync(fd)
        elif what.startswith("read"):
            got = os.pread(fd, size, at)
            if what == "read direct":
                got = bytes(memory[:os.preadv(straight, [memoryview(memory)[:size]], at)])
            if got != model[at:at + size]:
                wrong = next((i for i, (a, b) in enumerate(zip(got, model[at:at + size])) if a != b),
                             None)
                raise SystemExit(f"step {step}: {what} of {size} at {at} of {len(model)}: "
                                 f"{len(got)} bytes, first wrong one at {wrong}")
    os.fsync(fd)
    forget()
    same(path, bytes(model))
    print(os.path.basename(path), hashlib.sha256(model).hexdigest())


def acl(path: str, count: int) -> None:
    def entry(tag: int, who: int = 0xffffffff) -> bytes:
        return struct.pack("<HHI", tag, 4, who)

    value = struct.pack("<I", 2) + entry(1)
    value += b"".join(entry(2, 1000 + i) for i in range(count))
    value += entry(4) + entry(16) + entry(32)
    os.setxattr(path, "system.posix_acl_access", value)
    forget()
    if os.getxattr(path, "system.posix_acl_access") != value:
        raise SystemExit("another ACL")


def xattr(path: str, size: int) -> None:
    value = content(size, size)
    os.setxattr(path, "user.rail", value)
    forget()
    # As getfattr(1) does. os.getxattr() tries a short buffer first, and the client offers the server
    # no more than that: by RDMA the answer to too short a one is an error, and not ERANGE.
    libc = ctypes.CDLL(None, use_errno=True)
    length = libc.getxattr(path.encode(), b"user.rail", None, 0)
    got = ctypes.create_string_buffer(max(length, 1))
    if libc.getxattr(path.encode(), b"user.rail", got, length) != size:
        raise SystemExit(os.strerror(ctypes.get_errno()))
    if got.raw != value:
        raise SystemExit("another attribute")


def load(top: str, seed: int) -> None:
    count = 0
    while not os.path.exists("/run/stop"):
        for size in (4097, 65536, 300001):
            save(f"{top}/load{size}", content(seed + count, size))
        forget()
        for size in (4097, 65536, 300001):
            same(f"{top}/load{size}", content(seed + count, size))
        count += 1
        print("round", count, flush=True)


def main(path: str, *rest: str) -> None:
    if rest[:1] == ("--acl",):
        acl(path, int(rest[1]))
    elif rest[:1] == ("--mix",):
        mix(path, int(rest[1]))
    elif rest[:1] == ("--make",):
        make(path, int(rest[1]))
    elif rest[:1] == ("--list",):
        listed(path, int(rest[1]))
    elif rest[:1] == ("--xattr",):
        xattr(path, int(rest[1]))
    elif rest[1:] == ("--load",):
        load(path, int(rest[0]))
    else:
        seed = int(rest[0]) if rest else 1
        files(path, seed)
        direct(path, seed)
        mapped(path, seed)
        names(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
