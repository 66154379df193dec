#!/usr/bin/env bash
# Installs what the tests need beside Go: a C compiler for the race detector (the
# product itself is built without one), ps, Redis, and what the examples of nodes
# are written in: Python, curl, jq, openssl.
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
command -v redis-server > /dev/null || packages+=(redis-server)
command -v redis-cli > /dev/null || packages+=(redis-tools)
/usr/bin/python3 -c 'import redis' 2> /dev/null || packages+=(python3 python3-redis)
command -v curl > /dev/null || packages+=(curl)
command -v jq > /dev/null || packages+=(jq)
command -v openssl > /dev/null || packages+=(openssl)
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

# Every test starts a server of its own: the service that comes with the package
# is not started, neither now nor when the machine is.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	trap 'rm -f $policy' EXIT
	printf '#!/bin/sh\nexit 101\n' > $policy
	chmod +x $policy
fi

echo "setup: $install"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq < /dev/null
$install -qq < /dev/null > /dev/null
if [[ " ${packages[*]} " == *" redis-server "* ]]; then
	update-rc.d redis-server disable > /dev/null 2>&1 || true # no init system, no service
fi

if ! works; then
	echo "setup: gcc is installed, and yet '$(go env CC)' cannot build a program" >&2
	exit 1
fi
