# A job's way from the command line to its end, as an operator sees it.

# Reads create no database.
$ settle jobs
err: settle: settle.db: there is no database here; to recover: name the right file with --db or SETTLE_DB; settle enqueue and settle run make a new one
exit: 1
$ settle status
err: settle: settle.db: there is no database here; to recover: name the right file with --db or SETTLE_DB; settle enqueue and settle run make a new one
exit: 1
$ settle work --exec x=
err: settle: --exec x: the command is empty
err: try: settle work --help
exit: 2
$ settle enqueue mail.send '{"to":"ada"}' --id 00000000-0000-8000-8000-000000000001 --tenant acme --key ada
00000000-0000-8000-8000-000000000001
$ settle enqueue mail.send '{"to":"ada"}' --tenant acme --key ada
00000000-0000-8000-8000-000000000001 existing (pending)
$ settle enqueue mail.send '{"to":"ada"}' --tenant acme --key ada --json
{"id":"00000000-0000-8000-8000-000000000001","existing":true,"state":"pending"}
$ settle enqueue mail.send - --id 00000000-0000-8000-8000-000000000002 --delay 2h --attempts 1 --timeout 5s <<< "{\"to\":\n\"bob\"}"
00000000-0000-8000-8000-000000000002
$ settle enqueue blob --raw - --id 00000000-0000-8000-8000-000000000003 --queue other --deadline 1h <<< "\x00\xff"
00000000-0000-8000-8000-000000000003
$ settle jobs
ID  KIND  QUEUE  TENANT  KEY  STATE  ATTEMPT  WHEN
00000000-0000-8000-8000-000000000001  mail.send  default  acme  ada  pending  0/10  due SPAN ago
00000000-0000-8000-8000-000000000002  mail.send  default  -  -  scheduled  0/1  due in SPAN
00000000-0000-8000-8000-000000000003  blob  other  -  -  pending  0/10  due SPAN ago
$ settle jobs --queue other --json
{"id":"00000000-0000-8000-8000-000000000003","kind":"blob","queue":"other","tenant":"","key":"","state":"pending","label":"pending","attempt":0,"charged":0,"tries":10,"crashed":0,"deferred":0,"redrives":0,"enqueued":"TIME","first_due":"TIME","due":"TIME","deadline":"TIME","ends_by":"TIME","suspect":false,"acked":false,"input_base64":"AP8=","policy":{"attempts":10,"crashes":3,"deferrals":1000,"redrives":20,"timeout_seconds":N,"backoff_min_seconds":N,"backoff_max_seconds":N,"deadline_seconds":N,"wait_seconds":N}}
$ settle jobs --state dead
err: settle: no job matches
$ settle jobs --limit 1
ID  KIND  QUEUE  TENANT  KEY  STATE  ATTEMPT  WHEN
00000000-0000-8000-8000-000000000001  mail.send  default  acme  ada  pending  0/10  due SPAN ago
err: settle: there are more than 1: choose with --queue, --kind or --tenant, or use --limit or --all
$ settle age
QUEUE  KIND  UNFINISHED  WAITING  OLDEST
default  mail.send  SPAN  SPAN  00000000-0000-8000-8000-000000000001
other  blob  SPAN  SPAN  00000000-0000-8000-8000-000000000003
$ settle age --queue other --json
{"at":"TIME","ages":[{"queue":"other","kind":"blob","unfinished_seconds":N,"oldest":"00000000-0000-8000-8000-000000000003","waiting_seconds":N}],"healthy":true}
$ settle age --max 1h
QUEUE  KIND  UNFINISHED  WAITING  OLDEST
default  mail.send  SPAN  SPAN  00000000-0000-8000-8000-000000000001
other  blob  SPAN  SPAN  00000000-0000-8000-8000-000000000003
$ settle status
settle.db at TIME
~
QUEUE  KIND  UNFINISHED  WAITING  OLDEST
default  mail.send  SPAN  SPAN  00000000-0000-8000-8000-000000000001
other  blob  SPAN  SPAN  00000000-0000-8000-8000-000000000003
~
QUEUE  PENDING  RUNNING  AWAITING  SUCCEEDED  DEAD  CANCELLED  REMOVED
default  2  0  0  0  0  0  0
other  1  0  0  0  0  0  0

# Work: each exit code has its meaning.
$ settle work --drain --quiet --exec 'mail.send=cat'
$ settle job 00000000-0000-8000-8000-000000000001
job  00000000-0000-8000-8000-000000000001
kind  mail.send
queue  default
tenant  acme
key  ada
state  succeeded
attempts  1 of 10 (crashed 0, put off 0, redriven 0)
enqueued  TIME (SPAN ago)
ended  TIME (SPAN ago)
input  12 bytes (settle job 00000000-0000-8000-8000-000000000001 --input)
output  12 bytes (settle job 00000000-0000-8000-8000-000000000001 --output)
$ settle job 00000000-0000-8000-8000-000000000001 --output
{"to":"ada"}(no newline)
$ settle job 00000000-0000-8000-8000-000000000001 --json
{"id":"00000000-0000-8000-8000-000000000001","kind":"mail.send","queue":"default","tenant":"acme","key":"ada","state":"succeeded","label":"succeeded","reason":"ok","attempt":1,"charged":1,"tries":10,"crashed":0,"deferred":0,"redrives":0,"enqueued":"TIME","first_due":"TIME","ended_at":"TIME","worker":"N","suspect":false,"acked":false,"input":{"to":"ada"},"output":{"to":"ada"},"policy":{"attempts":10,"crashes":3,"deferrals":1000,"redrives":20,"timeout_seconds":N,"backoff_min_seconds":N,"backoff_max_seconds":N,"deadline_seconds":N,"wait_seconds":N}}
$ settle job 00000000-0000-8000-8000-000000000003 --input --json
err: settle: --input, --output and --json exclude each other
err: try: settle job --help
exit: 2
$ settle why 00000000-0000-8000-8000-000000000001
It succeeded at TIME (SPAN ago), with attempt 1.
$ settle why 00000000-0000-8000-8000-000000000002
It is scheduled: due at TIME (in SPAN). Whatever happens, it will have ended by TIME (in SPAN).
$ settle why 00000000-0000-8000-8000-000000000003
It has been due for SPAN; a worker that serves kind blob in queue other takes it at its next look. Whatever happens, it will have ended by TIME (in SPAN).
$ settle work --drain --quiet --queue other --exec 'blob=sh -c "echo no such disk >&2; exit 66"'
err: time=TIME level=WARN msg="job died" job=00000000-0000-8000-8000-000000000003 kind=blob queue=other tenant="" attempt=1 by=holder end=terminal reason=error error="exit code 66: no such disk" took=SPAN
$ settle why 00000000-0000-8000-8000-000000000003
It is dead since TIME (SPAN ago) because an attempt said that trying again is useless: terminal: error: exit code 66: no such disk. It had 1 attempt: 1 charged, 10 allowed, 0 lost their worker. To give it a new chance: settle dead redrive 00000000-0000-8000-8000-000000000003
$ settle job 00000000-0000-8000-8000-000000000003
job  00000000-0000-8000-8000-000000000003
kind  blob
queue  other
state  dead, terminal: error: exit code 66: no such disk
attempts  1 of 10 (crashed 0, put off 0, redriven 0)
enqueued  TIME (SPAN ago)
ended  TIME (SPAN ago)
input  2 bytes (settle job 00000000-0000-8000-8000-000000000003 --input)
~
ATTEMPT  AT  REASON  ERROR
1  TIME  error  exit code 66: no such disk

# A dead letter is looked after.
$ settle dead list
ID  KIND  QUEUE  TENANT  ENDED  SEEN  WHY
00000000-0000-8000-8000-000000000003  blob  other  -  SPAN ago  no  terminal: error: exit code 66: no such disk
$ settle dead show 00000000-0000-8000-8000-000000000003
job  00000000-0000-8000-8000-000000000003
kind  blob
queue  other
state  dead, terminal: error: exit code 66: no such disk
attempts  1 of 10 (crashed 0, put off 0, redriven 0)
enqueued  TIME (SPAN ago)
ended  TIME (SPAN ago)
input  2 bytes (settle job 00000000-0000-8000-8000-000000000003 --input)
~
ATTEMPT  AT  REASON  ERROR
1  TIME  error  exit code 66: no such disk
$ settle dead show 00000000-0000-8000-8000-000000000001
err: settle: job 00000000-0000-8000-8000-000000000001 has succeeded, it is not dead
exit: 1
$ settle status
settle.db at TIME
~
QUEUE  KIND  UNFINISHED  WAITING  OLDEST
default  mail.send  -  -  -
~
QUEUE  PENDING  RUNNING  AWAITING  SUCCEEDED  DEAD  CANCELLED  REMOVED
default  1  0  0  1  0  0  0
other  0  0  0  0  1  0  0
~
queue other: dead letters that nobody has acknowledged: 1 (settle dead list --unacked --queue other)
$ settle status --check
settle.db at TIME
~
QUEUE  KIND  UNFINISHED  WAITING  OLDEST
default  mail.send  -  -  -
~
QUEUE  PENDING  RUNNING  AWAITING  SUCCEEDED  DEAD  CANCELLED  REMOVED
default  1  0  0  1  0  0  0
other  0  0  0  0  1  0  0
~
queue other: dead letters that nobody has acknowledged: 1 (settle dead list --unacked --queue other)
err: settle: unhealthy: queue other: dead letters that nobody has acknowledged: 1 (settle dead list --unacked --queue other)
exit: 3
$ settle dead export
{"id":"00000000-0000-8000-8000-000000000003","kind":"blob","queue":"other","tenant":"","key":"","state":"dead","label":"dead","reason":"terminal","last_error":"exit code 66: no such disk","attempt":1,"charged":1,"tries":10,"crashed":0,"deferred":0,"redrives":0,"enqueued":"TIME","first_due":"TIME","ended_at":"TIME","worker":"N","suspect":false,"acked":false,"input_base64":"AP8=","attempts":[{"n":1,"reason":"error","error":"exit code 66: no such disk","worker":"N","at":"TIME"}],"policy":{"attempts":10,"crashes":3,"deferrals":1000,"redrives":20,"timeout_seconds":N,"backoff_min_seconds":N,"backoff_max_seconds":N,"deadline_seconds":N,"wait_seconds":N}}
$ settle dead ack 00000000-0000-8000-8000-000000000003
00000000-0000-8000-8000-000000000003 acknowledged
$ settle dead ack 00000000-0000-8000-8000-000000000003
00000000-0000-8000-8000-000000000003 was acknowledged before
$ settle status --check
settle.db at TIME
~
QUEUE  KIND  UNFINISHED  WAITING  OLDEST
default  mail.send  -  -  -
~
QUEUE  PENDING  RUNNING  AWAITING  SUCCEEDED  DEAD  CANCELLED  REMOVED
default  1  0  0  1  0  0  0
other  0  0  0  0  1  0  0
$ settle dead ack 00000000-0000-8000-8000-000000000003 --undo
00000000-0000-8000-8000-000000000003 no longer acknowledged
$ settle dead ack --all
00000000-0000-8000-8000-000000000003 acknowledged
err: settle: acknowledge: 1 job
$ settle dead list --unacked
err: settle: no dead letter matches
$ settle dead redrive --queue other
00000000-0000-8000-8000-000000000003 redriven: 10 attempts, ends by TIME
err: settle: redrive: 1 job
$ settle dead redrive 00000000-0000-8000-8000-000000000003
err: settle: job 00000000-0000-8000-8000-000000000003 is pending: the job has not ended
exit: 1
$ settle job 00000000-0000-8000-8000-000000000003
job  00000000-0000-8000-8000-000000000003
kind  blob
queue  other
state  pending
attempts  1 of 11 (crashed 0, put off 0, redriven 1)
enqueued  TIME (SPAN ago)
due  TIME (SPAN ago)
ends by  TIME (in SPAN)
input  2 bytes (settle job 00000000-0000-8000-8000-000000000003 --input)
~
ATTEMPT  AT  REASON  ERROR
1  TIME  error  exit code 66: no such disk
$ settle cancel 00000000-0000-8000-8000-000000000003 --why 'not needed any more'
00000000-0000-8000-8000-000000000003 cancelled
$ settle cancel 00000000-0000-8000-8000-000000000003
err: settle: job 00000000-0000-8000-8000-000000000003 has been cancelled
exit: 1
$ settle why 00000000-0000-8000-8000-000000000003
It is cancelled since TIME (SPAN ago) because somebody called it off: cancelled: not needed any more. The last real error was attempt 1: error: exit code 66: no such disk. It had 1 attempt: 1 charged, 11 allowed, 0 lost their worker. To give it a new chance: settle dead redrive 00000000-0000-8000-8000-000000000003
$ settle dead redrive 00000000-0000-8000-8000-000000000003
00000000-0000-8000-8000-000000000003 redriven: 10 attempts, ends by TIME
$ settle work --drain --quiet --queue other --exec blob=false --limit 1
$ settle cancel 00000000-0000-8000-8000-000000000003
00000000-0000-8000-8000-000000000003 cancelled
$ settle dead redrive 00000000-0000-8000-8000-000000000003
00000000-0000-8000-8000-000000000003 redriven: 10 attempts, ends by TIME
$ settle work --drain --quiet --queue other --exec 'blob=sh -c "exit 65"'
err: time=TIME level=WARN msg="job died" job=00000000-0000-8000-8000-000000000003 kind=blob queue=other tenant="" attempt=3 by=holder end=terminal reason=error error="exit code 65" took=SPAN
$ settle cancel 00000000-0000-8000-8000-000000000003
err: settle: job 00000000-0000-8000-8000-000000000003 is dead
exit: 1
$ settle dead drop --all
err: settle: this would drop 1 job; add --yes if that is meant
err: try: settle dead drop --help
exit: 2
$ settle dead drop 00000000-0000-8000-8000-000000000001
err: settle: job 00000000-0000-8000-8000-000000000001 has succeeded, it is not dead
exit: 1
$ settle dead drop 00000000-0000-8000-8000-000000000009
err: settle: settle.db has no job 00000000-0000-8000-8000-000000000009: it was never accepted here, or it was removed after its end
exit: 1
$ settle dead drop --all --yes
00000000-0000-8000-8000-000000000003 dropped
err: settle: drop: 1 job
$ settle status --json
{"at":"TIME","healthy":true,"problems":[],"ages":[{"queue":"default","kind":"mail.send","unfinished_seconds":N,"oldest":"","waiting_seconds":N}],"counts":[{"queue":"default","state":"pending","count":1,"capped":false,"acked":0},{"queue":"default","state":"succeeded","count":1,"capped":false,"acked":0}],"removed":[{"queue":"other","state":"dead","count":1}],"holds":[],"nodes":[],"inboxes":[]}
$ settle jobs --queue other
err: settle: no job matches
$ settle age --queue other
no live job
$ settle age --queue othr
err: settle: queue "othr" is unknown in settle.db; there are: default, other
exit: 1
