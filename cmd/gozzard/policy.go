package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/policy"
)

// policyConfig is how an agent finds its policy.
type policyConfig struct {
	File      string       // "": the one in the state folder, which is made when it is not there
	AllowRoot bool         // written into a policy that is made
	Rules     policy.Rules // of a fleet that needs no file
}

// open reads the policy of the agent whose state is in a folder, and holds it to what that agent is able to do.
func (c policyConfig) open(data string, own host.Privileges, log *slog.Logger) (*policy.Reach, error) {
	reach := &policy.Reach{Rules: c.Rules, Mode: own.Mode, Account: own.Account, UID: own.UID}

	if c.Rules != nil {
		return reach, nil
	}

	path := c.File
	if path == "" && own.Mode == gozzard.ModeCap && own.UID != 0 {
		return nil, fmt.Errorf("cannot run in mode cap without --policy: %s", noOwnPolicy)
	}

	if path == "" {
		path = filepath.Join(data, policy.FileName)
		made, err := firstPolicy(data, c.AllowRoot)
		if err != nil {
			return nil, err
		}
		if made {
			log.Warn("this host had no policy, one was written", "file", path, "allow_root", c.AllowRoot)
		}
	}

	f, err := policy.Open(path, policy.TrustBounds(own.Mode), log)
	if err != nil {
		return nil, err
	}

	p := f.Current()
	log.Info("policy of this host", "file", path, "policy", p.String())

	if c.AllowRoot && !p.AllowRoot {
		log.Warn("--allow-root changes no policy that exists: set allow_root in it", "file", path)
	}

	reach.Rules = f
	return reach, nil
}

// noOwnPolicy: the policy bounds whom an agent with capabilities can become, so it must not lie where the agent's
// account can replace it.
const noOwnPolicy = "the agent can become other accounts, so its policy must be a file that only root can write, such as /etc/gozzard/policy.yaml, and not one in its state folder"

// checkOwn refuses to work with a state folder or a program that others can change: whoever can is the agent.
func (c policyConfig) checkOwn(data string, mode gozzard.AgentMode) error {
	if c.Rules != nil {
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

// trustProgram refuses a program file that others could have put in the place of this one.
func trustProgram(file string) error {
	own, err := host.OwnStanding()
	if err != nil {
		return err
	}
	return policy.TrustBounds(own.Mode).Check(file)
}

// checkProgram says whether an agent would start from the program file that this one is.
func checkProgram() finding {
	file, err := os.Executable()
	if err == nil {
		err = trustProgram(file)
	}
	if err != nil {
		return finding{findFail, "program", err.Error()}
	}
	return finding{findOK, "program", file + " " + version}
}

// firstPolicy writes the policy of a new state folder; one that is there stays.
func firstPolicy(data string, allowRoot bool) (made bool, err error) {
	choice := policy.Choice{AllowRoot: allowRoot, OwnUID: os.Geteuid()}
	if choice.OwnUID != 0 {
		u, err := user.Current()
		if err != nil {
			return false, fmt.Errorf("cannot find out whom this agent runs as: %w", err)
		}
		choice.Own = u.Username
	}
	return policy.Create(filepath.Join(data, policy.FileName), choice)
}

// checkPolicy says what the policy of a state folder is.
func checkPolicy(data, file string, own host.Privileges) finding {
	path := file
	if path == "" && own.Mode == gozzard.ModeCap && own.UID != 0 {
		return finding{findFail, "policy", "none is named with --policy: " + noOwnPolicy}
	}
	if path == "" {
		path = filepath.Join(data, policy.FileName)
	}

	p, err := policy.Load(path, policy.TrustBounds(own.Mode))
	switch {
	case errors.Is(err, fs.ErrNotExist) && file == "":
		return finding{findOK, "policy",
			path + " will be made: root refused unless the agent is started with --allow-root"}
	case err != nil:
		return finding{findFail, "policy", err.Error()}
	}

	return finding{findOK, "policy", path + ": " + p.String()}
}
