package wire

import "github.com/gozzard/gozzard"

// appendQuestion appends the fields with which every question about a process begins.
func appendQuestion(b []byte, id gozzard.OpID, key gozzard.Key) []byte {
	b = appendID(b, 1, id)
	b = appendString(b, 2, key.Namespace)
	return appendString(b, 3, key.Name)
}

// question reads one of the fields that appendQuestion writes.
func (d *decoder) question(id *gozzard.OpID, key *gozzard.Key) {
	switch d.num {
	case 1:
		*id = d.id()
	case 2:
		key.Namespace = d.string()
	case 3:
		key.Name = d.string()
	default:
		d.skip()
	}
}
