package job_test

import (
	"net/http"
	"testing"

	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/blueking/job"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/test/goldentest"
)

// The real plane fits the door.
var _ job.Plane = (*control.Plane)(nil)

func newDoor(t testing.TB) (*blueking.Handler, *fake) {
	t.Helper()
	secret := []auth.Digest{auth.Hash("xxx")}
	book, err := auth.New(auth.Config{
		Apps: []auth.App{{Code: "esb_test", Secrets: secret},
			{Code: "bk_monitor", Secrets: secret, AssertsUsers: true}},
		Tokens: []auth.Token{{User: "alice", Digest: auth.Hash("xxx")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	plane := &fake{results: tasks()}
	return job.New(job.Options{Plane: plane, Auth: book, MaxHosts: 10}), plane
}

func TestGolden(t *testing.T) {
	goldentest.Run(t, 15, func(t *testing.T) (http.Handler, func() any) {
		door, plane := newDoor(t)
		return door, func() any { return plane.calls }
	})
}
