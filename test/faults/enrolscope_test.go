//go:build linux

package faults_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// scope is a server and hosts in network namespaces, with people that may do a part of what an admin may.
type scope struct {
	*ft.Network
	t      *testing.T
	s      *ft.Server
	people map[string]string // tokens of sessions
}

func newScope(t *testing.T, hosts int, extra ...string) *scope {
	t.Helper()
	needs(t, "ip", "nsenter")
	f := &scope{t: t, Network: ft.NewNetwork(t, hosts), people: map[string]string{}}
	f.s = f.StartServer(extra...)
	return f
}

// ask sends a request of a person, or of the admin if by is "". It returns the answer without its request id.
func (f *scope) ask(by, method, path, body string) (status int, answer string) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, strings.TrimSuffix(f.s.Cred.URL, "/")+path,
		strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	if by != "" {
		req.Header.Set("Authorization", "Bearer "+f.people[by])
	} else {
		cred, err := json.Marshal(ft.J{"bk_app_code": f.s.Cred.AppCode, "bk_app_secret": f.s.Cred.Secret,
			"bk_username": f.s.Cred.Username})
		if err != nil {
			f.t.Fatal(err)
		}
		req.Header.Set("X-Bkapi-Authorization", string(cred))
	}

	res, err := f.s.Client.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	before, id, found := strings.Cut(string(b), `"request_id":"`)
	if found {
		_, after, _ := strings.Cut(id, `"`)
		return res.StatusCode, before + after
	}
	return res.StatusCode, string(b)
}

// want asks and checks the status of the answer.
func (f *scope) want(status int, by, method, path, body string) string {
	f.t.Helper()
	got, answer := f.ask(by, method, path, body)
	if got != status {
		f.t.Errorf("%s %s %s by %q answers %d, want %d: %s", method, path, body, by, got, status, answer)
	}
	return answer
}

// enroller makes a person with the role enroller, for networks or for all.
func (f *scope) enroller(name string, nets ...string) {
	f.t.Helper()
	grant, err := json.Marshal(ft.J{"role": "enroller", "nets": nets})
	if err != nil {
		f.t.Fatal(err)
	}
	if len(nets) == 0 {
		grant = []byte(`{"role":"enroller"}`)
	}
	f.want(http.StatusCreated, "", "POST", "/api/v1/users",
		fmt.Sprintf(`{"name":%q,"password":"a long password of a test","grants":[%s]}`, name, grant))
	f.login(name)
}

// login opens a session of a person.
func (f *scope) login(name string) {
	f.t.Helper()
	var session struct{ Token string }
	login := f.want(http.StatusOK, "", "POST", "/api/v1/login",
		fmt.Sprintf(`{"user":%q,"password":"a long password of a test"}`, name))
	if err := json.Unmarshal([]byte(login), &session); err != nil || session.Token == "" {
		f.t.Fatalf("%s cannot log in: %s", name, login)
	}
	f.people[name] = session.Token
}

// token makes an enrolment token and returns its text.
func (f *scope) token(by, request string) string {
	f.t.Helper()
	var made struct{ Token string }
	answer := f.want(http.StatusCreated, by, "POST", "/api/v1/enrol/tokens", request)
	if err := json.Unmarshal([]byte(answer), &made); err != nil || made.Token == "" {
		f.t.Fatalf("no token: %s", answer)
	}
	return made.Token
}

// noToken asks for a token for a member and checks the status of the answer. If there is a token, a host uses it.
func (f *scope) noToken(status int, by, agent, nets string, i int, dir string) {
	f.t.Helper()
	answer := f.want(status, by, "POST", "/api/v1/enrol/tokens", `{"agent":"`+agent+`"`+nets+`}`)
	var made struct{ Token string }
	if json.Unmarshal([]byte(answer), &made) != nil || made.Token == "" {
		return
	}
	out, err := f.joins(i, made.Token, dir)
	f.t.Errorf("host %d joins with the token that %s made: %v: %s: the member is %s", i, by, err, out, f.trust(agent))
}

// joins lets a host use a token.
func (f *scope) joins(i int, token, dir string, ips ...string) (string, error) {
	f.t.Helper()
	file := filepath.Join(f.t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		f.t.Fatal(err)
	}
	args := []string{ft.Binary(f.t), "agent", "join", "--server", "https://" + f.Addr(0) + ":8443", "--token-file", file,
		"--data", dir}
	for _, ip := range ips {
		args = append(args, "--ip", ip)
	}
	return f.Run(i, args...)
}

// refused lets a host use a token in vain. The answer must not name a foreign agent.
func (f *scope) refused(why string, i int, token, dir, secret string, ips ...string) {
	f.t.Helper()
	out, err := f.joins(i, token, dir, ips...)
	if err == nil {
		f.t.Errorf("%s: joined: %s", why, out)
	}
	if secret != "" && strings.Contains(out, secret) {
		f.t.Errorf("%s: the refusal names the agent: %s", why, out)
	}
}

// folder is a state folder with a policy that allows everything.
func (f *scope) folder() string {
	f.t.Helper()
	dir := f.t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		f.t.Fatal(err)
	}
	ft.AllowEverything(f.t, dir)
	return dir
}

// edit changes the enrolment of a state folder by hand.
func (f *scope) edit(dir string, change func(ft.J)) {
	f.t.Helper()
	path := filepath.Join(dir, "enrolment.json")
	b, err := os.ReadFile(path)
	if err != nil {
		f.t.Fatal(err)
	}
	var file ft.J
	if err := json.Unmarshal(b, &file); err != nil {
		f.t.Fatal(err)
	}
	change(file)
	if b, err = json.Marshal(file); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *scope) agentID(dir string) string {
	f.t.Helper()
	var id string
	f.edit(dir, func(file ft.J) { id, _ = file["agent"].(string) })
	if id == "" {
		f.t.Fatalf("%s has no agent id", dir)
	}
	return id
}

// trust is the state of a member.
func (f *scope) trust(agent string) string {
	f.t.Helper()
	var list struct {
		Agents []struct{ Agent, State string }
	}
	answer := f.want(http.StatusOK, "", "GET", "/api/v1/enrol/agents", "")
	if err := json.Unmarshal([]byte(answer), &list); err != nil {
		f.t.Fatal(err)
	}
	for _, m := range list.Agents {
		if m.Agent == agent {
			return m.State
		}
	}
	return ""
}

func (f *scope) awaitTrust(agent, state string) {
	f.t.Helper()
	ft.Until(f.t, time.Minute, func() string { return agent + " is " + f.trust(agent) + ", not " + state },
		func() bool { return f.trust(agent) == state })
}

func (f *scope) awaitAlive(i int) {
	f.t.Helper()
	ft.Until(f.t, 2*time.Minute, func() string { return "host " + f.Addr(i) + " is not online" }, // pauses grow
		func() bool { return f.Alive(f.s, i) })
}

// addrs are the addresses that the server has for an agent, nil before it has reported.
func (f *scope) addrs(agent string) (list []string) {
	f.t.Helper()
	var page struct {
		Hosts []struct {
			Agent string
			Addrs []struct{ IP string }
		}
	}
	if err := json.Unmarshal([]byte(f.want(http.StatusOK, "", "GET", "/api/v1/hosts?limit=100", "")), &page); err != nil {
		f.t.Fatal(err)
	}
	for _, h := range page.Hosts {
		for _, a := range h.Addrs {
			if h.Agent == agent {
				list = append(list, a.IP)
			}
		}
	}
	return list
}

// TestTS10EnrollerTakesNoHost: erik may enrol one network and sees no member. He tries to take over host 1, step by step
// and by the ways around. Host 2 is his.
func TestTS10EnrollerTakesNoHost(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newScope(t, 2)
	victim, mine := f.folder(), f.folder()
	agent := f.Join(f.s, 1, victim)
	endFirst(t, agent)
	f.awaitAlive(1)
	id := f.agentID(victim)
	own := f.Addr(2) + "/32"
	f.enroller("erik", own)

	// The address of the victim, alone or beside the own one, or in another form; and a token for more.
	token := f.token("erik", `{"uses":9,"cidrs":["`+own+`"]}`)
	f.refused("as the victim", 2, token, mine, id, f.Addr(1))
	f.refused("as the victim, too", 2, token, mine, id, f.Addr(2), f.Addr(1))
	f.refused("as the victim in IPv6", 2, token, mine, id, "::ffff:"+f.Addr(1))
	f.refused("as an address that no host has", 2, token, mine, id, "198.18.77.99")
	f.refused("from elsewhere", 1, token, f.folder(), id, f.Addr(2))
	f.want(http.StatusForbidden, "erik", "POST", "/api/v1/enrol/tokens", `{}`)
	f.want(http.StatusForbidden, "erik", "POST", "/api/v1/enrol/tokens", `{"cidrs":["`+own+`","`+f.Addr(1)+`/32"]}`)

	// A token for the victim, whose id he has learned elsewhere. He cannot see whether it exists.
	foreign := f.want(http.StatusBadRequest, "erik", "POST", "/api/v1/enrol/tokens",
		`{"agent":"`+id+`","cidrs":["`+own+`"]}`)
	unknown := f.want(http.StatusBadRequest, "erik", "POST", "/api/v1/enrol/tokens",
		`{"agent":"`+strings.Repeat("0", 32)+`","cidrs":["`+own+`"]}`)
	if foreign != unknown || strings.Contains(foreign, id) {
		t.Errorf("a foreign agent is answered %s, an unknown one %s", foreign, unknown)
	}
	if list := f.want(http.StatusOK, "erik", "GET", "/api/v1/enrol/agents", ""); strings.Contains(list, id) {
		t.Errorf("erik sees the victim: %s", list)
	}
	f.want(http.StatusNotFound, "erik", "PUT", "/api/v1/enrol/agents/"+id+"/addresses", `{"add":["`+f.Addr(2)+`"]}`)

	// His own token with the id of the victim.
	if err := os.WriteFile(filepath.Join(mine, "agent-id"), []byte(id+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.refused("with the id of the victim", 2, token, mine, "", f.Addr(2))
	if err := os.Remove(filepath.Join(mine, "agent-id")); err != nil {
		t.Fatal(err)
	}

	// The state folder of the victim runs twice. The quarantine is not his to lift, nor that of an enroller of all.
	f.enroller("eva")
	copied := filepath.Join(t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-a", victim, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	thief := f.Start(2, "copy", "agent", "--data", copied, "--socket", "none")
	endFirst(t, thief)
	f.awaitTrust(id, "quarantined")
	thief.Kill(syscall.SIGKILL)
	f.want(http.StatusNotFound, "erik", "PUT", "/api/v1/enrol/agents/"+id, `{"state":"active"}`)
	f.want(http.StatusForbidden, "eva", "PUT", "/api/v1/enrol/agents/"+id, `{"state":"active"}`)
	f.want(http.StatusForbidden, "eva", "POST", "/api/v1/enrol/tokens", `{"agent":"`+id+`"}`)
	if state := f.trust(id); state != "quarantined" {
		t.Errorf("the victim is %s", state)
	}
	f.want(http.StatusOK, "", "PUT", "/api/v1/enrol/agents/"+id, `{"state":"active"}`)
	f.awaitAlive(1)
	if got := f.addrs(id); !slices.Equal(got, []string{f.Addr(1)}) {
		t.Errorf("the victim has %v", got)
	}

	// A token for the victim, used on his host.
	taken := f.folder()
	if err := os.WriteFile(filepath.Join(taken, "agent-id"), []byte(id+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.noToken(http.StatusBadRequest, "erik", id, `,"cidrs":["`+own+`"]`, 2, taken)
}

// TestTS11HostHasItsAddressesOnly: host 2 is enrolled, and claims the address of host 1, one that no host has, and
// hundreds more. An admin starts processes there.
func TestTS11HostHasItsAddressesOnly(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newScope(t, 2)
	victim, mine := f.folder(), f.folder()
	endFirst(t, f.Join(f.s, 1, victim))
	f.awaitAlive(1)
	liar := f.Join(f.s, 2, mine)
	endFirst(t, liar)
	f.awaitAlive(2)
	id := f.agentID(mine)
	liar.Kill(syscall.SIGTERM)

	// Joining again with another address changes nothing, and no host joins with more than 16.
	const other = "198.18.77.97"
	if out, err := f.joins(2, f.token("", `{"agent":"`+id+`"}`), mine, other, f.Addr(2)); err != nil {
		t.Fatalf("%v: %s", err, out)
	} else if !strings.Contains(out, "not used: --ip "+other) {
		t.Errorf("joining again says nothing of an address that is not used: %s", out)
	}
	f.s.AgainOnline(t, liar)
	f.awaitAlive(2)
	f.holdsOnly(id, f.Addr(2))
	liar.Kill(syscall.SIGTERM)
	var many []string
	for n := range 17 {
		many = append(many, fmt.Sprintf("198.18.79.%d", n+1))
	}
	if out, err := f.joins(2, f.token("", `{}`), f.folder(), many...); err == nil || !strings.Contains(out, "16") {
		t.Errorf("a host joins with 17 addresses: %v: %s", err, out)
	}

	// Edit the enrolment, twice: also an agent that has a session claims nothing.
	const free = "198.18.77.99"
	ips := []string{f.Addr(2), f.Addr(1), free}
	for n := range 200 {
		ips = append(ips, fmt.Sprintf("198.18.78.%d", n+1))
	}
	f.edit(mine, func(file ft.J) { file["ips"] = ips })
	f.s.AgainOnline(t, liar)
	f.holdsOnly(id, f.Addr(2))
	liar.Kill(syscall.SIGTERM)
	f.edit(mine, func(file ft.J) { file["ips"] = []string{free} })
	f.s.AgainOnline(t, liar)
	ft.Until(t, time.Minute, func() string { return "the host is at no address" },
		func() bool { return f.Alive(f.s, 2) || slices.Contains(f.addrs(id), free) })
	f.holdsOnly(id, f.Addr(2))

	// Nothing for these addresses reaches it.
	root := openDir(t)
	d := ft.NewDaemon(t, root, "gzscope")
	task := f.s.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "net", "name": d.Name}, "op_type": 0,
		"spec": d.Spec(nil), "hosts": []ft.J{{"ip": free, "bk_cloud_id": 0, "bk_supplier_id": 0}}})
	if e := f.s.Await(task)["0:"+free+":net:"+d.Name]; e.Code == 0 || d.Count("start") > 0 {
		t.Errorf("a start at an address that no host has ended with %+v after %d starts", e, d.Count("start"))
	}
	must(t, f.Operate(f.s, 1, d, 0), 0)
	for _, info := range f.s.Status("net", d.Name, f.Host(1)) {
		if info.AgentID != f.agentID(victim) {
			t.Errorf("the process of %s runs at agent %s", f.Addr(1), info.AgentID)
		}
	}

	// It is one event and one line of the log, and a start of the server brings nothing back.
	events := f.want(http.StatusOK, "", "GET", "/api/v1/events?kind=foreign_address", "")
	if n := strings.Count(events, `"foreign_address"`); n != 1 || !strings.Contains(events, f.Addr(1)) {
		t.Errorf("%d events: %s", n, events)
	}
	if n := strings.Count(f.s.Output(), "reports addresses that are not its own"); n != 1 {
		t.Errorf("%d lines of the log", n)
	}
	liar.Kill(syscall.SIGTERM)
	f.s.Kill(syscall.SIGTERM)
	f.s.Again()
	f.s.AwaitReady()
	f.holdsOnly(id, f.Addr(2))

	// An admin gives it the address. It is there while the host is off, and it is in the audit.
	f.CLI(f.s, "hosts", "address", id, "--add", free)
	f.holdsOnly(id, f.Addr(2), free)
	if rows := f.want(http.StatusOK, "", "GET", "/api/v1/audit?limit=1000", ""); !strings.Contains(rows,
		"enrol:address:"+id+" +"+free) {
		t.Errorf("the audit has no row of the change: %s", rows)
	}
	liar.Again()
	f.awaitAlive(2)
	f.CLI(f.s, "hosts", "address", id, "--remove", free)
	f.holdsOnly(id, f.Addr(2))
}

// holdsOnly checks the addresses of an agent, and that no other address of the fleet is its.
func (f *scope) holdsOnly(agent string, want ...string) {
	f.t.Helper()
	if got := f.addrs(agent); !slices.Equal(got, want) {
		f.t.Errorf("agent %s has %v, want %v", agent, got, want)
	}
}

// TestTS12EnrollerUndoesNothing: eva may enrol the whole fleet. She tries to bring back a host that an admin revoked, and
// hosts that wait after a restore.
func TestTS12EnrollerUndoesNothing(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newScope(t, 2)
	dirs := []string{"", f.folder(), f.folder()}
	var ids [3]string
	for i := 1; i <= 2; i++ {
		endFirst(t, f.Join(f.s, i, dirs[i]))
		f.awaitAlive(i)
		ids[i] = f.agentID(dirs[i])
	}
	f.enroller("eva")
	f.enroller("gone")

	restore := copyRecord(t, f.s) // of the time before

	// Revoked: by approval, by a token, and under another name. What she made before does not help either.
	early, leaver := f.token("eva", `{"uses":3}`), f.token("gone", `{"uses":3}`)
	f.CLI(f.s, "hosts", "revoke", ids[1])
	f.want(http.StatusConflict, "eva", "PUT", "/api/v1/enrol/agents/"+ids[1], `{"state":"active"}`)
	f.noToken(http.StatusForbidden, "eva", ids[1], "", 1, dirs[1])
	f.refused("by its own name", 1, early, dirs[1], "")
	f.refused("under another name", 1, early, f.folder(), ids[1])
	f.refused("beside another address", 1, early, f.folder(), ids[1], "198.18.77.98", f.Addr(1))
	if state := f.trust(ids[1]); state != "revoked" {
		t.Errorf("the revoked host is %s", state)
	}

	// A token ends with the rights of its creator.
	f.want(http.StatusOK, "", "DELETE", "/api/v1/users/gone", "")
	f.refused("with the token of a deleted person", 1, leaver, f.folder(), "", "198.18.77.98")

	// An admin brings it back.
	if out, err := f.joins(1, f.token("", `{"agent":"`+ids[1]+`"}`), dirs[1]); err != nil {
		t.Errorf("%v: %s", err, out)
	} else {
		f.awaitAlive(1)
	}

	// Restored: the same.
	f.s.Kill(syscall.SIGTERM)
	f.s = f.StartServerIn(restore())
	f.login("eva") // sessions are not restored
	f.want(http.StatusForbidden, "eva", "PUT", "/api/v1/enrol/agents/"+ids[2], `{"state":"active"}`)
	f.noToken(http.StatusForbidden, "eva", ids[2], "", 2, dirs[2])
	f.refused("under another name after a restore", 2, f.token("eva", `{}`), f.folder(), ids[2])
	if answer := f.want(http.StatusOK, "", "GET", "/api/v1/restore", ""); !strings.Contains(answer, `"waiting":2`) {
		t.Errorf("not two hosts wait: %s", answer)
	}
	f.CLI(f.s, "hosts", "approve", ids[2])
	f.awaitAlive(2)
}

// TestTS13EnrolmentIsALogin: a stranger guesses tokens and sends certificates that are not of this server.
func TestTS13EnrolmentIsALogin(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newScope(t, 2, "--max-failed-logins=10")
	guess := func(path, body string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", "https://"+f.Addr(0)+":8443"+path,
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := f.Client(f.s, 2).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, new(x509.CertificateRequest), key)
	if err != nil {
		t.Fatal(err)
	}
	request := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	answers := map[int]int{}
	for i := range 60 {
		if i%3 == 0 { // the other door
			answers[guess("/api/v1/enrol/renew", `{"csr":""}`)]++
			continue
		}
		body, err := json.Marshal(ft.J{"token": "abcdefabcdef." + strings.Repeat("A", 43), "agent": fmt.Sprint("x", i),
			"ips": []string{f.Addr(2)}, "csr": request})
		if err != nil {
			t.Fatal(err)
		}
		answers[guess("/api/v1/enrol", string(body))]++
	}
	if answers[http.StatusTooManyRequests] < 30 || answers[http.StatusUnauthorized] < 10 ||
		answers[http.StatusTooManyRequests]+answers[http.StatusUnauthorized] != 60 {
		t.Errorf("60 guesses were answered %v", answers)
	}

	lines := 0
	for line := range strings.Lines(f.s.Output()) {
		if strings.Contains(line, "agent rejected") {
			lines++
			if !strings.Contains(line, f.Addr(2)) {
				t.Errorf("a line has no address: %s", line)
			}
		}
	}
	if lines < 1 || lines > 30 {
		t.Errorf("the log has %d lines of 60 guesses", lines)
	}

	// Another host joins meanwhile.
	endFirst(t, f.Join(f.s, 1, f.folder()))
	f.awaitAlive(1)
}
