//go:build race

package sqlite

// raced: the race detector watches, and all takes several times as long.
const raced = true
