# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# The test kernel: Debian's newest linux-source-7.* (or the tree in KSRC) with every checker on.

TEST_CONFIG=$HERE/config/test-7.config
TEST_SUITES=(bookworm-backports trixie trixie-backports forky sid)

# Without these the kernel would not test what it is for, so their absence is an error and not a note.
TEST_ESSENTIAL=(MODULES MODULE_UNLOAD SMP KALLSYMS_ALL DEBUG_FS KUNIT KASAN PROVE_LOCKING DEBUG_ATOMIC_SLEEP
	DEBUG_KMEMLEAK DMA_API_DEBUG DEBUG_OBJECTS DEBUG_SG FAULT_INJECTION FAILSLAB FAULT_INJECTION_DEBUG_FS UBSAN
	DETECT_HUNG_TASK INFINIBAND INFINIBAND_ADDR_TRANS RDMA_RXE RDMA_SIW SUNRPC SUNRPC_XPRT_RDMA NFS_FS NFSD
	INFINIBAND_RTRS_CLIENT INFINIBAND_RTRS_SERVER BLK_DEV_RNBD_CLIENT BLK_DEV_RNBD_SERVER
	NVME_RDMA NVME_TARGET_RDMA VIRTIO_PCI VIRTIO_NET NET_9P_VIRTIO 9P_FS OVERLAY_FS NET_SCH_NETEM)

# Lines that a build of this configuration prints, for the progress display. Each build notes its own.
TEST_LINES=3480

test_config_hash() { grep CONFIG_ "$TEST_CONFIG" | short_hash; }

# Debian's source is known by its version. For a tree of the user's own, what is in it counts.
test_source_identity() {
	[ -n "${KSRC:-}" ] || { printf debian; return; }
	{
		realpath "$KSRC"
		make -s -C "$KSRC" kernelversion
		git -C "$KSRC" rev-parse HEAD && git -C "$KSRC" diff HEAD
	} 2>/dev/null | short_hash
}

test_make() {
	local name=$1 version src suite=
	if [ -n "${KSRC:-}" ]; then
		[ -d "$KSRC/scripts/kconfig" ] || die "$name: KSRC=$KSRC is not a kernel source tree"
		if [ -e "$KSRC/.config" ] || [ -d "$KSRC/include/config" ]; then
			die "$name: KSRC=$KSRC has been built in; clean it first: make -C $KSRC mrproper"
		fi
		src=$(realpath "$KSRC")
		version=$(make -s -C "$src" kernelversion)
		say "$name: source is $src ($version)"
		begin_dir "$name" "$version" || return 0
	else
		test_resolve "$name"
		begin_dir "$name" "$version" || return 0
		test_unpack "$name"
	fi
	# Right under the cache, so that its way to the source, which ccache goes by, is the same for each version and
	# configuration. It outlives a build that was interrupted, which then goes on where it stopped.
	# shellcheck disable=SC2153 # NEW_DIR is set by begin_dir
	OBJ=$RAIL_CACHE/build-$(basename "$NEW_DIR")
	mkdir -p "$OBJ"
	ln -s "../../$(basename "$OBJ")" "$NEW_DIR/build"
	test_configure "$name" "$src"
	test_build "$name" "$src"
	finish_dir "$name" "$version"
}

# Sets version, src, suite, package and series of the caller to the newest 7.x on the mirror; else to the source that
# is in the cache already; else to the newest 6.12.
test_resolve() {
	local name=$1 s pkg v reached=0 pattern
	say "$name: looking for the newest kernel source on the mirror"
	for pattern in '7\.[0-9]+' '6\.12'; do
		for s in "${TEST_SUITES[@]}"; do
			apt_suite "$s" || continue
			reached=1
			for pkg in $(apt_names "$s" "^linux-source-$pattern\$"); do
				v=$(apt_versions "$s" "$pkg" | head -n 1)
				[ -n "$v" ] || continue
				if [ -z "${version:-}" ] || dpkg --compare-versions "$v" gt "$version"; then
					version=$v suite=$s package=$pkg
				fi
			done
		done
		[ -z "${version:-}" ] || break
	done
	if [ "$reached" = 0 ]; then
		for s in "$RAIL_CACHE"/src/linux-source-*/.rail-version; do
			[ -e "$s" ] || continue
			if [ -z "${version:-}" ] || dpkg --compare-versions "$(cat "$s")" gt "$version"; then
				version=$(cat "$s")
				package=$(basename "$(dirname "$s")")
			fi
		done
		[ -n "${version:-}" ] || die "$name: no kernel source in the cache, and $APT_ERROR; set KSRC= to a kernel tree, or try again with the network up"
		say "$name: could not check for a newer version: $APT_ERROR"
	fi
	[ -n "${version:-}" ] || not_offered "$name" "the configured mirror has neither linux-source-7.* nor linux-source-6.12"
	src=$RAIL_CACHE/src/$package
	case $package in
	linux-source-7.*) say "$name: $package $version${suite:+ from $suite}" ;;
	*) say "$name: the mirror has no Linux 7.x; $package $version serves in its place" ;;
	esac
}

# The path of the source has no Debian revision in it, so that ccache still knows the objects after an update.
test_unpack() {
	local name=$1
	case $package in
	linux-source-7.*) ;;
	*) printf 'no Linux 7.x on the mirror, %s serves\n' "$package" >"$NEW_DIR/note" ;;
	esac
	if [ "$(cat "$src/.rail-version" 2>/dev/null)" = "$version" ]; then
		return 0
	fi
	apt_fetch "$name" "$suite" "$package" "$version"
	say "$name: unpacking the source"
	rm -rf "$src" "$src.new"
	mkdir -p "$src.new"
	dpkg-deb --fsys-tarfile "$APT_DEB" | tar -xO "./usr/src/$package.tar.xz" | xz -dc -T0 |
		tar -C "$src.new" -x --strip-components=1
	printf '%s\n' "$version" >"$src.new/.rail-version"
	mv "$src.new" "$src"
}

test_run_make() {
	local src=$1
	shift
	# A fixed time and builder give the same objects each time, for ccache and for comparison.
	CCACHE_DIR=$RAIL_CACHE/ccache CCACHE_BASEDIR=$RAIL_CACHE CCACHE_NOHASHDIR=1 \
		make -C "$src" O="$OBJ" CC="ccache gcc" HOSTCC="ccache gcc" \
		KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 1970' KBUILD_BUILD_USER=rail KBUILD_BUILD_HOST=rail "$@"
}

test_configure() {
	local name=$1 src=$2 log=$NEW_DIR/config.log wanted symbol value got odd=() broken=()
	{
		test_run_make "$src" allnoconfig &&
			"$src/scripts/kconfig/merge_config.sh" -m -O "$OBJ" "$OBJ/.config" "$TEST_CONFIG" &&
			test_run_make "$src" olddefconfig
	} >"$log" 2>&1 || {
		show_tail "$log"
		die "$name: the kernel could not be configured (log: $log)"
	}

	# kconfig drops a symbol without a word when what it depends on is off.
	while IFS= read -r wanted; do
		case $wanted in
		CONFIG_*=*) symbol=${wanted%%=*} value=${wanted#*=} ;;
		"# CONFIG_"*" is not set") symbol=${wanted#\# } symbol=${symbol%% *} value=n ;;
		*) continue ;;
		esac
		got=$(sed -n "s/^$symbol=//p" "$OBJ/.config")
		[ "${got:-n}" != "$value" ] || continue
		odd+=("$symbol: wanted $value, is ${got:-n}")
	done <"$TEST_CONFIG"
	for symbol in "${TEST_ESSENTIAL[@]}"; do
		grep -qE "^CONFIG_$symbol=[ym]" "$OBJ/.config" || broken+=("$symbol")
	done
	[ ${#odd[@]} -eq 0 ] || {
		warn "$name: ${#odd[@]} symbols of $(basename "$TEST_CONFIG") came out otherwise:"
		printf '    %s\n' "${odd[@]}" >&2
	}
	[ ${#broken[@]} -eq 0 ] || die "$name: the test kernel cannot do without: ${broken[*]}"
}

test_build() {
	local name=$1 src=$2 log=$NEW_DIR/build.log start=$SECONDS expected=$TEST_LINES release
	[ ! -s "$RAIL_CACHE/test-7.lines" ] || expected=$(cat "$RAIL_CACHE/test-7.lines")
	say "$name: building with $(nproc) CPUs (the first time this takes long: about half an hour of one CPU)"
	run_logged "$log" "$name: building" "$expected" test_run_make "$src" -j"$(nproc)" || {
		grep -nE '(error|Error|undefined reference)' "$log" | head -n 5 | sed 's/^/    | /' >&2
		show_tail "$log" 10
		die "$name: the kernel did not build (log: $log)"
	}
	wc -l <"$log" >"$RAIL_CACHE/test-7.lines"
	release=$(cat "$OBJ/include/config/kernel.release")
	cp "$OBJ/arch/x86/boot/bzImage" "$NEW_DIR/vmlinuz"
	cp "$OBJ/.config" "$NEW_DIR/config"
	# Without debug information in them, or loading them over 9p takes long. build/ keeps it, for faddr2line.
	test_run_make "$src" -j"$(nproc)" modules_install INSTALL_MOD_PATH="$NEW_DIR/root" INSTALL_MOD_STRIP=1 \
		>"$NEW_DIR/install.log" 2>&1 || {
		show_tail "$NEW_DIR/install.log"
		die "$name: modules_install failed (log: $NEW_DIR/install.log)"
	}
	rm -f "$NEW_DIR/root/lib/modules/$release/source"
	ln -sfn ../../../../build "$NEW_DIR/root/lib/modules/$release/build"
	[ -s "$NEW_DIR/root/lib/modules/$release/modules.dep" ] || depmod -b "$NEW_DIR/root" "$release"
	# Gigabytes that no module build needs.
	find "$OBJ" -path "$OBJ/scripts" -prune -o -path "$OBJ/tools" -prune -o \
		-type f \( -name '*.o' -o -name '*.a' \) -exec rm -f {} +
	printf '%s\n' "$release" >"$NEW_DIR/release"
	say "$name: built in $(human_time $((SECONDS - start)))"
}
