//go:build linux

package crowd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
)

// Holders is how many bytes of a server each kind of thing holds.
type Holders map[string]int64

// The kinds, in the order of the table.
const (
	heldClients  = "connections: what NATS keeps of each, and buffers"
	heldPerms    = "permissions of each connection"
	heldSubs     = "subscriptions"
	heldTLS      = "TLS: keys, certificates, buffers"
	heldIndex    = "live index: hosts and processes"
	heldSessions = "sessions, limits, and the rest of the control plane"
	heldRecord   = "the record"
	heldOther    = "other objects"
	heldStacks   = "stacks, mostly of the two loops of each connection"
	heldGarbage  = "room for garbage, and free memory that is kept"
	heldRuntime  = "the runtime itself"
)

// HeldOrder is the order of the kinds in tables.
var HeldOrder = []string{heldClients, heldPerms, heldSubs, heldTLS, heldIndex, heldSessions, heldRecord, heldOther,
	heldStacks, heldGarbage, heldRuntime}

// owners says by parts of function names to which kind an allocation belongs. The innermost function of a stack that has
// one of the parts decides; setPermissions decides wherever it is.
var owners = []struct{ part, kind string }{
	{"crypto/", heldTLS},
	{"gozzard/internal/fleet.", heldIndex}, {"gozzard/internal/live.", heldIndex},
	{"gozzard/internal/sqlstore.", heldRecord}, {"modernc.org/", heldRecord},
	{"gozzard/internal/enrol.", heldTLS},
	{"gozzard/internal/", heldSessions},
	{"nats-server/v2/server.(*Sublist)", heldSubs}, {"nats-server/v2/server.(*client).processSub", heldSubs},
	{"nats-server/", heldClients},
}

// holding asks the runtime what holds the memory of this process.
func holding() Holders {
	runtime.GC()
	runtime.GC() // the profile is that of the last but one

	// Count the objects by their owners.
	h := Holders{}
	records := make([]runtime.MemProfileRecord, 4096)
	for {
		n, ok := runtime.MemProfile(records, false)
		if ok {
			records = records[:n]
			break
		}
		records = make([]runtime.MemProfileRecord, n+1024)
	}
	var counted int64
	for i := range records {
		n := unsampled(&records[i])
		h[ownerOf(records[i].Stack())] += n
		counted += n
	}

	// Make the sum that of all objects, and add what is no object.
	class := memoryClasses()
	objects := class["/memory/classes/heap/objects:bytes"]
	for kind, n := range h {
		h[kind] = int64(float64(n) * float64(objects) / float64(max(counted, 1)))
	}
	h[heldStacks] = class["/memory/classes/heap/stacks:bytes"] + class["/memory/classes/os-stacks:bytes"]
	for name, n := range class {
		if strings.HasPrefix(name, "/memory/classes/metadata/") || strings.HasPrefix(name, "/memory/classes/profiling/") ||
			name == "/memory/classes/other:bytes" {
			h[heldRuntime] += n
		}
	}
	return h
}

// unsampled estimates how many bytes a line of the profile stands for. The profile has an object of s bytes with the
// probability 1-exp(-s/rate).
func unsampled(r *runtime.MemProfileRecord) int64 {
	if r.InUseObjects() == 0 {
		return 0
	}
	size := float64(r.InUseBytes()) / float64(r.InUseObjects())
	return int64(float64(r.InUseBytes()) / (1 - math.Exp(-size/float64(runtime.MemProfileRate))))
}

// Settle counts what is resident and held by nothing else as garbage and free memory. Objects were counted after a
// collection, resident memory was measured before it.
func (h Holders) Settle(resident int64) {
	h[heldGarbage] = 0
	rest := resident
	for _, n := range h {
		rest -= n
	}
	h[heldGarbage] = max(0, rest)
}

// Top names the largest holders.
func (h Holders) Top(n, agents int) string {
	kinds := slices.SortedFunc(maps.Keys(h), func(a, b string) int {
		return cmp.Or(cmp.Compare(h[b], h[a]), strings.Compare(a, b))
	})
	var words []string
	for _, kind := range kinds[:min(n, len(kinds))] {
		words = append(words, fmt.Sprintf("%s (%.1f KB)", kind, float64(h[kind])/float64(agents)/1024))
	}
	return strings.Join(words, "; ")
}

// ownerOf finds the kind of an allocation.
func ownerOf(stack []uintptr) string {
	kind := ""
	frames := runtime.CallersFrames(stack)
	for more := len(stack) > 0; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.HasSuffix(f.Function, ".setPermissions") {
			return heldPerms
		}
		for _, o := range owners {
			if kind == "" && strings.Contains(f.Function, o.part) {
				kind = o.kind
			}
		}
	}
	if kind == "" {
		return heldOther
	}
	return kind
}

func memoryClasses() map[string]int64 {
	var samples []metrics.Sample
	for _, d := range metrics.All() {
		if strings.HasPrefix(d.Name, "/memory/classes/") && d.Kind == metrics.KindUint64 {
			samples = append(samples, metrics.Sample{Name: d.Name})
		}
	}
	metrics.Read(samples)
	classes := make(map[string]int64, len(samples))
	for _, s := range samples {
		classes[s.Name] = int64(s.Value.Uint64())
	}
	return classes
}

// WriteHolding writes what holds memory of this part to a file that appears when it is whole, beside its profiles.
func WriteHolding(path string) error {
	path += ".memory"
	text, err := json.Marshal(holding())
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".part", text, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// ReadHolding reads what WriteHolding wrote.
func ReadHolding(path string) (h Holders, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	return h, err
}
