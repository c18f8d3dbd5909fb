//go:build linux

package procfs

// Pass reads the files of many processes again and again. Its buffers grow once to the size that the machine needs.
// After that, a pass over thousands of processes allocates nothing. It is not safe for concurrent use.
type Pass struct {
	fs    FS
	path  []byte // NUL-terminated
	line  [1024]byte
	dents []byte
}

// NewPass returns a reader of the processes of f.
func (f FS) NewPass() *Pass {
	return &Pass{fs: f, path: make([]byte, 0, len(f.root)+64), dents: make([]byte, 32<<10)}
}

// FD is an open descriptor of a process: a regular file or a socket.
type FD struct {
	Dev    uint64
	Inode  uint64
	Size   int64 // the length of a file or the space that it uses, whichever is less: holes use no space
	Socket bool
	Write  bool // a regular file that is open for writing
}

// parseDigits reads the name of a process or descriptor. It returns false for other names.
func parseDigits(name []byte) (int, bool) {
	if len(name) == 0 || len(name) > 9 {
		return 0, false
	}
	n := 0
	for _, c := range name {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// setPath puts the path of a file of a process into the buffer.
func (p *Pass) setPath(pid int, name string) {
	p.path = append(p.path[:0], p.fs.root...)
	if pid > 0 {
		p.path = append(p.path, '/')
		p.path = appendInt(p.path, pid)
		p.path = append(p.path, '/')
		p.path = append(p.path, name...)
	}
	p.path = append(p.path, 0)
}

func appendInt(b []byte, n int) []byte {
	var d [20]byte
	i := len(d)
	for {
		i--
		d[i] = byte('0' + n%10)
		if n /= 10; n == 0 {
			return append(b, d[i:]...)
		}
	}
}
