//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard/bench/sheet"
)

const viewersEach = 10 // streams of one person; the server allows 20

// measureViewers measures the CPU time of the server without a viewer, with one, and with many.
func (f *bigFleet) measureViewers(ctx context.Context, o options, s *sheet.Sheet) error {
	t := s.Table("What viewers cost the server", "measured", "")
	none, _, err := f.watch(ctx, o, 0)
	if err != nil {
		return err
	}
	one, oneBytes, err := f.watch(ctx, o, 1)
	if err != nil {
		return err
	}
	many, _, err := f.watch(ctx, o, o.viewers)
	if err != nil {
		return err
	}

	ms := func(d time.Duration) string {
		return fmt.Sprintf("%.0f ms of CPU a second", float64(d.Microseconds())/1000)
	}
	t.Add("no viewer, "+strconv.Itoa(o.changes)+" changes a second", ms(none), "", "", "")
	t.Add("the first viewer, in addition", ms(one-none), "", "", "")
	t.Add(strconv.Itoa(o.viewers)+" viewers, in addition", ms(many-none), "", "", "")
	t.Add("each of them", fmt.Sprintf("%.2f ms of CPU a second", float64((many-none).Microseconds())/1000/float64(o.viewers)), "", "", "")
	t.Add("bytes to one viewer, without compression", fmt.Sprintf("%.0f KB a second", float64(oneBytes)/1024), "", "", "")
	return nil
}

// watch reads the stream with n viewers for a while. It returns the CPU time of the server a second, and the bytes of one
// viewer a second.
func (f *bigFleet) watch(ctx context.Context, o options, n int) (cpu time.Duration, bytes int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n, DisableCompression: true}}

	var read atomic.Int64
	var wg sync.WaitGroup
	if n > 0 {
		epoch, seq, err := f.snapshotHead(ctx, client)
		if err != nil {
			return 0, 0, err
		}
		path := "/api/v1/live/stream?epoch=" + url.QueryEscape(epoch) + "&after=" + strconv.FormatUint(seq, 10)
		for i := range n {
			answer, err := f.open(ctx, client, path, i/viewersEach)
			if err != nil {
				return 0, 0, err
			}
			wg.Go(func() {
				defer answer.Body.Close()
				buf := make([]byte, 64<<10)
				for {
					n, err := answer.Body.Read(buf)
					read.Add(int64(n))
					if err != nil {
						return
					}
				}
			})
		}
		time.Sleep(o.catchUp) // what the viewers had to catch up is not counted
	}

	before, err := cpuOf(f.server.Process.Pid)
	if err != nil {
		return 0, 0, err
	}
	readBefore := read.Load()
	time.Sleep(o.view) // this is the time over which the CPU time is measured
	after, err := cpuOf(f.server.Process.Pid)
	if err != nil {
		return 0, 0, err
	}
	bytes = int64(float64(read.Load()-readBefore)/o.view.Seconds()) / int64(max(n, 1))
	cancel()
	wg.Wait()
	return time.Duration(float64(after-before) / o.view.Seconds()), bytes, nil
}

// open opens an address as one of several people of the app.
func (f *bigFleet) open(ctx context.Context, client *http.Client, path string, person int) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Bkapi-Authorization", strings.Replace(f.authorization, `"bk_username":"`,
		fmt.Sprintf(`"bk_username":"viewer%d-`, person), 1))
	answer, err := client.Do(r)
	if err == nil && answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		err = fmt.Errorf("%s: %s", path, answer.Status)
	}
	return answer, err
}

// snapshotHead reads the place of a snapshot in the stream.
func (f *bigFleet) snapshotHead(ctx context.Context, client *http.Client) (epoch string, seq uint64, err error) {
	answer, err := f.open(ctx, client, "/api/v1/live/snapshot", 0)
	if err != nil {
		return "", 0, err
	}
	defer answer.Body.Close()

	var fixed [8]byte
	if _, err := io.ReadFull(answer.Body, fixed[:]); err != nil {
		return "", 0, err
	}
	text := make([]byte, binary.LittleEndian.Uint32(fixed[4:]))
	if _, err := io.ReadFull(answer.Body, text); err != nil {
		return "", 0, err
	}
	var head struct {
		Epoch string `json:"epoch"`
		Seq   uint64 `json:"seq"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return "", 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return head.Epoch, head.Seq, err
}
