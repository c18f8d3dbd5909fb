package ratelimit_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/ratelimit"
)

// TestLongWait: no connection is closed while the server works, with and without a body.
func TestLongBodyAndLongWait(t *testing.T) {
	addr := serve(t, ratelimit.New(ratelimit.Options{}), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
		fmt.Fprint(w, len(b))
	}))

	for _, size := range []int{0, 1, 10 << 20} {
		res, err := http.Post("http://"+addr, "application/json", bytes.NewReader(make([]byte, size)))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || string(b) != strconv.Itoa(size) {
			t.Fatalf("%d bytes: %q, %v", size, b, err)
		}
	}
}

// TestRestOfABody: a client that sends everything before it reads gets its answer. One that stops in the middle of its
// body holds the connection for a limited time.
func TestRestOfABody(t *testing.T) {
	send := func(t *testing.T, drain time.Duration, length, sent int) string {
		server := httptest.NewServer(newRig(t, ratelimit.Options{Drain: drain}).handler)
		defer server.Close()
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}

		defer c.Close()
		body := `{"bk_app_code":"a","bk_app_secret":"s-a","bk_username":"u","pad":"` + strings.Repeat("x", sent)
		head := fmt.Sprintf("POST /bus/caller HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", length)
		if _, err := c.Write([]byte(head + body)); err != nil {
			t.Fatalf("%d of %d bytes were not taken: %v", sent, length, err)
		}
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 4096)
		n, err := io.ReadAtLeast(c, b, 15)
		if err != nil {
			t.Fatalf("%d of %d bytes: no answer: %v", sent, length, err)
		}
		return string(b[:n])
	}

	const mib = 1 << 20
	overhead := len(`{"bk_app_code":"a","bk_app_secret":"s-a","bk_username":"u","pad":"`)
	const tooLong, cut = "more than 4 MiB", "to its end"
	for _, tt := range []struct {
		drain        time.Duration
		length, sent int
		want         string
	}{
		{time.Minute, 5*mib + overhead, 5 * mib, tooLong},
		{time.Minute, 65*mib + overhead, 65 * mib, tooLong},
		{5 * time.Second, 65 * mib, 20 * mib, tooLong}, // it stops, and so do the next ones
		{5 * time.Second, 65 * mib, 5 * mib, tooLong},
		{5 * time.Second, 65 * mib, 100, cut},
		{time.Minute, 4*mib - 100, 4*mib - 10_000, cut}, // bytes that came fast give no more time to wait for others
	} {
		t.Run(fmt.Sprintf("%d of %d bytes", tt.sent, tt.length), func(t *testing.T) {
			t.Parallel()
			if got := send(t, tt.drain, tt.length, tt.sent); !strings.Contains(got, tt.want) {
				t.Errorf("%s, want %q", got, tt.want)
			}
		})
	}
}
