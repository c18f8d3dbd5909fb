package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
)

// FileName is the name of the policy file, in /etc/gozzard or in an agent's state folder.
const FileName = "policy.yaml"

// File is a policy that follows its file. A change takes effect with the next operation. If the file cannot be read,
// or if others can write it, the last valid policy stays in effect and the log says so. So a typing error neither
// opens a host nor stops it. At the start of the agent, such a file is an error.
type File struct {
	path  string
	trust Trust
	log   *slog.Logger

	mu    sync.Mutex
	seen  fs.FileInfo // of the file that was read last; nil if it could not be examined
	now   *Policy     // the policy in effect
	fault error       // why the file is not the policy in effect; nil: it is
}

// Open reads a policy file and follows its changes. It rejects a file that others than trust allows can change, both
// now and later.
func Open(path string, trust Trust, log *slog.Logger) (*File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot find the policy: %w", err)
	}

	p, fi, err := load(path, trust)
	if err != nil {
		return nil, err
	}
	return &File{path: path, trust: trust, log: log, seen: fi, now: p}, nil
}

// Path is the path of the policy file.
func (f *File) Path() string { return f.path }

// Action is Policy.Action of the current policy.
func (f *File) Action(a gozzard.Action) error { return f.Current().Action(a) }

// Processes is Policy.Processes of the current policy.
func (f *File) Processes(n int) error { return f.Current().Processes(n) }

// Definition is Policy.Definition of the current policy.
func (f *File) Definition(namespace string, s *gozzard.Spec) error {
	return f.Current().Definition(namespace, s)
}

// Folder is Policy.Folder of the current policy.
func (f *File) Folder(user, real string) error { return f.Current().Folder(user, real) }

// Plain is Policy.Plain of the current policy.
func (f *File) Plain(command string) (words []string, held bool, err error) {
	return f.Current().Plain(command)
}

// Program is Policy.Program of the current policy.
func (f *File) Program(user, command, file string, interpreter bool) error {
	return f.Current().Program(user, command, file, interpreter)
}

// Variable is Policy.Variable of the current policy.
func (f *File) Variable(name string) error { return f.Current().Variable(name) }

// Names is Policy.Names of the current policy.
func (f *File) Names(account string) bool { return f.Current().Names(account) }

// Current returns the policy that is in effect. It reads the file again if it has changed.
func (f *File) Current() *Policy {
	f.mu.Lock()
	defer f.mu.Unlock()

	// Find out whether the file has changed.
	fi, err := os.Stat(f.path)
	if err != nil {
		if f.seen != nil {
			f.log.Error("cannot examine the policy file, the last valid policy stays in effect",
				"file", f.path, "err", err)
		}
		f.seen, f.fault = nil, err
		return f.now
	}
	if f.seen != nil && same(fi, f.seen) {
		return f.now
	}

	// Read it again.
	p, read, err := load(f.path, f.trust)
	if err != nil {
		f.seen, f.fault = fi, err
		f.log.Error("policy file is invalid, the last valid policy stays in effect", "file", f.path, "err", err)
		return f.now
	}

	f.seen, f.now, f.fault = read, p, nil
	f.log.Info("policy has changed", "file", f.path, "policy", p.String())
	return p
}

// Fault is why the file is not the policy in effect, or nil.
func (f *File) Fault() error {
	f.Current()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fault
}

// same reports whether two looks at a file saw the same version of it.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}

// Load reads a policy file once. It rejects a file if others than trust allows can write it or a folder of its path.
func Load(path string, trust Trust) (*Policy, error) {
	p, _, err := load(path, trust)
	return p, err
}

func load(path string, trust Trust) (*Policy, fs.FileInfo, error) {
	// Check which accounts can change it.
	real, err := trust.resolve(path)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the policy: %w", err)
	}

	// Open it.
	f, err := os.Open(real)
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil, fmt.Errorf("cannot read the policy: %w. The account of the agent must be able to read it; as root, "+
			"run: chmod 0644 %s", err, real)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the policy: %w", err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the policy: %w", err)
	}
	if !fi.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("policy %s is not a regular file", path)
	}

	// Read it.
	src, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the policy: %w", err)
	}
	p, err := Parse(path, src)
	return p, fi, err
}

// Choice is what a person chooses when a host is set up.
type Choice struct {
	AllowRoot bool
	Default   string   // the account of definitions that name none; it is allowed like those of Users
	Users     []string // further accounts that may be used; each must exist
	Paths     []string // further folders that processes may be in; absolute
	Files     []string // folders below which the server may write and read files; absolute
	Own       string   // the account of the agent, if it is not root
	OwnUID    int

	// Texts are the policy in the languages of people, made from the English one: only comments differ. The first is
	// written; a text in any of them was not changed by a person. None: English.
	Texts []func(english string) string
}

// Check rejects a choice that cannot work on this host.
func (c Choice) Check() error {
	if err := c.checkDefault(); err != nil {
		return err
	}
	for _, name := range c.Users {
		acct, err := lookup(name)
		switch {
		case err != nil:
			return fmt.Errorf("--allow-user %s: %w", shown(name), err)
		case acct.root:
			return fmt.Errorf("--allow-user %s: for commands of root use --allow-root", shown(name))
		case acct.found == nil:
			return fmt.Errorf("--allow-user %s: this host has no such account: make it first", shown(name))
		}
	}
	for _, path := range c.Paths {
		if !isFolder(path) {
			return fmt.Errorf("--allow-path %s: use an absolute path without .. and without a slash at its end",
				quoted(path))
		}
	}
	for _, path := range c.Files {
		if !isFolder(path) {
			return fmt.Errorf("--allow-files %s: use an absolute path without .. and without a slash at its end",
				quoted(path))
		}
	}
	return nil
}

// isFolder reports whether a path can be one of a policy.
func isFolder(path string) bool { return filepath.IsAbs(path) && filepath.Clean(path) == path }

// Missing is the lines that a policy needs for a choice, none if it allows everything that was chosen.
func (c Choice) Missing(p *Policy) []string {
	var all []error
	if c.AllowRoot && !p.AllowRoot {
		all = append(all, allowedBy(p.reject(setAllowRoot, "account root"), "true"))
	}
	for _, name := range c.allUsers() {
		_, err := p.account(name)
		all = append(all, err)
	}
	if c.Default != "" && p.DefaultUser != c.Default {
		all = append(all, allowedBy(p.reject(setDefaultUser, "account %s as the default one", shown(c.Default)), c.Default))
	}
	for _, path := range c.Paths {
		if !p.inPrefixes(path) {
			all = append(all, allowedBy(p.reject(setPathPrefixes, "folder %s", quoted(path)), path))
		}
	}
	for _, path := range c.Files {
		if !slices.ContainsFunc(p.Files.Paths, func(folder string) bool { return path == folder || below(path, folder) }) {
			all = append(all, allowedBy(p.reject(setFiles, "files below %s", quoted(path)), path))
		}
	}

	var r *rejection
	if errors.As(together(all...), &r) {
		return r.lines(func(reason) bool { return false })
	}
	return nil
}

// Create writes the first policy of a host. One that exists is left as it is, whatever was chosen: made says which.
func Create(path string, c Choice) (made bool, err error) {
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	}

	switch err := atomicfile.Create(path, []byte(c.written())); {
	case errors.Is(err, fs.ErrExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot write the policy of this host: %w", err)
	}

	return true, nil
}

// text is the content of the first policy file.
func (c Choice) text() string {
	p := Default()
	deny := "1-999"
	if c.Own != "" && c.OwnUID != 0 {
		p.Users = append(p.Users, c.Own)
		if c.OwnUID > 0 && c.OwnUID <= 999 {
			deny = ""
			p.DenyUIDs = nil
		}
	}
	for _, name := range c.allUsers() {
		if !slices.Contains(p.Users, name) {
			p.Users = append(p.Users, name)
		}
		if acct, err := lookup(name); err == nil && acct.hasID {
			p.DenyUIDs = without(p.DenyUIDs, acct.uid)
			deny = rangesText(p.DenyUIDs)
		}
	}
	for _, path := range c.Paths {
		if !slices.Contains(p.PathPrefixes, path) {
			p.PathPrefixes = append(p.PathPrefixes, path)
		}
	}

	quote := func(s string) string { return strconv.Quote(s) }
	var b strings.Builder
	fmt.Fprintf(&b, `# What the server may do on this host. The server cannot change this file.
# A change of this file takes effect with the next operation.
allow_root: %v  # commands may run as root
%s  # the account of definitions that name none; without it they do not run
users: [%s]  # other accounts: a name, @group for the members of a group, "*" for all accounts
deny_uids: %q  # accounts that are rejected even if users lists them
path_prefixes: [%s]  # setup_path must be in one of these folders; symbolic links are resolved first
trusted_paths: true  # what runs as root must be in folders that only root can write
shell: true  # commands run in a shell; with false, only a program in path_prefixes and plain arguments are allowed
ops: [%s]  # the operations that the server may ask for
max_processes: %d  # the largest number of processes on this host
# programs: [/opt/app/bin/*]  # with shell: false, the only programs that may be executed
# env: [PYTHONPATH]           # with shell: false, variables of loaders and interpreters that definitions may set
# namespaces: {"shop*": [shop]}  # which accounts the processes of a namespace may use
`, c.AllowRoot, c.defaultLine(), list(p.Users, quote), deny, list(p.PathPrefixes, quote),
		list(p.Ops, gozzard.Action.String), p.MaxProcesses)
	if len(c.Files) > 0 {
		b.WriteString(p.fileLine(c.Files) + "\n")
	}
	return b.String()
}
