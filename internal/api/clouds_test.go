package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// TestHostsByName: a request may name a host by its host name. A name that two hosts have is rejected with both, an
// agent id comes before a name, and no host gets what is meant for an id that an agent has made.
func TestHostsByName(t *testing.T) {
	s := newServer(t)
	gone := strings.Repeat("0a", 16)
	for _, h := range []gozzard.HostInfo{
		{Agent: "b1", Hostname: "twice"}, {Agent: "b2", Hostname: "Twice"}, {Agent: "b3", Hostname: "db.example.com"},
		{Agent: "b4", Hostname: "a1"}, {Agent: "b5", Hostname: gone},
	} {
		s.plane.PutHost(fleet.Host{Info: h})
	}

	for host, want := range map[string]string{
		`{"agent":"host-a1"}`:        "a1",
		`{"agent":"HOST-a1"}`:        "a1",
		`{"agent":"db.example.com"}`: "b3",
		`{"agent":"a1"}`:             "a1",
		`{"agent":"` + gone + `"}`:   gone,
		`{"agent":"twice"}`:          "hosts[0].agent: 2 hosts have the name twice: give an address or an agent id: b1, b2",
		`{"agent":"web.example"}`:    `hosts[0].agent: "web.example" is not a host of the fleet`,
	} {
		before := len(s.ops)
		r := s.call(http.MethodPost, "/api/v1/operations",
			`{"action":"stop","namespace":"shop","names":["web"],"hosts":[`+host+`]}`)
		if len(s.ops) == before {
			text := ""
			for _, f := range r.failure(t).Error.Faults {
				text += f.String()
			}
			if !strings.Contains(text, want) {
				t.Errorf("%s: %d %s, want %s", host, r.code, text, want)
			}
			continue
		}
		if got := s.ops[before].Items[0].Targets[0].Agent; string(got) != want {
			t.Errorf("%s is sent to %s, want %s", host, got, want)
		}
	}
}
