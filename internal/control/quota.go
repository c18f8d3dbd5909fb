package control

import (
	"context"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// seats counts, by app, the attempts that are waited for, those included whose task is on its way into the record.
// One that was given up as unknown is not: a dead host must not keep an app from working.
type seats map[string]int

// reserve takes seats for the open attempts of a task that is about to be accepted. They become free one by one as
// attempts end, or all at once with giveBack.
func (p *Plane) reserve(t *record.NewTask) (int, error) {
	n := 0
	for i := range t.Attempts {
		if !t.Attempts[i].State.Final() {
			n++
		}
	}

	app := t.Task.Caller.App
	p.mu.Lock()
	defer p.mu.Unlock()

	if under := p.seats[app]; p.o.Quota > 0 && n > 0 && under+n > p.o.Quota {
		if p.o.Observe.Refused != nil {
			p.o.Observe.Refused("attempts_in_flight")
		}
		return 0, gozzard.Errorf(gozzard.ErrRateLimited,
			"app %s has %d attempts under way, with these %d there would be more than %d: try again when some are done",
			app, under, n, p.o.Quota)
	}

	p.seats[app] += n
	return n, nil
}

// giveBack gives seats back.
func (p *Plane) giveBack(app string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seats.sub(app, n)
}

// vacate frees the seat of a flight. p.mu is held.
func (p *Plane) vacate(f *flight) {
	if f.seated {
		f.seated = false
		p.seats.sub(f.task.app, 1)
	}
}

func (s seats) sub(app string, n int) {
	if s[app] -= n; s[app] <= 0 {
		delete(s, app)
	}
}

// seatOpen counts attempts that a former run of the server left open.
func (p *Plane) seatOpen(ctx context.Context, open []gozzard.Attempt) (map[gozzard.TaskSeq]string, error) {
	apps := map[gozzard.TaskSeq]string{}
	for i := range open {
		seq := open[i].Ref.Task
		if _, known := apps[seq]; !known {
			task, err := p.o.Store.Task(ctx, seq)
			if err != nil {
				return nil, err
			}
			apps[seq] = task.Caller.App
		}
		if open[i].State != gozzard.AttemptUnknown {
			p.seats[apps[seq]]++
		}
	}

	return apps, nil
}
