package gse_test

import (
	"net/http"
	"testing"

	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/blueking/gse"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/test/goldentest"
)

// The real plane fits the door.
var _ gse.Plane = (*control.Plane)(nil)

func book(t testing.TB) *auth.Directory {
	t.Helper()
	secret := []auth.Digest{auth.Hash("secret")}
	b, err := auth.New(auth.Config{
		Apps: []auth.App{
			{Code: "bk_gsekit", Secrets: secret, AssertsUsers: true},
			{Code: "bk_nodeman", Secrets: secret, AssertsUsers: true},
			{Code: "bk_cmdb", Secrets: secret, AssertsUsers: true, MissingActionMeansStart: true},
			{Code: "web", Secrets: secret},
		},
		Tokens: []auth.Token{{User: "alice", Digest: auth.Hash("token")}},
	})
	if err != nil {
		t.Fatal(err)
	}

	return b
}

func newDoor(t testing.TB) (*blueking.Handler, *fake) {
	t.Helper()
	plane := &fake{results: tasks(), rows: 3, hosts: knownHosts()}
	return gse.New(gse.Options{Plane: plane, Auth: book(t)}), plane
}

func TestGolden(t *testing.T) {
	goldentest.Run(t, 40, func(t *testing.T) (http.Handler, func() any) {
		door, plane := newDoor(t)
		return door, func() any { return plane.calls }
	})
}
