package agentd

import (
	"fmt"
	"log/slog"
	"os"
	"os/user"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/policy"
)

// PolicyOptions say where the policy of a host is.
type PolicyOptions struct {
	File      string                // "": the one that Find finds, which is made when it is not there
	AllowRoot bool                  // written into a policy that is made
	Default   string                // the account of definitions that name none, as AllowRoot
	Users     []string              // accounts that the policy must allow, as AllowRoot
	Paths     []string              // folders that the policy must allow
	Files     []string              // folders below which the policy must allow files
	Texts     []func(string) string // as policy.Choice
	Fit       bool                  // also a policy that exists must fit AllowRoot, Default, Users, Paths and Files
	Rules     policy.Rules          // used instead of a file; nil: there is a file
}

// NoPolicy are the options of an agent without limits of its own, for `gozzard dev`.
func NoPolicy() PolicyOptions { return PolicyOptions{Rules: policy.Everything()} }

// NeedsRootPolicy explains why an agent with capabilities needs --policy. The policy limits the accounts that such an
// agent can become, so it must not be where the agent's account can replace it.
const NeedsRootPolicy = "the agent can become other accounts, so its policy must be a file that only root can write, " +
	"such as /etc/gozzard/policy.yaml, and not one in its state folder"

// open reads the policy of the agent of a state folder and limits it to what that agent is able to do.
func (o PolicyOptions) open(data string, own host.Privileges, log *slog.Logger) (*policy.Reach, error) {
	reach := &policy.Reach{Rules: o.Rules, Mode: own.Mode, Account: own.Account, UID: own.UID}

	if o.Rules != nil {
		return reach, nil
	}

	// Find the file; it is made at the first start.
	if o.File == "" && own.Mode == gozzard.ModeCap && own.UID != 0 {
		return nil, fmt.Errorf("cannot run in mode cap without --policy: %s", NeedsRootPolicy)
	}
	path, made, err := o.create(data, own)
	if err != nil {
		return nil, err
	}
	if made {
		log.Warn("this host had no policy, one was written", "file", path, "allow_root", o.AllowRoot)
	}

	// Read it.
	f, err := policy.Open(path, policy.TrustBounds(own.Mode), log)
	if err != nil {
		return nil, err
	}

	p := f.Current()
	log.Info("policy of this host", "file", path, "policy", p.String())
	o.warn(path, data, p, own, log)

	if o.AllowRoot && !p.AllowRoot {
		log.Warn("--allow-root changes no policy that exists: set allow_root in it", "file", path)
	}

	reach.Rules = f
	return reach, nil
}

// checkOwn rejects a state folder or a program that other accounts can change: they could act as the agent.
func (o PolicyOptions) checkOwn(data string, mode gozzard.AgentMode) error {
	if o.Rules != nil {
		return nil
	}
	if err := policy.TrustState(mode).Check(data); err != nil {
		return fmt.Errorf("cannot use the state folder: %w", err)
	}

	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	if err := policy.TrustBounds(mode).Check(program); err != nil {
		return fmt.Errorf("cannot trust this program: %w", err)
	}

	return nil
}

// TrustProgram rejects a program file that other accounts can replace.
func TrustProgram(file string) error {
	own, err := host.OwnPrivileges()
	if err != nil {
		return err
	}
	return policy.TrustBounds(own.Mode).Check(file)
}

// firstPolicy writes the policy of a host. It does not change a policy that a person has changed.
func (o PolicyOptions) firstPolicy(path string) (made bool, err error) {
	choice := policy.Choice{AllowRoot: o.AllowRoot, Default: o.Default, Users: o.Users, Paths: o.Paths, Files: o.Files,
		OwnUID: os.Geteuid(), Texts: o.Texts}
	if err := choice.Check(); err != nil {
		return false, err
	}
	if choice.OwnUID != 0 {
		u, err := user.Current()
		if err != nil {
			return false, fmt.Errorf("cannot find the account that this agent runs as: %w", err)
		}
		choice.Own = u.Username
	}
	if o.Fit {
		return policy.Fit(path, choice)
	}
	return policy.Create(path, choice)
}
