# SPDX-License-Identifier: GPL-2.0-only
"""Kernels from the cache, and what is derived from them: initramfs and module trees."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import shutil
import struct
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
TOOLS = TOP / "build" / "tools"
PYTHON = "/usr/bin/python3"
GUEST_INIT = Path(__file__).with_name("guest_init.sh")
GUEST_INIT_DISK = Path(__file__).with_name("guest_init_disk.sh")
GUEST_AGENT = Path(__file__).with_name("guest_agent.py")
# A file system with a clean Debian and the packages; scripts/test-deb makes it.
IMAGE = TOP / "build" / "deb" / "host.img"

# What it takes to reach the machine's root and the agent's port.
BOOT_MODULES = ("virtio_pci", "virtio_console", "9p", "9pnet_virtio", "overlay", "virtio_net")
# The same where the root is a disk.
DISK_MODULES = ("virtio_pci", "virtio_console", "virtio_blk", "crc32c_generic", "ext4",
                "virtio_net")
# Module trees of builds that nobody has booted for this long are removed.
STALE_AFTER = 2 * 24 * 3600

KNOWN = ("stock-6.1", "stock-6.12", "test-7")

# Which modules a host finds with modprobe: the in-tree ones with our test
# build or our release build before them, or with the in-tree peers that the
# kernel itself lacks.
SOURCES = ("test", "all", "release", "packages", "in-tree")


class KernelMissing(Exception):
    """The kernel is not in the cache; the message says how to get it there."""


def cache_root() -> Path:
    override = os.environ.get("RAIL_CACHE")
    if override:
        return Path(override).resolve()
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base).resolve() / "rail"


@dataclass(frozen=True)
class Kernel:
    name: str
    directory: Path
    release: str
    key: str

    @property
    def vmlinuz(self) -> Path:
        return self.directory / "vmlinuz"

    @property
    def modules(self) -> Path:
        return self.directory / "root" / "lib" / "modules" / self.release

    @property
    def instrumented(self) -> bool:
        """Built with KASAN, lockdep and kmemleak, hence several times slower."""
        return self.name.startswith("test")

    @property
    def rxe_needs_carrier(self) -> bool:
        """From 7 on rxe takes a packet the network did not take for the end of its QP. Without a
        carrier that happens to the CM's own QP too, and only a new rxe device has another one."""
        return int(self.release.partition(".")[0]) >= 7


def find(name: str) -> Kernel:
    link = cache_root() / "kernels" / name
    try:
        # Resolved once, so that a rebuild does not change a running session.
        directory = link.resolve(strict=True)
        key = (directory / "complete").read_text().strip()
        release = (directory / "release").read_text().strip()
    except OSError:
        raise KernelMissing(
            f"kernel {name} is not in the cache ({link}): run scripts/kernel ensure {name}"
        ) from None
    return Kernel(name, directory, release, key or directory.name)


def build_dir(kernel: Kernel, source: str) -> Path:
    if source == "in-tree":
        return kernel.directory / "peers"
    if source == "packages":
        return TOP / "build" / "deb" / "modules" / kernel.release
    suffix = "" if source == "release" else f"-{source}"
    return TOP / "build" / f"{kernel.release}{suffix}"


def our_modules(kernel: Kernel, source: str) -> set[str]:
    """The names, as the kernel shows them, of the modules of a build."""
    build = build_dir(kernel, source)
    return {_stem(str(path)) for path in build.rglob("*.ko")} if build.is_dir() else set()


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:16]


# -- boot image --------------------------------------------------------------

_DECOMPRESS: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": lambda data: zlib.decompressobj(wbits=31).decompress(data),
    b"\xfd7zXZ": lambda data: lzma.LZMADecompressor().decompress(data),
    b"BZh": lambda data: bz2.BZ2Decompressor().decompress(data),
    b"\x28\xb5\x2f\xfd": lambda data: _pipe(["zstd", "-dcq"], data),
    b"\x02\x21\x4c\x18": lambda data: _pipe(["lz4", "-dcq"], data),
}


def _pipe(command: list[str], data: bytes) -> bytes:
    return subprocess.run(command, input=data, check=True, capture_output=True,
                          timeout=60).stdout


def boot_image(kernel: Kernel) -> Path:
    """What QEMU is to boot: the kernel as it is in memory where that can be had.

    To unpack a bzImage takes an emulated CPU as long as the rest of the boot.
    QEMU starts an ELF image through its PVH entry; one without it, or packed
    in a way for which there is no tool here, boots as the bzImage it is.
    """
    key = _digest([str(kernel.directory).encode(), kernel.key.encode()])
    target = cache_root() / "vm" / f"vmlinux-{kernel.name}-{key}"
    if not target.exists():
        image = _unpack(kernel.vmlinuz.read_bytes())
        if image is None or not _has_pvh_entry(image):
            image = b""  # remembered, so as not to unpack at each boot
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(target.parent, f"vmlinux-{kernel.name}-*")
        with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
            file.write(image)
        os.replace(file.name, target)
    os.utime(target)
    return target if target.stat().st_size else kernel.vmlinuz


def _unpack(image: bytes) -> bytes | None:
    """The ELF kernel in a bzImage (boot protocol 2.08 and later)."""
    if image[0x202:0x206] != b"HdrS":
        return None
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    payload = image[start:start + length]
    for magic, decompress in _DECOMPRESS.items():
        if payload.startswith(magic):
            try:
                # The last four bytes are the unpacked size.
                return decompress(payload[:-4])
            except (OSError, subprocess.SubprocessError, lzma.LZMAError, zlib.error):
                return None
    return None


def _has_pvh_entry(image: bytes) -> bool:
    if image[:5] != b"\x7fELF\x02":
        return False
    table, = struct.unpack_from("<Q", image, 0x20)
    size, count = struct.unpack_from("<HH", image, 0x36)
    for index in range(count):
        kind, _, start, _, _, length = struct.unpack_from("<IIQQQQ", image, table + index * size)
        position, end = start, start + length
        while kind == 4 and position + 12 <= end:  # PT_NOTE
            name_size, data_size, note = struct.unpack_from("<III", image, position)
            name = image[position + 12:position + 12 + name_size]
            if name == b"Xen\0" and note == 18:  # XEN_ELFNOTE_PHYS32_ENTRY
                return True
            position += 12 + (name_size + 3) // 4 * 4 + (data_size + 3) // 4 * 4
    return False


# -- initramfs -------------------------------------------------------------


def _cpio(entries: Iterable[tuple[str, int, bytes]]) -> bytes:
    """A newc archive of (name, mode, content); the kernel unpacks several in a row."""
    out = bytearray()
    for number, (name, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        path = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
        out += b"070701" + b"".join(b"%08x" % field for field in fields) + path
        out += bytes(-len(out) % 4) + data
        out += bytes(-len(out) % 4)
    return bytes(out)


def _read_module(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dcq", path], check=True, capture_output=True).stdout
    return data


def _stem(path: str) -> str:
    return Path(path).name.split(".ko")[0].replace("-", "_")


def _boot_modules(kernel: Kernel, names: Iterable[str]) -> list[Path]:
    """The modules needed to boot, each after those it depends on."""
    depends: dict[str, tuple[str, list[str]]] = {}
    for line in (kernel.modules / "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        depends[_stem(path)] = (path, rest.split())
    builtin = {_stem(line) for line in
               (kernel.modules / "modules.builtin").read_text().split()}
    ordered: dict[str, None] = {}
    for name in names:
        if name in depends:
            path, needs = depends[name]
            # modules.dep lists what to load first last.
            for needed in [*reversed(needs), path]:
                ordered.setdefault(needed)
        elif name not in builtin:
            raise KernelMissing(
                f"kernel {kernel.name} ({kernel.release}) has no {name}, which a virtual host "
                f"needs: build it with scripts/kernel/test-7.config"
            )
    return [kernel.modules / path for path in ordered]


def _busybox() -> Path:
    found = shutil.which("busybox", path=os.environ.get("PATH", "") + ":/bin:/usr/bin")
    if found is None:
        raise FileNotFoundError("busybox is not installed: run scripts/setup")
    return Path(found)


def initramfs(kernel: Kernel, disk: bool = False) -> Path:
    """The part of the initramfs that all hosts with this kernel share, or all those with a disk."""
    init, names = (GUEST_INIT_DISK, DISK_MODULES) if disk else (GUEST_INIT, BOOT_MODULES)
    busybox = _busybox()
    stat = busybox.stat()
    key = _digest([
        str(kernel.directory).encode(), kernel.key.encode(), init.read_bytes(),
        f"{stat.st_size} {stat.st_mtime_ns} {names}".encode(),
        Path(__file__).read_bytes(),
    ])
    target = cache_root() / "vm" / f"initramfs-{kernel.name}-{key}"
    if target.exists():
        return target
    modules = [(path.name.split(".ko")[0] + ".ko", _read_module(path))
               for path in _boot_modules(kernel, names)]
    directories = ("bin", "dev", "proc", "sys", "rw", "lower", "new", "modules")
    entries: list[tuple[str, int, bytes]] = [(name, 0o40755, b"") for name in directories]
    entries.append(("bin/busybox", 0o100755, busybox.read_bytes()))
    entries.append(("init", 0o100755, init.read_bytes()))
    entries.append(("modules.list", 0o100644,
                    "".join(f"{name}\n" for name, _ in modules).encode()))
    entries.extend((f"modules/{name}", 0o100644, data) for name, data in modules)
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale(target.parent, f"initramfs-{kernel.name}-*")
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
        # Not compressed: to unpack it would cost an emulated CPU more than to load it.
        file.write(_cpio(entries))
    os.replace(file.name, target)
    return target


def host_initramfs(kernel: Kernel, settings: dict[str, str], target: Path,
                   disk: bool = False) -> None:
    """The shared initramfs followed by the settings of one host."""
    quoted = {name: "'" + value.replace("'", "'\\''") + "'" for name, value in settings.items()}
    conf = "".join(f"{name}={value}\n" for name, value in quoted.items()).encode()
    entries = [("rail.conf", 0o100644, conf)]
    if disk:
        entries.append(("agent.py", 0o100644, GUEST_AGENT.read_bytes()))
    shared = initramfs(kernel, disk)
    shutil.copyfile(shared, target)
    os.utime(shared)
    with target.open("ab") as file:
        file.write(_cpio(entries))


# -- module trees ----------------------------------------------------------


def module_tree(kernel: Kernel, source: str) -> Path:
    """A /lib/modules/<release> in which modprobe finds ours before the in-tree ones.

    It consists of links into the kernel's tree and into the build, and of
    indices made here, on the machine: depmod inside a host would take minutes.
    """
    build = build_dir(kernel, source)
    ours = sorted(build.rglob("*.ko")) if build.is_dir() else []
    if not ours:
        return kernel.modules
    stamps = [f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}".encode()
              for path in ours]
    key = _digest([str(kernel.directory).encode(), kernel.key.encode(), *stamps])
    target = cache_root() / "vm" / f"modules-{kernel.name}-{key}"
    tree = target / "lib" / "modules" / kernel.release
    if tree.is_dir():
        os.utime(target)
        return tree
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale(target.parent, f"modules-{kernel.name}-*")
    work = Path(tempfile.mkdtemp(prefix=".modules-", dir=target.parent))
    try:
        work.chmod(0o755)
        draft = work / "lib" / "modules" / kernel.release
        (draft / "updates").mkdir(parents=True)
        for item in kernel.modules.iterdir():
            if item.name == "kernel":
                (draft / item.name).symlink_to(item)
            elif item.name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
                shutil.copyfile(item, draft / item.name)
        for path in ours:
            link = draft / "updates" / path.name
            if link.is_symlink():
                raise RuntimeError(
                    f"two modules are called {path.name} under {build}: remove the stale one")
            link.symlink_to(path)
        conf = work / "depmod.conf"
        conf.write_text("search updates built-in\n")
        subprocess.run([_tool("depmod"), "-C", conf, "-b", work, kernel.release], check=True,
                       timeout=120, capture_output=True, text=True)
        try:
            work.rename(target)
        except OSError:
            if not tree.is_dir():  # else another session was quicker
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return tree


def _tool(name: str) -> str:
    """A system tool; the PATH of a plain user leaves out sbin."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if found is None:
        raise FileNotFoundError(f"{name} is not installed: run scripts/setup")
    return found


def _remove_stale(directory: Path, pattern: str) -> None:
    limit = time.time() - STALE_AFTER
    for path in directory.glob(pattern):
        try:
            if path.stat().st_mtime < limit:
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()
        except OSError:
            continue
