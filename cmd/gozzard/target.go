package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// targetFlags choose the processes and hosts of an operation.
type targetFlags struct {
	scopeFlags
	namespaces []string
	hosts      []string
	allHosts   bool

	oneSpace bool // patterns must stay in one namespace, unless --namespace is given
}

func (t *targetFlags) register(f *pflag.FlagSet) {
	f.StringArrayVarP(&t.namespaces, "namespace", "n", nil,
		"`NAMESPACE`, or a pattern; may be repeated (default: every namespace that has the name)")
	f.StringArrayVar(&t.hosts, "host", nil,
		"`HOST` as cloud:ip, an IP address, a host name or an agent id; may be repeated (default: the only host that has the process)")
	f.BoolVar(&t.allHosts, "all-hosts", false, "every host that has the process")
	t.scopeFlags.register(f)
}

// check rejects flags that are wrong on their own, without a server. The selection that it returns has no scope
// yet.
func (t *targetFlags) check(names []string) (client.Selection, error) {
	s := client.Selection{Namespaces: t.namespaces, Names: names, All: t.allHosts}
	if len(t.namespaces) == 1 { // older servers know one namespace only
		s.Namespace, s.Namespaces = t.namespaces[0], nil
	}
	switch {
	case t.isSet() && (len(t.namespaces) > 0 || t.allHosts):
		return s, usage("--namespace and --all-hosts cannot be used with a business: " +
			"the business defines namespace and hosts")
	case t.isSet() && !t.narrows() && len(names)+len(t.hosts) == 0:
		return s, usage("choose processes of the business with -e, --set, --module, --host or NAME; " +
			"-e '*.*.*.*.*' means all (see --help)")
	case !t.isSet() && len(names) == 0:
		return s, usage("choose processes with NAME... or -e EXPRESSION; '*' means all (see --help)")
	case t.allHosts && len(t.hosts) > 0:
		return s, usage("give --host HOST (may be repeated) or --all-hosts, not both")
	}

	var err error
	s.Hosts, err = parseHostFlags(t.hosts)
	return s, err
}

// run sends a request for the processes that the flags and names choose, and waits for its task.
func (t *targetFlags) run(ctx context.Context, env *cliEnv, tf *taskFlags, what string, names []string,
	ask func(*client.Client, client.Selection) (client.Accepted, error)) error {
	s, err := t.check(names)
	if err != nil {
		return err
	}
	return env.runTask(ctx, tf, what, func(c *client.Client) (client.Accepted, error) {
		if err := t.complete(ctx, c, &s); err != nil {
			return client.Accepted{}, err
		}
		reached, err := t.reached(ctx, c, &s)
		if err != nil {
			return client.Accepted{}, err
		}
		a, err := ask(c, s)
		if err == nil {
			env.remarkReach(what, &reached)
		}
		return a, t.explain(ctx, c, names, err)
	})
}

// dryRun prints what a request for the processes that the flags and names choose would do.
func (t *targetFlags) dryRun(ctx context.Context, env *cliEnv, o *outputFlag, what string, names []string,
	ask func(*client.Client, client.Selection) (client.Preview, error)) error {
	s, err := t.check(names)
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	return env.withClient(func(c *client.Client) error {
		if err := t.complete(ctx, c, &s); err != nil {
			return err
		}
		if _, err := t.reached(ctx, c, &s); err != nil {
			return err
		}
		p, err := ask(c, s)
		if err != nil {
			return t.explain(ctx, c, names, err)
		}
		return env.printPreview(o, what, &p)
	})
}

// explain says more about an answer that no process matches.
func (t *targetFlags) explain(ctx context.Context, c *client.Client, names []string, err error) error {
	var e *gozzard.Error
	if !t.isSet() && errors.As(err, &e) && e.Kind == gozzard.ErrNotFound && e.Message == nothingMatches {
		return t.sought(names).noMatch(ctx, c)
	}
	return err
}

// nothingMatches is the answer of the server to a selection without processes.
const nothingMatches = "no registered process matches"

func (t *targetFlags) sought(names []string) sought {
	return sought{namespaces: t.namespaces, names: names, hosts: t.hosts, operates: true}
}

// complete asks the server for what the flags leave open: the only business, or the only host.
func (t *targetFlags) complete(ctx context.Context, c *client.Client, s *client.Selection) error {
	var err error
	if s.BusinessSelection, err = t.scope(ctx, c); err != nil {
		return err
	}
	if !t.isSet() && !t.allHosts && len(t.hosts) == 0 {
		s.Hosts, err = t.onlyHost(ctx, c, s.Names)
	}
	return err
}

// onlyHost is the host of the processes that are meant, when there is one only. A command without a word about hosts
// must not reach more than its author has in mind.
func (t *targetFlags) onlyHost(ctx context.Context, c *client.Client, names []string) ([]client.Host, error) {
	var first *client.Process
	for p, err := range c.AllProcesses(ctx, client.ProcessQuery{Namespaces: t.namespaces, Names: names}) {
		if err != nil {
			return nil, withExitCode(err)
		}
		if first == nil {
			first = &p
		}
		if p.Host.Agent != first.Host.Agent {
			return nil, usage("the processes are on several hosts, such as %s and %s: choose hosts with --host HOST "+
				"(may be repeated) or --all-hosts", processHost(first), processHost(&p))
		}
	}

	if first == nil {
		return nil, t.sought(names).noMatch(ctx, c)
	}

	return []client.Host{{Agent: first.Host.Agent}}, nil
}

// processHost names the host of a process.
func processHost(p *client.Process) string { return refName(p.Host) }
