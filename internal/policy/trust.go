package policy

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gozzard/gozzard"
)

// Trust is who may be able to change what an agent relies on.
type Trust uint8

const (
	// TrustOwn is root and the agent's account. Folders further up than the next are looked at for an agent of root
	// only: what one of an ordinary account could do, whoever shares its folders can do anyway.
	TrustOwn Trust = iota
	// TrustOwnWay is the same with all folders that lead there, for an agent that can do more than its account.
	TrustOwnWay
	// TrustRoot is root alone, with all folders that lead there: for what bounds an agent that can become other
	// accounts.
	TrustRoot
)

// TrustState is for the state folder of an agent in a mode.
func TrustState(mode gozzard.AgentMode) Trust {
	if mode == gozzard.ModeCap {
		return TrustOwnWay
	}
	return TrustOwn
}

// TrustBounds is for the policy and the program of an agent in a mode: in mode cap nothing but these keeps whoever
// has got hold of the agent's account from becoming root.
func TrustBounds(mode gozzard.AgentMode) Trust {
	if mode == gozzard.ModeCap {
		return TrustRoot
	}
	return TrustOwn
}

// Check refuses a file or folder that others can change, by itself or through a folder that leads to it.
func (t Trust) Check(path string) error {
	_, err := t.follow(path)
	return err
}

// follow gives what a path really is, when nobody else has a hand in it.
func (t Trust) follow(path string) (real string, err error) {
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

	uid, whole, who := self(), self() == 0 || t != TrustOwn, "root and the agent's account"

	if t == TrustRoot {
		uid, who = 0, "root"
	}

	for _, s := range way {
		if !whole && s.path != real && s.path != filepath.Dir(real) {
			continue
		}
		if err := onlyOf(s.path, s.info, uid); err != nil {
			return "", fmt.Errorf("%s is refused: %w; only %s may be able to write it and the folders that lead to it", path, err, who)
		}
	}

	return real, nil
}

// Read reads a file that Check accepts, with at most max bytes.
func (t Trust) Read(path string, max int64) ([]byte, error) {
	real, err := t.follow(path)
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
