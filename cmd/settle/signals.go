package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameWish is how soon after a wish to stop another one is still the same: GNU
// timeout signals its command and then the whole group, a dying terminal both.
const sameWish = time.Second

// catch sends every wish to stop to the channel, until the returned function is
// called: Ctrl-C, SIGTERM, and the end of the terminal unless that was to be
// ignored (nohup).
func catch(stop chan<- os.Signal) (release func()) {
	all, over := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(all, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(all, syscall.SIGHUP)
	}
	go wishes(all, stop, over)
	return func() { signal.Stop(all); close(over) }
}

// wishes passes signals on until over is closed; those that come within
// sameWish of the last one that was passed on are dropped.
func wishes(all <-chan os.Signal, stop chan<- os.Signal, over <-chan struct{}) {
	var deaf <-chan time.Time // nil = it listens
	for {
		select {
		case s := <-all:
			if deaf != nil {
				continue
			}
			select {
			case stop <- s:
			case <-over:
				return
			}
			deaf = time.After(sameWish)
		case <-deaf:
			deaf = nil
		case <-over:
			return
		}
	}
}

// catchPipe makes writing to a closed pipe an error instead of a death, for
// this process only: a handler, other than ignoring, is not inherited by
// commands.
func catchPipe() (release func()) {
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	return func() { signal.Stop(pipe) }
}
