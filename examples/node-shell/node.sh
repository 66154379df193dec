#!/usr/bin/env bash
# A node of contract v1 (docs/contract.md) that is no server: it reads one
# submission from a file or its standard input, works, and answers by callback,
# or by Redis if REDIS_URL is set and the submission offers it. Copy it, and
# replace work. To cancel it, end its process group.
#
#   node.sh submission.json
#
# Exit codes: 0 = the answer is recorded, 1 = nobody takes it, or the deadline
# has passed, 65 = no submission that can be answered from here.
# Needs jq, openssl, and curl or redis-cli.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
submission=$dir/submission
cat -- "${1:--}" > "$submission"

# get reads one field of the submission; "" if it is not there.
get() { jq -r "$1 // empty" "$submission"; }

if ! jq -e '.v == 1 and ([.job, .step, .attempt] | all(type == "string" and . != "")) and
	(.deadline_ms | type == "number" and . > 0) and has("input")' "$submission" > /dev/null 2>&1; then
	echo "node: no submission of contract v1" >&2
	exit 65
fi
deadline=$((SECONDS + $(get '.deadline_ms / 1000 | ceil')))
every=$(get '(.silence_ms // 30000 | numbers) / 3000 | floor') # seconds: three signs of life in the longest silence allowed
url=$(get .answer.url)
key=$(get .answer.key)
stream=$(get .answer.redis.stream)
if [[ -n $stream && -n ${REDIS_URL:-} ]]; then
	way=redis
elif [[ $url == http://* || $url == https://* ]] && [[ -n $key ]]; then
	way=callback
else
	echo "node: no way to answer" >&2
	exit 65
fi

# work is the toy that your work replaces: it counts the words of a text. It says
# that it is alive, and prints what the answer says. If it fails, so does the step.
work() {
	local seconds
	if ! jq -e '.input.text | strings' "$submission" > /dev/null 2>&1; then
		echo '{"status": "error", "error": {"reason": "bad_input", "message": "there is no text", "retryable": false}}'
		return
	fi
	# Never let bash compute with text from outside: it would run it.
	seconds=$(jq '.input.seconds // 0 | if type == "number" then floor else error("seconds: no number") end' "$submission") # how long to take
	for ((; seconds > 0; seconds--)); do
		sleep 1
		alive
	done
	if [[ -n $(get .input.fail) ]]; then # why to fail
		jq '.input | {status: "error", error: {reason: (.fail | tostring), message: "the input asked for it", retryable: [.retryable | booleans][0]}}' "$submission"
		return
	fi
	jq -j .input.text "$submission" > "$dir/text"
	jq -n --argjson words "$(awk '{n += NF} END {print n + 0}' "$dir/text")" --arg sha256 "$(openssl dgst -sha256 -r "$dir/text" | cut -d ' ' -f 1)" \
		'{status: "done", output: {$words, $sha256}}'
}

# document makes a document of what stands in a file: its status, output or error.
document() {
	jq -c --arg node "${NODE:-node-shell}" --slurpfile said "$1" '{v: 1, job, step, attempt, node: $node} + $said[0]' "$submission"
}

# send sends a document once: an answer, or progress. It prints the consumer's
# status: 200 is recorded, 000 is no reply.
send() {
	case $way/$2 in
	redis/answer) # never cut off: no MAXLEN
		add "$stream" '*' < "$1"
		;;
	redis/progress)
		add "$(get .answer.redis.progress)" MAXLEN '~' 10000 '*' < "$1"
		;;
	callback/*)
		local mac
		mac=$(openssl dgst -sha256 -hmac "$key" -r "$1")
		curl -q --silent --show-error --globoff --max-time 10 --output "$dir/reply" --write-out '%{http_code}' \
			--header 'Content-Type: application/json' --header "Settle-Signature: v1=${mac%% *}" --data-binary "@$1" --url "$url" || true
		;;
	esac
}

# add appends to a stream. redis-cli exits with 0 on most errors: what counts is
# whether it prints the id of the new entry.
add() {
	local id
	id=$(timeout 10 redis-cli -u "$REDIS_URL" -x XADD "$@" ticket "$(get .answer.redis.ticket)" doc) || true
	if [[ $id =~ ^[0-9]+-[0-9]+$ ]]; then echo 200; else echo 000 && echo "node: $id" >&2; fi
}

# alive tells that the work goes on. It ends the work that nobody waits for.
told=$SECONDS
alive() {
	((SECONDS < deadline)) || unwanted
	((SECONDS - told >= every)) || return 0
	told=$SECONDS
	echo '{"status": "progress"}' > "$dir/said"
	document "$dir/said" > "$dir/progress"
	case $(send "$dir/progress" progress) in
	409 | 410 | 422) unwanted ;;
	esac
}
unwanted() {
	touch "$dir/unwanted"
	exit 1
}

set +e # not "if", within which -e has no effect
(set -e; work) > "$dir/result" 2> "$dir/trouble"
code=$?
set -e
cat "$dir/trouble" >&2
if [[ -e $dir/unwanted ]]; then
	echo "node: nobody waits any more" >&2
	exit 1
elif ((code != 0)); then # whether trying again helps is not known, and so not said
	jq -n --arg reason "exit_$code" --arg message "$(tail -c 1000 "$dir/trouble")" '{status: "error", error: {reason: $reason, message: $message}}' > "$dir/result"
fi
document "$dir/result" > "$dir/answer"
if (($(wc -c < "$dir/answer") > 1 << 20)); then
	echo '{"status": "error", "error": {"reason": "too_large", "message": "an answer of more than 1 MiB", "retryable": false}}' > "$dir/result"
	document "$dir/result" > "$dir/answer"
fi

# The same bytes, later and later, until they are recorded, or somebody says that
# they will never be, or the deadline.
for ((pause = 1000; SECONDS < deadline; pause = pause < 30000 ? 2 * pause : 60000)); do
	status=$(send "$dir/answer" answer)
	case $status in
	200) exit 0 ;;
	409 | 410 | 422)
		echo "node: nobody takes the answer: $status" >&2
		exit 1
		;;
	esac
	wait=$((pause / 2 + RANDOM % (pause / 2))) # milliseconds
	sleep "$((wait / 1000)).$(printf %03d $((wait % 1000)))"
done
echo "node: the deadline has passed" >&2
exit 1
