//go:build linux

package faults_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// tryLogin tries to log in. It returns the time of Retry-After, too. The status is 0 if there was no answer.
func (s *limited) tryLogin(client *http.Client, user, password string) (status int, retry time.Duration) {
	body := fmt.Sprintf(`{"user":%q,"password":%q}`, user, password)
	res, err := client.Post(s.Cred.URL+"/api/v1/login", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, 0
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
	return res.StatusCode, time.Duration(seconds) * time.Second
}

// useSession makes a session for a user at another address, and uses it with a client.
func (s *limited) useSession(client *http.Client, user, password string) {
	s.t.Helper()
	c := appCaller{s: s, client: http.DefaultClient}
	_, body := c.send(http.MethodPost, "/api/v1/login", ft.J{"user": user, "password": password})
	var session struct{ Token string }
	if err := json.Unmarshal([]byte(body), &session); err != nil || session.Token == "" {
		s.t.Fatalf("the session of %s: %v in %s", user, err, body)
	}

	req, err := http.NewRequest(http.MethodGet, s.Cred.URL+"/api/v1/whoami", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+session.Token)
	res, err := client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		s.t.Fatalf("a request with the session of %s: %s", user, res.Status)
	}
}

// TestTD21LoginFlood: strangers in 30 networks send wrong passwords for a known and for unknown names without an end,
// and 100 more networks come with one guess each. Two people log in at usual addresses, and every login succeeds at
// the first try. A person at a new address comes in while the flood lasts, with the tries that the answers ask for.
func TestTD21LoginFlood(t *testing.T) {
	s := startLimited(t)
	right := func(user string) string { return "right horse " + user }
	for _, user := range []string{"alice", "bob", "carol"} {
		status, body := s.admin().send(http.MethodPost, "/api/v1/users", ft.J{"name": user, "password": right(user),
			"grants": []ft.J{{"role": "viewer"}}})
		if status >= 300 {
			t.Fatalf("user %s: %d %s", user, status, body)
		}
	}

	// Two people have logged in before. One of them has also mistyped the password, and used a session elsewhere.
	office, home := from("127.4.0.1"), from("127.6.0.1")
	for _, user := range []string{"alice", "bob"} {
		if status, _ := s.tryLogin(office, user, right(user)); status != http.StatusOK {
			t.Fatalf("the first login of %s: %d", user, status)
		}
	}
	s.tryLogin(office, "bob", "wrong horse bob")
	s.useSession(home, "bob", right("bob"))

	// Strangers guess.
	stop := make(chan struct{})
	var guesses atomic.Int64
	var wg sync.WaitGroup
	defer func() { close(stop); wg.Wait() }()
	guess := func(ip string, user func(i int) string, most int) {
		wg.Go(func() {
			client := from(ip)
			for i := 0; i < most; i++ {
				select {
				case <-stop:
					return
				default:
				}
				s.tryLogin(client, user(i), "wrong horse")
				guesses.Add(1)
				time.Sleep(50 * time.Millisecond) // the places are to be full, not the processors
			}
		})
	}
	always := func(name string) func(int) string { return func(int) string { return name } }
	for n := range 30 {
		ip := fmt.Sprintf("127.20.%d.1", n)
		guess(ip, always("alice"), 1<<30)
		guess(ip, always("bob"), 1<<30)
		guess(ip, always("carol"), 1<<30)
		guess(ip, func(i int) string { return fmt.Sprintf("stranger%d-%d", n, i) }, 1<<30)
	}
	ft.Until(t, time.Minute, func() string { return "the strangers do not fill the places of the logins" },
		func() bool { return s.metric("login_flood") != "" })
	for n := range 100 {
		guess(fmt.Sprintf("127.21.%d.1", n), always("alice"), 1)
	}

	// The people log in.
	for i := range 4 {
		for _, user := range []string{"alice", "bob"} {
			if status, _ := s.tryLogin(office, user, right(user)); status != http.StatusOK {
				t.Errorf("login %d of %s at the usual address: %d", i, user, status)
			}
		}
		if status, _ := s.tryLogin(home, "bob", right("bob")); status != http.StatusOK {
			t.Errorf("login %d of bob where a session was used: %d", i, status)
		}
	}
	tries := 0
	ft.Until(t, time.Minute, func() string { return "a person at a new address does not come in" }, func() bool {
		tries++
		status, retry := s.tryLogin(from("127.5.0.1"), "carol", right("carol"))
		if status == http.StatusTooManyRequests && retry == 0 {
			t.Error("the answer does not say when to try again")
		}
		time.Sleep(retry)
		return status == http.StatusOK
	})
	fmt.Printf("threat TD21: 12 logins at usual addresses among %d guesses; a new address needed %d tries\n",
		guesses.Load(), tries)
}
