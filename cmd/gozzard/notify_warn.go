package main

import (
	"context"
	"errors"
	"slices"

	"github.com/gozzard/gozzard/client"
)

// warnUnknown names what a subscription chooses and what is not there, out of what the caller may see. It may come later, so
// the subscription is recorded all the same.
func (env *cliEnv) warnUnknown(ctx context.Context, c *client.Client, s *client.SubscriptionChange) {
	unknown := 0
	warn := func(err error) {
		var ex *exitError
		if errors.As(err, &ex) {
			unknown++
			env.remark("warning: %s", errorText(env.chinese, ex.err))
		}
	}

	for _, ns := range s.Namespaces {
		warn(unknownNamespace(ctx, c, ns))
	}
	for _, biz := range s.Businesses {
		warn(unknownBusiness(ctx, c, biz))
	}
	if unknown > 0 { // names are looked for below them
		return
	}

	for _, name := range s.Names {
		if isPattern(name) {
			continue
		}
		page, err := c.Processes(ctx, client.ProcessQuery{Namespaces: s.Namespaces, Names: []string{name}}, 0, 1)
		if err == nil && page.Count == 0 {
			warn(sought{namespaces: s.Namespaces, names: []string{name}}.noMatch(ctx, c))
		}
	}
}

// unknownBusiness is an error if the caller sees no topology of a business.
func unknownBusiness(ctx context.Context, c *client.Client, biz int) error {
	list, err := c.Businesses(ctx)
	known := func(b client.Business) bool { return b.ID == biz }
	if err != nil || slices.ContainsFunc(list.Businesses, known) {
		return nil
	}
	return notFound("there is no topology of business %d; gozzard topology list has all businesses", biz)
}
