package policy

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// Program is a file that is about to be executed. The caller holds it open.
type Program struct {
	Command     string // the setting of the definition, such as start_cmd
	File        string // its real path
	Interpreter bool   // a script names it in its first line
}

// WithoutShell reports whether commands must be executed without a shell, so that Program can judge the executed file.
func (p *Policy) WithoutShell() bool { return !p.Shell }

// Program checks a file that a command of an account is about to execute, by its real path. A link in the path may
// have changed since Definition was called.
func (p *Policy) Program(user string, prog Program) error {
	acct, err := p.account(user)
	if err != nil {
		return err
	}
	return p.program(acct, prog)
}

// program checks an executed file: where it is, and which accounts can replace it. An interpreter may be anywhere,
// because the script decides about it; but no other account may be able to replace it.
func (p *Policy) program(acct account, prog Program) error {
	if !prog.Interpreter {
		if err := p.listed(prog); err != nil {
			return err
		}
	}

	// Find out which accounts may be able to replace it. 0 is root alone.
	uid, setting := acct.uid, setPrograms
	switch {
	case acct.root && p.TrustedPaths:
		uid, setting = 0, setTrustedPaths
	case p.Programs == nil && !prog.Interpreter:
		return nil
	case p.Programs == nil:
		setting = setShell
	}

	// Check the file and every folder of its path.
	_, err := walk(prog.File, func(path string, fi fs.FileInfo) error { return ownersOnly(path, fi, uid) })
	var open *openError
	switch {
	case errors.As(err, &open):
		return p.rejectBecause(setting, open.Error(), "%s as %s", prog.Command, shown(acct.name))
	case err != nil && (acct.root || !errors.Is(err, fs.ErrPermission)): // the host looks again with more rights
		return p.rejectBecause(setting, err.Error(), "%s as %s", prog.Command, shown(acct.name))
	}
	return nil
}

// listed checks the place of a program: the list of programs if there is one, else the folders of the policy.
func (p *Policy) listed(prog Program) error {
	if p.Programs == nil {
		if p.inPrefixes(prog.File) {
			return nil
		}
		return p.rejectBecause(setPathPrefixes, "without a shell the program must be in one of these folders, or "+
			"programs must list it", "%s with program %s", prog.Command, quoted(prog.File))
	}

	for _, pattern := range p.Programs {
		if ok, err := filepath.Match(pattern, prog.File); ok && err == nil {
			return nil
		}
		folder, name := filepath.Split(pattern)
		real, err := walk(folder, nil) // a folder such as /bin may be a link
		if err != nil {
			continue
		}
		if ok, err := filepath.Match(filepath.Join(real, name), prog.File); ok && err == nil {
			return nil
		}
	}
	return p.reject(setPrograms, "%s with program %s", prog.Command, quoted(prog.File))
}

// inPrefixes reports whether a real path is in one of the folders of the policy.
func (p *Policy) inPrefixes(real string) bool {
	for _, prefix := range p.PathPrefixes {
		if inside(real, prefix) {
			return true
		}
		if resolved, err := walk(prefix, nil); err == nil && inside(real, resolved) {
			return true
		}
	}
	return false
}
