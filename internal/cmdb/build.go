package cmdb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// maxNotes limits the log lines for one business.
const maxNotes = 20

// builder makes a business from rows.
type builder struct {
	sets     map[int]*topology.Set
	modules  map[int]*placed[topology.Module]
	services map[int]*placed[topology.ServiceInstance]
	notes    []string // data that could not be used
}

// placed is a part of a business with the id of its parent.
type placed[T any] struct {
	in int
	T  T
}

// build makes a business from rows. Rows that contradict each other were changed while they were read.
func (c *Client) build(biz int, clouds []cloudRow, templates map[int]int, rows []processRow, seen *attributes) (*topology.Business,
	error) {
	w := &builder{sets: map[int]*topology.Set{}, modules: map[int]*placed[topology.Module]{},
		services: map[int]*placed[topology.ServiceInstance]{}}
	used := map[int]bool{} // cloud areas
	for i := range rows {
		if err := w.add(&rows[i]); err != nil {
			return nil, err
		}
		used[int(rows[i].Host.Cloud)] = true
	}

	// List the cloud areas in use.
	b := &topology.Business{ID: biz, Name: fmt.Sprintf("business %d", biz)}
	for _, row := range clouds {
		if id := int(row.ID); used[id] {
			b.Clouds = append(b.Clouds, topology.Cloud{ID: id, Name: clean(row.Name)})
			delete(used, id)
		}
	}

	for id := range used { // a cloud area that the user may not see
		b.Clouds = append(b.Clouds, topology.Cloud{ID: id})
	}

	// Put the parts together, and leave out what cannot be taken.
	w.assemble(b, templates)
	b.Sort()
	w.tidy(b)
	seen.fill(b)
	w.notes = append(w.notes, seen.notes...)
	b.AddLeft(append(w.notes, b.DropClashes(nil)...)...)

	// Log what could not be used.
	for i, note := range b.Left {
		if i == maxNotes {
			c.o.Log.Warn("more of CMDB's data cannot be used", "biz", biz, "count", len(b.Left)-maxNotes)
			break
		}
		c.o.Log.Warn("part of CMDB's data cannot be used", "biz", biz, "what", note)
	}

	// Check the result.
	if faults := b.Check(); len(faults) > 0 {
		return nil, &gozzard.Error{Kind: gozzard.ErrConflict,
			Message: fmt.Sprintf("business %d of CMDB cannot be taken over", biz), Faults: faults}
	}

	return b, nil
}

// add adds one row.
func (w *builder) add(r *processRow) error {
	set := topology.Set{ID: int(r.Set.ID), Name: clean(r.Set.Name), Env: topology.Env(r.Set.Env)}
	if !set.Env.Valid() { // a job on the formal environment must not reach a set of which nobody said that it is formal
		set.Env = topology.EnvNone
	}
	if known := w.sets[set.ID]; known == nil {
		w.sets[set.ID] = &set
	} else if known.Name != set.Name || known.Env != set.Env {
		return &moved{fmt.Sprintf("set %d is %q and %q", set.ID, known.Name, set.Name)}
	}

	module := placed[topology.Module]{set.ID, topology.Module{ID: int(r.Module.ID), Name: clean(r.Module.Name)}}
	if known := w.modules[module.T.ID]; known == nil {
		w.modules[module.T.ID] = &module
	} else if known.in != module.in || known.T.Name != module.T.Name {
		return &moved{fmt.Sprintf("module %d is %q and %q", module.T.ID, known.T.Name, module.T.Name)}
	}

	service := placed[topology.ServiceInstance]{module.T.ID,
		topology.ServiceInstance{ID: int(r.Service.ID), Name: clean(r.Service.Name), Host: w.host(r)}}
	known := w.services[service.T.ID]
	if known == nil {
		known = &service
		w.services[service.T.ID] = known
	} else if known.in != service.in || known.T.Name != service.T.Name || known.T.Host != service.T.Host {
		return &moved{fmt.Sprintf("service instance %d is %q and %q", service.T.ID, known.T.Name, service.T.Name)}
	}

	known.T.Processes = append(known.T.Processes, process(r))
	return nil
}

func process(r *processRow) topology.Process {
	p := &r.Process
	return topology.Process{
		ID: int(p.ID), Name: p.Name, FuncName: p.FuncName, Template: int(r.Template.ID), Num: int(p.Num),
		Priority: int(p.Priority),
		User:     p.User, WorkPath: p.WorkPath, PIDFile: p.PIDFile,
		Start: p.Start, Stop: p.Stop, Restart: p.Restart, Reload: p.Reload, ForceStop: p.ForceStop,
		Timeout: int(p.Timeout), StartCheckSecs: int(p.StartCheck),
		FuncID: string(p.FuncID), BindInfo: bindInfo(p.BindInfo),
	}
}

// bindInfo is the list of addresses of a process as one text, "" if there are none.
func bindInfo(list json.RawMessage) string {
	var text bytes.Buffer
	if json.Compact(&text, list) != nil || text.String() == "null" || text.String() == "[]" {
		return ""
	}
	return text.String()
}

// host reads the host of a row. It leaves out what is not an address or an agent id; Check reports a host that has
// neither.
func (w *builder) host(r *processRow) topology.Host {
	h := topology.Host{Cloud: int(r.Host.Cloud), IP: w.addr(r, r.Host.IP), IPv6: w.addr(r, r.Host.IPv6),
		Agent: gozzard.AgentID(r.Host.Agent), ID: max(int(r.Host.ID), 0)}
	if h.IP.Is6() && !h.IPv6.IsValid() {
		h.IP, h.IPv6 = netip.Addr{}, h.IP
	}
	if h.Agent != "" && h.Agent.Validate() != nil {
		w.note("host of service instance %d: %.80q is no agent id", r.Service.ID, r.Host.Agent)
		h.Agent = ""
	}
	return h
}

func (w *builder) addr(r *processRow, given addresses) netip.Addr {
	text := given.first()
	if text == "" {
		return netip.Addr{}
	}
	addr, err := gozzard.ParseIP(text)
	if err != nil {
		w.note("host of service instance %d: %.80v", r.Service.ID, err)
	}
	return addr
}

func (w *builder) note(format string, args ...any) {
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

// assemble adds the parts to their parents.
func (w *builder) assemble(b *topology.Business, templates map[int]int) {
	for _, s := range w.services {
		m := &w.modules[s.in].T
		m.Instances = append(m.Instances, s.T)
	}
	for _, m := range w.modules {
		m.T.ServiceTemplate = templates[m.T.ID]
		s := w.sets[m.in]
		s.Modules = append(s.Modules, m.T)
	}
	for _, s := range w.sets {
		b.Sets = append(b.Sets, *s)
	}
}

// tidy leaves out values that cannot be used, so that one wrong process does not stop the sync of the others. An
// operation that needs such a value reports that it is missing.
func (w *builder) tidy(b *topology.Business) {
	for s := range b.Sets {
		set := &b.Sets[s]
		for m := range set.Modules {
			module := &set.Modules[m]
			for i := range module.Instances {
				w.tidyService(&module.Instances[i], set.Name, module.Name)
			}
			module.Instances = slices.DeleteFunc(module.Instances, func(s topology.ServiceInstance) bool {
				h := s.Host
				return h.Agent == "" && !h.IP.IsValid() && !h.IPv6.IsValid()
			})
		}
	}
}

// tidyService leaves out what cannot be used of one service instance.
func (w *builder) tidyService(service *topology.ServiceInstance, set, module string) {
	if h := service.Host; h.Agent == "" && !h.IP.IsValid() && !h.IPv6.IsValid() {
		for _, p := range service.Processes {
			w.note("process %d is left out: the host of its service instance %d has neither an address nor an agent id",
				p.ID, service.ID)
		}
		return
	}

	var kept []topology.Process
	for _, p := range service.Processes {
		for _, f := range p.Unusable(set, module) {
			w.note("process %d: %s: %.300s", p.ID, f.Path, f.Text)
			p.Clear(f.Path)
		}
		if err := p.CheckAlias(); err != nil {
			w.note("process %d is left out: name: %.300v", p.ID, err)
			continue
		}
		kept = append(kept, p)
	}
	service.Processes = kept
}

// clean removes control characters and the like from a name. Blanks at its ends stay: they belong to it.
func clean(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	return norm.NFC.String(name)
}
