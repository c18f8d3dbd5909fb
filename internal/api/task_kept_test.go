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

func render(k *renderedTasks, res *record.TaskResults, language string, say func(string) string, now time.Time) ([]byte, error) {
	head := renderTask(res, client.ShowNone)
	return k.render(&head, res, language, say, now)
}

// A large task that is rendered in parts has the same answer as one that is rendered at once, at every stage.
func TestRenderedTask(t *testing.T) {
	var k renderedTasks
	res, now := largeTask(2000), time.Now()
	say := func(s string) string { return s }
	for stage := range 4 {
		for i := range res.Attempts[:stage*500] {
			a := &res.Attempts[i]
			a.State, a.Outcome = gozzard.AttemptOK, gozzard.Outcome{Code: gozzard.CodeOK, Message: "done & <well>"}
		}
		got, err := render(&k, res, "en", say, now)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := encode(renderTask(res, client.ShowAll)); err != nil || string(got) != string(want) {
			t.Fatalf("stage %d: %.300s, want %.300s, %v", stage, got, want, err)
		}
	}
	if k.bytes < 1500*100 || len(k.tasks) != 1 {
		t.Errorf("%d bytes of %d tasks are kept", k.bytes, len(k.tasks))
	}

	// It is kept for each language, and only while it is polled.
	if raw, err := render(&k, res, "zh", strings.ToUpper, now); err != nil || !strings.Contains(string(raw), "WELL") {
		t.Errorf("in another language: %.200s, %v", raw, err)
	}
	if _, err := render(&k, largeTask(1000), "xx", say, now.Add(2*renderedFor)); err != nil || len(k.tasks) != 1 || k.bytes > 1000*300 {
		t.Errorf("later %d bytes of %d tasks are kept, %v", k.bytes, len(k.tasks), err)
	}
}

// What is kept for callers that poll is bounded, however many tasks they poll.
func TestRenderedTasksAreBounded(t *testing.T) {
	var k renderedTasks
	now := time.Now()
	for i := range 100 {
		key := renderedKey{language: fmt.Sprint(i)}
		k.grew(key, k.use(key, now.Add(time.Duration(i))), renderedBytes/10)
	}
	if k.bytes > renderedBytes || len(k.tasks) > 10 || k.tasks[renderedKey{language: "99"}] == nil {
		t.Errorf("%d bytes of %d tasks", k.bytes, len(k.tasks))
	}
	key := renderedKey{language: "huge"}
	if k.grew(key, k.use(key, now), 2*renderedBytes); k.bytes > renderedBytes {
		t.Errorf("one huge task: %d bytes", k.bytes)
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
	say := func(s string) string { return s }
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			if _, err := encode(renderTask(res, client.ShowAll)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("kept", func(b *testing.B) {
		var k renderedTasks
		for b.Loop() {
			if _, err := render(&k, res, "en", say, time.Now()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
