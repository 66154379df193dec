// Package gate turns new work away while events that must reach the far end have
// not: a service that may only run while it reports home. Whether it does is asked
// of the data each time, never kept as a flag.
//
//	g, err := gate.New(st, gate.Config{Queue: "usage", MaxAge: 72 * time.Hour})
//	mux.Handle("/orders", g.Guard(orders))    // refused while the gate is shut
//	mux.Handle("/gate", g)                    // for other programs, health+json
//
// # The age
//
// The anchor is the oldest event that is live, or has ended without the far end
// having judged it. Retries, holds and pauses do not move it; an event that the
// far end refused is out, and so is one that a person has dropped. The gate is
// shut while that event is older than [Config.MaxAge], and open as soon as it is
// not: there is one mark, and nothing that somebody must reset. No event at all is
// an open gate.
//
// # Unknown
//
// A store that cannot be asked gives no answer. For 10 s the last reading serves,
// growing older with the clock; then the gate is [Unknown], which
// [Config.OpenUnknown] lets pass, and which is refused otherwise, saying so.
//
// # What is never refused
//
// Only what [Gate.Guard] wraps. Whatever brings the age down (appending, uploads,
// credentials, redrives, health, metrics, callbacks) is left unwrapped.
package gate
