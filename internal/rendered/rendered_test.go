package rendered

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

type results struct {
	Attempts []gozzard.Attempt
	Version  uint64
}

func largeTask(n int) *results {
	res := &results{Version: 1}
	for i := range n {
		res.Attempts = append(res.Attempts, gozzard.Attempt{ResultKey: fmt.Sprint(i), State: gozzard.AttemptDispatched})
	}
	return res
}

// counted is a form that counts how many attempts it renders.
func counted(n *int) Form {
	return Form{Append: func(b []byte, a *gozzard.Attempt) ([]byte, error) {
		*n++
		return fmt.Appendf(b, "%s:%s:%s", a.ResultKey, a.State, a.Outcome.Message), nil
	}}
}

// whole is what the text must be.
func whole(t *testing.T, res *results, order []int32) string {
	t.Helper()
	n := 0
	f := counted(&n)
	var parts []string
	for i := range res.Attempts {
		if order != nil {
			if i >= len(order) {
				break
			}
			i = int(order[i])
		}
		b, err := f.Append(nil, &res.Attempts[i])
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, string(b))
	}
	return strings.Join(parts, ",")
}

// backwards is the second half of a list from its end.
func backwards(list []gozzard.Attempt) (order []int32) {
	for i := range list {
		order = append(order, int32(i))
	}
	slices.Reverse(order)
	return order[:len(order)/2]
}

// A poll renders what has changed, and the text is at every stage as if all was rendered at once.
func TestText(t *testing.T) {
	for name, order := range map[string]func([]gozzard.Attempt) []int32{"as they are": nil, "in another order": backwards} {
		t.Run(name, func(t *testing.T) {
			var k Tasks
			res, now, rendered := largeTask(200), time.Now(), 0
			f := counted(&rendered)
			f.Order = order
			var places []int32
			if order != nil {
				places = order(res.Attempts)
			}

			for stage := range 5 {
				for i := range res.Attempts[:stage*50] {
					res.Attempts[i].State, res.Attempts[i].Outcome.Message = gozzard.AttemptOK, "done"
				}
				res.Version++

				got, err := k.Text(Key{}, res.Attempts, res.Version, f, now)
				if err != nil || string(got.Bytes) != whole(t, res, places) || got.Final != (stage == 4) {
					t.Fatalf("stage %d: %.100s final %v, %v", stage, got.Bytes, got.Final, err)
				}
				if again, err := k.Text(Key{}, res.Attempts, res.Version, f, now); again != got || err != nil {
					t.Errorf("stage %d: the same version is rendered again, %v", stage, err)
				}
			}

			if want := 2 * 200; order == nil && rendered != want || order != nil && rendered != want/2 {
				t.Errorf("%d attempts were rendered", rendered)
			}
		})
	}
}

// An attempt whose outcome is not known may say something else with the next version. Without a version nothing is known.
func TestTextChanges(t *testing.T) {
	var k Tasks
	res, n := largeTask(3), 0
	for i, text := range []string{"first", "second", "third"} {
		if i < 2 {
			res.Version++
		} else {
			res.Version = 0
		}
		res.Attempts[1].State, res.Attempts[1].Outcome.Message = gozzard.AttemptUnknown, text
		if got, err := k.Text(Key{}, res.Attempts, res.Version, counted(&n), time.Now()); err != nil || !strings.Contains(string(got.Bytes), text) {
			t.Errorf("%s, want %s in it: %v", got.Bytes, text, err)
		}
	}

	// An attempt that cannot be rendered spoils nothing.
	res.Attempts[2].State = gozzard.AttemptOK
	failing := Form{Append: func(b []byte, _ *gozzard.Attempt) ([]byte, error) { return nil, errors.New("no") }}
	if _, err := k.Text(Key{}, res.Attempts, res.Version, failing, time.Now()); err == nil {
		t.Error("no error")
	}
	if got, err := k.Text(Key{}, res.Attempts, res.Version, counted(&n), time.Now()); err != nil || string(got.Bytes) != whole(t, res, nil) {
		t.Errorf("after an error %s, %v", got.Bytes, err)
	}
}

// What is kept is bounded, however many tasks are polled, and only kept while they are.
func TestBounds(t *testing.T) {
	var k Tasks
	now := time.Now()
	for i := range 100 {
		key := Key{Language: fmt.Sprint(i)}
		k.sized(key, k.use(key, now.Add(time.Duration(i))), most/10)
	}
	if k.bytes > most || len(k.tasks) > 10 || k.tasks[Key{Language: "99"}] == nil {
		t.Errorf("%d bytes of %d tasks", k.bytes, len(k.tasks))
	}
	key := Key{Language: "huge"}
	if k.sized(key, k.use(key, now), 2*most); k.bytes > most {
		t.Errorf("one huge task: %d bytes", k.bytes)
	}

	n := 0
	if _, err := k.Text(Key{}, largeTask(100).Attempts, 1, counted(&n), now.Add(2*keep)); err != nil || len(k.tasks) != 1 || k.bytes > 100_000 {
		t.Errorf("later %d bytes of %d tasks are kept, %v", k.bytes, len(k.tasks), err)
	}
}

// The parts that are compressed apart are one body for each reader of gzip.
func TestGzip(t *testing.T) {
	text := &Text{Bytes: bytes.Repeat([]byte("a text that repeats itself, "), 10_000)}
	for _, c := range []struct{ head, tail string }{{"head [", "]}"}, {"", ""}, {"another head", "another tail"}} {
		zip, err := text.Gzip([]byte(c.head), []byte(c.tail))
		if err != nil {
			t.Fatal(err)
		}
		unzip(t, zip, c.head+string(text.Bytes)+c.tail)
	}
	for _, body := range []string{"", "x", strings.Repeat("body ", 50_000)} {
		zip, err := Gzip([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		unzip(t, zip, body)
	}
}

func unzip(t *testing.T, zip []byte, want string) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(zip))
	if err != nil {
		t.Fatal(err)
	}
	z.Multistream(false) // some readers stop after the first member
	if got, err := io.ReadAll(z); err != nil || string(got) != want {
		t.Errorf("%d bytes, want %d: %v", len(got), len(want), err)
	}
}
