# SPDX-License-Identifier: GPL-2.0-only
# Completion of railctl for fish. railctl itself knows what may come next, names that there are now included.

function __railctl_complete
    set -l words (commandline -opc)
    railctl __complete $words[2..-1] (commandline -ct) 2>/dev/null
end

complete -c railctl -f -a '(__railctl_complete)'
complete -c railctl -n '__fish_seen_subcommand_from apply' -F
complete -c railctl -n '__fish_seen_subcommand_from export; and __fish_seen_subcommand_from add' -F
