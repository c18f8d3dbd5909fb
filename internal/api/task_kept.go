package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/rendered"
)

// zipFrom is how many bytes an answer has that is compressed.
const zipFrom = 16 << 10

// noAttempts ends the JSON of a task whose attempts are left out: they are its last field.
const noAttempts = "[]}\n"

// keptAnswer is the answer to a poll of a large task: the task without its attempts, the attempts, and the end.
type keptAnswer struct {
	head []byte
	text *rendered.Text
}

const keptTail = "]}\n"

// keptTask makes the answer to a poll of a large task. waiting is for a task that is not final; other polls of a task that has
// not changed cost next to nothing.
func (a *api) keptTask(res *record.TaskResults, language string, waiting func() *client.Waiting) (k keptAnswer, err error) {
	k.text, err = a.rendered.Text(rendered.Key{Task: res.Task.ID, Language: language}, res.Attempts, res.Version,
		rendered.Form{Append: appendAttempt(saidIn(language))}, time.Now())
	if err != nil {
		return k, err
	}

	head := func() ([]byte, error) {
		t := renderTask(res, client.ShowNone)
		t.Waiting = waiting()
		return headOf(&t)
	}
	if k.text.Final { // it waits for nothing
		k.head, err = k.text.Head(head)
	} else {
		k.head, err = head()
	}
	return k, err
}

// appendAttempt renders an attempt for package rendered.
func appendAttempt(say func(string) string) func([]byte, *gozzard.Attempt) ([]byte, error) {
	var b bytes.Buffer
	enc := newEncoder(&b)
	return func(to []byte, at *gozzard.Attempt) ([]byte, error) {
		v := renderAttempt(at, verdictOf(at))
		v.Message = say(v.Message)
		b.Reset()
		if err := enc.Encode(v); err != nil {
			return nil, fmt.Errorf("cannot encode the answer: %w", err)
		}
		return append(to, bytes.TrimRight(b.Bytes(), "\n")...), nil
	}
}

// headOf is the JSON of a task up to its attempts, which are left out.
func headOf(t *client.Task) ([]byte, error) {
	body, err := encode(t)
	if err != nil {
		return nil, err
	}
	body, cut := bytes.CutSuffix(body, []byte(noAttempts))
	if !cut { // another field was added behind the attempts
		return nil, fmt.Errorf("cannot encode the answer: %w", errors.ErrUnsupported)
	}
	return append(body, '['), nil
}

// send sends the answer as sendTagged does.
func (k keptAnswer) send(w http.ResponseWriter, r *http.Request) error {
	sum := k.text.Sum()
	if notModified(w, r, sha256.Sum256(append(bytes.Clone(k.head), sum[:]...))) {
		return nil
	}

	if acceptsGzip(r) {
		body, err := k.text.Gzip(k.head, []byte(keptTail))
		if err != nil {
			return err
		}
		w.Header().Set("Content-Encoding", "gzip")
		send(w, http.StatusOK, body)
		return nil
	}

	// The parts are sent one by one: to join them would cost as much.
	w.Header().Set("Content-Length", strconv.Itoa(len(k.head)+len(k.text.Bytes)+len(keptTail)))
	sendHeader(w, http.StatusOK, jsonType)
	for _, part := range [][]byte{k.head, k.text.Bytes, []byte(keptTail)} {
		if _, err := w.Write(part); err != nil {
			return nil // the caller has closed the connection
		}
	}
	return nil
}

// sendTagged sends an answer in JSON with its ETag, or 304 when the caller has it already. A large one is compressed if the
// caller allows it.
func sendTagged(w http.ResponseWriter, r *http.Request, body []byte) (err error) {
	if notModified(w, r, sha256.Sum256(body)) {
		return nil
	}
	if len(body) >= zipFrom && acceptsGzip(r) {
		if body, err = rendered.Gzip(body); err != nil {
			return err
		}
		w.Header().Set("Content-Encoding", "gzip")
	}
	send(w, http.StatusOK, body)
	return nil
}

// notModified sets the ETag of an answer with that digest. It answers with 304 when the caller has the answer already.
func notModified(w http.ResponseWriter, r *http.Request, sum [sha256.Size]byte) bool {
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	h := w.Header()
	h.Set("ETag", tag)
	h.Add("Vary", "Accept-Encoding")
	h.Add("Vary", "Accept-Language")
	if !hasTag(r, tag) {
		return false
	}
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNotModified)
	return true
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
