package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	zs "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// measureFloor is the yardstick: bare transactions of settle's driver, each
// waiting for the disk as its level says, one row of the payload's size in each
// (or Batch rows).
func measureFloor(ctx context.Context, s spec, found *string) (_ map[string]float64, err error) {
	c, err := zs.OpenConn(s.Path, zs.OpenReadWrite|zs.OpenCreate|zs.OpenWAL)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for _, q := range []string{"pragma synchronous = " + s.Level, "pragma cache_size = -65536",
		"create table t (n integer primary key, b blob)"} {
		if err := sqlitex.ExecuteTransient(c, q, nil); err != nil {
			return nil, err
		}
	}
	*found, err = durability(func(query string, into any) error {
		return sqlitex.ExecuteTransient(c, query, &sqlitex.ExecOptions{ResultFunc: func(r *zs.Stmt) error {
			switch into := into.(type) {
			case *string:
				*into = r.ColumnText(0)
			case *int:
				*into = r.ColumnInt(0)
			}
			return nil
		}})
	})
	if err != nil {
		return nil, err
	}
	if s.Do == "latency" {
		return pacedCommits(ctx, s, c)
	}
	m, n := startMeter(), 0
	for m.runs(s.Window) && ctx.Err() == nil {
		if err := commit(c, max(s.Batch, 1)); err != nil {
			return nil, err
		}
		n += max(s.Batch, 1)
	}
	m.stop()
	return m.values(n), nil
}

// commit writes rows in one transaction.
func commit(c *zs.Conn, rows int) (err error) {
	end, err := sqlitex.ImmediateTransaction(c)
	if err != nil {
		return err
	}
	defer end(&err)
	insert := c.Prep("insert into t (b) values (?)")
	for range rows {
		insert.BindBytes(1, newJob("A").bytes())
		if _, err := insert.Step(); err != nil {
			return fmt.Errorf("insert: %w", err)
		}
		if err := insert.Reset(); err != nil {
			return err
		}
	}
	return nil
}

// pacedCommits times commits in the rhythm of the latency rows.
func pacedCommits(ctx context.Context, s spec, c *zs.Conn) (map[string]float64, error) {
	var took []float64
	err := paced(ctx, s.Window, func() error {
		began := time.Now()
		err := commit(c, 1)
		took = append(took, ms(time.Since(began)))
		return err
	})
	return quantiles(took), err
}
