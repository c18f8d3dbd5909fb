package gozzard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of files on hosts. The policy of a host usually allows less.
const (
	MaxFileBytes   = 16 << 20  // of a file that is read or replaced
	MaxInlineBytes = 256 << 10 // of a content inside the operation; a larger one travels in parts
	MaxPartBytes   = 256 << 10 // of a part
	MaxPathBytes   = 1024      // of a path
)

// FileSpec says what a file on a host must be. It is a part of a Spec, whose Identity.User is the account that the file
// belongs to. The content is bound by its digest, so the signature of the operation covers it.
type FileSpec struct {
	Path   string `json:"path"`            // clean and absolute
	Group  string `json:"group,omitempty"` // "" means the main group of the account
	Mode   string `json:"mode"`            // three or four octal digits, such as 0640
	SHA256 string `json:"sha256"`          // of the content, in hexadecimal
	Size   int64  `json:"size"`            // of the content

	Content []byte `json:"content,omitempty"`
	Kept    bool   `json:"kept,omitempty"`  // instead of Content: the agent uses what it keeps of this digest; Size is 0
	Parts   bool   `json:"parts,omitempty"` // instead of Content: the agent asks for it, part by part (ContentQuery)

	// Expect is the digest that the file must have before it is replaced, or FileAbsent. "" expects nothing. So a file that
	// a person has changed on the host is not replaced unseen.
	Expect string `json:"expect,omitempty"`

	// Folders says that missing folders on the way are made: they belong to the account, and others may read them.
	Folders bool `json:"folders,omitempty"`

	// Source is where the content was read (ActionTransfer). It changes nothing on the host; answers and people see it.
	Source *FileSource `json:"source,omitempty"`
}

// FileSource is a file on a host whose content is written on other hosts.
type FileSource struct {
	Host string `json:"host"` // as the caller named it
	Path string `json:"path"`
}

// maxSourceHost is how long the name of the host of a source may be.
const maxSourceHost = 128

// FileAbsent in FileSpec.Expect says that there must be no file.
const FileAbsent = "absent"

// FileCode is how an operation found the file that it is about. Codes are stored and sent, so they do not change.
type FileCode string

// The codes of files.
const (
	FileSame     FileCode = "same"     // it is as the operation wants it: nothing was written
	FileNew      FileCode = "new"      // there was none, and it was written
	FileReplaced FileCode = "replaced" // it had another content, group or mode, and was replaced

	// The operation expects another file (FileSpec.Expect), so nothing was written.
	FileChanged FileCode = "changed" // it has another content
	FileGone    FileCode = "gone"    // there is none
	FilePresent FileCode = "present" // there is one
)

// FileResult is how an operation found its file. It is zero if the agent did not look at the file, or does not report it.
type FileResult struct {
	Code   FileCode `json:"code,omitempty"`
	SHA256 string   `json:"sha256,omitempty"` // of the content that was there
}

// FileDigest is the digest of a content as FileSpec has it.
func FileDigest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// IsFileDigest reports whether a text is a digest of a content.
func IsFileDigest(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size && strings.ToLower(s) == s
}

// Validate checks everything that needs no host.
func (f *FileSpec) Validate() error {
	if err := ValidateFilePath(f.Path); err != nil {
		return err
	}
	if _, err := ParseFileMode(f.Mode); err != nil {
		return err
	}
	if f.Group != "" {
		if err := ValidateName(f.Group); err != nil {
			return fmt.Errorf("group: %w", err)
		}
	}

	switch {
	case f.Source != nil && (len(f.Source.Host) > maxSourceHost || len(f.Source.Path) > MaxPathBytes):
		return fmt.Errorf("the source is named by more than %d bytes", maxSourceHost+MaxPathBytes)
	case !IsFileDigest(f.SHA256):
		return fmt.Errorf("sha256 must be 64 hexadecimal digits in lower case")
	case f.Size < 0 || f.Size > MaxFileBytes:
		return fmt.Errorf("the content has %d bytes, at most %d are allowed", f.Size, MaxFileBytes)
	case f.Expect != "" && f.Expect != FileAbsent && !IsFileDigest(f.Expect):
		return fmt.Errorf("expect must be %q or a sha256 in lower case", FileAbsent)
	case f.Kept && (f.Size != 0 || len(f.Content) > 0):
		return fmt.Errorf("there is a content although the host is to use one that it keeps")
	case f.Parts && (f.Kept || f.Size <= MaxInlineBytes || len(f.Content) > 0):
		return fmt.Errorf("a content travels in parts only if it has more than %d bytes", MaxInlineBytes)
	case !f.Kept && !f.Parts && (int64(len(f.Content)) != f.Size || FileDigest(f.Content) != f.SHA256):
		return fmt.Errorf("the content is not the one that sha256 and size name")
	}
	return nil
}

// SetContent says what is written. A large content is not inside the operation.
func (f *FileSpec) SetContent(content []byte) {
	f.Size, f.SHA256 = int64(len(content)), FileDigest(content)
	if f.Parts = len(content) > MaxInlineBytes; !f.Parts {
		f.Content = content
	}
}

// ValidateFilePath checks the path of a file on a host: absolute, clean, and plain enough to be shown.
func ValidateFilePath(p string) error {
	switch {
	case p == "":
		return fmt.Errorf("path: required")
	case len(p) > MaxPathBytes:
		return fmt.Errorf("path: has %d bytes, at most %d are allowed", len(p), MaxPathBytes)
	case !utf8.ValidString(p) || !IsPlainLine(p):
		return fmt.Errorf("path: has control characters, or is not valid UTF-8")
	case !path.IsAbs(p):
		return fmt.Errorf("path: %q is not absolute: begin it with /", p)
	case path.Clean(p) != p || p == "/":
		return fmt.Errorf("path: %q is not the clean path of a file: write it without . and .., without double slashes "+
			"and without a slash at its end", p)
	}
	return nil
}

// ParseFileMode reads the permissions of a file: three or four octal digits, without set-id bits and the sticky bit.
func ParseFileMode(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil || len(s) < 3 || len(s) > 4 || n > 0o777 {
		return 0, fmt.Errorf("mode: %q must be three or four octal digits up to 0777, such as \"0644\"", Clip(s, 16))
	}
	return uint32(n), nil
}

// FileKey identifies a file on a host in the order of operations, in tasks and in the journal. A path that cannot be a
// name is represented by its digest.
func FileKey(namespace, p string) Key {
	name := "file:" + p
	if len(name) > MaxProcessNameBytes || ValidateProcessName(name) != nil {
		name = "file:" + FileDigest([]byte(p))
	}
	return Key{Namespace: namespace, Name: name}
}

// LineEnds says how the lines of a content end.
type LineEnds string

// The ways. "" leaves the content as it is.
const (
	LineEndsLF   LineEnds = "lf"
	LineEndsCRLF LineEnds = "crlf"
)

// Apply gives a content with such line ends.
func (l LineEnds) Apply(content []byte) ([]byte, error) {
	switch l {
	case "":
		return content, nil
	case LineEndsLF, LineEndsCRLF:
	default:
		return nil, fmt.Errorf("line ends must be %q, %q or nothing, not %q", LineEndsLF, LineEndsCRLF, Clip(string(l), 16))
	}

	content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	if l == LineEndsCRLF {
		content = bytes.ReplaceAll(content, []byte("\n"), []byte("\r\n"))
	}
	return content, nil
}

// FileWrite is one file to write on one host. Exactly one of Content and Kept says what is written.
type FileWrite struct {
	Namespace string // of the business whose file it is
	Target    Target
	Path      string
	Account   string // that the file belongs to
	Group     string // "" means the main group of the account
	Mode      string // "" means 0644
	LineEnds  LineEnds
	Content   []byte // nil means Kept
	Kept      string // the digest of a content that the host keeps
	Expect    string // as in FileSpec
	Source    *FileSource
	Folders   bool     // as in FileSpec
	Refused   *Outcome // set by a caller that has to answer for this file although it is not written
}

// FileOperation is one request to write files on hosts.
type FileOperation struct {
	Caller         Caller
	Door           string
	Writes         []FileWrite
	IdempotencyKey string
	RequestHash    [32]byte
	WaitOffline    time.Duration
	Confirm        int  // how many files the caller has confirmed; 0: it has not
	Transfer       bool // the contents were read on hosts: ActionTransfer, and not ActionConfigure
}

// FileRead asks for a file on one host, or for a former content that the host keeps.
type FileRead struct {
	Namespace string
	Target    Target
	Path      string
	Account   string // with whose rights it is read
	Kept      string // the digest of a former content; "" means the file as it is
	Transfer  bool   // to write it on other hosts: it needs the right to ActionTransfer
}

// FileView is a file on a host as it was read.
type FileView struct {
	Exists  bool
	Owner   string
	Group   string
	Mode    string // such as 0644
	Size    int64
	SHA256  string
	Changed int64 // when its content changed last, in Unix milliseconds
	Content []byte
}

// FileVersion is a former content of a file that the host keeps.
type FileVersion struct {
	At     int64 // when it was replaced, in Unix milliseconds
	SHA256 string
	Size   int64
	Owner  string
	Group  string
	Mode   string
	Task   TaskSeq // that replaced it
}

// FileQuery asks an agent for a file of its host, in parts. It needs the same policy of the host as writing the file.
type FileQuery struct {
	ID      OpID // of the query; the answer has the same
	Key     Key  // by FileKey
	Path    string
	Account string // with whose rights it is read
	Kept    string // the digest of a former content that the host keeps; "" means the file as it is
	List    bool   // list the former contents instead
	Offset  int64  // of the first byte to return
	Max     int    // most bytes to return
}

// ContentQuery asks the server for a part of the content of an operation (FileSpec.Parts). The agent asks for one part after the
// other, so it decides how fast they come.
type ContentQuery struct {
	Op     OpID
	SHA256 string // of the whole content, in hexadecimal
	Offset int64
}

// ContentPart is the answer to a ContentQuery.
type ContentPart struct {
	Op     OpID
	SHA256 string // of the whole content, in hexadecimal
	Offset int64
	Data   []byte
	Sum    uint32 // CRC-32C of Data (PartSum)
	Error  string // why there is no such content; "" means none
}

// PartSum is the checksum of a part. It finds what was damaged on the way; that a content is the right one follows from its
// digest, which the signature of the operation covers.
func PartSum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// FileAnswer is the answer to a FileQuery. Every part has the digest of the whole content, so a reader notices that the
// file changed between two parts.
type FileAnswer struct {
	ID       OpID
	View     FileView // Content is the part
	Offset   int64    // of the part
	Versions []FileVersion
	Error    string // why there is no answer; "" means none
}
