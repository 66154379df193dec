#!/usr/bin/env bash
# A producer for the stand-alone mailbox (docs/contract.md, "By Redis, as a key"):
# it reads a task from its standard input, works, and leaves the answer under a
# key. What a task looks like is between you and your consumer; here it is
#
#   {"key": "settle:answer:video-7.a1b2c3", "lifetime_s": 7200, "job": "video-7", "step": "count", "attempt": "a1b2c3", "text": "…"}
#
# Needs jq and redis-cli. REDIS_URL: redis://host:port.
set -euo pipefail

task=$(cat)
get() { jq -r "$1" <<< "$task"; }
redis() { timeout 10 redis-cli -u "${REDIS_URL:-redis://127.0.0.1:6379}" "$@"; }

if words=$(jq -e -j '.text | strings' <<< "$task" | awk '{n += NF} END {print n + 0}'); then
	said=$(jq -n --argjson words "$words" '{status: "done", output: {$words}}')
else
	said='{"status": "error", "error": {"reason": "bad_input", "message": "there is no text", "retryable": false}}'
fi
answer=$(jq -c --argjson said "$said" '{v: 1, job, step, attempt, node: "key-shell"} + $said' <<< "$task")

# Write first, then nudge; again, later and later, until it is written or its
# lifetime would be over. SETEX is SET … EX with the document at the end, where
# redis-cli takes it from its standard input, however large it is.
key=$(get .key)
lifetime=$(get '.lifetime_s | floor') # bash computes with it: only a number will do
for ((pause = 1; SECONDS < lifetime; pause = pause < 30 ? 2 * pause : 60)); do
	if [[ $(redis -x SETEX "$key" "$lifetime" <<< "$answer") == OK ]]; then
		redis PUBLISH settle:nudge "$key" > /dev/null || true # a nudge may be lost
		exit 0
	fi
	sleep "$pause"
done
exit 1
