package policy

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gozzard/gozzard"
)

// Trust says which accounts may be able to change a file that the agent relies on.
type Trust uint8

const (
	// TrustOwn allows root and the agent's account. It checks the file and its folder. For an agent that runs as
	// root it also checks the folders above. For an agent of an ordinary account that would add nothing: an account
	// that can write those folders can do everything such an agent can do.
	TrustOwn Trust = iota
	// TrustOwnWay is TrustOwn with all folders of the path, for an agent that can do more than its account.
	TrustOwnWay
	// TrustRoot allows root only and checks all folders of the path. It is for files that limit an agent that can
	// become other accounts.
	TrustRoot
)

// TrustState is the trust for the state folder of an agent in a mode.
func TrustState(mode gozzard.AgentMode) Trust {
	if mode == gozzard.ModeCap {
		return TrustOwnWay
	}
	return TrustOwn
}

// TrustBounds is the trust for the policy and the program of an agent in a mode. In mode cap, only these prevent that
// an attacker with the agent's account becomes root.
func TrustBounds(mode gozzard.AgentMode) Trust {
	if mode == gozzard.ModeCap {
		return TrustRoot
	}
	return TrustOwn
}

// Check rejects a file or folder that others can change, directly or through a folder of its path.
func (t Trust) Check(path string) error {
	_, err := t.resolve(path)
	return err
}

// resolve returns the real path, if no other account can change where it leads.
func (t Trust) resolve(path string) (real string, err error) {
	// Collect everything on the path.
	type step struct {
		path string
		info fs.FileInfo
	}
	var way []step
	real, err = walk(path, func(path string, fi fs.FileInfo) error {
		way = append(way, step{path, fi})
		return nil
	})
	if err != nil {
		return "", err
	}

	// Find out which accounts are allowed, and how much of the path to check.
	uid, allowed := currentUID(), "root and the agent's account"
	if t == TrustRoot {
		uid, allowed = 0, "root"
	}
	whole := currentUID() == 0 || t != TrustOwn

	// Check it.
	for _, s := range way {
		if !whole && s.path != real && s.path != filepath.Dir(real) {
			continue
		}
		if err := ownersOnly(s.path, s.info, uid); err != nil {
			return "", fmt.Errorf("cannot trust %s: %w; "+
				"only %s may be able to write it and the folders that lead to it", path, err, allowed)
		}
	}
	return real, nil
}

// Read reads a file that Check accepts. The file may have at most max bytes.
func (t Trust) Read(path string, max int64) ([]byte, error) {
	real, err := t.resolve(path)
	if err != nil {
		return nil, err
	}

	f, err := os.Open(real)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size() > max {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", path, max)
	}

	return io.ReadAll(io.LimitReader(f, max))
}
