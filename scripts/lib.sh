# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What the scripts share. Sourced, never run. The caller sets PROG, the name that stands before each line.

# Messages of the tools are read by these scripts: keep them in one language.
export LC_ALL=C.UTF-8
# Debian's own tools (python3, ...) rather than a private installation first on PATH.
export PATH="/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin:$PATH"

RAIL_CACHE=${RAIL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rail}
[[ $RAIL_CACHE == /* ]] || RAIL_CACHE=$PWD/$RAIL_CACHE
export RAIL_CACHE

# Who has a cache is a developer, and compiles the same again and again, in more than one checkout. Compilers go by
# their own names through ccache, so that neither kbuild nor cmake sees another command.
if [ -d /usr/lib/ccache ] && [ -w "$RAIL_CACHE" ]; then
	PATH=/usr/lib/ccache:$PATH
	CCACHE_BASEDIR=$(realpath "${BASH_SOURCE[0]%/*}/..")
	export CCACHE_BASEDIR CCACHE_DIR=$RAIL_CACHE/ccache CCACHE_NOHASHDIR=1
fi

say()  { printf '%s: %s\n' "$PROG" "$*"; }
warn() { printf '%s: %s\n' "$PROG" "$*" >&2; }
die()  { warn "$*"; exit 1; }

need_tools() {
	local tool
	for tool; do
		command -v "$tool" >/dev/null || die "$tool is not installed; run: scripts/setup"
	done
}

# as_root WHAT COMMAND...: runs it as root; where that cannot be, says that WHAT needs it.
as_root() {
	local what=$1
	shift
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo -- "$@"
	else
		die "$what needs root, and there is no sudo here"
	fi
}

# seconds -> "1m05s"
human_time() {
	if [ "$1" -ge 60 ]; then
		printf '%dm%02ds' $(($1 / 60)) $(($1 % 60))
	else
		printf '%ds' "$1"
	fi
}

# Prints the end of a log on stderr, indented, so that it is told from our own lines.
show_tail() {
	tail -n "${2:-30}" -- "$1" | sed 's/^/    | /' >&2
}

# run_logged LOG WHAT EXPECTED COMMAND...
# Runs COMMAND with its output in LOG and shows how far it is: the number of lines written so far of
# EXPECTED (0: unknown), on a terminal in place, elsewhere as one line a minute.
run_logged() {
	local log=$1 what=$2 expected=$3 start=$SECONDS shown=$SECONDS lines pct pid rc
	shift 3
	"$@" >"$log" 2>&1 </dev/null &
	pid=$!
	# An interrupt must not leave the command running without its parent.
	trap 'kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null || :; exit 130' INT TERM
	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.5
		if [ -t 1 ]; then
			[ $((SECONDS - shown)) -ge 1 ] || continue
		else
			[ $((SECONDS - shown)) -ge 60 ] || continue
		fi
		shown=$SECONDS
		pct=
		if [ "$expected" -gt 0 ]; then
			lines=$(wc -l <"$log")
			pct=$((lines * 100 / expected))
			[ "$pct" -le 99 ] || pct=99
			pct="$pct%, "
		fi
		if [ -t 1 ]; then
			printf '\r%s: %s: %s%s \033[K' "$PROG" "$what" "$pct" "$(human_time $((SECONDS - start)))"
		else
			say "$what: $pct$(human_time $((SECONDS - start)))"
		fi
	done
	wait "$pid" && rc=0 || rc=$?
	trap - INT TERM
	[ ! -t 1 ] || printf '\r\033[K'
	return "$rc"
}
