//go:build linux

package compat_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// An older program had the certificate of the authority and its key in one file, ca.pem.

// TestAuthoritySplit: the first start on an old folder moves the key out of ca.pem. The certificate, the tokens and the
// credentials of the old program stay valid, and the rotation of the authority goes on in the new files.
func TestAuthoritySplit(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		dir := unpack(t, version, "enrolled")
		data := filepath.Join(dir, "server")
		old := read(t, filepath.Join(data, "ca.pem"))
		s := newServer(t, data, "--enrol")
		s.begin(t) // with the certificate in the credentials of the old program
		isSplit(t, data, old)
		(&enrolled{server: s, dir: dir}).joinsByOldToken()

		// A rotation adds its certificate to the file that people hand out, and the end of it removes the old one.
		must(t, s.asAdmin(), "key", "rotate", "authority")
		if n := strings.Count(read(t, filepath.Join(data, "ca.pem")), "BEGIN CERTIFICATE"); n != 2 {
			t.Errorf("ca.pem has %d certificates during a rotation, want 2", n)
		}
		next := read(t, filepath.Join(data, "ca-next.key"))
		s.stop(syscall.SIGKILL)
		s.begin(t)
		must(t, s.asAdmin(), "key", "rotate", "authority", "--finish", "--confirm", "4") // the hosts of the fixture
		isSplit(t, data, next)
		if _, err := os.Lstat(filepath.Join(data, "ca-next.key")); !os.IsNotExist(err) {
			t.Errorf("ca-next.key after the rotation: %v", err)
		}
	})
}

// TestAuthoritySplitKilled kills the server before and after the key is moved. The next start finishes the work.
func TestAuthoritySplitKilled(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed")
	}
	eachVersion(t, func(t *testing.T, version string) {
		for name, test := range map[string]struct {
			trace []string
			files string // of the authority, when the server is dead
		}{
			"before": {[]string{"-P", "ca.key", "-e", "inject=rename,renameat,renameat2:signal=KILL"}, "ca.pem"},
			"after":  {[]string{"-e", "inject=chmod,fchmodat:signal=KILL"}, "ca.key"},
		} {
			t.Run(name, func(t *testing.T) {
				data := filepath.Join(unpack(t, version, "enrolled"), "server")
				old := read(t, filepath.Join(data, "ca.pem"))
				s := newServer(t, data, "--enrol")

				args := []string{"-f", "-qq", "-o", "/dev/null"}
				for _, word := range test.trace {
					args = append(args, strings.Replace(word, "ca.key", filepath.Join(data, "ca.key"), 1))
				}
				out, err := exec.Command("strace", append(append(args, binaryOf(t)), s.args...)...).CombinedOutput()
				if err == nil {
					t.Fatalf("the server was not killed: %s", out)
				}
				if got := authorityFiles(t, data); got != test.files {
					t.Fatalf("the dead server left %q, want %q, so this proves nothing: %s", got, test.files, out)
				}

				s.begin(t)
				isSplit(t, data, old)
			})
		}
	})
}

// TestAuthorityBackup: a backup of a folder whose ca.pem has the key, as older programs write it, brings the authority
// back. So does a backup of a folder in the new form. Both backups have the same files, so an older program can read
// both.
func TestAuthorityBackup(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		data := filepath.Join(unpack(t, version, "enrolled"), "server")
		old := read(t, filepath.Join(data, "ca.pem"))
		key := filepath.Join(t.TempDir(), "key")
		recipient := strings.TrimSpace(must(t, nil, "backup", "keygen", "--to", key))

		// Bring the record up to date, then undo the split: the way back to an older program.
		s := newServer(t, data, "--enrol")
		s.begin(t)
		s.stop(syscall.SIGTERM)
		if err := os.Rename(filepath.Join(data, "ca.key"), filepath.Join(data, "ca.pem")); err != nil {
			t.Fatal(err)
		}
		if out := must(t, nil, "doctor", "--data", data); !strings.Contains(out, "authority") {
			t.Errorf("the doctor does not see the authority of an old folder: %s", out)
		}

		for _, name := range []string{"old folder", "new folder"} {
			file := filepath.Join(t.TempDir(), "backup.age")
			must(t, nil, "backup", "create", "--data", data, "--to", file, "--recipient", recipient)
			if out := must(t, nil, "backup", "verify", file, "--identity", key); !strings.Contains(out, "authority") {
				t.Errorf("%s: the backup has no authority: %s", name, out)
			}
			restored := filepath.Join(t.TempDir(), "restored")
			must(t, nil, "backup", "restore", file, "--identity", key, "--data", restored)
			if got := read(t, filepath.Join(restored, "ca.key")); got != old {
				t.Errorf("%s: the restored authority differs: %s", name, got)
			}

			s := newServer(t, restored, "--enrol", "--reset-admin")
			s.begin(t)
			isSplit(t, restored, old)
			s.stop(syscall.SIGTERM)
			data = restored
		}
	})
}

// isSplit checks that ca.key has the key and certificate of the old ca.pem, and that ca.pem has the certificate only.
func isSplit(t *testing.T, data, old string) {
	t.Helper()
	if got := read(t, filepath.Join(data, "ca.key")); got != old {
		t.Errorf("ca.key differs from the old file: %s", got)
	}

	_, cert, _ := strings.Cut(old, "-----END PRIVATE KEY-----\n")
	if got := read(t, filepath.Join(data, "ca.pem")); got != cert || !strings.HasPrefix(got, "-----BEGIN CERTIFICATE-----") {
		t.Errorf("ca.pem is not the certificate: %s", got)
	}

	for name, mode := range map[string]os.FileMode{"ca.key": 0o600, "ca.pem": 0o644} {
		if st, err := os.Lstat(filepath.Join(data, name)); err != nil || st.Mode() != mode {
			t.Errorf("%s: %v, %v, want mode %v", name, st, err, mode)
		}
	}
}

// authorityFiles names the files of the authority in a data folder.
func authorityFiles(t *testing.T, data string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(data, "ca*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		files[i] = filepath.Base(f)
	}
	return strings.Join(files, " ")
}
