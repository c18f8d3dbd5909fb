package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/signing"
)

// enrolAtOnce is how many hosts enrol at the same time.
const enrolAtOnce = 8

// Machine is how the i-th simulated host names its machine to the server.
func Machine(i int) string { return fmt.Sprintf("machine-%05d", i) }

// folder is the state folder of the i-th host.
func (o *FleetOptions) folder(i int) string { return filepath.Join(o.Dir, string(AgentID(i))) }

// Enrol makes the hosts of a fleet members, except for those that are members already. Each has its own key and
// certificate.
func Enrol(ctx context.Context, o FleetOptions) error {
	var token enrol.Token
	if o.TokenFile != "" {
		b, err := os.ReadFile(o.TokenFile)
		if err != nil {
			return fmt.Errorf("cannot read the token: %w", err)
		}
		if err := atomicfile.Check(o.TokenFile); err != nil {
			return err
		}
		if token, err = enrol.ParseToken(strings.TrimSpace(string(b))); err != nil {
			return err
		}
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for w := range enrolAtOnce {
		wg.Go(func() {
			for i := o.First + w; i < o.First+o.Hosts && ctx.Err() == nil; i += enrolAtOnce {
				if err := o.enrolHost(ctx, token, i); err != nil {
					cancel(fmt.Errorf("cannot enrol simulated host %s: %w", AgentID(i), err))
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (o *FleetOptions) enrolHost(ctx context.Context, token enrol.Token, i int) error {
	dir := o.folder(i)
	_, err := enrol.LoadMembership(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err // nil: it is a member
	}
	if o.TokenFile == "" {
		return errors.New("it is not a member, and there is no token")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	_, err = enrol.Join(ctx, enrol.JoinOptions{Server: o.API, Token: token, Dir: dir, Agent: AgentID(i),
		IPs: []netip.Addr{Addr(o.Cloud, i).IP}, Hostname: string(AgentID(i)), Machine: Machine(i)})
	return err
}

// memberKey is the server's key that enrolled hosts trust.
func (o *FleetOptions) memberKey() (signing.Key, error) {
	ring, err := signing.OpenKeyRing(o.folder(o.First), nil)
	if err != nil {
		return signing.Key{}, err
	}
	return ring.Key(), nil
}

// asMember makes the link of the i-th host connect with its certificate, to the servers of the fleet, or else to those that
// were named at its enrolment.
func (o *FleetOptions) asMember(i int, lo *nats.LinkOptions) error {
	m, err := enrol.LoadMembership(o.folder(i))
	if err != nil {
		return fmt.Errorf("cannot connect simulated host %s: %w", AgentID(i), err)
	}
	lo.Secret, lo.Cloud, lo.Machine = "", m.Cloud, Machine(i)
	lo.TLS = enrol.NewRenewer(m, lo.Machine, o.Log).TLS()
	if lo.URL == "" {
		lo.URL = m.Address
		for _, s := range m.Servers {
			if s.Agents != m.Address {
				lo.URL += "," + s.Agents
			}
		}
	}
	return nil
}

// learn makes the link of an enrolled host use the servers that the server of its session names, as the real agent does.
func (o *FleetOptions) learn(link *nats.Link, list []gozzard.ServerAddress) {
	if o.API == "" {
		return
	}
	var agents []string
	for _, s := range list {
		if s.Validate() == nil {
			agents = append(agents, s.Agents)
		}
	}
	if err := link.SetServers(agents); err != nil {
		o.Log.Warn("the list of servers is not used", "err", err)
	}
}
