package ratelimit_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/ratelimit"
)

func TestBlastRadius(t *testing.T) {
	everything, some := gozzard.Everything(), &gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleOperator}}}

	op := func(action gozzard.Action, n, confirm int, rights *gozzard.Rights) *gozzard.Operation {
		return &gozzard.Operation{Caller: gozzard.Caller{App: "a", Rights: rights}, Confirm: confirm,
			Items: []gozzard.Item{{Action: action, Targets: make([]gozzard.Target, n)}}}
	}

	for name, c := range map[string]struct {
		op      *gozzard.Operation
		native  bool
		visible int
		kind    gozzard.ErrorKind
	}{
		"few":                          {op(gozzard.ActionStop, 49, 0, some), true, 49, ""},
		"a part":                       {op(gozzard.ActionStop, 60, 0, some), true, 200, ""},
		"a large part":                 {op(gozzard.ActionStop, 61, 0, some), true, 200, gozzard.ErrInvalid},
		"a large part, confirmed":      {op(gozzard.ActionStop, 61, 61, some), true, 200, ""},
		"confirmed for less":           {op(gozzard.ActionStop, 61, 60, some), true, 200, gozzard.ErrInvalid},
		"confirmed for more":           {op(gozzard.ActionKill, 3, 4, some), true, 200, gozzard.ErrInvalid},
		"500":                          {op(gozzard.ActionRestart, 500, 0, some), true, 100_000, ""},
		"501":                          {op(gozzard.ActionRestart, 501, 0, some), true, 100_000, gozzard.ErrInvalid},
		"501 reloaded":                 {op(gozzard.ActionReload, 501, 0, some), true, 100_000, gozzard.ErrInvalid},
		"501 unhosted":                 {op(gozzard.ActionUnhost, 501, 0, some), true, 100_000, gozzard.ErrInvalid},
		"501 unregistered":             {op(gozzard.ActionUnregister, 501, 0, some), true, 100_000, gozzard.ErrInvalid},
		"501 written":                  {op(gozzard.ActionConfigure, 501, 0, some), true, 100_000, gozzard.ErrInvalid},
		"a large part of the hosts":    {op(gozzard.ActionConfigure, 61, 0, some), true, 400, gozzard.ErrInvalid},
		"a small part of the hosts":    {op(gozzard.ActionConfigure, 60, 0, some), true, 400, ""},
		"compatible, files above":      {op(gozzard.ActionConfigure, 10_001, 0, some), false, 1, gozzard.ErrRateLimited},
		"transfers to 501 hosts":       {op(gozzard.ActionTransfer, 501, 0, some), true, 100_000, gozzard.ErrInvalid},
		"scripts on 501 hosts":         {op(gozzard.ActionScript, 501, 0, some), true, 100_000, gozzard.ErrInvalid},
		"compatible, scripts above":    {op(gozzard.ActionScript, 10_001, 0, some), false, 1, gozzard.ErrRateLimited},
		"501 of an admin":              {op(gozzard.ActionKill, 501, 0, everything), true, 100_000, gozzard.ErrInvalid},
		"501 started":                  {op(gozzard.ActionStart, 501, 0, some), true, 501, ""},
		"above the quota":              {op(gozzard.ActionStop, 10_001, 10_001, some), true, 100_000, ""},
		"compatible, within quota":     {op(gozzard.ActionStop, 10_000, 0, some), false, 10_000, ""},
		"compatible, above quota":      {op(gozzard.ActionStop, 10_001, 0, some), false, 10_001, gozzard.ErrRateLimited},
		"compatible, unregister above": {op(gozzard.ActionUnregister, 10_001, 0, some), false, 1, gozzard.ErrRateLimited},
		"compatible, of an admin":      {op(gozzard.ActionStop, 50_000, 0, everything), false, 50_000, ""},
		"compatible, without rights":   {op(gozzard.ActionStop, 50_000, 0, nil), false, 50_000, gozzard.ErrRateLimited},
		"compatible, many to a start":  {op(gozzard.ActionStart, 50_000, 0, some), false, 50_000, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, above := ratelimit.New(ratelimit.Default()), ratelimit.AboveReject
			var err error
			if c.native {
				above = ratelimit.AboveConfirm
				err = g.Operation(c.op, ratelimit.Visible{Processes: func() int { return c.visible }, Hosts: func() int { return c.visible / 2 }})
			}
			n := len(c.op.Items[0].Targets)
			if c.op.Items[0].Action == gozzard.ActionStart {
				n = 0
			}
			if err == nil {
				_, err = g.Spend(c.op, n, 0, above)
			}
			if c.kind == "" && err != nil || c.kind != "" && (err == nil || gozzard.KindOf(err) != c.kind) {
				t.Fatalf("got %v, want %q", err, c.kind)
			}
		})
	}
}

// quotaRig is a guard with quotas at a time that a test sets.
type quotaRig struct {
	*ratelimit.Guard
	now time.Time
}

func newQuotaRig(b ratelimit.Blast) *quotaRig {
	r := &quotaRig{now: time.Unix(1_800_000_000, 0)}
	r.Guard = ratelimit.New(ratelimit.Options{Blast: b, RefusedQuota: 100, Now: func() time.Time { return r.now }})
	return r
}

// stop spends the quota of an app and a user.
func (r *quotaRig) stop(app, user string, n, confirm int, above ratelimit.Above) error {
	_, err := r.Spend(&gozzard.Operation{Caller: gozzard.Caller{App: app, User: user}, Confirm: confirm,
		Items: []gozzard.Item{{Action: gozzard.ActionStop, Targets: make([]gozzard.Target, n)}}}, n, 0, above)
	return err
}

// TestDestructiveQuota: the quota is per app and hour, and an app can have another one.
func TestDestructiveQuota(t *testing.T) {
	r := newQuotaRig(ratelimit.Blast{Quota: 100, Quotas: map[string]int{"big": 1000, "free": 0}})
	stop := func(app string, n int) error { return r.stop(app, "", n, 0, ratelimit.AboveReject) }

	for range 2 {
		if err := stop("a", 50); err != nil {
			t.Fatal(err)
		}
	}

	if stop("a", 1) == nil {
		t.Fatal("more than its quota")
	}
	if err := stop("big", 1000); err != nil {
		t.Fatal(err)
	}
	if err := stop("free", 90_000); err != nil {
		t.Fatal(err)
	}

	r.now = r.now.Add(30 * time.Minute)

	if err := stop("a", 50); err != nil {
		t.Fatal(err)
	}

	err := stop("a", 10)
	if err == nil {
		t.Fatal("more than half of its quota in half an hour")
	}

	seconds, _ := strconv.Atoi(gozzard.RetryAfter(err))
	r.now = r.now.Add(time.Duration(seconds-1) * time.Second)

	if stop("a", 10) == nil {
		t.Fatalf("the answer says to retry after %d s, but %d were enough", seconds, seconds-1)
	}

	r.now = r.now.Add(time.Second)

	if err := stop("a", 10); err != nil {
		t.Fatalf("retried after %d s: %v", seconds, err)
	}
}

// TestQuotaOverDoors: one quota counts for all doors, for the app and for the user. What is confirmed counts, too.
func TestQuotaOverDoors(t *testing.T) {
	r := newQuotaRig(ratelimit.Blast{Quota: 100})

	// Small steps, by both doors.
	for range 50 {
		if err := errors.Join(r.stop("a", "u", 1, 0, ratelimit.AboveReject),
			r.stop("a", "u", 1, 0, ratelimit.AboveConfirm)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.stop("a", "u", 1, 0, ratelimit.AboveReject); gozzard.KindOf(err) != gozzard.ErrRateLimited {
		t.Errorf("BlueKing's door: %v", err)
	}
	if err := r.stop("a", "u", 1, 0, ratelimit.AboveConfirm); gozzard.KindOf(err) != gozzard.ErrInvalid {
		t.Errorf("the native door: %v", err)
	}
	if err := r.stop("a", "u", 1, 1, ratelimit.AboveConfirm); err != nil {
		t.Errorf("confirmed: %v", err)
	}

	// Another name for one of the two.
	if r.stop("a", "other", 1, 0, ratelimit.AboveReject) == nil {
		t.Error("another user of the app has no quota left")
	}
	if r.stop("b", "u", 1, 0, ratelimit.AboveReject) == nil {
		t.Error("the user has no quota left in another app")
	}
	if r.stop("user:u", "u", 1, 0, ratelimit.AboveReject) == nil {
		t.Error("the user has no quota left without an app")
	}
	if err := r.stop("b", "other", 1, 0, ratelimit.AboveReject); err != nil {
		t.Errorf("another app and user: %v", err)
	}
}

// TestQuotaIsRemembered: what was done before a restart counts, and what was not recorded after all does not.
func TestQuotaIsRemembered(t *testing.T) {
	r := newQuotaRig(ratelimit.Blast{Quota: 100})
	r.Remember(gozzard.Caller{App: "a", User: "u"}, 60, r.now.Add(-2*time.Second))
	r.Remember(gozzard.Caller{App: "a", User: "u"}, 40, r.now.Add(-time.Second))
	if r.stop("a", "u", 1, 0, ratelimit.AboveReject) == nil {
		t.Error("a restart gave the quota back")
	}

	undo, err := r.Spend(&gozzard.Operation{Caller: gozzard.Caller{App: "b"}}, 100, 0, ratelimit.AboveReject)
	if err != nil {
		t.Fatal(err)
	}
	if r.stop("b", "", 1, 0, ratelimit.AboveReject) == nil {
		t.Error("the quota is spent")
	}
	undo()
	if err := r.stop("b", "", 100, 0, ratelimit.AboveReject); err != nil {
		t.Errorf("the quota was given back: %v", err)
	}
}

// TestRefusedQuota: an app cannot fill the record with attempts on hosts that do not exist.
func TestRefusedQuota(t *testing.T) {
	r := newQuotaRig(ratelimit.Blast{})
	ask := func(app string, rejected int, rights *gozzard.Rights) error {
		_, err := r.Spend(&gozzard.Operation{Caller: gozzard.Caller{App: app, Rights: rights}}, 0, rejected,
			ratelimit.AboveReject)
		return err
	}
	for range 100 {
		if err := ask("a", 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask("a", 1, nil); gozzard.KindOf(err) != gozzard.ErrRateLimited {
		t.Errorf("above the quota: %v", err)
	}
	if err := errors.Join(ask("a", 0, nil), ask("b", 1, nil), ask("a", 1000, gozzard.Everything())); err != nil {
		t.Error(err)
	}
}
