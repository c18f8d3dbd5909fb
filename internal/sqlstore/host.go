package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

var insertAddrs = insertRows("host_addrs", "cloud, ip, agent_id", " ON CONFLICT (cloud, ip, agent_id) DO NOTHING")

// hostDoc is how the record stores the description of a host, in JSON.
type hostDoc struct {
	Addrs     []addrDoc `json:"addrs,omitempty"`
	Hostname  string    `json:"hostname,omitempty"`
	OS        string    `json:"os,omitempty"`
	Arch      string    `json:"arch,omitempty"`
	Version   string    `json:"version,omitempty"`
	BootID    string    `json:"boot_id,omitempty"`
	StartedAt int64     `json:"started_at,omitempty"`
	CPUs      int       `json:"cpus,omitempty"`
	MemBytes  int64     `json:"mem_bytes,omitempty"`
	Degraded  []string  `json:"degraded,omitempty"`
	Mode      string    `json:"mode,omitempty"`
	Policy    string    `json:"policy_digest,omitempty"`
	Form      uint32    `json:"form,omitempty"`
	Account   string    `json:"default_account,omitempty"`
	History   bool      `json:"history,omitempty"`
	Files     bool      `json:"files,omitempty"`
	Metrics   string    `json:"metrics,omitempty"`
}

type addrDoc struct {
	Cloud int    `json:"cloud"`
	IP    string `json:"ip"`
}

func encodeHost(h *gozzard.HostInfo) (string, error) {
	d := hostDoc{
		Hostname: h.Hostname, OS: h.OS, Arch: h.Arch, Version: h.Version, BootID: h.BootID, StartedAt: h.StartedAt,
		CPUs: h.CPUs, MemBytes: h.MemBytes, Degraded: h.Degraded, Mode: h.Mode.String(),
		Policy: h.PolicyDigest, Form: h.Form, Account: h.DefaultAccount, History: h.History, Files: h.Files,
		Metrics: h.Metrics,
	}
	for _, a := range h.Addrs {
		d.Addrs = append(d.Addrs, addrDoc{Cloud: a.Cloud, IP: ipText(a.IP)})
	}
	b, err := json.Marshal(d)
	return string(b), err
}

func decodeHost(agent gozzard.AgentID, s string) (gozzard.HostInfo, error) {
	var d hostDoc
	if err := json.Unmarshal([]byte(s), &d); err != nil {
		return gozzard.HostInfo{}, fmt.Errorf("description of host %s: %w", agent, err)
	}

	h := gozzard.HostInfo{
		Agent: agent, Hostname: d.Hostname, OS: d.OS, Arch: d.Arch, Version: d.Version, BootID: d.BootID,
		StartedAt: d.StartedAt, CPUs: d.CPUs, MemBytes: d.MemBytes, Degraded: d.Degraded,
		Mode: gozzard.ParseAgentMode(d.Mode), PolicyDigest: d.Policy, Form: d.Form,
		DefaultAccount: d.Account, History: d.History, Files: d.Files,
		Metrics: d.Metrics,
	}
	for _, a := range d.Addrs {
		addr, err := hostAddr(int64(a.Cloud), a.IP)
		if err != nil {
			return h, fmt.Errorf("address of host %s: %w", agent, err)
		}
		h.Addrs = append(h.Addrs, addr)
	}

	return h, nil
}

const (
	hostProtocol = `COALESCE((SELECT p.protocol FROM host_protocols p WHERE p.agent_id = h.agent_id), 0)`
	hostBase     = `COALESCE((SELECT g.base FROM host_generations g WHERE g.agent_id = h.agent_id), 0)`

	selectHosts = `SELECT h.agent_id, h.session, h.last_seen, h.info, j.journal_id, j.lsn, j.since, j.laid,
		` + hostProtocol + `, ` + hostBase + `
		FROM hosts h JOIN host_journals j ON j.agent_id = h.agent_id`

	// Not a join: SQLite plans a join again for every argument, and that takes longer than the read.
	selectHost = `SELECT h.agent_id, h.session, h.last_seen, h.info,
		(SELECT j.journal_id FROM host_journals j WHERE j.agent_id = h.agent_id),
		(SELECT j.lsn FROM host_journals j WHERE j.agent_id = h.agent_id),
		(SELECT j.since FROM host_journals j WHERE j.agent_id = h.agent_id),
		(SELECT j.laid FROM host_journals j WHERE j.agent_id = h.agent_id), ` + hostProtocol + `, ` + hostBase + `
		FROM hosts h WHERE h.agent_id = $1`
)

func scanHost(scan func(...any) error) (h record.Host, err error) {
	var agent gozzard.AgentID
	var session, lsn, since, restored, protocol, base int64
	var info, journal string
	if err := scan(&agent, &session, (*stamp)(&h.LastSeen), &info, &journal, &lsn, &since, &restored,
		&protocol, &base); err != nil {
		return h, err
	}

	h.Session, h.Protocol, h.Base = uint64(session), uint32(protocol), uint64(base)
	h.Journal.LSN, h.JournalSince, h.RestoredJournal = uint64(lsn), uint64(since), uint64(restored)
	if h.Journal.ID, err = fromJournalID(journal); err != nil {
		return h, err
	}

	h.Info, err = decodeHost(agent, info)
	return h, err
}

// Hosts implements control.Store.
func (s *Store) Hosts(ctx context.Context) (list []record.Host, err error) {
	defer s.timed("hosts", &err)()
	rows, err := s.read.db.QueryContext(ctx, selectHosts+` ORDER BY h.agent_id`)
	err = scanAll(rows, err, func(r *sql.Rows) error {
		h, err := scanHost(r.Scan)
		list = append(list, h)
		return err
	})
	return list, s.readError("hosts", err)
}

// OpenSession implements control.Store.
func (s *Store) OpenSession(ctx context.Context, h record.Host) (now record.Host, opened bool, err error) {
	defer s.timed("open_session", &err)()

	if h.Session > math.MaxInt64 {
		return now, false, gozzard.Errorf(gozzard.ErrInvalid, "session number %d of agent %s is too large: at most %d",
			h.Session, h.Info.Agent, int64(math.MaxInt64))
	}

	info, err := encodeHost(&h.Info)
	if err != nil {
		return now, false, fmt.Errorf("cannot encode the description of host %s: %w", h.Info.Agent, err)
	}

	j := &job{op: "a session", rows: 1, run: func(ctx context.Context, c *conn) (err error) {
		now, opened, err = openSession(ctx, c, h, info)
		return err
	}}

	if err := s.w.submit(ctx, j); err != nil {
		return record.Host{}, false, err
	}

	return now, opened, nil
}

// openSession makes a session the current one of its agent. It returns the host as it is recorded afterwards, and
// whether the session was opened.
func openSession(ctx context.Context, c *conn, h record.Host, info string) (now record.Host, opened bool, err error) {
	// Reject a session that is not newer, and a protocol that is older than the host has used.
	agent := text(string(h.Info.Agent))
	var before record.Host
	err = c.each(ctx, selectHost+c.d.forUpdate, []any{agent}, func(r *sql.Rows) (err error) {
		before, err = scanHost(r.Scan)
		return err
	})
	if err != nil || !gozzard.MayOpenSession(before.Session, h.Session) || h.Protocol < before.Protocol {
		return before, false, err
	}

	// Record the session. Another server may have recorded a newer one meanwhile.
	h.Protocol = before.Protocol
	n, err := c.change(ctx, `INSERT INTO hosts (agent_id, session, last_seen, info) VALUES ($1, $2, $3, $4)
		ON CONFLICT (agent_id) DO UPDATE
		SET session = excluded.session, last_seen = excluded.last_seen, info = excluded.info
		WHERE hosts.session < excluded.session`, agent, counter(h.Session), millis(h.LastSeen), info)
	if err != nil || n == 0 {
		return before, false, err
	}

	// Lift the generations of the agent, so that it does not reject new operations as old.
	h.Base = before.Base
	if err := liftBase(ctx, c, &h); err != nil {
		return before, false, err
	}

	// Record the journal. Nothing needs to be restored for a host that is new, that a restored record meets for the
	// first time, or that has lost nothing although its journal has another id.
	h.JournalSince = gozzard.JournalSince(before.Journal, before.JournalSince, h.Journal, h.Session)
	h.RestoredJournal = before.RestoredJournal

	if before.Session == 0 || h.Kept && before.RestoredJournal == before.JournalSince {
		h.RestoredJournal = h.JournalSince
	}

	// A record that is behind the agent knows nothing about its journal: an operation that the journal does not have may
	// have been done and forgotten since. Nor are the definitions of the record newer than those of the host.
	if h.Lifted && h.JournalSince == before.JournalSince {
		h.JournalSince, h.RestoredJournal = h.Session, h.Session
	}

	_, err = c.change(ctx, `INSERT INTO host_journals (agent_id, journal_id, lsn, since, laid)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (agent_id) DO UPDATE
		SET journal_id = excluded.journal_id, lsn = excluded.lsn, since = excluded.since, laid = excluded.laid`,
		agent, journalID(h.Journal.ID), counter(h.Journal.LSN), counter(h.JournalSince), counter(h.RestoredJournal))
	if err != nil {
		return before, false, err
	}

	// A new journal has no events of the one before, and its clock may have been set back.
	if before.Journal.ID != h.Journal.ID && before.Journal.ID != [16]byte{} && !h.Kept {
		if _, err := c.change(ctx, `DELETE FROM event_marks WHERE agent_id = $1`, agent); err != nil {
			return before, false, err
		}
	}

	return h, true, putAddrs(ctx, c, agent, before.Info.Addrs, h.Info.Addrs)
}

// liftBase makes the generations of an agent newer than those that it has on record. The number of the last task is read
// only when the agent has any, and nothing is written in an ordinary session.
func liftBase(ctx context.Context, c *conn, h *record.Host) error {
	if h.NewestGen == 0 {
		return nil
	}
	var last int64
	if _, err := c.one(ctx, `SELECT value FROM counters WHERE name = 'number'`, nil, &last); err != nil {
		return err
	}

	base := gozzard.LiftBase(uint64(last), h.Base, h.NewestGen)
	if base == h.Base {
		return nil
	}
	h.Base, h.Lifted = base, true
	_, err := c.change(ctx, `INSERT INTO host_generations (agent_id, base) VALUES ($1, $2)
		ON CONFLICT (agent_id) DO UPDATE SET base = excluded.base`, text(string(h.Info.Agent)), counter(base))
	return err
}

// RaiseProtocol implements control.Store.
func (s *Store) RaiseProtocol(ctx context.Context, agent gozzard.AgentID, version uint32) (err error) {
	defer s.timed("raise_protocol", &err)()
	return s.w.submit(ctx, &job{op: "a host's protocol", rows: 1, run: func(ctx context.Context, c *conn) error {
		_, err := c.change(ctx, `INSERT INTO host_protocols (agent_id, protocol) VALUES ($1, $2)
			ON CONFLICT (agent_id) DO UPDATE SET protocol = excluded.protocol
			WHERE host_protocols.protocol < excluded.protocol`, text(string(agent)), int64(version))
		return err
	}})
}

// JournalRestored implements control.Store.
func (s *Store) JournalRestored(ctx context.Context, agent gozzard.AgentID, since uint64) (err error) {
	defer s.timed("laid_down", &err)()
	return s.w.submit(ctx, &job{op: "a host's state", rows: 1, run: func(ctx context.Context, c *conn) error {
		_, err := c.change(ctx, `UPDATE host_journals SET laid = since WHERE agent_id = $1 AND since = $2`,
			text(string(agent)), counter(since))
		return err
	}})
}

// putAddrs replaces the recorded addresses of an agent, if they have changed.
func putAddrs(ctx context.Context, c *conn, agent string, old, addrs []gozzard.HostAddr) error {
	if slices.Equal(old, addrs) {
		return nil
	}
	if _, err := c.change(ctx, `DELETE FROM host_addrs WHERE agent_id = $1`, agent); err != nil {
		return err
	}
	addrs = slices.DeleteFunc(slices.Clone(addrs), func(a gozzard.HostAddr) bool { return !a.IP.IsValid() })
	return c.execRows(ctx, insertAddrs, len(addrs), func(i int, to []any) []any {
		return append(to, addrs[i].Cloud, ipText(addrs[i].IP), agent)
	})
}

// Rebind implements control.Store. When several agents had the address, the processes of the one seen last take
// precedence.
func (s *Store) Rebind(ctx context.Context, addr gozzard.HostAddr, to gozzard.AgentID,
	audit gozzard.AuditRow) (err error) {
	defer s.timed("rebind", &err)()
	audit = withOrigin(ctx, audit)
	return s.w.submit(ctx, &job{op: "an agent's address", rows: 1, run: func(ctx context.Context, c *conn) error {
		if err := rebind(ctx, c, addr, text(string(to)), audit); err != nil {
			return err
		}
		return c.bump(ctx, record.KindHosts)
	}})
}

func rebind(ctx context.Context, c *conn, addr gozzard.HostAddr, to string, audit gozzard.AuditRow) error {
	// Find the agents that had the address.
	var others []string
	err := c.each(ctx, `SELECT h.agent_id FROM host_addrs a JOIN hosts h ON h.agent_id = a.agent_id
		WHERE a.cloud = $1 AND a.ip = $2 AND a.agent_id <> $3 ORDER BY h.last_seen DESC, h.agent_id`,
		[]any{addr.Cloud, ipText(addr.IP), to}, func(r *sql.Rows) error {
			others = append(others, "")
			return r.Scan(&others[len(others)-1])
		})
	if err != nil {
		return err
	}

	// Record which agents lose what they have.
	audit.Targets = len(others)
	audit.SetHost(gozzard.AgentID(to), addr)
	if err := audit.SetText("from: " + strings.Join(others, ", ")); err != nil {
		return err
	}
	if err := addAudit(ctx, c, audit); err != nil {
		return err
	}

	// Move what they have. What the new agent has already is not overwritten, and the rest of theirs is removed.
	for _, from := range others {
		for _, q := range [...]string{
			`UPDATE processes SET agent_id = $1 WHERE agent_id = $2 AND NOT EXISTS
				(SELECT 1 FROM processes p
				WHERE p.agent_id = $1 AND p.namespace = processes.namespace AND p.name = processes.name)`,
			`UPDATE process_groups SET agent_id = $1 WHERE agent_id = $2 AND NOT EXISTS
				(SELECT 1 FROM process_groups p
				WHERE p.agent_id = $1 AND p.namespace = process_groups.namespace AND p.grp = process_groups.grp)`,
		} {
			if _, err := c.change(ctx, q, to, from); err != nil {
				return err
			}
		}
		for _, q := range [...]string{`DELETE FROM processes WHERE agent_id = $1`,
			`DELETE FROM process_groups WHERE agent_id = $1`} {
			if _, err := c.change(ctx, q, from); err != nil {
				return err
			}
		}
	}

	return nil
}

// Forget implements control.Store.
func (s *Store) Forget(ctx context.Context, host gozzard.HostRef, audit gozzard.AuditRow) (processes int, err error) {
	defer s.timed("forget", &err)()
	audit = withOrigin(ctx, audit)
	j := &job{op: "the end of a host", rows: 1, run: func(ctx context.Context, c *conn) (err error) {
		if processes, err = forgetHost(ctx, c, host, audit); err != nil {
			return err
		}
		return c.bump(ctx, record.KindHosts)
	}}
	return processes, s.w.submit(ctx, j)
}

func forgetHost(ctx context.Context, c *conn, host gozzard.HostRef, audit gozzard.AuditRow) (processes int, err error) {
	agent := text(string(host.Agent))
	for _, table := range [...]string{"processes", "process_groups", "host_addrs", "host_journals", "host_protocols",
		"host_generations", "event_marks", "hosts"} {
		n, err := c.change(ctx, `DELETE FROM `+table+` WHERE agent_id = $1`, agent)
		if err != nil {
			return 0, err
		}
		if table == "processes" {
			processes = int(n)
		}
	}

	audit.Targets = 1
	addr := gozzard.HostAddr{}
	if len(host.Addrs) > 0 {
		addr = host.Addrs[0]
	}
	audit.SetHost(host.Agent, addr)
	if err := audit.SetText(fmt.Sprintf("processes: %d", processes)); err != nil {
		return 0, err
	}
	return processes, addAudit(ctx, c, audit)
}
