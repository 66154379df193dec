package breaker

// oracle is the breaker told a second time, from the rules and not from the
// code: half-open is a state that is entered, each state has a period of its
// own, and who is a probe in flight is read from the calls. Time is in ticks.
type oracle struct {
	failures, probes, lease int // rules

	state  State
	period int
	row    int // failures in a row
	opened int // openings in a row
	until  int // open until
}

// began is what a call remembers of its admission.
type began struct {
	period int
	probe  bool
	lease  int // its end, if it is a probe
	gone   bool
}

// pass lets time pass.
func (o *oracle) pass(now int) {
	if o.state == Open && now >= o.until {
		o.enter(HalfOpen)
	}
}

func (o *oracle) enter(s State) {
	o.state = s
	o.period++
	o.row = 0
}

// inFlight counts the probes of this half-open that hold a place.
func (o *oracle) inFlight(now int, calls []began) (n int) {
	for _, c := range calls {
		if o.current(c) && c.probe && !c.gone && now < c.lease {
			n++
		}
	}
	return n
}

func (o *oracle) admit(now int, calls []began) (began, bool) {
	switch o.state {
	case Closed:
		return began{period: o.period}, true
	case HalfOpen:
		return began{period: o.period, probe: true, lease: now + o.lease}, o.inFlight(now, calls) < o.probes
	}
	return began{}, false
}

// next is when a call is admitted if nothing else happens; 0 = now.
func (o *oracle) next(now int, calls []began) int {
	if o.state == Open {
		return o.until
	}
	for later := now; ; later++ {
		if _, ok := o.admit(later, calls); ok {
			if later == now {
				return 0
			}
			return later
		}
	}
}

func (o *oracle) current(c began) bool { return c.period == o.period }

// hear takes what the call, or its delivery, says. open says for how long the
// nth opening lasts.
func (o *oracle) hear(now int, c began, said Outcome, open func(nth int) int) (heard bool) {
	if !o.current(c) {
		return false
	}
	if said == Failure {
		o.fail(now, open)
	}
	if said == Success || said == Answered {
		if o.state == HalfOpen {
			o.enter(Closed)
		}
	}
	if said == Success {
		o.row, o.opened = 0, 0
	}
	return true
}

// hearFrom takes what another process heard.
func (o *oracle) hearFrom(now int, said Outcome, open func(nth int) int) (heard bool) {
	if said != Failure || o.state != Closed {
		return false
	}
	o.fail(now, open)
	return true
}

func (o *oracle) fail(now int, open func(nth int) int) {
	o.row++
	if o.state == HalfOpen || o.row == o.failures {
		o.enter(Open)
		o.opened++
		o.until = now + open(o.opened)
	}
}
