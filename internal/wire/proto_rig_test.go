package wire_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/gozzard/gozzard"
)

// filler gives every field of a value something that is not zero and not given to another one of its type.
type filler struct {
	round int // a bool is true when this bit of its number is set; in the last round all are
	count int
}

var addrType = reflect.TypeFor[netip.Addr]()

// fill sets v and all that it holds. Small numbers are one or two: those are in each enumeration.
func (f *filler) fill(v reflect.Value) {
	if v.Type() == addrType {
		f.count++
		v.Set(reflect.ValueOf(netip.AddrFrom4([4]byte{10, 0, byte(f.count >> 8), byte(f.count)})))
		return
	}

	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
		return
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
		return
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fillAll(v)
		return
	case reflect.Array:
		f.fillAll(v)
		return
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key)
			f.fill(value)
			v.SetMapIndex(key, value)
		}
		return
	}

	f.count++

	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.round == rounds || f.count>>f.round&1 == 1)
	case reflect.Uint8:
		v.SetUint(uint64(1 + f.count%2))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(1000 + f.count))
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(-1000 - f.count))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(f.count) + 0.5)
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", f.count))
	default:
		panic(fmt.Sprintf("cannot fill a %s", v.Type()))
	}
}

// fillAll sets the elements of a list. Bytes of an id or a digest are one value.
func (f *filler) fillAll(v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		f.count++
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(byte(f.count>>(i%2*8)) + 1))
		}
		return
	}
	for i := range v.Len() {
		f.fill(v.Index(i))
	}
}

// nameSet are fields of wire.proto.
type nameSet = map[protoreflect.FullName]bool

// flat are structs whose fields stand in the message of the struct that holds them, with what is put before their
// names.
var flat = map[reflect.Type]string{
	reflect.TypeFor[gozzard.Key]():        "",
	reflect.TypeFor[gozzard.AttemptRef](): "",
	reflect.TypeFor[gozzard.Cause]():      "",
	reflect.TypeFor[gozzard.JournalPos](): "Journal",
}

// translate sets in msg what v says, by the names alone: a field of the domain has the name of its field in wire.proto,
// but for underscores. It notes in set the fields that it has met.
func translate(t *testing.T, msg *dynamicpb.Message, v reflect.Value, prefix string, set nameSet) {
	t.Helper()

	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		if before, ok := flat[field.Type]; ok {
			translate(t, msg, value, before, set)
			continue
		}
		d := protoField(msg.Descriptor(), prefix+field.Name, field.Type)
		if d == nil {
			t.Fatalf("wire.proto has no field for %s.%s in %s", v.Type(), field.Name, msg.Descriptor().Name())
		}
		if want := shape(field.Type); want != protoShape(d) {
			t.Fatalf("%s.%s is %q in wire.proto and has to be %q", v.Type(), field.Name, protoShape(d), want)
		}
		set[d.FullName()] = true
		switch {
		case d.IsMap():
			for k, e := range value.Seq2() {
				key := protoreflect.ValueOfString(k.String()).MapKey()
				msg.Mutable(d).Map().Set(key, protoreflect.ValueOfString(e.String()))
			}
			set[d.MapKey().FullName()], set[d.MapValue().FullName()] = true, true
		case d.IsList():
			for j := range value.Len() {
				msg.Mutable(d).List().Append(translated(t, d, value.Index(j), set))
			}
		default:
			msg.Set(d, translated(t, d, value, set))
		}
	}
}

// translated is one value, or one element of a list.
func translated(t *testing.T, d protoreflect.FieldDescriptor, v reflect.Value, set nameSet) protoreflect.Value {
	t.Helper()

	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}

	switch d.Kind() {
	case protoreflect.MessageKind:
		child := dynamicpb.NewMessage(d.Message())
		translate(t, child, v, "", set)
		return protoreflect.ValueOfMessage(child)
	case protoreflect.BytesKind:
		if v.Type() == addrType {
			return protoreflect.ValueOfBytes(v.Interface().(netip.Addr).AsSlice())
		}
		b := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(b), v)
		return protoreflect.ValueOfBytes(b)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(v.String())
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(v.Uint()))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(v.Uint())
	case protoreflect.Sint32Kind:
		return protoreflect.ValueOfInt32(int32(v.Int()))
	case protoreflect.Sint64Kind:
		return protoreflect.ValueOfInt64(v.Int())
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(v.Float()))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(v.Float())
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(v.Bool())
	}

	t.Fatalf("%s is a %s, which these messages do not use", d.FullName(), d.Kind())
	panic("unreachable")
}

// protoField finds the field of a message for a field of the domain. A duration has its unit in its name.
func protoField(m protoreflect.MessageDescriptor, name string, typ reflect.Type) protoreflect.FieldDescriptor {
	if typ == reflect.TypeFor[time.Duration]() {
		name += "NS"
	}
	for i := range m.Fields().Len() {
		d := m.Fields().Get(i)
		if strings.EqualFold(name, strings.ReplaceAll(string(d.Name()), "_", "")) {
			return d
		}
	}
	return nil
}

// shape is how a type of the domain has to be declared in wire.proto.
func shape(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return shape(t.Elem())
	case reflect.Map:
		return "map<" + shape(t.Key()) + ", " + shape(t.Elem()) + ">"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "repeated " + shape(t.Elem())
	case reflect.Struct:
		if t == addrType {
			return "bytes"
		}
		return t.Name()
	case reflect.Uint8, reflect.Uint32:
		return "uint32"
	case reflect.Int32:
		return "sint32"
	case reflect.Int, reflect.Int64:
		return "sint64"
	case reflect.Float32:
		return "float"
	case reflect.Float64:
		return "double"
	}
	return t.Kind().String()
}

// protoShape is how a field is declared in wire.proto.
func protoShape(d protoreflect.FieldDescriptor) string {
	text := d.Kind().String()
	if d.Kind() == protoreflect.MessageKind {
		text = string(d.Message().Name())
	}
	switch {
	case d.IsMap():
		return "map<" + protoShape(d.MapKey()) + ", " + protoShape(d.MapValue()) + ">"
	case d.IsList():
		return "repeated " + text
	}
	return text
}

// reachable lists a message and all that it can hold, each once.
func reachable(m protoreflect.MessageDescriptor) []protoreflect.MessageDescriptor {
	all := []protoreflect.MessageDescriptor{m}
	seen := map[protoreflect.FullName]bool{m.FullName(): true}
	for at := 0; at < len(all); at++ {
		for i := range all[at].Fields().Len() {
			if child := all[at].Fields().Get(i).Message(); child != nil && !seen[child.FullName()] {
				seen[child.FullName()] = true
				all = append(all, child)
			}
		}
	}
	return all
}

// unknownFields has a value of each wire type for a number that no build uses.
func unknownFields(num protowire.Number) map[string][]byte {
	return map[string][]byte{
		"varint":  protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), 2),
		"fixed32": protowire.AppendFixed32(protowire.AppendTag(nil, num, protowire.Fixed32Type), 1),
		"fixed64": protowire.AppendFixed64(protowire.AppendTag(nil, num, protowire.Fixed64Type), 1),
		"bytes":   protowire.AppendString(protowire.AppendTag(nil, num, protowire.BytesType), "sixteen bytes !!"),
	}
}

// addUnknown adds a field to each message of a name.
func addUnknown(m protoreflect.Message, name protoreflect.FullName, field []byte) {
	if m.Descriptor().FullName() == name {
		m.SetUnknown(field)
	}
	eachChild(m, func(child protoreflect.Message) { addUnknown(child, name, field) })
}

// unknown names a message with a field that its descriptor does not have, "" when there is none.
func unknown(m protoreflect.Message) (where string) {
	if len(m.GetUnknown()) > 0 {
		return string(m.Descriptor().Name())
	}
	eachChild(m, func(child protoreflect.Message) {
		if found := unknown(child); found != "" {
			where = found
		}
	})
	return where
}

func eachChild(m protoreflect.Message, do func(protoreflect.Message)) {
	m.Range(func(d protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case d.IsMap() || d.Kind() != protoreflect.MessageKind:
		case d.IsList():
			for i := range v.List().Len() {
				do(v.List().Get(i).Message())
			}
		default:
			do(v.Message())
		}
		return true
	})
}
