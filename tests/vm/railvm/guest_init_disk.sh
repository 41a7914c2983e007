#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=dash
# First process of a virtual host with a disk: hands over to the systemd on it, which starts the agent of the
# tests as a service. Of these two nothing is on the disk.

B=/bin/busybox

die() {
	echo "rail-init: $*" >/dev/console
	$B poweroff -f
}

$B mount -t proc proc /proc
$B mount -t sysfs sysfs /sys
$B mount -t devtmpfs devtmpfs /dev

# shellcheck source=/dev/null
. /rail.conf

while read -r module; do
	$B insmod "/modules/$module" || die "insmod $module failed"
done </modules.list

# A host that went down without a word has left its journal to be replayed, which the mount does.
$B mount -t ext4 /dev/vda /new || die "cannot mount the disk"

# systemd leaves a /run alone that is there already.
$B mount -t tmpfs -o mode=0755 tmpfs /new/run
units=/new/run/systemd/system
$B mkdir -p $units/sysinit.target.wants
$B cp /agent.py /new/run/rail-agent.py
# It is to see the whole of the boot, and of the shutdown.
cat_unit() {
	echo "[Unit]"
	echo "Description=Agent of the tests"
	echo "DefaultDependencies=no"
	echo "[Service]"
	echo "ExecStart=$RAIL_PYTHON -I -S -B /run/rail-agent.py"
	echo "StandardOutput=null"
}
cat_unit >$units/rail-agent.service
$B ln -s ../rail-agent.service $units/sysinit.target.wants/rail-agent.service

echo "$RAIL_HOST" >/new/etc/hostname

$B mount -o move /proc /new/proc
$B mount -o move /sys /new/sys
$B mount -o move /dev /new/dev
exec $B switch_root /new /sbin/init
