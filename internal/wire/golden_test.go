package wire_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

var compare = cmp.Comparer(func(a, b gozzard.HostAddr) bool { return a == b })

// A golden file is a promise to every installed agent: each build must be able to read it. A golden file that must
// change needs a new protocol version.
func TestGoldenCommands(t *testing.T) {
	for name, want := range commands() {
		t.Run(name, func(t *testing.T) {
			b := golden(t, "command-"+name, wire.AppendCommand(nil, want))
			got, err := wire.DecodeCommand(b)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got, compare); d != "" {
				t.Errorf("read something else than was written (-want +got):\n%s", d)
			}
		})
	}
}

func TestGoldenReports(t *testing.T) {
	for name, want := range reports() {
		t.Run(name, func(t *testing.T) {
			b := golden(t, "report-"+name, wire.AppendReport(nil, want))
			got, err := wire.DecodeReport(b)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got, compare); d != "" {
				t.Errorf("read something else than was written (-want +got):\n%s", d)
			}
		})
	}
}

// golden compares bytes with the stored ones and returns them.
func golden(t *testing.T, name string, got []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", name+".bin")

	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		dump(&text, got, "")
		if err := os.WriteFile(filepath.Join("testdata", name+".txt"), []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: bytes differ:\n got %x\nwant %x", path, got, want)
	}

	return want
}

// dump writes the fields for people. The format does not distinguish texts from messages: bytes that can be parsed as a
// message are shown as one, unless they look like text.
func dump(w *strings.Builder, b []byte, indent string) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		b = b[n:]
		fmt.Fprintf(w, "%s%d: ", indent, num)
		switch typ {
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(b)
			b = b[n:]
			fmt.Fprintf(w, "%d (signed %d)\n", v, protowire.DecodeZigZag(v))
		case protowire.Fixed32Type:
			v, n := protowire.ConsumeFixed32(b)
			b = b[n:]
			fmt.Fprintf(w, "fixed32 %#08x\n", v)
		case protowire.Fixed64Type:
			v, n := protowire.ConsumeFixed64(b)
			b = b[n:]
			fmt.Fprintf(w, "fixed64 %#016x\n", v)
		case protowire.BytesType:
			v, n := protowire.ConsumeBytes(b)
			b = b[n:]
			switch {
			case printable(v):
				fmt.Fprintf(w, "%q\n", v)
			case isMessage(v):
				fmt.Fprintf(w, "{\n")
				dump(w, v, indent+"  ")
				fmt.Fprintf(w, "%s}\n", indent)
			default:
				fmt.Fprintf(w, "%x\n", v)
			}
		}
	}
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' {
			return false
		}
	}
	return len(b) > 0
}

func isMessage(b []byte) bool {
	for len(b) > 0 {
		_, typ, n := protowire.ConsumeField(b)
		if n < 0 || typ == protowire.StartGroupType {
			return false
		}
		b = b[n:]
	}
	return true
}
