package api

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
)

// The bounds of the answers that are kept for callers that poll large tasks.
const (
	renderedFrom  = 1000     // attempts of a task
	renderedBytes = 64 << 20 // of all tasks together
	renderedFor   = time.Minute
	zipFrom       = 16 << 10 // bytes of an answer
)

// renderedTasks keeps the attempts of large tasks as JSON. A poll renders those whose state has changed. The zero value is
// ready.
type renderedTasks struct {
	mu    sync.Mutex
	tasks map[renderedKey]*renderedTask
	bytes int
}

// renderedKey names what is kept. Texts depend on the language.
type renderedKey struct {
	task     gozzard.TaskID
	language string
}

type renderedTask struct {
	mu       sync.Mutex
	attempts []renderedAttempt // by their place in the task

	// guarded by renderedTasks.mu
	size   int
	usedAt time.Time
}

// renderedAttempt is an attempt in one state. The outcome comes with the final state.
type renderedAttempt struct {
	state gozzard.AttemptState
	text  []byte
}

// noAttempts ends the JSON of a task whose attempts are left out: they are its last field.
const noAttempts = "[]}\n"

// render makes the JSON of a large task; head is the task without its attempts.
func (k *renderedTasks) render(head *client.Task, res *record.TaskResults, language string, say func(string) string,
	now time.Time) ([]byte, error) {
	body, err := encode(head)
	if err != nil {
		return nil, err
	}
	body, cut := bytes.CutSuffix(body, []byte(noAttempts))
	if !cut { // another field was added behind the attempts
		return nil, fmt.Errorf("cannot encode the answer: %w", errors.ErrUnsupported)
	}

	key := renderedKey{res.Task.ID, language}
	t := k.use(key, now)
	t.mu.Lock()
	defer t.mu.Unlock()
	grown, err := t.renderChanged(res, say)
	if err != nil {
		return nil, err
	}
	k.grew(key, t, grown)
	return t.join(body), nil
}

// renderChanged renders the attempts whose state has changed. It returns by how many bytes the task has grown.
func (t *renderedTask) renderChanged(res *record.TaskResults, say func(string) string) (grown int, err error) {
	if len(t.attempts) != len(res.Attempts) { // at first; a task always has the same attempts
		for i := range t.attempts {
			grown -= len(t.attempts[i].text)
		}
		t.attempts = make([]renderedAttempt, len(res.Attempts))
	}

	var b bytes.Buffer
	enc := newEncoder(&b)
	for i := range t.attempts {
		at, kept := &res.Attempts[i], &t.attempts[i]
		if kept.text != nil && kept.state == at.State {
			continue
		}
		v := renderAttempt(at, verdictOf(at))
		v.Message = say(v.Message)
		b.Reset()
		if err := enc.Encode(v); err != nil {
			return grown, err
		}
		text := bytes.Clone(bytes.TrimRight(b.Bytes(), "\n"))
		grown += len(text) - len(kept.text)
		*kept = renderedAttempt{at.State, text}
	}
	return grown, nil
}

// join appends the attempts and the end of the task.
func (t *renderedTask) join(body []byte) []byte {
	size := len(body) + len(noAttempts)
	for i := range t.attempts {
		size += len(t.attempts[i].text) + 1
	}

	out := append(make([]byte, 0, size), body...)
	out = append(out, '[')
	for i := range t.attempts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, t.attempts[i].text...)
	}
	return append(out, "]}\n"...)
}

// use finds a task, and forgets those that are polled no more.
func (k *renderedTasks) use(key renderedKey, now time.Time) *renderedTask {
	k.mu.Lock()
	defer k.mu.Unlock()
	for other, t := range k.tasks {
		if now.Sub(t.usedAt) > renderedFor {
			k.remove(other)
		}
	}

	t := k.tasks[key]
	if t == nil {
		if k.tasks == nil {
			k.tasks = map[renderedKey]*renderedTask{}
		}
		t = &renderedTask{}
		k.tasks[key] = t
	}
	t.usedAt = now
	return t
}

// grew counts what was added to a task. When there is too much, those polled longest ago are forgotten.
func (k *renderedTasks) grew(key renderedKey, t *renderedTask, bytes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tasks[key] != t { // forgotten meanwhile
		return
	}
	t.size += bytes
	k.bytes += bytes

	for k.bytes > renderedBytes {
		var oldest renderedKey
		for other, t := range k.tasks {
			if o := k.tasks[oldest]; o == nil || t.usedAt.Before(o.usedAt) {
				oldest = other
			}
		}
		k.remove(oldest)
	}
}

// remove forgets a task. mu is held.
func (k *renderedTasks) remove(key renderedKey) {
	k.bytes -= k.tasks[key].size
	delete(k.tasks, key)
}

// sendTagged sends an answer in JSON with its ETag, or 304 when the caller has it already. A large one is compressed if the
// caller allows it.
func sendTagged(w http.ResponseWriter, r *http.Request, body []byte) (err error) {
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	h := w.Header()
	h.Set("ETag", tag)
	h.Add("Vary", "Accept-Encoding")
	h.Add("Vary", "Accept-Language")
	if hasTag(r, tag) {
		h.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNotModified)
		return nil
	}

	if len(body) >= zipFrom && acceptsGzip(r) {
		if body, err = zipped(body); err != nil {
			return err
		}
		h.Set("Content-Encoding", "gzip")
	}
	send(w, http.StatusOK, body)
	return nil
}

// hasTag reports whether a caller has an answer already.
func hasTag(r *http.Request, tag string) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if part = strings.TrimSpace(part); part == "*" || strings.TrimPrefix(part, "W/") == tag {
			return true
		}
	}
	return false
}

// zippers are used again: one has about a megabyte.
var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return z
}}

func zipped(body []byte) ([]byte, error) {
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	var b bytes.Buffer
	z.Reset(&b)
	if _, err := z.Write(body); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
