// Package small searches small worlds exhaustively: two workers, a sweep and an
// operator, each with a few steps, at two jobs in a real SQLite file, while the
// clock passes the end of a lease and the deadline; and at one job, whose workers
// record a ticket, submit and park, while a bridge brings answers, early, late
// and again. Every order of their steps is tried, depth first, over distinct
// (store contents, positions of the actors with what they remember, clock); each
// is visited once. It consists of tests.
package small
