package main

// schema is the whole data model of the embedded store: integer row ids inside,
// the 16-byte id once, in body. Times are microseconds. ended has no index on
// at: SQLite has no BRIN, and ended grows in the order of its ends anyway.
const schema = `
create table body(n integer primary key, id blob not null unique, at integer not null, queue text not null,
  kind text not null, tenant text not null, key text, policy blob, input blob not null) strict;
create table live(n integer primary key, lane integer not null, stream integer not null,
  ord integer not null, due integer not null, alarm integer not null, deadline integer not null, since integer not null,
  attempt integer not null default 0, deferred integer not null default 0, redrives integer not null default 0,
  base integer not null default 0, batch blob, excused integer not null default 0, crashed integer not null default 0,
  tries integer not null, state integer not null default 0, gated integer not null default 0,
  capped integer not null default 0, worker integer, wait blob, key text,
  check(state in (0,1,2)), check(state<>0 or attempt-excused<tries), check(alarm<=deadline),
  check((state=1)=(worker is not null)), check(state<>2 or wait is not null)) strict;
create index live_turn on live(lane, ord, n) where state=0;
create index live_age on live(stream, due) where state=0;
create index live_alarm on live(alarm);
create unique index live_key on live(key, stream, lane) where key is not null;
create index live_since on live(stream, since);
create index live_gate on live(lane, since) where gated=1;
create index live_busy on live(lane) where state=1 and capped=1;
create table ended(n integer primary key, at integer not null, state integer not null, reason integer not null,
  attempt integer not null, excused integer not null default 0, worker integer, output blob,
  stream integer, lane integer, since integer) strict;
create index ended_dead on ended(reason, n) where state=4;
create index ended_gate on ended(stream, since) where since is not null;
create index ended_gate_lane on ended(lane, since) where since is not null;
create table attempt(n integer not null, k integer not null, reason integer not null, error text not null, step text,
  ticket blob, node text, worker integer, began integer, at integer not null, primary key(n, k)) without rowid, strict;
`

// Statements of the hot path, as the store would write them. The row id is
// taken over with last_insert_rowid(), so that no driver needs an API for it.
const (
	sqlBody = `insert into body(id,at,queue,kind,tenant,input) values(?,?,?,?,?,?)`
	sqlLive = `insert into live(n,lane,stream,ord,due,alarm,deadline,since,tries) values(last_insert_rowid(),?,?,?,?,?,?,?,?)`
	sqlTurn = `select n from live where state=0 and lane=? and ord<=? and alarm>? order by ord, n limit ?`
	sqlTake = `update live set state=1, attempt=attempt+1, alarm=min(?,deadline), worker=? where n=? and state=0 returning attempt`
	sqlRead = `select kind, tenant, input from body where n=?`
	sqlEnd  = `delete from live where n=? and attempt=? and state=1`
	sqlDone = `insert into ended(n,at,state,reason,attempt,worker,output) values(?,?,3,0,?,?,?)`
)
