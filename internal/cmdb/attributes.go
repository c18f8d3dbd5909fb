package cmdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gozzard/gozzard/internal/topology"
)

// The levels of a business whose attributes templates of configuration files use, as CMDB names them.
const (
	levelSet    = "set"
	levelModule = "module"
	levelHost   = "host"
)

// fields are the attributes of one row, by their names.
type fields map[string]json.RawMessage

// id is a number of a row, 0 if it has none.
func (f fields) id(name string) int {
	var n number
	if text := f[name]; len(text) == 0 || json.Unmarshal(text, &n) != nil {
		return 0
	}
	return int(n)
}

// propertyRow is an attribute that sets, modules or hosts may have. One that people have added belongs to a business.
type propertyRow struct {
	ID       string `json:"bk_property_id"`
	Business number `json:"bk_biz_id"`
}

// briefRow is a set with its modules and hosts.
type briefRow struct {
	Set     fields `json:"set"`
	Modules []struct {
		Module fields   `json:"module"`
		Hosts  []fields `json:"hosts"`
	} `json:"modules"`
}

// attributes are those of the sets, modules and hosts of a business, by their ids in CMDB.
type attributes struct {
	by     map[string]map[int]topology.Extra // by level
	names  map[string][]string               // by level: what was asked for
	known  map[string]string                 // hosts of one rack have the same attributes
	noted  map[string]bool
	notes  []string // data that could not be used
	unread bool     // CMDB does not give them
}

// attributes reads what templates of configuration files see of the sets, modules and hosts of a business: what every one of
// them has in CMDB, and what people have added. A CMDB that rejects these calls has given all that processes need: the business
// is read, and its attributes stay as they are in the record.
func (c *Client) attributes(ctx context.Context, biz int) (*attributes, error) {
	a := &attributes{by: map[string]map[int]topology.Extra{}, names: map[string][]string{}, known: map[string]string{},
		noted: map[string]bool{}}
	for _, level := range []string{levelSet, levelModule, levelHost} {
		a.by[level] = map[int]topology.Extra{}
		for _, pair := range topology.CommonAttributes(level) {
			if topology.AttributeFault(level, pair[0], "") == "" { // it does not have it by itself
				a.names[level] = append(a.names[level], pair[0])
			}
		}

		var rows []propertyRow
		err := c.call(ctx, "search_object_attribute", map[string]any{"bk_biz_id": biz, "bk_obj_id": level}, &rows)
		if err != nil {
			return a.refused(err)
		}
		for _, row := range rows {
			if row.Business != 0 && !slices.Contains(a.names[level], row.ID) {
				a.names[level] = append(a.names[level], row.ID)
			}
		}
		slices.Sort(a.names[level])
	}

	// Read them all at once: CMDB gives a business as one tree.
	var sets []briefRow
	err := c.call(ctx, "find_biz_tree_brief_info", map[string]any{"bk_biz_id": biz,
		"set_fields": append([]string{"bk_set_id"}, a.names[levelSet]...), "module_fields": append([]string{"bk_module_id"}, a.names[levelModule]...),
		"host_fields": append([]string{"bk_host_id"}, a.names[levelHost]...)}, &sets)
	if err != nil {
		return a.refused(err)
	}
	for _, s := range sets {
		a.add(levelSet, s.Set)
		for _, m := range s.Modules {
			a.add(levelModule, m.Module)
			for _, h := range m.Hosts {
				a.add(levelHost, h)
			}
		}
	}
	return a, nil
}

// refused are no attributes, if CMDB has rejected the call that asked for them.
func (a *attributes) refused(err error) (*attributes, error) {
	var d *declined
	if !errors.As(err, &d) {
		return nil, err
	}
	return &attributes{unread: true, notes: []string{fmt.Sprintf("the attributes of sets, modules and hosts stay as they were: %.300v", err)}}, nil
}

// add adds the attributes of one set, module or host.
func (a *attributes) add(level string, row fields) {
	id := row.id("bk_" + level + "_id")
	if id < 1 || a.by[level][id] != "" {
		return
	}
	texts := map[string]string{}
	for _, name := range a.names[level] {
		text, ok := asText(row[name])
		if !ok {
			continue
		}
		if why := topology.AttributeFault(level, name, text); why != "" {
			a.note(level+" "+name, fmt.Sprintf("attribute %.80q of %ss is left out where it cannot be used: %.300s", name, level, why))
			continue
		}
		texts[name] = text
	}
	if len(texts) > topology.MaxAttributes {
		a.note(level, fmt.Sprintf("%ss have more than %d attributes: the last ones are left out", level, topology.MaxAttributes))
		for _, name := range slices.Sorted(maps.Keys(texts))[topology.MaxAttributes:] {
			delete(texts, name)
		}
	}

	made := string(topology.NewExtra(texts))
	if known, ok := a.known[made]; ok {
		made = known
	}
	a.known[made] = made
	a.by[level][id] = topology.Extra(made)
}

// note says what could not be used, once for all sets, modules or hosts.
func (a *attributes) note(about, text string) {
	if !a.noted[about] {
		a.noted[about] = true
		a.notes = append(a.notes, text)
	}
}

// asText is a value of CMDB as templates see it: what Python writes for it. Lists and objects are left out.
func asText(value json.RawMessage) (text string, ok bool) {
	if len(value) == 0 {
		return "", false
	}
	switch value[0] {
	case '"':
		ok = json.Unmarshal(value, &text) == nil
		return text, ok
	case 'n':
		return "None", true
	case 't':
		return "True", true
	case 'f':
		return "False", true
	case '{', '[':
		return "", false
	}
	return string(value), true
}

// fill gives the parts of a business their attributes.
func (a *attributes) fill(b *topology.Business) {
	b.AttributesUnread = a.unread
	for i := range b.Sets {
		set := &b.Sets[i]
		set.Attributes = a.by[levelSet][set.ID]
		for j := range set.Modules {
			module := &set.Modules[j]
			module.Attributes = a.by[levelModule][module.ID]
			for k := range module.Instances {
				s := &module.Instances[k]
				s.HostAttributes = a.by[levelHost][s.Host.ID]
			}
		}
	}
}
