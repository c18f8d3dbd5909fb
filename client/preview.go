package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/gozzard/gozzard"
)

// Preview says what a request would do.
type Preview struct {
	Targets   int `json:"targets"`   // processes that the request is about
	Rejected  int `json:"rejected"`  // of them: those that would be rejected at once
	New       int `json:"new"`       // definitions that would be new
	Changed   int `json:"changed"`   // definitions that would differ from the recorded ones
	Unchanged int `json:"unchanged"` // definitions that are recorded already

	// "waits" if the request would wait until a second person approves it, "refused" if it needs a second person and
	// the caller is an app, which cannot ask one; missing if it needs none
	SecondPerson string `json:"second_person,omitempty"`

	Processes []PreviewRow `json:"processes"` // at most MaxPage
}

// PreviewRow says what a request would do with one process.
type PreviewRow struct {
	Host      HostRef `json:"host"`
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	Action    string  `json:"action"`
	// new, changed or unchanged; missing if the request brings no definition for it
	Definition string   `json:"definition,omitempty"`
	Fields     []string `json:"fields,omitempty"`  // of a definition that would change: key, old and new value
	Code       string   `json:"code,omitempty"`    // of the rejection
	Message    string   `json:"message,omitempty"` // of the rejection
}

// Preview asks what an operation would do, and does nothing.
func (c *Client) Preview(ctx context.Context, op Operation) (Preview, error) {
	return c.preview(ctx, http.MethodPost, "/api/v1/operations", OperationRequest{Action: op.Action,
		Selection: op.Selection, OfflineRequest: op.Offline.request(), DryRun: true})
}

// PreviewUnregister asks what Unregister would do, and does nothing.
func (c *Client) PreviewUnregister(ctx context.Context, s Selection) (Preview, error) {
	return c.preview(ctx, http.MethodDelete, "/api/v1/processes", UnregisterRequest{Selection: s, DryRun: true})
}

// PreviewDocument asks what RegisterDocument would do, and does nothing.
func (c *Client) PreviewDocument(ctx context.Context, doc []byte) (Preview, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(doc, &fields); err != nil {
		return Preview{}, gozzard.Errorf(gozzard.ErrInvalid, "the definition is not an object: %v", err)
	}
	fields["dry_run"] = json.RawMessage("true")
	return c.preview(ctx, http.MethodPut, "/api/v1/processes", fields)
}

func (c *Client) preview(ctx context.Context, method, path string, in any) (Preview, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return Preview{}, fmt.Errorf("cannot encode the request: %w", err)
	}
	var out Preview
	err = c.do(ctx, call{method: method, path: path, body: body}, &out)
	return out, err
}
