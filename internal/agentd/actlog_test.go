package agentd

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/internal/signing"
)

// actRig is an act log with a clock that a test sets, and a server that signs.
type actRig struct {
	t    *testing.T
	log  *actLog
	dir  string
	now  time.Time
	key  signing.Key
	sign *signing.Signer
	task gozzard.TaskSeq
}

func newActRig(t *testing.T) *actRig {
	t.Helper()
	r := &actRig{t: t, dir: t.TempDir(), now: time.Unix(1_800_000_000, 0)}
	var err error
	if r.sign, err = signing.OpenSigner(t.TempDir(), time.Now); err != nil {
		t.Fatal(err)
	}
	r.key = r.sign.Key()
	if r.log, err = openActLog(r.dir, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	r.log.now = func() time.Time { return r.now }
	return r
}

// operate hands over a command with an operation for each namespace, and the outcome of each.
func (r *actRig) operate(command string, namespaces ...string) {
	r.t.Helper()
	cmd := &gozzard.Command{Kind: gozzard.CommandOperate}
	payload := ""
	for _, space := range namespaces {
		r.task++
		spec := &gozzard.Spec{Control: gozzard.Control{Start: command}}
		cmd.Ops = append(cmd.Ops, gozzard.Op{ID: gozzard.NewOpID(), Ref: gozzard.AttemptRef{Task: r.task},
			Action: gozzard.ActionStart, Key: gozzard.Key{Namespace: space, Name: "p"}, Spec: gozzard.EncodeSpec(spec)})
		payload += command
	}

	b := r.sign.Begin(nil, "a", gozzard.CommandOperate, func(b []byte) []byte { return append(b, payload...) })
	if err := r.sign.Sign([]*[]byte{&b}); err != nil {
		r.t.Fatal(err)
	}
	r.log.opened(b, r.key.ID())
	r.log.received(cmd)
	for i := range cmd.Ops {
		op := &cmd.Ops[i]
		r.log.acted(agent.Act{Op: op.ID, Ref: op.Ref, Action: op.Action, Key: op.Key,
			Outcome: gozzard.Outcome{Code: gozzard.CodeOK, Message: strings.Repeat("m", 2000)}})
	}
}

// actRow is any row of the act log.
type actRow struct {
	Kind, Namespace string
	Ops             []string
	Envelope        []byte
	Proof           *struct {
		Digest           string
		Steps, Signature []byte
	}
	Contents  []struct{ Namespace, Command string }
	FoldedOps int `json:"folded_ops"`
	Received  int
	Ran       int
	FirstTask gozzard.TaskSeq `json:"first_task"`
	LastTask  gozzard.TaskSeq `json:"last_task"`
}

// rows closes the log and reads it.
func (r *actRig) rows() (list []actRow, size int) {
	r.t.Helper()
	r.log.close()
	for _, name := range []string{"acts.log.1", "acts.log"} {
		b, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil && !os.IsNotExist(err) {
			r.t.Fatal(err)
		}
		size += len(b)
		for raw := range bytes.Lines(b) {
			var row actRow
			if err := json.Unmarshal(raw, &row); err != nil {
				r.t.Fatalf("%v in %.300s", err, raw)
			}
			list = append(list, row)
		}
	}
	return list, size
}

// TestTR14OneNamespaceCannotFlush: a namespace floods the act log for an hour. The rows of another one stay, those that
// come between are complete, and every row of the flood is counted.
func TestTR14OneNamespaceCannotFlush(t *testing.T) {
	for length, perMinute := range map[int]int{20: 50, 16 << 10: 20} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			t.Parallel()
			r := newActRig(t)
			r.operate("bank first", "bank")
			flood := 0
			for minute := range 60 {
				for range perMinute {
					r.operate(strings.Repeat("\x01", length), "shop", "shop")
					flood += 2
				}
				if minute%10 == 5 {
					r.operate("bank again", "bank")
				}
				r.now = r.now.Add(time.Minute)
			}

			rows, size := r.rows()
			if most := actsShare + 60*actsRefill + 1<<20; size > most {
				t.Errorf("the file has %d bytes, more than %d", size, most)
			}
			bank, received, ran, folded := 0, 0, 0, 0
			var last gozzard.TaskSeq
			for _, row := range rows {
				switch {
				case row.Kind == "told" && bytes.Contains(row.Envelope, []byte("bank ")):
					bank++
				case row.Kind == "told":
					received += len(row.Ops)
				case row.Kind == "ran" && row.Namespace == "shop":
					ran++
				case row.Kind == "folded":
					folded++
					received, ran = received+row.Received, ran+row.Ran
					if row.Namespace != "shop" || row.FirstTask > row.LastTask || row.LastTask < last {
						t.Errorf("folded: %+v", row)
					}
					last = row.LastTask
				}
			}
			if folded == 0 {
				t.Error("nothing was folded: the flood is within the share of its namespace")
			}
			if bank != 7 || received != flood || ran != flood {
				t.Errorf("%d commands of the other namespace of 7; of %d operations %d are received and %d ran", bank, flood,
					received, ran)
			}
		})
	}
}

// TestTR14MixedAndLarge: a large command has the proof of its digest and the beginning of its text, and a command with
// operations of two namespaces keeps those of the namespace that is within its share.
func TestTR14MixedAndLarge(t *testing.T) {
	r := newActRig(t)
	r.operate(strings.Repeat("x", 16<<10), "shop")
	r.log.shares.of("shop", r.now).left = 0
	r.operate("mixed", "shop", "bank")
	rows, _ := r.rows()

	// The large one.
	first := rows[0]
	if len(first.Envelope) > 0 || first.Proof == nil || len(first.Contents) != 1 ||
		!strings.HasSuffix(first.Contents[0].Command, "… (16384 bytes)") || len(first.Contents[0].Command) > actsCommand+64 {
		t.Fatalf("a large command: %+.300v", first)
	}
	proof := signing.Proof{Steps: first.Proof.Steps, Signature: first.Proof.Signature}
	if _, err := hex.Decode(proof.Digest[:], []byte(first.Proof.Digest)); err != nil || !proof.SignedBy(r.key) {
		t.Error("the digest of the large command is not proven")
	}
	if proof.Digest[0]++; proof.SignedBy(r.key) {
		t.Error("another digest is proven, too")
	}

	// The mixed one.
	for _, row := range rows {
		if row.FoldedOps > 0 {
			if row.FoldedOps != 1 || len(row.Contents) != 1 || row.Contents[0].Namespace != "bank" ||
				row.Contents[0].Command != "mixed" {
				t.Errorf("a mixed command: %+v", row)
			}
			return
		}
	}
	t.Error("the mixed command is not in the log")
}

// TestTR14ManyNamespaces: all namespaces together cannot fill more than half of the log at once.
func TestTR14ManyNamespaces(t *testing.T) {
	r := newActRig(t)
	for i := range 100 {
		for range 260 {
			r.operate("x", fmt.Sprint("n", i))
		}
	}
	if _, size := r.rows(); size > actsBytes/2 {
		t.Errorf("the file has %d bytes", size)
	}
	if n := len(r.log.shares.all); n > actsNamespaces+1 {
		t.Errorf("%d shares are in memory", n)
	}

	r.now = r.now.Add(time.Hour)
	r.log.shares.of("late", r.now)
	if n := len(r.log.shares.all); n != 1 {
		t.Errorf("%d shares are in memory after an hour", n)
	}
}
