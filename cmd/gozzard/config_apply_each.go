package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// applyEach applies templates.
func applyEach(ctx context.Context, c *client.Client, requests []client.ConfigRequest) ([]appliedConfig, error) {
	done := make([]appliedConfig, len(requests))
	for i, r := range requests {
		out, err := c.ApplyConfig(ctx, r)
		if err != nil {
			return nil, err
		}
		done[i] = appliedConfig{Biz: r.Biz, Name: r.Name, ConfigApplied: out}
	}
	return done, nil
}

// planEach finds what templates would change. Its error has the faults of all of them.
func planEach(ctx context.Context, c *client.Client, requests []client.ConfigRequest) ([]appliedConfig, error) {
	plan := make([]appliedConfig, len(requests))
	var faults templateFaults
	for i, r := range requests {
		r.DryRun = true
		out, err := c.ApplyConfig(ctx, r)
		switch {
		case err == nil:
		case gozzard.KindOf(err) != gozzard.ErrInvalid: // the next ones would fail, too
			return nil, err
		default:
			faults = append(faults, templateFault{r.Name, err})
		}
		plan[i] = appliedConfig{Biz: r.Biz, Name: r.Name, ConfigApplied: out}
	}

	switch len(faults) {
	case 0:
		return plan, nil
	case 1:
		return nil, faults[0].err
	}
	return nil, faults.join()
}

// templateFault is why a template of a file is rejected.
type templateFault struct {
	name string
	err  error
}

type templateFaults []templateFault

// join is one error with all faults, each below the name of its template.
func (l templateFaults) join() error {
	all := &gozzard.Error{Kind: gozzard.ErrInvalid, Message: "the document has faults; nothing was changed"}
	for _, t := range l {
		e := (*gozzard.Error)(nil)
		if !errors.As(t.err, &e) {
			all.Faults = append(all.Faults, gozzard.Fault{Path: t.name, Text: t.err.Error()})
			continue
		}
		if len(e.Faults) == 0 {
			all.Faults = append(all.Faults, gozzard.Fault{Path: t.name, Text: e.Message})
		}
		for _, f := range e.Faults {
			path := t.name
			if f.Path != "" {
				path = fmt.Sprintf("%s: %s", t.name, f.Path)
			}
			all.Faults = append(all.Faults, gozzard.Fault{Path: path, Text: f.Text})
		}
	}
	return all
}
