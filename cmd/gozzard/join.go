package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/enrol"
)

// joinConfig is what `gozzard agent join` takes.
type joinConfig struct {
	Data      string
	Server    string
	TokenFile string
	IPs       []string
	AllowRoot bool
}

// newJoinCommand is `gozzard agent join`.
func newJoinCommand() *cobra.Command {
	var cfg joinConfig
	cmd := &cobra.Command{
		Use:   "join",
		Short: "Make this host a member of a server's fleet",
		Long: `Make this host a member of the fleet of a server, with a token that was made there ("gozzard token create"). A key is made on this host and never leaves it;
the server gives a certificate for it, which the agent renews by itself. The token names the authority of its server, and nothing of it is sent to
anybody who cannot prove to be that server. What was agreed is kept in the state folder; "gozzard agent" with the same --data then serves the server.

The host's policy is written here, too. Without --allow-root no command is run as root, whatever the server asks for.`,
		Example: `  gozzard agent join --server https://10.0.0.1:8443 --token-file token --data /var/lib/gozzard-agent
  gozzard agent join --server https://10.0.0.1:8443 --token-file token --data /var/lib/gozzard-agent --allow-root --ip 10.0.0.2`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Server == "" || cfg.TokenFile == "" {
				return errors.New("--server and --token-file are needed")
			}
			return failed(runJoin(cmd, cfg))
		},
	}

	f := cmd.Flags()
	f.StringVar(&cfg.Data, "data", "./agent", "folder of this agent's state")
	f.StringVar(&cfg.Server, "server", "", "`URL` of the server's API, such as https://10.0.0.1:8443")
	f.StringVar(&cfg.TokenFile, "token-file", "", "`FILE` with the token, readable by its owner only")
	f.StringSliceVar(&cfg.IPs, "ip", nil,
		"addresses by which callers name this host (default: the one by which it reaches the server)")
	f.BoolVar(&cfg.AllowRoot, "allow-root", false, "allow the account root in the policy that is written")
	return cmd
}

func runJoin(cmd *cobra.Command, cfg joinConfig) error {
	token, err := readToken(cfg.TokenFile)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return fmt.Errorf("cannot make the state folder: %w", err)
	}

	o := enrol.JoinOptions{Server: cfg.Server, Token: token, Dir: cfg.Data, Machine: enrol.Machine()}
	if o.Agent, err = joiningAs(cfg.Data); err != nil {
		return err
	}
	if o.IPs, err = parseIPs(cfg.IPs); err != nil {
		return err
	}
	if o.Hostname, err = os.Hostname(); err != nil {
		return fmt.Errorf("cannot find this host's name: %w", err)
	}

	m, err := enrol.Join(cmd.Context(), o)
	if err != nil {
		return err
	}
	if _, err := firstPolicy(cfg.Data, cfg.AllowRoot); err != nil {
		return err
	}

	next := "start it with: gozzard agent --data " + cfg.Data

	if m.State() == enrol.StatePending {
		next = "it waits for approval: gozzard hosts approve " + string(m.Agent)
	}

	return written(fmt.Fprintf(cmd.OutOrStdout(), "this host joined as agent %s in cloud %d, answers as %s; %s\n",
		m.Agent, m.Cloud, m.IPs[0], next))
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

// membership makes an agent serve the server that its host has joined.
func (c *agentConfig) membership(ipsGiven bool) error {
	m, err := enrol.LoadMembership(c.Data)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("this host has joined no server: run gozzard agent join --data %s, or give --secret-file for a server on this machine", filepath.Clean(c.Data))
	}
	if err != nil {
		return err
	}

	c.Member, c.Server, c.Cloud = m, m.Address, m.Cloud

	if !ipsGiven {
		c.IPs = nil
		for _, ip := range m.IPs {
			c.IPs = append(c.IPs, ip.String())
		}
	}

	return nil
}

// identity is who the agent is: as it was enrolled, else as its state folder says.
func (c *agentConfig) identity() (gozzard.AgentID, error) {
	if c.Member != nil {
		return c.Member.Agent, nil
	}
	return agent.Identity(c.Data)
}
