package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
	"github.com/settle-go/settle/worker"
)

var charge = settle.Define[int, string]("invoice.charge", settle.Policy{})

func openExample() (*sqlite.Store, func()) {
	dir, err := os.MkdirTemp("", "settle-example-")
	if err != nil {
		log.Fatal(err)
	}
	store, err := sqlite.Open(filepath.Join(dir, "app.db"))
	if err != nil {
		log.Fatal(err)
	}
	return store, func() {
		store.Close()
		os.RemoveAll(dir)
	}
}

// A job and a row of your own are stored together, or not at all.
func ExampleStore_EnqueueTx() {
	ctx := context.Background()
	store, closeStore := openExample()
	defer closeStore()

	err := store.InTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `create table invoice (n integer primary key, cents integer)`); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `insert into invoice values (7, 4200)`); err != nil {
			return err
		}
		_, err := store.EnqueueTx(ctx, tx, charge.New(7))
		return err
	})
	ages, _ := store.Ages(ctx)
	fmt.Println(err, len(ages), ages[0].Kind)
	// Output: <nil> 1 invoice.charge
}

// The effect and the job's end commit together: exactly once, as far as the
// effect lies in this database.
func ExampleStore_CompleteTx() {
	ctx := context.Background()
	store, closeStore := openExample()
	defer closeStore()
	client := settle.NewClient(store)
	id, _ := charge.Enqueue(ctx, client, 7)

	w := worker.New(store, worker.Config{UntilIdle: true})
	worker.Handle(w, charge, func(ctx context.Context, j *worker.Job[int]) (string, error) {
		out := fmt.Sprintf("charged %d", j.In)
		return out, store.InTx(ctx, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, `create table if not exists ledger (invoice integer primary key)`); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `insert into ledger values (?)`, j.In); err != nil {
				return err
			}
			return store.CompleteTx(ctx, tx, j.ClaimedJob, out)
		})
	})
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(charge.Await(ctx, client, id))
	// Output: charged 7 <nil>
}
