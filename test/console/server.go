//go:build linux

package console

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/fleettest"
)

// Server is a running `gozzard server` for enrolled hosts, over TLS, with the page in it.
type Server struct {
	*Fleet
	args []string
}

// StartServer runs `gozzard server --enrol`. It skips the test where no browser or no page is.
func StartServer(t testing.TB, extra ...string) *Server {
	t.Helper()
	need(t)
	local := func() string { return "127.0.0.1:" + strconv.Itoa(fleettest.FreePort(t)) }
	data := filepath.Join(t.TempDir(), "server")
	args := append([]string{"server", "--data", data, "--listen", local(), "--agent-listen", local(), "--enrol",
		"--rate-app=0", "--max-failed-logins=0"}, extra...)
	dev := &fleettest.Dev{Program: fleettest.Start(t, "server", nil, args...), API: &fleettest.API{}, Data: data}
	s := &Server{&Fleet{Dev: dev}, args}
	s.ready(t)
	return s
}

// AgainWith starts the server again, with further flags.
func (s *Server) AgainWith(t testing.TB, extra ...string) {
	t.Helper()
	s.Kill(syscall.SIGTERM)
	s.args = append(s.args, extra...)
	s.Program = fleettest.Start(t, "server", nil, s.args...)
	s.ready(t)
}

// Restored starts a server from a backup in place of this one, which has ended.
func (s *Server) Restored(t testing.TB, file, key string) {
	t.Helper()
	lost := s.Data + ".lost"
	if err := os.Rename(s.Data, lost); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(fleettest.Binary(t), "backup", "restore", file, "--identity", key, "--data", s.Data)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot restore: %v: %s", err, out)
	}
	for _, name := range []string{"credentials.json", "ca.pem"} { // admins keep their own copy
		if err := os.Rename(filepath.Join(lost, name), filepath.Join(s.Data, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.Program = fleettest.Start(t, "server", nil, s.args...)
	s.ready(t)
}

// ready waits until the server answers.
func (s *Server) ready(t testing.TB) {
	t.Helper()
	dev, data := s.Dev, s.Data
	fleettest.Until(t, time.Minute, dev.Output, func() bool {
		b, err := os.ReadFile(filepath.Join(data, "credentials.json"))
		if err != nil || json.Unmarshal(b, &dev.Cred) != nil {
			return false
		}
		ca, err := os.ReadFile(filepath.Join(data, "ca.pem"))
		if err != nil {
			return false
		}
		s.Client, err = client.New(dev.Cred.URL, client.Credentials{AppCode: dev.Cred.AppCode,
			AppSecret: dev.Cred.Secret, Username: dev.Cred.Username, CA: string(ca)})
		return err == nil && s.Client.Ready(t.Context()) == nil
	})
	t.Cleanup(s.Client.Close)
}

// Open opens a new tab on the console, which accepts the server's own certificate.
func (s *Server) Open(t testing.TB) *Page {
	t.Helper()
	p := NewPage(t, strings.TrimRight(s.Cred.URL, "/"))
	p.fleet = s.Fleet
	p.must("accept the certificate", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, security.SetIgnoreCertificateErrors,
			security.SetIgnoreCertificateErrorsParams{Ignore: true})
		return err
	})
	p.Go("/console/")
	return p
}
