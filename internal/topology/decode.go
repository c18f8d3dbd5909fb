package topology

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/suggest"
	"github.com/gozzard/gozzard/internal/yamldoc"
)

// decoder makes a business from the values of a document, and collects the faults.
type decoder struct {
	texts    map[string]string // all texts so far, to share equal ones: a business has few different ones
	faults   []lineFault
	reported map[string]bool // paths with a fault
	reader   Flat
	flatKeys []string // of reader
}

func (d *decoder) fault(n *yamldoc.Node, path, format string, args ...any) {
	d.reported[path] = true
	d.faults = append(d.faults, lineFault{n.Line, gozzard.Fault{Path: path, Text: fmt.Sprintf(format, args...)}})
}

// mapping calls visit for the members of a mapping that have a known key. Other keys are faults.
func (d *decoder) mapping(n *yamldoc.Node, path string, known []string,
	visit func(key string, v *yamldoc.Node, path string)) {
	if n.Kind != yamldoc.Mapping {
		d.fault(n, path, "must be a mapping, is %s", n.Kind)
		return
	}

	for i := range n.Kids {
		v := &n.Kids[i]
		at := path
		if path != "" {
			at += "."
		}
		if !slices.Contains(known, v.Key) {
			d.fault(v, at+shown(v.Key), "%s", suggest.Unknown(v.Key, known))
			continue
		}
		visit(v.Key, v, at+v.Key)
	}
}

// list reads a list. A null is an empty list.
func list[T any](d *decoder, n *yamldoc.Node, path string, read func(n *yamldoc.Node, path string) T) []T {
	if n.Kind == yamldoc.Null {
		return nil
	}
	if n.Kind != yamldoc.List {
		d.fault(n, path, "must be a list, is %s", n.Kind)
		return nil
	}

	if len(n.Kids) == 0 {
		return nil
	}

	all := make([]T, len(n.Kids))
	for i := range n.Kids {
		all[i] = read(&n.Kids[i], path+"["+strconv.Itoa(i)+"]")
	}

	return all
}

// text reads a text. A number without quotes is the text as it is written, because names and modes can look like
// numbers. A null is "".
func (d *decoder) text(n *yamldoc.Node, path string) string {
	_, isBool := n.Bool()
	switch {
	case n.Kind == yamldoc.Null:
		return ""
	case isBool:
		d.fault(n, path, "must be a text: put %s in quotes", n.Text)
		return ""
	case n.Kind != yamldoc.Plain && n.Kind != yamldoc.Quoted:
		d.fault(n, path, "must be a text, is %s", n.Kind)
		return ""
	}

	if known, ok := d.texts[n.Text]; ok {
		return known
	}

	text := strings.Clone(n.Text) // otherwise it would keep the whole document in memory
	d.texts[text] = text
	return text
}

// number reads a whole number. A null is 0.
func (d *decoder) number(n *yamldoc.Node, path string) int {
	if n.Kind == yamldoc.Null {
		return 0
	}
	i, ok := n.Int()
	switch {
	case ok:
	case n.Kind == yamldoc.Plain || n.Kind == yamldoc.Quoted:
		d.fault(n, path, "must be a whole number, is %.40q", n.Text)
	default:
		d.fault(n, path, "must be a whole number, is %s", n.Kind)
	}
	return i
}

func (d *decoder) addr(n *yamldoc.Node, path string) netip.Addr {
	text := d.text(n, path)
	if text == "" {
		return netip.Addr{}
	}
	addr, err := gozzard.ParseIP(text)
	if err != nil {
		d.fault(n, path, "%v", err)
	}
	return addr
}

func (d *decoder) business(n *yamldoc.Node) *Business {
	b := &Business{}

	if n.Kind == yamldoc.Null {
		d.fault(n, "", "the document is empty")
		return b
	}

	known := []string{"biz", "name", "clouds", "sets", "config_templates"}
	d.mapping(n, "", known, func(key string, v *yamldoc.Node, path string) {
		switch key {
		case "biz":
			b.ID = d.number(v, path)
		case "name":
			b.Name = d.text(v, path)
		case "clouds":
			b.Clouds = list(d, v, path, d.cloud)
		case "sets":
			b.Sets = list(d, v, path, d.set)
		case "config_templates":
			b.Templates = list(d, v, path, d.template)
		}
	})

	return b
}

func (d *decoder) cloud(n *yamldoc.Node, path string) (c Cloud) {
	hasID := false
	d.mapping(n, path, []string{"id", "name"}, func(key string, v *yamldoc.Node, path string) {
		switch key {
		case "id":
			c.ID, hasID = d.number(v, path), v.Kind != yamldoc.Null
		case "name":
			c.Name = d.text(v, path)
		}
	})

	if n.Kind == yamldoc.Mapping && !hasID { // 0 is a valid id of a cloud area, so Check cannot find that
		d.fault(n, path+".id", "required")
	}

	return c
}

func (d *decoder) set(n *yamldoc.Node, path string) (s Set) {
	d.mapping(n, path, []string{"id", "name", "env", "attributes", "modules"}, func(key string, v *yamldoc.Node, path string) {
		switch key {
		case "id":
			s.ID = d.number(v, path)
		case "name":
			s.Name = d.text(v, path)
		case "env":
			s.Env = Env(d.number(v, path))
		case "attributes":
			s.Attributes = d.extra(v, path)
		case "modules":
			s.Modules = list(d, v, path, d.module)
		}
	})
	return s
}

func (d *decoder) module(n *yamldoc.Node, path string) (m Module) {
	d.mapping(n, path, []string{"id", "name", "service_template_id", "attributes", "instances"},
		func(key string, v *yamldoc.Node, path string) {
			switch key {
			case "id":
				m.ID = d.number(v, path)
			case "name":
				m.Name = d.text(v, path)
			case "service_template_id":
				m.ServiceTemplate = d.number(v, path)
			case "attributes":
				m.Attributes = d.extra(v, path)
			case "instances":
				m.Instances = list(d, v, path, d.service)
			}
		})
	return m
}

func (d *decoder) service(n *yamldoc.Node, path string) (s ServiceInstance) {
	d.mapping(n, path, []string{"id", "name", "host", "processes"}, func(key string, v *yamldoc.Node, path string) {
		switch key {
		case "id":
			s.ID = d.number(v, path)
		case "name":
			s.Name = d.text(v, path)
		case "host":
			s.Host, s.HostAttributes = d.host(v, path)
		case "processes":
			s.Processes = list(d, v, path, d.process)
		}
	})
	return s
}

func (d *decoder) host(n *yamldoc.Node, path string) (h Host, e Extra) {
	known := []string{"cloud", "ip", "ipv6", "agent_id", "id", "attributes"}
	d.mapping(n, path, known, func(key string, v *yamldoc.Node, path string) {
		switch key {
		case "cloud":
			h.Cloud = d.number(v, path)
		case "ip":
			h.IP = d.addr(v, path)
		case "ipv6":
			h.IPv6 = d.addr(v, path)
		case "agent_id":
			h.Agent = gozzard.AgentID(d.text(v, path))
		case "id":
			h.ID = d.number(v, path)
		case "attributes":
			e = d.extra(v, path)
		}
	})
	return h, e
}

// processKeys are the names of a process's attributes in documents.
var processKeys = func() []string {
	all := (&Process{}).attributes()
	known := make([]string, len(all))
	for i, a := range all {
		known[i] = a.key
	}
	return known
}()

func (d *decoder) process(n *yamldoc.Node, path string) Process {
	var p Process
	all := p.attributes()
	var given []*yamldoc.Node
	d.mapping(n, path, slices.Concat(processKeys, d.flatKeys), func(key string, v *yamldoc.Node, path string) {
		if slices.Contains(d.flatKeys, key) {
			given = append(given, v)
			return
		}
		for _, a := range all {
			switch {
			case a.key != key:
			case a.text != nil:
				*a.text = d.text(v, path)
			default:
				*a.number = d.number(v, path)
			}
		}
	})

	d.flat(n, path, given, &p)
	return p
}

func (d *decoder) template(n *yamldoc.Node, path string) (t ConfigTemplate) {
	known := []string{"id", "name", "file_name", "abs_path", "owner", "group", "mode", "bind"}
	d.mapping(n, path, known, func(key string, v *yamldoc.Node, path string) {
		switch key {
		case "id":
			t.ID = d.number(v, path)
		case "name":
			t.Name = d.text(v, path)
		case "file_name":
			t.FileName = d.text(v, path)
		case "abs_path":
			t.Path = d.text(v, path)
		case "owner":
			t.Owner = d.text(v, path)
		case "group":
			t.Group = d.text(v, path)
		case "mode":
			t.Mode = d.text(v, path)
		case "bind":
			d.bind(v, path, &t)
		}
	})

	return t
}

func (d *decoder) bind(n *yamldoc.Node, path string, t *ConfigTemplate) {
	if n.Kind == yamldoc.Null {
		return
	}
	d.mapping(n, path, []string{"templates", "processes"}, func(key string, v *yamldoc.Node, path string) {
		switch key {
		case "templates":
			t.Templates = list(d, v, path, d.number)
		case "processes":
			t.Processes = list(d, v, path, d.number)
		}
	})
}
