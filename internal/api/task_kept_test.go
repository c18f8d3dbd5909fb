package api

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
)

func largeTask(n int) *record.TaskResults {
	res := &record.TaskResults{Task: gozzard.Task{ID: gozzard.NewTaskID(7, time.Unix(1_700_000_000, 0)), Targets: n}}
	for i := range n {
		res.Attempts = append(res.Attempts, gozzard.Attempt{Agent: gozzard.AgentID(fmt.Sprint("agent-", i)),
			Ref: gozzard.AttemptRef{Task: 7, Index: int32(i)}, Action: gozzard.ActionStart, State: gozzard.AttemptDispatched,
			Key: gozzard.Key{Namespace: "ns", Name: "<p>"}})
	}
	return res
}

// whole is the answer to a poll of a large task.
func (k keptAnswer) whole() string { return string(k.head) + string(k.text.Bytes) + keptTail }

// A large task that is rendered in parts has the same answer as one that is rendered at once, at every stage.
func TestRenderedTask(t *testing.T) {
	a, res := &api{}, largeTask(2000)
	none := func() *client.Waiting { return nil }
	for stage := range 5 {
		for i := range res.Attempts[:stage*500] {
			a := &res.Attempts[i]
			a.State, a.Outcome = gozzard.AttemptOK, gozzard.Outcome{Code: gozzard.CodeOK, Message: "done & <well>"}
		}
		res.Version++
		got, err := a.keptTask(res, "en", none)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := encode(renderTask(res, client.ShowAll)); err != nil || got.whole() != string(want) {
			t.Fatalf("stage %d: %.300s, want %.300s, %v", stage, got.whole(), want, err)
		}
	}
}

// A poll of a large task has a tag that changes with the attempts and with what is before them, and is sent whole or
// compressed as the caller allows.
func TestKeptAnswers(t *testing.T) {
	a, res := &api{}, largeTask(1000)
	res.Version = 1
	hosts := 0
	ask := func(headers ...string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		k, err := a.keptTask(res, "en", func() *client.Waiting { return &client.Waiting{Hosts: hosts} })
		if err == nil {
			err = k.send(w, r)
		}
		if err != nil {
			t.Fatal(err)
		}
		return w
	}

	first := ask()
	tag := first.Header().Get("ETag")
	if again := ask("If-None-Match", tag); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("the same answer: %d, %d bytes", again.Code, again.Body.Len())
	}
	if first.Header().Get("Content-Length") != fmt.Sprint(first.Body.Len()) || !json.Valid(first.Body.Bytes()) {
		t.Errorf("length %s of %d bytes: %.100s", first.Header().Get("Content-Length"), first.Body.Len(), first.Body)
	}

	hosts++ // another host is offline
	second := ask("If-None-Match", tag)
	res.Version++
	res.Attempts[999].State = gozzard.AttemptOK
	third := ask("If-None-Match", second.Header().Get("ETag"), "Accept-Encoding", "gzip")
	if second.Code != http.StatusOK || third.Code != http.StatusOK || third.Header().Get("Content-Encoding") != "gzip" {
		t.Fatalf("after changes %d and %d, %q", second.Code, third.Code, third.Header())
	}
	z, err := gzip.NewReader(third.Body)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(z); err != nil || string(body) != ask().Body.String() || string(body) == second.Body.String() {
		t.Errorf("compressed it is different: %v", err)
	}
}

// An answer that the caller has is not sent again, and a large one is compressed.
func TestTaggedAnswers(t *testing.T) {
	ask := func(v any, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		body, err := encode(v)
		if err == nil {
			err = sendTagged(w, r, body)
		}
		if err != nil {
			t.Fatal(err)
		}
		return w
	}

	first := ask(client.Task{ID: "a"})
	tag := first.Header().Get("ETag")
	if first.Code != http.StatusOK || tag == "" {
		t.Fatalf("%d, tag %q", first.Code, tag)
	}
	for _, have := range []string{tag, `"x", W/` + tag, "*"} {
		if w := ask(client.Task{ID: "a"}, "If-None-Match", have); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
			t.Errorf("with %s: %d, %d bytes", have, w.Code, w.Body.Len())
		}
	}
	if w := ask(client.Task{ID: "b"}, "If-None-Match", tag); w.Code != http.StatusOK {
		t.Errorf("another answer: %d", w.Code)
	}

	large := client.Task{User: strings.Repeat("x", 2*zipFrom)}
	plain, zip := ask(large), ask(large, "Accept-Encoding", "br, gzip")
	if plain.Header().Get("Content-Encoding") != "" || zip.Header().Get("Content-Encoding") != "gzip" {
		t.Fatalf("%q and %q", plain.Header(), zip.Header())
	}
	z, err := gzip.NewReader(zip.Body)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil || string(body) != plain.Body.String() || !json.Valid(body) {
		t.Errorf("compressed it is different: %v", err)
	}
}

// BenchmarkPoll is what a poll of a task with 50,000 targets costs while it runs and few attempts change.
func BenchmarkPoll(b *testing.B) {
	res := largeTask(50_000)
	for i := range res.Attempts[:40_000] {
		res.Attempts[i].State, res.Attempts[i].Outcome = gozzard.AttemptOK, gozzard.Outcome{Code: gozzard.CodeOK}
	}

	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			if _, err := encode(renderTask(res, client.ShowAll)); err != nil {
				b.Fatal(err)
			}
		}
	})

	none := func() *client.Waiting { return nil }
	b.Run("kept", func(b *testing.B) {
		a := &api{}
		for b.Loop() {
			if _, err := a.keptTask(res, "en", none); err != nil {
				b.Fatal(err)
			}
		}
	})

	b.Run("changed", func(b *testing.B) {
		a, done := &api{}, 40_000
		for b.Loop() {
			if done += 100; done > 49_000 {
				done = 40_000
			}
			endSome(res, 40_000, done)

			k, err := a.keptTask(res, "en", none)
			if err != nil {
				b.Fatal(err)
			}
			k.text.Sum()
		}
	})
}

// endSome makes a new version of a task: of its attempts from a place on, those before another place have ended.
func endSome(res *record.TaskResults, from, done int) {
	for i := from; i < len(res.Attempts); i++ {
		res.Attempts[i].State = gozzard.AttemptDispatched
		if i < done {
			res.Attempts[i].State = gozzard.AttemptOK
		}
	}
	res.Version++
}
