package signing_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/internal/wire"
	"github.com/gozzard/gozzard/test/fuzztest"
)

var start = time.Unix(1_800_000_000, 0)

func now() time.Time { return start }

func signer(t testing.TB, dir string) *signing.Signer {
	t.Helper()
	s, err := signing.OpenSigner(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ring opens a state folder and trusts a key, unless it is the zero Key.
func ring(t testing.TB, dir string, k signing.Key) *signing.KeyRing {
	t.Helper()
	r, err := signing.OpenKeyRing(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	if k.Epoch > 0 {
		if err := r.Trust(k); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func command() []byte {
	spec := gozzard.EncodeSpec(&gozzard.Spec{Identity: gozzard.Identity{ProcName: "web"},
		Control: gozzard.Control{Start: "./start.sh", Stop: "./stop.sh"}})
	return wire.AppendCommand(nil, &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandOperate,
		Session: 7, Ops: []gozzard.Op{
			{ID: gozzard.NewOpID(), Gen: 3, Action: gozzard.ActionStart,
				Key: gozzard.Key{Namespace: "shop", Name: "web"}, Spec: spec},
		}})
}

func sealed(s *signing.Signer, to gozzard.AgentID, kind gozzard.CommandKind, payload []byte) []byte {
	return s.Append(nil, to, kind, func(b []byte) []byte { return append(b, payload...) })
}

// rule is why something was rejected, "" if it was not.
func rule(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var r *signing.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("not a refusal: %v", err)
	}
	return r.Rule
}

func wants(t testing.TB, r *signing.KeyRing, me gozzard.AgentID, b []byte, want string) {
	t.Helper()
	payload, err := r.Open(me, b)
	if got := rule(t, err); got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
	if err != nil && payload != nil {
		t.Error("a refused envelope gave something")
	}
}

func TestWhatIsSealedIsOpened(t *testing.T) {
	s := signer(t, t.TempDir())
	r := ring(t, t.TempDir(), s.Key())
	for _, payload := range [][]byte{nil, {0}, command(), bytes.Repeat([]byte("x"), 1<<20)} {
		b := s.Append([]byte("before"), "agent-1", gozzard.CommandWelcome,
			func(b []byte) []byte { return append(b, payload...) })
		got, err := r.Open("agent-1", bytes.TrimPrefix(b, []byte("before")))
		if err != nil || !bytes.Equal(got, payload) {
			t.Errorf("%d bytes: got %d bytes, %v", len(payload), len(got), err)
		}
	}
}

// TestTT1EveryBitCounts flips every bit, cuts at every byte and appends: nothing but the envelope itself is opened.
func TestTT1EveryBitCounts(t *testing.T) {
	dir := t.TempDir()
	if _, err := signing.OpenSigner(dir, now); err != nil {
		t.Fatal(err)
	}

	first := signer(t, dir).Key()

	if _, _, err := signing.Rotate(dir, now); err != nil {
		t.Fatal(err)
	}

	s := signer(t, dir)
	short := wire.AppendCommand(nil, &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandWelcome,
		Session: 7})
	for name, c := range map[string]struct {
		kind    gozzard.CommandKind
		key     signing.Key
		payload []byte
	}{
		"plain":                               {gozzard.CommandOperate, s.Key(), command()},
		"with a hand-over that is not needed": {gozzard.CommandWelcome, s.Key(), short},
		"with a hand-over":                    {gozzard.CommandWelcome, first, short},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			r := ring(t, state, c.key)
			whole := sealed(s, "agent-1", c.kind, c.payload)
			accepted := 0
			try := func(b []byte) {
				if _, err := r.Open("agent-1", b); rule(t, err) == "" {
					accepted++
				}
			}

			for i := range whole {
				for bit := range 8 {
					b := slices.Clone(whole)
					b[i] ^= 1 << bit
					try(b)
				}
				try(whole[:i])
				try(slices.Insert(slices.Clone(whole), i, 0))
				try(slices.Delete(slices.Clone(whole), i, i+1))
			}

			try(append(slices.Clone(whole), 0))
			try(append(slices.Clone(whole), whole...))

			if accepted != 0 {
				t.Errorf("%d of %d altered envelopes were accepted", accepted, len(whole)*11+2)
			}
			if r.Key() != c.key {
				t.Error("an altered envelope changed the trusted key")
			}

			wants(t, r, "agent-1", whole, "")
		})
	}
}

func TestRefusals(t *testing.T) {
	s, other := signer(t, t.TempDir()), signer(t, t.TempDir())
	r := ring(t, t.TempDir(), s.Key())
	good := sealed(s, "agent-1", gozzard.CommandAck, command())
	wants(t, r, "agent-1", good, "")
	wants(t, r, "agent-2", good, signing.RuleAgent)
	wants(t, r, "agent-1", sealed(s, "agent-10", gozzard.CommandAck, command()), signing.RuleAgent)
	wants(t, r, "agent-1", sealed(s, "", gozzard.CommandAck, command()), signing.RuleAgent)
	wants(t, r, "agent-1", sealed(other, "agent-1", gozzard.CommandAck, command()), signing.RuleKey)
	wants(t, r, "agent-1", command(), signing.RuleForm)
	wants(t, r, "agent-1", nil, signing.RuleForm)
	forged := slices.Clone(good) // the right key's name on another key's signature
	copy(forged[len(forged)-64:], sealed(other, "agent-1", gozzard.CommandAck, command())[len(good)-64:])
	wants(t, r, "agent-1", forged, signing.RuleSignature)
	wants(t, ring(t, t.TempDir(), signing.Key{}), "agent-1", good, signing.RuleKey)
}

// Clocks of hosts can be wrong by days (A17); only very old envelopes are rejected.
func TestExpiry(t *testing.T) {
	s := signer(t, t.TempDir())
	state := t.TempDir()
	ring(t, state, s.Key())
	b := sealed(s, "agent-1", gozzard.CommandOperate, command())
	for by, want := range map[time.Duration]string{
		0: "", 24 * time.Hour: "", -24 * time.Hour: "", -50 * 365 * 24 * time.Hour: "", signing.Life: "",
		signing.Life + time.Second: signing.RuleExpired,
	} {
		r, err := signing.OpenKeyRing(state, func() time.Time { return start.Add(by) })
		if err != nil {
			t.Fatal(err)
		}
		wants(t, r, "agent-1", b, want)
	}
}

// TestTS8: after an agent has obeyed a newer key, neither the old key nor a copy of the old data folder can command it,
// even after a restart of the agent.
func TestTS8AnOldServerIsRefused(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	old := signer(t, dir)
	r := ring(t, state, old.Key())
	before := sealed(old, "agent-1", gozzard.CommandWelcome, command())
	wants(t, r, "agent-1", before, "")
	was, next, err := signing.Rotate(dir, now)
	if err != nil || was != old.Key() || next.Epoch != 2 {
		t.Fatalf("got %v to %v, %v", was, next, err)
	}

	s := signer(t, dir)
	if s.Key() != next || len(s.History()) != 2 {
		t.Fatalf("the server signs with %v of %v", s.Key(), s.History())
	}

	wants(t, r, "agent-1", before, "") // it does not know the new key yet
	wants(t, r, "agent-1", sealed(s, "agent-1", gozzard.CommandOperate, command()), signing.RuleKey)
	wants(t, r, "agent-1", sealed(s, "agent-1", gozzard.CommandWelcome, command()), "")

	for range 2 {
		if r.Key() != next {
			t.Fatalf("trusts %v", r.Key())
		}
		wants(t, r, "agent-1", before, signing.RuleEpoch)
		wants(t, r, "agent-1", sealed(old, "agent-1", gozzard.CommandWelcome, command()), signing.RuleEpoch)
		wants(t, r, "agent-1", sealed(s, "agent-1", gozzard.CommandOperate, command()), "")
		if err := r.Trust(old.Key()); err == nil || !strings.Contains(err.Error(),
			"remove "+filepath.Join(state, signing.RingFile)) {
			t.Errorf("went back: %v", err)
		}
		r = ring(t, state, signing.Key{}) // the agent starts again
	}
}

// A thief of the old key can no longer introduce a key, and no key can introduce itself.
func TestTS8ForgedHandOvers(t *testing.T) {
	dir, stolen, state := t.TempDir(), t.TempDir(), t.TempDir()
	first := signer(t, dir).Key()
	copyFile(t, filepath.Join(dir, signing.SignerFile), filepath.Join(stolen, signing.SignerFile))
	rotate(t, dir, 1)
	s := signer(t, dir)
	r := ring(t, state, first)
	wants(t, r, "agent-1", sealed(s, "agent-1", gozzard.CommandWelcome, nil), "")
	rotate(t, stolen, 1) // the same epoch
	wants(t, r, "agent-1", sealed(signer(t, stolen), "agent-1", gozzard.CommandWelcome, nil), signing.RuleKey)
	rotate(t, stolen, 3) // newer epochs
	wants(t, r, "agent-1", sealed(signer(t, stolen), "agent-1", gozzard.CommandWelcome, nil), signing.RuleKey)
	stranger := t.TempDir()
	signer(t, stranger)
	rotate(t, stranger, 4)
	wants(t, r, "agent-1", sealed(signer(t, stranger), "agent-1", gozzard.CommandWelcome, nil), signing.RuleKey)

	if err := r.Trust(signer(t, stolen).Key()); err != nil {
		t.Errorf("the operator of the host cannot name a newer key: %v", err)
	}
	if r.Key() == s.Key() {
		t.Error("the named key is not trusted")
	}
}

// An agent that was offline follows all rotations that fit into an envelope.
func TestRotations(t *testing.T) {
	dir := t.TempDir()
	keys := []signing.Key{signer(t, dir).Key()}
	rings := []*signing.KeyRing{ring(t, t.TempDir(), keys[0])}
	for i := range 20 {
		rotate(t, dir, 1)
		s := signer(t, dir)
		keys = append(keys, s.Key())
		rings = append(rings, ring(t, t.TempDir(), s.Key()))
		if int(s.Key().Epoch) != i+2 {
			t.Fatalf("rotation %d: epoch %d", i+1, s.Key().Epoch)
		}
	}

	s := signer(t, dir)
	welcome := sealed(s, "agent-1", gozzard.CommandWelcome, nil)
	for i, r := range rings {
		want := ""
		if missed := len(keys) - 1 - i; missed > 16 {
			want = signing.RuleKey
		}
		wants(t, r, "agent-1", welcome, want)
	}

	made, err := signing.Keys(dir)
	if err != nil || len(made) != 17 || made[16].Key != s.Key() || !made[0].At.Equal(start) {
		t.Errorf("got %v, %v", made, err)
	}
}

func rotate(t testing.TB, dir string, times int) {
	t.Helper()
	for range times {
		if _, _, err := signing.Rotate(dir, now); err != nil {
			t.Fatal(err)
		}
	}
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestKeyText(t *testing.T) {
	k := signer(t, t.TempDir()).Key()
	got, err := signing.ParseKey(k.String())
	if err != nil || got != k {
		t.Errorf("got %v, %v", got, err)
	}

	for _, s := range []string{
		"", "gzk1", "gzk1.1", "gzk1..", k.String() + "x", k.String()[1:], " " + k.String(),
		strings.Replace(k.String(), "gzk1.1.", "gzk1.0.", 1),
		strings.Replace(k.String(), "gzk1.1.", "gzk1.01.", 1),
		strings.Replace(k.String(), "gzk1.1.", "gzk1.18446744073709551615.", 1),
		strings.Replace(k.String(), "gzk1.1.", "gzk1.-1.", 1), strings.Replace(k.String(), "gzk1", "gzk2", 1),
		k.String()[:len(k.String())-1],
	} {
		if k, err := signing.ParseKey(s); err == nil {
			t.Errorf("%q is taken as %v", s, k)
		}
	}
}

// Servers and rotations that run at the same time lose no key.
func TestAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	keys := make([]signing.Key, 8)
	for i := range keys {
		wg.Go(func() {
			s, err := signing.OpenSigner(dir, now)
			if err != nil {
				t.Error(err)
				return
			}
			keys[i] = s.Key()
		})
	}

	wg.Wait()

	for _, k := range keys {
		if k != keys[0] || k.Epoch != 1 {
			t.Errorf("got keys %v and %v", k, keys[0])
		}
	}

	var mu sync.Mutex
	done := 0
	for range 8 {
		wg.Go(func() {
			if _, _, err := signing.Rotate(dir, now); err == nil {
				mu.Lock()
				done++
				mu.Unlock()
			} else if !strings.Contains(err.Error(), "another command is changing it") {
				t.Error(err)
			}
		})
	}

	wg.Wait()

	if got := signer(t, dir).Key().Epoch; int(got) != 1+done || done == 0 {
		t.Errorf("%d rotations worked, epoch is %d", done, got)
	}

	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestFilesAreForTheirOwnerOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no modes on this system")
	}

	dir, state := t.TempDir(), t.TempDir()
	s := signer(t, dir)
	ring(t, state, s.Key())
	rotate(t, dir, 1)

	for _, path := range []string{filepath.Join(dir, signing.SignerFile), filepath.Join(state, signing.RingFile)} {
		st, err := os.Stat(path)
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", path, st.Mode(), err)
		}
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
	}

	_, errSigner := signing.OpenSigner(dir, now)
	_, _, errRotate := signing.Rotate(dir, now)
	_, errRing := signing.OpenKeyRing(state, now)
	for _, err := range []error{errSigner, errRotate, errRing} {
		if err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("open to others: %v", err)
		}
	}
}

func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	signer(t, dir)
	rotate(t, dir, 2)
	path := filepath.Join(dir, signing.SignerFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	strange := t.TempDir()
	signer(t, strange)
	rotate(t, strange, 2)
	other, err := os.ReadFile(filepath.Join(strange, signing.SignerFile))
	if err != nil {
		t.Fatal(err)
	}

	seed := func(b []byte) []byte { return b[bytes.Index(b, []byte(`"seed"`)):] }
	for name, text := range map[string][]byte{
		"empty": nil, "half": whole[:len(whole)/2], "another secret": append(bytes.TrimSuffix(slices.Clone(whole),
			seed(whole)), seed(other)...),
		"newer version":  bytes.Replace(whole, []byte(`"version": 1`), []byte(`"version": 2`), 1),
		"no keys":        []byte(`{"version":1,"keys":[],"seed":""}`),
		"a gap":          bytes.Replace(whole, []byte("gzk1.2."), []byte("gzk1.9."), 1),
		"an odd word":    bytes.Replace(whole, []byte(`"version"`), []byte(`"x": 1, "version"`), 1),
		"no hand-over":   bytes.Replace(whole, []byte(`"hand_over"`), []byte(`"key"`), 1),
		"strange oldest": bytes.Replace(whole, line(whole, "gzk1.1."), line(other, "gzk1.1."), 1),
	} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := signing.OpenSigner(dir, now); err == nil {
			t.Errorf("%s: it was opened", name)
		}
		if _, _, err := signing.Rotate(dir, now); err == nil {
			t.Errorf("%s: it was rotated", name)
		}
		if left, _ := os.ReadFile(path); !bytes.Equal(left, text) {
			t.Errorf("%s: it was changed", name)
		}
	}

	state := t.TempDir()
	if err := os.WriteFile(filepath.Join(state, signing.RingFile), []byte("gzk1.1.x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := signing.OpenKeyRing(state, now); err == nil {
		t.Error("a damaged trusted key was taken")
	}
}

// line is the line that contains a word.
func line(b []byte, word string) []byte {
	for l := range bytes.Lines(b) {
		if bytes.Contains(l, []byte(word)) {
			return l
		}
	}
	return nil
}

func TestAKeyThatCannotBeKeptIsNotBelieved(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}

	r := ring(t, state, signer(t, dir).Key())
	rotate(t, dir, 1)
	welcome := sealed(signer(t, dir), "agent-1", gozzard.CommandWelcome, nil)

	if err := os.Rename(state, state+"-away"); err != nil {
		t.Fatal(err)
	}

	wants(t, r, "agent-1", welcome, signing.RuleKeep)

	if r.Key().Epoch != 1 {
		t.Error("trusts what is not on the disk")
	}
	if err := os.Rename(state+"-away", state); err != nil {
		t.Fatal(err)
	}

	wants(t, r, "agent-1", welcome, "")
}

func FuzzOpen(f *testing.F) {
	z := fuzztest.New(f)
	dir := f.TempDir()
	first := signer(f, dir).Key()
	rotate(f, dir, 2)
	s := signer(f, dir)
	r := ring(f, f.TempDir(), first)
	good := [][]byte{sealed(s, "agent-1", gozzard.CommandWelcome, command())}
	good = append(good, sealed(s, "agent-1", gozzard.CommandOperate, command()))
	for _, b := range good {
		z.Add(b)
	}

	z.Add([]byte("GZS1"))

	z.Fuzz(func(t *testing.T, b []byte) {
		_, err := r.Open("agent-1", b)
		known := slices.ContainsFunc(good, func(g []byte) bool { return bytes.Equal(g, b) })
		if rule(t, err) == "" && !known {
			t.Errorf("opened %x", b)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	s := signer(b, b.TempDir())
	for name, payload := range map[string][]byte{"ack": make([]byte, 16), "operation": command(),
		"64KiB": make([]byte, 64<<10)} {
		b.Run(name, func(b *testing.B) {
			buf := make([]byte, 0, 128<<10)
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				buf = s.Append(buf[:0], "0123456789abcdef0123456789abcdef", gozzard.CommandOperate,
					func(b []byte) []byte { return append(b, payload...) })
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	s := signer(b, b.TempDir())
	r := ring(b, b.TempDir(), s.Key())
	for name, payload := range map[string][]byte{"ack": make([]byte, 16), "operation": command(),
		"64KiB": make([]byte, 64<<10)} {
		b.Run(name, func(b *testing.B) {
			msg := sealed(s, "0123456789abcdef0123456789abcdef", gozzard.CommandOperate, payload)
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Open("0123456789abcdef0123456789abcdef", msg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
