package agentd

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
)

// serversFile has the servers that an enrolled host may use, in its state folder.
const serversFile = "servers.json"

// knownServers is the content of serversFile.
type knownServers struct {
	Joined  string                  `json:"joined"` // URL of the server that the host joined; the file of another one does not count
	Servers []gozzard.ServerAddress `json:"servers"`
}

// loadServers returns the servers that this agent knew when it ended, else those of its enrolment. An agent without them
// finds a server by the address of its enrolment, so a damaged file is no failure.
func (a *Agent) loadServers() []gozzard.ServerAddress {
	if a.options.Member == nil {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(a.options.Data, serversFile))
	if errors.Is(err, fs.ErrNotExist) {
		return a.options.Member.Servers
	}

	var known knownServers
	if err == nil {
		err = json.Unmarshal(b, &known)
	}
	if err != nil {
		a.options.Log.Warn("cannot read the list of servers, using the one of the enrolment", "file", serversFile, "err", err)
		return a.options.Member.Servers
	}
	if known.Joined != a.options.Member.Server {
		return a.options.Member.Servers
	}
	return known.Servers
}

// learnServers takes over the servers that the server of the session names, and keeps them for the next start. The command
// was signed by the server.
func (a *Agent) learnServers(list []gozzard.ServerAddress) {
	before := a.servers
	if a.useServers(list); slices.Equal(before, a.servers) || a.options.Member == nil {
		return
	}

	b, err := json.MarshalIndent(knownServers{Joined: a.options.Member.Server, Servers: a.servers}, "", "  ")
	if err == nil {
		err = atomicfile.Write(filepath.Join(a.options.Data, serversFile), append(b, '\n'))
	}
	if err != nil {
		a.options.Log.Warn("cannot keep the list of servers; it is used until this agent ends", "err", err)
	}
	a.options.Log.Info("this host may use these servers", "servers", a.servers)
}

// useServers makes the link and the renewal of the certificate use these servers, except for those without a valid
// address.
func (a *Agent) useServers(list []gozzard.ServerAddress) {
	valid := slices.DeleteFunc(slices.Clone(list), func(s gozzard.ServerAddress) bool { return s.Validate() != nil })
	slices.SortFunc(valid, func(x, y gozzard.ServerAddress) int {
		return cmp.Or(cmp.Compare(x.Agents, y.Agents), cmp.Compare(x.API, y.API))
	})
	if slices.Equal(valid, a.servers) {
		return
	}

	var agents, apis []string
	for _, s := range valid {
		agents = append(agents, s.Agents)
		if s.API != "" {
			apis = append(apis, s.API)
		}
	}
	if err := a.link.SetServers(agents); err != nil {
		a.options.Log.Warn("the list of servers is not used", "err", err)
		return
	}
	if a.renewer != nil {
		a.renewer.SetServers(apis)
	}
	a.servers = valid
}
