# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Completion of railctl for bash. railctl itself knows what may come next, names that there are now included.

_railctl() {
	local line=${COMP_LINE:0:COMP_POINT} cur stem candidate
	local -a words=() candidates=()
	COMPREPLY=()
	# Not COMP_WORDS: bash breaks words at ':' and '@', of which addresses are full.
	read -ra words <<<"$line"
	[[ $line != *[[:space:]] ]] || words+=("")
	cur=${words[-1]}
	# Bash puts in only what stands behind the last of its breaks.
	stem=${cur%"${cur##*["$COMP_WORDBREAKS"]}"}
	mapfile -t candidates < <(railctl __complete "${words[@]:1}" 2>/dev/null)
	for candidate in "${candidates[@]}"; do
		candidate=${candidate%%$'\t'*}
		candidate=${candidate#"$stem"}
		# Names are not the shell's to interpret. No compgen -W, which would expand them.
		printf -v candidate '%q' "$candidate"
		COMPREPLY+=("$candidate")
	done
}

complete -o default -F _railctl railctl
