//go:build linux

package faults_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/release"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// updatesAreSigned: by default a host accepts no release, and with a key none that the key has not signed.
// TestTE8LocalUpdate and TestTE8ServerUpdate show how a good release is installed and a bad one rolled back.
func updatesAreSigned(t *testing.T, f *plainFleet) {
	// Make a signed release.
	program, private := []byte("no program at all"), ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	sum := sha256.Sum256(program)
	m := &release.Manifest{Version: "99.0.0", Created: time.Now().Add(-time.Hour), Expires: time.Now().Add(time.Hour),
		Files: []release.File{
			{Platform: runtime.GOOS + "/" + runtime.GOARCH, Name: "gozzard", Size: int64(len(program)),
				SHA256: hex.EncodeToString(sum[:])},
		}}
	manifest, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	for name, text := range map[string][]byte{release.ManifestName: manifest,
		release.SignatureName: ed25519.Sign(private, manifest), "gozzard": program} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	refused := func(what, want string) {
		t.Helper()

		if out, err := f.try("agent", "update", "--data", f.state, "--from", dir); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s, by the host's admin: %s, %v", what, out, err)
		}

		f.gozzard(t, "release", "roll", "99.0.0")
		var r client.Upgrade
		ft.Until(t, time.Minute, func() string { return what + ": the upgrade goes on" }, func() bool {
			var list struct{ Rolls []client.Upgrade }
			if err := json.Unmarshal([]byte(f.admin(t, "GET", "/api/v1/rolls", nil).body), &list); err != nil ||
				len(list.Rolls) != 1 {
				return false // rejected by the rate limit of this server
			}
			r = list.Rolls[0]
			return r.State != "running"
		})

		if r.State != "stopped" || !strings.Contains(r.Reason, want) {
			t.Errorf("%s, by the server: %s %s", what, r.State, r.Reason)
		}

		select {
		case <-f.agent.Done():
			t.Fatal("the agent ended")
		default:
		}
	}

	// Reject it without a key on the host, then with another key.
	f.gozzard(t, "release", "publish", dir)
	key := filepath.Join(f.state, "release.pub")
	if _, err := os.Stat(key); !os.IsNotExist(err) {
		t.Errorf("a new host has a release key: %v", err)
	}

	refused("without a key", "no release key on this host")

	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}

	defer os.Remove(key)
	refused("with another key", "not signed by the release key")
}
