package delivery

import (
	"errors"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

// An app whose attempts would wait too long is rejected until enough of them are sent. Another app is not.
func TestBacklogRejectsEarly(t *testing.T) {
	b, now := newBacklog(), time.Unix(1_700_000_000, 0)
	b.add("large", 50_000)
	b.measure(now)
	for range 20 { // 1000 a second are sent
		now = now.Add(time.Second)
		b.sent += 1000
		b.add("large", -1000)
		b.measure(now)
	}

	_, err := b.admit("large", 1) // 30,000 are left
	var e *gozzard.Error
	if !errors.As(err, &e) || e.Kind != gozzard.ErrRateLimited || e.Retry < 15*time.Second || e.Retry > 30*time.Second {
		t.Errorf("with 30,000 waiting: %v, %+v", err, e)
	}
	if _, err := b.admit("small", 1); err != nil {
		t.Errorf("another app: %v", err)
	}

	b.add("large", -25_000)
	if _, err := b.admit("large", 1); err != nil {
		t.Errorf("with 5,000 waiting: %v", err)
	}
}

// The rate is measured only while something waits, and not from a time in which nothing could be sent.
func TestBacklogMeasuresWhileSomeWait(t *testing.T) {
	b, now := newBacklog(), time.Unix(1_700_000_000, 0)
	for range 100 {
		now = now.Add(time.Second)
		b.sent++
		b.measure(now)
	}
	if b.rate != rateFirst {
		t.Errorf("nothing waited, and the rate is %v", b.rate)
	}

	b.add("a", 1)
	for range 100 {
		now = now.Add(time.Second)
		b.measure(now)
	}
	if b.rate != rateLeast {
		t.Errorf("nothing was sent, and the rate is %v", b.rate)
	}
}

// Attempts that are on their way into the record count for admission, and say nothing about the rate: a disk may be slow.
func TestBacklogOfASlowRecord(t *testing.T) {
	b, now := newBacklog(), time.Unix(1_700_000_000, 0)
	if q, err := b.admit("a", 30_000); err != nil || q.Allowance(0) != 0 {
		t.Errorf("the first call: %v, waits %v behind itself", err, q.Allowance(0))
	}
	if _, err := b.admit("a", 1); err == nil {
		t.Error("the second call was admitted behind 30,000 attempts")
	}
	for range 100 {
		now = now.Add(time.Second)
		b.measure(now)
	}
	if b.rate != rateFirst {
		t.Errorf("nothing was in the queue, and the rate is %v", b.rate)
	}

	b.expect("a", -30_000)
	if _, err := b.admit("a", 1); err != nil || b.queued() != 0 {
		t.Errorf("after they left: %v, %d queued", err, b.queued())
	}
}

// Deadlines allow for the time in the queue: a large task for its own attempts, a small one of another app for its share.
func TestAllowance(t *testing.T) {
	b := newBacklog()
	if d := b.of("a").Allowance(100); d != 0 {
		t.Errorf("an idle server: %v", d)
	}
	if d := b.of("a").Allowance(20_000); d != 15*time.Second {
		t.Errorf("behind 20,000 of its task: %v", d)
	}
	b.add("large", 1_000_000)
	if d := b.of("large").Allowance(0); d != waitMost {
		t.Errorf("behind a million: %v", d)
	}
	if d := b.of("small").Allowance(10); d != 0 {
		t.Errorf("a small task of another app: %v", d)
	}
}
