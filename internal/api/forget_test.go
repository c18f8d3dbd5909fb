package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
)

// TestForgetRights: only an admin of all addresses of a host can forget it. For all others the host does not exist,
// whatever they may see of it.
func TestForgetRights(t *testing.T) {
	net := func(text ...string) (list []netip.Prefix) {
		for _, s := range text {
			list = append(list, netip.MustParsePrefix(s))
		}
		return list
	}
	for name, c := range map[string]struct {
		grant gozzard.Grant
		agent string
		want  int
	}{
		"admin of the fleet":      {gozzard.Grant{Role: gozzard.RoleAdmin, Hosts: gozzard.HostsAny}, "a3", http.StatusOK},
		"admin of its addresses":  {gozzard.Grant{Role: gozzard.RoleAdmin, Clouds: []int{3}, Nets: net("10.0.0.0/24")}, "a3", http.StatusOK},
		"admin of one address":    {gozzard.Grant{Role: gozzard.RoleAdmin, Nets: net("10.0.0.9/32")}, "a3", http.StatusNotFound},
		"admin of another cloud":  {gozzard.Grant{Role: gozzard.RoleAdmin, Clouds: []int{0}}, "a3", http.StatusNotFound},
		"admin of a namespace":    {gozzard.Grant{Role: gozzard.RoleAdmin, Namespaces: []string{"*"}, Hosts: gozzard.HostsAny}, "a3", http.StatusNotFound},
		"admin of a business":     {gozzard.Grant{Role: gozzard.RoleAdmin, Businesses: []int{2}}, "a3", http.StatusNotFound},
		"operator of everything":  {gozzard.Grant{Role: gozzard.RoleOperator, Hosts: gozzard.HostsAny, Accounts: []string{"*", "root"}}, "a3", http.StatusNotFound},
		"enroller of everything":  {gozzard.Grant{Role: gozzard.RoleEnroller, Hosts: gozzard.HostsAny}, "a3", http.StatusNotFound},
		"viewer of everything":    {gozzard.Grant{Role: gozzard.RoleViewer, Hosts: gozzard.HostsAny}, "a3", http.StatusNotFound},
		"nobody is forgotten":     {gozzard.Grant{Role: gozzard.RoleAdmin, Hosts: gozzard.HostsAny}, "nobody", http.StatusNotFound},
		"an online host":          {gozzard.Grant{Role: gozzard.RoleAdmin, Hosts: gozzard.HostsAny}, "a1", http.StatusConflict},
		"an online host, unasked": {gozzard.Grant{Role: gozzard.RoleViewer, Hosts: gozzard.HostsAny}, "a1", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.SetOnline("a1", true, time.Now())
			s.SetOnline("a3", false, time.Now())
			handler := api.New(api.Options{Plane: s.plane, Authenticate: func(*http.Request) (gozzard.Caller, error) {
				return gozzard.Caller{App: "app", Rights: &gozzard.Rights{Grants: []gozzard.Grant{c.grant}}}, nil
			}})
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodDelete, "/api/v1/hosts/"+c.agent, nil)
			r.RemoteAddr = "192.0.2.1:999"
			handler.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("answer %d, want %d: %s", w.Code, c.want, w.Body)
			}
			if _, there := s.Index.Host("a3"); there != (c.want != http.StatusOK) {
				t.Errorf("the host is there: %v", there)
			}
		})
	}
}
