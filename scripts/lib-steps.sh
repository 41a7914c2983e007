# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Runs named steps, a line each, and counts them. Sourced after lib.sh by lint and check. Results go to
# $RAIL_RESULTS, "passed|failed|skipped NAME[: REASON]" a line; a script that another one started (make check
# starts lint) adds to that one's file and leaves the summary to it.

LOGS=$TOP/build/check
mkdir -p "$LOGS"
STEPS_OUTER=${RAIL_RESULTS:-}
if [ -z "$STEPS_OUTER" ]; then
	RAIL_RESULTS=$LOGS/$PROG.results
	: >"$RAIL_RESULTS"
	export RAIL_RESULTS
fi

# Exit status of a command that a step takes for "skipped"; the last line of its output is the reason.
EXIT_SKIP=77

result() { printf '%s\n' "$*" >>"$RAIL_RESULTS"; }

step_line() { printf '%-7s %-34s %7s%s\n' "$1" "$2" "$3" "${4:+  $4}"; }

# step [-v] [-c] NAME COMMAND...
# -v: what the command prints is shown as it comes. -c: the command counts for itself (into $RAIL_RESULTS) and
# counts here only if it fails without having counted a failure.
step() {
	local verbose=0 counts=0 name log start rc=0 reason failed_before took
	while [[ $1 == -? ]]; do
		case $1 in
		-v) verbose=1 ;;
		-c) counts=1 ;;
		esac
		shift
	done
	name=$1
	shift
	log=$LOGS/${name//[^A-Za-z0-9.-]/_}.log
	start=$SECONDS
	failed_before=$(grep -c '^failed' "$RAIL_RESULTS" || :)
	# In a subshell and outside of any condition, or `set -e` would be off inside of a function.
	set +e
	if [ "$verbose" = 1 ]; then
		(set -e; "$@") 2>&1 </dev/null | tee "$log" | sed -u 's/^/        /'
		rc=${PIPESTATUS[0]}
	else
		(set -e; "$@") >"$log" 2>&1 </dev/null
		rc=$?
	fi
	set -e
	took=$(human_time $((SECONDS - start)))
	if [ "$rc" = "$EXIT_SKIP" ]; then
		reason=$(tail -n 1 "$log")
		result "skipped $name: $reason"
		step_line SKIP "$name" "$took" "$reason"
	elif [ "$rc" != 0 ]; then
		if [ "$counts" = 0 ] || [ "$(grep -c '^failed' "$RAIL_RESULTS" || :)" = "$failed_before" ]; then
			result "failed $name"
		fi
		step_line FAIL "$name" "$took" "log: ${log#"$TOP"/}"
		[ "$verbose" = 1 ] || show_tail "$log"
	else
		[ "$counts" = 1 ] || result "passed $name"
		step_line ok "$name" "$took"
	fi
	# For callers that go on only after success. Not the status, which would end a script with `set -e`.
	# shellcheck disable=SC2034
	STEP_RC=$rc
}

# Skips that are known of: shell patterns on "NAME: REASON", a line each.
expected_skip() {
	local pattern
	while IFS= read -r pattern; do
		[[ -n $pattern && $pattern != \#* ]] || continue
		# shellcheck disable=SC2053 # a pattern it is
		[[ $1 != $pattern ]] || return 0
	done <"$TOP/tests/expected-skips"
	return 1
}

# The end of a run: skips with their reasons, failures by name, and the line that counts them.
steps_end() {
	local line passed failed skipped unexpected=0
	if [ -n "$STEPS_OUTER" ]; then
		if grep -q '^failed' "$RAIL_RESULTS"; then return 1; fi
		return 0
	fi
	while IFS= read -r line; do
		line=${line#skipped }
		if expected_skip "$line"; then
			printf 'skipped (expected): %s\n' "$line"
		else
			printf 'skipped, and should not be: %s\n' "$line"
			unexpected=$((unexpected + 1))
		fi
	done < <(grep '^skipped' "$RAIL_RESULTS")
	sed -n 's/^failed /failed: /p' "$RAIL_RESULTS"
	passed=$(grep -c '^passed' "$RAIL_RESULTS" || :)
	failed=$(grep -c '^failed' "$RAIL_RESULTS" || :)
	skipped=$(grep -c '^skipped' "$RAIL_RESULTS" || :)
	[ "$unexpected" = 0 ] ||
		printf '%d skipped without need: mend it, or add the reason to tests/expected-skips\n' "$unexpected"
	printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
	[ "$failed" = 0 ] && [ "$unexpected" = 0 ] && [ "$passed" -gt 0 ]
}
