package gsekit

import (
	"context"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/topology"
)

// The states of a file of a process instance.
const (
	fileGenerated    = "generated"
	fileNotGenerated = "not_generated"
	fileNotLatest    = "not_latest"
)

// timeISO is how the calls about rendered files write times.
func timeISO() clock { return clock{"2006-01-02T15:04:05.000000Z", time.UTC} }

// configFiles is the answer of list_config_instances: an array of processes with one file each.
type configFiles struct {
	columns []column
	list    []record.ConfigPlaced
	release bool // show the released file, not the newest
}

// MarshalJSON writes the rows as process_status does.
func (p configFiles) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i := range p.list {
		if i > 0 {
			b = append(b, ',')
		}
		b = p.appendFile(append(b, '{'), &p.list[i])
		for _, c := range p.columns {
			b = c.append(append(append(b, ','), c.key...), p.list[i].Row)
		}
		b = append(b, '}')
	}
	return append(b, ']'), nil
}

func (p configFiles) appendFile(b []byte, x *record.ConfigPlaced) []byte {
	shown, status := x.Latest, fileGenerated
	if p.release {
		shown = x.Released
	}
	switch {
	case shown == nil:
		status = fileNotGenerated
	case shown.Version != x.Active:
		status = fileNotLatest
	}

	b = append(append(append(b, `"status":"`...), status...), '"')
	b = strconv.AppendInt(append(b, `,"config_template":{"config_template_id":`...), x.Template.ID, 10)
	b = strictjson.AppendString(append(b, `,"template_name":`...), x.Template.Name)
	b = strictjson.AppendString(append(b, `,"file_name":`...), x.Template.FileName)
	b = strconv.AppendInt(append(b, `},"inst_id":`...), int64(x.Inst.Inst), 10)
	if shown == nil {
		return append(b, `,"created_at":"-","config_version_id":"-"`...)
	}
	b = strictjson.AppendString(append(b, `,"created_at":`...), *timeISO().show(shown.Created))
	b = strconv.AppendInt(append(b, `,"config_version_id":`...), shown.Version, 10)
	b = append(b, `,"released_config_version_id":`...)
	if x.Released == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, x.Released.Version, 10)
	}
	b = strconv.AppendInt(append(b, `,"generated_config_version_id":`...), x.Latest.Version, 10)
	return strconv.AppendInt(append(b, `,"config_instance_id":`...), shown.ID, 10)
}

// listConfigInstances lists the files of the processes of a scope.
func (s *server) listConfigInstances(ctx context.Context, r *request) (any, error) {
	q := r.selection(r.biz).query
	if n, given := opt(r.form, "process_status", anyInt()); given {
		r.states(&q, []int64{n})
	}
	if hosted, given := opt(r.form, "is_auto", boolean); given {
		r.hosted(&q, []bool{hosted})
	}
	template, _ := opt(r.form, "config_template_id", integer(1, maxID))
	versions := list(r.form, "config_version_ids", versionID)
	release, _ := opt(r.form, "filter_released", boolean)
	if err := r.err(); err != nil {
		return nil, err
	}

	files, err := s.configs.Placed(ctx, r.Caller, q, template)
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(x record.ConfigPlaced) bool {
		version := int64(record.ConfigUnreleased)
		if x.Released != nil {
			version = x.Released.Version
		}
		return len(versions) > 0 && !slices.Contains(versions, version)
	})
	return configFiles{columns: fileColumns(), list: files, release: release}, nil
}

// fileColumns are the columns of process_status without those about instances and templates.
func fileColumns() []column {
	return slices.DeleteFunc(columnsOf(nil), func(c column) bool {
		return c.name == "config_templates" || c.name == "proc_inst_infos"
	})
}

type newestInfo struct {
	Generated *fileInfo     `json:"generated_config"`
	Released  *fileInfo     `json:"released_config"`
	IsLatest  bool          `json:"is_latest"`
	Snapshot  *snapshotInfo `json:"snapshot"`
}

type fileInfo struct {
	ID       int64   `json:"id"`
	Created  *string `json:"created_at"`
	Content  string  `json:"content"`
	Latest   bool    `json:"is_latest"`
	Released bool    `json:"is_released"`
	Version  int64   `json:"config_version_id"`
}

type snapshotInfo struct {
	ID       int64   `json:"id"`
	Content  string  `json:"content"`
	Instance int64   `json:"config_instance_id"`
	Job      int64   `json:"job_instance_id"`
	Created  *string `json:"create_at"`
	Updated  *string `json:"update_at"`
}

func fileOf(c *record.ConfigInstance) *fileInfo {
	if c == nil {
		return nil
	}
	return &fileInfo{c.ID, timeISO().show(c.Created), c.Content, c.Latest, c.Released, c.Version}
}

// latestConfigInstance is what there is of one file of a process.
func (s *server) latestConfigInstance(ctx context.Context, r *request) (any, error) {
	slot := record.ConfigSlot{Template: must(r.form, "config_template_id", integer(1, maxID)),
		Process: int(must(r.form, "bk_process_id", integer(1, maxID)))}
	inst, _ := opt(r.form, "inst_id", integer(0, maxID))
	slot.Inst = int(inst)
	if err := r.err(); err != nil {
		return nil, err
	}

	n, err := s.configs.Newest(ctx, r.Caller, r.biz, slot)
	if err != nil {
		return nil, err
	}
	out := newestInfo{Generated: fileOf(n.Latest), Released: fileOf(n.Released), IsLatest: n.Current}
	if x := n.Live; x != nil {
		out.Snapshot = &snapshotInfo{x.ID, x.Content, x.Instance, x.Job, timeISO().show(x.Created), timeISO().show(x.Updated)}
	}
	return out, nil
}

// instanceInfo is a rendered file over its template.
type instanceInfo struct {
	configInfo
	InstanceID int64  `json:"id"`
	Version    int64  `json:"config_version_id"`
	Process    int    `json:"bk_process_id"`
	Inst       int    `json:"inst_id"`
	Content    string `json:"content"`
	File       string `json:"name"`
	Folder     string `json:"path"`
	Latest     bool   `json:"is_latest"`
	Released   bool   `json:"is_released"`
	Hash       string `json:"sha256"`
	Expression string `json:"expression"`
	Snapshot   any    `json:"config_snapshot_info"`
}

// configInstanceRetrieve is one rendered file. Its template may be deleted since.
func (s *server) configInstanceRetrieve(ctx context.Context, r *request) (any, error) {
	id := r.pathInt(r.Call, "config_instance_id")
	if err := r.err(); err != nil {
		return nil, err
	}
	c, err := s.configs.File(ctx, r.Caller, r.biz, id)
	if err != nil {
		return nil, err
	}
	snapshot, err := s.configs.Snapshot(ctx, &c)
	if err != nil {
		return nil, err
	}

	out := instanceInfo{configInfo: configInfo{ID: c.Template, Biz: c.Biz}, InstanceID: c.ID, Version: c.Version, Process: c.Process,
		Inst: c.Inst, Content: c.Content, File: c.Name, Folder: c.Path, Latest: c.Latest, Released: c.Released,
		Hash: hex.EncodeToString(c.Hash[:]), Expression: s.expressionOf(r, c.Process), Snapshot: struct{}{}}
	t, err := s.configs.Template(ctx, r.Caller, r.biz, c.Template)
	if err == nil {
		out.configFields, out.trail = fieldsOf(&t.ConfigTemplate), trailOf(&t.Trail, utc())
	}
	out.CreatedAt, out.CreatedBy = utc().show(c.Created), &c.CreatedBy
	if snapshot != nil {
		out.Snapshot = snapshotRow{ID: snapshot.ID, Created: utc().show(snapshot.Created), Updated: utc().show(snapshot.Updated),
			Content: snapshot.Content, Hash: hex.EncodeToString(snapshot.Hash[:]), Instance: c.ID, Job: snapshot.Job}
	}
	return out, nil
}

type snapshotRow struct {
	ID       int64   `json:"id"`
	Created  *string `json:"created_at"`
	Updated  *string `json:"updated_at"`
	Content  string  `json:"content"`
	Hash     string  `json:"sha256"`
	Instance int64   `json:"config_instance_id"`
	Job      int64   `json:"job_instance_id"`
}

// expressionOf is the dotted name of a process, "" if it is gone.
func (s *server) expressionOf(r *request, process int) string {
	_, rows := s.plane.FindProcesses(r.Caller, topology.Query{Biz: r.biz, Processes: []int{process}, Limit: 1})
	if len(rows) == 0 {
		return ""
	}
	return rows[0].Expression()
}
