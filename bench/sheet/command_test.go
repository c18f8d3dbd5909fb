package sheet_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gozzard/gozzard/bench/sheet"
)

type result struct{ fault error }

func (r result) Done()        {}
func (r result) Text() string { return "# figures\n" }
func (r result) Fault() error { return r.fault }

func TestCommand(t *testing.T) {
	for _, tt := range []struct {
		name    string
		res     sheet.Result
		err     error
		code    int
		written bool
	}{
		{"done", result{}, nil, 0, true},
		{"with a fault", result{errors.New("the server warned")}, nil, 1, true},
		{"broken off", result{}, errors.New("no memory"), 1, false},
		{"nothing measured", nil, errors.New("no memory"), 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "RESULTS.md")
			code := sheet.Command("bench", path, time.Minute,
				func(context.Context) (sheet.Result, error) { return tt.res, tt.err })
			if code != tt.code {
				t.Errorf("exit code %d, expected %d", code, tt.code)
			}
			if _, err := os.Stat(path); (err == nil) != tt.written {
				t.Errorf("results: %v, expected to be written: %t", err, tt.written)
			}
		})
	}
}
