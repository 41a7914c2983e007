# SPDX-License-Identifier: GPL-2.0-only
"""An NFS server and its mounts on virtual hosts: set up, used, torn down.

    server = NfsServer(b)
    server.start()
    mount = server.mount(a, "vers=4.2")
    ...
    mount.umount()
    server.stop()
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from railvm import SOAK, Host
from railvm.agent import Process

FILES = Path(__file__).with_name("nfs_files.py")

PORT = 20049
EXPORT = "/srv/nfs"
EXPORT_OPTIONS = "rw,no_root_squash,insecure,no_subtree_check,fsid=0"

_PREPARE = """
mkdir -p /run/rpcbind {export}
for dir in /var/lib/nfs {export}; do
    mountpoint -q "$dir" || mount -t tmpfs -o size={size},mode=0755 tmpfs "$dir"
done
mkdir -p /var/lib/nfs/sm /var/lib/nfs/sm.bak /var/lib/nfs/v4recovery /var/lib/nfs/rpc_pipefs
touch /var/lib/nfs/etab /var/lib/nfs/rmtab /var/lib/nfs/xtab
modprobe -a nfsd lockd
# While somebody might have locks to reclaim no delegations are given. lockd rounds the period up to
# a multiple of its timeout, whose least is 3 s.
echo 3 >/proc/sys/fs/nfs/nlm_timeout
echo 3 >/proc/sys/fs/nfs/nlm_grace_period
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
mountpoint -q /var/lib/nfs/rpc_pipefs ||
    mount -t rpc_pipefs sunrpc /var/lib/nfs/rpc_pipefs
rpcinfo -p 127.0.0.1 >/dev/null 2>&1 || rpcbind -w
rpcinfo -u 127.0.0.1 mountd >/dev/null 2>&1 || rpc.mountd
"""


def often(host: Host, soak: int, few: int) -> int:
    """How many rounds: the many of a soak are not for a kernel that takes four times as long."""
    return soak if SOAK and not host.kernel.instrumented else few


def work(host: Host, path: str, *args: str, timeout: float = 100) -> str:
    """What nfs_files.py says, having been content with all it saw."""
    return host.run(["/usr/bin/python3", str(FILES), path, *args], timeout=timeout).stdout


def agree(server: Host, sums: str, where: str = EXPORT) -> None:
    """The server has the same bytes, by a way that does not lead through us."""
    wanted = {name: digest for name, digest in map(str.split, sums.splitlines())}
    there = server.run(["sha256sum", *(f"{where}/{name}" for name in wanted)]).stdout
    assert dict(zip(wanted, (line.split()[0] for line in there.splitlines()))) == wanted


class Load:
    """Files written and read over and over, each looked at."""

    def __init__(self, host: Host, where: str, seed: int = 1, *, wait: bool = True) -> None:
        host.run("rm -f /run/stop")
        self.host = host
        self.process = host.start(["/usr/bin/python3", str(FILES), where, str(seed), "--load"])
        if wait:
            self.more(1)

    def rounds(self) -> int:
        return self.process.stdout.count("round")

    def more(self, count: int = 2, timeout: float = 60) -> None:
        """Wait until it has made so many rounds from now on."""
        self.process.wait_output(rf"round {self.rounds() + count}\b", timeout)

    def stop(self, timeout: float = 60) -> None:
        self.host.run(": >/run/stop")
        self.process.wait(timeout, check=True)


def unload(*hosts: Host, timeout: float = 30) -> None:
    """Our modules go. A transport that was just given up may take a moment to be gone."""
    for host in hosts:
        end = time.monotonic() + timeout * host.factor
        while host.run(["rmmod", "rpcrdma"], check=False).status:
            assert time.monotonic() < end, "rpcrdma is still in use"
            time.sleep(0.2)
        host.rmmod("rail_verbs")


@dataclass
class Mount:
    """A mount on a client."""

    host: Host
    where: str

    def umount(self, *options: str, timeout: float = 60) -> None:
        done = self.host.run(["umount", *options, self.where], check=False, timeout=timeout)
        if done.status:
            who = self.host.run(["fuser", "-vm", self.where], check=False).stderr
            raise AssertionError(f"{done.stderr}{who}")

    def stats(self) -> str:
        """What /proc/self/mountstats says of it."""
        text = self.host.read("/proc/self/mountstats")
        for part in re.split(r"^(?=device )", text, flags=re.M):
            if f" mounted on {self.where} " in part:
                return part
        raise AssertionError(f"{self.where} is not in mountstats")

    def xprt(self) -> list[str]:
        """The words of its transport's line, after "xprt:"."""
        found = re.search(r"^\s*xprt:\s*(.*)$", self.stats(), flags=re.M)
        assert found, self.stats()
        return found[1].split()

    def op(self, name: str) -> list[int]:
        """The numbers of an operation (operations, transmissions, timeouts, ...)."""
        found = re.search(rf"^\s*{name}: (.*)$", self.stats(), flags=re.M)
        assert found, f"{name} is not in mountstats"
        return [int(word) for word in found[1].split()]

    def wait_op(self, name: str, count: int, timeout: float = 20) -> None:
        """Wait for so many of an operation. A client counts one when it is done with the reply:
        whoever waited for the server to do it may be earlier."""
        end = time.monotonic() + timeout * self.host.factor
        while self.op(name)[0] < count:
            assert time.monotonic() < end, self.stats()
            time.sleep(0.1)
        assert self.op(name)[0] == count, self.stats()


class NfsServer:
    """nfsd on a host, with one file system in memory exported to all."""

    def __init__(self, host: Host, *, export: str = EXPORT, size: str = "60%", threads: int = 4,
                 tcp: bool = False, options: str = EXPORT_OPTIONS) -> None:
        self.host = host
        self.export = export
        self.size = size
        self.threads = threads
        self.tcp = tcp
        self.options = options

    def prepare(self) -> None:
        """Everything but nfsd itself."""
        self.host.run(_PREPARE.format(export=self.export, size=self.size), timeout=60)
        self.host.run(["exportfs", "-i", "-o", self.options, f"*:{self.export}"])

    def start(self, lease: int = 0, port: int = PORT) -> None:
        self.prepare()
        if lease:
            for name in ("nfsv4leasetime", "nfsv4gracetime"):
                self.host.write(f"/proc/fs/nfsd/{name}", str(lease))
        self.nfsd(port)

    def nfsd(self, port: int = PORT) -> None:
        if self.tcp:
            self.host.run(["rpc.nfsd", "--no-udp", f"--rdma={port}", str(self.threads)], timeout=60)
        else:
            # rpc.nfsd has no NFSv4 without TCP; the kernel has.
            self.host.run(f"echo rdma {port} >/proc/fs/nfsd/portlist\n"
                          f"echo {self.threads} >/proc/fs/nfsd/threads", timeout=60)
        # Nobody has anything to reclaim from a server that has just been set up.
        self.host.run("echo Y >/proc/fs/nfsd/v4_end_grace", check=False)

    def set_threads(self, count: int) -> None:
        self.host.write("/proc/fs/nfsd/threads", str(count))

    def listeners(self) -> list[str]:
        return self.host.read("/proc/fs/nfsd/portlist").splitlines()

    def kill(self, timeout: float = 60) -> None:
        """End nfsd; its clients' connections go with it."""
        self.host.write("/proc/fs/nfsd/threads", "0")

    def stop(self, timeout: float = 60) -> None:
        """End nfsd and everything that was set up for it."""
        self.kill(timeout)
        self.host.run(
            "exportfs -au; exportfs -f\n"
            "for name in rpc.mountd rpcbind; do\n"
            "    for pid in $(pidof $name); do kill $pid; done\n"
            "done\n"
            "for i in $(seq 50); do\n"
            "    [ -z \"$(pidof rpc.mountd rpcbind)\" ] && break\n"
            "    sleep 0.1\n"
            "done\n"
            "umount /proc/fs/nfsd\n"
            f"umount {self.export}\n"
            # What is left mounted costs a boot: the host would not be used again.
            "umount /var/lib/nfs/rpc_pipefs /var/lib/nfs || :\n", timeout=timeout)

    def mount(self, client: Host, options: str = "vers=4.2", where: str = "/mnt/nfs", *,
              link: int = 0, v6: bool = False, proto: str = "", port: int = PORT,
              timeout: float = 60) -> Mount:
        """Mount the export on a client, by RDMA where `proto` does not say otherwise."""
        address = self.host.addr(link, v6)
        name = f"[{address}]" if v6 else address
        proto = proto or ("rdma6" if v6 else "rdma")
        if proto.startswith("rdma"):
            options = f"{options},port={port}"
        old = re.search(r"vers=[23]\b", options)
        if old:
            options += ",nolock,mountproto=" + ("tcp6" if v6 else "tcp")
        # With fsid=0 the export is the root of what NFSv4 shows.
        path = self.export if old else "/"
        client.run(["mkdir", "-p", where])
        client.run(["mount", "-t", "nfs", "-o", f"proto={proto},{options}", f"{name}:{path}",
                    where], timeout=timeout)
        return Mount(client, where)

    def wait_delegation(self, client: Host, path: str, timeout: float = 20) -> Process:
        """Open a file for reading, until nfsd gives a delegation with it (lockd has a grace)."""
        end = time.monotonic() + timeout * client.factor
        while True:
            reader = client.start(f"exec 3<{path}; cat <&3 >/dev/null; echo open; sleep 1000")
            reader.wait_output("open", timeout=30)
            if "type: deleg" in self.host.run("cat /proc/fs/nfsd/clients/*/states").stdout:
                return reader
            reader.kill()
            assert time.monotonic() < end, "nfsd has given no delegation"
            time.sleep(0.5)
