package sqlite

import (
	"fmt"
	"hash/fnv"
	"sync"

	"github.com/settle-go/settle"
)

// Lanes and streams are numbers: the queue's id above, a hash below. Both are
// positive, and all of a queue's numbers stand in one range.
const hashBits = 44

func hashed(queue int64, s string) int64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	v := h.Sum64()
	v ^= v >> hashBits
	return queue<<hashBits | int64(v&(1<<hashBits-1))
}

func laneOf(queue int64, tenant string) int64 { return hashed(queue, "t"+tenant) }
func streamOf(queue int64, kind string) int64 { return hashed(queue, "k"+kind) }

// span returns the smallest and largest number of a queue.
func span(queue int64) (lo, hi int64) { return queue << hashBits, (queue+1)<<hashBits - 1 }

// queueNames remembers the ids of queues. Rows of the table are never removed,
// so what was read from a committed state stays true.
type queueNames struct {
	mu   sync.RWMutex
	id   map[string]int64
	name map[int64]string
}

func (q *queueNames) byName(name string) (int64, bool) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	id, ok := q.id[name]
	return id, ok
}

func (q *queueNames) learn(id int64, name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.id == nil {
		q.id, q.name = map[string]int64{}, map[int64]string{}
	}
	q.id[name], q.name[id] = id, name
}

// queueID finds a queue's id; 0 if it has none yet.
func (s *Store) queueID(c conn, name string) (int64, error) {
	if id, ok := s.queues.byName(name); ok {
		return id, nil
	}
	return number(c, `select id from queue where name = ?`, name)
}

// queueName finds a queue's name.
func (s *Store) queueName(c conn, id int64) (name string, err error) {
	s.queues.mu.RLock()
	name, ok := s.queues.name[id]
	s.queues.mu.RUnlock()
	if ok {
		return name, nil
	}
	_, err = one(c, `select name from queue where id = ?`, func(r row) error { name = r.text(0); return nil }, id)
	return name, err
}

// queue finds a queue's id, or makes one.
func (t *tx) queue(name string) (int64, error) {
	id, err := t.s.queueID(t, name)
	if err != nil {
		return 0, err
	}
	if id == 0 {
		r, err := t.exec(`insert into queue (name) values (?)`, name)
		if err != nil {
			return 0, fmt.Errorf("queue %q: %w", name, err)
		}
		id = r.id
	}
	t.after = append(t.after, func() { t.s.queues.learn(id, name) })
	return id, nil
}

// States as they stand in the tables.
const (
	pending = iota
	running
	awaiting
	succeeded
	dead
	cancelled
)

var states = [...]settle.State{settle.Pending, settle.Running, settle.Awaiting,
	settle.Succeeded, settle.Dead, settle.Cancelled}

// stateAt reads a state; one that does not exist, out of a damaged row, is
// shown as such.
func stateAt(n int64) settle.State {
	if n < 0 || n >= int64(len(states)) {
		return "damaged"
	}
	return states[n]
}

func stateOf(s settle.State) int64 {
	for i, v := range states {
		if v == s {
			return int64(i)
		}
	}
	return -1
}
