package server_test

import (
	"testing"

	"github.com/gozzard/gozzard/internal/server"
)

func TestGarbagePercent(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		name      string
		used      uint64
		perSecond float64
		want      int
	}{
		{"a small server", 20 * mb, 0, 100},
		{"a large fleet at rest", 500 * mb, 3 * mb, 20},
		{"with some work", 500 * mb, 16 * mb, 48},
		{"with much work", 500 * mb, 200 * mb, 100},
		{"nothing at all", 500 * mb, 0, 20},
	} {
		if got := server.GarbagePercent(c.used, c.perSecond); got != c.want {
			t.Errorf("%s: %d %%, want %d", c.name, got, c.want)
		}
	}
}

func TestGivesBack(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		name       string
		used, free uint64
		percent    int
		want       bool
	}{
		{"after a storm", 500 * mb, 200 * mb, 20, true},
		{"in a storm", 500 * mb, 200 * mb, 100, false},
		{"long at rest", 500 * mb, 50 * mb, 20, false},
	} {
		if got := server.GivesBack(c.used, c.free, c.percent); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
