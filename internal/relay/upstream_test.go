package relay

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/enrol"
)

// serverOf is a server that answers requests of a relay as the handler does.
func serverOf(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *upstream) {
	t.Helper()
	srv := httptest.NewUnstartedServer(handler)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	u, err := dial(t.Context(), srv.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.close)
	return srv, u
}

// TestCarryEndsWithTheServer: the server is lost before it has answered, and the host says nothing. Its connection ends at once:
// a host that waits for its own time-out comes back seconds later than the others.
func TestCarryEndsWithTheServer(t *testing.T) {
	entered, over := make(chan struct{}), make(chan struct{})
	srv, u := serverOf(t, func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-over
	})
	defer close(over)

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

// TestCarryGivesTheWholeAnswer: the server has sent everything and ends the stream, while the host still reads.
func TestCarryGivesTheWholeAnswer(t *testing.T) {
	answer := bytes.Repeat([]byte("0123456789abcdef"), 1<<12)
	_, u := serverOf(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) })
	for range 20 {
		host, ours := net.Pipe()
		go u.carry(ours, enrol.RelayAPIPath)
		time.Sleep(5 * time.Millisecond) // the stream has ended, nothing is read
		got, err := io.ReadAll(host)
		if err != nil || !bytes.Equal(got, answer) {
			t.Fatalf("the host got %d of %d bytes: %v", len(got), len(answer), err)
		}
	}
}
