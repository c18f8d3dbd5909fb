package api

import (
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology/index"
)

// getTree counts the processes of a business by set and module.
func (a *api) getTree(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	biz, env := readBiz(r, q.faults), q.env()
	if err := q.faults.Err(); err != nil {
		return err
	}

	for _, h := range a.Plane.Businesses(caller) {
		if h.ID == biz {
			return answer(w, http.StatusOK, renderTree(h, a.Plane.TopologyTree(caller, biz, env)))
		}
	}

	return unknownBusiness(biz)
}

func renderTree(h record.BusinessHead, sets []index.SetCount) client.Tree {
	tree := client.Tree{Biz: h.ID, Name: h.Name, Sets: []client.TreeSet{}}
	for i := range sets {
		s := &sets[i]
		tree.Sets = append(tree.Sets, renderSet(s))
		tree.Counts.Processes += s.Processes
		tree.Counts.Running += s.Running
		tree.Counts.Stopped += s.Stopped
		tree.Counts.Unregistered += s.Unregistered
		tree.Counts.Managed += s.Hosted
	}
	return tree
}

func treeCount(n index.Counts) client.TreeCount {
	return client.TreeCount{Processes: n.Processes, Running: n.Running, Stopped: n.Stopped, Unregistered: n.Unregistered,
		Managed: n.Hosted}
}

func renderSet(s *index.SetCount) client.TreeSet {
	set := client.TreeSet{ID: s.ID, Name: s.Name, Env: int(s.Env), Counts: treeCount(s.Counts),
		Modules: []client.TreeModule{}}
	for i := range s.Modules {
		m := &s.Modules[i]
		set.Modules = append(set.Modules, client.TreeModule{ID: m.ID, Name: m.Name,
			ServiceTemplate: m.ServiceTemplate, Services: m.Services, Counts: treeCount(m.Counts)})
	}
	return set
}
