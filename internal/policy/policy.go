package policy

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
)

// The settings, as the file names them.
const (
	setAllowRoot    = "allow_root"
	setUsers        = "users"
	setDenyUIDs     = "deny_uids"
	setPathPrefixes = "path_prefixes"
	setTrustedPaths = "trusted_paths"
	setShell        = "shell"
	setOps          = "ops"
	setMaxProcesses = "max_processes"
	setReleaseKey   = "release_key"
	setDowngrade    = "allow_downgrade"
)

// Bounds of a policy.
const (
	defaultProcesses = 2000
	maxProcesses     = 1_000_000
	maxListed        = 1024 // entries of one list
)

// anyone in users is every account that the rest of the policy does not refuse.
const anyone = "*"

// Policy is what may be done on a host. The zero value allows nothing. It is not changed once it is in force.
type Policy struct {
	AllowRoot    bool
	Users        []string // names of accounts, "@group" for the members of a group, "*" for all
	DenyUIDs     []UIDRange
	PathPrefixes []string // clean and absolute
	TrustedPaths bool     // what runs as root must lie where only root may write
	Shell        bool
	Ops          []gozzard.Action
	MaxProcesses int

	// What the agent's own program may be replaced by: releases of this key, and none that is older unless the
	// owner says so.
	ReleaseKey     string // file; "": release.pub in the state folder
	AllowDowngrade bool

	ownFleet bool   // of somebody who runs a fleet for himself: no account is his own
	file     string // that it was read from, for refusals
	book     *book
}

// UIDRange is First to Last, both included.
type UIDRange struct{ First, Last uint32 }

// judged are the actions that the setting ops can name. To register, change and forget a definition runs nothing:
// the definition itself is judged.
var judged = []gozzard.Action{
	gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionRestart, gozzard.ActionReload, gozzard.ActionKill,
	gozzard.ActionQuery, gozzard.ActionHost,
	gozzard.ActionUnhost,
}

// Default is the policy of a host whose owner chose nothing.
func Default() *Policy {
	return &Policy{
		Users: []string{"@gozzard"}, DenyUIDs: []UIDRange{{1, 999}}, PathPrefixes: defaultPrefixes(),
		TrustedPaths: true, Shell: true,
		Ops: slices.Clone(judged), MaxProcesses: defaultProcesses, file: "no file", book: &book{},
	}
}

// Everything is the policy of a fleet that somebody runs for himself, as `gozzard dev` does: he may do all that the
// account may that he does it with.
func Everything() *Policy {
	return &Policy{
		AllowRoot: true, Users: []string{anyone}, PathPrefixes: []string{rootFolder()}, Shell: true,
		Ops: slices.Clone(judged), MaxProcesses: maxProcesses,
		ownFleet: true, file: "no file", book: &book{},
	}
}

// Permissive is Everything as a file, for tests and measurements.
const Permissive = `allow_root: true
users: ["*"]
deny_uids: ""
path_prefixes: ["/"]
trusted_paths: false
max_processes: 1000000
`

func defaultPrefixes() []string {
	if runtime.GOOS == "windows" {
		return []string{`C:\`, `D:\`}
	}
	return []string{"/opt", "/srv", "/data", "/usr/local", "/home"}
}

func rootFolder() string {
	if runtime.GOOS == "windows" {
		return filepath.VolumeName(`C:\`) + `\`
	}
	return "/"
}

// Action judges what is asked for, whatever it is asked for.
func (p *Policy) Action(a gozzard.Action) error {
	if slices.Contains(judged, a) && !slices.Contains(p.Ops, a) {
		return p.refuse(setOps, "operation %s", a)
	}
	return nil
}

// Processes judges how many processes are kept on the host.
func (p *Policy) Processes(n int) error {
	if n > p.MaxProcesses {
		return p.refuse(setMaxProcesses, "process number %d", n)
	}
	return nil
}

// Definition judges a process as it is defined: its account, its folder and its commands, all of them, since some
// are run without being asked for.
func (p *Policy) Definition(s *gozzard.Spec) error {
	who, err := p.account(s.Identity.User)
	if err != nil {
		return err
	}
	if err := p.folder(who, s.Identity.SetupPath); err != nil {
		return err
	}
	return p.commands(who, s)
}

// Folder judges the folder in which a command of an account is about to run, by its real path: between the look of
// Definition and this one a link on the way may have become another.
func (p *Policy) Folder(user, real string) error {
	who, err := p.account(user)
	if err != nil {
		return err
	}
	return p.folder(who, real)
}

// Names reports whether an account is listed by its name, which says more than to be one of a group or of all.
func (p *Policy) Names(account string) bool { return p.ownFleet || slices.Contains(p.Users, account) }

// String says in one line what is allowed.
func (p *Policy) String() string {
	root, shell := "root refused", "commands without shell only"

	if p.AllowRoot {
		root = "root allowed"
	}
	if p.Shell {
		shell = "shell commands"
	}

	ops := "all operations"

	if len(p.Ops) < len(judged) {
		ops = "operations " + list(p.Ops, gozzard.Action.String)
	}

	return fmt.Sprintf("%s; other accounts: %s; folders: %s; %s; %s; at most %d processes", root,
		list(p.Users, itself), list(p.PathPrefixes, itself), ops,
		shell, p.MaxProcesses)
}

func itself(s string) string { return s }

func list[T any](all []T, name func(T) string) string {
	if len(all) == 0 {
		return "none"
	}
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = name(v)
	}
	return strings.Join(names, ", ")
}

// refuse words a refusal.
func (p *Policy) refuse(setting, format string, args ...any) error {
	return p.refuseFor(setting, "", format, args...)
}

// refuseFor words a refusal that has a reason beside its setting.
func (p *Policy) refuseFor(setting, why, format string, args ...any) error {
	if why != "" {
		why = ": " + why
	}
	return fmt.Errorf("permission: %s is not allowed by local policy (%s in %s)%s", fmt.Sprintf(format, args...),
		setting, p.file, why)
}
