package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/approval"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/specjson"
)

// maxPreviewFields limits the changes that are listed for one definition.
const maxPreviewFields = 100

// preview answers what an operation would do.
func (a *api) preview(w http.ResponseWriter, r *http.Request, op *gozzard.Operation) error {
	list, err := a.Plane.Preview(r.Context(), op)
	if err != nil {
		return err
	}

	out := client.Preview{Targets: len(list), Processes: []client.PreviewRow{}, SecondPerson: a.secondPerson(op, list)}
	say := said(r)
	for i := range list {
		row := renderPreview(&list[i])
		switch row.Definition {
		case definitionNew:
			out.New++
		case definitionChanged:
			out.Changed++
		case definitionUnchanged:
			out.Unchanged++
		}
		if row.Code != "" {
			out.Rejected++
		}

		if len(out.Processes) < client.MaxPage {
			if row.Definition == definitionChanged {
				row.Fields = changedFields(list[i].Before, list[i].After)
			}
			row.Message = say(row.Message)
			out.Processes = append(out.Processes, row)
		}
	}

	return answer(w, http.StatusOK, out)
}

// What happens with an operation that needs a second person.
const (
	secondPersonWaits   = "waits"
	secondPersonRefused = "refused"
)

// secondPerson says what would happen because the operation needs a second person, "" if it needs none.
func (a *api) secondPerson(op *gozzard.Operation, list []record.Preview) string {
	if a.Holds == nil {
		return ""
	}
	attempts := make([]gozzard.Attempt, len(list))
	for i := range list {
		attempts[i] = list[i].Attempt
	}

	switch {
	case !a.Holds(op, attempts):
		return ""
	case !approval.CanAsk(op.Caller):
		return secondPersonRefused
	}
	return secondPersonWaits
}

// What happens to a definition.
const (
	definitionNew       = "new"
	definitionChanged   = "changed"
	definitionUnchanged = "unchanged"
)

func renderPreview(v *record.Preview) client.PreviewRow {
	at := &v.Attempt
	row := client.PreviewRow{Host: hostRef(at.Agent, at.Addr),
		Namespace: at.Key.Namespace, Name: at.Key.Name, Action: actionWord(at.Action)}
	if at.State.Final() {
		row.Code, row.Message = string(at.Outcome.Code), at.Outcome.Message
	}

	switch {
	case !v.Defines:
	case v.Before == nil:
		row.Definition = definitionNew
	case sameDefinition(v.Before, v.After):
		row.Definition = definitionUnchanged
	default:
		row.Definition = definitionChanged
	}

	return row
}

// sameDefinition compares encoded definitions. An older version of the program may have encoded the recorded one.
func sameDefinition(before, after []byte) bool {
	if bytes.Equal(before, after) {
		return true
	}
	s, err := gozzard.DecodeSpec(before)
	return err == nil && bytes.Equal(gozzard.EncodeSpec(s), after)
}

// changedFields lists the keys in which two definitions differ, with the values. A key that is missing has its default.
func changedFields(before, after []byte) []string {
	was, is := flatDefinition(before), flatDefinition(after)
	keys := maps.Clone(was)
	maps.Copy(keys, is)

	var out []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		old, now := was[key], is[key]
		switch {
		case old == now:
			continue
		case old == "":
			out = append(out, fmt.Sprintf("+ %s: %s", key, now))
		case now == "":
			out = append(out, fmt.Sprintf("- %s: %s", key, old))
		default:
			out = append(out, fmt.Sprintf("~ %s: %s -> %s", key, old, now))
		}
		if len(out) == maxPreviewFields {
			return append(out, "and more")
		}
	}

	return out
}

// flatDefinition has the values of an encoded definition as JSON texts, by the path of each. It is empty for one that
// cannot be read.
func flatDefinition(encoded []byte) map[string]string {
	out := map[string]string{}
	s, err := gozzard.DecodeSpec(encoded)
	if err != nil {
		return out
	}
	for key, value := range specjson.Map(specjson.Write(s)) {
		flatten(out, key, value)
	}
	return out
}

// flatten adds the values of a tree. A list is one value.
func flatten(to map[string]string, path string, v any) {
	if m, ok := v.(map[string]any); ok {
		for key, sub := range m {
			flatten(to, path+"."+key, sub)
		}
		return
	}
	if b, err := json.Marshal(v); err == nil {
		to[path] = string(b)
	}
}
