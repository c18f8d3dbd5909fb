package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// processFlags are the flags that choose processes.
type processFlags struct {
	namespaces []string
	hosts      []string
	states     []string
	labels     []string
	managed    bool
	flags      *pflag.FlagSet
}

// register adds the flags that every command about processes has.
func (p *processFlags) register(env *cliEnv, cmd *cobra.Command) {
	f := cmd.Flags()
	p.flags = f
	f.StringArrayVarP(&p.namespaces, "namespace", "n", nil,
		"`NAMESPACE`, or a pattern such as 'shop-*'; may be repeated")
	f.StringArrayVar(&p.hosts, "host", nil, "`HOST` as cloud:ip, an IP address, a host name or an agent id; may be repeated")
	completeFlag(cmd, "namespace", env.completeNamespaces)
	completeFlag(cmd, "host", env.completeHosts)
}

// registerStatus adds the flags that choose processes by what the agent reports.
func (p *processFlags) registerStatus(env *cliEnv, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVarP(&p.labels, "label", "l", nil, "`LABEL` as key=value, key!=value, key or !key; the value may be a "+
		"pattern; may be repeated, and all must match")
	f.StringArrayVar(&p.states, "state", nil, "`STATE` such as running or crash-loop; may be repeated")
	completeFlag(cmd, "label", env.completeLabels)
	completeFixed(cmd, "state", stateChoices()...)
}

// registerManaged adds the flag --managed. Earlier versions called it --hosted.
func (p *processFlags) registerManaged(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&p.managed, "managed", true, "only supervised processes; --managed=false for the others")
	f.BoolVar(&p.managed, "hosted", true, "the old name of --managed")
	f.Lookup("managed").DefValue = "" // without the flag both kinds are listed, so help shows no default
	_ = f.MarkHidden("hosted")        // it fails only for a flag that does not exist
	cmd.MarkFlagsMutuallyExclusive("managed", "hosted")
}

// stateChoices are the states as people type them.
func stateChoices() (words []string) {
	for _, c := range gozzard.Conditions() {
		words = append(words, strings.ReplaceAll(c.String(), "_", "-"))
	}
	return words
}

// query is the question to the server that the flags and names make.
func (p *processFlags) query(names []string) (client.ProcessQuery, error) {
	q := client.ProcessQuery{Namespaces: p.namespaces, Names: names, Hosts: p.hosts, Labels: p.labels}
	for _, s := range p.states {
		state, ok := gozzard.ParseCondition(strings.ToLower(s))
		if !ok {
			return q, usage("--state %q: use %s", s, words(stateChoices()))
		}
		if word := state.String(); !slices.Contains(q.States, word) {
			q.States = append(q.States, word)
		}
	}

	for _, l := range p.labels {
		if _, err := gozzard.ParseLabelRule(l); err != nil {
			return q, usage("-l %q: %w; use key=value, key!=value, key or !key", l, err)
		}
	}
	if _, err := parseHostFlags(p.hosts); err != nil {
		return q, err
	}
	if p.flags.Changed("managed") || p.flags.Changed("hosted") {
		q.Managed = &p.managed
	}

	return q, nil
}

// isUnfiltered reports whether a query asks for all processes.
func isUnfiltered(q *client.ProcessQuery) bool {
	return len(q.Namespaces)+len(q.Names)+len(q.Hosts)+len(q.States)+len(q.Labels)+q.Biz == 0 && q.Managed == nil
}
