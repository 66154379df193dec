-- One narrow hot table (live), payload written once (body), ends appended (ended).
-- Instants are microseconds since 1970 UTC by the store's clock.
-- lane   = queue id << 44 | hash of the tenant;  stream = queue id << 44 | hash of the kind.
-- A hash collision makes two tenants share a turn; texts stand in body.

create table queue (
  id         integer primary key check (id between 1 and 524287),
  name       text    not null unique,
  keep_until integer not null default 0,          -- ended jobs of the queue stay at least until then
  note       blob
) strict;

create table body (
  n      integer primary key autoincrement,       -- never used twice: it is the handle of a fence
  id     blob    not null unique check (length(id) = 16),
  at     integer not null,
  queue  integer not null,
  kind   text    not null,
  tenant text    not null,
  key    text,
  policy blob    not null,
  gated  integer not null default 0,
  input  blob    not null
) strict;

create table live (
  n        integer primary key,
  state    integer not null default 0,            -- 0 pending, 1 running, 2 awaiting
  suspect  integer not null default 0,            -- the next crash would end it: runs alone
  lane     integer not null,
  stream   integer not null,
  ord      integer not null,                      -- place in its lane: due, minus the head start while due at once
  due      integer not null,
  alarm    integer not null,                      -- when a sweep looks next: nothing live is without it
  deadline integer not null,
  since    integer not null,                      -- first due
  attempt  integer not null default 0,            -- claims so far: the fence
  excused  integer not null default 0,
  deferred integer not null default 0,
  crashed  integer not null default 0,
  tries    integer not null,
  redrives integer not null default 0,
  base     integer not null default 0,            -- attempt at the last redrive
  gated    integer not null default 0,
  capped   integer not null default 0,
  worker   integer not null default 0,
  batch    blob,
  wait     blob,
  key      text,
  check (state between 0 and 2),            -- "in" would build a list at each use
  check (state <> 0 or attempt - excused < tries), -- a spent job cannot be claimable
  check (alarm <= deadline),
  check ((state = 1) = (worker <> 0)),
  check (state <> 2 or wait is not null)
) strict;

create index live_turn    on live (lane, stream, ord) where state = 0 and suspect = 0;
create index live_age     on live (stream, due)       where state = 0 and suspect = 0;
create index live_suspect on live (stream, due)       where state = 0 and suspect = 1; -- apart: one index for both would be taken for turns
create index live_alarm   on live (alarm);
create index live_since   on live (stream, since);
create unique index live_key on live (key, stream, lane) where key is not null;
create index live_gate    on live (lane, since) where gated = 1;
create index live_batch   on live (batch)       where batch is not null;

create table ended (
  n        integer primary key,
  at       integer not null,
  state    integer not null check (state between 3 and 5), -- 3 succeeded, 4 dead, 5 cancelled
  reason   text    not null,
  since    integer not null,
  attempt  integer not null,
  excused  integer not null,
  deferred integer not null,
  crashed  integer not null,
  tries    integer not null,
  redrives integer not null,
  base     integer not null,
  worker   integer not null,
  acked    integer not null default 0,
  note     text,                                  -- why it ended, where no attempt says so
  stream   integer,                               -- set only for gated ends without a verdict of the far end
  lane     integer,
  output   blob
) strict;

create index ended_done    on ended (at)            where state <> 4;
create index ended_dead    on ended (acked)         where state = 4;
create index ended_dead_at on ended (at)            where state = 4;
create index ended_gate    on ended (stream, since) where stream is not null;
create index ended_lane    on ended (lane, since)   where lane is not null;

create table attempt (                            -- attempts that ended without success
  n      integer not null,
  k      integer not null,
  reason text    not null,
  error  text    not null,
  step   text,
  ticket blob,
  node   text,
  worker integer not null,
  at     integer not null,
  retryable integer not null default 0,           -- what the node said of the step's failure
  primary key (n, k)
) strict, without rowid;

create table step (                               -- results of finished steps
  n      integer not null,
  name   text    not null,
  ticket blob    not null,
  node   text    not null,
  output blob,
  at     integer not null,
  primary key (n, name)
) strict, without rowid;

create table inbox (                              -- answers that came before their park
  ticket blob    primary key,
  n      integer not null,
  doc    blob    not null,
  at     integer not null
) strict, without rowid;

create table hold (                               -- what must last is a time that passes by itself
  queue  integer not null,
  whole  integer not null,
  tenant text    not null,
  lane   integer not null,
  began  integer not null,
  until  integer not null,
  tries  integer not null,
  reason text    not null,
  error  text    not null,
  primary key (queue, whole, tenant)
) strict, without rowid;

create table tally (                              -- removed jobs, counted in the transaction that removes them
  queue integer not null,
  day   integer not null,
  state integer not null,
  n     integer not null,
  primary key (queue, day, state)
) strict, without rowid;
