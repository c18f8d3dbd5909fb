package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard/internal/agentsock"
)

// agentStatus is `gozzard agent status`.
func (env *cliEnv) agentStatus(ctx context.Context, c *agentsock.Client, o *outputFlag) error {
	st, err := c.Status(ctx)
	if err != nil {
		return err
	}
	if o.structured() {
		return o.write(env.out, newAgentState(st))
	}

	var b strings.Builder
	for _, l := range env.statusLines(&st) {
		if v := printable(l[1]); v != "" {
			fmt.Fprintf(&b, "%-11s %s\n", l[0], v)
		}
	}

	return checkWrite(fmt.Fprint(env.out, b.String()))
}

// statusLines are the lines of a status: a word and its value. Lines with an empty value are not printed.
func (env *cliEnv) statusLines(st *agentsock.Status) [][2]string {
	// The session with the server.
	now := env.now()
	session := env.text("open for %s (number %d)", age(now, st.Session.Since), st.Session.Number)
	switch {
	case !st.Session.Open && st.Session.HeardAt == 0:
		session = env.text("none for %s, since the agent started", age(now, st.Session.Since))
	case !st.Session.Open:
		session = env.text("none for %s", age(now, st.Session.Since))
	}
	if !st.Session.Open && st.Session.Fault != "" {
		session += env.text(": the agent rejects the server: %s", env.chinese.Message(st.Session.Fault))
	}

	link := "up"
	if !st.Link.Up {
		link = "down"
		if st.Link.Fault != "" {
			link += ": " + env.chinese.Message(st.Link.Fault)
		}
	}

	// The policy of the host.
	policy := ""
	if st.Policy.File != "" {
		policy = env.text("%s (root rejected)", st.Policy.File)
		if st.Policy.AllowRoot {
			policy = env.text("%s (root allowed)", st.Policy.File)
		}
	}

	// Connections to the local socket that were closed.
	rejected := ""
	if st.Refused > 0 {
		rejected = env.text("%d connections of other accounts to the local socket", st.Refused)
	}

	// All of it, in the order of the output.
	lines := [][2]string{
		{"agent", string(st.Agent)},
		{"version", st.Version},
		{"pid", env.text("%d (uid %d, mode %s), up for %s", st.PID, st.UID, st.Mode, age(now, st.StartedAt))},
		{"host", env.text("%s, cloud %d, %s", st.Hostname, st.Cloud, env.names(st.IPs))},
		{"server", st.Server},
		{"session", session},
		{"link", link},
		{"heard", moment(st.Session.HeardAt)},
		{"key", env.text("%s, epoch %d", st.Key.ID, st.Key.Epoch)},
		{"certificate", env.untilText(st.Certificate)},
		{"policy", policy},
		{"processes", strconv.Itoa(st.Processes)},
		{"journal", fmt.Sprintf("%s at %d", st.Journal.ID, st.Journal.LSN)},
		{"state", env.chinese.Message(st.Journal.Fault)},
		{"rejected", rejected},
	}
	for _, d := range st.Degraded {
		lines = append(lines, [2]string{"degraded", env.chinese.Message(d)})
	}

	return lines
}

// untilText is the end of a certificate. 0 is unknown and gives "".
func (env *cliEnv) untilText(unix int64) string {
	if unix <= 0 {
		return ""
	}
	return env.text("until %s", moment(unix))
}
