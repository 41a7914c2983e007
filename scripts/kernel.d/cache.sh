# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# The cache: $RAIL_CACHE/kernels/NAME is a link to NAME-KEY, switched when NAME-KEY is whole.
# NAME-KEY/complete holds the identity it was made from and is written last: without it, or with another
# format or configuration in it, the directory is made again.

# Raise it when the layout of a kernel's directory changes.
CACHE_FORMAT=1

kernel_dir() { printf '%s' "$RAIL_CACHE/kernels/$1"; }

# A short hash of what is given on stdin.
short_hash() { sha256sum | cut -c1-10; }

# The part of a kernel's identity that this checkout decides, as against the version on the mirror.
local_identity() {
	case $1 in
	test-7) printf 'format=%s config=%s source=%s' "$CACHE_FORMAT" "$(test_config_hash)" "$(test_source_identity)" ;;
	stock-6.1) printf 'format=%s with=peers,checkpatch' "$CACHE_FORMAT" ;;
	*) printf 'format=%s' "$CACHE_FORMAT" ;;
	esac
}

# identity NAME VERSION -> the text of the file `complete`
identity() { printf '%s version=%s %s' "$1" "$2" "$(local_identity "$1")"; }

# identity -> directory name. The version stands in it for people, the hash for us.
identity_dir() {
	local name=$1 version=$2
	printf '%s-%s-%s' "$name" "${version//[^A-Za-z0-9.-]/.}" "$(identity "$name" "$version" | short_hash)"
}

cache_complete() { dir_complete "$(kernel_dir "$1")"; }

# The build tree of test-7 lies beside, and may be gone alone.
dir_complete() { [ -s "$1/complete" ] && [ -d "$1/build/." ]; }

# Complete, and made from the same configuration and by the same format of this tool.
cache_fresh() {
	local have
	cache_complete "$1" || return 1
	have=$(cat "$(kernel_dir "$1")/complete")
	[ "${have#* version=* }" = "$(local_identity "$1")" ]
}

# A whole copy for this checkout that another version or configuration has taken the place of: switch back to it.
cache_reuse() {
	local dir have newest=
	for dir in "$RAIL_CACHE/kernels/$1"-*/; do
		dir_complete "${dir%/}" || continue
		have=$(cat "$dir/complete")
		[[ $have == "$1 version="* ]] || continue
		[ "${have#* version=* }" = "$(local_identity "$1")" ] || continue
		if [ -z "$newest" ] || [ "$dir/complete" -nt "$newest/complete" ]; then
			newest=${dir%/}
		fi
	done
	[ -n "$newest" ] || return 1
	NEW_DIR=$newest
	switch_to "$1"
}

kernel_summary() {
	local dir have version note=
	dir=$(kernel_dir "$1")
	have=$(cat "$dir/complete")
	version=${have#* version=}
	version=${version%% *}
	[ ! -s "$dir/note" ] || note="; $(cat "$dir/note")"
	printf '%s (%s)%s' "$(cat "$dir/release")" "$version" "$note"
}

# One build at a time in a cache. Held until this process ends.
cache_lock() {
	local holder
	[ -z "${CACHE_LOCKED:-}" ] || return 0
	mkdir -p "$RAIL_CACHE"
	exec 9>>"$RAIL_CACHE/lock"
	if ! flock -n 9; then
		holder=$(tail -n 1 "$RAIL_CACHE/lock" 2>/dev/null || :)
		say "waiting for another build in $RAIL_CACHE to end (${holder:-unknown process})"
		flock 9
	fi
	CACHE_LOCKED=1
	printf 'process %d, since %s\n' $$ "$(date '+%H:%M:%S')" >"$RAIL_CACHE/lock"
}

# begin_dir NAME VERSION: an empty directory for it, or exit status 1 when a whole one is there already
# and only has to be switched to. The path is left in NEW_DIR.
begin_dir() {
	NEW_DIR=$RAIL_CACHE/kernels/$(identity_dir "$1" "$2")
	if dir_complete "$NEW_DIR" && [ "$(cat "$NEW_DIR/complete")" = "$(identity "$1" "$2")" ]; then
		switch_to "$1"
		return 1
	fi
	[ ! -e "$NEW_DIR" ] || say "$1: a half-made copy is there; making it again"
	rm -rf "$NEW_DIR"
	mkdir -p "$NEW_DIR"
}

finish_dir() {
	# The marker must not be on disk before what it vouches for.
	sync -f "$NEW_DIR"
	identity "$1" "$2" >"$NEW_DIR/complete.new"
	mv "$NEW_DIR/complete.new" "$NEW_DIR/complete"
	switch_to "$1"
}

switch_to() {
	ln -sfn "$(basename "$NEW_DIR")" "$RAIL_CACHE/kernels/.$1.new"
	mv -T "$RAIL_CACHE/kernels/.$1.new" "$RAIL_CACHE/kernels/$1"
	rm -f "$RAIL_CACHE/kernels/$1.not-offered"
}

# Kernel is not to be had from the mirror: note it for `list`, and end with the status that says so.
not_offered() {
	mkdir -p "$RAIL_CACHE/kernels"
	printf '%s\n' "$2" >"$RAIL_CACHE/kernels/$1.not-offered"
	warn "$1: $2; going on without it"
	exit "$EXIT_NOT_OFFERED"
}

cache_clean_old() {
	local dir name keep=() found=0
	[ -d "$RAIL_CACHE/kernels" ] || { say "nothing to clean in $RAIL_CACHE"; return; }
	for name in "${KNOWN[@]}"; do
		[ ! -L "$RAIL_CACHE/kernels/$name" ] || keep+=("$(readlink "$RAIL_CACHE/kernels/$name")")
	done
	for dir in "$RAIL_CACHE"/kernels/*/; do
		dir=${dir%/}
		[ -L "$dir" ] && continue
		[ -d "$dir" ] || continue
		for name in "${keep[@]}"; do
			[ "$name" != "$(basename "$dir")" ] || continue 2
		done
		say "removing $dir"
		rm -rf "$dir" "$RAIL_CACHE/build-$(basename "$dir")"
		found=1
	done
	rm -rf "$RAIL_CACHE/debs" "$RAIL_CACHE/apt"
	[ "$found" = 1 ] || say "no old version in $RAIL_CACHE; downloads removed"
}

cache_clean_all() {
	local part
	for part in "$RAIL_CACHE"/{kernels,src,roots,ccache,tidy,debs,apt,vm,test-7.lines} "$RAIL_CACHE"/build-*; do
		[ -e "$part" ] || continue
		say "removing $part"
		rm -rf "$part"
	done
}
