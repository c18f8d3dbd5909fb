package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/suggest"
)

// maxMeant is how many processes an error proposes.
const maxMeant = 4

// sought is what a command looked for and did not find.
type sought struct {
	namespaces, names, hosts []string
	operates                 bool // the command also takes --biz
}

// noMatch is the error of a command that found no process. It names what is probably meant, out of what the caller may
// see: the server answers nothing else.
func (s sought) noMatch(ctx context.Context, c *client.Client) error {
	// Look at the namespaces first: a wrong one hides every name.
	for _, ns := range s.namespaces {
		if err := unknownNamespace(ctx, c, ns); err != nil {
			return err
		}
	}

	// Look on other hosts, where hosts were chosen.
	if len(s.hosts) > 0 {
		q := client.ProcessQuery{Namespaces: s.namespaces, Names: s.names}
		if page, err := c.Processes(ctx, q, 0, maxMeant); err == nil && page.Count > 0 {
			var on []string
			for i := range page.Processes {
				if host := processHost(&page.Processes[i]); !slices.Contains(on, host) {
					on = append(on, host)
				}
			}
			return notFound("%s is not registered on the hosts that you chose; it is on %s", words(s.names), words(on))
		}
	}

	// Look for other names.
	if meant := s.meant(ctx, c); len(meant) > 0 {
		return notFound("no registered process matches %s; did you mean %s?", words(s.names), words(meant))
	}
	return notFound("no registered process matches %s; see gozzard ps", words(s.names))
}

// noneOf says why no process fits a question, with what is probably meant. nil: nothing that is named is missing.
func noneOf(ctx context.Context, c *client.Client, q *client.ProcessQuery) error {
	// Look at what is named by itself.
	if q.Biz != 0 {
		return bare(unknownBusiness(ctx, c, q.Biz))
	}
	for _, ns := range q.Namespaces {
		if err := unknownNamespace(ctx, c, ns); err != nil {
			return bare(err)
		}
	}
	for _, host := range q.Hosts {
		page, err := c.Processes(ctx, client.ProcessQuery{Hosts: []string{host}}, 0, 1)
		if err == nil && page.Count == 0 {
			return fmt.Errorf("no process is registered on host %s; gozzard hosts lists the hosts", printable(host))
		}
	}

	// The names may be misspelt, unless something else narrows the question.
	if len(q.Names) == 0 || len(q.States)+len(q.Labels) > 0 || q.Managed != nil {
		return nil
	}
	return bare(sought{namespaces: q.Namespaces, names: q.Names, hosts: q.Hosts}.noMatch(ctx, c))
}

// bare is an error without its exit code.
func bare(err error) error {
	var coded *exitError
	if errors.As(err, &coded) {
		return coded.err
	}
	return err
}

// notFound is an error with the exit code of what does not exist.
func notFound(format string, args ...any) error {
	return &exitError{exitNoMatch, withLists(fmt.Errorf(format, args...), format, args)}
}

// unknownNamespace is an error if no process that the caller may see is in a namespace.
func unknownNamespace(ctx context.Context, c *client.Client, ns string) error {
	if isPattern(ns) {
		return nil
	}
	page, err := c.Processes(ctx, client.ProcessQuery{Namespaces: []string{ns}}, 0, 1)
	if err != nil || page.Count > 0 {
		return nil
	}

	var known []string
	if page, err = c.Processes(ctx, client.ProcessQuery{}, 0, client.MaxPage); err == nil {
		for i := range page.Processes {
			known = append(known, page.Processes[i].Namespace)
		}
	}
	if near := suggest.Nearest(ns, known); near != "" {
		return notFound("no process is registered in the namespace %s; did you mean %s?", printable(ns), printable(near))
	}
	return notFound("no process is registered in the namespace %s; gozzard ps lists all namespaces", printable(ns))
}

// meant are the processes whose names are near, each as it is given to a command.
func (s sought) meant(ctx context.Context, c *client.Client) (out []string) {
	add := func(text string) {
		if !slices.Contains(out, text) && len(out) < maxMeant {
			out = append(out, text)
		}
	}
	propose := func(list []client.Process, near func(*client.Process) bool) {
		for i := range list {
			p := &list[i]
			if !near(p) {
				continue
			}
			add(strings.Join([]string{printable(p.Name), "-n", printable(p.Namespace)}, " "))
			if biz, own, ok := businessProcess(p.Namespace, p.Name); ok && s.operates && !strings.Contains(own, " #") {
				add(strings.Join([]string{printable(own), "--biz", strconv.Itoa(biz)}, " "))
			}
		}
	}

	for _, name := range s.names {
		if isPattern(name) {
			continue
		}

		// The same name in another namespace, and longer names such as redis_1 for redis.
		anyOf := func(*client.Process) bool { return true }
		for _, q := range []client.ProcessQuery{
			{Names: []string{name}}, {Namespaces: s.namespaces, Names: []string{name + "_*"}},
			{Namespaces: s.namespaces, Names: []string{"*" + name + "*"}}, {Names: []string{name + "_*"}}} {
			if page, err := c.Processes(ctx, q, 0, maxMeant); err == nil {
				propose(page.Processes, anyOf)
			}
		}

		// Misspelt names, among the first that the server lists.
		page, err := c.Processes(ctx, client.ProcessQuery{Namespaces: s.namespaces}, 0, client.MaxPage)
		if err != nil || len(out) > 0 {
			continue
		}
		var known []string
		for i := range page.Processes {
			known = append(known, page.Processes[i].Name)
		}
		if near := suggest.Nearest(name, known); near != "" {
			propose(page.Processes, func(p *client.Process) bool { return p.Name == near })
		}
	}
	return out
}

// isPattern reports whether a name stands for several.
func isPattern(s string) bool { return strings.ContainsAny(s, "*?") }
