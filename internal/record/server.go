package record

import "time"

// Server is a server of an installation as recorded. All times are by the clock of the database, because the clocks of
// servers may differ by minutes.
type Server struct {
	ID           string
	Name         string
	URL          string // of its API
	Address      string // for other servers; "": none
	AgentAddress string // for agents, as HOST:PORT; "": none
	RelayAddress string // for relays, as HOST:PORT; "": none
	Version      string // of its program
	Agents       int    // that are connected to it
	Drained      bool   // it takes no agents, for maintenance
	Authority    string // pin of the newest authority of which it has the key; "": not known
	Seal         string // X25519 in base64, of this run: other servers seal keys for it; "": none

	Started time.Time     // set by the store
	Seen    time.Time     // set by the store, each time that the server writes its row
	Ago     time.Duration // since Seen, when it was read
	Ahead   time.Duration // of its clock to that of the database; 0 if the difference is small. Set by the store
}

// Authority is the authority of all servers of an installation: certificates in PEM, never keys.
type Authority struct {
	Current string // "": none is recorded
	Next    string // "": no rotation is under way
}

// Kind is a kind of recorded facts that servers keep in memory. Its version grows with every change, so a server notices
// what another one has changed.
type Kind string

// The kinds.
const (
	KindSigning   Kind = "signing"   // the key that signs commands
	KindAuthority Kind = "authority" // the authority that signs certificates
	KindReleases  Kind = "releases"  // published releases and upgrades, as people change them
	KindAccounts  Kind = "accounts"  // apps, users, groups and tokens
	KindEnrol     Kind = "enrol"     // the members of the fleet
	KindGroups    Kind = "groups"    // the limits of process groups
	KindTopology  Kind = "topology"  // businesses
	KindRelays    Kind = "relays"    // relays of closed networks
	KindHosts     Kind = "hosts"     // hosts that left the fleet, or that took over the processes of another one
)
