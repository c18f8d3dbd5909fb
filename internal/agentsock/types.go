package agentsock

import "github.com/gozzard/gozzard"

// MaxProcesses is the largest number of processes in one answer.
const MaxProcesses = 10_000

// Status is the state of an agent. Times are Unix seconds; 0 means none.
type Status struct {
	Agent       gozzard.AgentID `json:"agent"`
	Version     string          `json:"version"`
	PID         int             `json:"pid"`
	UID         int             `json:"uid"`
	Mode        string          `json:"mode"` // root, cap or user
	StartedAt   int64           `json:"started_at"`
	Hostname    string          `json:"hostname"`
	Cloud       int             `json:"cloud"`
	IPs         []string        `json:"ips"`
	Server      string          `json:"server"`
	Session     Session         `json:"session"`
	Link        Link            `json:"link"`
	Certificate int64           `json:"certificate_until,omitempty"` // of an enrolled host
	Key         Key             `json:"server_key"`
	Policy      Policy          `json:"policy"`
	Degraded    []string        `json:"degraded"` // what is missing on this host, in words
	Journal     Journal         `json:"journal"`
	Processes   int             `json:"processes"`
	Refused     uint64          `json:"refused"`          // rejected connections to this socket
	Groups      string          `json:"groups,omitempty"` // folder of the cgroups of its processes; "": it has none
}

// Session says whether the agent accepts operations.
type Session struct {
	Open    bool   `json:"open"`
	Number  uint64 `json:"number"`
	Since   int64  `json:"since"`           // when it was opened; if there is none, since when
	HeardAt int64  `json:"heard_at"`        // when the server last answered
	Fault   string `json:"fault,omitempty"` // if there is none: why the agent rejected the last command of the server
}

// Link is the connection to the server.
type Link struct {
	Up       bool   `json:"up"`
	Connects uint64 `json:"connects"`
	Fault    string `json:"fault,omitempty"` // why it is not up
}

// Key is the server key that the agent trusts.
type Key struct {
	ID    string `json:"id"`
	Epoch uint64 `json:"epoch"`
}

// Policy is what the owner of the host allows.
type Policy struct {
	File      string `json:"file"`
	AllowRoot bool   `json:"allow_root"`
	Text      string `json:"text"`
}

// Journal is the position up to which everything is durable.
type Journal struct {
	ID    string `json:"id"`
	LSN   uint64 `json:"lsn"`
	Fault string `json:"fault,omitempty"` // why the state folder cannot be written
}

// Process is one process that the agent manages.
type Process struct {
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	State     string  `json:"state"` // a gozzard.Condition
	Wanted    string  `json:"wanted"`
	Hosted    bool    `json:"hosted"`
	PID       int32   `json:"pid"` // -1 if it is not running
	Since     int64   `json:"since"`
	Restarts  int     `json:"restarts"` // without a request, since an operation last started or stopped it
	Kind      string  `json:"kind"`
	Version   string  `json:"version,omitempty"`
	Message   string  `json:"message,omitempty"`
	CPU       float32 `json:"cpu"` // percent of the whole machine, process tree
	Mem       float32 `json:"mem"`
	FD        int32   `json:"fd"`
	Disk      int64   `json:"disk"`
	Net       int64   `json:"net"`
	MemBytes  int64   `json:"mem_bytes"` // resident memory, process tree

	Exit          gozzard.Ending  `json:"exit,omitzero"`
	NextAt        int64           `json:"next_at,omitempty"` // Unix milliseconds
	LastRun       gozzard.LastRun `json:"last_run,omitzero"`
	Health        string          `json:"health"`
	HealthMessage string          `json:"health_message,omitempty"`
}

// Processes are the first MaxProcesses processes by name, and how many there are in total.
type Processes struct {
	Count     int       `json:"count"`
	Processes []Process `json:"processes"`
}

// fault is the answer to a rejected request.
type fault struct {
	Error string `json:"error"`
}
