package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard/client"
)

// scopeHelp explains how processes are chosen within a business.
const scopeHelp = `

Processes of a business (see "gozzard topology") are chosen by their place; NAME is then an alias:
  --biz 2                            the business; optional while there is only one
  --set, --module                    ids or names; may be repeated
  --env 3                            1 test, 2 experience, 3 formal (default: all)
  -e SET.MODULE.SERVICE.NAME.ID      an expression: five patterns with dots between them
      *  any text       [a,b]  one of these      [1-9]   a number from 1 to 9      [!a]  any character except a
      ?  one character  [a-c]  a, b or c         [0:2]   as the last field: the first two by process id
    Write a dot that belongs to a name as \. or within brackets: the service instance 10.0.0.1_web is 10\.0\.0\.1_web.`

// scopeFlags are the flags that choose processes of a business.
type scopeFlags struct {
	biz        int
	env        string
	sets       []string
	modules    []string
	expression string
}

func (s *scopeFlags) register(f *pflag.FlagSet) {
	f.IntVar(&s.biz, "biz", 0, "`ID` of the business")
	f.StringVar(&s.env, "env", "", "`ENV` of the business: 1 or test, 2 or experience, 3 or formal (default: all)")
	f.StringArrayVar(&s.sets, "set", nil, "`SET` of the business, by id or name; may be repeated")
	f.StringArrayVar(&s.modules, "module", nil, "`MODULE` of the business, by id or name; may be repeated")
	f.StringVarP(&s.expression, "expression", "e", "",
		"`EXPRESSION` of five fields such as 'front.*.*.nginx.*'; write a dot in a name as \\.")
}

// isSet reports whether the caller chose processes of a business.
func (s *scopeFlags) isSet() bool { return s.biz != 0 || s.env != "" || s.narrows() }

// narrows reports whether the flags choose a part of the business, other than by environment.
func (s *scopeFlags) narrows() bool { return len(s.sets)+len(s.modules) > 0 || s.expression != "" }

// scope is what the flags choose. Without --biz it is in the only business.
func (s *scopeFlags) scope(ctx context.Context, c *client.Client) (client.BusinessSelection, error) {
	if !s.isSet() {
		return client.BusinessSelection{}, nil
	}
	biz := s.biz
	if biz == 0 {
		var err error
		if biz, err = onlyBusiness(ctx, c); err != nil {
			return client.BusinessSelection{}, err
		}
	}
	return client.BusinessSelection{Biz: biz, Env: s.env, Sets: s.sets, Modules: s.modules,
		Expression: s.expression}, nil
}

// onlyBusiness is the id of the only business. It fails when there is none, or more than one.
func onlyBusiness(ctx context.Context, c *client.Client) (int, error) {
	list, err := c.Businesses(ctx)
	if err != nil {
		return 0, withExitCode(err)
	}

	const maxNames = 10
	var names []string
	for i, b := range list.Businesses {
		if i == maxNames {
			names = append(names, "...")
			break
		}
		names = append(names, fmt.Sprintf("%d (%s)", b.ID, printable(b.Name)))
	}

	switch len(list.Businesses) {
	case 0:
		return 0, &exitError{exitNoMatch,
			errors.New("there is no business: apply one with gozzard topology apply -f FILE")}
	case 1:
		return list.Businesses[0].ID, nil
	}

	return 0, usage("choose a business: %s", words(names))
}
