package main

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard/client"
)

const (
	groupFrom  = 10 // so many failures are printed one by one
	groupHosts = 3  // hosts that a group names
)

// failureGroup is failures of many hosts for the same reason.
type failureGroup struct {
	first *client.Attempt // its message is shown
	n     int
	hosts []string // the first few
	seen  map[string]bool
}

// groupFailures groups failures by code and text, the largest group first. Numbers, addresses and ids in the texts do
// not count.
func groupFailures(failed []*client.Attempt) []*failureGroup {
	index := map[string]*failureGroup{}
	var groups []*failureGroup
	for _, a := range failed {
		key := codeText(a) + "\x00" + sameReason(a)
		g := index[key]
		if g == nil {
			g = &failureGroup{first: a, seen: map[string]bool{}}
			index[key] = g
			groups = append(groups, g)
		}
		g.n++
		host := refName(a.Host)
		if !g.seen[host] && len(g.hosts) < groupHosts {
			g.hosts = append(g.hosts, host)
		}
		g.seen[host] = true
	}

	slices.SortStableFunc(groups, func(a, b *failureGroup) int { return cmp.Compare(b.n, a.n) })
	return groups
}

// varying matches what differs between hosts that fail for the same reason: words with a digit in them, such as pids,
// addresses, times and ids.
var varying = regexp.MustCompile(`[0-9A-Za-z:._/-]*[0-9][0-9A-Za-z:._/-]*`)

// maxReason bounds the text by which failures are grouped.
const maxReason = 2000

// sameReason is the message of a failure without what differs between hosts. It is only compared, never shown.
func sameReason(a *client.Attempt) string {
	text := a.Message
	for _, own := range []string{string(a.Host.Agent), a.Host.IP, a.Namespace + ":" + a.Name} {
		if own != "" && own != ":" {
			text = strings.ReplaceAll(text, own, "#")
		}
	}
	if len(text) > maxReason {
		text = text[:maxReason]
	}
	return varying.ReplaceAllString(text, "#")
}

func (env *cliEnv) failureTable(groups []*failureGroup) *textTable {
	t := newTable("COUNT", "CODE", "MESSAGE (ONE OF THEM)", "HOSTS")
	for _, g := range groups {
		hosts := strings.Join(g.hosts, ", ")
		if more := len(g.seen) - len(g.hosts); more > 0 {
			hosts += env.text(" and %d more", more)
		}
		t.add(strconv.Itoa(g.n), codeText(g.first), env.said(g.first.Message), hosts)
	}
	return t
}
