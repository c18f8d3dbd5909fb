package sqlstore_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/sqlstore"
)

func TestParsePostgres(t *testing.T) {
	for text, want := range map[string]struct {
		name string
		has  string // part of the address that is used
		weak bool
	}{
		"postgres://u@db.example.com/g":                      {"postgres://db.example.com/g", "sslmode=verify-full", false},
		"postgresql://u:s3cret@db1,db2:5433/g":               {"postgres://db1,db2:5433/g", "target_session_attrs=read-write", false},
		"postgres://u@db/g?password=s3cret":                  {"postgres://db/g", "sslmode=verify-full", false},
		"postgres://u@db/g?sslmode=require":                  {"postgres://db/g", "sslmode=require", true},
		"postgres://u@db/g?sslmode=verify-ca":                {"postgres://db/g", "sslmode=verify-ca", false},
		"postgres://u@127.0.0.1/g?sslmode=disable":           {"postgres://127.0.0.1/g", "sslmode=disable", false},
		"postgres://u@[::1]:5432/g":                          {"postgres://[::1]:5432/g", "postgres://u@[::1]:5432/g", false},
		"postgres://u@/g?host=/run/postgresql":               {"postgres:///run/postgresql/g", "host=", false},
		"postgres://u@localhost,db2/g?sslmode=prefer":        {"postgres://localhost,db2/g", "sslmode=prefer", true},
		"postgres://u@/g?host=db.example.com&sslmode=prefer": {"postgres://db.example.com/g", "sslmode=prefer", true},
	} {
		a, err := sqlstore.ParsePostgres(text)
		if err != nil || a.Name != want.name || !strings.Contains(a.DSN, want.has) || (a.Weak != "") != want.weak ||
			a.Password != strings.Contains(text, "s3cret") {
			t.Errorf("%s: %+v, %v", text, a, err)
		}
	}

	for _, text := range []string{"", "gozzard.db", "mysql://u:s3cret@h/d", "postgres://u:s3cret@%zz/d", "host=x password=s3cret"} {
		_, err := sqlstore.ParsePostgres(text)
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
