//go:build linux

package console

import (
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/fleettest"
)

// StartCrowd runs `gozzard server` with simulated hosts. The hosts are offline while their program is stopped.
func StartCrowd(t testing.TB, hosts int) (f *Fleet, sim *fleettest.Program) {
	t.Helper()
	need(t)
	s := fleettest.StartServer(t, "")
	c, err := client.New(s.Cred.URL, client.Credentials{AppCode: s.Cred.AppCode, AppSecret: s.Cred.Secret,
		Username: s.Cred.Username})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	f = &Fleet{Dev: &fleettest.Dev{Program: s.Program, API: s.API, Data: s.Data}, Client: c}
	return f, s.StartSim(t, hosts)
}
