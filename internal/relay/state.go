package relay

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/enrol"
)

// stateFile has everything that a relay keeps. Without it, the relay joins again with a new token.
const stateFile = "relay.json"

// state is the content of stateFile.
type state struct {
	Member  enrol.RelayMember `json:"member"`
	Servers []string          `json:"servers"` // HOST:PORT of all servers for relays, as they were last named
}

func readState(dir string) (*state, error) {
	path := filepath.Join(dir, stateFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the folder %s has no relay: join first, with \"gozzard relay join\"", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the state of the relay: %w", err)
	}
	if err := atomicfile.Check(path); err != nil {
		return nil, err
	}

	s := new(state)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w; remove the file and join again", path, err)
	}
	if err := s.Member.Parse(); err != nil {
		return nil, fmt.Errorf("cannot use %s: %w; remove the file and join again", path, err)
	}
	return s, nil
}

func (s *state) write(dir string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(dir, stateFile), append(b, '\n')); err != nil {
		return fmt.Errorf("cannot store the state of the relay: %w", err)
	}
	return nil
}

// JoinOptions are the settings of `gozzard relay join`.
type JoinOptions struct {
	Data      string
	Server    string // URL of the API of a server
	TokenFile string
}

// Joined is a relay that has joined.
type Joined struct {
	ID      string
	Name    string
	Areas   []int
	Servers []string
}

// Join makes this machine a relay.
func Join(ctx context.Context, o JoinOptions) (j Joined, err error) {
	b, err := os.ReadFile(o.TokenFile)
	if err != nil {
		return j, fmt.Errorf("cannot read the token: %w", err)
	}
	if err := atomicfile.Check(o.TokenFile); err != nil {
		return j, err
	}
	token, err := enrol.ParseRelayToken(string(b))
	if err != nil {
		return j, err
	}

	// Do everything that can fail on this machine before the token is used.
	if _, err := os.Lstat(filepath.Join(o.Data, stateFile)); err == nil {
		return j, fmt.Errorf("the folder %s has a relay already: choose another folder, or remove %s. The token was not used", o.Data,
			stateFile)
	}
	if err := os.MkdirAll(o.Data, 0o700); err != nil {
		return j, fmt.Errorf("cannot make the folder of the relay: %w", err)
	}
	if err := atomicfile.Probe(o.Data); err != nil {
		return j, err
	}

	m, servers, err := enrol.JoinRelay(ctx, o.Server, token)
	if err != nil {
		return j, err
	}
	s := &state{Member: *m, Servers: servers}
	return Joined{ID: m.ID, Name: m.Name, Areas: m.Areas, Servers: servers}, s.write(o.Data)
}

// learn takes over what a server says. It reports whether something changed.
func (s *state) learn(servers []string, at string) bool {
	var list []string
	for _, a := range servers {
		if full := enrol.RelayServer(a, at); full != "" && !slices.Contains(list, full) {
			list = append(list, full)
		}
	}
	slices.Sort(list)
	if len(list) == 0 || slices.Equal(list, s.Servers) {
		return false
	}
	s.Servers = list
	return true
}

// tlsConfig is that of connections to servers.
func (s *state) tlsConfig() *tls.Config { return s.Member.TLS() }
