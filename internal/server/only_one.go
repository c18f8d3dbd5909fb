package server

import "context"

// The leases of work that one server does. They are stored, and admins see them.
const (
	leasePrune       = "prune"       // removes old results
	leaseEvents      = "events"      // removes old events
	leaseJobs        = "jobs"        // runs jobs in waves, and removes old ones
	leaseReleases    = "releases"    // brings releases to hosts
	leaseCMDB        = "cmdb"        // reads businesses
	leaseCheckpoints = "checkpoints" // signs the audit
	leaseBackups     = "backups"
	leaseNotify      = "notify"  // sends alerts
	leaseServers     = "servers" // forgets servers that are gone
	leaseExport      = "export-" // and the name of an export of the audit
)

// onlyOne are the parts that run on one of all servers. Each of them begins with what the record has, because another
// server may have run it before.
func (s *Server) onlyOne() (parts []func(context.Context) error) {
	for _, w := range s.works() {
		parts = append(parts, func(ctx context.Context) error { return s.leases.Do(ctx, w.lease, w.run) })
	}
	return parts
}

// leasedWork is a part that runs on one of all servers.
type leasedWork struct {
	lease string
	run   func(context.Context) error
}

// works are the parts of this server that only one server runs.
func (s *Server) works() []leasedWork {
	list := []leasedWork{{leasePrune, s.plane.Prune}, {leaseEvents, s.plane.PruneEvents}, {leaseJobs, s.jobs.Run},
		{leaseNotify, s.notify.Run}}
	if s.upgrades != nil {
		list = append(list, leasedWork{leaseReleases, s.upgrades.Run})
	}
	if s.cmdb != nil && len(s.options.CMDB.Businesses) > 0 { // without any it only answers callers
		list = append(list, leasedWork{leaseCMDB, s.cmdb.Run})
	}
	if s.checkpoints != nil {
		list = append(list, leasedWork{leaseCheckpoints, s.checkpoints.Run})
	}
	for _, e := range s.exports {
		list = append(list, leasedWork{leaseExport + e.Name(), e.Run})
	}
	if s.backups != nil {
		list = append(list, leasedWork{leaseBackups, s.backups.Run})
	}
	if s.leases != nil {
		list = append(list, leasedWork{leaseServers, s.removeServers})
	}
	return list
}
