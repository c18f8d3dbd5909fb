package fleet

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// interner stores each distinct string once and counts its uses, because names and versions repeat in a fleet. It
// removes strings without uses. Number 0 is the empty string and is not counted.
type interner struct {
	ids      map[string]uint32
	entries  slab[stringEntry]
	releases uint64 // how often a number was freed, and may stand for another string now
}

// stringEntry is a string with the number of its uses.
type stringEntry struct {
	text string
	refs uint32
}

func newInterner() interner {
	in := interner{ids: make(map[string]uint32)}
	in.entries.alloc() // 0
	return in
}

func (in *interner) text(id uint32) string { return in.entries.at(id).text }

// hold returns the number of a string and counts one more use.
func (in *interner) hold(s string) uint32 {
	if s == "" {
		return 0
	}
	id, ok := in.ids[s]
	if !ok {
		id = in.entries.alloc()
		s = strings.Clone(s) // the strings of a report may share one large buffer
		in.entries.at(id).text = s
		in.ids[s] = id
	}
	in.entries.at(id).refs++
	return id
}

// drop counts one use less.
func (in *interner) drop(id uint32) {
	if id == 0 {
		return
	}
	e := in.entries.at(id)
	e.refs--
	if e.refs == 0 {
		delete(in.ids, e.text)
		in.entries.release(id)
		in.releases++
	}
}

// swap replaces the string of *id by s. Usually they are equal and it does nothing.
func (in *interner) swap(id *uint32, s string) {
	if in.text(*id) == s {
		return
	}
	next := in.hold(s)
	in.drop(*id)
	*id = next
}

// labelSets is an interner for label sets. Number 0 is the empty set.
type labelSets struct {
	ids     map[string]uint32 // by canonical text
	entries slab[labelEntry]
}

// labelEntry is a label set with the number of its uses.
type labelEntry struct {
	set  map[string]string // never changed: readers share it
	text string
	refs uint32
}

func newLabelSets() labelSets {
	l := labelSets{ids: make(map[string]uint32)}
	l.entries.alloc() // 0
	return l
}

func (l *labelSets) set(id uint32) map[string]string { return l.entries.at(id).set }

// hold returns the number of a set and counts one more use.
func (l *labelSets) hold(set map[string]string) uint32 {
	if len(set) == 0 {
		return 0
	}

	text := canonical(set)
	id, ok := l.ids[text]
	if !ok {
		id = l.entries.alloc()
		own := make(map[string]string, len(set))
		for k, v := range set {
			own[strings.Clone(k)] = strings.Clone(v)
		}
		*l.entries.at(id) = labelEntry{set: own, text: text}
		l.ids[text] = id
	}

	l.entries.at(id).refs++
	return id
}

func (l *labelSets) drop(id uint32) {
	if id == 0 {
		return
	}
	e := l.entries.at(id)
	e.refs--
	if e.refs == 0 {
		delete(l.ids, e.text)
		l.entries.release(id)
	}
}

func (l *labelSets) swap(id *uint32, set map[string]string) {
	if maps.Equal(l.set(*id), set) {
		return
	}
	next := l.hold(set)
	l.drop(*id)
	*id = next
}

// canonical is a text that is equal for equal sets only: the keys in order, every part after its length.
func canonical(set map[string]string) string {
	var b []byte
	for _, k := range slices.Sorted(maps.Keys(set)) {
		b = binary.AppendUvarint(b, uint64(len(k)))
		b = append(b, k...)
		b = binary.AppendUvarint(b, uint64(len(set[k])))
		b = append(b, set[k]...)
	}
	return string(b)
}
