-- What processes say of the nodes of their pools. Each report passes by itself.

create table node (
  worker   integer not null,
  pool     text    not null,
  node     text    not null,
  state    text    not null,
  failures integer not null,
  text     text    not null,
  at       integer not null,
  probe    integer not null,                      -- when its breaker admits a call; 0 = now
  until    integer not null,                      -- forgotten then
  primary key (worker, pool, node)
) strict, without rowid;
