package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many symbolic links one path may lead through.
const maxLinks = 40

var errLinks = errors.New("leads through too many links")

// folder checks where the commands of an account run.
func (p *Policy) folder(acct account, path string) error {
	if path == "" {
		path = rootFolder() // a command without a folder runs there
	}
	if !filepath.IsAbs(path) {
		return p.rejectBecause(setPathPrefixes, "it is not absolute", "folder %s", quoted(path))
	}

	// Find the real path. What runs as root must be in folders that only root can write. For other accounts nothing is
	// looked at that they may not see themselves, or the answer would say what is there.
	look := acct.sees
	switch {
	case acct.root && p.TrustedPaths:
		look = rootOnly
	case acct.root:
		look = func(string, fs.FileInfo) error { return nil }
	}
	real, err := walk(path, look)
	if errors.Is(err, fs.ErrPermission) && !acct.root {
		// The agent may not look there, or the account may see more than its modes show. The folder is opened with the
		// rights of the account, and its real path is checked again, before the command runs.
		err = nil
	}
	var open *openError
	switch {
	case errors.As(err, &open):
		return p.rejectBecause(setTrustedPaths, open.Error(), "folder %s as root", quoted(path))
	case err != nil:
		return p.rejectBecause(setPathPrefixes, err.Error(), "folder %s", quoted(path))
	}

	// Allow what is in one of the folders of the policy.
	if p.inPrefixes(real) {
		return nil
	}

	// Reject the rest.
	switch {
	case real == filepath.Clean(path):
	case acct.root:
		return p.rejectBecause(setPathPrefixes, "its real path is "+quoted(real), "folder %s", quoted(path))
	default: // an agent of root can follow links that the account cannot: it does not say where they lead
		return p.rejectBecause(setPathPrefixes, "a link leads to another place", "folder %s", quoted(path))
	}
	if real == rootFolder() { // the whole host is never proposed
		return instead(p.reject(setPathPrefixes, "folder %s (the default if none is given)", quoted(path)), p.otherFolder())
	}
	err = byFlag(allowedBy(p.reject(setPathPrefixes, "folder %s", quoted(path)), real), "--allow-path", real)
	return instead(err, p.otherFolder())
}

// sees returns an error if the account may not look into a folder or follow a link, as far as modes show that. It is
// strict: a folder that is open by a group or by another list of rights counts as closed.
func (a account) sees(path string, fi fs.FileInfo) error {
	if !hasModes {
		return nil
	}
	owner, known := ownerOf(fi)
	own := known && a.hasID && owner == a.uid
	switch {
	case fi.Mode()&fs.ModeSymlink != 0 && inside(path, procFolder): // its target is not for everybody
		return fs.ErrPermission
	case fi.IsDir() && !own && fi.Mode().Perm()&0o001 == 0:
		return fs.ErrPermission
	}
	return nil
}

// procFolder has links with targets that only the owner of a process may read.
const procFolder = "/proc"

// inside reports whether a clean path is the folder or something in it.
func inside(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, folder)
	return ok && (rest == "" || rest[0] == filepath.Separator || strings.HasSuffix(folder, string(filepath.Separator)))
}

// walk follows a path from the root through all its links and returns the real path. visit gets every folder and link
// of the path, and what is at its end, before walk goes through it: an account that can write one of the folders
// decides where the path leads. A part that does not exist is used as it is written. So is a part that may not be
// read, and then walk returns an error as well.
func walk(path string, visit func(path string, fi fs.FileInfo) error) (real string, err error) {
	volume := filepath.VolumeName(path)
	sep := string(filepath.Separator)
	root := volume + sep
	rest := strings.Split(strings.Trim(filepath.Clean(path)[len(volume):], sep), sep)
	real = root
	if err := visitRoot(root, visit); err != nil {
		return "", err
	}

	for links := 0; len(rest) > 0; {
		// Go to the next name of the path.
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real)
			continue
		}

		// Look at it.
		next := filepath.Join(real, name)
		fi, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			return filepath.Join(append([]string{next}, rest...)...), nil
		}
		if errors.Is(err, fs.ErrPermission) {
			return filepath.Join(append([]string{next}, rest...)...), err
		}
		if err != nil {
			return "", err
		}
		if visit != nil {
			err := visit(next, fi)
			if errors.Is(err, fs.ErrPermission) {
				return filepath.Join(append([]string{next}, rest...)...), err
			}
			if err != nil {
				return "", err
			}
		}

		// Follow a link.
		if fi.Mode()&fs.ModeSymlink == 0 {
			real = next
			continue
		}
		if links++; links > maxLinks {
			return "", errLinks
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			real = root
		}
		rest = append(strings.Split(target, sep), rest...)
	}

	return real, nil
}

func visitRoot(path string, visit func(path string, fi fs.FileInfo) error) error {
	if visit == nil {
		return nil
	}
	fi, err := os.Lstat(path)
	if err != nil {
		return err
	}
	return visit(path, fi)
}

// openError is about a file or folder that others can change.
type openError struct{ path, why string }

func (e *openError) Error() string { return fmt.Sprintf("%s %s", quoted(e.path), e.why) }

// rootOnly rejects what others than root can change.
func rootOnly(path string, fi fs.FileInfo) error { return ownersOnly(path, fi, 0) }

// ownersOnly rejects what others than root and the given account can change. A link itself cannot be changed. It can
// be replaced by an account that can write its folder; in a folder with the sticky bit that is only the owner of the
// link.
func ownersOnly(path string, fi fs.FileInfo, uid uint32) error {
	if owner, known := ownerOf(fi); known && owner != 0 && owner != uid {
		return &openError{path, fmt.Sprintf("belongs to uid %d", owner)}
	}
	if !hasModes || fi.Mode()&fs.ModeSymlink != 0 || fi.IsDir() && fi.Mode()&fs.ModeSticky != 0 {
		return nil
	}
	if fi.Mode().Perm()&0o022 != 0 {
		return &openError{path, fmt.Sprintf("is writable by others (mode %04o)", fi.Mode().Perm())}
	}
	return nil
}

// quoted makes a path from outside safe to print in one line.
func quoted(path string) string {
	if len(path) > 512 {
		path = path[:512] + "..."
	}
	if strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r == 0x7f || r > 0x7f || r == '"' }) {
		return fmt.Sprintf("%q", path)
	}
	return path
}
