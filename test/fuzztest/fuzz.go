package fuzztest

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// TimeVariable is the environment variable that says for how long a plain test tries random inputs on each target.
const TimeVariable = "GOZZARD_FUZZ_TIME"

const shortWhile = 200 * time.Millisecond

// Target is a fuzz target under bounds.
type Target struct {
	f     *testing.F
	seeds [][]any
}

// New wraps a fuzz target.
func New(f *testing.F) *Target { return &Target{f: f} }

// Add adds a seed, with the types that the function of Fuzz takes.
func (z *Target) Add(args ...any) {
	z.f.Helper()
	z.seeds = append(z.seeds, args)
	z.f.Add(args...)
}

// Fuzz runs fn, a func(*testing.T, ...) as for testing.F, on the seeds and then on random inputs made from them.
func (z *Target) Fuzz(fn any) {
	z.f.Helper()
	long, err := randomTime()
	if err != nil {
		z.f.Fatal(err)
	}

	v := reflect.ValueOf(fn)
	var once sync.Once
	bounded := reflect.MakeFunc(v.Type(), func(args []reflect.Value) []reflect.Value {
		t := args[0].Interface().(*testing.T)
		t.Helper()
		within(t, v, args)
		if long > 0 {
			once.Do(func() { z.tryRandom(t, v, long) })
		}
		return nil
	})

	z.f.Fuzz(bounded.Interface())
}

// randomTime is how long this run tries random inputs: 0 if the tool chain does that.
func randomTime() (time.Duration, error) {
	for _, name := range []string{"test.fuzz", "test.fuzzworker"} {
		if fl := flag.Lookup(name); fl != nil && fl.Value.String() != "" && fl.Value.String() != "false" {
			return 0, nil
		}
	}

	text := os.Getenv(TimeVariable)
	if text == "" {
		return shortWhile, nil
	}

	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("cannot read %s: %w", TimeVariable, err)
	}

	return d, nil
}

// tryRandom changes seeds until the time is over. The sequence depends only on the target's name.
func (z *Target) tryRandom(t *testing.T, fn reflect.Value, long time.Duration) {
	t.Helper()
	h := fnv.New64a()
	_, _ = h.Write([]byte(z.f.Name()))
	m := newMutator(rand.New(rand.NewPCG(h.Sum64(), 1)), z.seeds)
	tried := 0

	for end := time.Now().Add(long); !t.Failed() && time.Now().Before(end); tried++ {
		input := m.next()
		args := make([]reflect.Value, 1, 1+len(input))
		args[0] = reflect.ValueOf(t)
		for _, a := range input {
			args = append(args, reflect.ValueOf(a))
		}
		within(t, fn, args)
	}

	t.Logf("%d random inputs", tried)
}

// corpus writes an input in the form of the files below testdata/fuzz, so that it can be stored there.
func corpus(args []reflect.Value) string {
	var b strings.Builder
	b.WriteString("go test fuzz v1\n")
	for _, a := range args {
		fmt.Fprintf(&b, "%s(%#v)\n", typeName(a.Type()), literal(a))
	}
	return b.String()
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "[]byte"
	case reflect.Uint8:
		return "byte"
	case reflect.Int32:
		return "int32"
	}
	return t.String()
}

func literal(a reflect.Value) any {
	switch {
	case a.Kind() == reflect.Slice:
		return string(a.Bytes())
	case a.CanUint():
		return int64(a.Uint()) // in decimal
	}
	return a.Interface()
}
