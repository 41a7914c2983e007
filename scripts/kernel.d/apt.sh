# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Packages from suites that this machine need not have configured: the mirror is the one that the
# machine's own apt uses, the state (lists, cache, status) is private, so nothing on the host changes
# and no root is needed.
# shellcheck disable=SC2034 # APT_DEB and APT_ERROR are read by the caller

APT_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# The configured archives as "URI RELEASE" lines. apt itself parses the one-line and the deb822 format.
apt_configured() {
	# shellcheck disable=SC2016 # the names are apt's
	apt-get indextargets --no-release-info --format '$(IDENTIFIER) $(REPO_URI) $(RELEASE) $(COMPONENT)' 2>/dev/null |
		awk '$1 == "Packages" && $4 == "main" { print $2, $3 }' | sort -u
}

# URIs of Debian's main archive. Only Debian has a suite CODENAME-updates; others, which may call a
# suite of theirs `bookworm`, come last and fail at the signature.
apt_main_uris() {
	apt_configured | awk '
		$2 ~ /-updates$/ { first[$1] }
		$2 ~ /^(bookworm|trixie|forky|sid|oldstable|stable|testing|unstable)$/ { other[$1] }
		END { for (u in first) print u; for (u in other) if (!(u in first)) print u }'
}

apt_security_uris() { apt_configured | awk '$2 ~ /-security$/ && !seen[$1]++ { print $1 }'; }

apt_state() { printf '%s' "$RAIL_CACHE/apt/$1"; }

# apt_private SUITE COMMAND... : COMMAND (apt-get or apt-cache with arguments) on the private state of SUITE
apt_private() {
	local state
	state=$(apt_state "$1")
	shift
	APT_CONFIG='' "$1" -c "$state/apt.conf" "${@:2}"
}

# Sets up SUITE and fetches its index. Status 1: the mirror has no such suite; 2: it cannot be used at all. The
# reason is left in APT_ERROR.
apt_suite() {
	local suite=$1 state log uri
	state=$(apt_state "$suite")
	log=$state/update.log
	APT_ERROR=
	# Once a run is enough.
	[ ! -e "$state/updated.$$" ] || return 0
	rm -rf "$state"
	mkdir -p "$state/lists/partial" "$state/archives/partial" "$state/etc"
	: >"$state/status"
	# Hooks and indexes that the machine configured for itself (apt-file, container clean-up) are not for us.
	cat >"$state/apt.conf" <<END
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Update::Pre-Invoke;
#clear APT::Default-Release;
Dir::State "$state";
Dir::State::Lists "$state/lists";
Dir::State::status "$state/status";
Dir::Cache "$state";
Dir::Cache::archives "$state/archives";
Dir::Etc::sourcelist "$state/etc/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-";
Dir::Etc::preferencesparts "-";
APT::Architecture "amd64";
APT::Architectures "amd64";
APT::Sandbox::User "$(id -un)";
Acquire::Languages "none";
Acquire::PDiffs "false";
Acquire::Retries "3";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11-icons::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11-icons-small::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11-icons-hidpi::DefaultEnabled "false";
END
	if [ ! -r "$APT_KEYRING" ]; then
		APT_ERROR="the package debian-archive-keyring is missing (scripts/setup installs it)"
		return 2
	fi
	for uri in $(apt_main_uris); do
		printf 'deb [signed-by=%s] %s %s main\n' "$APT_KEYRING" "$uri" "$suite" >"$state/etc/sources.list"
		if apt_private "$suite" apt-get -q update >"$log" 2>&1 && ! grep -q '^[WE]: Failed' "$log"; then
			# The security archive has the newest kernels of a released suite.
			if apt_add_security "$suite" "$log"; then :; fi
			: >"$state/updated.$$"
			return 0
		fi
	done
	if [ ! -s "$log" ]; then
		APT_ERROR="no Debian archive is configured in this machine's apt sources"
		return 2
	fi
	if grep -qE '404|Not Found|does not have a Release file' "$log"; then
		APT_ERROR="the configured mirror has no suite $suite"
		return 1
	fi
	APT_ERROR="the configured mirror cannot be used ($(grep -m1 '^[WE]:' "$log" | sed -E 's#Failed to fetch [^ ]* *##; s/^[WE]: *//'))"
	return 2
}

apt_add_security() {
	local suite=$1 log=$2 state uri
	state=$(apt_state "$suite")
	[[ $suite =~ ^(bookworm|trixie)$ ]] || return 0
	for uri in $(apt_security_uris); do
		cp "$state/etc/sources.list" "$state/etc/sources.list.main"
		printf 'deb [signed-by=%s] %s %s main\n' "$APT_KEYRING" "$uri" "$suite-security" >>"$state/etc/sources.list"
		if apt_private "$suite" apt-get -q update >>"$log" 2>&1; then
			return 0
		fi
		mv "$state/etc/sources.list.main" "$state/etc/sources.list"
		apt_private "$suite" apt-get -q update >>"$log" 2>&1 || :
	done
}

# apt_field SUITE PACKAGE=VERSION FIELD
apt_field() {
	apt_private "$1" apt-cache show "$2" 2>/dev/null | sed -n "s/^$3: //p" | head -n 1
}

# Every version of PACKAGE in SUITE, newest first.
apt_versions() {
	apt_private "$1" apt-cache madison "$2" 2>/dev/null | awk -F'|' '{ gsub(/ /, "", $2); if (!seen[$2]++) print $2 }'
}

# Names of the packages in SUITE that match an anchored pattern.
apt_names() {
	apt_private "$1" apt-cache --generate pkgnames 2>/dev/null | grep -E -- "$2" || :
}

# apt_fetch NAME SUITE PACKAGE VERSION: the .deb is left in $RAIL_CACHE/debs; its path in APT_DEB
apt_fetch() {
	local name=$1 suite=$2 package=$3 version=$4 debs=$RAIL_CACHE/debs size found
	mkdir -p "$debs"
	for found in "$debs/${package}_${version//:/%3a}"_*.deb; do
		if [ -e "$found" ] && sha256sum --quiet --status -c - <<<"$(apt_field "$suite" "$package=$version" SHA256)  $found"; then
			APT_DEB=$found
			return 0
		fi
		rm -f "$found"
	done
	size=$(apt_field "$suite" "$package=$version" Size)
	say "$name: fetching $package $version ($(((${size:-0} + 1048575) / 1048576)) MB)"
	(cd "$debs" && apt_private "$suite" apt-get -q download "$package=$version") >"$(apt_state "$suite")/download.log" 2>&1 || {
		show_tail "$(apt_state "$suite")/download.log" 5
		die "$name: $package $version could not be fetched from the configured mirror; is the network up?"
	}
	for found in "$debs/${package}_${version//:/%3a}"_*.deb; do
		[ ! -e "$found" ] || { APT_DEB=$found; return 0; }
	done
	die "$name: apt fetched $package $version but left no file for it in $debs"
}
