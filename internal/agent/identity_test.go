package agent_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agent"
)

// open makes an agent on a folder and returns its id.
func (r *rig) open(asked gozzard.AgentID) (gozzard.AgentID, error) {
	r.t.Helper()
	a, err := agent.New(agent.Options{Dir: r.dir, Host: r.host, Info: gozzard.HostInfo{Agent: asked}})
	if err != nil {
		return "", err
	}
	must(r.t, a.Close())
	return a.ID(), nil
}

// A21: a damaged id is refused with what to do. It is never taken for another identity.
func TestDamagedID(t *testing.T) {
	r := newRig(t)
	id, err := r.open("")
	must(t, err)
	path, sum := filepath.Join(r.dir, "agent-id"), filepath.Join(r.dir, "agent-id.sha256")
	good, err := os.ReadFile(path)
	must(t, err)

	for name, damage := range map[string]func(b []byte) []byte{
		"cut to half":   func(b []byte) []byte { return b[:len(b)/2] },
		"one digit cut": func(b []byte) []byte { return b[1:] },
		"another digit": func(b []byte) []byte { b[3] ^= 1; return b },
		"empty":         func([]byte) []byte { return nil },
		"twice":         func(b []byte) []byte { return append(b[:32], b...) },
		"zeros":         func(b []byte) []byte { return make([]byte, len(b)) },
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.WriteFile(path, damage(append([]byte{}, good...)), 0o600))
			_, errNew := r.open("")
			_, errIdentity := agent.Identity(r.dir)
			for _, err := range []error{errNew, errIdentity} {
				if err == nil || !strings.Contains(err.Error(), "sha256sum") {
					t.Errorf("said %v", err)
				}
			}
		})
	}

	must(t, os.WriteFile(path, good, 0o600))
	if got, err := r.open(""); got != id || err != nil {
		t.Errorf("the right id: %s, %v", got, err)
	}
	must(t, os.WriteFile(sum, nil, 0o600))
	if got, err := r.open(""); err == nil {
		t.Errorf("an empty checksum: %s", got)
	}
}

// A21: an id of an earlier version has no checksum. One that an agent made is accepted and gets one. Another one needs
// a second source: the certificate of the host, or a person.
func TestIDWithoutChecksum(t *testing.T) {
	made := strings.Repeat("0a", 16)
	for _, c := range []struct {
		file  string
		asked gozzard.AgentID
		ok    bool
	}{
		{file: made + "\n", ok: true},
		{file: made, ok: true},
		{file: made[:16]},
		{file: strings.ToUpper(made)},
		{file: "web-01\n"},
		{file: "web-01\n", asked: "web-01", ok: true},
		{file: "web-0\n", asked: "web-01"},
	} {
		r := newRig(t)
		must(t, os.Mkdir(r.dir, 0o700))
		path := filepath.Join(r.dir, "agent-id")
		must(t, os.WriteFile(path, []byte(c.file), 0o600))
		id, err := r.open(c.asked)
		if (err == nil) != c.ok || c.ok && string(id) != strings.TrimSpace(c.file) {
			t.Errorf("%q asked %q: %q, %v", c.file, c.asked, id, err)
		}
		if _, err := os.Stat(path + ".sha256"); (err == nil) != c.ok {
			t.Errorf("%q: checksum: %v", c.file, err)
		}
	}

	// A person confirms it, with the tool that the text names.
	r := newRig(t)
	must(t, os.Mkdir(r.dir, 0o700))
	path := filepath.Join(r.dir, "agent-id")
	must(t, os.WriteFile(path, []byte("web-01\n"), 0o600))
	must(t, os.WriteFile(path+".sha256", fmt.Appendf(nil, "%x  agent-id\n", sha256.Sum256([]byte("web-01\n"))), 0o600))
	if id, err := r.open(""); id != "web-01" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}

// A21: the journal names its agent, so a well-formed id of another agent is refused, and so is a new one.
func TestIDOfAnotherAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		r.stop()
		path := filepath.Join(r.dir, "agent-id")
		for _, put := range []func() error{
			func() error {
				return os.WriteFile(path, []byte(strings.Repeat("0b", 16)), 0o600)
			},
			func() error { return os.Remove(path) },
		} {
			must(t, os.RemoveAll(path+".sha256"))
			must(t, put())
			asked, err := agent.Identity(r.dir)
			must(t, err)
			if id, err := r.open(asked); err == nil || !strings.Contains(err.Error(), "journal") {
				t.Errorf("%q, %v", id, err)
			}
		}
	})
}
