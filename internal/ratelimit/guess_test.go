package ratelimit_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/ratelimit"
)

// TestTS2GuessesAreLimited: wrong secrets are answered with the limit after a while, for the address and for the name.
// The right secret is accepted all the same, from the same address and for the same name.
func TestTS2GuessesAreLimited(t *testing.T) {
	r := newRig(t, ratelimit.Default())
	for i := range 10 {
		if code, _ := r.ask("/bus/caller", "10.0.0.1", "a", "guess"+strconv.Itoa(i)); code != blueking.CodeGeneral {
			t.Fatalf("guess %d: code %d", i, code)
		}
	}

	for _, app := range []string{"a", "b", "nobody"} {
		if code, _ := r.ask("/bus/caller", "10.0.0.1", app, "another"); code != blueking.CodeRateLimited {
			t.Errorf("a guess for %s: code %d", app, code)
		}
	}

	code, res := r.ask("/gate/caller", "10.0.0.1", "a", "another")
	if code != 1642902 || res.Code != http.StatusTooManyRequests ||
		res.Header().Get("Retry-After") == "" {
		t.Fatalf("code %d, status %d, retry after %q", code, res.Code, res.Header().Get("Retry-After"))
	}

	for _, app := range []string{"a", "b"} {
		if code, _ := r.ask("/bus/caller", "10.0.0.1", app, "s-"+app); code != 0 {
			t.Errorf("the right secret of %s from the locked address: code %d", app, code)
		}
	}
	if code, _ := r.ask("/bus/caller", "10.0.0.2", "a", "wrong"); code != blueking.CodeGeneral {
		t.Errorf("a wrong secret from another address: code %d", code)
	}

	r.pass(7 * time.Second)

	if code, _ := r.ask("/bus/caller", "10.0.0.1", "a", "wrong"); code != blueking.CodeGeneral {
		t.Errorf("a wrong secret after a while: code %d", code)
	}
	if !slices.Contains(r.refused, ratelimit.RuleFailures) {
		t.Fatalf("counted %v", r.refused)
	}
}

// TestTS2ManyGuesses: of 10,000 guesses a second from one address only as many are answered in words as the limit
// allows. All others have the same answer. The right secret among them is accepted every time.
func TestTS2ManyGuesses(t *testing.T) {
	r := newRig(t, ratelimit.Default())
	const perSecond = 10_000
	guesses := *manyGuesses
	answered, limited, right := 0, 0, 0
	for i := range guesses {
		secret := "guess" + strconv.Itoa(i)
		if i%1000 == 999 {
			secret = "s-a"
		}
		switch code, _ := r.ask("/bus/caller", "10.0.0.1", "a", secret); code {
		case blueking.CodeGeneral:
			answered++
		case blueking.CodeRateLimited:
			limited++
		case 0:
			right++
		default:
			t.Fatalf("guess %d: code %d", i, code)
		}
		r.pass(time.Second / perSecond)
	}

	most := 10 + guesses/perSecond*10/60 + 1 // the burst, and ten per minute since then
	fmt.Printf("threat TS2: of %d guesses at %d a second %d were answered, %d were limited, "+
		"the right one among them came in %d times\n", guesses, perSecond, answered, limited, right)

	if answered > most || answered < 10 || answered+limited+right != guesses {
		t.Errorf("%d were answered, at most %d may be", answered, most)
	}
	if right != guesses/1000 {
		t.Errorf("the right secret came in %d times of %d", right, guesses/1000)
	}
}

func TestAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		proxy          bool
		trusted        string
		first, second  string
		forwardedFirst string
		forwardedThen  string
		same           bool
	}{
		"one network of IPv6":  {first: "2001:db8::1", second: "2001:db8::ffff:2", same: true},
		"two networks of IPv6": {first: "2001:db8::1", second: "2001:db8:0:1::1"},
		"IPv4 in two forms":    {first: "10.0.0.1", second: "::ffff:10.0.0.1", same: true},
		"a header that is not trusted": {first: "127.0.0.1", second: "127.0.0.1", forwardedFirst: "10.0.0.1",
			forwardedThen: "10.0.0.2", same: true},
		"a proxy's callers": {proxy: true, first: "127.0.0.1", second: "127.0.0.1",
			forwardedFirst: "10.0.0.1", forwardedThen: "10.0.0.2"},
		"an address that the caller has written": {proxy: true, first: "127.0.0.1", second: "127.0.0.1",
			forwardedFirst: "1.1.1.1, 10.0.0.1", forwardedThen: "2.2.2.2, 10.0.0.1", same: true},
		"a proxy elsewhere": {trusted: "10.0.0.0/29", first: "10.0.0.2", second: "10.0.0.3",
			forwardedFirst: "10.1.0.1", forwardedThen: "10.1.0.2"},
		"a proxy behind a proxy": {trusted: "10.0.0.0/29", first: "10.0.0.2", second: "10.0.0.3",
			forwardedFirst: "9.9.9.9, 10.1.0.1, 10.0.0.4", forwardedThen: "8.8.8.8, 10.1.0.1, 10.0.0.5", same: true},
		"a trusted address that the caller has written": {trusted: "10.0.0.0/29", first: "10.0.0.2",
			second: "10.0.0.2", forwardedFirst: "1.1.1.1, 10.0.0.4, 10.1.0.1",
			forwardedThen: "2.2.2.2, 10.0.0.4, 10.1.0.1", same: true},
		"a proxy that writes nonsense": {trusted: "10.0.0.0/29", first: "10.0.0.2", second: "10.0.0.2",
			forwardedFirst: "1.1.1.1, unknown", forwardedThen: "2.2.2.2, unknown", same: true},
		"a peer beside the proxies": {trusted: "10.0.0.0/29", first: "10.0.0.9", second: "10.0.0.9",
			forwardedFirst: "10.1.0.1", forwardedThen: "10.1.0.2", same: true},
		"a header from elsewhere": {proxy: true, first: "10.0.0.9", second: "10.0.0.9",
			forwardedFirst: "10.0.0.1", forwardedThen: "10.0.0.2", same: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := ratelimit.Default()
			o.Failures, o.Proxy = 1, c.proxy
			if c.trusted != "" {
				o.Proxies = []netip.Prefix{netip.MustParsePrefix(c.trusted)}
			}
			r := newRig(t, o)
			r.ask("/bus/caller", c.first, "a", "wrong", "X-Forwarded-For", c.forwardedFirst)
			code, _ := r.ask("/bus/caller", c.second, "a", "wrong", "X-Forwarded-For", c.forwardedThen)
			if limited := code == blueking.CodeRateLimited; limited != c.same {
				t.Fatalf("code %d", code)
			}
		})
	}
}
