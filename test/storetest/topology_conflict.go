package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// businessConflict: a change that starts from another version than the recorded one changes nothing, not even the
// audit.
func businessConflict(t *testing.T, s TopologyRecord) {
	refuse := func(c topology.Change) {
		t.Helper()
		c.Name = "must not be"
		version, err := s.SaveBusiness(t.Context(), c, record.SourceCMDB, topologyAudit(1))
		wantKind(t, err, gozzard.ErrConflict)
		equal(t, "version", version, int64(0))
	}

	refuse(topology.Change{Biz: 2, Base: 1})
	b, numbers := business(2, 2)
	saveBusiness(t, s, newBusinessChange(&b, numbers))
	saveBusiness(t, s, topology.Change{Biz: 2, Base: 1, Name: "second"})
	before := readBusiness(t, s, 2)

	for _, base := range []int64{0, 1, 3, -1} {
		c := newBusinessChange(&b, nil)
		c.Base, c.DropNumbers = base, []int{101}
		refuse(c)
		refuse(topology.Change{Biz: 2, Base: base, DropServices: []int{1}, DropSets: []int{6}})
	}

	equal(t, "business", readBusiness(t, s, 2), before)
	rows, err := s.Audit(t.Context(), 10)
	must(t, err)
	equal(t, "audit rows", len(rows), 2)
}

func businessConcurrent(t *testing.T, s TopologyRecord) {
	var wg sync.WaitGroup
	var won atomic.Int64
	for base := range int64(3) {
		won.Store(0)
		for i := range 20 {
			wg.Go(func() {
				_, err := s.SaveBusiness(t.Context(), topology.Change{Biz: 2, Base: base,
					Name: fmt.Sprint(base, ".", i)}, record.SourceFile, topologyAudit(0))
				if err == nil {
					won.Add(1)
				} else if gozzard.KindOf(err) != gozzard.ErrConflict {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		equal(t, "changes that succeeded", won.Load(), int64(1))
	}

	equal(t, "version", readBusiness(t, s, 2).Version, int64(3))
}

func businessOrphans(t *testing.T, s TopologyRecord) {
	b, numbers := business(2, 1)
	saveBusiness(t, s, newBusinessChange(&b, numbers))
	before := readBusiness(t, s, 2)

	for name, c := range map[string]topology.Change{
		"a module without a set": {PutModules: []topology.PlacedModule{{Set: 4711,
			Module: topology.Module{ID: 1}}}},
		"a service without a module": {PutServices: []topology.PlacedService{{Module: 4711,
			Service: topology.ServiceInstance{ID: 1}}}},
		"removing a set alone":                   {DropSets: []int{5}},
		"removing a module alone":                {DropModules: []int{21}},
		"removing a set, not its modules":        {DropSets: []int{5}, DropServices: []int{1, 2}},
		"removing a set and modules, no service": {DropSets: []int{5}, DropModules: []int{21, 22}},
	} {
		c.Biz, c.Base = 2, 1
		if _, err := s.SaveBusiness(t.Context(), c, record.SourceFile, topologyAudit(0)); err == nil {
			t.Errorf("%s was recorded", name)
		}
	}

	equal(t, "business", readBusiness(t, s, 2), before)
}

// businessOneVersion: a reader never sees parts of two versions. In each version all names contain the version.
func businessOneVersion(t *testing.T, s TopologyRecord) {
	stamped := func(base int64) topology.Change {
		b, numbers := business(2, 20)
		b.Name = fmt.Sprint("v", base+1)
		for i := range b.Sets {
			for j := range b.Sets[i].Modules {
				for k := range b.Sets[i].Modules[j].Instances {
					b.Sets[i].Modules[j].Instances[k].Name = b.Name
				}
			}
		}

		for i := range numbers {
			numbers[i].HostNum = int(base + 1)
		}

		c := newBusinessChange(&b, numbers)
		c.Base = base
		return c
	}

	saveBusiness(t, s, stamped(0))
	done := make(chan struct{})
	var reading sync.WaitGroup
	for range 4 {
		reading.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				rec, err := s.Business(t.Context(), 2)
				if err != nil {
					t.Error(err)
					return
				}
				for _, set := range rec.Business.Sets {
					for _, m := range set.Modules {
						for _, x := range m.Instances {
							if x.Name != rec.Name || rec.Name != fmt.Sprint("v", rec.Version) {
								t.Errorf("version %d has %s in %s", rec.Version, x.Name, rec.Name)
								return
							}
						}
					}
				}
				for _, n := range rec.Numbers {
					if n.HostNum != int(rec.Version) {
						t.Errorf("version %d has numbers of %d", rec.Version, n.HostNum)
						return
					}
				}
			}
		})
	}

	for base := range int64(15) {
		saveBusiness(t, s, stamped(base+1))
	}

	close(done)
	reading.Wait()
}

func services(t *testing.T, s TopologyRecord) {
	b, numbers := business(2, 300)
	saveBusiness(t, s, newBusinessChange(&b, numbers))
	var all []topology.ServiceInstance
	var ids []int
	for _, set := range b.Sets {
		for _, m := range set.Modules {
			for _, x := range m.Instances {
				all = append(all, x)
				ids = append(ids, x.ID)
			}
		}
	}

	slices.Reverse(ids)
	ids = append(ids, 1, 7, 1, -3, 99_999)
	got, err := s.Services(t.Context(), 2, ids)
	must(t, err)
	equal(t, "all services", got, all)
	got, err = s.Services(t.Context(), 2, []int{9, 4711, 3})
	must(t, err)
	equal(t, "two services", got, []topology.ServiceInstance{all[2], all[8]})
	got, err = s.Services(t.Context(), 3, []int{1})
	must(t, err)
	equal(t, "services of another business", len(got), 0)
	got, err = s.Services(t.Context(), 2, nil)
	must(t, err)
	equal(t, "no services", len(got), 0)
}

func businessContext(t *testing.T, s TopologyRecord) {
	_, err := s.Business(t.Context(), 2)
	wantKind(t, err, gozzard.ErrNotFound)
	list, err := s.Businesses(t.Context())
	must(t, err)
	equal(t, "businesses", len(list), 0)
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	for name, call := range map[string]func() error{
		"businesses": func() error { _, err := s.Businesses(ended); return err },
		"business":   func() error { _, err := s.Business(ended, 2); return err },
		"services":   func() error { _, err := s.Services(ended, 2, []int{1}); return err },
		"save": func() error {
			_, err := s.SaveBusiness(ended, topology.Change{Biz: 2}, record.SourceFile, topologyAudit(0))
			return err
		},
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v", name, err)
		}
	}

	list, err = s.Businesses(t.Context())
	must(t, err)
	equal(t, "businesses", len(list), 0)
}
