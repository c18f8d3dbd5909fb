//go:build linux

package cluster_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestExternalCreds: servers use a broker on their own machine without TLS, with a user that an operator of NATS has made.
func TestExternalCreds(t *testing.T) {
	t.Parallel() // it mostly waits
	i, address := newInstallation(t, 0), freeAddr(t)

	// The first server makes the id, which the permissions need. Without credentials it is not heard.
	stranger := i.add("--cluster-nats", "nats://"+address)
	creds, conf := operated(t, "gozzard."+installationOf(stranger)+".sv.>", address)
	program, err := buildNATS()
	if err != nil {
		t.Fatal(err)
	}
	ft.StartFile(t, "nats", program, "-c", i.file(conf))
	file := i.file(creds)
	for range 2 {
		i.add("--cluster-nats", "nats://"+address, "--cluster-nats-credentials", file)
	}
	i.servers = i.servers[1:]
	i.hearEachOther(true)
	if strings.Contains(stranger.Output(), "another server is there") {
		t.Error("a server without credentials hears the others")
	}
	stranger.Kill(syscall.SIGTERM) // a host could choose it
	for _, m := range i.servers {
		m.says("connected to the NATS cluster")
	}
	i.servers[0].join(faultHost(1))
	for _, m := range i.servers {
		m.online(faultHost(1), true)
	}
	i.operate(faultHost(1), "creds")
}

// operated is a user that may publish and subscribe on subjects, as a .creds file, and the configuration of a broker with
// its operator.
func operated(t *testing.T, subjects, address string) (creds, config string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	pair := func(create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		t.Helper()
		k, err := create()
		must(err)
		public, err := k.PublicKey()
		must(err)
		return k, public
	}

	operator, operatorID := pair(nkeys.CreateOperator)
	account, accountID := pair(nkeys.CreateAccount)
	user, userID := pair(nkeys.CreateUser)
	operatorJWT, err := jwt.NewOperatorClaims(operatorID).Encode(operator)
	must(err)
	accountJWT, err := jwt.NewAccountClaims(accountID).Encode(operator)
	must(err)
	claims := jwt.NewUserClaims(userID)
	claims.Pub.Allow.Add(subjects)
	claims.Sub.Allow.Add(subjects)
	userJWT, err := claims.Encode(account)
	must(err)
	seed, err := user.Seed()
	must(err)
	b, err := jwt.FormatUserConfig(userJWT, seed)
	must(err)
	return string(b), fmt.Sprintf("listen: %s\noperator: %s\nresolver: MEMORY\nresolver_preload: { %s: %s }\n", address, operatorJWT,
		accountID, accountJWT)
}
