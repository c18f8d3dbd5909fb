package cmdb_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/topology"
)

// TestAttributes: sets, modules and hosts have the attributes that every one of them has in CMDB, and those that people have
// added, as texts.
func TestAttributes(t *testing.T) {
	s := newStandIn(t)
	s.fill(3)
	s.more = map[string][]map[string]any{
		"set": {{"bk_property_id": "zone", "bk_biz_id": 2}, {"bk_property_id": "bk_set_desc", "bk_biz_id": 0},
			{"bk_property_id": "bk_set_name", "bk_biz_id": 0}},
		"module": {{"bk_property_id": "tier", "bk_biz_id": 2}},
		"host": {{"bk_property_id": "rack", "bk_biz_id": 2}, {"bk_property_id": "weight", "bk_biz_id": 2}, {"bk_property_id": "cc", "bk_biz_id": 2},
			{"bk_property_id": "notes", "bk_biz_id": 2}, {"bk_property_id": "disks", "bk_biz_id": 2}, {"bk_property_id": "spare", "bk_biz_id": 2}},
	}
	s.values = map[string]map[string]any{
		"set":    {"zone": "管 z1", "bk_world_id": nil, "bk_platform": "pc", "bk_set_desc": "nobody asked"},
		"module": {"tier": 3, "bk_module_type": "1"},
		"host": {"rack": "r<1>", "weight": 1.5, "spare": true, "cc": "no name for an attribute", "notes": "two\nlines", "disks": []string{"a"},
			"operator": "ann,bob"},
	}

	b, err := s.client(t).Read(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range b.Sets {
		if set.Attributes != `{"bk_platform":"pc","bk_world_id":"None","zone":"管 z1"}` {
			t.Errorf("set %d has %s", set.ID, set.Attributes)
		}
		for _, m := range set.Modules {
			if m.Attributes != `{"bk_module_type":"1","tier":"3"}` {
				t.Errorf("module %d has %s", m.ID, m.Attributes)
			}
			for _, i := range m.Instances {
				if i.HostAttributes != `{"operator":"ann,bob","rack":"r<1>","spare":"True","weight":"1.5"}` {
					t.Errorf("the host of service instance %d has %s", i.ID, i.HostAttributes)
				}
			}
		}
	}

	left := strings.Join(b.Left, "\n")
	if len(b.Left) != 2 || !strings.Contains(left, `attribute "cc" of hosts is left out`) || !strings.Contains(left, `attribute "notes" of hosts is left out`) {
		t.Errorf("left: %s", left)
	}
}

// TestManyAttributes: a host has as many attributes as are allowed, and the others are named.
func TestManyAttributes(t *testing.T) {
	s := newStandIn(t)
	s.fill(1)
	s.more, s.values = map[string][]map[string]any{}, map[string]map[string]any{"host": {}}
	for i := range topology.MaxAttributes + 20 {
		name := "a" + strings.Repeat("x", i/26) + string(rune('a'+i%26))
		s.more["host"] = append(s.more["host"], map[string]any{"bk_property_id": name, "bk_biz_id": 2})
		s.values["host"][name] = strings.Repeat("v", i%5*1000)
	}
	b, err := s.client(t).Read(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(b.Sets[0].Modules[0].Instances[0].HostAttributes.Texts()); n != topology.MaxAttributes {
		t.Errorf("%d attributes", n)
	}
	if !slices.Contains(b.Left, "hosts have more than 100 attributes: the last ones are left out") {
		t.Errorf("left: %q", b.Left)
	}
}

// TestAttributesAreRejected: a CMDB that does not have the calls for attributes, or does not allow them, is read without them. One
// that fails is read later, as a whole.
func TestAttributesAreRejected(t *testing.T) {
	for name, c := range map[string]struct {
		call   string
		answer func(w http.ResponseWriter)
		fails  bool
	}{
		"not allowed":  {"search_object_attribute", func(w http.ResponseWriter) { answer(w, http.StatusOK, 9900403, "no permission", nil) }, false},
		"not there":    {"find_biz_tree_brief_info", func(w http.ResponseWriter) { http.Error(w, "no such page", http.StatusNotFound) }, false},
		"not known":    {"find_biz_tree_brief_info", func(w http.ResponseWriter) { answer(w, http.StatusNotFound, 1640401, "API not found", nil) }, false},
		"out of order": {"find_biz_tree_brief_info", func(w http.ResponseWriter) { http.Error(w, "", http.StatusBadGateway) }, true},
		"another form": {"find_biz_tree_brief_info", func(w http.ResponseWriter) { answer(w, http.StatusOK, 0, "", map[string]any{"count": 0}) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStandIn(t)
			s.fill(2)
			s.before = func(made call, w http.ResponseWriter) bool {
				if made.name == c.call {
					c.answer(w)
				}
				return made.name == c.call
			}
			b, err := s.client(t).Read(t.Context(), 2)
			if c.fails {
				if err == nil || !strings.Contains(err.Error(), c.call) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}

			left := strings.Join(b.Left, "\n")
			if !b.AttributesUnread || len(b.Sets) == 0 || !strings.Contains(left, "stay as they were") || !strings.Contains(left, c.call) {
				t.Errorf("unread %v, %d sets, left: %s", b.AttributesUnread, len(b.Sets), left)
			}

			// They stay as they are in the record.
			old := *b
			old.Sets = slices.Clone(b.Sets)
			old.Sets[0].Attributes = `{"zone":"z1"}`
			b.Keep(&old)
			if b.Sets[0].Attributes != `{"zone":"z1"}` {
				t.Errorf("the set has %s", b.Sets[0].Attributes)
			}
		})
	}
}
