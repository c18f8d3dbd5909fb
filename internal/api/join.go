package api

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"sync"
	"text/template"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/enrol"
)

// postLeave removes a host from the fleet. The certificate of the connection is its credential.
func (a *api) postLeave(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return err
	}

	var got enrol.Answer
	err = auth.Login(r, func() (string, error) {
		if len(r.TLS.PeerCertificates) == 0 {
			return "", gozzard.Errorf(gozzard.ErrUnauthenticated, "this needs the certificate of an enrolled host")
		}
		var req enrol.LeaveRequest
		if err := readValue(w, r, maxShortBody, &req); err != nil {
			return "", err
		}
		got, err = a.Enrol.Leave(r.Context(), from.Addr().Unmap(), r.TLS, req)
		return string(got.Agent), err
	})
	if err != nil {
		return refusedHost(err, "leave")
	}

	// The host is out. What cannot be taken away now goes at the next start of the server.
	host := memberRef(&enrol.AgentRecord{Agent: got.Agent, Cloud: got.Cloud, IPs: got.IPs})
	if err := a.forgetMember(r.Context(), gozzard.Caller{App: "enrolment"}, host); err != nil {
		a.Log.Error("cannot take away what belongs to a host that left", "agent", got.Agent, "err", err)
	}
	return answer(w, http.StatusOK, got)
}

// maxDownloads is how many hosts can download the program at the same time. Callers need no credentials for it.
const maxDownloads = 8

// JoinScript is what a host needs to install the program from the server and to join.
type JoinScript struct {
	Platform  string // of the program that the server has, such as linux-amd64
	Program   string // its file
	Version   string
	Authority func() string // in PEM; "": the authorities of the system know the certificate of the API
	Unit      string        // the systemd unit of the agent
	Settings  string        // agent.yaml

	sum   sync.Once
	hash  string
	fault error

	mu        sync.Mutex
	downloads int
}

//go:embed join.sh
var joinText string

var joinTemplate = template.Must(template.New("join").Parse(joinText))

// plainHost is the host and port of a server as a caller may write it. Nothing else gets into the script.
var plainHost = regexp.MustCompile(`^([A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?$`)

// getJoin sends the script that adds a host to the fleet.
func (a *api) getJoin(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	if a.Enrol == nil || a.Join == nil || r.TLS == nil {
		return gozzard.Errorf(gozzard.ErrNotFound, "this server serves only agents on its own machine")
	}
	if len(r.Host) > 255 || !plainHost.MatchString(r.Host) {
		return gozzard.Errorf(gozzard.ErrInvalid, "the name of the server in the request is not a host and a port")
	}
	hash, err := a.Join.checksum()
	if err != nil {
		return err
	}

	var b bytes.Buffer
	err = joinTemplate.Execute(&b, map[string]string{"Server": "https://" + r.Host, "Platform": a.Join.Platform,
		"Version": plainWord(a.Join.Version), "Sum": hash, "Authority": strings.TrimSpace(a.Join.Authority()),
		"Unit": strings.TrimSpace(a.Join.Unit), "Settings": strings.TrimSpace(a.Join.Settings)})
	if err != nil {
		return err
	}
	sendAs(w, http.StatusOK, "text/x-shellscript; charset=utf-8", b.Bytes())
	return nil
}

// getJoinProgram sends the program of the server to a host that runs the script.
func (a *api) getJoinProgram(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	if a.Enrol == nil || a.Join == nil || r.TLS == nil || r.PathValue("program") != "gozzard-"+a.Join.Platform {
		return gozzard.Errorf(gozzard.ErrNotFound, "this server has no such program")
	}
	if !a.Join.begin() {
		return gozzard.Errorf(gozzard.ErrUnavailable, "%d hosts download the program at this moment: try again",
			maxDownloads)
	}
	defer a.Join.end()

	f, err := os.Open(a.Join.Program)
	if err != nil {
		return fmt.Errorf("cannot read the program of this server: %w", err)
	}
	defer f.Close()
	return sendProgram(w, f)
}

// checksum is the SHA-256 of the program, computed once.
func (j *JoinScript) checksum() (string, error) {
	j.sum.Do(func() {
		f, err := os.Open(j.Program)
		if err != nil {
			j.fault = fmt.Errorf("cannot read the program of this server: %w", err)
			return
		}
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			j.fault = fmt.Errorf("cannot read the program of this server: %w", err)
			return
		}
		j.hash = hex.EncodeToString(h.Sum(nil))
	})
	return j.hash, j.fault
}

func (j *JoinScript) begin() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.downloads == maxDownloads {
		return false
	}
	j.downloads++
	return true
}

func (j *JoinScript) end() {
	j.mu.Lock()
	j.downloads--
	j.mu.Unlock()
}

// plainWord removes what a shell could understand from a word of the script.
func plainWord(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".+~-", r)) {
			return r
		}
		return '_'
	}, s)
}
