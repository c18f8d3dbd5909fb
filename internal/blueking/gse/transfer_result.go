package gse

import (
	"context"
	"path"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/taskname"
)

// modeDownload is the mode of a row about a target. Rows about sources do not exist: a source is read before there is a task.
const modeDownload = 1

// fileRow is the result of one file on one target.
type fileRow struct {
	ErrorCode int         `json:"error_code"`
	ErrorMsg  string      `json:"error_msg"`
	Content   fileContent `json:"content"`
}

type fileContent struct {
	DestAgent       string `json:"dest_agent_id"`
	DestContainer   string `json:"dest_container_id"`
	DestDir         string `json:"dest_file_dir"`
	DestName        string `json:"dest_file_name"`
	Mode            int    `json:"mode"`
	Progress        int    `json:"progress"` // percent
	SourceAgent     string `json:"source_agent_id"`
	SourceContainer string `json:"source_container_id"`
	SourceDir       string `json:"source_file_dir"`
	SourceName      string `json:"source_file_name"`
	Speed           int    `json:"speed"`
	Status          int    `json:"status"`
	StatusInfo      string `json:"status_info"`
	Type            string `json:"type"`
	StartTime       int64  `json:"start_time"` // milliseconds
	EndTime         int64  `json:"end_time"`
	Size            int64  `json:"size"`
}

// transferResult is get_transfer_file_result.
func (s *server) transferResult(ctx context.Context, c *blueking.Call) (any, error) {
	id := c.Body.Get("task_id")
	task := taskname.Parse(id.Str())
	wanted := readWantedAgents(c.Body.Get("agents"))
	if err := c.Faults.Err(); err != nil {
		return nil, err
	}
	res, err := s.taskOf(ctx, c, task)
	if err != nil {
		return nil, err
	}
	if res.Task.Door != doorTransfer {
		return nil, gozzard.Errorf(gozzard.ErrNotFound, "no such task")
	}

	rows, specs := []fileRow{}, map[string]*gozzard.FileSpec{}
	for i := range res.Attempts {
		a := &res.Attempts[i]
		if wanted != nil && !wanted[a.ResultKey] {
			continue
		}
		row := newFileRow(c.Words, a, fileOf(a, specs))
		row.Content.StartTime = res.Task.At.UnixMilli()
		rows = append(rows, row)
	}
	return struct {
		Version string    `json:"version"`
		Result  []fileRow `json:"result"`
	}{"V2", rows}, nil
}

// readWantedAgents reads the hosts that a poll asks for; nil means all.
func readWantedAgents(list strictjson.Value) map[string]bool {
	if list.Len() == 0 {
		list.OptList(maxTransferHosts, func(*strictjson.Value) {})
		return nil
	}
	out := map[string]bool{}
	list.OptList(maxTransferHosts, func(e *strictjson.Value) {
		if e.Object() {
			id := e.Get("bk_agent_id")
			agent := readAgent(&id)
			out[agent.name(formV2)] = true
		}
	})
	return out
}

// fileOf is the description of the file of an attempt. Attempts on many hosts share it, with its content, so it is read once.
func fileOf(a *gozzard.Attempt, known map[string]*gozzard.FileSpec) *gozzard.FileSpec {
	if file, ok := known[string(a.Spec)]; ok {
		return file
	}
	file := &gozzard.FileSpec{}
	if len(a.Spec) == 0 { // it was refused: its name says the path
		file.Path, _ = strings.CutPrefix(a.Key.Name, "file:")
		return file
	}
	if spec, err := gozzard.DecodeSpec(a.Spec); err == nil && spec.File != nil {
		file = spec.File
	}
	known[string(a.Spec)] = file
	return file
}

// newFileRow is the row of an attempt.
func newFileRow(words blueking.Words, a *gozzard.Attempt, file *gozzard.FileSpec) fileRow {
	number, text := words.Verdict(a, a.Key.Name)
	row := fileRow{ErrorCode: number, ErrorMsg: text, Content: fileContent{
		DestAgent: a.ResultKey, DestDir: path.Dir(file.Path), DestName: path.Base(file.Path), Mode: modeDownload,
		Status: number, StatusInfo: text, Type: "download", Size: file.Size,
	}}
	if number == blueking.EntryOK {
		row.Content.Progress = 100
	}
	if s := file.Source; s != nil {
		row.Content.SourceAgent = s.Host
		row.Content.SourceDir, row.Content.SourceName = path.Dir(s.Path), path.Base(s.Path)
	}
	return row
}
