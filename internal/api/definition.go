package api

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/taskname"
)

// getDefinitions lists the recorded definitions of processes that match, in the order of the processes.
func (a *api) getDefinitions(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	// Read the query.
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	f := fleet.Filter{Namespaces: q.patterns("namespace"), Names: q.patterns("name"), Clouds: q.clouds()}
	start, limit := q.page()
	effective := q.flag("effective")
	agents, none := a.hostAgents(caller, q)
	f.Agents = agents
	if err := q.faults.Err(); err != nil {
		return err
	}

	// Find the definitions.
	page := client.DefinitionPage{Definitions: []client.Definition{}}
	if !none {
		count, defs, err := a.Plane.Definitions(r.Context(), caller, f, start, limit)
		if err != nil {
			return err
		}
		for i := range defs {
			d, err := renderDefinition(&defs[i], effective)
			if err != nil {
				return err
			}
			page.Definitions = append(page.Definitions, d)
		}
		page.Count, page.Next = count, nextPage(start, min(limit, count-start), count)
	}

	return answer(w, http.StatusOK, page)
}

// renderDefinition makes the document of a definition: registering it gives the same definition.
func renderDefinition(d *record.Definition, effective bool) (client.Definition, error) {
	spec, err := gozzard.DecodeSpec(d.Spec)
	if err != nil {
		return client.Definition{}, err
	}

	host := []specjson.Field{{Key: "agent", Value: string(d.ID.Agent)}}
	if d.Addr.IP.IsValid() {
		host = []specjson.Field{{Key: "cloud", Value: d.Addr.Cloud}, {Key: "ip", Value: ipText(d.Addr.IP)}}
	}
	fields := []specjson.Field{{Key: "namespace", Value: d.ID.Key.Namespace}, {Key: "name", Value: d.ID.Key.Name}}
	if len(d.Labels) > 0 {
		fields = append(fields, specjson.Field{Key: "labels", Value: d.Labels})
	}
	fields = append(fields, specjson.Field{Key: "hosts", Value: []json.Marshaler{specjson.Object(host)}})

	doc, err := specjson.Object(append(slices.Clone(fields), specjson.Write(spec)...)).MarshalJSON()
	out := client.Definition{Namespace: d.ID.Key.Namespace, Name: d.ID.Key.Name, Document: doc,
		RegisteredAt: client.At(d.RegisteredAt), Digest: d.Digest(), Origin: renderOrigin(d.Origin)}
	if effective && err == nil {
		var all []specjson.Field
		all, out.Defaults = specjson.Effective(spec)
		out.Effective, err = specjson.Object(append(fields, all...)).MarshalJSON()
	}
	return out, err
}

// renderOrigin is what brought a definition.
func renderOrigin(t *gozzard.Task) *client.DefinitionOrigin {
	if t == nil {
		return nil
	}
	o := &client.DefinitionOrigin{At: client.At(t.At), Door: t.Door, App: t.Caller.App, User: t.Caller.User}
	if t.ID != "" {
		o.Task = taskname.Of(t.ID)
	}
	return o
}
