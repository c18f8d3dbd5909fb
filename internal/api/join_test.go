//go:build linux

package api_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/enrol"
)

// TestTD24JoinDownloads: strangers that download the program and do not read it hold eight places, and no more.
func TestTD24JoinDownloads(t *testing.T) {
	// A program that cannot be read yet.
	program := filepath.Join(t.TempDir(), "program")
	check(t, syscall.Mkfifo(program, 0o600))
	h := api.New(api.Options{Enrol: new(enrol.Registry), Join: &api.JoinScript{Platform: "linux-amd64", Program: program}})
	ask := func() int {
		r := httptest.NewRequest(http.MethodGet, "https://127.0.0.1:8443/api/v1/enrol/program/gozzard-linux-amd64", nil)
		r.TLS = &tls.ConnectionState{Version: tls.VersionTLS13}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}

	// Eight wait; the others are asked to come again.
	codes := make(chan int, 20)
	var wg sync.WaitGroup
	for range cap(codes) {
		wg.Go(func() { codes <- ask() })
	}
	for range cap(codes) - 8 {
		select {
		case code := <-codes:
			if code != http.StatusServiceUnavailable {
				t.Errorf("answered %d", code)
			}
		case <-time.After(time.Minute):
			t.Fatal("more than eight downloads at a time")
		}
	}

	// When the eight have ended, there is room again.
	wait := make(chan struct{})
	go func() { wg.Wait(); close(wait) }()
	for end, ended := time.Now().Add(time.Minute), false; !ended; {
		if f, err := os.OpenFile(program, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil { // some wait for it
			check(t, f.Close())
		}
		select {
		case <-wait:
			ended = true
		case <-time.After(10 * time.Millisecond):
			if time.Now().After(end) {
				t.Fatal("the downloads did not end")
			}
		}
	}
	close(codes)
	for code := range codes {
		if code != http.StatusOK {
			t.Errorf("answered %d", code)
		}
	}
}
