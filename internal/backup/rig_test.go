package backup_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/test/storetest"
)

// rig is the data folder of a server that has run, and a key pair.
type rig struct {
	data       string
	recipients []age.Recipient
	ids        []age.Identity
	secret     string
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{data: t.TempDir()}
	if err := os.Chmod(r.data, 0o700); err != nil {
		t.Fatal(err)
	}

	storetest.NewSQLite(t, filepath.Join(r.data, backup.RecordFile))
	s, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(r.data, backup.RecordFile), sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := enrol.OpenAuthority(r.data, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := signing.OpenSigner(r.data, nil); err != nil {
		t.Fatal(err)
	}

	for i := range 50 { // some rows for the audit
		app := auth.App{Code: "app" + strconv.Itoa(i), Secrets: []auth.Digest{auth.Hash("x")},
			Grants: []gozzard.Grant{{Role: gozzard.RoleViewer}}}
		if err := s.ChangeAccounts(t.Context(), auth.Change{At: time.Now(), Act: "app:create " + app.Code,
			Apps: []auth.App{app}}); err != nil {
			t.Fatal(err)
		}
	}

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	var recipient string
	if r.secret, recipient, err = backup.NewIdentity(); err != nil {
		t.Fatal(err)
	}
	if r.recipients, err = backup.ParseRecipients([]string{recipient}); err != nil {
		t.Fatal(err)
	}
	if r.ids, err = backup.ParseIdentities([]byte(r.secret + "\n")); err != nil {
		t.Fatal(err)
	}

	return r
}

func (r *rig) create(t testing.TB) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "backup.age")
	if _, _, err := backup.Create(t.Context(), backup.CreateOptions{
		Database: sqlstore.Files{}, Data: r.data, To: to, Recipients: r.recipients, Program: "test",
	}); err != nil {
		t.Fatal(err)
	}
	return to
}

// verify checks a backup with the given keys.
func verify(t testing.TB, file string, ids []age.Identity, temp string) (backup.Contents, error) {
	t.Helper()
	return backup.Verify(t.Context(), backup.VerifyOptions{
		Database: sqlstore.Files{}, File: file, Identities: ids, Temp: temp,
	})
}
