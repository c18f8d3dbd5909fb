package server

import "log/slog"

// What the server keeps of its open files for itself, and the share of the API in the rest. The agents have the other
// part, so neither port can take the files of the other.
const (
	ownFiles    = 64
	apiShare    = 4 // one of so many
	burstShare  = 4 // one of so many of the agents' part: the broker accepts a connection above its limit and then closes it
	fewestConns = 8 // of each port
)

// fitFiles lowers the limits of connections to what the limit of open files allows. A limit that is turned off stays
// off.
func (l *Limits) fitFiles(files int, log *slog.Logger) {
	rest := files - ownFiles
	fit := func(what string, limit *int, share int) {
		if share = max(share, fewestConns); *limit <= share {
			return // also when it is off
		}
		log.Info("the limit of open files allows fewer connections than the server is set to: raise it (ulimit -n, "+
			"LimitNOFILE= in the unit)", "port", what, "set", *limit, "connections", share, "files", files)
		*limit = share
	}
	fit("API", &l.TotalConnections, rest/apiShare)
	agents := rest - rest/apiShare
	fit("agents", &l.AgentConnections, agents-agents/burstShare)
}
