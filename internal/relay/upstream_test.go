package relay

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/enrol"
)

// TestCarryEndsWithTheServer: the server is lost before it has answered, and the host says nothing. Its connection ends at once:
// a host that waits for its own time-out comes back seconds later than the others.
func TestCarryEndsWithTheServer(t *testing.T) {
	entered, over := make(chan struct{}), make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-over
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(over) })
	u, err := dial(t.Context(), srv.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer u.close()

	host, ours := net.Pipe()
	defer host.Close()
	ended := make(chan struct{})
	go func() {
		u.carry(ours, enrol.RelayAgentsPath)
		close(ended)
	}()
	<-entered
	go srv.CloseClientConnections()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the connection of the host is still open")
	}
	if _, err := host.Read(make([]byte, 1)); err == nil {
		t.Error("the connection of the host was not closed")
	}
}
