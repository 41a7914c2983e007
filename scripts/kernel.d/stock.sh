# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Debian's own kernels: image and headers unpacked in the cache, not installed.

stock_suite() {
	case $1 in
	stock-6.1) printf bookworm ;;
	stock-6.12) printf bookworm-backports ;;
	esac
}

# The Linux release that a stock kernel must be of: suites move on.
stock_series() { printf '%s' "${1#stock-}"; }

# Image, headers and (for the peers) source must be of one version. Prints the newest such version and
# the release, "6.1.192-3 6.1.0-57-amd64".
stock_resolve() {
	local name=$1 suite series version release want_source
	suite=$(stock_suite "$name")
	series=$(stock_series "$name")
	for want_source in 1 0; do
		[ "$name" = stock-6.1 ] || [ "$want_source" = 0 ] || continue
		while read -r version; do
			[[ $version == "$series".* ]] || continue
			release=$(apt_field "$suite" "linux-image-amd64=$version" Depends | grep -oE 'linux-image-[0-9][^ ,]*' | head -n 1)
			release=${release#linux-image-}
			[ -n "$release" ] || continue
			[ -n "$(apt_field "$suite" "linux-image-$release=$version" Package)" ] || continue
			[ -n "$(apt_field "$suite" "linux-headers-$release=$version" Package)" ] || continue
			if [ "$want_source" = 1 ]; then
				[ -n "$(apt_field "$suite" "linux-source-$series=$version" Package)" ] || continue
			fi
			printf '%s %s\n' "$version" "$release"
			return 0
		done < <(apt_versions "$suite" linux-image-amd64)
	done
	return 1
}

stock_make() {
	local name=$1 suite version release have rc=0
	suite=$(stock_suite "$name")
	apt_suite "$suite" || rc=$?
	if [ "$rc" != 0 ]; then
		if cache_fresh "$name"; then
			say "$name: could not check for a newer version: $APT_ERROR"
			return 0
		fi
		[ "$rc" = 1 ] || die "$name: $APT_ERROR"
		not_offered "$name" "$APT_ERROR"
	fi
	have=$(stock_resolve "$name") || not_offered "$name" "$suite of the configured mirror has no Linux $(stock_series "$name") with both image and headers"
	read -r version release <<<"$have"

	begin_dir "$name" "$version" || return 0
	stock_image "$name" "$suite" "$version" "$release"
	stock_headers "$name" "$suite" "$version" "$release"
	printf '%s\n' "$release" >"$NEW_DIR/release"
	[ "$name" != stock-6.1 ] || stock_from_source "$name" "$suite" "$version" "$release"
	finish_dir "$name" "$version"
}

stock_image() {
	local name=$1 suite=$2 version=$3 release=$4 modules
	apt_fetch "$name" "$suite" "linux-image-$release" "$version"
	say "$name: unpacking $release"
	mkdir "$NEW_DIR/root"
	dpkg-deb --fsys-tarfile "$APT_DEB" | tar -C "$NEW_DIR/root" -x --no-same-owner ./boot ./lib
	mv "$NEW_DIR/root/boot/vmlinuz-$release" "$NEW_DIR/vmlinuz"
	mv "$NEW_DIR/root/boot/config-$release" "$NEW_DIR/config"
	rm -rf "$NEW_DIR/root/boot"
	modules=$NEW_DIR/root/lib/modules/$release
	# Uncompressed modules load several times as fast in an emulated machine.
	find "$modules" -name '*.ko.xz' -exec xz -dq {} +
	find "$modules" -name '*.ko.zst' -exec zstd -dq --rm {} +
	depmod -b "$NEW_DIR/root" "$release"
	rm -f "$modules/build" "$modules/source"
	ln -s ../../../../build "$modules/build"
}

# Debian's headers name each other by absolute paths under /usr/src; here they must find each other in the cache.
stock_headers() {
	local name=$1 suite=$2 version=$3 release=$4 tree=$NEW_DIR/headers dep depends common kbuild kbuild_version link target
	mkdir "$tree"
	depends=$(apt_field "$suite" "linux-headers-$release=$version" Depends)
	common=$(grep -oE 'linux-headers-[^ ,]*-common' <<<"$depends" | head -n 1)
	kbuild=$(grep -oE 'linux-kbuild-[^ ,]*' <<<"$depends" | head -n 1)
	if [ -z "$common" ] || [ -z "$kbuild" ]; then
		die "$name: linux-headers-$release names no common headers package or no linux-kbuild ($depends)"
	fi
	kbuild_version=$version
	[ -n "$(apt_field "$suite" "$kbuild=$version" Package)" ] ||
		kbuild_version=$(apt_versions "$suite" "$kbuild" | head -n 1)
	for dep in "linux-headers-$release $version" "$common $version" "$kbuild $kbuild_version"; do
		# shellcheck disable=SC2086 # two words: package and version
		apt_fetch "$name" "$suite" $dep
		dpkg-deb --fsys-tarfile "$APT_DEB" | tar -C "$tree" -x --no-same-owner
	done
	rm -rf "${tree:?}/usr/share" "${tree:?}/lib"

	# Name the headers by where they are, wherever the cache is moved to.
	sed -i "s#/usr/src/#\$(dir \$(realpath \$(lastword \$(MAKEFILE_LIST))))../#" "$tree/usr/src/linux-headers-$release/Makefile"
	while IFS= read -r link; do
		target=$(readlink "$link")
		[[ $target == /* ]] || continue
		ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$tree$target")" "$link"
	done < <(find "$tree" -type l)
	ln -s "headers/usr/src/linux-headers-$release" "$NEW_DIR/build"

	stock_try_headers "$name" "$release"
}

# The headers have been moved: prove that a module can be built with them and is one for this kernel.
stock_try_headers() {
	local name=$1 release=$2 try=$NEW_DIR/try magic
	mkdir "$try"
	printf 'obj-m := try.o\n' >"$try/Kbuild"
	printf '#include <linux/module.h>\nMODULE_LICENSE("GPL");\nMODULE_DESCRIPTION("try");\n' >"$try/try.c"
	make -C "$NEW_DIR/build" M="$try" CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$try/log" 2>&1 || {
		show_tail "$try/log"
		die "$name: a module cannot be built with the unpacked headers"
	}
	magic=$(modinfo -F vermagic "$try/try.ko")
	[[ $magic == "$release "* ]] ||
		die "$name: a module built with the unpacked headers is for '$magic', not for $release"
	rm -rf "$try"
}

# What Debian's binary packages lack and its source has: RTRS and RNBD, built as peers for tests, and checkpatch.
stock_from_source() {
	local name=$1 suite=$2 version=$3 release=$4 src=$NEW_DIR/peers-src log=$NEW_DIR/peers.log series top rtrs rnbd
	series=$(stock_series "$name")
	top=linux-source-$series
	rtrs=drivers/infiniband/ulp/rtrs
	rnbd=drivers/block/rnbd
	if [ -z "$(apt_field "$suite" "$top=$version" Package)" ]; then
		printf 'without peers and checkpatch: the mirror has no %s %s\n' "$top" "$version" >"$NEW_DIR/note"
		return 0
	fi
	apt_fetch "$name" "$suite" "$top" "$version"
	say "$name: building the RTRS and RNBD peers"
	mkdir -p "$src" "$NEW_DIR/peers"
	dpkg-deb --fsys-tarfile "$APT_DEB" | tar -xO "./usr/src/$top.tar.xz" | xz -dc -T0 |
		tar -C "$src" -x --strip-components=1 "$top/$rtrs" "$top/$rnbd" \
			"$top"/scripts/{checkpatch.pl,spelling.txt,const_structs.checkpatch} ||
		die "$name: $top $version lacks RTRS, RNBD or checkpatch"
	mv "$src/scripts" "$NEW_DIR/checkpatch"
	if ! { peers_build "$src/$rtrs" "$src/$rtrs" "" &&
		peers_build "$src/$rnbd" "$src/$rtrs" "$src/$rtrs/Module.symvers"; } >"$log" 2>&1; then
		show_tail "$log"
		die "$name: the RTRS and RNBD peers did not build (log: $log)"
	fi
	find "$src" -name '*.ko' -exec mv -t "$NEW_DIR/peers" {} +
	strip -g "$NEW_DIR"/peers/*.ko
	rm -rf "$src"
}

# peers_build DIRECTORY INCLUDE SYMVERS
peers_build() {
	make -C "$NEW_DIR/build" M="$1" KBUILD_EXTRA_SYMBOLS="$3" KCPPFLAGS="-I$2" \
		CONFIG_INFINIBAND_RTRS=m CONFIG_INFINIBAND_RTRS_CLIENT=m CONFIG_INFINIBAND_RTRS_SERVER=m \
		CONFIG_BLK_DEV_RNBD=y CONFIG_BLK_DEV_RNBD_CLIENT=m CONFIG_BLK_DEV_RNBD_SERVER=m \
		CONFIG_DEBUG_INFO_BTF_MODULES= -j"$(nproc)" modules
}
