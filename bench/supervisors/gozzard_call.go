//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// settled runs an operation and reports whether all verdicts are good.
func (p *gozzardPeer) settled(ctx context.Context, op int, items []map[string]any) (bool, error) {
	task, err := p.operate(ctx, op, items)
	if err != nil {
		return false, err
	}
	return p.verdicts(ctx, task)
}

// verdicts waits for all verdicts of a task and reports whether they are good.
func (p *gozzardPeer) verdicts(ctx context.Context, task string) (bool, error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		data, err := p.call(ctx, "get_proc_operate_result", map[string]any{"task_id": task})
		if err != nil {
			return false, err
		}
		var verdicts map[string]struct {
			Code int `json:"error_code"`
		}
		if err := json.Unmarshal(data, &verdicts); err != nil {
			return false, fmt.Errorf("cannot read verdicts: %w", err)
		}
		open, bad := 0, 0
		for _, v := range verdicts {
			switch v.Code {
			case 0:
			case 115:
				open++
			default:
				bad++
			}
		}
		if open == 0 {
			return bad == 0, nil
		}
	}
	return false, errors.New("no verdict within a minute")
}

func (p *gozzardPeer) operate(ctx context.Context, op int, items []map[string]any) (task string, err error) {
	for _, it := range items {
		it["op_type"] = op
	}
	data, err := p.call(ctx, "operate_proc_multi", map[string]any{"proc_operate_req": items})
	if err != nil {
		return "", err
	}
	var t struct {
		ID string `json:"task_id"`
	}
	err = json.Unmarshal(data, &t)
	return t.ID, err
}

// call calls the API.
func (p *gozzardPeer) call(ctx context.Context, name string, body any) (json.RawMessage, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/api/c/compapi/v2/gse/"+name+"/",
		bytes.NewReader(b))
	if err != nil {
		return nil, err
	}

	req.Header.Set("X-Bkapi-Authorization", p.auth)
	res, err := p.http.Do(req)
	if err != nil {
		return nil, err
	}

	text, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return nil, err
	}

	var envelope struct {
		Result bool
		Data   json.RawMessage
	}
	if err := json.Unmarshal(text, &envelope); err != nil || !envelope.Result {
		return nil, fmt.Errorf("%s: HTTP %d %.300s", name, res.StatusCode, text)
	}

	return envelope.Data, nil
}
