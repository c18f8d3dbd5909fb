package policy

import (
	"errors"
	"fmt"
	"maps"
	"os/user"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
)

// loaders are the variables by which a loader, a shell or an interpreter executes other code than its program, or finds other
// programs, libraries and settings. A final * stands for any rest.
var loaders = []string{
	// The loader and the C library.
	"LD_*", "DYLD_*", "GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH", "MALLOC_*", "RES_OPTIONS", "HOSTALIASES",
	"LOCALDOMAIN", "TZDIR", "GETCONF_DIR", "RESOLV_*",
	// Shells, and what they and others execute.
	"PATH", "ENV", "BASH_*", "SHELLOPTS", "BASHOPTS", "SHELL", "IFS", "CDPATH", "PS4", "PROMPT_COMMAND", "ZDOTDIR", "HOME",
	"XDG_*", "EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER", "LESS*", "GIT_*", "SSH_*", "SUDO_*", "TMPDIR",
	// Interpreters and their packages.
	"PYTHON*", "VIRTUAL_ENV", "PIP_*", "PERL*", "RUBY*", "GEM_*", "BUNDLE_*", "NODE_*", "NPM_*", "npm_*", "LUA_*", "PHP*",
	"R_*", "TCL*", "GUILE_*", "JAVA_*", "_JAVA_*", "JDK_*", "CLASSPATH", "MAVEN_*", "CATALINA_*", "ERL_*", "ELIXIR_*",
	"DOTNET_*", "CORECLR_*", "COMPlus_*", "MONO_*", "GODEBUG", "RUST_*", "AWKPATH", "AWKLIBPATH", "QT_*", "GTK_*", "GIO_*",
	// Libraries that load modules and settings.
	"OPENSSL_*", "SSL_*", "CURL_*", "KRB5*", "PG*", "MYSQL_*", "NIX_*", "SNAP*", "PKCS11_*", "P11_*",
}

// Variable checks the name of a variable that a definition adds to the environment. Where a shell is allowed, the command
// can set every variable anyway.
func (p *Policy) Variable(name string) error {
	if p.Shell || !slices.ContainsFunc(loaders, func(l string) bool { return covers(l, name) }) ||
		slices.ContainsFunc(p.Env, func(allowed string) bool { return covers(allowed, name) }) {
		return nil
	}
	return p.rejectBecause(setShell, fmt.Sprintf("it can make a program execute other code. To allow it, add to the "+
		"policy: env: [%s]", shown(name)), "variable %s", shown(name))
}

// covers reports whether a pattern, which may end in *, includes a name.
func covers(pattern, name string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	return pattern == name || open && strings.HasPrefix(name, prefix)
}

// setup checks what the agent sets up before it executes a command.
func (p *Policy) setup(acct account, s *gozzard.Spec) error {
	for _, name := range slices.Sorted(maps.Keys(s.Exec.Env)) {
		if err := p.Variable(name); err != nil {
			return err
		}
	}
	if s.Exec.Nice < 0 && !acct.root && !p.AllowRoot {
		return p.rejectBecause(setAllowRoot, "a number below 0 takes processor time from other accounts", "nice %d",
			s.Exec.Nice)
	}
	return p.group(acct, s.Exec.Group)
}

// group checks the group of a command. An account may have its own groups; root may have every group.
func (p *Policy) group(acct account, name string) error {
	if name == "" || acct.root {
		return nil
	}
	g, err := user.LookupGroup(name)
	if err == nil && acct.found != nil {
		var ids []string
		if ids, err = acct.found.GroupIds(); err == nil && slices.Contains(ids, g.Gid) {
			return nil
		}
	}
	why := fmt.Sprintf("account %s is not a member. An account may use its own groups only", shown(acct.name))
	var unknown user.UnknownGroupError
	switch {
	case errors.As(err, &unknown):
		why = "there is no such group on this host"
	case err != nil:
		why = err.Error()
	}
	return p.rejectBecause(setUsers, why, "group %s", shown(name))
}
