//go:build linux

package faults_test

import (
	"encoding/json"
	"strings"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestSecureDefaults has a subtest for each line of the list of defaults. Only addresses and folders are set.
func TestSecureDefaults(t *testing.T) {
	f := startPlain(t, "127.0.0.1", "--enrol")
	f.join(t)

	for _, tt := range []struct {
		name string
		run  func(*testing.T, *plainFleet)
	}{
		{"no default secret and no open route", noDefaultSecret},
		{"app secrets are random, hashed and rotated", appSecrets},
		{"roles deny by default", rolesDeny},
		{"limits of requests, no compression, no CORS", requestLimits},
		{"great stops have to be confirmed", greatStops},
		{"rates are limited", ratesAreLimited},
		{"what an agent may send is limited", agentsAreLimited},
		{"browsers are held", browsersAreHeld},
		{"the server listens for callers and agents only", serverListens},
		{"agents speak TLS 1.3, TLS first", agentsTLS},
		{"agents only connect out", agentConnectsOut},
		{"the agent's socket is for root and itself", localSocket},
		{"enrolment tokens are short and used once", enrolmentTokens},
		{"the server is pinned and nothing switches that off", serverIsPinned},
		{"an agent's key opens its own subjects only", ownSubjectsOnly},
		{"every operation is signed", operationsAreSigned},
		{"the policy of a host", defaultPolicy},
		{"the state is the agent's alone", stateIsPrivate},
		{"least-privilege modes", leastPrivilege},
		{"the unit", unitIsAsPromised},
		{"children get exactly what they should", childrenGetNoMore},
		{"signals go through pidfds", signalsByPidfd},
		{"audit is on and chained", auditIsOn},
		{"logs are JSON without control characters", logsAreJSON},
		{"the record is synced in full, doctor warns, backups are encrypted", recordAndBackups},
		{"after a restore hosts wait for the admin", hostsWaitAfterARestore},
		{"the supply chain", supplyChain},
		{"updates are signed, newer and reversible", updatesAreSigned},
		{"too many bad logins have to wait", badLoginsWait}, // last: afterwards this address has to wait
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, f) })
	}

	t.Run("API on TLS beyond loopback, metrics for the known", beyondLoopback)
}

func auditIsOn(t *testing.T, f *plainFleet) {
	before := strings.Count(f.gozzard(t, "audit", "list"), "\n")
	body := `{"action":"stop","namespace":"audited","names":["p"],"hosts":[{"cloud":0,"ip":"127.0.0.1"}]}`
	if a := f.admin(t, "POST", "/api/v1/operations", strings.NewReader(body)); a.status >= 300 {
		t.Fatalf("HTTP %d %s", a.status, a.body)
	}
	if after := strings.Count(f.gozzard(t, "audit", "list"), "\n"); after <= before {
		t.Errorf("%d rows before an operation, %d behind it", before, after)
	}
	f.gozzard(t, "audit", "verify")
}

func logsAreJSON(t *testing.T, f *plainFleet) {
	f.ask(t, "POST", "/api/c/compapi/v2/gse/operate_proc/",
		strings.NewReader(`{"bk_app_code":"a\u001b[31m\n{\"level\":\"INFO\"}\u2028","bk_app_secret":"x","bk_username":"b\r\n"}`))
	for name, p := range map[string]*ft.Program{"server": f.server, "agent": f.agent} {
		for line := range strings.Lines(p.Output()) {
			line = strings.TrimSuffix(line, "\n")
			if !json.Valid([]byte(line)) && !strings.HasPrefix(line, "gozzard: ") ||
				strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x2028 }) {
				t.Errorf("the %s logs %q", name, line)
			}
		}
	}
}
