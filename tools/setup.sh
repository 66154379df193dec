#!/usr/bin/env bash
# Installs what the tests need beside Go: a C compiler for the race detector (the
# product itself is built without one), and ps.
set -euo pipefail

if ! command -v go > /dev/null; then
	echo "setup: Go is missing; see https://go.dev/doc/install" >&2
	exit 1
fi

# works asks whether the compiler that Go would use can build a program: a gcc
# without the headers of the C library is no compiler.
works() {
	local cc dir
	cc=$(go env CC)
	command -v "${cc%% *}" > /dev/null || return 1
	dir=$(mktemp -d)
	printf '#include <stdlib.h>\n#include <pthread.h>\nint main(void) { return 0; }\n' > "$dir/probe.c"
	$cc -o "$dir/probe" "$dir/probe.c" > /dev/null 2>&1
	local status=$?
	rm -rf "$dir"
	return $status
}

packages=()
works || packages+=(gcc libc6-dev)
command -v ps > /dev/null || packages+=(procps) # tests look at processes that they started
if [ ${#packages[@]} -eq 0 ]; then
	exit 0
fi

install="apt-get install -y --no-install-recommends ${packages[*]}"
if ! command -v apt-get > /dev/null; then
	echo "setup: there is no apt-get. Install what Debian calls: ${packages[*]}" >&2
	exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
	echo "setup: the tests need ${packages[*]}. Run as root: apt-get update && $install" >&2
	exit 1
fi

echo "setup: $install"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq < /dev/null
$install -qq < /dev/null > /dev/null

if ! works; then
	echo "setup: gcc is installed, and yet '$(go env CC)' cannot build a program" >&2
	exit 1
fi
