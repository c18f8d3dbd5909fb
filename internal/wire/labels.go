package wire

import (
	"bytes"
	"maps"

	"google.golang.org/protobuf/encoding/protowire"
)

// lastLabels are the labels that were read last, with their encoded bytes.
type lastLabels struct {
	raw    []byte
	labels map[string]string
}

// labels reads the current field and all label fields directly after it. Processes of one host mostly have equal
// labels; those share one map.
func (d *decoder) labels(have map[string]string) map[string]string {
	rest, ok := d.behindRun()
	if have != nil || !ok { // fields that are not adjacent, or faulty: read one at a time into a map that is not shared
		if !d.own {
			have, d.own = maps.Clone(have), true
		}
		return d.label(have)
	}

	// Reuse the last labels if the bytes are equal.
	raw, last := d.rest[:len(d.rest)-len(rest)], &d.text.last
	if last.labels != nil && bytes.Equal(raw, last.raw) {
		d.rest = rest
		return last.labels
	}

	// Otherwise read them.
	labels := d.label(nil)
	for d.err == nil && len(d.rest) > len(rest) && d.next() {
		labels = d.label(labels)
	}

	if d.err == nil {
		*last = lastLabels{raw: raw, labels: labels}
	}

	return labels
}

// behindRun returns the bytes after the current field and the label fields directly after it.
func (d *decoder) behindRun() (rest []byte, ok bool) {
	rest = d.rest
	for {
		n := protowire.ConsumeFieldValue(d.num, d.typ, rest)
		if n < 0 || d.typ != protowire.BytesType {
			return nil, false
		}
		rest = rest[n:]
		if len(rest) == 0 || rest[0] != byte(d.num)<<3|byte(d.typ) {
			return rest, true
		}
		rest = rest[1:]
	}
}
