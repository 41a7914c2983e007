#!/usr/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Completion for bash, with a railctl that offers what a hostile peer would like to see a shell expand.
# Usage: railctl_completion.sh FILE
set -euo pipefail

# shellcheck source=/dev/null
. "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

railctl() {
	printf '%s\n' "$@" >asked
	# shellcheck disable=SC2016 # not to be expanded
	printf '%s\tabout $(touch about)\n' "${OFFERS[@]}"
}

# expect LINE REPLY...: what bash is given for a line with the cursor at its end
expect() {
	COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
	_railctl
	shift
	[ "${COMPREPLY[*]}" = "$*" ] || {
		printf '%s: got: %s\nexpected: %s\n' "$COMP_LINE" "${COMPREPLY[*]}" "$*" >&2
		exit 1
	}
}

OFFERS=(list)
expect "railctl li" list
[ "$(cat asked)" = $'__complete\nli' ]

OFFERS=(rnbd0 rnbd1)
expect "railctl unmap " rnbd0 rnbd1
[ "$(cat asked)" = $'__complete\nunmap' ]

# Only what stands behind the last character at which bash breaks words.
OFFERS=("ip:192.0.2.7@ip:192.0.2.1")
expect "railctl path remove s1 ip:192.0.2.7@ip:1" "192.0.2.1"
expect "railctl path remove s1 " "ip:192.0.2.7@ip:192.0.2.1"

# shellcheck disable=SC2016 # not to be expanded
OFFERS=('$(touch pwned)' '`touch pwned`' 'a;touch pwned' '*')
# shellcheck disable=SC2016 # not to be expanded
expect "railctl show " '\$\(touch\ pwned\)' '\`touch\ pwned\`' 'a\;touch\ pwned' '\*'
[ "$(ls)" = asked ] || { echo "something was run: $(ls)" >&2; exit 1; }

COMP_WORDBREAKS=' '
OFFERS=("ip:192.0.2.7@ip:192.0.2.1")
expect "railctl path remove s1 ip:1" "ip:192.0.2.7@ip:192.0.2.1"
