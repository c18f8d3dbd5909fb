package client

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/gozzard/gozzard"
)

// FileRequest is the body of PUT /api/v1/files. Exactly one of content, content_base64 and kept says what is written.
type FileRequest struct {
	Namespace     string  `json:"namespace,omitempty"` // whose file it is; "default" when missing
	Hosts         []Host  `json:"hosts"`
	Path          string  `json:"path"`                // clean and absolute
	Account       string  `json:"account"`             // that the file belongs to
	Group         string  `json:"group,omitempty"`     // the main group of the account when missing
	Mode          string  `json:"mode,omitempty"`      // octal digits; 0644 when missing
	LineEnds      string  `json:"line_ends,omitempty"` // lf or crlf; as they are when missing
	Content       *string `json:"content,omitempty"`   // text
	ContentBase64 *string `json:"content_base64,omitempty"`
	Kept          string  `json:"kept,omitempty"`    // the sha256 of a former content that the hosts keep
	Expect        string  `json:"expect,omitempty"`  // the sha256 that the file has now, or absent; anything when missing
	Confirm       int     `json:"confirm,omitempty"` // on how many hosts the file is written; needed when there are many
	OfflineRequest
}

// FileWrite writes a file on hosts.
type FileWrite struct {
	Namespace, Path, Account, Group, Mode, LineEnds string
	Hosts                                           []Host
	Content                                         []byte // nil: Kept
	Kept                                            string
	Expect                                          string
	Confirm                                         int // on how many hosts; the server requires it for many
	Offline                                         Offline
}

// WriteFile writes a file on hosts, as a task.
func (c *Client) WriteFile(ctx context.Context, w FileWrite) (Accepted, error) {
	r := FileRequest{Namespace: w.Namespace, Hosts: w.Hosts, Path: w.Path, Account: w.Account, Group: w.Group, Mode: w.Mode,
		LineEnds: w.LineEnds, Kept: w.Kept, Expect: w.Expect, Confirm: w.Confirm, OfflineRequest: w.Offline.request()}
	if w.Content != nil {
		text := string(w.Content)
		if r.Content = &text; len(w.Content) > gozzard.MaxInlineBytes || !utf8.Valid(w.Content) { // escapes would make it longer
			text = base64.StdEncoding.EncodeToString(w.Content)
			r.Content, r.ContentBase64 = nil, &text
		}
	}
	return c.change(ctx, http.MethodPut, "/api/v1/files", "", r)
}

// File is a file of a host, or a former content of it.
type File struct {
	Exists        bool    `json:"exists"`
	Owner         string  `json:"owner,omitempty"`
	Group         string  `json:"group,omitempty"`
	Mode          string  `json:"mode,omitempty"`
	Size          int64   `json:"size"`
	SHA256        string  `json:"sha256,omitempty"`
	Changed       Time    `json:"changed"`                  // null if there is no file
	Content       *string `json:"content,omitempty"`        // if it is text
	ContentBase64 *string `json:"content_base64,omitempty"` // if it is not
}

// Bytes is the content of the file.
func (f *File) Bytes() ([]byte, error) {
	switch {
	case f.ContentBase64 != nil:
		return base64.StdEncoding.DecodeString(*f.ContentBase64)
	case f.Content != nil:
		return []byte(*f.Content), nil
	}
	return nil, nil
}

// FileQuery names a file of one host.
type FileQuery struct {
	Namespace, Host, Path, Account string
	Kept                           string // the sha256 of a former content; "" means the file as it is
}

func (q *FileQuery) values() url.Values {
	v := url.Values{"namespace": {q.Namespace}, "host": {q.Host}, "path": {q.Path}, "account": {q.Account}}
	if q.Kept != "" {
		v.Set("kept", q.Kept)
	}
	return v
}

// ReadFile reads a file of one host.
func (c *Client) ReadFile(ctx context.Context, q FileQuery) (File, error) {
	var out File
	err := c.get(ctx, "/api/v1/files", q.values(), &out)
	return out, err
}

// FileVersion is a former content of a file that its host keeps.
type FileVersion struct {
	At     Time   `json:"at"` // when it was replaced
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	Owner  string `json:"owner"`
	Group  string `json:"group"`
	Mode   string `json:"mode"`
	Task   int64  `json:"task"` // the number of the task that replaced it
}

// FileVersions are the former contents of a file, the newest first.
type FileVersions struct {
	Versions []FileVersion `json:"versions"`
}

// FileVersions lists the former contents of a file that a host keeps.
func (c *Client) FileVersions(ctx context.Context, q FileQuery) (FileVersions, error) {
	var out FileVersions
	err := c.get(ctx, "/api/v1/files/versions", q.values(), &out)
	return out, err
}

// FileOf is a file as the API shows it.
func FileOf(v *gozzard.FileView) File {
	out := File{Exists: v.Exists, Owner: v.Owner, Group: v.Group, Mode: v.Mode, Size: v.Size, SHA256: v.SHA256}
	if !v.Exists {
		return out
	}
	out.Changed = MilliTime(v.Changed)
	text := string(v.Content)
	if out.Content = &text; !utf8.Valid(v.Content) {
		text = base64.StdEncoding.EncodeToString(v.Content)
		out.Content, out.ContentBase64 = nil, &text
	}
	return out
}
