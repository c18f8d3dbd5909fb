package enrol_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/enrol"
)

// TestAuthorityFiles: a lost certificate is written again, a lost key is never replaced silently, and two keys are
// never guessed between.
func TestAuthorityFiles(t *testing.T) {
	dir := t.TempDir()
	a, err := enrol.OpenAuthority(dir, nil)
	must(t, err)
	pem, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key")
	whole, err := os.ReadFile(key)
	must(t, err)

	// opens opens the authority again and expects the same one, or an error that has a text.
	opens := func(what, wrong string) {
		t.Helper()
		b, err := enrol.OpenAuthority(dir, nil)
		switch {
		case wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)):
			t.Errorf("%s: %v, want %q", what, err, wrong)
		case wrong == "" && err != nil:
			t.Errorf("%s: %v", what, err)
		case wrong == "" && b.Pin() != a.Pin():
			t.Errorf("%s: another authority", what)
		}
	}

	must(t, os.Remove(pem))
	opens("without its certificate", "")
	if b, err := os.ReadFile(pem); err != nil || string(b) != string(a.PEM()) {
		t.Errorf("the certificate file: %v, %s", err, b)
	}

	must(t, os.Rename(key, key+".away"))
	opens("without its key", "ca.key is missing")
	if b, err := os.ReadFile(pem); err != nil || string(b) != string(a.PEM()) {
		t.Errorf("the certificate file: %v, %s", err, b)
	}

	must(t, os.Rename(key+".away", key))
	other := t.TempDir()
	_, err = enrol.OpenAuthority(other, nil)
	must(t, err)
	foreign, err := os.ReadFile(filepath.Join(other, "ca.key"))
	must(t, err)
	must(t, os.Remove(pem))
	must(t, os.WriteFile(pem, foreign, 0o600))
	opens("with two keys", "both have a key")
	if b, err := os.ReadFile(key); err != nil || string(b) != string(whole) {
		t.Errorf("the key file: %v", err)
	}

	// A key that others can read is rejected in the old form, too.
	must(t, os.Remove(pem))
	must(t, os.Rename(key, pem))
	must(t, os.Chmod(pem, 0o644))
	opens("an old file that others can read", "can be read by others")
	must(t, os.Chmod(pem, 0o600))
	opens("the same file, private", "")
}
