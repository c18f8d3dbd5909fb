package policy

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/yamldoc"
)

// Keys of the setting scripts.
const (
	scriptsAccounts = "accounts"
	scriptsMaxSize  = "max_size"
	scriptsMaxTime  = "max_seconds"
)

// What a policy allows when it does not say.
const (
	defaultScriptSize    = 64 << 10
	defaultScriptSeconds = 3600
)

// ScriptRules say which scripts the server may run on the host. The zero value allows none.
type ScriptRules struct {
	Accounts   []string // as in users of the policy; root only if it is named; none: no script runs
	MaxSize    int64    // of all texts and commands of a script, in bytes
	MaxSeconds int64    // of all steps of a script
}

// Script checks whether a script of an account may run for a namespace.
func (p *Policy) Script(namespace, account string, s *gozzard.ScriptSpec) error {
	acct, rejected := p.account(account)
	return together(rejected, p.namespace(namespace, acct), p.scriptAccount(acct), p.scriptShell(), p.scriptBounds(s))
}

// Script is Policy.Script of the current policy.
func (f *File) Script(namespace, account string, s *gozzard.ScriptSpec) error {
	return f.Current().Script(namespace, account, s)
}

// Script checks a script. An agent without the powers of root can act for few accounts or only for one.
func (r *Reach) Script(namespace, account string, s *gozzard.ScriptSpec) error {
	named, err := r.reachable(&gozzard.Spec{Identity: gozzard.Identity{User: account}})
	if err != nil {
		return err
	}
	return r.Rules.Script(namespace, named.Identity.User, s)
}

func (p *Policy) scriptAccount(acct account) error {
	accounts := p.Scripts.Accounts
	switch {
	case p.ownFleet && len(accounts) > 0:
		return nil
	case len(accounts) == 0:
		return allowedBy(p.reject(setScripts, "a script as account %s", shown(acct.name)), acct.name)
	case acct.root && !slices.Contains(accounts, gozzard.RootAccount):
		return p.rejectBecause(setScripts, "its "+scriptsAccounts+" do not name root", "a script of root")
	case acct.root || slices.ContainsFunc(accounts, acct.matches):
		return nil
	}
	return allowedBy(p.rejectBecause(setScripts, "its "+scriptsAccounts+" do not include this account",
		"a script as account %s", shown(acct.name)), acct.name)
}

// scriptShell: a script is shell text, so a host without shell commands runs none.
func (p *Policy) scriptShell() error {
	if p.Shell {
		return nil
	}
	return p.rejectBecause(setShell, "a script is run by a shell", "a script")
}

func (p *Policy) scriptBounds(s *gozzard.ScriptSpec) error {
	if len(p.Scripts.Accounts) == 0 {
		return nil
	}
	var large, long error
	if s.Size() > p.Scripts.MaxSize {
		large = p.rejectBecause(setScripts, fmt.Sprintf("its %s is %d", scriptsMaxSize, p.Scripts.MaxSize),
			"a script of %d bytes", s.Size())
	}
	if secs := int64(s.Time().Seconds()); secs > p.Scripts.MaxSeconds {
		long = p.rejectBecause(setScripts, fmt.Sprintf("its %s is %d", scriptsMaxTime, p.Scripts.MaxSeconds),
			"a script of %d seconds", secs)
	}
	return together(large, long)
}

// scriptText describes the rules in one line.
func (p *Policy) scriptText() string {
	if len(p.Scripts.Accounts) == 0 {
		return ""
	}
	return fmt.Sprintf("; scripts of up to %d bytes and %d seconds as %s", p.Scripts.MaxSize, p.Scripts.MaxSeconds,
		list(p.Scripts.Accounts, itself))
}

// scriptLine is the setting with accounts added.
func (p *Policy) scriptLine(add []string) string {
	quote := func(s string) string { return strconv.Quote(s) }
	line := setScripts + ": {" + scriptsAccounts + ": [" + list(append(slices.Clone(p.Scripts.Accounts), add...), quote) + "]"
	if n := p.Scripts.MaxSize; n != defaultScriptSize && n != 0 {
		line += ", " + scriptsMaxSize + ": " + strconv.FormatInt(n, 10)
	}
	if n := p.Scripts.MaxSeconds; n != defaultScriptSeconds && n != 0 {
		line += ", " + scriptsMaxTime + ": " + strconv.FormatInt(n, 10)
	}
	return line + "}"
}

// scripts reads the setting scripts.
func (d *decoder) scripts(n *yamldoc.Node) ScriptRules {
	rules := ScriptRules{MaxSize: defaultScriptSize, MaxSeconds: defaultScriptSeconds}
	if n.Kind != yamldoc.Mapping {
		d.fault(n, "%s must be a mapping with %s, %s and %s, is %s", n.Key, scriptsAccounts, scriptsMaxSize, scriptsMaxTime,
			n.Kind)
		return rules
	}

	number := func(kid *yamldoc.Node, most int64) int64 {
		v, ok := kid.Int()
		if !ok || v < 1 || int64(v) > most {
			d.fault(kid, "%s must be a whole number from 1 to %d", kid.Key, most)
		}
		return int64(v)
	}
	for i := range n.Kids {
		switch kid := &n.Kids[i]; kid.Key {
		case scriptsAccounts:
			rules.Accounts = entries(d, kid, d.user)
		case scriptsMaxSize:
			rules.MaxSize = number(kid, gozzard.MaxScriptBytes)
		case scriptsMaxTime:
			rules.MaxSeconds = number(kid, gozzard.MaxScriptSeconds)
		default:
			d.fault(kid, "%q is not a setting of %s; they are %s, %s and %s", kid.Key, n.Key, scriptsAccounts,
				scriptsMaxSize, scriptsMaxTime)
		}
	}

	if len(rules.Accounts) == 0 {
		d.fault(n, "%s needs %s: the accounts that scripts may run as", n.Key, scriptsAccounts)
	}
	return rules
}
