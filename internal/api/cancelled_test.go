package api_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
)

// TestCancelledRequest: a caller that does not wait any more is no error of the server. Every other failure is one.
func TestCancelledRequest(t *testing.T) {
	s, logged := newServer(t), &bytes.Buffer{}
	book, err := auth.New(auth.Config{Apps: []auth.App{
		{Code: "app", Secrets: []auth.Digest{auth.Hash(secret)}, AssertsUsers: true}}})
	if err != nil {
		t.Fatal(err)
	}
	s.handler = api.New(api.Options{Plane: s.plane, Authenticate: blueking.ByHeaders(book),
		Challenge: blueking.AuthorizationHeader, Metrics: api.NewMetrics(),
		Log: slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))})

	for _, tt := range []struct {
		what  string
		gone  bool
		cause error
		level string
	}{
		{"the caller went away", true, context.Canceled, "DEBUG"},
		{"the database failed", false, gozzard.Errorf(gozzard.ErrInternal, "no space"), "ERROR"},
		{"both", true, gozzard.Errorf(gozzard.ErrInternal, "no space"), "ERROR"},
		{"something else was cancelled", false, context.Canceled, "ERROR"},
	} {
		logged.Reset()
		ctx, cancel := context.WithCancel(t.Context())
		s.log = func(gozzard.Target, gozzard.LogQuery) (gozzard.LogChunk, error) {
			if tt.gone {
				cancel()
			}
			return gozzard.LogChunk{}, fmt.Errorf("cannot read: %w", tt.cause)
		}
		s.call("GET", "/api/v1/logs?namespace=shop&name=web&host=a1", "",
			func(r *http.Request) { *r = *r.WithContext(ctx) })
		cancel()
		if got := logged.String(); !strings.Contains(got, "level="+tt.level+" msg=\"request failed\"") {
			t.Errorf("%s: the log has %q", tt.what, got)
		}
	}
}
