// Command settle is the one binary of the durable job system: it runs commands
// as durable jobs, enqueues, works, shows and steers. It is the only place that
// reads flags, files and environment. Commands are thin: flags, calls of the
// client, rendering; every rendering takes an io.Writer.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(execute(context.Background(), newApp(os.Stdin, os.Stdout, os.Stderr, os.Getenv), os.Args[1:]))
}
