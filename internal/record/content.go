package record

// MaxContents is how many bytes the large contents of files may have together.
const MaxContents = 1 << 30

// Content is a large content of a file. It is kept once, for all hosts and tasks.
type Content struct {
	Digest string // gozzard.FileDigest
	Body   []byte // nil: the record has it
}
