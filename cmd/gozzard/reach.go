package main

import (
	"context"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// maxReached is how many processes are named that a pattern chose.
const maxReached = 10

// reach is what patterns without --namespace choose: the processes, and their namespaces.
type reach struct {
	processes  []client.Process // one more than are named at most
	namespaces []string
}

// reached reads what the names choose, if there are patterns among them and no --namespace. It is empty if the names stay
// in one namespace that is not that of a business: their author has most probably no other one in mind.
func (t *targetFlags) reached(ctx context.Context, c *client.Client, s *client.Selection) (r reach, err error) {
	if t.isSet() || len(t.namespaces) > 0 || !slices.ContainsFunc(s.Names, isPattern) {
		return reach{}, nil
	}

	q := client.ProcessQuery{Names: s.Names, Hosts: t.hosts}
	if len(t.hosts) == 0 && len(s.Hosts) > 0 { // the only host
		q.Hosts = []string{string(s.Hosts[0].Agent)}
	}
	for p, err := range c.AllProcesses(ctx, q) {
		if err != nil {
			return reach{}, withExitCode(err)
		}
		if len(r.processes) <= maxReached {
			r.processes = append(r.processes, p)
		}
		if !slices.Contains(r.namespaces, p.Namespace) {
			r.namespaces = append(r.namespaces, p.Namespace)
		}
		if r.isEnough(t.oneSpace) {
			break
		}
	}

	if !r.isWide() {
		return reach{}, nil
	}
	if t.oneSpace {
		err = r.checkOne()
	}
	return r, err
}

// isWide reports whether the processes are in several namespaces, or in that of a business.
func (r *reach) isWide() bool {
	if len(r.namespaces) != 1 {
		return len(r.namespaces) > 1
	}
	_, ok := gozzard.BusinessOf(r.namespaces[0])
	return ok
}

// isEnough reports whether further processes would change nothing that is said: a fleet may have very many. Where several
// namespaces are rejected, their names are said, too.
func (r *reach) isEnough(oneSpace bool) bool {
	if oneSpace {
		return len(r.namespaces) > maxReached
	}
	return len(r.processes) > maxReached && r.isWide()
}

// checkOne rejects processes of several namespaces.
func (r *reach) checkOne() error {
	if len(r.namespaces) < 2 {
		return nil
	}
	shown := slices.Sorted(slices.Values(r.namespaces))
	if len(shown) > maxReached {
		shown = append(shown[:maxReached], "...")
	}
	return usage("the pattern matches processes of several namespaces: %s; choose with -n NAMESPACE, or give -n '*' for all of them",
		words(shown))
}

// remarkReach names the processes that a pattern chose.
func (env *cliEnv) remarkReach(what string, r *reach) {
	for i := range r.processes[:min(len(r.processes), maxReached)] {
		p := &r.processes[i]
		env.remark("%s: %s:%s on %s", what, printable(p.Namespace), printable(p.Name), processHost(p))
	}
	if len(r.processes) > maxReached {
		env.remark("%s: more processes, see the task", what)
	}
}
