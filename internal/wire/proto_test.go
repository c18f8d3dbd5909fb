package wire_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/wire"
)

// A message is filled once for each bit of a field's number, so that of any two bool fields one is set alone in some
// round. See filler.
const rounds = 9

// side is one of the two messages: its type in the domain, the message of wire.proto, and our code for it.
type side struct {
	name   string
	domain func() any
	encode func(any) []byte
	decode func([]byte) (any, error)
}

func sides() []side {
	return []side{
		{
			name:   "Command",
			domain: func() any { return new(gozzard.Command) },
			encode: func(v any) []byte { return wire.AppendCommand(nil, v.(*gozzard.Command)) },
			decode: func(b []byte) (any, error) { return wire.DecodeCommand(b) },
		},
		{
			name:   "Report",
			domain: func() any { return new(gozzard.Report) },
			encode: func(v any) []byte { return wire.AppendReport(nil, v.(*gozzard.Report)) },
			decode: func(b []byte) (any, error) { return wire.DecodeReport(b) },
		},
	}
}

// wireProto is wire.proto as other languages understand it.
func wireProto(t *testing.T) protoreflect.FileDescriptor {
	t.Helper()
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{}}
	files, err := compiler.Compile(t.Context(), "wire.proto")
	if err != nil {
		t.Fatal(err)
	}
	return files[0]
}

// filled is a message with every field set, in the domain and by wire.proto, and the fields of wire.proto that the
// domain has.
func filled(t *testing.T, file protoreflect.FileDescriptor, s side, round int) (any, *dynamicpb.Message, nameSet) {
	t.Helper()
	value := s.domain()
	v := reflect.ValueOf(value).Elem()
	f := filler{round: round}
	f.fill(v)

	if f.count >= 1<<rounds {
		t.Fatalf("%d values: raise rounds", f.count)
	}

	v.FieldByName("Version").SetUint(gozzard.ProtocolVersion) // a newer one is rejected

	msg := dynamicpb.NewMessage(file.Messages().ByName(protoreflect.Name(s.name)))
	set := nameSet{}
	translate(t, msg, v, "", set)
	return value, msg, set
}

// TestProtoMatchesCode fails when a field is in one of domain type, encoder, decoder and wire.proto but not in all of
// them, or with another number, name or type. Both messages are filled by reflection and go from our code to a reader
// of wire.proto, and the other way.
func TestProtoMatchesCode(t *testing.T) {
	file := wireProto(t)
	for _, s := range sides() {
		for round := range rounds + 1 {
			t.Run(fmt.Sprintf("%s/%d", s.name, round), func(t *testing.T) {
				value, want, set := filled(t, file, s, round)

				// From our code to the reader of wire.proto.
				got := dynamicpb.NewMessage(want.Descriptor())
				if err := proto.Unmarshal(s.encode(value), got); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
					t.Errorf("by wire.proto our bytes mean something else (-want +got):\n%s", d)
				}

				// From the writer of wire.proto to our code.
				b, err := proto.MarshalOptions{Deterministic: true}.Marshal(want)
				if err != nil {
					t.Fatal(err)
				}

				back, err := s.decode(b)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(value, back, compare); d != "" {
					t.Errorf("we read something else than was written by wire.proto (-want +got):\n%s", d)
				}

				// What wire.proto has and the domain does not.
				for _, m := range reachable(want.Descriptor()) {
					for i := range m.Fields().Len() {
						if name := m.Fields().Get(i).FullName(); !set[name] {
							t.Errorf("wire.proto has %s, but no field of the domain is written there", name)
						}
					}
				}
			})
		}
	}
}

// TestProtoHasEveryMessage fails when wire.proto describes a message that neither Command nor Report holds.
func TestProtoHasEveryMessage(t *testing.T) {
	file := wireProto(t)
	used := map[protoreflect.FullName]bool{}
	for _, s := range sides() {
		for _, m := range reachable(file.Messages().ByName(protoreflect.Name(s.name))) {
			used[m.FullName()] = true
		}
	}
	for i := range file.Messages().Len() {
		if name := file.Messages().Get(i).FullName(); !used[name] {
			t.Errorf("wire.proto has the message %s, which is never sent", name)
		}
	}
}

// TestDecoderKnowsNoOtherField gives our decoders every number that wire.proto does not use, in each wire type, in each
// message: all are skipped. A decoder that reads a field which is not in wire.proto is noticed here.
func TestDecoderKnowsNoOtherField(t *testing.T) {
	file := wireProto(t)
	for _, s := range sides() {
		value, plain, _ := filled(t, file, s, rounds)

		for _, m := range reachable(plain.Descriptor()) {
			for num := protowire.Number(1); num <= 32; num++ {
				if m.IsMapEntry() || m.Fields().ByNumber(num) != nil {
					continue
				}
				for kind, field := range unknownFields(num) {
					msg := proto.Clone(plain).(*dynamicpb.Message)
					addUnknown(msg, m.FullName(), field)
					b, err := proto.MarshalOptions{Deterministic: true}.Marshal(msg)
					if err != nil {
						t.Fatal(err)
					}

					got, err := s.decode(b)
					if err != nil {
						t.Errorf("%s: field %d, %s, is not in wire.proto and was read: %v", m.Name(), num, kind, err)
						continue
					}
					if !reflect.DeepEqual(value, got) {
						t.Errorf("%s: field %d, %s, is not in wire.proto and was read (-without +with):\n%s",
							m.Name(), num, kind,
							cmp.Diff(value, got, compare))
					}
				}
			}
		}
	}
}

// TestProtoReadsGoldenFiles: every byte of the messages in the field has a place in wire.proto.
func TestProtoReadsGoldenFiles(t *testing.T) {
	file := wireProto(t)
	for _, s := range sides() {
		paths, err := filepath.Glob(filepath.Join("testdata", strings.ToLower(s.name)+"-*.bin"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no golden file of %s: %v", s.name, err)
		}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			msg := dynamicpb.NewMessage(file.Messages().ByName(protoreflect.Name(s.name)))
			if err := proto.Unmarshal(b, msg); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if where := unknown(msg); where != "" {
				t.Errorf("%s: %s has a field that is not in wire.proto", path, where)
			}
		}
	}
}
