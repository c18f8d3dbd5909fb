package agentd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/selfupdate"
)

// DefaultTrial is how long a new program may take until the server accepts its connection.
const DefaultTrial = selfupdate.DefaultLimit

// ServeOptions are the settings of `gozzard agent`.
type ServeOptions struct {
	Options
	// JoinFile is the join.secret of a server on this machine. "": this host is enrolled.
	JoinFile string
	// OwnIPs says that Options.IPs were chosen for this start. Otherwise an enrolled host uses those it enrolled with.
	OwnIPs bool
	Trial  time.Duration
	Args   []string // of this program, for the program that takes over
	// Invalid is what is wrong with the settings. Serve returns it after it has ended a trial: a program that does not
	// understand the settings of this host must give way to the one before.
	Invalid error
}

// Serve runs an agent until ctx ends, or until another program takes this process over.
func Serve(ctx context.Context, o ServeOptions) error {
	if err := o.beginUpdates(); err != nil {
		return err
	}

	o.restarts = make(chan struct{}, 1)
	nats.Quiet() // an agent never starts the embedded broker

	return runUpgradable(ctx, o.Options, func(ctx context.Context) error {
		if o.Invalid != nil {
			return o.Invalid
		}
		if err := o.findServer(); err != nil {
			return err
		}
		a, err := New(o.Options)
		if err != nil {
			return err
		}
		return a.Run(ctx)
	})
}

// beginUpdates is the first thing that an agent does. A program whose trial is over hands its process back here and
// does not return.
func (o *ServeOptions) beginUpdates() error {
	data, err := filepath.Abs(o.Data)
	if err != nil {
		return fmt.Errorf("cannot find the state folder: %w", err)
	}

	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program's file: %w", err)
	}

	o.updates = o.Policy.updater(data, self, o.Version, o.Trial, o.Args, o.Log)

	// A first start may be a mistake: make nothing before that is known.
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	// Trust neither a state folder nor a program that other accounts can change.
	own, err := host.OwnPrivileges()
	if err != nil {
		return err
	}
	if err := o.Policy.checkOwn(data, own.Mode); err != nil {
		return err
	}

	// Go back to the previous program if this one failed its trial.
	err = o.updates.Begin()
	var over *selfupdate.Over
	if errors.As(err, &over) {
		if rollBack(o.Options, over.Reason) {
			return handOver(self)
		}
		return nil
	}

	if err != nil { // a full disk or a damaged file must not keep the agent from its processes
		o.Log.Error("cannot keep the state of updates; updates are rejected until it can be kept", "err", err)
	}

	return nil
}

// systemJoinFile is the join secret of an installed server on this machine.
const systemJoinFile = "/var/lib/gozzard/join.secret"

// besideServer reports whether this is the installed agent of a machine that has an installed server for itself.
func (o *ServeOptions) besideServer() bool {
	data, err := filepath.Abs(o.Data)
	if err != nil {
		return false
	}
	own, err := host.OwnPrivileges()
	return err == nil && isSystem(data, own) && exists(systemJoinFile)
}

// findServer completes the options with the way to the server.
func (o *ServeOptions) findServer() (err error) {
	if o.JoinFile != "" {
		o.Secret, o.ServerKey, err = ReadJoinFile(o.JoinFile)
		return err
	}

	m, err := enrol.LoadMembership(o.Data)
	if errors.Is(err, fs.ErrNotExist) && o.besideServer() {
		o.JoinFile = systemJoinFile
		o.Log.Info("this host has joined no server: using the server on this machine", "file", systemJoinFile)
		return o.findServer()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("this host has joined no server: run gozzard agent join --data %s, "+
			"or give --secret-file for a server on this machine", filepath.Clean(o.Data))
	}
	if err != nil {
		return err
	}

	o.Member, o.Server, o.Cloud = m, m.Address, m.Cloud

	if !o.OwnIPs {
		o.IPs = nil
		for _, ip := range m.IPs {
			o.IPs = append(o.IPs, ip.String())
		}
	}

	return nil
}
