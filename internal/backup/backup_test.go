package backup_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

func TestBackupAndRestore(t *testing.T) {
	r := newRig(t)
	file := r.create(t)
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}

	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	for _, secret := range []string{"SQLite format 3", "PRIVATE KEY", "seed", "app17"} {
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("%q can be read in the backup", secret)
		}
	}

	if left, err := filepath.Glob(filepath.Join(r.data, ".backup-*")); err != nil || len(left) > 0 {
		t.Errorf("left in the data folder: %v, %v", left, err)
	}
	if n, err := backup.LastNote(r.data); err != nil || n.File != file || n.Bytes != int64(len(b)) ||
		time.Since(n.Taken) > time.Hour {
		t.Errorf("noted: %+v, %v", n, err)
	}

	temp := t.TempDir()
	c, err := verify(t, file, r.ids, temp)
	if err != nil {
		t.Fatal(err)
	}
	if c.Record.Apps != 50 || c.Record.AuditRows != 50 || c.Epoch != 1 || c.Authority == "" || c.Program != "test" {
		t.Errorf("found %+v", c)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left after the drill: %v, %v", left, err)
	}

	data := filepath.Join(t.TempDir(), "new", "data")
	got, err := backup.Restore(t.Context(), backup.RestoreOptions{
		Database: sqlstore.Files{}, File: file, Identities: r.ids, Data: data,
	})
	if err != nil {
		t.Fatal(err)
	}

	var names []string
	list, err := os.ReadDir(data)
	if err != nil {
		t.Fatal(err)
	}

	for _, e := range list {
		names = append(names, e.Name())
	}

	if !slices.Equal(names, []string{"ca.key", "gozzard.db", "signing.key"}) {
		t.Errorf("restored %v", names)
	}

	keys, err := signing.Keys(data)
	if err != nil || len(keys) != 2 || keys[1].Key != got.Signing || got.Signing.Epoch != 2 {
		t.Errorf("the signing key did not move on: %+v, %v", keys, err)
	}

	v, err := sqlstore.Look(t.Context(), filepath.Join(data, backup.RecordFile))
	if err != nil || v.Apps != 50 || v.Restored.IsZero() || v.AuditRows != 51 {
		t.Errorf("the restored record: %+v, %v", v, err)
	}
	if _, err := backup.Restore(t.Context(), backup.RestoreOptions{Database: sqlstore.Files{}, File: file, Identities: r.ids,
		Data: data}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("restored over what is there: %v", err)
	}

	if _, _, err := backup.Create(t.Context(), backup.CreateOptions{Database: sqlstore.Files{}, Data: r.data, To: file,
		Recipients: r.recipients}); err == nil {
		t.Error("a backup was written over another one")
	}
}

// TestRestoreWithANewerKey: agents that have obeyed a newer epoch reject the key in the backup. A newer key file of the
// same server replaces it.
func TestRestoreWithANewerKey(t *testing.T) {
	r := newRig(t)
	file := r.create(t)

	for range 2 {
		if _, _, err := signing.Rotate(r.data, nil); err != nil {
			t.Fatal(err)
		}
	}

	got, err := backup.Restore(t.Context(), backup.RestoreOptions{Database: sqlstore.Files{}, File: file, Identities: r.ids,
		Data:       filepath.Join(t.TempDir(), "d"),
		SigningKey: filepath.Join(r.data, signing.SignerFile)})
	if err != nil || got.Signing.Epoch != 4 {
		t.Errorf("epoch %d, %v", got.Signing.Epoch, err)
	}

	other := newRig(t)
	_, err = backup.Restore(t.Context(), backup.RestoreOptions{Database: sqlstore.Files{}, File: file, Identities: r.ids,
		Data:       filepath.Join(t.TempDir(), "d"),
		SigningKey: filepath.Join(other.data, signing.SignerFile)})
	if err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("the key of another server was taken: %v", err)
	}
}

func TestPassphrase(t *testing.T) {
	r := newRig(t)
	word := []byte("correct horse battery\n")
	to, err := backup.Passphrase(word, 10)
	if err != nil {
		t.Fatal(err)
	}

	file := filepath.Join(t.TempDir(), "b.age")
	if _, _, err := backup.Create(t.Context(), backup.CreateOptions{Database: sqlstore.Files{}, Data: r.data, To: file,
		Recipients: to}); err != nil {
		t.Fatal(err)
	}

	ids, err := backup.PassphraseIdentity(bytes.TrimSpace(word))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verify(t, file, ids, t.TempDir()); err != nil {
		t.Error(err)
	}
	if _, err := verify(t, file, r.ids, t.TempDir()); err == nil {
		t.Error("taken out by a key that it was not made for")
	}
	if _, err := backup.Passphrase([]byte("short"), 10); err == nil {
		t.Error("a short passphrase is taken")
	}
}

func TestKeysAreNotMixedUp(t *testing.T) {
	r := newRig(t)
	for _, bad := range [][]string{{}, {""}, {"age1abc"}, {r.secret}, {"ssh-ed25519 AAAA"}, make([]string, 17)} {
		_, err := backup.ParseRecipients(bad)
		if err == nil || strings.Contains(err.Error(), r.secret) {
			t.Errorf("%q: %v", bad, err)
		}
	}

	for _, bad := range []string{"", "age1abc", strings.ToLower(r.secret), r.secret[:40]} {
		if _, err := backup.ParseIdentities([]byte(bad)); err == nil || len(bad) > 20 &&
			strings.Contains(err.Error(), bad[20:]) {
			t.Errorf("%.10q…: %v", bad, err)
		}
	}
}

func TestScheduler(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	foreign := filepath.Join(dir, "gozzard-old.age")
	if err := os.WriteFile(foreign, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}

	now := time.Now()
	// Leftovers of programs that were killed.
	oldPart := filepath.Join(dir, ".gozzard-20200101T000000.000Z.age-123")
	part := filepath.Join(dir, ".gozzard-20200101T000000.000Z.age.tmp-123")
	work := filepath.Join(r.data, ".backup-1")
	if err := errors.Join(os.WriteFile(oldPart, []byte("x"), 0o600), os.WriteFile(part, []byte("x"), 0o600),
		os.Mkdir(work, 0o700)); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{oldPart, part, work} {
		if err := os.Chtimes(name, now.Add(-48*time.Hour), now.Add(-48*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}

	k, err := backup.NewScheduler(backup.SchedulerOptions{
		Database: sqlstore.Files{}, Data: r.data, Dir: dir, Every: time.Hour, Keep: 2,
		Recipients: r.recipients, Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Newest(dir); err == nil {
		t.Error("a backup is there before the first")
	}

	for i := range 4 {
		if err := k.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		if at, err := backup.Newest(dir); err != nil || !at.Equal(now.Truncate(time.Millisecond)) {
			t.Errorf("newest after %d: %v, %v", i, at, err)
		}
		now = now.Add(time.Hour)
	}

	files, err := fs.Glob(os.DirFS(dir), "gozzard-2*.age")
	if err != nil || len(files) != 2 {
		t.Errorf("kept %v, %v", files, err)
	}

	for _, name := range []string{oldPart, part, work} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is still there", name)
		}
	}

	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("a file that is not a backup: %v", err)
	}
	bad := backup.SchedulerOptions{Database: sqlstore.Files{}, Data: r.data, Dir: foreign}
	if _, err := backup.NewScheduler(bad); err == nil {
		t.Error("a file is taken for a folder")
	}
}

// TestSchedulerReportsFailures: Done is called for a backup that fails, and for one that succeeds.
func TestSchedulerReportsFailures(t *testing.T) {
	r := newRig(t)
	reported := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	run := func(data string) (end func()) {
		k, err := backup.NewScheduler(backup.SchedulerOptions{
			Database: sqlstore.Files{}, Data: data, Dir: t.TempDir(), Every: time.Hour, Keep: 1,
			Recipients: r.recipients, Done: func(_ time.Time, err error) {
				select {
				case reported <- err:
				case <-ctx.Done():
				}
			}})
		if err != nil {
			t.Fatal(err)
		}

		done := make(chan error, 1)
		go func() { done <- k.Run(ctx) }()

		return func() {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}

	endBad := run(t.TempDir())

	if err := <-reported; err == nil || !strings.Contains(err.Error(), "not the data folder of a server") {
		t.Errorf("reported %v", err)
	}

	endGood := run(r.data)

	if err := <-reported; err != nil {
		t.Errorf("reported %v", err)
	}

	cancel()
	endBad()
	endGood()
}
