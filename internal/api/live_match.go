package api

import (
	"encoding/binary"
	"net/http"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// getLiveMatch answers with the ids of rows that an expression selects. The live data has no numbers of services and
// processes, so a page cannot decide that by itself.
func (a *api) getLiveMatch(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	// Read the query.
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	epoch, biz := q.one("epoch"), 0
	if q.values.Has("biz") {
		n, fault := parseBiz(q.one("biz"))
		if biz = n; fault != "" {
			q.faults.Add("biz", "%s", fault)
		}
	}
	expression, faults := parseExpression(q.one("expression"))
	for _, f := range faults {
		q.faults.Add("expression", "%s", f)
	}
	if err := q.faults.Err(); err != nil {
		return err
	}

	// Find the processes, and their rows.
	view, err := a.joinLive(caller)
	if err != nil {
		return err
	}
	defer view.Close()
	ids, ok := view.Find(epoch, a.selected(caller, biz, expression))
	if !ok {
		return otherEpoch()
	}

	// Answer.
	body := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		body = binary.LittleEndian.AppendUint32(body, id)
	}
	h := w.Header()
	h.Set("Content-Type", liveType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		if _, err := w.Write(body); err != nil {
			a.Log.DebugContext(r.Context(), "matches of an expression were not read to their end", "err", err)
		}
	}
	return nil
}

// otherEpoch is the error of ids that mean nothing any more.
func otherEpoch() error {
	return gozzard.Errorf(gozzard.ErrConflict, "the ids are of another epoch: read a new snapshot")
}

// selected finds the processes of an expression in one business, or in all that the caller sees if biz is 0.
func (a *api) selected(caller gozzard.Caller, biz int, e *topology.Expression) []gozzard.ProcID {
	bizs := []int{biz}
	if biz == 0 {
		bizs = bizs[:0]
		for _, head := range a.Plane.Businesses(caller) {
			bizs = append(bizs, head.ID)
		}
	}

	var out []gozzard.ProcID
	for _, biz := range bizs {
		_, rows := a.Plane.FindProcesses(caller, topology.Query{Biz: biz, Expression: e, Limit: -1})
		agents := map[gozzard.HostAddr]gozzard.AgentID{}
		for i := range rows {
			row := &rows[i]
			agent, known := agents[row.Host.Addr()]
			if !known {
				if h, ok := a.Plane.Resolve(caller, a.hostOf(caller, row.Host)); ok {
					agent = h.Info.Agent
				}
				agents[row.Host.Addr()] = agent
			}
			for _, in := range row.Instances {
				out = append(out, gozzard.ProcID{Agent: agent, Key: topology.Key(biz, row.Name, in.Local)})
			}
		}
	}
	return out
}
