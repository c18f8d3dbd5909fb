package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"

	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/internal/policy"
)

// hostPolicy is what an agent and its host ask.
type hostPolicy interface {
	agent.Policy
	Folder(user, dir string) error
}

// policyConfig is how an agent finds its policy.
type policyConfig struct {
	File      string     // "": the one in the state folder, which is made when it is not there
	AllowRoot bool       // written into a policy that is made
	Rules     hostPolicy // of a fleet that needs no file
}

// open reads the policy of the agent whose state is in a folder.
func (c policyConfig) open(data string, log *slog.Logger) (hostPolicy, error) {
	if c.Rules != nil {
		return c.Rules, nil
	}
	path := c.File
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
	f, err := policy.Open(path, log)
	if err != nil {
		return nil, err
	}
	p := f.Current()
	log.Info("policy of this host", "file", path, "policy", p.String())
	if c.AllowRoot && !p.AllowRoot {
		log.Warn("--allow-root changes no policy that exists: set allow_root in it", "file", path)
	}
	return f, nil
}

// checkOwn refuses to work with a state folder or a program that others can change: whoever can is the agent.
func (c policyConfig) checkOwn(data string) error {
	if c.Rules != nil {
		return nil
	}
	if err := policy.Trusted(data); err != nil {
		return fmt.Errorf("cannot use the state folder: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	if err := policy.Trusted(program); err != nil {
		return fmt.Errorf("cannot trust this program: %w", err)
	}
	return nil
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
func checkPolicy(data, file string) finding {
	path := file
	if path == "" {
		path = filepath.Join(data, policy.FileName)
	}
	p, err := policy.Load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && file == "":
		return finding{findOK, "policy", path + " will be made: root refused unless the agent is started with --allow-root"}
	case err != nil:
		return finding{findFail, "policy", err.Error()}
	}
	return finding{findOK, "policy", path + ": " + p.String()}
}
