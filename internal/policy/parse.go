package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/yamldoc"
)

// MaxSize is the largest size of a policy file in bytes.
const MaxSize = 64 << 10

// Parse reads a policy. A setting that is not in the file has the value of Default. Everything that cannot be
// understood is reported with its line, all at once, and makes the whole policy an error: a policy that is guessed
// protects nothing. file is the name of the policy in rejections.
func Parse(file string, src []byte) (*Policy, error) {
	// Read the YAML.
	if len(src) > MaxSize {
		return nil, fmt.Errorf("policy %s has %d bytes, at most %d are allowed", file, len(src), MaxSize)
	}
	root, err := yamldoc.Parse(src)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", file, err)
	}

	// Apply the settings to the defaults.
	d := decoder{p: Default()}
	d.p.file = file
	switch root.Kind {
	case yamldoc.Null: // the file has only comments
	case yamldoc.Mapping:
		for i := range root.Kids {
			d.setting(&root.Kids[i])
		}
	default:
		d.fault(root, "the policy must be a mapping, is %s", root.Kind)
	}

	d.checkPrograms()

	if len(d.faults) > 0 {
		return nil, fmt.Errorf("policy %s: %w", file, errors.Join(d.faults...))
	}
	return d.p, nil
}

// decoder fills a policy and collects the errors.
type decoder struct {
	p        *Policy
	programs *yamldoc.Node // the setting programs, if the file has it
	faults   []error
}

func (d *decoder) fault(n *yamldoc.Node, format string, args ...any) {
	d.faults = append(d.faults, fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, args...)))
}

func (d *decoder) setting(n *yamldoc.Node) {
	switch n.Key {
	case setAllowRoot:
		d.boolean(n, &d.p.AllowRoot)
	case setTrustedPaths:
		d.boolean(n, &d.p.TrustedPaths)
	case setShell:
		d.boolean(n, &d.p.Shell)
	case setAgentRestart:
		d.boolean(n, &d.p.AgentRestart)
	case setDowngrade:
		d.boolean(n, &d.p.AllowDowngrade)
	case setReleaseKey:
		d.p.ReleaseKey = d.file(n)
	case setDefaultUser:
		d.p.DefaultUser = d.account(n)
	case setUsers:
		d.p.Users = entries(d, n, d.user)
	case setPathPrefixes:
		d.p.PathPrefixes = entries(d, n, d.prefix)
	case setOps:
		d.p.Ops = entries(d, n, d.op)
	case setDenyUIDs:
		d.p.DenyUIDs = d.ranges(n)
	case setMaxProcesses:
		i, ok := n.Int()
		if !ok || i < 0 || i > maxProcesses {
			d.fault(n, "%s must be a whole number up to %d", n.Key, maxProcesses)
		}
		d.p.MaxProcesses = i
	case setNamespaces:
		d.p.Namespaces = d.namespaces(n)
	case setPrograms:
		d.p.Programs = entries(d, n, d.program)
		d.programs = n
	case setEnv:
		d.p.Env = entries(d, n, d.variable)
	case setFiles:
		d.p.Files = d.files(n)
	case setScripts:
		d.p.Scripts = d.scripts(n)
	default:
		d.fault(n, "%q is not a setting; the settings are %s", n.Key,
			strings.Join([]string{setAllowRoot, setDefaultUser, setUsers, setDenyUIDs, setPathPrefixes,
				setTrustedPaths, setShell, setOps, setMaxProcesses, setNamespaces, setPrograms, setEnv, setFiles,
				setScripts, setAgentRestart, setReleaseKey, setDowngrade}, ", "))
	}
}

func (d *decoder) boolean(n *yamldoc.Node, to *bool) {
	v, ok := n.Bool()
	if !ok {
		d.fault(n, "%s must be true or false", n.Key)
	}
	*to = v
}

// entries reads a list. A setting without a value is an error, because something was probably forgotten.
func entries[T any](d *decoder, n *yamldoc.Node, read func(key string, n *yamldoc.Node) T) []T {
	if n.Kind != yamldoc.List {
		d.fault(n, "%s must be a list, is %s; [] is an empty list", n.Key, n.Kind)
		return nil
	}
	if len(n.Kids) > maxListed {
		d.fault(n, "%s has %d entries, at most %d are allowed", n.Key, len(n.Kids), maxListed)
		return nil
	}

	all := make([]T, len(n.Kids))
	for i := range n.Kids {
		all[i] = read(n.Key, &n.Kids[i])
	}

	return all
}

func text(n *yamldoc.Node) (string, bool) {
	_, truth := n.Bool()
	ok := n.Kind == yamldoc.Quoted || n.Kind == yamldoc.Plain && !truth
	return strings.Clone(n.Text), ok && n.Text != ""
}

func (d *decoder) user(key string, n *yamldoc.Node) string {
	name, ok := text(n)
	bare := strings.TrimPrefix(name, "@")
	if !ok || bare == "" || bare == anyone && bare != name || strings.ContainsAny(bare, " \t:@,/") {
		d.fault(n, "%s must be accounts, groups with @ before the name, or * for all accounts", key)
	}
	return name
}

// account reads the name of one account.
func (d *decoder) account(n *yamldoc.Node) string {
	name, ok := text(n)
	if !ok || name == anyone || strings.ContainsAny(name, " \t:@,/") || shown(name) != name {
		d.fault(n, "%s must be the name of one account, such as www-data", n.Key)
		return ""
	}
	return name
}

func (d *decoder) prefix(key string, n *yamldoc.Node) string {
	path, ok := text(n)
	if !ok || !filepath.IsAbs(path) || filepath.Clean(path) != strings.TrimSuffix(path, string(filepath.Separator)) &&
		filepath.Clean(path) != path {
		d.fault(n, "%s must be clean absolute paths of folders", key)
		return ""
	}
	return filepath.Clean(path)
}

func (d *decoder) file(n *yamldoc.Node) string {
	path, ok := text(n)
	if !ok || !filepath.IsAbs(path) || filepath.Clean(path) != path {
		d.fault(n, "%s must be the clean absolute path of a file", n.Key)
		return ""
	}
	return path
}

// namespaces reads patterns of namespaces, each with the accounts that it allows.
func (d *decoder) namespaces(n *yamldoc.Node) []NamespaceRule {
	if n.Kind != yamldoc.Mapping {
		d.fault(n, "%s must be a mapping from patterns of namespaces to lists of accounts, is %s", n.Key, n.Kind)
		return nil
	}
	if len(n.Kids) > maxListed {
		d.fault(n, "%s has %d patterns, at most %d are allowed", n.Key, len(n.Kids), maxListed)
		return nil
	}

	all := make([]NamespaceRule, len(n.Kids))
	for i := range n.Kids {
		kid := &n.Kids[i]
		if kid.Key == "" || len(kid.Key) > maxPattern || strings.Contains(kid.Key, "**") || shown(kid.Key) != kid.Key {
			d.fault(kid, "%s has a pattern that is empty, longer than %d characters, or has blanks, quotes, ** or "+
				"characters other than ASCII", n.Key, maxPattern)
		}
		all[i] = NamespaceRule{Pattern: strings.Clone(kid.Key), Users: entries(d, kid, d.user)}
	}
	return all
}

// program reads a pattern of programs.
func (d *decoder) program(key string, n *yamldoc.Node) string {
	path, ok := text(n)
	_, err := filepath.Match(path, "")
	if !ok || err != nil || !filepath.IsAbs(path) || filepath.Clean(path) != path || path == rootFolder() {
		d.fault(n, "%s must be clean absolute paths of programs; * and ? stand for a part of one name", key)
	}
	return path
}

// variable reads the name of a variable, which may end in *.
func (d *decoder) variable(key string, n *yamldoc.Node) string {
	name, ok := text(n)
	bare := strings.TrimSuffix(name, "*")
	if !ok || bare == "" || strings.Trim(bare, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") != "" {
		d.fault(n, "%s must be names of variables; a final * stands for any rest", key)
	}
	return name
}

// checkPrograms rejects a list of programs that cannot be enforced.
func (d *decoder) checkPrograms() {
	switch {
	case d.programs == nil:
	case d.p.Shell:
		d.fault(d.programs, "%s needs shell: false, because the text of a shell can execute every program", setPrograms)
	case runtime.GOOS != "linux":
		d.fault(d.programs, "%s can be enforced on Linux only", setPrograms)
	}
}

func (d *decoder) op(key string, n *yamldoc.Node) gozzard.Action {
	name, _ := text(n)
	a, err := gozzard.ParseAction(name)
	if err != nil || !slices.Contains(controlled, a) {
		d.fault(n, "%s can have %s", key, list(controlled, gozzard.Action.String))
	}
	return a
}

// ranges reads "1-999, 65534".
func (d *decoder) ranges(n *yamldoc.Node) (all []UIDRange) {
	if n.Kind != yamldoc.Plain && n.Kind != yamldoc.Quoted {
		d.fault(n, `%s must be a text such as "1-999, 65534"; "" denies none`, n.Key)
		return nil
	}

	if strings.TrimSpace(n.Text) == "" {
		return nil
	}

	for part := range strings.SplitSeq(n.Text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		f, err1 := strconv.ParseUint(first, 10, 32)
		l, err2 := strconv.ParseUint(last, 10, 32)
		if err1 != nil || err2 != nil || f > l || len(all) == maxListed {
			d.fault(n, `%s must be a text such as "1-999, 65534"; "" denies none`, n.Key)
			return nil
		}
		all = append(all, UIDRange{uint32(f), uint32(l)})
	}

	return all
}
