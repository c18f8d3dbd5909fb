package nats

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/wire"
)

// newsHead is what comes before the reports of a message between servers. The reports follow in the form in which agents
// send them, one after the other.
type newsHead struct {
	gozzard.PeerNews
	Reports []newsReport `json:",omitempty"` // in place of those in PeerNews
	Seeds   []newsReport `json:",omitempty"`

	Commands []newsReport `json:",omitempty"` // after all reports
}

// newsReport says how long a report or a command is.
type newsReport struct {
	Agent gozzard.AgentID
	Cloud int `json:",omitempty"`
	Bytes int
}

// EncodeNews encodes what servers tell each other.
func EncodeNews(n *gozzard.PeerNews) ([]byte, error) {
	head := newsHead{PeerNews: *n}
	head.PeerNews.Reports, head.PeerNews.Seeds, head.PeerNews.Commands = nil, nil, nil
	var body []byte
	add := func(to *[]newsReport, agent gozzard.AgentID, cloud int, r *gozzard.Report) {
		before := len(body)
		body = wire.AppendReport(body, r)
		*to = append(*to, newsReport{Agent: agent, Cloud: cloud, Bytes: len(body) - before})
	}
	for _, r := range n.Reports {
		add(&head.Reports, r.Agent, r.Cloud, r.Report)
	}
	for _, s := range n.Seeds {
		add(&head.Seeds, s.Agent, 0, &gozzard.Report{Version: gozzard.ProtocolVersion, Kind: gozzard.ReportStatus,
			Statuses: []gozzard.Status{s.Status}})
	}

	for _, c := range n.Commands {
		before := len(body)
		body = wire.AppendCommand(body, c.Command)
		head.Commands = append(head.Commands, newsReport{Agent: c.Agent, Cloud: c.Cloud, Bytes: len(body) - before})
	}

	text, err := json.Marshal(&head)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a message to other servers: %w", err)
	}
	out := binary.AppendUvarint(make([]byte, 0, len(text)+len(body)+binary.MaxVarintLen64), uint64(len(text)))
	return append(append(out, text...), body...), nil
}

var errNews = errors.New("a message of another server is cut off or damaged")

// DecodeNews decodes what EncodeNews wrote.
func DecodeNews(b []byte) (*gozzard.PeerNews, error) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, errNews
	}
	var head newsHead
	if err := json.Unmarshal(b[n:n+int(size)], &head); err != nil {
		return nil, fmt.Errorf("a message of another server cannot be read: %w", err)
	}

	body := b[n+int(size):]
	cut := func(r newsReport) ([]byte, error) {
		if r.Bytes < 0 || r.Bytes > len(body) {
			return nil, errNews
		}
		first := body[:r.Bytes]
		body = body[r.Bytes:]
		return first, nil
	}
	next := func(r newsReport) (*gozzard.Report, error) {
		b, err := cut(r)
		if err != nil {
			return nil, err
		}
		return wire.DecodeReport(b)
	}

	out := head.PeerNews
	for _, r := range head.Reports {
		report, err := next(r)
		if err != nil {
			return nil, err
		}
		out.Reports = append(out.Reports, gozzard.PeerReport{Agent: r.Agent, Cloud: r.Cloud, Report: report})
	}
	for _, r := range head.Seeds {
		report, err := next(r)
		if err != nil {
			return nil, err
		}
		for _, s := range report.Statuses {
			out.Seeds = append(out.Seeds, gozzard.PeerSeed{Agent: r.Agent, Status: s})
		}
	}
	for _, c := range head.Commands {
		b, err := cut(c)
		if err != nil {
			return nil, err
		}
		cmd, err := wire.DecodeCommand(b)
		if err != nil {
			return nil, err
		}
		out.Commands = append(out.Commands, gozzard.PeerCommand{Agent: c.Agent, Cloud: c.Cloud, Command: cmd})
	}
	return &out, nil
}
