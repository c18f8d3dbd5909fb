package auth_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

// welch is the t statistic of two samples, without the slowest tenth of each: what the machine did meanwhile.
func welch(a, b []float64) float64 {
	mean := func(x []float64) (m, v float64) {
		slices.Sort(x)
		x = x[:len(x)*9/10]
		for _, d := range x {
			m += d
		}
		m /= float64(len(x))
		for _, d := range x {
			v += (d - m) * (d - m)
		}
		return m, v / float64(len(x)-1) / float64(len(x))
	}

	m1, v1 := mean(a)
	m2, v2 := mean(b)
	if v1+v2 == 0 {
		return 0
	}

	return (m1 - m2) / math.Sqrt(v1+v2)
}

// TestTS2Timing compares, in turns, guesses that are nearly right with ones that are all wrong. Beyond 4.5 the
// times tell them apart; a machine that is busy with other things may say so by chance, a leak says it every time.
func TestTS2Timing(t *testing.T) {
	const each, tries = 50_000, 4
	secret := auth.NewSecret()
	near := secret[:len(secret)-1] + "."
	far := strings.Repeat("~", len(secret))
	book, err := auth.New(auth.Config{Apps: []auth.App{{Code: "app", Secrets: []auth.Digest{auth.Hash(secret)},
		AssertsUsers: true}},
		Tokens: []auth.Token{{User: "u", Digest: auth.Hash(secret)}}})
	must(t, err)
	order := rand.New(rand.NewPCG(1, 2)) // a regular one is seen in the times of the memory's management
	for name, guesses := range map[string][2]auth.Credentials{
		"secret": {{App: "app", Secret: near, User: "u"}, {App: "app", Secret: far, User: "u"}},
		"token":  {{App: "app", Secret: secret, Token: near}, {App: "app", Secret: secret, Token: far}},
	} {
		var stat float64
		for range tries {
			times := [2][]float64{make([]float64, 0, 2*each), make([]float64, 0, 2*each)}
			for range 2 * each {
				k := order.IntN(2)
				began := time.Now()
				_, _, err := book.Check(t.Context(), guesses[k])
				took := time.Since(began)
				if err == nil {
					t.Fatal("a guess was right")
				}
				times[k] = append(times[k], float64(took))
			}
			if stat = welch(times[0], times[1]); math.Abs(stat) < 4.5 {
				break
			}
		}
		t.Logf("%s: t = %.2f", name, stat)
		if math.Abs(stat) >= 4.5 {
			t.Errorf("%s: t = %.2f: the time tells a nearly right guess from a wrong one", name, stat)
		}
	}
}

// TestTS2AtRest looks for what could be used in what is kept.
func TestTS2AtRest(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	secret, err := r.CreateApp(ctx, by, auth.App{Code: "shop"}, false)
	must(t, err)
	must(t, r.CreateUser(ctx, by, auth.User{Name: "alice"}, "a password of alice"))
	token, _, err := r.CreateToken(ctx, by, "alice", "", time.Hour)
	must(t, err)
	c, _, err := r.store.LoadAccounts(ctx)
	must(t, err)
	kept := jsonText(t, c)
	for _, s := range []string{secret, token, "a password of alice"} {
		if len(s) < 19 || strings.Contains(kept, s) {
			t.Errorf("%q is kept as it is", s)
		}
	}

	if len(secret) < 43 || len(token) < 43 {
		t.Error("a secret has fewer than 256 bits")
	}
}

// TestTS3 lets an app name users in every way there is.
func TestTS3(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	secret, err := r.CreateApp(ctx, by, auth.App{Code: "plain", Grants: gozzard.Everything().Grants}, false)
	must(t, err)
	must(t, r.CreateUser(ctx, by, auth.User{Name: "root", Grants: gozzard.Everything().Grants}, ""))
	_, err = r.check(t, auth.Credentials{App: "plain", Secret: secret, User: "root"})
	wantKind(t, err, gozzard.ErrUserForbidden)
	_, err = r.check(t, auth.Credentials{App: "plain", Secret: secret, User: "root", Token: "guess"})
	wantKind(t, err, gozzard.ErrUnauthenticated)
	_, err = r.check(t, auth.Credentials{App: "plain", Secret: secret})
	wantKind(t, err, gozzard.ErrOperatorRequired)
	caller, err := r.check(t, auth.Credentials{App: "admin", Secret: "root", User: "root"})
	must(t, err)

	if caller.App != "admin" || caller.User != "root" || !caller.Asserted {
		t.Fatalf("the word of a trusted app is recorded as %+v", caller)
	}
	if !slices.Contains(r.refused, "user_name") || !slices.Contains(r.refused, "user_token") {
		t.Fatalf("counted %v", r.refused)
	}
}
