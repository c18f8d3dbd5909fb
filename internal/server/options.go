package server

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/notify"
)

// Options are the settings of a server. Data, Listen, Version, Fatal and Log are required. The zero value of Limits has
// none.
type Options struct {
	Data        string // folder of the record and the server's secrets
	Listen      string // address of the API
	AgentListen string // address of the fabric; "": only agents in this process
	Version     string // of this program

	Record    string // address of the PostgreSQL database with the record; "": an SQLite file in Data
	NewRecord bool   // make a new record although the keys of a lost one are there
	dev       bool   // the server is a part of `gozzard dev`
	shared    bool   // other servers use the record, too

	Cluster ClusterOptions // several servers on one record
	Relay   RelayOptions   // relays of closed networks

	Interval   time.Duration // how often each agent reports everything
	Keep       time.Duration // how long results of tasks are kept at least
	KeepEvents time.Duration // how long events are kept; 0: 30 days
	MaxEvents  int           // how many events are kept; 0: 1,000,000
	Checkpoint time.Duration // how often the newest row of the audit is signed; 0: never

	Trust   TrustOptions
	Keys    KeyOptions
	Login   LoginOptions
	Limits  Limits
	CMDB    CMDBOptions
	Backup  BackupOptions
	Release ReleaseOptions
	Export  ExportOptions
	OTLP    OTLPOptions
	Notify  notify.Settings

	SecondPerson SecondPersonOptions

	// JoinSecret is what agents of this machine join with. "": the server keeps one in Data.
	JoinSecret string
	// FirstApp is the app that a new record begins with. Zero: the server makes one and writes credentials.json.
	FirstApp FirstApp

	// NewFabric makes the way to the agents. nil: NATS.
	NewFabric func(FabricOptions) (Fabric, error)
	// Now is the clock of the control plane and of jobs. nil: time.Now.
	Now func() time.Time

	// Check examines the data folder of the running server, as "gozzard doctor" does. nil: the server does not check
	// itself.
	Check func(ctx context.Context, data string) []client.Finding

	Fatal func(error) // ends the process after a disk failure
	Log   *slog.Logger
}

// FirstApp is an app that may do everything.
type FirstApp struct{ Code, Secret string }

// enrols reports whether agents connect with certificates: always beyond this machine.
func (o *Options) enrols() bool {
	return o.AgentListen != "" && (o.Trust.Enrol || !isLoopbackAddr(o.AgentListen))
}

// checkEvents rejects settings with which no reader could follow events.
func (o *Options) checkEvents() error {
	if o.KeepEvents != 0 && o.KeepEvents < time.Hour {
		return fmt.Errorf("--keep-events %s: use 1h or more", o.KeepEvents)
	}
	if o.MaxEvents != 0 && (o.MaxEvents < 1000 || o.MaxEvents > 100_000_000) {
		return fmt.Errorf("--max-events %d: use 1000 to 100000000", o.MaxEvents)
	}
	return nil
}

// system is the caller of what the server does by itself.
func system() gozzard.Caller { return gozzard.Caller{App: "gozzard"} }
