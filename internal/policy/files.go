package policy

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/yamldoc"
)

// Keys of the setting files.
const (
	filesPaths   = "paths"
	filesOwners  = "owners"
	filesMaxSize = "max_size"
)

// defaultFileSize is the largest file that a policy allows when it does not say.
const defaultFileSize = 1 << 20

// FileRules say which files the server may write and read on the host. The zero value allows none.
type FileRules struct {
	Paths   []string // folders, clean and absolute: files below them are allowed
	Owners  []string // as in users of the policy; root only if it is named; nil: every account of users
	MaxSize int64    // of one file, in bytes
}

// File checks whether a file of an account may be written or read for a namespace. The agent opens the folder of the path
// without following links, so the path is the real one.
func (p *Policy) File(namespace, account, file string, size int64) error {
	acct, rejected := p.account(account)
	return together(inFile(rejected), p.namespace(namespace, acct), p.fileOwner(acct), p.filePath(file), p.fileSize(size))
}

// File is Policy.File of the current policy.
func (f *File) File(namespace, account, file string, size int64) error {
	return f.Current().File(namespace, account, file, size)
}

// File checks a file. An agent without the powers of root can act for few accounts or only for one.
func (r *Reach) File(namespace, account, file string, size int64) error {
	named, err := r.reachable(&gozzard.Spec{Identity: gozzard.Identity{User: account}})
	if err != nil {
		return err
	}
	return r.Rules.File(namespace, named.Identity.User, file, size)
}

func (p *Policy) filePath(file string) error {
	if err := gozzard.ValidateFilePath(file); err != nil {
		return p.rejectBecause(setFiles, err.Error(), "file %s", quoted(file))
	}
	if slices.ContainsFunc(p.Files.Paths, func(folder string) bool { return below(file, folder) }) {
		return nil
	}
	folder := path.Dir(file)
	if isTopFolder(folder) {
		return p.rejectBecause(setFiles, "allow a separate folder for it, not all of "+quoted(folder), "file %s", quoted(file))
	}
	return byFlag(allowedBy(p.reject(setFiles, "file %s", quoted(file)), folder), "--allow-files", folder)
}

// isTopFolder reports whether a clean path is the root or directly below it, such as /etc: a folder of the whole system.
func isTopFolder(folder string) bool { return path.Dir(folder) == "/" }

// below reports whether a clean path is inside of a clean folder.
func below(file, folder string) bool {
	return strings.HasPrefix(file, strings.TrimSuffix(folder, "/")+"/")
}

func (p *Policy) fileOwner(acct account) error {
	owners := p.Files.Owners
	switch {
	case p.ownFleet:
		return nil
	case acct.root && !slices.Contains(owners, gozzard.RootAccount):
		return instead(p.rejectBecause(setFiles, "its "+filesOwners+" do not name root", "a file of root"), otherOwner)
	case owners == nil || acct.root || slices.ContainsFunc(owners, acct.matches):
		return nil
	}
	return instead(p.rejectBecause(setFiles, "its "+filesOwners+" do not include this account", "a file of account %s",
		shown(acct.name)), otherOwner)
}

func (p *Policy) fileSize(size int64) error {
	if size > p.Files.MaxSize && len(p.Files.Paths) > 0 {
		return p.rejectBecause(setFiles, fmt.Sprintf("its %s is %d", filesMaxSize, p.Files.MaxSize),
			"a file of %d bytes", size)
	}
	return nil
}

// fileText describes the rules in one line.
func (p *Policy) fileText() string {
	if len(p.Files.Paths) == 0 {
		return ""
	}
	return fmt.Sprintf("; files of up to %d bytes below %s", p.Files.MaxSize, list(p.Files.Paths, itself))
}

// fileLine is the setting with folders added.
func (p *Policy) fileLine(add []string) string {
	quote := func(s string) string { return strconv.Quote(s) }
	line := setFiles + ": {" + filesPaths + ": [" + list(append(slices.Clone(p.Files.Paths), add...), quote) + "]"
	if p.Files.Owners != nil {
		line += ", " + filesOwners + ": [" + list(p.Files.Owners, quote) + "]"
	}
	if p.Files.MaxSize != defaultFileSize && p.Files.MaxSize != 0 {
		line += ", " + filesMaxSize + ": " + strconv.FormatInt(p.Files.MaxSize, 10)
	}
	return line + "}"
}

// files reads the setting files.
func (d *decoder) files(n *yamldoc.Node) FileRules {
	rules := FileRules{MaxSize: defaultFileSize}
	if n.Kind != yamldoc.Mapping {
		d.fault(n, "%s must be a mapping with %s, %s and %s, is %s", n.Key, filesPaths, filesOwners, filesMaxSize, n.Kind)
		return rules
	}

	for i := range n.Kids {
		switch kid := &n.Kids[i]; kid.Key {
		case filesPaths:
			rules.Paths = entries(d, kid, d.prefix)
		case filesOwners:
			rules.Owners = entries(d, kid, d.user)
		case filesMaxSize:
			size, ok := kid.Int()
			if !ok || size < 1 || size > gozzard.MaxFileBytes {
				d.fault(kid, "%s must be a whole number of bytes from 1 to %d", kid.Key, gozzard.MaxFileBytes)
			}
			rules.MaxSize = int64(size)
		default:
			d.fault(kid, "%q is not a setting of %s; they are %s, %s and %s", kid.Key, n.Key, filesPaths, filesOwners,
				filesMaxSize)
		}
	}

	if len(rules.Paths) == 0 {
		d.fault(n, "%s needs %s: folders below which files may be written", n.Key, filesPaths)
	}
	return rules
}
