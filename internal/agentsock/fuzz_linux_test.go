package agentsock_test

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gozzard/gozzard/internal/agentsock"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// FuzzRequest: no request of a member changes anything, and a stranger's request that passed the listener gets only a
// rejection.
func FuzzRequest(f *testing.F) {
	z := fuzztest.New(f)
	for _, line := range []string{"GET /status", "GET /processes", "POST /reconnect", "POST /status",
		"POST //reconnect", "POST /./reconnect", "POST /%72econnect", "OPTIONS *"} {
		z.Add([]byte(line + " HTTP/1.1\r\nHost: agent\r\n\r\n"))
		z.Add([]byte(line + " HTTP/1.0\r\nContent-Length: 2\r\nX-HTTP-Method-Override: POST\r\n\r\n{}"))
	}

	z.Fuzz(func(t *testing.T, in []byte) {
		s := agentsock.New(agentsock.Options{
			Status:    func() agentsock.Status { return agentsock.Status{} },
			Processes: func(int) ([]agentsock.Process, int) { return nil, 0 },
			Reconnect: func() error { t.Error("the agent reconnected"); return nil },
			Log:       slog.New(slog.DiscardHandler),
		})

		for i, ctx := range []context.Context{agentsock.AsStranger(), agentsock.AsMember()} {
			r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(in)))
			if err != nil {
				return
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r.WithContext(ctx))
			if w.Code < 300 && i == 0 {
				t.Errorf("a stranger is answered with %d", w.Code)
			}
		}
	})
}
