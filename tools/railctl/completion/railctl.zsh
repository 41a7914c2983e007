#compdef railctl
# SPDX-License-Identifier: GPL-2.0-only
# Completion of railctl for zsh. railctl itself knows what may come next, names that there are now included.

_railctl() {
	local line
	local -a names shown
	for line in "${(@f)$(railctl __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
		[[ -n $line ]] || continue
		names+=("${line%%$'\t'*}")
		shown+=("${line/$'\t'/  }")
	done
	if (( $#names )); then
		compadd -l -d shown -a names
	else
		_files
	fi
}

_railctl "$@"
