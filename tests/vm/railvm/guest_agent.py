# SPDX-License-Identifier: GPL-2.0-only
"""The agent inside a virtual host: process 1, driven over a virtio-serial port.

It imports only what is compiled into the interpreter, because every further
import is paid for in boot time on an emulated CPU. Frames are a little-endian
length and a marshalled dict; both ends run the same interpreter.

All deadlines are the driver's: the guest's own clock may be stopped (a paused
host) or race ahead (deterministic mode).
"""

import _signal as signal
import marshal
import os
import select
import sys

PORT_NAME = "rail.agent"
CHUNK = 1 << 16
# Stop reading the output of children while this much waits for the driver;
# the pipes then fill and the children block, as they would on a slow terminal.
HIGH_WATER = 4 << 20
WATCH_INTERVAL = 0.02
WATCH_LIMIT = 1 << 20


def find_port():
    base = "/sys/class/virtio-ports"
    for name in os.listdir(base):
        try:
            with open(f"{base}/{name}/name", encoding="ascii") as file:
                if file.read().strip() == PORT_NAME:
                    return f"/dev/{name}"
        except OSError:
            continue
    raise RuntimeError(f"no virtio port {PORT_NAME}")


def read_up_to(fd, limit):
    """What there is to read, but no more than that; shorter than that: to its end."""
    parts = []
    while limit > 0:
        part = os.read(fd, min(limit, CHUNK))
        if not part:
            break
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def read_small(path, limit=CHUNK):
    """The content of a small file, or None where it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return read_up_to(fd, limit)
    except OSError:
        return None
    finally:
        os.close(fd)


def session_of(pid):
    stat = read_small(f"/proc/{pid}/stat")
    if stat is None:
        return None
    return int(stat.rpartition(b")")[2].split()[3])


def session_members(leader):
    return [
        int(name)
        for name in os.listdir("/proc")
        if name.isdigit() and session_of(name) == leader
    ]


class Child:
    def __init__(self, cid, pid):
        self.cid = cid
        self.pid = pid
        self.fds = {}
        self.stdin = None
        self.pending = b""


class Watch:
    """A file whose content is reported whenever it has changed."""

    def __init__(self, wid, path):
        self.wid = wid
        self.path = path
        self.last = 0  # differs from any content and from None
        self.fd = None


class Agent:
    def __init__(self):
        self.poll = select.epoll()
        self.port = os.open(find_port(), os.O_RDWR | os.O_NONBLOCK)
        self.inbuf = bytearray()
        self.outbuf = bytearray()
        self.children = {}  # by pid
        self.by_cid = {}
        self.reading = {}  # fd -> (child, stream)
        self.writing = {}  # fd -> child
        self.watches = {}
        self.watch_fds = {}
        self.files = {}  # path -> fd of an upload under way
        self.throttled = False
        self.kmsg = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        wake_r, wake_w = os.pipe()
        os.set_blocking(wake_r, False)
        os.set_blocking(wake_w, False)
        self.wake = wake_r
        signal.set_wakeup_fd(wake_w, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for fd in (self.port, self.kmsg, self.wake):
            self.poll.register(fd, select.EPOLLIN)

    # -- talking to the driver ------------------------------------------

    def send(self, **message):
        data = marshal.dumps(message)
        self.outbuf += len(data).to_bytes(4, "little") + data
        self.flush()

    def flush(self):
        while self.outbuf:
            try:
                done = os.write(self.port, self.outbuf[:CHUNK])
            except BlockingIOError:
                break
            del self.outbuf[:done]
        events = select.EPOLLIN | (select.EPOLLOUT if self.outbuf else 0)
        self.poll.modify(self.port, events)
        throttle = len(self.outbuf) > HIGH_WATER
        if throttle != self.throttled:
            self.throttled = throttle
            for fd in self.reading:
                self.poll.modify(fd, 0 if throttle else select.EPOLLIN)

    def receive(self):
        try:
            data = os.read(self.port, CHUNK)
        except BlockingIOError:
            return
        self.inbuf += data
        while len(self.inbuf) >= 4:
            size = int.from_bytes(self.inbuf[:4], "little")
            if len(self.inbuf) < 4 + size:
                break
            message = marshal.loads(bytes(self.inbuf[4:4 + size]))
            del self.inbuf[:4 + size]
            self.handle(message)

    def handle(self, message):
        mid = message.pop("id")
        op = message.pop("op")
        try:
            result = getattr(self, "op_" + op)(**message)
        except Exception as error:  # the driver raises it where it was asked for
            self.send(ev="reply", id=mid, error=f"{type(error).__name__}: {error}")
        else:
            self.send(ev="reply", id=mid, result=result)

    # -- kernel log -------------------------------------------------------

    def drain_kmsg(self):
        records = []
        while True:
            try:
                records.append(os.read(self.kmsg, 8192))
            except BlockingIOError:
                break
            except BrokenPipeError:
                records.append(b"4,0,0,-;rail-agent: kernel log records were lost")
            if len(records) >= 256:
                self.send(ev="kmsg", records=records)
                records = []
        if records:
            self.send(ev="kmsg", records=records)

    def op_sync(self):
        """Answered only after everything the kernel has logged so far."""
        self.drain_kmsg()

    def op_mark(self, text):
        with open("/dev/kmsg", "wb", buffering=0) as file:
            file.write(text.encode())

    # -- processes --------------------------------------------------------

    def op_spawn(self, cid, argv, env, data):
        child_in, our_in = os.pipe()
        our_out, child_out = os.pipe()
        our_err, child_err = os.pipe()
        actions = [
            (os.POSIX_SPAWN_DUP2, child_in, 0),
            (os.POSIX_SPAWN_DUP2, child_out, 1),
            (os.POSIX_SPAWN_DUP2, child_err, 2),
        ]
        try:
            pid = os.posix_spawnp(
                argv[0], argv, dict(os.environ, **env), file_actions=actions,
                setsid=True, setsigmask=[], setsigdef=[signal.SIGPIPE, signal.SIGINT],
            )
        except OSError:
            for fd in (our_in, our_out, our_err):
                os.close(fd)
            raise
        finally:
            for fd in (child_in, child_out, child_err):
                os.close(fd)
        child = Child(cid, pid)
        self.children[pid] = child
        self.by_cid[cid] = child
        for stream, fd in ((1, our_out), (2, our_err)):
            os.set_blocking(fd, False)
            child.fds[stream] = fd
            self.reading[fd] = (child, stream)
            self.poll.register(fd, 0 if self.throttled else select.EPOLLIN)
        if data:
            os.set_blocking(our_in, False)
            child.stdin, child.pending = our_in, data
            self.writing[our_in] = child
            self.poll.register(our_in, select.EPOLLOUT)
        else:
            os.close(our_in)
        return pid

    def op_kill(self, cid, sig):
        """Signal the session of a child: the shell and all that it started."""
        child = self.by_cid.get(cid)
        if child is None:
            return 0
        members = session_members(child.pid)
        for pid in members:
            try:
                os.kill(pid, sig)
            except ProcessLookupError:
                pass
        return len(members)

    def op_left(self, pid):
        """Those of a session that still do something, or have something open."""
        return [member for member in session_members(pid)
                if b") Z " not in (read_small(f"/proc/{member}/stat") or b") Z ")]

    def op_inspect(self, cid):
        """Where each process of a child's session stands, for the report of a hang."""
        child = self.by_cid.get(cid)
        report = []
        for pid in session_members(child.pid) if child else []:
            words = (read_small(f"/proc/{pid}/cmdline") or b"").replace(b"\0", b" ")
            stat = read_small(f"/proc/{pid}/stat") or b") ?"
            state = stat.rpartition(b")")[2].split()[0].decode()
            stack = read_small(f"/proc/{pid}/stack") or b""
            report.append((pid, state, words.decode("utf-8", "replace"),
                           stack.decode("utf-8", "replace")))
        return report

    def reap(self):
        try:
            os.read(self.wake, CHUNK)
        except BlockingIOError:
            pass
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self.children.pop(pid, None)
            if child is None:
                continue  # an orphan that process 1 has to bury
            # A grandchild may keep the pipes open: take what is there, no more.
            for fd in list(child.fds.values()):
                while self.read_stream(fd):
                    pass
                self.close_stream(fd)
            self.close_stdin(child)
            # Signals now go nowhere: the number may soon be another process's.
            del self.by_cid[child.cid]
            self.drain_kmsg()
            self.send(ev="exit", cid=child.cid, status=os.waitstatus_to_exitcode(status))

    def read_stream(self, fd):
        child, stream = self.reading[fd]
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            return False
        self.send(ev="out", cid=child.cid, stream=stream, data=data)
        return True

    def close_stream(self, fd):
        entry = self.reading.pop(fd, None)
        if entry is not None:
            del entry[0].fds[entry[1]]
            self.poll.unregister(fd)
            os.close(fd)

    def write_stdin(self, fd):
        child = self.writing[fd]
        try:
            done = os.write(fd, child.pending[:CHUNK])
            child.pending = child.pending[done:]
        except BlockingIOError:
            return
        except BrokenPipeError:
            child.pending = b""
        if not child.pending:
            self.close_stdin(child)

    def close_stdin(self, child):
        if child.stdin is not None:
            del self.writing[child.stdin]
            self.poll.unregister(child.stdin)
            os.close(child.stdin)
            child.stdin = None

    # -- files ------------------------------------------------------------

    def op_put(self, path, data, mode, first, last):
        if first:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            self.files[path] = os.open(path, flags, mode)
        fd = self.files[path]
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view):]
            if last:
                os.fchmod(fd, mode)
        except OSError:
            last = True
            raise
        finally:
            if last:
                os.close(self.files.pop(path))

    def op_get(self, path, offset):
        """A piece of the file, and whether that was its end. What the kernel makes up as it is read,
        and differs each time, must come from one open file."""
        fd = os.open(path, os.O_RDONLY)
        try:
            if offset:
                os.lseek(fd, offset, os.SEEK_SET)
            piece = read_up_to(fd, CHUNK)
            return piece, len(piece) < CHUNK
        finally:
            os.close(fd)

    def op_watch(self, wid, path):
        watch = Watch(wid, path)
        self.watches[wid] = watch
        if path.startswith("/sys/"):
            # Attributes that call sysfs_notify() wake us; the others are
            # covered by the interval like any other file.
            try:
                watch.fd = os.open(path, os.O_RDONLY)
                self.poll.register(watch.fd, select.EPOLLPRI)
                self.watch_fds[watch.fd] = watch
            except OSError:
                # An open file would keep the module that made it, as debugfs's do.
                if watch.fd is not None:
                    os.close(watch.fd)
                    watch.fd = None
        self.look(watch)

    def op_unwatch(self, wid):
        watch = self.watches.pop(wid, None)
        if watch is not None and watch.fd in self.watch_fds:
            del self.watch_fds[watch.fd]
            self.poll.unregister(watch.fd)
            os.close(watch.fd)

    def look(self, watch):
        content = read_small(watch.path, WATCH_LIMIT)
        if watch.fd is not None:
            try:
                os.pread(watch.fd, 1, 0)  # arms the next notification
            except OSError:
                pass
        if content != watch.last:
            watch.last = content
            self.send(ev="watch", wid=watch.wid, content=content)

    # -- state ------------------------------------------------------------

    def op_state(self):
        """What a test can leave behind, so that the driver can compare."""
        modules = (read_small("/proc/modules", 1 << 20) or b"").decode().splitlines()
        mounts = (read_small("/proc/mounts", 1 << 20) or b"").decode().splitlines()
        rdma = "/sys/class/infiniband"
        processes = []
        for name in os.listdir("/proc"):
            if name.isdigit() and name != "1":
                # Empty for threads of the kernel and for what is about to end.
                words = read_small(f"/proc/{name}/cmdline")
                if words:
                    processes.append(
                        (int(name), words.replace(b"\0", b" ").decode("utf-8", "replace")))
        return {
            "modules": [line.split()[0] for line in modules],
            "mounts": [" ".join(line.split()[:3]) for line in mounts],
            "netdevs": sorted(os.listdir("/sys/class/net")),
            "rdma": sorted(os.listdir(rdma)) if os.path.isdir(rdma) else [],
            "processes": processes,
            "taint": int((read_small("/proc/sys/kernel/tainted") or b"0").decode()),
        }

    # -- main loop --------------------------------------------------------

    def run(self):
        uname = os.uname()
        self.send(ev="hello", release=uname.release, host=uname.nodename,
                  uptime=(read_small("/proc/uptime") or b"0").split()[0].decode(),
                  kmemleak=os.path.exists("/sys/kernel/debug/kmemleak"))
        while True:
            timeout = WATCH_INTERVAL if self.watches else -1
            for fd, events in self.poll.poll(timeout):
                if fd == self.port:
                    if events & select.EPOLLOUT:
                        self.flush()
                    if events & select.EPOLLIN:
                        self.receive()
                elif fd == self.kmsg:
                    self.drain_kmsg()
                elif fd == self.wake:
                    self.reap()
                elif fd in self.reading:
                    if not self.read_stream(fd):
                        self.close_stream(fd)
                elif fd in self.writing:
                    self.write_stdin(fd)
                elif fd in self.watch_fds:
                    self.look(self.watch_fds[fd])
            for watch in list(self.watches.values()):
                self.look(watch)


def main():
    os.environ.update({
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    })
    os.umask(0o022)
    os.chdir("/tmp")
    Agent().run()


if __name__ == "__main__":
    try:
        main()
    except BaseException as error:
        # The traceback module costs boot time, so it is taken in only here.
        import traceback
        with open("/dev/console", "w", encoding="utf-8") as console:
            traceback.print_exception(error, file=console)
        sys.exit(1)
