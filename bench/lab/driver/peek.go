package main

import (
	"reflect"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
	zombie "zombiezen.com/go/sqlite"
)

// reprepares reads SQLITE_STMTSTATUS_REPREPARE, which zombiezen does not offer,
// through its unexported handle. Only an experiment may do this; that it works
// also shows that zombiezen and modernc share one library.
func reprepares(s *zombie.Stmt) int {
	f := reflect.ValueOf(s).Elem().FieldByName("stmt")
	handle := *(*uintptr)(unsafe.Pointer(f.UnsafeAddr()))
	tls := libc.NewTLS()
	defer tls.Close()
	return int(sqlite3.Xsqlite3_stmt_status(tls, handle, sqlite3.SQLITE_STMTSTATUS_REPREPARE, 0))
}
