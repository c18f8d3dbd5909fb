package agentd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/policy"
)

// JoinOptions are the settings of `gozzard agent join`.
type JoinOptions struct {
	Data      string
	Server    string // URL of the API
	TokenFile string
	IPs       []string              // none: the address by which this host reaches the server
	AllowRoot bool                  // in the policy that is written
	Default   string                // account of definitions that name none; the policy must allow it
	Users     []string              // accounts that the policy must allow
	Paths     []string              // folders that the policy must allow
	Files     []string              // folders below which the policy must allow files
	Texts     []func(string) string // as policy.Choice
	Policy    string                // file of the policy, if the agent is started with --policy
}

// Joined is a host that has become a member.
type Joined struct {
	Agent   gozzard.AgentID
	Cloud   int
	IP      netip.Addr // the first of its addresses
	Pending bool       // an operator must approve it first
	Policy  string     // the file
	NotUsed []string   // addresses that were given and that the server does not use: a known agent keeps its own
}

// Join makes this host a member of a server's fleet and writes its policy.
func Join(ctx context.Context, o JoinOptions) (j Joined, err error) {
	if err := journal.CheckVersion(o.Data); err != nil {
		return j, err
	}
	token, err := readToken(o.TokenFile)
	if err != nil {
		return j, err
	}
	isNew := !exists(o.Data)
	if err := os.MkdirAll(o.Data, 0o700); err != nil {
		return j, fmt.Errorf("cannot make the state folder: %w", err)
	}
	defer func() { // after the policy is put back
		if err != nil && isNew {
			_ = os.Remove(o.Data) // a folder with something in it stays
		}
	}()

	// Do everything that can fail on this host before the token is used: its policy, and a file in its state folder.
	own, err := host.OwnPrivileges()
	if err != nil {
		return j, err
	}
	if err := o.checkUsers(own); err != nil {
		return j, err
	}
	rules := PolicyOptions{File: o.Policy, AllowRoot: o.AllowRoot, Default: o.Default, Users: o.Users,
		Paths: o.Paths, Files: o.Files, Texts: o.Texts, Fit: true}
	undo, err := rules.keep(o.Data, own)
	if err != nil {
		return j, err
	}
	defer func() { // a host that did not join allows no more than before
		if err != nil {
			err = errors.Join(err, undo())
		}
	}()
	if j.Policy, _, err = rules.create(o.Data, own); err != nil {
		return j, err
	}
	if err := atomicfile.Probe(o.Data); err != nil {
		return j, fmt.Errorf("cannot write to the state folder: %w", err)
	}

	// Describe this host.
	eo := enrol.JoinOptions{Server: o.Server, Token: token, Dir: o.Data, Machine: enrol.Machine()}
	if eo.Agent, err = joiningAs(o.Data); err != nil {
		return j, err
	}
	if eo.IPs, err = parseIPs(o.IPs); err != nil {
		return j, err
	}
	if eo.Hostname, err = os.Hostname(); err != nil {
		return j, fmt.Errorf("cannot find this host's name: %w", err)
	}

	// Join, and keep what was agreed.
	m, err := enrol.Join(ctx, eo)
	if err != nil {
		return j, err
	}

	j.Agent, j.Cloud, j.IP, j.Pending = m.Agent, m.Cloud, m.IPs[0], m.State() == enrol.StatePending
	for _, ip := range eo.IPs {
		if !slices.Contains(m.IPs, ip) {
			j.NotUsed = append(j.NotUsed, ip.String())
		}
	}
	return j, nil
}

// checkUsers rejects accounts that the agent of this account cannot become: the policy that is written here has no
// effect on them, and an agent in mode cap reads another one.
func (o *JoinOptions) checkUsers(own host.Privileges) error {
	if own.Mode != gozzard.ModeUser || o.Policy != "" {
		return nil
	}
	for _, name := range append(slices.Clone(o.Users), o.Default) {
		if name != "" && name != own.Account {
			return fmt.Errorf("cannot allow account %s: this command runs as %s, and an agent of this account runs no commands "+
				"of others. For an agent in mode cap or root, join as root: the policy is then %s, and for mode cap give the "+
				"state folder to the account of the agent afterwards (chown -R)", name, own.Account,
				filepath.Join(systemFolder, policy.FileName))
		}
	}
	return nil
}

// joiningAs is the id of the agent of a state folder: of an earlier enrolment, of an agent that ran without one, or
// a fresh one.
func joiningAs(dir string) (gozzard.AgentID, error) {
	m, err := enrol.LoadMembership(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return agent.Identity(dir)
	}
	if err != nil {
		return "", err
	}
	return m.Agent, nil
}

func readToken(path string) (enrol.Token, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return enrol.Token{}, fmt.Errorf("cannot read the token: %w", err)
	}
	if err := atomicfile.Check(path); err != nil {
		return enrol.Token{}, err
	}
	return enrol.ParseToken(string(b))
}

func parseIPs(list []string) (ips []netip.Addr, err error) {
	for _, s := range list {
		ip, err := gozzard.ParseIP(s)
		if err != nil {
			return nil, fmt.Errorf("--ip: %w", err)
		}
		ips = append(ips, ip)
	}
	return ips, nil
}
