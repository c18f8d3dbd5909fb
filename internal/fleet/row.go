package fleet

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gozzard/gozzard"
)

// The limits of what an agent can make the server store. They are far above what a host needs: its policy allows 2,000
// processes by default. Rows beyond the limit are dropped, and texts are truncated. Rows of the record do not count.
const (
	MaxRowsPerHost  = 5000
	maxVersionBytes = 256
	maxMessageBytes = 1024
)

// row is one process. It has no pointers, so that the garbage collector does not have to scan millions of rows.
type row struct {
	seq        uint64 // order of arrival; also shows that a place was reused
	registered int64
	started    int64
	reported   int64
	disk, net  int64
	host       uint32
	space      uint32
	name       uint32
	labels     uint32
	version    uint32
	message    uint32
	pid        int32
	fd         int32
	cpu, mem   float32
	mark       uint32 // mark of the newest full report that it was in, or during which it changed
	memKB      uint32 // KiB; at most 4 TiB
	history    uint32 // in Index.histories; 0: none
	wanted     gozzard.RunState
	state      gozzard.RunState
	condition  gozzard.Condition // as reported
	flags      rowFlags
}

// rowFlags are the yes-or-no values of a row.
type rowFlags uint8

const (
	rowHosted rowFlags = 1 << iota
	rowSeeded          // the record has it: only Remove removes it
	rowSeen            // its host has reported it

	rowKindShift            = 3 // two bits: gozzard.ShownKind
	rowHealthShift          = 5 // two bits: gozzard.Health
	rowTwoBits     rowFlags = 3
)

func (r *row) set(f rowFlags, on bool) {
	if on {
		r.flags |= f
	} else {
		r.flags &^= f
	}
}

func (r *row) setBits(shift int, v uint8) {
	r.flags = r.flags&^(rowTwoBits<<shift) | (rowFlags(v)&rowTwoBits)<<shift
}

func (r *row) bits(shift int) uint8 { return uint8(r.flags >> shift & rowTwoBits) }

func (x *Index) keyOf(r *row) gozzard.Key {
	return gozzard.Key{Namespace: x.spaces.at(r.space).name, Name: x.names.text(r.name)}
}

func (x *Index) seqOf(id uint32) uint64 { return x.rows.at(id).seq }

// locate finds a key among the rows of a host, or the place where it would be inserted.
func (x *Index) locate(e *host, key gozzard.Key) (place int, found bool) {
	return slices.BinarySearchFunc(e.rows, key, func(id uint32, k gozzard.Key) int {
		r := x.rows.at(id)
		return cmp.Or(cmp.Compare(x.spaces.at(r.space).name, k.Namespace), cmp.Compare(x.names.text(r.name), k.Name))
	})
}

// find returns the row of a host with a key, nil if there is none.
func (x *Index) find(e *host, key gozzard.Key) *row {
	if i, ok := x.locate(e, key); ok {
		return x.rows.at(e.rows[i])
	}
	return nil
}

// obtain returns the row of a host with a key, and adds it at the end if there is none. It returns nil for an invalid
// key. The caller changes the row, so it is recorded as changed.
func (x *Index) obtain(e *host, key gozzard.Key) *row {
	i, ok := x.locate(e, key)
	if ok {
		x.feedRow(e.rows[i])
		return x.rows.at(e.rows[i])
	}
	if gozzard.ValidateProcessName(key.Namespace) != nil || gozzard.ValidateProcessName(key.Name) != nil {
		return nil
	}

	id := x.rows.alloc()
	x.feedRow(id)
	x.lastSeq++
	r := x.rows.at(id)
	r.seq, r.host, r.pid = x.lastSeq, e.place, -1
	r.space = x.spaceFor(key.Namespace)
	r.name = x.names.hold(key.Name)
	e.rows = slices.Insert(e.rows, i, id)
	x.all.push(r.seq, id)
	x.spaces.at(r.space).push(r.seq, id)
	x.countRow(r, 1)
	x.count++
	x.noteHost(e.place)
	return r
}

// discard removes the row at an index of a host's list.
func (x *Index) discard(e *host, i int) {
	x.erase(e.rows[i])
	e.rows = slices.Delete(e.rows, i, i+1)
}

// erase removes a row from everything except its host's list.
func (x *Index) erase(id uint32) {
	r := x.rows.at(id)
	x.countRow(r, -1)
	x.all.remove(r.seq, x.seqOf)
	s := x.spaces.at(r.space)
	s.remove(r.seq, x.seqOf)
	if s.n == 0 {
		delete(x.spaceIDs, s.name)
		x.spaces.release(r.space)
	}

	x.names.drop(r.name)
	x.versions.drop(r.version)
	x.messages.drop(r.message)
	x.labels.drop(r.labels)
	x.dropHistory(r)
	x.count--
	x.noteHost(r.host)
	x.feedRow(id)
	x.rows.release(id)
}

// spaceFor returns the number of a namespace and adds it if it is new.
func (x *Index) spaceFor(name string) uint32 {
	if i, ok := x.spaceIDs[name]; ok {
		return i
	}
	i := x.spaces.alloc()
	name = strings.Clone(name)
	x.spaces.at(i).name = name
	x.spaceIDs[name] = i
	return i
}

// store writes the values of a status into its row.
func (x *Index) store(r *row, s *gozzard.Status) {
	if r.state != s.State || r.condition != s.Condition || s.Hosted != (r.flags&rowHosted != 0) {
		x.noteHost(r.host)
	}

	x.labels.swap(&r.labels, s.Labels)
	x.versions.swap(&r.version, clip(s.Version, maxVersionBytes))
	x.messages.swap(&r.message, clip(s.Message, maxMessageBytes))
	x.countRow(r, -1)
	r.wanted, r.state, r.condition = s.Wanted, s.State, s.Condition
	r.setBits(rowHealthShift, uint8(s.Health))
	x.countRow(r, 1)
	r.set(rowHosted, s.Hosted)
	r.pid, r.fd = s.PID, s.FD
	r.registered, r.started, r.reported = s.RegisteredAt, s.StartedAt, s.ReportedAt
	r.cpu, r.mem = s.CPU, s.Mem
	r.disk, r.net = s.Disk, s.Net
	r.memKB = uint32(min(max(s.MemBytes, 0)>>10, math.MaxUint32))
	r.setBits(rowKindShift, uint8(s.Kind))
	x.storeHistory(r, s)
}

// load returns a row in the form for callers.
func (x *Index) load(r *row) Row {
	e := x.hosts[r.host]

	out := Row{
		Agent: e.Info.Agent,
		Addr:  firstAddr(e.Info.Addrs),
		Stale: !e.Online || !e.reported, Condition: x.condition(r),
		Status: gozzard.Status{
			Key:          x.keyOf(r),
			Labels:       x.labels.set(r.labels),
			Wanted:       r.wanted,
			State:        r.state,
			Hosted:       r.flags&rowHosted != 0,
			PID:          r.pid,
			Version:      x.versions.text(r.version),
			Message:      x.messages.text(r.message),
			RegisteredAt: r.registered,
			StartedAt:    r.started,
			ReportedAt:   r.reported,
			CPU:          r.cpu,
			Mem:          r.mem,
			FD:           r.fd,
			Disk:         r.disk,
			Net:          r.net,
			Condition:    r.condition,
			Kind:         gozzard.ShownKind(r.bits(rowKindShift)),
			Health:       gozzard.Health(r.bits(rowHealthShift)),
			MemBytes:     int64(r.memKB) << 10,
		},
	}

	x.loadHistory(r, &out.Status)
	return out
}

// clip truncates a text to at most n bytes, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
