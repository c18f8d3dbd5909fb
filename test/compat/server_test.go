//go:build linux

package compat_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// credentials is a file such as credentials.json.
type credentials struct {
	URL      string `json:"url"`
	App      string `json:"bk_app_code,omitempty"`
	Secret   string `json:"bk_app_secret,omitempty"`
	Username string `json:"bk_username,omitempty"`
	Token    string `json:"bk_token,omitempty"`
	CA       string `json:"ca,omitempty"`
}

func readCredentials(t *testing.T, path string) (c credentials) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, path)), &c); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return c
}

// server is a running server, or a fleet in one process, with the credentials of its admin.
type server struct {
	*daemon
	data   string
	args   []string
	listen string // address for callers
	agents string // address for agents
	admin  credentials
	web    *http.Client
}

// newServer is a server on a data folder of a fixture, which is not started yet. It keeps its addresses.
func newServer(t *testing.T, data string, flags ...string) *server {
	t.Helper()
	s := &server{data: data, agents: freeAddress(t), listen: freeAddress(t)}
	// Results are kept from the day on which the fixture was made; tests may ask at any pace.
	s.args = append([]string{"server", "--data", data, "--listen", s.listen, "--agent-listen", s.agents,
		"--keep-results", "876000h", "--max-token-age", "0", "--rate-app", "0", "--max-failed-logins", "0"}, flags...)
	return s
}

// begin starts the server, for the first time or again, and waits until it answers.
func (s *server) begin(t *testing.T) {
	t.Helper()
	s.daemon = start(t, "server", s.args...)
	s.await(filepath.Join(s.data, "credentials.json"))
}

// await reads the admin's credentials, puts the new address into them and waits until the server answers.
func (s *server) await(file string) {
	t := s.t
	t.Helper()
	s.until("there are credentials", func() bool { _, err := os.Stat(file); return err == nil })
	s.admin = readCredentials(t, file)
	scheme, transport := "http://", &http.Transport{}

	if s.admin.CA != "" {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(s.admin.CA))
		scheme, transport.TLSClientConfig = "https://", &tls.Config{RootCAs: pool}
	}

	s.admin.URL, s.web = scheme+s.listen, &http.Client{Transport: transport}
	t.Cleanup(s.web.CloseIdleConnections)

	s.until("it is ready", func() bool {
		res, err := s.web.Get(s.admin.URL + "/readyz")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// as is the environment of commands that use a credentials file of a fixture at the server's new address.
func (s *server) as(file string) []string {
	s.t.Helper()
	return []string{"GOZZARD_CREDENTIALS=" + file, "GOZZARD_URL=" + s.admin.URL}
}

func (s *server) asAdmin() []string { return s.as(filepath.Join(s.data, "credentials.json")) }

// call sends a request with credentials in the headers. An empty body is none.
func (s *server) call(caller credentials, method, path, body string, header ...string) (status int, answer []byte) {
	t := s.t
	t.Helper()
	var content io.Reader

	if body != "" {
		content = strings.NewReader(body)
	}

	req, err := http.NewRequestWithContext(t.Context(), method, s.admin.URL+path, content)
	if err != nil {
		t.Fatal(err)
	}

	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}

	if caller.App != "" {
		b, err := json.Marshal(credentials{App: caller.App, Secret: caller.Secret, Username: caller.Username})
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Bkapi-Authorization", string(b))
	} else if caller.Token != "" {
		req.Header.Set("Authorization", "Bearer "+caller.Token)
	}

	if strings.HasPrefix(path, "/api/v1/") && body != "" {
		req.Header.Set("Content-Type", "application/json")
	}

	res, err := s.web.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}

	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}

	return res.StatusCode, answer
}

// get asks our own API as the admin; the answer is decoded into out.
func (s *server) get(path string, out any) {
	s.t.Helper()
	status, answer := s.call(s.admin, http.MethodGet, path, "")
	if err := json.Unmarshal(answer, out); err != nil || status != http.StatusOK {
		s.t.Fatalf("%s: HTTP %d, %v in %s", path, status, err, answer)
	}
}

const (
	gse    = "/api/c/compapi/v2/gse/"
	job    = "/api/c/compapi/v2/job/"
	gsekit = "/api/c/compapi/v2/gsekit/api/"
)

// entry is what one target of a task came to, as the GSE door says it.
type entry struct {
	Code int    `json:"error_code"`
	Text string `json:"error_msg"`
}

// operate sends an operation by the GSE door and waits for its end. The key of the only entry is left out.
func (s *server) operate(name, ip, op string) entry {
	s.t.Helper()
	body := `{"meta":{"namespace":"demo","name":"` + name + `"},` +
		`"hosts":[{"ip":"` + ip + `","bk_cloud_id":0,"bk_supplier_id":0}],"op_type":` + op + `}`
	var made struct {
		Data struct {
			Task string `json:"task_id"`
		} `json:"data"`
	}
	_, answer := s.call(s.admin, http.MethodPost, gse+"operate_proc/", body)
	if err := json.Unmarshal(answer, &made); err != nil || made.Data.Task == "" {
		s.t.Fatalf("operate_proc: %v in %s", err, answer)
	}

	return s.verdict(made.Data.Task)
}

// verdict waits for the end of a task with one target.
func (s *server) verdict(task string) (e entry) {
	s.t.Helper()

	s.until("task "+task+" has ended", func() bool {
		var result struct {
			Data map[string]entry `json:"data"`
		}
		_, answer := s.call(s.admin, http.MethodPost, gse+"get_proc_operate_result/", `{"task_id":"`+task+`"}`)
		if err := json.Unmarshal(answer, &result); err != nil || len(result.Data) != 1 {
			s.t.Fatalf("get_proc_operate_result: %v in %s", err, answer)
		}
		for _, e = range result.Data {
		}
		return e.Code != 115
	})

	return e
}

// process is a row of the processes that the server knows.
type process struct {
	Host struct {
		IP string `json:"ip"`
	} `json:"host"`
	Name    string `json:"name"`
	State   string `json:"state"`
	Managed bool   `json:"managed"`
	PID     int    `json:"pid"`
	Stale   bool   `json:"stale"`
}

// processes are those of one namespace, by name and host.
func (s *server) processes(namespace string) map[string]process {
	s.t.Helper()
	var page struct {
		Processes []process `json:"processes"`
	}
	s.get("/api/v1/processes?limit=1000&namespace="+url.QueryEscape(namespace), &page)
	out := map[string]process{}
	for _, p := range page.Processes {
		out[p.Name+"@"+p.Host.IP] = p
	}
	return out
}

// online are the agents by address, of hosts that are online.
func (s *server) online() map[string]string {
	s.t.Helper()
	var page struct {
		Hosts []struct {
			Agent  string `json:"agent"`
			Online bool   `json:"online"`
			Addrs  []struct {
				IP string `json:"ip"`
			} `json:"addrs"`
		} `json:"hosts"`
	}
	s.get("/api/v1/hosts?limit=100", &page)
	out := map[string]string{}
	for _, h := range page.Hosts {
		if h.Online && len(h.Addrs) > 0 {
			out[h.Addrs[0].IP] = h.Agent
		}
	}

	return out
}
