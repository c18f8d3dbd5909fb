package agent_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
)

// TestTE12AccountOfTheCommand: an operation is rejected before it begins when the definition that it would use has another
// account than the command, or when its account is root under another name.
func TestTE12AccountOfTheCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.o.IsRoot = func(account string) bool { return account == "toor" }
		r.start()
		r.connect()

		try := func(action gozzard.Action, spec []byte, account, want string) {
			t.Helper()
			op := r.op(action, "ok")
			op.Spec, op.Account = spec, account
			r.do(op)
			pass(2 * time.Second)
			got := r.last(op.ID)
			switch {
			case want == "" && got.Outcome.Code == gozzard.CodeRefused:
				t.Errorf("%s for %q: %+v", action, account, got)
			case want != "" && (got.Outcome.Code != gozzard.CodeRefused || !strings.Contains(got.Outcome.Message, want)):
				t.Errorf("%s for %q is not rejected: %+v", action, account, got)
			}
		}

		// Nothing is kept of what is rejected.
		try(gozzard.ActionRegister, specOf("root", "ok"), "shop", "has the account root, and the command is for the account shop")
		try(gozzard.ActionStart, specOf("", "ok"), "shop", "has the account root")
		try(gozzard.ActionStart, specOf("0", "ok"), "shop", "has the account root")
		try(gozzard.ActionStart, specOf("toor", "ok"), "toor", "is root on this host")
		if n := r.a.Processes(); n != 0 {
			t.Fatalf("%d processes are kept", n)
		}

		// The definition of the host counts where the operation brings none, or does not use it.
		try(gozzard.ActionRegister, specOf("shop", "ok"), "shop", "")
		for _, a := range []gozzard.Action{gozzard.ActionStop, gozzard.ActionKill, gozzard.ActionHost, gozzard.ActionUnhost,
			gozzard.ActionUnregister} {
			try(a, nil, "db", "has the account shop, and the command is for the account db")
		}
		try(gozzard.ActionUnregister, specOf("db", "ok"), "db", "has the account shop")
		try(gozzard.ActionQuery, nil, "", "")
		try(gozzard.ActionUpdate, specOf("0", "ok"), "root", "")

		// A command without an account is one of an admin of the whole fleet, or of an older server.
		try(gozzard.ActionUpdate, specOf("toor", "ok"), "", "")
		try(gozzard.ActionUnregister, nil, "", "")
	})
}

// TestTE18AccountIsComparedOnTheHost: a definition without an account means the default account of this moment. A command that
// was judged for another one is rejected, and what is on record keeps the account with which it came.
func TestTE18AccountIsComparedOnTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := governed(t)
		try := func(action gozzard.Action, name string, spec []byte, account, want string) {
			t.Helper()
			op := r.op(action, "")
			op.Key.Name, op.Spec, op.Account = name, spec, account
			r.do(op)
			pass(2 * time.Second)
			switch got := r.last(op.ID); {
			case want == "" && got.Outcome.Code == gozzard.CodeRefused:
				t.Errorf("%s of %s for %q: %+v", action, name, account, got)
			case want != "" && (got.Outcome.Code != gozzard.CodeRefused || !strings.Contains(got.Outcome.Message, want)):
				t.Errorf("%s of %s for %q is not rejected: %+v", action, name, account, got)
			}
		}

		// Without a default account a definition is recorded, and does not run.
		p.set(func() { p.def = "" })
		try(gozzard.ActionStart, "a", specOf("", "ok"), "", "default_user in")
		try(gozzard.ActionRegister, "a", specOf("", "ok"), "shop", "has the account root")
		try(gozzard.ActionRegister, "a", specOf("", "ok"), "root", "")
		for _, a := range []gozzard.Action{gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionKill, gozzard.ActionHost,
			gozzard.ActionRestart, gozzard.ActionReload} {
			try(a, "a", nil, "", "default_user in")
		}
		try(gozzard.ActionQuery, "a", nil, "", "")

		// With one it counts like a name.
		p.set(func() { p.def = "shop" })
		try(gozzard.ActionStart, "a", nil, "root", "the default account of this host is shop, but the command is for the account root")
		try(gozzard.ActionStart, "b", specOf("", "ok"), "db", "the default account of this host is shop, but")
		try(gozzard.ActionRegister, "b", specOf("", "ok"), "shop", "")

		// A change of the policy moves nothing that is on record.
		p.set(func() { p.def = "db" })
		try(gozzard.ActionStop, "b", nil, "db", "has the account shop, and the command is for the account db")
		try(gozzard.ActionStop, "b", nil, "shop", "")
		try(gozzard.ActionStop, "b", specOf("", "ok"), "db", "has the account shop") // the same definition
		try(gozzard.ActionStop, "b", specOf("", "ok"), "shop", "")
		try(gozzard.ActionStop, "b", specOf("", "fail"), "shop", "the default account of this host is db")
		try(gozzard.ActionRegister, "c", specOf("", "ok"), "shop", "the default account of this host is db")
		try(gozzard.ActionUpdate, "b", specOf("", "ok"), "db", "")
		try(gozzard.ActionStop, "b", nil, "shop", "has the account db")
	})
}
