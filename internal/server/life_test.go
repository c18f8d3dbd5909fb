package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server that cannot be opened leaves nothing open, at whatever step it fails: the same folder can be opened again,
// and no goroutine stays (TestMain checks that).
func TestFailedStartLeavesNothingOpen(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()

	data := t.TempDir()
	for name, tt := range map[string]struct {
		edit func(o *Options)
		want string
	}{
		"fabric":      {func(o *Options) { o.AgentListen = busy.Addr().String() }, "(--agent-listen)"},
		"join secret": {func(o *Options) { o.JoinSecret = "short" }, "join secret"},
		"trust":       {func(o *Options) { o.Trust.Cert = "x" }, "--tls-cert and --tls-key go together"},
		"release key": {func(o *Options) {
			o.AgentListen, o.Trust.Enrol, o.Release.Key = "127.0.0.1:0", true, data+"/none"
		}, "cannot read --release-key"},
		"login":    {func(o *Options) { o.Login.LoginURL = "paas" }, "--bk-login-url"},
		"provider": {func(o *Options) { o.Login.Issuer = "paas" }, "--oidc-issuer"},
		"CMDB":     {func(o *Options) { o.CMDB.Businesses = []int{2} }, "need --cmdb-url"},
		"backups":  {func(o *Options) { o.Backup.To, o.Backup.Every = data, time.Second }, "--backup-every"},
		"address":  {func(o *Options) { o.Listen, o.Checkpoint = busy.Addr().String(), time.Hour }, "cannot serve the API"},
		"in the open": {func(o *Options) { o.Listen, o.Trust.Cert = "nonsense", "" },
			"use ADDRESS:PORT"},
	} {
		o := testOptions(t, data)
		tt.edit(&o)
		if s, err := New(t.Context(), o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
			if s != nil {
				s.Close()
			}
		}
	}

	s := open(t, data)
	s.Close()
	s.Close() // once more does nothing
}

// Run serves until its context ends, and closes everything.
func TestRunServesAndEnds(t *testing.T) {
	o := testOptions(t, t.TempDir())
	o.Checkpoint = time.Hour
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()

	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := c.Get(s.URL() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%d %v", res.StatusCode, err)
	}

	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if files, err := CheckpointFiles(o.Data); err != nil || len(files) != 1 {
		t.Errorf("checkpoints: %v %v", files, err)
	}
	if _, err := c.Get(s.URL() + "/readyz"); err == nil {
		t.Error("it still serves")
	}
}

// brokenPart fails when it runs.
type brokenPart struct{}

var errBroken = errors.New("broken")

func (brokenPart) Run(context.Context) error { return errBroken }
func (brokenPart) Close()                    {}

// The end of one part is the end of the server, with its error.
func TestAPartThatFailsEndsTheServer(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.run(t.Context(), brokenPart{}); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}
