package enrol_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
)

// TestRenewalAtAnotherServer: a host that cannot reach the server that it joined renews at another one. What a server has
// refused is not asked of another.
func TestRenewalAtAnotherServer(t *testing.T) {
	r := newRig(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // a server that ends connections before it answers
	must(t, err)
	done := make(chan int)
	go func() {
		n := 0
		for {
			c, err := silent.Accept()
			if err != nil {
				done <- n
				return
			}
			n++
			_ = c.Close()
		}
	}()

	m := r.member("a", 1)
	m.Server = "https://127.0.0.1:1"
	keep := enrol.NewRenewer(m, "machine", nil)
	if err := keep.Renew(t.Context()); err == nil {
		t.Fatal("renewed without a server")
	}
	keep.SetServers([]string{"https://" + silent.Addr().String(), r.url})
	must(t, keep.Renew(t.Context()))

	keep.SetServers([]string{r.url, "https://" + silent.Addr().String()})
	_, err = r.registry.SetState(t.Context(), admin(), "a", enrol.StateRevoked)
	must(t, err)
	if err := keep.Renew(t.Context()); err == nil {
		t.Error("a revoked host was renewed")
	}
	must(t, silent.Close())
	if n := <-done; n != 1 {
		t.Errorf("the other server was asked %d times, want once", n)
	}
}

// TestJoinStoresTheServers: the enrolment has all servers that the server names, and leaves out what is no address.
func TestJoinStoresTheServers(t *testing.T) {
	r := newRig(t)
	r.servers = []gozzard.ServerAddress{{Agents: "10.0.0.1:4230", API: "https://10.0.0.1:8443"}, {Agents: "nowhere"},
		{Agents: "10.0.0.2:4230"}}
	dir := t.TempDir()
	_, err := r.join(r.token(enrol.TokenRequest{}), "a", 1, dir)
	must(t, err)
	m, err := enrol.LoadMembership(dir)
	must(t, err)
	if len(m.Servers) != 2 || m.Servers[0].API != "https://10.0.0.1:8443" || m.Servers[1].Agents != "10.0.0.2:4230" {
		t.Errorf("got %+v", m.Servers)
	}

	// With one server nothing is said, and the file has the form of earlier versions.
	r.servers = nil
	dir = t.TempDir()
	_, err = r.join(r.token(enrol.TokenRequest{}), "b", 2, dir)
	must(t, err)
	b, err := os.ReadFile(filepath.Join(dir, "enrolment.json"))
	must(t, err)
	var fields map[string]any
	must(t, json.Unmarshal(b, &fields))
	if _, ok := fields["servers"]; ok {
		t.Errorf("got %s", b)
	}
}
