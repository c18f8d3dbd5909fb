package policy

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// executed is a file that is about to be executed.
type executed struct {
	command     string // the setting of the definition, such as start_cmd
	file        string // its real path
	interpreter bool   // a script names it in its first line
}

// Plain splits a command into its program and arguments, if commands must run without a shell. held is false if they
// run in a shell.
func (p *Policy) Plain(command string) (words []string, held bool, err error) {
	if p.Shell {
		return nil, false, nil
	}
	words, ok := plainWords(command)
	if !ok {
		return nil, true, p.reject(setShell, "a command with the words of a shell")
	}
	return words, true, nil
}

// Program checks a file that a command of an account is about to execute, by its real path. A link in the path may
// have changed since Definition was called. command is the setting of the definition, such as start_cmd. interpreter
// says that a script names the file in its first line.
func (p *Policy) Program(user, command, file string, interpreter bool) error {
	acct, err := p.account(user)
	if err != nil {
		return err
	}
	return p.program(acct, executed{command, file, interpreter})
}

// program checks an executed file: where it is, and which accounts can replace it. An interpreter may be anywhere,
// because the script decides about it; but no other account may be able to replace it.
func (p *Policy) program(acct account, prog executed) error {
	if !prog.interpreter {
		if err := p.listed(prog); err != nil {
			return err
		}
	}

	// Find out which accounts may be able to replace it. 0 is root alone.
	uid, setting := acct.uid, setPrograms
	switch {
	case acct.root && p.TrustedPaths:
		uid, setting = 0, setTrustedPaths
	case p.Programs == nil && !prog.interpreter:
		return nil
	case p.Programs == nil:
		setting = setShell
	}

	// Check the file and every folder of its path.
	_, err := walk(prog.file, func(path string, fi fs.FileInfo) error { return ownersOnly(path, fi, uid) })
	var open *openError
	switch {
	case errors.As(err, &open):
		return p.rejectBecause(setting, open.Error(), "%s as %s", prog.command, shown(acct.name))
	case err != nil && (acct.root || !errors.Is(err, fs.ErrPermission)): // the host looks again with more rights
		return p.rejectBecause(setting, err.Error(), "%s as %s", prog.command, shown(acct.name))
	}
	return nil
}

// listed checks the place of a program: the list of programs if there is one, else the folders of the policy.
func (p *Policy) listed(prog executed) error {
	if p.Programs == nil {
		if p.inPrefixes(prog.file) {
			return nil
		}
		return p.rejectBecause(setPathPrefixes, "without a shell the program must be in one of these folders, or "+
			"programs must list it", "%s with program %s", prog.command, quoted(prog.file))
	}

	for _, pattern := range p.Programs {
		if ok, err := filepath.Match(pattern, prog.file); ok && err == nil {
			return nil
		}
		folder, name := filepath.Split(pattern)
		real, err := walk(folder, nil) // a folder such as /bin may be a link
		if err != nil {
			continue
		}
		if ok, err := filepath.Match(filepath.Join(real, name), prog.file); ok && err == nil {
			return nil
		}
	}
	return p.reject(setPrograms, "%s with program %s", prog.command, quoted(prog.file))
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

// Inside reports whether a real path is in one of the folders of the policy.
func (p *Policy) Inside(real string) bool { return p.inPrefixes(real) }
