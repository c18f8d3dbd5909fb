package server

import "context"

// The leases of work that one server does. They are stored, and admins see them.
const (
	leasePrune       = "prune"       // removes old results
	leaseJobs        = "jobs"        // runs jobs in waves, and removes old ones
	leaseReleases    = "releases"    // brings releases to hosts
	leaseCMDB        = "cmdb"        // reads businesses
	leaseCheckpoints = "checkpoints" // signs the audit
	leaseBackups     = "backups"
	leaseServers     = "servers" // forgets servers that are gone
	leaseExport      = "export-" // and the name of an export of the audit
)

// onlyOne are the parts that run on one of all servers. Each of them begins with what the record has, because another
// server may have run it before.
func (s *Server) onlyOne() (parts []func(context.Context) error) {
	add := func(lease string, run func(context.Context) error) {
		parts = append(parts, func(ctx context.Context) error { return s.leases.Do(ctx, lease, run) })
	}

	add(leasePrune, s.plane.Prune)
	add(leaseJobs, s.jobs.Run)
	if s.upgrades != nil {
		add(leaseReleases, s.upgrades.Run)
	}
	if s.cmdb != nil && len(s.options.CMDB.Businesses) > 0 { // without any it only answers callers
		add(leaseCMDB, s.cmdb.Run)
	}
	if s.checkpoints != nil {
		add(leaseCheckpoints, s.checkpoints.Run)
	}
	for _, e := range s.exports {
		add(leaseExport+e.Name(), e.Run)
	}
	if s.backups != nil {
		add(leaseBackups, s.backups.Run)
	}
	if s.leases != nil {
		add(leaseServers, s.removeServers)
	}
	return parts
}
