# SPDX-License-Identifier: GPL-2.0-only
"""Hosts with RNBD: disks, exports, mappings. Each role by our modules or by mainline's."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable
from typing import Any

from railvm import CommandFailed, Host

CONFIG = "/sys/kernel/config"
EXPORTS = f"{CONFIG}/rnbd/exports"
MAP = "/sys/class/rnbd-client/ctl/map_device"
LINKS = "/sys/class/rnbd-client/ctl/devices"
DEVICES = "/sys/class/rnbd-server/ctl/devices"


def write(host: Host, path: str, text: str, timeout: float = 60) -> None:
    """Write to a file of sysfs; bash says with which error it failed, dash does not."""
    host.run(["/bin/bash", "-c", 'printf "%s\\n" "$1" >"$2"', "sh", text, path], timeout=timeout)


def refused(host: Host, path: str, text: str, code: int, timeout: float = 60) -> None:
    """Writing must fail with this errno."""
    try:
        write(host, path, text, timeout)
    except CommandFailed as error:
        assert os.strerror(code) in str(error), error
    else:
        raise AssertionError(f"{path}: {text}: no {os.strerror(code)}")


def mount_configfs(host: Host) -> None:
    host.run(f"mountpoint -q {CONFIG} || {{ modprobe configfs; "
             f"mount -t configfs none {CONFIG}; }}")


def null_disk(host: Host, number: int, mib: int, **attrs: Any) -> str:
    """A disk of null_blk that keeps what is written."""
    host.modprobe("null_blk", "nr_devices=0")
    path = f"{CONFIG}/nullb/nullb{number}"
    host.run(["mkdir", path])
    for attr, value in {"size": mib, "memory_backed": 1, **attrs, "power": 1}.items():
        write(host, f"{path}/{attr}", str(value))
    return f"/dev/nullb{number}"


class Server:
    """A host that has disks."""

    def __init__(self, host: Host, *, ours: bool = True, rotate: bool = True,
                 search: str | None = None, depth: int = 0, port: int = 0,
                 link: int = 0) -> None:
        self.host = host
        self.ours = ours
        self.addr = host.addr(link)
        self.nullb = 0
        mount_configfs(host)
        params = [f"always_invalidate={'Y' if rotate else 'N'}"]
        if depth:
            params.append(f"sess_queue_depth={depth}")
        mine = [f"dev_search_path={search}"] if search else []
        if port:
            mine.append(f"port_nr={port}")
        if ours:
            host.modprobe_rail("rtrs-server", *params)
            host.modprobe_rail("rnbd-server", *mine)
        else:
            host.modprobe("rtrs-server", *params)
            host.modprobe("rnbd-server", *mine)

    def ram(self, count: int = 1, mib: int = 32) -> list[str]:
        self.host.modprobe("brd", f"rd_nr={count}", f"rd_size={mib * 1024}")
        return [f"/dev/ram{n}" for n in range(count)]

    def loop(self, mib: int = 32, block: int = 512) -> str:
        """A disk with a volatile cache that can discard and write zeroes; kept in memory."""
        self.host.modprobe("loop")
        return self.host.run(f"f=$(mktemp /dev/shm/disk.XXXXXX) && truncate -s {mib}M $f && "
                             f"losetup --show -f -b {block} $f").stdout.strip()

    def null(self, mib: int = 32, **attrs: Any) -> str:
        """A disk of null_blk that keeps what is written; it can be pulled out."""
        self.nullb += 1
        return null_disk(self.host, self.nullb - 1, mib, **attrs)

    def export(self, name: str, device: str, *, access: str = "rw",
               allow: Iterable[str] = ("*",), enable: bool = True) -> str:
        path = f"{EXPORTS}/{name}"
        self.host.run(["mkdir", path])
        write(self.host, f"{path}/device_path", device)
        write(self.host, f"{path}/access", access)
        for rule in allow:
            self.host.run(["mkdir", f"{path}/allowed_clients/{rule}"])
        if enable:
            write(self.host, f"{path}/enable", "1")
        return path

    def unexport(self, name: str) -> None:
        self.host.run(f"rmdir {EXPORTS}/{name}/allowed_clients/* 2>/dev/null; "
                      f"rmdir {EXPORTS}/{name}")

    def clear(self) -> None:
        """No exports, no modules of RNBD."""
        self.host.run(f"for e in {EXPORTS}/*/; do [ -d $e ] || continue; "
                      "rmdir $e/allowed_clients/*/ 2>/dev/null; rmdir $e; done")
        self.host.rmmod("rnbd-server", "rtrs-server")
        self.host.run("losetup -D; rm -f /dev/shm/disk.*; modprobe -r brd; modprobe -r loop; "
                      f"for d in {CONFIG}/nullb/*/; do [ ! -d $d ] || rmdir $d; done; "
                      "modprobe -r null_blk", check=False)

    def sum(self, device: str) -> str:
        """Checksum of all that is on a disk, past any cache."""
        return self.host.run(f"blockdev --flushbufs {device}; md5sum <{device}",
                             timeout=120).stdout.split()[0]


class Client:
    """A host that maps disks."""

    def __init__(self, host: Host, server: Server, *, ours: bool = True,
                 sess: str = "s1") -> None:
        self.host = host
        self.server = server
        self.ours = ours
        self.sess = sess
        if ours:
            host.modprobe_rail("rnbd-client")
        else:
            host.modprobe("rnbd-client")

    def words(self, device: str, **options: Any) -> str:
        paths = options.pop("paths", [f"ip:{self.server.addr}"])
        options = {"sessname": self.sess, **options}
        return " ".join([*[f"{name}={value}" for name, value in options.items()],
                         *[f"path={path}" for path in paths], f"device_path={device}"])

    def map(self, device: str, **options: Any) -> Disk:
        write(self.host, MAP, self.words(device, **options))
        link = f"{LINKS}/{device.replace('/', '!')}@{options.get('sessname', self.sess)}"
        name = self.host.run(["readlink", "-f", link]).stdout.strip().rsplit("/", 1)[1]
        return Disk(self, name)

    def refused(self, device: str, code: int, **options: Any) -> None:
        refused(self.host, MAP, self.words(device, **options), code)

    def clear(self) -> None:
        self.host.rmmod("rnbd-client", "rtrs-client")


class Raw:
    """A client that says anything to a server (tests/modules/rail_rnbd_raw)."""

    dir = "/sys/kernel/debug/rail_rnbd_raw"

    def __init__(self, host: Host, server: Server, sess: str = "raw") -> None:
        self.host = host
        host.modprobe_rail("rail_rnbd_raw")
        write(host, f"{self.dir}/control", f"open {sess} ip:{server.addr}")

    def send(self, way: str, usr: bytes, size: int = 0, code: int = 0) -> bytes:
        """Send a user header; the server must answer with this errno. What a read got."""
        command = f"{way} {size} {usr.hex()}"
        if code:
            refused(self.host, f"{self.dir}/control", command, code)
            return b""
        write(self.host, f"{self.dir}/control", command)
        return self.host.get(f"{self.dir}/data")[:size]

    def open(self, name: str, access: int = 1, code: int = 0) -> int:
        """The id of a device."""
        usr = struct.pack("<HHBB255s3x", 2, 0, access, 0, name.encode())
        rsp = self.send("read", usr, 56, code)
        return struct.unpack_from("<HHI", rsp)[2] if rsp else 0

    def io(self, device: int, op: int, sector: int = 0, size: int = 512, *, data: int | None = None,
           flags: int = 0, code: int = 0) -> bytes:
        usr = struct.pack("<HHIQIIH6x", 4, 0, device, sector, op | flags, size, 0)
        if data is None:
            data = size if op < 2 else 0
        return self.send("read" if op in (0, 2) else "write", usr, data, code)

    def clear(self) -> None:
        self.host.rmmod("rail_rnbd_raw", "rtrs-client")


class Disk:
    """A mapped disk."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.host = client.host
        self.name = name
        self.dev = f"/dev/{name}"
        self.dir = f"/sys/block/{name}"

    def attr(self, name: str) -> str:
        return self.host.read(f"{self.dir}/rnbd/{name}").strip()

    def set(self, name: str, value: str = "1") -> None:
        write(self.host, f"{self.dir}/rnbd/{name}", value)

    def queue(self, name: str) -> str:
        return self.host.read(f"{self.dir}/queue/{name}").strip()

    def sectors(self) -> int:
        return int(self.host.read(f"{self.dir}/size"))

    def unmap(self, how: str = "normal") -> None:
        self.set("unmap_device", how)

    def stats(self) -> dict[str, int]:
        path = f"/sys/kernel/debug/rail/rnbd-client/{self.name}/io.json"
        # In one read: they change meanwhile.
        counters: dict[str, int] = json.loads(self.host.run(["cat", path]).stdout)["counters"]
        return counters

    def sum(self) -> str:
        return self.host.run(f"md5sum <{self.dev}", timeout=120).stdout.split()[0]

    def fio(self, *args: str, timeout: float = 120) -> None:
        """Load whose data is verified."""
        self.host.run(self.fio_command(*args), timeout=timeout)

    def fio_command(self, *args: str) -> list[str]:
        return ["fio", "--name=x", f"--filename={self.dev}", "--direct=1", "--ioengine=libaio",
                "--verify=crc32c", "--verify_fatal=1", "--group_reporting",
                # Where a disk has gone it would make a file of its name.
                "--allow_file_create=0", *args]
