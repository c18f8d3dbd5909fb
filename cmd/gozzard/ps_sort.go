package main

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// sortFlags say in which order processes are listed.
type sortFlags struct {
	by      string
	reverse bool
}

func sortChoices() []string {
	return []string{"name", "host", "state", "cpu", "mem", "restarts", "uptime"}
}

func (s *sortFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.by, "sort", "", "`KEY` to sort by: "+strings.Join(sortChoices(), ", ")+"; -KEY reverses the order")
	f.BoolVar(&s.reverse, "reverse", false, "reverse the order")
	completeFixed(cmd, "sort", sortChoices()...)
}

// check rejects an unknown key, and takes the minus off a reversed one.
func (s *sortFlags) check() error {
	given := s.by
	if key, ok := strings.CutPrefix(s.by, "-"); ok {
		s.by, s.reverse = key, !s.reverse
	}
	if given != "" && !slices.Contains(sortChoices(), s.by) {
		return usage("--sort %q: use %s; -KEY reverses the order", given, words(sortChoices()))
	}
	return nil
}

// sort sorts processes by a key. Processes that are equal in it are in the order of namespace, name and host, also in
// the reversed order.
func (s *sortFlags) sort(rows []client.Process, by string) {
	compare := processOrder(by)
	slices.SortStableFunc(rows, func(a, b client.Process) int {
		d := compare(&a, &b)
		if s.reverse {
			d = -d
		}
		return cmp.Or(d, byName(&a, &b), byHost(&a, &b))
	})
}

// processOrder is the order of a key. Numbers are listed with the largest first.
func processOrder(key string) func(a, b *client.Process) int {
	switch key {
	case "host":
		return byHost
	case "state":
		return func(a, b *client.Process) int { return cmp.Compare(viewState(a.State).rank, viewState(b.State).rank) }
	case "cpu":
		return largest(func(p *client.Process) float64 { return measured(p, float64(p.CPU)) })
	case "mem":
		return largest(func(p *client.Process) float64 { return measured(p, float64(p.MemBytes)) })
	case "restarts":
		return largest(func(p *client.Process) float64 { return float64(p.Restarts) })
	case "uptime":
		return largest(func(p *client.Process) float64 { return measured(p, -float64(p.StartedAt.UnixMilli())) })
	}
	return byName
}

// measured is the number of a process that is up. Others sort behind: they have none.
func measured(p *client.Process, n float64) float64 {
	if !isUp(p) {
		return -1e300
	}
	return n
}

func largest(value func(*client.Process) float64) func(a, b *client.Process) int {
	return func(a, b *client.Process) int { return cmp.Compare(value(b), value(a)) }
}

func byName(a, b *client.Process) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// byHost compares addresses as numbers: 10.0.0.9 is before 10.0.0.10.
func byHost(a, b *client.Process) int {
	at, _ := netip.ParseAddr(a.Host.IP) // an address that cannot be read is before all others
	bt, _ := netip.ParseAddr(b.Host.IP)
	return cmp.Or(cmp.Compare(a.Host.Cloud, b.Host.Cloud), at.Compare(bt), cmp.Compare(a.Host.Agent, b.Host.Agent))
}
