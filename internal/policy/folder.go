package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many links one path may lead through.
const maxLinks = 40

var errLinks = errors.New("leads through too many links")

// folder judges where an account's commands run.
func (p *Policy) folder(who account, path string) error {
	if path == "" {
		path = rootFolder() // where a command runs whose definition names no folder
	}
	if !filepath.IsAbs(path) {
		return p.refuseFor(setPathPrefixes, "it is not absolute", "setup_path %s", quoted(path))
	}

	trust := func(string, fs.FileInfo) error { return nil }

	if who.root && p.TrustedPaths {
		trust = onlyRoot
	}

	real, err := walk(path, trust)
	if errors.Is(err, fs.ErrPermission) && !who.root {
		// an agent that is not root sees less than the account may: what is entered in the end is judged again by
		// its real path
		err = nil
	}

	var open *openError
	switch {
	case errors.As(err, &open):
		return p.refuseFor(setTrustedPaths, open.Error(), "setup_path %s as root", quoted(path))
	case err != nil:
		return p.refuseFor(setPathPrefixes, err.Error(), "setup_path %s", quoted(path))
	}

	for _, prefix := range p.PathPrefixes {
		if inside(real, prefix) {
			return nil
		}
		if resolved, err := walk(prefix, nil); err == nil && inside(real, resolved) {
			return nil
		}
	}

	if real != filepath.Clean(path) {
		return p.refuseFor(setPathPrefixes, "it is "+quoted(real), "setup_path %s", quoted(path))
	}

	return p.refuse(setPathPrefixes, "setup_path %s", quoted(path))
}

// inside reports whether a clean path is a folder or lies in it.
func inside(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, folder)
	return ok && (rest == "" || rest[0] == filepath.Separator || strings.HasSuffix(folder, string(filepath.Separator)))
}

// walk follows a path from the root through all its links and returns what it really is. Visit sees every folder
// and link on the way and what is at the end, before it is gone through; whoever may write one of the folders
// decides where the path leads. What does not exist is taken as it is written, and what may not be seen, too, with
// an error that says so.
func walk(path string, visit func(path string, fi fs.FileInfo) error) (real string, err error) {
	volume := filepath.VolumeName(path)
	sep := string(filepath.Separator)
	root := volume + sep
	rest := strings.Split(strings.Trim(filepath.Clean(path)[len(volume):], sep), sep)
	real = root

	if err := look(root, visit); err != nil {
		return "", err
	}

	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real)
			continue
		}
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
			if err := visit(next, fi); err != nil {
				return "", err
			}
		}
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

func look(path string, visit func(path string, fi fs.FileInfo) error) error {
	if visit == nil {
		return nil
	}
	fi, err := os.Lstat(path)
	if err != nil {
		return err
	}
	return visit(path, fi)
}

// openError is a file or folder that others can change.
type openError struct{ path, why string }

func (e *openError) Error() string { return fmt.Sprintf("%s %s", quoted(e.path), e.why) }

// onlyRoot refuses what others than root can change.
func onlyRoot(path string, fi fs.FileInfo) error { return onlyOf(path, fi, 0) }

// onlyOf refuses what others than root and an account can change. A link cannot be changed, only replaced by who
// may write its folder; in a folder with the sticky mark that is its owner alone.
func onlyOf(path string, fi fs.FileInfo, uid uint32) error {
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

// quoted is a path that somebody else has chosen, fit for one line.
func quoted(path string) string {
	if len(path) > 512 {
		path = path[:512] + "..."
	}
	if strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r == 0x7f || r > 0x7f || r == '"' }) {
		return fmt.Sprintf("%q", path)
	}
	return path
}
