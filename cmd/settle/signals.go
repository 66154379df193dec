package main

import (
	"os"
	"os/signal"
	"syscall"
)

// catch sends every wish to stop to the channel, until the returned function is
// called: Ctrl-C, SIGTERM, and the end of the terminal unless that was to be
// ignored (nohup).
func catch(stop chan<- os.Signal) (release func()) {
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(stop, syscall.SIGHUP)
	}
	return func() { signal.Stop(stop) }
}

// catchPipe makes writing to a closed pipe an error instead of a death, for
// this process only: a handler, other than ignoring, is not inherited by
// commands.
func catchPipe() (release func()) {
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	return func() { signal.Stop(pipe) }
}
