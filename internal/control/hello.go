package control

import (
	"context"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

// helloWorkers is how many sessions are opened at a time. They share transactions of the record, so a fleet that comes
// back is recorded in batches of this many.
const helloWorkers = 256

// hello is a HELLO that waits for a worker: it needs the record, and the fabric must not wait for that.
type hello struct {
	from   gozzard.AgentID
	cloud  int
	report *gozzard.Report
}

// receiveHello queues a HELLO. What is dropped here is no loss: the agent says HELLO again.
func (p *Plane) receiveHello(from gozzard.AgentID, cloud int, r *gozzard.Report) {
	if r.Hello == nil {
		p.reject("hello_empty", from)
		return
	}
	if claimed := r.Hello.Host.Agent; claimed != "" && claimed != from {
		p.forged("hello_agent", from)
		return
	}
	if rule := p.limiter.rejects(from, p.o.Now()); rule != "" {
		p.reject(rule, from)
		return
	}
	if rule := p.o.Joining.begin(from, r.Session); rule != "" {
		p.reject(rule, from)
		return
	}

	select {
	case p.hellos <- hello{from, cloud, r}:
	default:
		p.o.Joining.end(from)
	}
}

func (p *Plane) helloLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case h := <-p.hellos:
			unlock := p.delivery.LockAgent(h.from)
			err := p.openSession(ctx, h)
			unlock()
			p.o.Joining.answered(h.from)
			if err != nil && ctx.Err() == nil {
				p.o.Log.Error("cannot open a session, the agent will say HELLO again", "agent", h.from, "err", err)
			}
		}
	}
}

// openSession registers a session, welcomes the agent and decides about every attempt that an older session left open.
func (p *Plane) openSession(ctx context.Context, h hello) error {
	r := h.report
	if p.o.Gone != nil && p.o.Gone(h.from) { // it was on its way when the host was removed
		p.reject("removed_agent", h.from)
		return nil
	}
	info := r.Hello.Host
	info.Agent = h.from
	info.Addrs = p.addrsOf(h.from, h.cloud, r.Hello.Host.Addrs)
	if !isDigest(info.PolicyDigest) {
		info.PolicyDigest = ""
	}
	if !isAccount(info.DefaultAccount) {
		info.DefaultAccount = ""
	}
	if _, _, ok := info.MetricsAddr(); !ok {
		info.Metrics = ""
	}

	// Register it in the record.
	now := p.o.Now()
	rec, opened, err := p.o.Store.OpenSession(ctx,
		record.Host{Info: info, Session: r.Session, Journal: r.Journal, LastSeen: now, Protocol: r.Version,
			Kept: r.Hello.Kept, NewestGen: r.Hello.NewestGen})
	if err != nil {
		return err
	}
	if !opened {
		p.notOpened(h, &rec)
		return nil
	}

	p.launchCommitted() // delivery then knows every attempt that was recorded before this session
	p.logLift(h.from, &rec)
	p.queue.opened(h.from, rec.JournalSince)
	p.noteClaims(h.from, r.Hello.Host.Addrs, info.Addrs)
	p.noteRun(h.from, h.cloud, r.Hello.Run)

	// Take it into memory. What the host lost is read before the host reports, because its report removes what it does
	// not have from the live index.
	p.delivery.OpenSession(h.from, delivery.Session{ID: r.Session, Run: r.Hello.Run, Cloud: h.cloud,
		Behind: rec.Lifted, Base: rec.Base}, now)
	p.protocols.opened(h.from, r.Session, rec.Protocol)
	lost := p.restorer.lostState(h.from, &rec)
	p.comparePolicy(h, &info)
	p.o.Live.PutHost(fleet.Host{Info: info, Session: r.Session, Online: true, LastSeen: now})
	p.peers.noteHello(h, &info)

	// Answer.
	p.welcome(h)
	p.sendGroupsTogether(ctx, h.from)

	// Decide about what is open, and send what waits.
	switch {
	case r.Hello.Kept:
		p.o.Log.Warn("a host cannot write its state folder: it supervises, but cannot record", "agent", h.from)
	case rec.JournalSince == r.Session && rec.RestoredJournal != r.Session: // else the host is new to the record
		p.o.Log.Warn("a host has another journal than before, or an older copy of it", "agent", h.from)
	}
	err = p.delivery.Reconcile(ctx, delivery.Hello{Agent: h.from, Cloud: h.cloud, Session: r.Session,
		Journal: r.Journal, JournalSince: rec.JournalSince, Open: r.Hello.Open})
	if err != nil {
		return err
	}

	p.restorer.add(h.from, lost)
	return nil
}

// comparePolicy says when a host has another policy or release key than in its session before. The host itself reports
// it, so an attacker that controls the agent can hide it; one that controls only its commands cannot.
func (p *Plane) comparePolicy(h hello, info *gozzard.HostInfo) {
	before, ok := p.o.Live.Host(h.from)
	if !ok || before.Info.PolicyDigest == "" || before.Info.PolicyDigest == info.PolicyDigest {
		return
	}

	now := info.PolicyDigest
	if now == "" {
		now = "not reported"
	}
	p.o.Log.Warn("a host has another policy or release key than before", "agent", h.from, "digest", now,
		"before", before.Info.PolicyDigest)

	addr := gozzard.HostAddr{Cloud: h.cloud}
	if len(info.Addrs) > 0 {
		addr = info.Addrs[0]
	}
	p.note(h.from, addr, gozzard.Event{Kind: gozzard.EventPolicyChanged, At: p.o.Now().UnixMilli(),
		Message: "the policy or the release key of this host was changed: digest " + now + ", before " +
			before.Info.PolicyDigest})
}

// maxDigest is the length of two SHA-256 sums with a slash between them.
const maxDigest = 2*64 + 1

// isDigest reports whether a text can be the digest of a policy. It comes from a host that may be hostile.
func isDigest(s string) bool {
	return len(s) <= maxDigest && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '/'
	})
}

// isAccount reports whether a text can be the name of an account. It comes from a host that may be hostile.
func isAccount(s string) bool { return len(s) <= gozzard.MaxNameBytes && gozzard.IsPlainLine(s) }

// logLift says that an agent has operations on record that this server does not know.
func (p *Plane) logLift(agent gozzard.AgentID, rec *record.Host) {
	switch {
	case rec.NewestGen > gozzard.MaxGen:
		p.o.Log.Error("an agent reports a generation that no server gives out, so its generations stay as they are: "+
			"the state of the agent is damaged, or the agent is hostile; it may reject operations as old",
			"agent", agent, "generation", rec.NewestGen, "most", uint64(gozzard.MaxGen))
	case rec.Lifted:
		p.o.Log.Warn("an agent has newer operations on record than this server, so its generations were lifted: "+
			"the agent had another server before, or the record of this server was lost or replaced by an older copy, "+
			"or the agent is hostile; other hosts are not affected",
			"agent", agent, "generation", rec.NewestGen, "added", rec.Base)
	}
}

// notOpened answers a HELLO whose session was not registered.
func (p *Plane) notOpened(h hello, rec *record.Host) {
	r := h.report
	if r.Version < rec.Protocol {
		p.downgraded(h.from, r.Version, rec.Protocol)
		return
	}

	// The same session of the same run: our Welcome was lost. The same number from another run of the agent, or with
	// another journal, is no repeat: the agent has lost its count with its state.
	s, _, _ := p.delivery.Session(h.from)
	if gozzard.IsHome(s.ID, r.Session) && s.Run == r.Hello.Run && rec.Journal.ID == r.Journal.ID {
		p.welcome(h)
		return
	}

	// A number that no agent reaches by counting.
	if r.Session > rec.Session {
		p.reject("absurd_session", h.from)
		p.o.Log.Error("an agent opens a session with a number that it cannot have reached by counting, so the session is "+
			"rejected: the state of the agent is damaged, or the agent is hostile; revoke the host, or delete the state "+
			"folder of the agent and join again", "agent", h.from, "session", r.Session, "before", rec.Session)
		return
	}

	// Another run of the agent was faster with this very number: both were asked for a new session, and are running.
	if r.Session == rec.Session {
		p.noteRun(h.from, h.cloud, r.Hello.Run)
	}

	// Another run of the server registered it, or the agent lost count. Only a session newer than every one seen can be
	// reconciled.
	p.reject("old_session", h.from)
	p.delivery.Send(h.from, h.cloud, &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandGreet,
		Session: rec.Session})
}

func (p *Plane) welcome(h hello) {
	p.delivery.Send(h.from, h.cloud, &gozzard.Command{
		Version: gozzard.ProtocolVersion, Kind: gozzard.CommandWelcome, Session: h.report.Session,
		Beat: h.report.Hello.Run, Interval: p.o.Interval, Servers: p.servers(h.cloud),
	})
}

// servers are the servers that agents of a cloud area may use.
func (p *Plane) servers(cloud int) []gozzard.ServerAddress {
	if p.o.Servers == nil {
		return nil
	}
	return p.o.Servers(cloud)
}

// ServersChanged says that Options.Servers has another answer. Agents with a session learn it from the answers to their
// next heartbeats: several, because one may be lost.
func (p *Plane) ServersChanged() { p.spreadUntil.Store(p.o.Now().Add(spreadServers).UnixNano()) }

// spreadServers is how long a change of the servers is part of every acknowledgement. An agent sends several heartbeats
// in this time.
const spreadServers = time.Minute
