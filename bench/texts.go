package main

// What the page says around its tables.

const howToRead = `settle on SQLite beside other SQLite job queues for Go, and beside the floor: bare
transactions of the same driver, which no queue on it can beat one by one.

**How to read it.** Numbers are medians (rounds: %d), with the smallest and the largest in
brackets. All queues are measured in turn in each round, each measurement in a
process and on a database file of its own. The machine (%d cores, virtual disk, Linux, %s)
gets faster and slower by tens of per cent within an hour: compare only numbers of this
page, trust the ratios. "÷ peer" is settle's number as a multiple of the peer's. Only work
counts that is read back from the database as done. Handlers do nothing but decode a JSON
payload of about 190 bytes. FULL waits for the disk with every commit; NORMAL may lose the
last commits at a power cut. The database is SQLite in WAL mode everywhere.

`

const barsText = `What every release is measured against. "A commit" is the median commit of the floor at 50 a
second. Work-offs count at both sizes.

`

const setupText = `## How each is set up

Journal mode and level are read back from the queue's own connection. The disk flushes that
the machine counted while one goroutine enqueued one by one are a second witness: at FULL
each job costs at least one, at NORMAL hardly any. (Other programs' flushes count too.)

`

const commonSetup = `
The peers' settings are the best of what their documentation advises and of a sweep. Beyond
it they have a page cache of 64 MiB, which is settle's default, and on mattn/go-sqlite3 kept
statements (` + "`_stmt_cache_size`" + `: a tenth less CPU). Not equal, and left so: settle and River keep every ended job with its
payload, backlite and goqite delete it; settle and River use pure Go drivers, backlite and
goqite SQLite in C. River's driver calls itself an early version.
`

const rerun = `
## Run it

` + "`make bench`" + ` makes all of it anew, within 25 minutes, and writes this page, its charts and the raw
lines (` + "`bench/results.jsonl`" + `). ` + "`make bench-quick`" + ` runs the same code with small sizes in three minutes and
only prints. ` + "`cd bench && go run . -help`" + ` lists the flags: rounds, single rows, windows, limit,
and ` + "`-report`" + `, which writes the page from raw lines. It needs a C compiler (two peers use cgo).
`

var everyone = []string{"floor", "settle", "backlite", "goqite", "River"}
var bothLevels = []string{full, normal}

var sections = []section{
	{title: "Enqueue", rows: []string{enqueue1, enqueue50, enqueueAll}, values: []string{perSecond}, queues: everyone, levels: bothLevels,
		text: "Jobs per second, no worker beside. One by one: each call returns when its job is committed. The floor has one\n" +
			"caller, one row of the payload's size in each transaction (in batches: 1000)."},
	{title: "Work-off", rows: []string{workTen, workHun, workMil, workKept}, values: []string{perSecond}, queues: everyone, levels: bothLevels, charts: []string{"work-off.svg", "backlog.svg"},
		text: "Jobs per second from a backlog, until all have ended or for the first 3 seconds (at 1 million 20, peers 8).\n" +
			"In the row with kept jobs backlite's retention is on; goqite keeps none."},
	{title: "Steady state and saturation", rows: []string{steady, saturated}, values: []string{perSecond}, queues: everyone, levels: bothLevels, charts: []string{"steady.svg"},
		text: "Jobs per second through enqueue and handler: 50 goroutines enqueue one by one beside the workers. In the steady\n" +
			"state they pause above 2000 jobs in flight; in saturation they never do, and the rate is that of the jobs handled."},
	{title: "Latency", rows: []string{latency}, values: []string{p50, p99, longest}, queues: everyone, levels: bothLevels, charts: []string{"latency.svg"},
		text: "Milliseconds from the enqueue call to the handler's first line, at 50 jobs a second. The floor is one commit in the\n" +
			"same rhythm; a job needs two (stored, claimed). Here a ratio below 1 means that settle is sooner."},
	{title: "Fairness", rows: []string{fairTen, fairHun, fairMil}, values: []string{wait}, queues: everyone, levels: bothLevels,
		text: "Milliseconds that the one job of tenant B waits when it comes behind a backlog of tenant A, workers busy. Peers know\n" +
			"no tenants: B waits for all of A (\">\" = it had not started when the time was over); their answer is a queue per tenant."},
	{title: "CPU", rows: []string{enqueue50, workTen, workHun, workMil, steady}, values: []string{cpuPerJob}, queues: everyone, levels: bothLevels,
		text: "What a job costs, in µs of CPU of the process. In the steady state that is enqueue and handling."},
	{title: "Memory", rows: []string{workTen, workHun, workMil, workKept, steady, waits10, waitsTen, answerHun, answerMil}, values: []string{rss}, queues: everyone, levels: []string{normal},
		text: "Largest resident size of the measuring process, in MB. A page cache of 64 MiB fills in all of them."},
	{title: "Remote steps: parked waits", rows: []string{waits10, waitsTen}, values: []string{gos, sockets, idleCPU, burst}, queues: []string{"settle"}, levels: bothLevels,
		text: "What parked waits cost while no answer comes, and how long it takes until all are settled whose answers come at once."},
	{title: "Remote steps: answers", rows: []string{answerLow, answerHun, answerMil}, values: []string{p50, p99, longest}, queues: []string{"settle"}, levels: bothLevels,
		text: "Milliseconds from an answer to the end of its job: the answer is judged and stored, the job claimed, run and settled,\n" +
			"three commits. The commit floor is that of the latency rows."},
	{title: "Defaults and slots", rows: tunedRows(), values: []string{perSecond}, queues: []string{"settle"}, levels: bothLevels,
		text: "settle's rate by its worker's number of slots; the default is 64."},
	{title: "Recovery", rows: []string{recovery, recovery30}, values: []string{first, last, bound}, queues: []string{"settle"}, levels: []string{full},
		text: "A worker process is killed with SIGKILL while its 64 slots run jobs; another process starts at that moment. Allowed:\n" +
			"lease + sweep + first backoff + 1 s."},
}

func tunedRows() (rows []string) {
	for _, name := range []string{workHun, steady} {
		rows = append(rows, name)
		for _, slots := range tuned {
			rows = append(rows, tunedName(name, slots))
		}
	}
	return rows
}
