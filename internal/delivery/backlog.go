package delivery

import (
	"time"

	"github.com/gozzard/gozzard"
)

const (
	rateFirst   = 2000        // operations a second, before the server knows how many it can send
	rateLeast   = 20          // below this, hosts are away, and the server is not too slow
	rateEvery   = time.Second // the rate is measured over this time
	waitAllowed = 10 * time.Second
	waitCounts  = time.Second // a deadline does not allow for less
	waitMost    = time.Minute // nor for more
)

// backlog has the attempts that wait for their turn to be sent, or are on their way into the record, by app. It measures
// how many are sent in a second while others wait, so it knows how long an attempt will wait.
type backlog struct {
	apps   map[string]int
	total  int
	coming int // of total: not in the queue yet

	rate   float64   // attempts a second that can be sent
	sent   int       // since the last measurement
	since  time.Time // of the last measurement
	waited bool      // at the last measurement some waited
}

func newBacklog() backlog { return backlog{apps: map[string]int{}, rate: rateFirst} }

// add counts attempts of an app; n may be negative.
func (b *backlog) add(app string, n int) {
	b.total += n
	if b.apps[app] += n; b.apps[app] <= 0 {
		delete(b.apps, app)
	}
}

// expect counts attempts of an app that are not in the queue yet; n may be negative.
func (b *backlog) expect(app string, n int) {
	b.coming += n
	b.add(app, n)
}

// queued counts the attempts that could be sent.
func (b *backlog) queued() int { return b.total - b.coming }

// measure is called in each tick. Only a time in which some waited all the time says what the server can do. Attempts that
// are on their way into the record say nothing about it: a slow disk delays them.
func (b *backlog) measure(now time.Time) {
	took := now.Sub(b.since)
	if took < rateEvery {
		return
	}
	if waits := b.queued() > 0; waits && b.waited && took < 5*rateEvery {
		b.rate = max(b.rate+(float64(b.sent)/took.Seconds()-b.rate)/4, rateLeast)
	}
	b.sent, b.since, b.waited = 0, now, b.queued() > 0
}

// Queue is how long attempts of one app wait for their turn.
type Queue struct {
	own    int // attempts of the app that wait
	total  int // attempts of all apps
	shares int // apps with attempts that wait, this one included: they have equal shares
	rate   float64
}

// of is the queue of an app.
func (b *backlog) of(app string) Queue {
	q := Queue{own: b.apps[app], total: b.total, shares: len(b.apps), rate: b.rate}
	if q.own == 0 {
		q.shares++
	}
	return q
}

// wait is how long an attempt waits behind those that are in the queue and n more of its app.
func (q Queue) wait(n int) time.Duration {
	before := min(q.total+n, (q.own+n)*q.shares)
	return time.Duration(float64(before) / q.rate * float64(time.Second))
}

// Allowance is the time that the deadline of an attempt allows for its wait behind n others of its task. It is half as
// long again as expected, because nobody knows what other apps will do.
func (q Queue) Allowance(n int) time.Duration {
	wait := q.wait(n)
	if wait < waitCounts {
		return 0
	}
	return min(wait*3/2, waitMost)
}

// admit counts the n attempts of a call and gives the queue that was there before them. It rejects a call of an app whose
// attempts would wait longer than their time allows. An app that has nothing waiting is never rejected, however large
// its call is.
func (b *backlog) admit(app string, n int) (Queue, error) {
	q := b.of(app)
	wait := q.wait(0)
	if wait <= waitAllowed {
		b.expect(app, n)
		return q, nil
	}

	retry := (wait - waitAllowed).Round(time.Second) + time.Second
	e := gozzard.Errorf(gozzard.ErrRateLimited, "app %s has %d attempts waiting to be sent, which takes about %s, and the "+
		"server is busy: nothing was done, try again in %s", app, b.apps[app], wait.Round(time.Second), retry)
	e.Retry = retry
	return q, e
}
