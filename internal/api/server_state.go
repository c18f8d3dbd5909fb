package api

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// verifyRows is how many rows of the audit one request verifies at most: some 100 milliseconds of work.
const verifyRows = 20_000

// Self is what a server knows about itself.
type Self struct {
	Version string
	Started time.Time
	// Findings are the results of the server's checks, and when they were made; nil: it makes none. It may take long.
	Findings func(context.Context) ([]client.Finding, time.Time)
	// Servers lists all servers of the installation; nil: none is listed.
	Servers func(context.Context) ([]client.Server, error)
	// Drain makes a server take no agents, or take them again; nil: it cannot.
	Drain func(ctx context.Context, caller gozzard.Caller, id string, drained bool) (client.Server, error)
}

func serverStateRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Path: "/api/v1/server", Access: AccessAdmin, serve: (*api).getServer,
			Summary: "Read how the server is: whether it accepts operations, its connections, and its checks of itself.",
			Answers: answers(http.StatusOK, client.ServerState{}, "The state of the server.")},

		{Method: http.MethodGet, Path: "/api/v1/servers", Access: AccessAdmin, serve: (*api).getServers,
			Summary: "List the servers of the installation, with the work that only one of them does.",
			Answers: answers(http.StatusOK, client.ServerList{}, "The servers, by name.")},

		{Method: http.MethodPut, Path: "/api/v1/servers/{id}", Access: AccessAdmin, serve: (*api).putServer,
			Summary:    "Drain a server for maintenance: its agents go to other servers, and it gives up its leases. Or end that.",
			Parameters: []Parameter{inPath("id", "The id of the server.")},
			Body:       jsonBody(client.ServerChange{}), Errors: []gozzard.ErrorKind{gozzard.ErrNotFound, gozzard.ErrConflict},
			Answers: answers(http.StatusOK, client.Server{}, "The server. Its agents go within half a minute.")},

		{Method: http.MethodGet, Path: "/api/v1/audit/verify", Access: AccessAdmin, serve: (*api).getAuditVerify,
			Summary: "Verify the next rows of the audit's chain.",
			Parameters: []Parameter{
				number("after", "Go on after the row with this number; from the first row on when missing."),
				text("hash", "With after: the hash of that row, from the answer before."),
			},
			Answers: answers(http.StatusOK, client.AuditVerified{}, "How far the chain is sound. Until done is true, "+
				"send verified as after and hash."),
			Errors: []gozzard.ErrorKind{gozzard.ErrNotFound}},
	}
}

// getServer answers how the server is.
func (a *api) getServer(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	out := client.ServerState{Version: a.Self.Version, Started: client.At(a.Self.Started), Ready: true}

	// Whether it accepts operations.
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if a.Ready != nil {
		if err := a.Ready(ctx); err != nil {
			out.Ready, out.Detail = false, reason(err)
		}
	}
	if out.Ready && a.Detail != nil {
		out.Detail = a.Detail()
	}

	// Its connections and checks.
	for _, h := range a.Plane.Hosts(caller) {
		out.Hosts++
		if h.Online {
			out.HostsOnline++
		}
	}
	if a.Self.Findings != nil {
		list, at := a.Self.Findings(r.Context())
		out.Checked = client.At(at)
		words := inLanguageOf(r)
		for _, f := range list {
			out.Findings = append(out.Findings, client.Finding{Level: f.Level, Check: f.Check, Text: words(f.Text)})
		}
	}
	return answer(w, http.StatusOK, out)
}

// getServers lists the servers.
func (a *api) getServers(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	out := client.ServerList{Servers: []client.Server{}}
	if a.Self.Servers != nil {
		list, err := a.Self.Servers(r.Context())
		if err != nil {
			return err
		}
		out.Servers = list
	}
	return answer(w, http.StatusOK, out)
}

// putServer drains a server, or ends that.
func (a *api) putServer(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	var drained bool
	err := readFields[client.ServerChange](w, r, maxShortBody, func(root *strictjson.Value) {
		v := root.Get("drained")
		drained = v.Bool()
	})
	if err != nil {
		return err
	}
	if a.Self.Drain == nil {
		return gozzard.Errorf(gozzard.ErrNotFound, "there is no such server")
	}

	server, err := a.Self.Drain(r.Context(), caller, r.PathValue("id"), drained)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, server)
}

// getAuditVerify verifies the next rows of the chain. It keeps nothing between requests: the caller brings the row that
// was verified last.
func (a *api) getAuditVerify(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	// Read where to go on.
	audit, q, err := a.auditQuery(r)
	if err != nil {
		return err
	}
	var check gozzard.AuditCheck
	check.Head.Seq = int64(q.number("after", 0, 0, math.MaxInt))
	if hash := q.one("hash"); hash != "" || check.Head.Seq > 0 {
		if err := check.Head.Hash.UnmarshalText([]byte(hash)); err != nil || check.Head.Seq == 0 {
			q.faults.Add("hash", "must be the hash of the row that after names, 64 hexadecimal digits")
		}
	}
	head, err := q.auditHead(r.Context(), audit)
	if err != nil {
		return err
	}

	// Verify the rows up to the head.
	out, err := verifyAudit(r.Context(), audit, check, head)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, out)
}

// verifyAudit follows the chain up to its head, or for verifyRows rows.
func verifyAudit(ctx context.Context, audit Audit, check gozzard.AuditCheck, head gozzard.AuditHead) (
	out client.AuditVerified, err error) {
	out.Newest = head
	for check.Rows < verifyRows && check.Head.Seq < head.Seq && out.Broken == "" {
		rows, _, err := audit.FindAudit(ctx, gozzard.AuditFilter{After: check.Head.Seq}, maxPage)
		if err != nil {
			return out, err
		}
		if len(rows) == 0 {
			break
		}
		for i := range rows {
			if rows[i].Seq > head.Seq { // written since
				break
			}
			if err := check.Follow(&rows[i].AuditLink); err != nil {
				out.Broken = err.Error()
				break
			}
		}
	}

	out.Rows, out.Verified = check.Rows, check.Head
	if out.Broken == "" && check.Rows < verifyRows {
		if err := check.End(head); err != nil {
			out.Broken = err.Error()
		}
	}
	out.Done = out.Broken == "" && check.Head == head
	return out, nil
}
