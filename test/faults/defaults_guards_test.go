//go:build linux

package faults_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// stopMany requests a stop of that many processes.
func stopMany(t *testing.T, f *plainFleet, processes int, confirm string) httpAnswer {
	t.Helper()
	names := make([]string, processes)
	for i := range names {
		names[i] = fmt.Sprintf(`"p%d"`, i)
	}
	return f.admin(t, "POST", "/api/v1/operations", strings.NewReader(
		`{"action":"stop","namespace":"great","names":[`+strings.Join(names, ",")+
			`],"hosts":[{"cloud":0,"ip":"127.0.0.1"}]`+confirm+`}`))
}

// greatStops: above 500 processes, or 30 % of those that the caller sees, the request must repeat the number. Apps of
// BlueKing have a quota.
func greatStops(t *testing.T, f *plainFleet) {
	for _, n := range []int{501, 60} { // this fleet has fewer than 200 processes, so 60 of them are more than 30 %
		if a := stopMany(t, f, n, ""); a.status != http.StatusBadRequest ||
			!strings.Contains(a.body, fmt.Sprintf("confirm %d", n)) {
			t.Errorf("a stop of %d processes: HTTP %d %s", n, a.status, a.body)
		}
	}

	if a := stopMany(t, f, 60, `,"confirm":59`); a.status != http.StatusBadRequest {
		t.Errorf("another number: HTTP %d %s", a.status, a.body)
	}
	if a := stopMany(t, f, 60, `,"confirm":60`); a.status >= 300 {
		t.Errorf("confirmed: HTTP %d %s", a.status, a.body)
	}

	defaultIs(t, f, "confirm-above", "500")
	defaultIs(t, f, "confirm-above-percent", "30")
	defaultIs(t, f, "destructive-quota", "10000")
	defaultIs(t, f, "definition-quota", "256")
}

// ratesAreLimited: an app may send 50 requests a second.
func ratesAreLimited(t *testing.T, f *plainFleet) {
	secret := strings.TrimSpace(f.gozzard(t, "app", "create", "eager", "--asserts-users", "--unknown-users",
		"--role", "viewer"))
	var limited, other int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				a := f.ask(t, "GET", "/api/v1/whoami", nil, authorizationHeader, f.authorization("eager", secret))
				mu.Lock()
				switch a.status {
				case http.StatusOK:
				case http.StatusTooManyRequests:
					limited++
				default:
					other++
				}
				mu.Unlock()
			}
		})
	}

	wg.Wait()

	if limited == 0 || other > 0 {
		t.Errorf("of 800 requests at once %d had to wait, %d got something else", limited, other)
	}

	defaultIs(t, f, "rate-app", "50")
	defaultIs(t, f, "max-failed-logins", "10")
	defaultIs(t, f, "max-in-flight", "100000")
}

// defaultIs reads a default from the help text.
func defaultIs(t *testing.T, f *plainFleet, flag, want string) {
	t.Helper()
	if !regexp.MustCompile(`--` + flag + ` .*\(default ` + want + `\)`).MatchString(f.gozzard(t, "server", "--help")) {
		t.Errorf("--%s is not %s without being set", flag, want)
	}
}

func badLoginsWait(t *testing.T, f *plainFleet) {
	limited := 0
	for range 15 {
		if a := f.ask(t, "GET", "/api/v1/hosts", nil, authorizationHeader,
			f.authorization(f.cred.App, "wrong")); a.status == http.StatusTooManyRequests {
			limited++
		}
	}
	if limited == 0 {
		t.Error("15 bad logins in a row, none had to wait")
	}
}
