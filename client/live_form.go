package client

// The form of the live data: a snapshot in columns, and batches of changes. docs/live.md describes it.

// LiveMagic begins a snapshot.
const LiveMagic = "GZL1"

// The bits of a row's flags.
const (
	LiveManaged   = 1 << 0
	LiveStale     = 1 << 1 // its host is offline or has not reported
	LivePeriodic  = 1 << 2
	LiveUnhealthy = 1 << 3
	LiveWanted    = 1 << 4 // it shall run
)

// The states of a host in LiveHosts.Online.
const (
	LiveOffline = 0
	LiveOnline  = 1
	LiveGone    = 2 // it was forgotten, has another address, or is not visible any more: no row refers to it
)

// LiveHeader is the header of a snapshot.
type LiveHeader struct {
	Epoch  string      `json:"epoch"`
	Seq    uint64      `json:"seq"`
	Rows   int         `json:"rows"`
	Time   int64       `json:"time"`   // Unix seconds
	States []string    `json:"states"` // by the state of a row
	Hosts  LiveHosts   `json:"hosts"`
	Names  LiveNames   `json:"names"`
	Places []LivePlace `json:"places"` // the first stands for no business
}

// LiveHosts is a part of the dictionary of hosts. All lists have the same length.
type LiveHosts struct {
	Agent  []string `json:"agent"`
	IP     []string `json:"ip"`
	Cloud  []int    `json:"cloud"`
	Online []int    `json:"online"`
}

// LiveNames is a part of the dictionary of names. Both lists have the same length.
type LiveNames struct {
	Space []string `json:"space"`
	Name  []string `json:"name"`
}

// LivePlace is a place in a business: its id as a number, its name, the name of the set and the name of the module.
type LivePlace [4]any

// LiveBatch is one batch of changes.
type LiveBatch struct {
	Seq    uint64      `json:"seq"`
	Hosts  *LiveHosts  `json:"hosts,omitempty"`  // appended to the dictionary
	Names  *LiveNames  `json:"names,omitempty"`  // appended to the dictionary
	Places []LivePlace `json:"places,omitempty"` // appended to the dictionary
	Online [][2]int    `json:"online,omitempty"` // index of a host, and its new state
	Rows   []byte      `json:"b,omitempty"`      // what changed in rows, see LiveTable.Apply
}
