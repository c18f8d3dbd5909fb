package policy

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
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
	setNamespaces   = "namespaces"
	setPrograms     = "programs"
	setEnv          = "env"
	setReleaseKey   = "release_key"
	setDowngrade    = "allow_downgrade"
	setDefaultUser  = "default_user"
	setFiles        = "files"
	setScripts      = "scripts"
	setAgentRestart = "agent_restart"
)

// Limits of a policy.
const (
	defaultProcesses = 2000
	maxProcesses     = 1_000_000
	maxListed        = 1024 // entries of one list
	maxPattern       = 64   // characters of a pattern of namespaces
)

// anyone stands in users for every account that the other settings do not reject.
const anyone = "*"

// Policy is what is allowed on a host. The zero value allows nothing. A policy that is in use is not changed.
type Policy struct {
	AllowRoot    bool
	DefaultUser  string   // the account of definitions that name none; "" means that these do not run
	Users        []string // names of accounts, "@group" for the members of a group, "*" for all
	DenyUIDs     []UIDRange
	PathPrefixes []string // clean and absolute
	TrustedPaths bool     // what runs as root must be in folders that only root can write
	Shell        bool
	Ops          []gozzard.Action
	MaxProcesses int
	Namespaces   []NamespaceRule // in the order of the file; nil: every namespace may use every account
	Programs     []string        // patterns of the only programs that may be executed; nil: there is no list
	Files        FileRules       // which files the server may write and read
	Scripts      ScriptRules     // which scripts the server may run
	Env          []string        // variables that definitions may set although they are loaders; a final * is any rest

	AgentRestart bool // the server may restart the agent

	// The agent's program may be replaced by releases that are signed with this key. An older release needs
	// AllowDowngrade.
	ReleaseKey     string // a file; "" means release.pub in the state folder
	AllowDowngrade bool

	ownFleet bool   // made by Everything: a definition without an account means the agent's account
	file     string // the file that it was read from, for the messages of rejections
	cache    *accountCache
}

// UIDRange is First to Last, both included.
type UIDRange struct{ First, Last uint32 }

// controlled are the actions that the setting ops can name. Registering, updating and unregistering a definition run
// nothing, so they are not in the list; the definition itself is checked.
var controlled = []gozzard.Action{
	gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionRestart, gozzard.ActionReload, gozzard.ActionKill,
	gozzard.ActionQuery, gozzard.ActionHost, gozzard.ActionUnhost,
}

// Default is the policy of a host where the owner has chosen nothing.
func Default() *Policy {
	return &Policy{
		Users: []string{"@gozzard"}, DenyUIDs: []UIDRange{{1, 999}}, PathPrefixes: defaultPrefixes(),
		TrustedPaths: true, Shell: true,
		Ops: slices.Clone(controlled), MaxProcesses: defaultProcesses, AgentRestart: true, file: "no file", cache: &accountCache{},
	}
}

// Everything allows whatever the agent's own account may do. `gozzard dev` uses it.
func Everything() *Policy {
	return &Policy{
		AllowRoot: true, Users: []string{anyone}, PathPrefixes: []string{rootFolder()}, Shell: true,
		Ops: slices.Clone(controlled), MaxProcesses: maxProcesses, AgentRestart: true,
		Files: FileRules{Paths: []string{rootFolder()}, Owners: []string{anyone, "root"}, MaxSize: gozzard.MaxFileBytes},
		Scripts: ScriptRules{Accounts: []string{anyone, "root"}, MaxSize: gozzard.MaxScriptBytes,
			MaxSeconds: gozzard.MaxScriptSeconds},
		ownFleet: true, file: "no file", cache: &accountCache{},
	}
}

// Permissive is Everything as a file, for tests and measurements.
const Permissive = `allow_root: true
default_user: root
users: ["*"]
deny_uids: ""
path_prefixes: ["/"]
trusted_paths: false
max_processes: 1000000
files: {paths: ["/"], owners: ["*", root], max_size: 16777216}
scripts: {accounts: ["*", root], max_size: 262144, max_seconds: 86400}
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

// Action checks an action, independent of the process.
func (p *Policy) Action(a gozzard.Action) error {
	if slices.Contains(controlled, a) && !slices.Contains(p.Ops, a) {
		return allowedBy(p.reject(setOps, "operation %s", a), a.String())
	}
	if a.OnAgent() && !p.AgentRestart {
		return allowedBy(p.reject(setAgentRestart, "operation %s", a), "true")
	}
	return nil
}

// Processes checks the number of processes on the host.
func (p *Policy) Processes(n int) error {
	if n > p.MaxProcesses {
		return allowedBy(p.reject(setMaxProcesses, "process number %d", n), strconv.Itoa(n))
	}
	return nil
}

// Definition checks a definition of a namespace: its account, its folder and all its commands. All commands are checked,
// because some run without a request. The error has every reason.
func (p *Policy) Definition(namespace string, s *gozzard.Spec) error {
	name := s.Identity.User
	if name == "" && hasModes && !p.ownFleet { // Reach has replaced it; this is for rules without a Reach
		if name = p.DefaultUser; name == "" {
			return p.Unnamed()
		}
	}

	acct, rejected := p.account(name)
	if rejected != nil {
		// What only root can see is not shown to a caller that may not use root.
		acct.root = false
	}
	return together(rejected, p.namespace(namespace, acct), p.folder(acct, s.Identity.SetupPath), p.setup(acct, s),
		p.commands(acct, s))
}

// Folder checks the folder in which a command of an account is about to run, by its real path. A link in the path may
// have changed since Definition was called.
func (p *Policy) Folder(user, real string) error {
	acct, err := p.account(user)
	if err != nil {
		return err
	}
	return p.folder(acct, real)
}

// Names reports whether users lists the account by its name, and not only by a group or by "*".
func (p *Policy) Names(account string) bool { return p.ownFleet || slices.Contains(p.Users, account) }

// String describes the policy in one line.
func (p *Policy) String() string {
	root := "root refused"
	if p.AllowRoot {
		root = "root allowed"
	}

	if p.DefaultUser != "" {
		root = fmt.Sprintf("%s; %s if a definition names no account", root, shown(p.DefaultUser))
	}

	shell := "commands without shell only"
	switch {
	case p.Shell:
		shell = "shell commands"
	case p.Programs != nil:
		shell = "commands without shell only, programs: " + list(p.Programs, quoted)
	}

	ops := "all operations"
	if len(p.Ops) < len(controlled) {
		ops = "operations " + list(p.Ops, gozzard.Action.String)
	}

	restart := ""
	if !p.AgentRestart {
		restart = "; the server may not restart the agent"
	}

	return fmt.Sprintf("%s; other accounts: %s; folders: %s; %s; %s; at most %d processes%s%s%s%s",
		root, list(p.Users, itself), list(p.PathPrefixes, itself), ops, shell, p.MaxProcesses, p.namespaceText(), p.fileText(),
		p.scriptText(), restart)
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
