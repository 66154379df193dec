-- The oldest unreported event of a whole queue, in one seek.

create index live_gate_queue  on live (lane >> 44, since)  where gated = 1;
create index ended_gate_queue on ended (lane >> 44, since) where lane is not null;
