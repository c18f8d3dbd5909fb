package client_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// liveBytes is a snapshot with one row.
func liveBytes(t testing.TB) []byte {
	t.Helper()
	header, err := json.Marshal(client.LiveHeader{Epoch: "e", Rows: 1, States: []string{"", "running"},
		Hosts: client.LiveHosts{Agent: []string{"a"}, IP: []string{"10.0.0.1"}, Cloud: []int{0}, Online: []int{1}},
		Names: client.LiveNames{Space: []string{"s"}, Name: []string{"n"}}, Places: []client.LivePlace{{0, "", "", ""}}})
	if err != nil {
		t.Fatal(err)
	}
	for len(header)%8 != 0 {
		header = append(header, ' ')
	}
	out := binary.LittleEndian.AppendUint32([]byte(client.LiveMagic), uint32(len(header)))
	out = append(append(out, header...), make([]byte, 11*8)...)
	out[len(out)-16] = 1 // its state
	return out
}

// FuzzLive reads a snapshot and a batch of any bytes. What is accepted refers only to what is there.
func FuzzLive(f *testing.F) {
	z := fuzztest.New(f)
	rows := binary.LittleEndian.AppendUint32(nil, 1)
	rows = append(rows, make([]byte, 12+8)...)
	z.Add(liveBytes(f), []byte(`{"seq":1,"names":{"space":["s"],"name":["m"]}}`), rows)
	z.Add([]byte("GZL1\x08\x00\x00\x00{}      "), []byte(`{"seq":1,"online":[[0,1]]}`), []byte{})
	z.Fuzz(func(t *testing.T, snapshot, batch, rows []byte) {
		table, err := client.ParseLiveSnapshot(snapshot)
		if err != nil {
			return
		}
		var b client.LiveBatch
		if json.Unmarshal(batch, &b) != nil {
			return
		}
		b.Rows = rows
		_ = table.Apply(&b) // a bad batch is an error
		for _, r := range table.Rows {
			_ = table.Hosts.Agent[r.Host] + table.Names.Name[r.Name] + table.States[r.State]
			_ = table.Places[r.Place]
		}
	})
}

// TestLiveTable: a snapshot and a batch that does not follow.
func TestLiveTable(t *testing.T) {
	table, err := client.ParseLiveSnapshot(liveBytes(t))
	if err != nil || len(table.Rows) != 1 || table.States[table.Rows[0].State] != "running" {
		t.Fatalf("%+v, %v", table, err)
	}
	if err := table.Apply(&client.LiveBatch{Seq: 7}); err == nil {
		t.Error("batch 7 follows 0")
	}
	for n := range liveBytes(t) {
		if _, err := client.ParseLiveSnapshot(liveBytes(t)[:n]); err == nil {
			t.Errorf("%d bytes are a snapshot", n)
		}
	}
}

// TestFollowLive: the iteration has what changes, and not the events that only show that the connection is open.
func TestFollowLive(t *testing.T) {
	const stream = ": \n\nevent: beat\ndata: {}\n\nevent: changes\nid: 1\ndata: {\"seq\":1}\n\n" +
		"event: later\ndata: {}\n\nevent: tasks\ndata: [{\"id\":\"7\"}]\n\nevent: resnapshot\ndata: {\"reason\":\"gap\"}\n\n"
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, stream) }))
	defer web.Close()
	c, err := client.New(web.URL, client.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	table, err := client.ParseLiveSnapshot(liveBytes(t))
	if err != nil {
		t.Fatal(err)
	}

	var events []client.LiveEvent
	for e, err := range c.FollowLive(t.Context(), table) {
		if err != nil {
			if !errors.Is(err, client.ErrResnapshot) {
				t.Error(err)
			}
			break
		}
		events = append(events, e)
	}
	if len(events) != 2 || events[0].Batch == nil || len(events[1].Tasks) != 1 || table.Seq != 1 {
		t.Errorf("%+v, up to batch %d", events, table.Seq)
	}
}
