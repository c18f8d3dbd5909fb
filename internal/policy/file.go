package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
)

// FileName is what a policy is called in an agent's state folder.
const FileName = "policy.yaml"

// File is a policy that follows its file: a change counts from the next operation on. While the file cannot be
// read, or others can write it, the last policy that could stays in force, so that a slip of the pen neither opens
// a host nor stops it; the log says so. At the start it is an error.
type File struct {
	path  string
	trust Trust
	log   *slog.Logger

	mu   sync.Mutex
	seen fs.FileInfo // nil: could not be looked at
	now  *Policy
}

// Open reads a policy file and keeps following it. It is refused, then and later, when others can change it than
// are trusted.
func Open(path string, trust Trust, log *slog.Logger) (*File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot find policy: %w", err)
	}
	p, fi, err := load(path, trust)
	if err != nil {
		return nil, err
	}
	return &File{path: path, trust: trust, log: log, seen: fi, now: p}, nil
}

// Path is where the policy is written.
func (f *File) Path() string { return f.path }

// Action judges what is asked for.
func (f *File) Action(a gozzard.Action) error { return f.Current().Action(a) }

// Processes judges how many processes are kept.
func (f *File) Processes(n int) error { return f.Current().Processes(n) }

// Definition judges a process as it is defined.
func (f *File) Definition(s *gozzard.Spec) error { return f.Current().Definition(s) }

// Folder judges the folder in which a command of an account is about to run.
func (f *File) Folder(user, real string) error { return f.Current().Folder(user, real) }

// Names reports whether an account is listed by its name.
func (f *File) Names(account string) bool { return f.Current().Names(account) }

// Current is the policy in force.
func (f *File) Current() *Policy {
	f.mu.Lock()
	defer f.mu.Unlock()
	fi, err := os.Stat(f.path)
	if err != nil {
		if f.seen != nil {
			f.log.Error("policy file cannot be looked at, the last one stays in force", "file", f.path, "err", err)
		}
		f.seen = nil
		return f.now
	}

	if f.seen != nil && same(fi, f.seen) {
		return f.now
	}

	p, read, err := load(f.path, f.trust)
	if err != nil {
		f.seen = fi
		f.log.Error("policy file is not good, the last one stays in force", "file", f.path, "err", err)
		return f.now
	}

	f.seen, f.now = read, p
	f.log.Info("policy was read anew", "file", f.path, "policy", p.String())
	return p
}

func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}

// Load reads a policy file once. It is refused when others than are trusted can write it or a folder that leads to it.
func Load(path string, trust Trust) (*Policy, error) {
	p, _, err := load(path, trust)
	return p, err
}

func load(path string, trust Trust) (*Policy, fs.FileInfo, error) {
	real, err := trust.follow(path)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read policy: %w", err)
	}

	f, err := os.Open(real)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read policy: %w", err)
	}

	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read policy: %w", err)
	}
	if !fi.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("policy %s is not a regular file", path)
	}

	src, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read policy: %w", err)
	}

	p, err := Parse(path, src)
	return p, fi, err
}

// Choice is what somebody says when a host is set up.
type Choice struct {
	AllowRoot bool
	Own       string // account of the agent, when it is not root
	OwnUID    int
}

// Create writes the first policy of a host. One that exists is left as it is, whatever was chosen: made says which.
func Create(path string, c Choice) (made bool, err error) {
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	}

	switch err := atomicfile.Create(path, []byte(c.text())); {
	case errors.Is(err, fs.ErrExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot write the policy of this host: %w", err)
	}

	return true, nil
}

// text is the policy as people find it.
func (c Choice) text() string {
	p := Default()
	deny := "1-999"

	if c.Own != "" && c.OwnUID != 0 {
		p.Users = append(p.Users, c.Own)
		if c.OwnUID > 0 && c.OwnUID <= 999 {
			deny = ""
		}
	}

	quote := func(s string) string { return strconv.Quote(s) }
	var b strings.Builder
	fmt.Fprintf(&b, `# What the server may have done on this host. It cannot change this file; a change counts from the next operation on.
allow_root: %v  # commands of the account root, which is the account when a definition names none
users: [%s]  # other accounts, groups behind @ for their members, or "*" for all
deny_uids: %q  # accounts that stay refused all the same
path_prefixes: [%s]  # where setup_path may lie, after following links
trusted_paths: true  # what runs as root must lie where only root may write
shell: true  # commands are the text of a shell; false: a program by its path and plain arguments only
ops: [%s]
max_processes: %d
`, c.AllowRoot, list(p.Users, quote), deny, list(p.PathPrefixes, quote), list(p.Ops, gozzard.Action.String), p.MaxProcesses)
	return b.String()
}
