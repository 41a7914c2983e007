#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=dash
# First process of a virtual host: lays a clean, writable root over the
# machine's own one and hands over to the agent. /rail.conf comes from the
# driver and is specific to the host; everything else here is not.

B=/bin/busybox

die() {
	echo "rail-init: $*" >/dev/console
	$B poweroff -f
}

# Attach a kernel file system where the kernel has it.
try_mount() {
	$B mount -t "$1" "$1" "$2" 2>/dev/null
}

$B mount -t proc proc /proc
$B mount -t sysfs sysfs /sys
$B mount -t devtmpfs devtmpfs /dev

if $B grep -qw rail.trial /proc/cmdline; then
	echo rail-trial-ok >/dev/ttyS0
	$B poweroff -f
fi

# shellcheck source=/dev/null
. /rail.conf

while read -r module; do
	$B insmod "/modules/$module" || die "insmod $module failed"
done </modules.list

$B mount -t tmpfs -o size=75%,nr_inodes=0 tmpfs /rw
$B mkdir /rw/upper /rw/work
opts=trans=virtio,version=9p2000.L,ro,msize=524288
$B mount -t 9p -o "$opts,cache=loose" railroot /lower ||
	die "cannot mount the root of the machine"
$B mount -t overlay -o lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/work \
	overlay /new || die "cannot mount the overlay"

# The checkout is mounted without a cache: a module that was just rebuilt on
# the machine is seen at once in a host that is already up.
$B mount -t 9p -o "$opts,cache=none" railtop "/new$RAIL_TOP" ||
	die "cannot mount $RAIL_TOP"

$B mount -t tmpfs -o mode=1777 tmpfs /new/tmp
$B mount -t tmpfs -o mode=0755 tmpfs /new/run
$B mkdir -p /new/run/lock "/new/lib/modules/$RAIL_RELEASE"
$B mount -o bind "/new$RAIL_MODULES" "/new/lib/modules/$RAIL_RELEASE" ||
	die "cannot mount the modules of $RAIL_RELEASE"

$B mount -o move /proc /new/proc
$B mount -o move /sys /new/sys
$B mount -o move /dev /new/dev
$B mkdir -p /new/dev/pts /new/dev/shm
$B mount -t devpts -o mode=0620,ptmxmode=0666 devpts /new/dev/pts
$B mount -t tmpfs tmpfs /new/dev/shm
try_mount debugfs /new/sys/kernel/debug
try_mount tracefs /new/sys/kernel/tracing
try_mount configfs /new/sys/kernel/config
try_mount cgroup2 /new/sys/fs/cgroup
[ -e /new/dev/fd ] || $B ln -s /proc/self/fd /new/dev/fd

$B hostname "$RAIL_HOST"
echo "$RAIL_HOST" >/new/etc/hostname

exec $B switch_root /new "$RAIL_PYTHON" -I -S -B "$RAIL_AGENT"
