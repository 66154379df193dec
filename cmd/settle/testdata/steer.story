# Pauses and holds pass by themselves; each says until when.

$ settle enqueue a --id 00000000-0000-8000-8000-000000000001 --tenant acme
00000000-0000-8000-8000-000000000001
$ settle enqueue a --id 00000000-0000-8000-8000-000000000002
00000000-0000-8000-8000-000000000002
$ settle pause default --for 2h --why "database is moved"
queue default is paused until TIME (in SPAN)
$ settle why 00000000-0000-8000-8000-000000000001
It waits because queue default is paused (database is moved) until TIME (in SPAN); that ends by itself. Whatever happens, it will have ended by TIME (in SPAN).
$ settle status
settle.db at TIME
~
QUEUE  KIND  UNFINISHED  WAITING  OLDEST
default  a  SPAN  SPAN  00000000-0000-8000-8000-000000000001
~
QUEUE  PENDING  RUNNING  AWAITING  SUCCEEDED  DEAD  CANCELLED  REMOVED
default  2  0  0  0  0  0  0
~
queue default is paused until TIME (in SPAN): database is moved






$ settle jobs
ID  KIND  QUEUE  TENANT  KEY  STATE  ATTEMPT  WHEN
00000000-0000-8000-8000-000000000001  a  default  acme  -  held  0/10  due SPAN ago
00000000-0000-8000-8000-000000000002  a  default  -  -  held  0/10  due SPAN ago
$ settle work --drain --quiet --exec a=cat
$ settle resume default
queue default is claimed again
$ settle resume default
queue default was not held
$ settle hold --tenant acme --for 30d
tenant acme in queue default is held until TIME (in SPAN)
$ settle why 00000000-0000-8000-8000-000000000001
It waits because tenant acme in queue default is held (operator) until TIME (in SPAN); that ends by itself. Whatever happens, it will have ended by TIME (in SPAN).
$ settle why 00000000-0000-8000-8000-000000000002
It has been due for SPAN; a worker that serves kind a in queue default takes it at its next look. Whatever happens, it will have ended by TIME (in SPAN).
$ settle work --drain --quiet --exec a=cat
$ settle jobs
ID  KIND  QUEUE  TENANT  KEY  STATE  ATTEMPT  WHEN
00000000-0000-8000-8000-000000000001  a  default  acme  -  held  0/10  due SPAN ago
00000000-0000-8000-8000-000000000002  a  default  -  -  succeeded  1/10  ended SPAN ago
$ settle release --tenant acme
tenant acme in queue default is claimed again
$ settle release --tenant acme
tenant acme in queue default was not held

# What cannot be meant is refused.
$ settle pause
err: settle: want the name of one queue
err: try: settle pause --help
exit: 2
$ settle pause default --for 31d
err: settle: hold: for SPAN: want up to SPAN
err: try: settle pause --help
exit: 2
$ settle pause default --for -1h
err: settle: --for -SPAN: want more than 0, at most SPAN
err: try: settle pause --help
exit: 2
$ settle pause default --for soon
err: settle: --for "soon": want a duration such as SPAN, SPAN, SPAN or SPAN
err: try: settle pause --help
exit: 2
$ settle pause defualt
err: settle: queue "defualt" is unknown in settle.db; there are: default; --force holds it all the same
exit: 1
$ settle pause new --force
queue new is paused until TIME (in SPAN)
$ settle resume defualt
err: settle: queue "defualt" is unknown in settle.db; there are: default
exit: 1
$ settle hold --queue default
err: settle: want --tenant; a whole queue is kept by "settle pause QUEUE"
err: try: settle hold --help
exit: 2
$ settle release --queue default
err: settle: want --tenant; the pause of a whole queue is ended by "settle resume QUEUE"
err: try: settle release --help
exit: 2
$ settle hold --tenant x --queue defualt
err: settle: queue "defualt" is unknown in settle.db; there are: default; --force holds it all the same
exit: 1

# Many at once only when it is meant.
$ settle cancel
err: settle: want the ids of jobs, or flags that choose them
err: try: settle cancel --help
exit: 2
$ settle cancel --queue default
err: settle: this would cancel 1 job; add --yes if that is meant
err: try: settle cancel --help
exit: 2
$ settle cancel --queue default --yes 00000000-0000-8000-8000-000000000001
err: settle: ids and flags that choose jobs exclude each other
err: try: settle cancel --help
exit: 2
$ settle cancel --queue defualt --yes
err: settle: queue "defualt" is unknown in settle.db; there are: default
exit: 1
$ settle cancel --tenant acme --yes
00000000-0000-8000-8000-000000000001 cancelled
err: settle: cancel: 1 job
$ settle cancel --tenant acme --yes
err: settle: cancel: 0 jobs
$ settle cancel 00000000-0000-8000-8000-000000000002
err: settle: job 00000000-0000-8000-8000-000000000002 has succeeded
exit: 1
$ settle cancel 00000000-0000-8000-8000-000000000009
err: settle: settle.db has no job 00000000-0000-8000-8000-000000000009: it was never accepted here, or it was removed after its end
exit: 1
