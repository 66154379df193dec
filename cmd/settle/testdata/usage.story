# What is wrong with a command line is said, and the exit code is 2.

$ settle frob
err: settle: unknown command "frob" for "settle"; there are: age, audit, cancel, completion, dead, demo, enqueue, hold, job, jobs, migrate, nodes, pause, release, repair, resume, run, status, version, why, work
err: try: settle --help
exit: 2
$ settle jbos
err: settle: unknown command "jbos" for "settle"; did you mean job, jobs?
err: try: settle --help
exit: 2
$ settle dead frob
err: settle: unknown command "frob" for "settle dead"; there are: ack, drop, export, list, redrive, show
err: try: settle dead --help
exit: 2
$ settle dead lst
err: settle: unknown command "lst" for "settle dead"; did you mean list?
err: try: settle dead --help
exit: 2
$ settle jobs --frob
err: settle: unknown flag: --frob
err: try: settle jobs --help
exit: 2
$ settle jobs word
err: settle: want no words, only flags (one job: "settle job ID"); "word" is one word too many
err: try: settle jobs --help
exit: 2
$ settle jobs --state frob
err: settle: --state "frob": want pending, running, awaiting, succeeded, dead, cancelled, live or ended
err: try: settle jobs --help
exit: 2
$ settle jobs --limit 0
err: settle: --limit 0: want 1 or more, or --all
err: try: settle jobs --help
exit: 2
$ settle job
err: settle: want the id of one job
err: try: settle job --help
exit: 2
$ settle job x
err: settle: job id "x": want 36 characters such as 0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a
err: try: settle job --help
exit: 2
$ settle job 00000000-0000-8000-8000-000000000001 00000000-0000-8000-8000-000000000002
err: settle: want the id of one job; "00000000-0000-8000-8000-000000000002" is one word too many
err: try: settle job --help
exit: 2
$ settle why 00000000-0000-0000-0000-000000000000
err: settle: job id 00000000-0000-0000-0000-000000000000 names no job
err: try: settle why --help
exit: 2
$ settle enqueue
err: settle: want a kind and at most one input; quote JSON: settle enqueue mail.send '{"to":"ada"}'
err: try: settle enqueue --help
exit: 2
$ settle enqueue a b c
err: settle: want a kind and at most one input; quote JSON: settle enqueue mail.send '{"to":"ada"}'; "c" is one word too many
err: try: settle enqueue --help
exit: 2
$ settle enqueue a '{"x":1} 2'
err: settle: input: is not JSON at byte 9 (line 1, column 9): invalid character '2' after top-level value; --raw passes on any bytes
err: try: settle enqueue --help
exit: 2
$ settle enqueue a '{"x":'
err: settle: input: is not JSON: it ends in the middle, after byte 5; --raw passes on any bytes
err: try: settle enqueue --help
exit: 2
$ settle enqueue a ''
err: settle: input: is empty: want a JSON document; --raw passes on any bytes
err: try: settle enqueue --help
exit: 2
$ settle enqueue a 1 --file f
err: settle: an input and --file exclude each other
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --file nosuchfile
err: settle: --file: open nosuchfile: no such file or directory
err: try: settle enqueue --help
exit: 2
$ settle enqueue a - <<< "\"\xff\""
err: settle: standard input: is not valid UTF-8 at byte 2 (line 1, column 2); --raw passes on any bytes
err: try: settle enqueue --help
exit: 2
$ settle enqueue a - <<< "\"\x00\""
err: settle: standard input: is not JSON at byte 2 (line 1, column 2): invalid character '\x00' in string literal; --raw passes on any bytes
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --due 10000-01-01T00:00:00Z
err: settle: --due "10000-01-01T00:00:00Z": want RFC 3339, such as 2030-01-31T08:00:00Z or 2030-01-31T08:00:00+01:00, at most 10 years ahead
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --due 9999-12-31T00:00:00Z
err: settle: due: is more than 10 years ahead, or no year from 1 to 9999; check the unit
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --due tomorrow
err: settle: --due "tomorrow": want RFC 3339, such as 2030-01-31T08:00:00Z or 2030-01-31T08:00:00+01:00, at most 10 years ahead
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --due 2030-01-01T00:00:00Z --delay 1h
err: settle: --due and --delay exclude each other
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --delay -1s
err: settle: delay: is negative: want 0 or more
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --delay 3651d
err: settle: due: is more than 10 years ahead, or no year from 1 to 9999; check the unit
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --delay 99999999999d
err: settle: --delay "99999999999d": is beyond what a duration can hold
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --head 2h
err: settle: head start: is 2h0m0s: want 0 to 1h0m0s
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --head -1s
err: settle: head start: is -1s: want 0 to 1h0m0s
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --deadline -1s
err: settle: deadline: is -1s: want 1ms to 87600h0m0s after due, or 0 for the policy's
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --deadline 0
err: settle: --deadline 0: want more than 0, or leave it out for the default
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --attempts 0
err: settle: --attempts 0: want more than 0, or leave it out for the default
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --attempts -1
err: settle: policy: Attempts is -1: want 1 to 1000000, or 0 for the default
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --attempts 99999999999999999999
err: settle: --attempts "99999999999999999999": is beyond what a number can hold
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --timeout -1s
err: settle: policy: Timeout is -1s: want up to 720h0m0s, or 0 for the default
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --timeout 31d
err: settle: policy: Timeout is 744h0m0s: want up to 720h0m0s, or 0 for the default
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --id x
err: settle: job id "x": want 36 characters such as 0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a
err: try: settle enqueue --help
exit: 2
$ settle enqueue ''
err: settle: kind: is empty: want a name
err: try: settle enqueue --help
exit: 2
$ settle enqueue ' a'
err: settle: kind: " a" begins or ends with a space
err: try: settle enqueue --help
exit: 2
$ settle work
err: settle: want at least one --exec KIND=CMD or --http KIND=URL
err: try: settle work --help
exit: 2
$ settle work --exec cat
err: settle: --exec "cat": want KIND=CMD
err: try: settle work --help
exit: 2
$ settle work --exec =cat
err: settle: --exec "=cat": want KIND=CMD
err: try: settle work --help
exit: 2
$ settle work --exec a=
err: settle: --exec a: the command is empty
err: try: settle work --help
exit: 2
$ settle work --exec a=no-such-command
err: settle: --exec a: command "no-such-command" not found
err: try: settle work --help
exit: 2
$ settle work --exec 'a=cat "x'
err: settle: --exec a: unclosed "
err: try: settle work --help
exit: 2
$ settle work --http a=ftp://host/
err: settle: --http a: want a URL that begins with http:// or https://
err: try: settle work --help
exit: 2
$ settle work --http a=http://host:99999/
err: settle: --http a: port "99999": want 1 to 65535
err: try: settle work --help
exit: 2
$ settle work --exec a=cat --http a=http://host/
err: settle: --http: kind a has two targets
err: try: settle work --help
exit: 2
$ settle work --exec a=cat --slots 0
err: settle: --slots 0: want more than 0
err: try: settle work --help
exit: 2
$ settle work --exec a=cat --slots -1
err: settle: --slots -1: want more than 0
err: try: settle work --help
exit: 2
$ settle work --exec a=cat --limit -1
err: settle: --limit -1: want more than 0
err: try: settle work --help
exit: 2
$ settle work --exec a=cat --lease -1s
err: settle: --lease -1s: want 1s to 1h
err: try: settle work --help
exit: 2
$ settle work --exec a=cat --lease 1ms
err: settle: --lease 1ms: want 1s to 1h
err: try: settle work --help
exit: 2
$ settle work --exec a=cat --queue ''
err: settle: --queue: the name is empty
err: try: settle work --help
exit: 2
$ settle age --max 0
err: settle: --max 0s: want more than 0
err: try: settle age --help
exit: 2
$ settle age --max -5m
err: settle: --max -5m: want more than 0
err: try: settle age --help
exit: 2
$ settle dead redrive
err: settle: want the ids of jobs, or flags that choose them
err: try: settle dead redrive --help
exit: 2
$ settle dead redrive --all 00000000-0000-8000-8000-000000000001
err: settle: ids and flags that choose jobs exclude each other
err: try: settle dead redrive --help
exit: 2
$ settle dead export --kind a 00000000-0000-8000-8000-000000000001
err: settle: ids and flags that choose jobs exclude each other
err: try: settle dead export --help
exit: 2
$ settle migrate now
err: settle: want no words, only flags; "now" is one word too many
err: try: settle migrate --help
exit: 2
$ settle jobs --db ''
err: settle: --db: want the path of a database file, such as settle.db
err: try: settle jobs --help
exit: 2
$ settle jobs --db .
err: settle: --db: . is a folder: want a file, such as --db ./settle.db
err: try: settle jobs --help
exit: 2
$ settle enqueue a --db .
err: settle: --db: . is a folder: want a file, such as --db ./settle.db
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --db no/such/folder/settle.db
err: settle: no/such/folder/settle.db: its folder does not exist; to recover: mkdir -p no/such/folder
exit: 1

# Nothing of the above has made a database.
$ settle jobs
err: settle: settle.db: there is no database here; to recover: name the right file with --db or SETTLE_DB; settle enqueue and settle run make a new one
exit: 1
$ settle migrate
err: settle: settle.db: there is no database here; to recover: name the right file with --db or SETTLE_DB; settle enqueue and settle run make a new one
exit: 1
$ settle repair
err: settle: settle.db: there is no database here; to recover: name the right file with --db or SETTLE_DB; settle enqueue and settle run make a new one
exit: 1
