// Package rendered keeps the attempts of large tasks in the form in which a door answers polls, so that a poll costs what
// has changed since the last one.
package rendered

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// The bounds of what is kept.
const (
	From  = 1000     // attempts of a task; fewer are rendered as fast
	most  = 64 << 20 // bytes of all tasks of a door together
	keep  = time.Minute
	comma = 1
	usual = 256 // bytes of an attempt
)

// Tasks keeps the texts of tasks that are polled. The zero value is ready.
type Tasks struct {
	mu    sync.Mutex
	tasks map[Key]*task
	bytes int
}

// Key names what is kept. Texts depend on the language.
type Key struct {
	Task     gozzard.TaskID
	Language string
}

// Form is how a door renders attempts.
type Form struct {
	// Order is the order of the attempts in the text, by their places in the task. nil: as they are. It depends on nothing
	// that changes.
	Order func([]gozzard.Attempt) []int32
	// Append appends one attempt. It depends on the task, and on the state and the outcome of the attempt.
	Append func(b []byte, a *gozzard.Attempt) ([]byte, error)
}

// Text is the attempts of a task at one time, with a comma between two. It is never changed.
type Text struct {
	Bytes []byte
	Final bool // no attempt will change any more

	version uint64
	ends    []int // of each attempt in Bytes
	states  []gozzard.AttemptState

	sumOnce, headOnce, zipOnce sync.Once

	sum     [sha256.Size]byte
	head    []byte
	headErr error
	zipped  []byte
	zipErr  error
}

// Sum is the digest of the bytes.
func (t *Text) Sum() [sha256.Size]byte {
	t.sumOnce.Do(func() { t.sum = sha256.Sum256(t.Bytes) })
	return t.sum
}

// Head is what make returned the first time. It may keep what a door puts before a final text.
func (t *Text) Head(make func() ([]byte, error)) ([]byte, error) {
	t.headOnce.Do(func() { t.head, t.headErr = make() })
	return t.head, t.headErr
}

// task is what is kept of a task.
type task struct {
	mu    sync.Mutex
	order []int32
	text  *Text

	// guarded by Tasks.mu
	size   int
	usedAt time.Time
}

// Text renders the attempts of a task. Only those are rendered whose state has changed since the last call with this key.
// Attempts of the same version are the same, unless the version is 0.
func (k *Tasks) Text(key Key, attempts []gozzard.Attempt, version uint64, f Form, now time.Time) (*Text, error) {
	t := k.use(key, now)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text != nil && t.text.version == version && version != 0 {
		return t.text, nil
	}

	if t.text == nil && f.Order != nil {
		t.order = f.Order(attempts)
	}
	text, err := t.render(attempts, f)
	if err != nil {
		return nil, err
	}
	text.version = version
	t.text = text
	k.sized(key, t, len(text.Bytes)+len(text.Bytes)/8) // with the compressed form
	return text, nil
}

// render makes the text of a task. What has not changed is copied from the one before.
func (t *task) render(attempts []gozzard.Attempt, f Form) (_ *Text, err error) {
	n := len(attempts)
	if t.order != nil {
		n = len(t.order)
	}
	old := t.text
	if old == nil || len(old.ends) != n { // at first; a task always has the same attempts
		old = &Text{}
	}

	out := &Text{Final: true, ends: make([]int, n), states: make([]gozzard.AttemptState, n),
		Bytes: make([]byte, 0, cmp.Or(len(old.Bytes)+len(old.Bytes)/16, n*usual))}
	for i := range n {
		a := &attempts[t.at(i)]
		if i > 0 {
			out.Bytes = append(out.Bytes, ',')
		}
		if kept := old.of(i, a.State); kept != nil {
			out.Bytes = append(out.Bytes, kept...)
		} else if out.Bytes, err = f.Append(out.Bytes, a); err != nil {
			return nil, err
		}
		out.ends[i], out.states[i] = len(out.Bytes), a.State
		out.Final = out.Final && a.State.Final()
	}
	if cap(out.Bytes) > len(out.Bytes)+len(out.Bytes)/4 { // it is kept for a while
		out.Bytes = bytes.Clone(out.Bytes)
	}
	return out, nil
}

// at is the place in the task of the i-th attempt of the text.
func (t *task) at(i int) int {
	if t.order == nil {
		return i
	}
	return int(t.order[i])
}

// of is the text of the i-th attempt, if it is in that state. The outcome comes with the final state. That of an attempt
// whose outcome is not known may say something else later.
func (t *Text) of(i int, state gozzard.AttemptState) []byte {
	if i >= len(t.states) || t.states[i] != state || state == gozzard.AttemptUnknown {
		return nil
	}
	from := 0
	if i > 0 {
		from = t.ends[i-1] + comma
	}
	return t.Bytes[from:t.ends[i]]
}

// use finds a task, and forgets those that are polled no more.
func (k *Tasks) use(key Key, now time.Time) *task {
	k.mu.Lock()
	defer k.mu.Unlock()
	for other, t := range k.tasks {
		if now.Sub(t.usedAt) > keep {
			k.remove(other)
		}
	}

	t := k.tasks[key]
	if t == nil {
		if k.tasks == nil {
			k.tasks = map[Key]*task{}
		}
		t = &task{}
		k.tasks[key] = t
	}
	t.usedAt = now
	return t
}

// sized notes how large a task is. When there is too much, those polled longest ago are forgotten.
func (k *Tasks) sized(key Key, t *task, size int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tasks[key] != t { // forgotten meanwhile
		return
	}
	k.bytes += size - t.size
	t.size = size

	for k.bytes > most {
		var oldest Key
		for other, t := range k.tasks {
			if o := k.tasks[oldest]; o == nil || t.usedAt.Before(o.usedAt) {
				oldest = other
			}
		}
		k.remove(oldest)
	}
}

// remove forgets a task. mu is held.
func (k *Tasks) remove(key Key) {
	k.bytes -= k.tasks[key].size
	delete(k.tasks, key)
}
