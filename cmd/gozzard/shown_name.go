package main

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// businessSpaces is the pattern of the namespaces of businesses.
var businessSpaces = strings.TrimSuffix(gozzard.BusinessNamespace(0), "0") + "*"

// numberedName is the recorded name of a process of a business: its name in the document, and which of the equal ones of
// its host it is.
var numberedName = regexp.MustCompile(`^(.+)_([1-9][0-9]{0,5})$`)

// shownNames are the names of businesses by their numbers. A process of a business is recorded as GSEKIT_BIZ_7:web_1, and
// people know it as shop/web, as the console shows it.
type shownNames map[int]string

// businessProcess reads a recorded name. ok is false for a process of no business.
func businessProcess(namespace, name string) (biz int, own string, ok bool) {
	biz, ok = gozzard.BusinessOf(namespace)
	m := numberedName.FindStringSubmatch(name)
	if !ok || namespace != gozzard.BusinessNamespace(biz) || m == nil {
		return 0, "", false
	}
	if m[2] == "1" {
		return biz, m[1], true
	}
	return biz, m[1] + " #" + m[2], true
}

// shownNamesOf reads the names of businesses, if one of the namespaces belongs to one. Without them their numbers are shown:
// a list is not worth an error.
func shownNamesOf(ctx context.Context, c *client.Client, namespaces func(yield func(string) bool)) shownNames {
	for ns := range namespaces {
		if _, ok := gozzard.BusinessOf(ns); !ok {
			continue
		}
		names := shownNames{}
		if list, err := c.Businesses(ctx); err == nil {
			for _, b := range list.Businesses {
				names[b.ID] = b.Name
			}
		}
		return names
	}
	return nil
}

// space is the name of a business, or its number.
func (n shownNames) space(biz int) string {
	if name := n[biz]; name != "" {
		return name
	}
	return strconv.Itoa(biz)
}

// split is a name as people know it, in two parts.
func (n shownNames) split(namespace, name string) (space, own string) {
	if biz, own, ok := businessProcess(namespace, name); ok {
		return n.space(biz), own
	}
	return namespace, name
}

// whole is a name as people know it: shop/web, or namespace:name for a process of no business.
func (n shownNames) whole(namespace, name string) string {
	if biz, own, ok := businessProcess(namespace, name); ok {
		return n.space(biz) + "/" + own
	}
	return namespace + ":" + name
}

// findShown finds the processes that people know by a name: web, web #2 or shop/web.
func (o *oneProcess) findShown(ctx context.Context, c *client.Client, name string) ([]client.Process, error) {
	// Ask for all that may be meant: the server knows recorded names.
	space, own, inSpace := strings.Cut(name, "/")
	if !inSpace {
		space, own = o.namespace, name
	}
	alias, _, _ := strings.Cut(own, " #")
	whole, _, _ := strings.Cut(name, " #") // a name may have a slash itself
	q := client.ProcessQuery{Namespaces: []string{businessSpaces}, Names: []string{alias + "_*", whole + "_*"}}
	if o.host != "" {
		q.Hosts = []string{o.host}
	}
	page, err := c.Processes(ctx, q, 0, client.MaxPage)
	if err != nil || page.Count == 0 {
		return nil, err
	}

	// Choose those whose shown name it is.
	names := shownNamesOf(ctx, c, namespacesOf(page.Processes))
	var found []client.Process
	for _, p := range page.Processes {
		biz, known, ok := businessProcess(p.Namespace, p.Name)
		in := func(space string) bool { return space == "" || space == names.space(biz) || space == p.Namespace }
		if ok && (known == own && in(space) || known == name && in(o.namespace)) {
			found = append(found, p)
		}
	}
	if page.Next > 0 && len(found) > 0 {
		return nil, usage("more than %d processes have names such as %s: give the whole name, as gozzard ps shows it, with -n",
			client.MaxPage, printable(name))
	}
	return found, nil
}

// namespacesOf are the namespaces of processes.
func namespacesOf(list []client.Process) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range list {
			if !yield(list[i].Namespace) {
				return
			}
		}
	}
}

// showNames gives the attempts of a task the names that people know.
func showNames(ctx context.Context, c *client.Client, t *client.Task) {
	names := shownNamesOf(ctx, c, func(yield func(string) bool) {
		for i := range t.Attempts {
			if !yield(t.Attempts[i].Namespace) {
				return
			}
		}
	})
	for i := range t.Attempts {
		a := &t.Attempts[i]
		a.Namespace, a.Name = names.split(a.Namespace, a.Name)
	}
}
