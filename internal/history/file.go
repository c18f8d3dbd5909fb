package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/gozzard/gozzard"
)

const (
	magic  = "GZH1"
	suffix = ".ring"
	nameID = 16 // bytes of the id that are in the name of a file
)

// fileID identifies the process of a file. The name of the process is not in the file: it may have any characters.
type fileID [sha256.Size]byte

func idOf(key gozzard.Key) fileID {
	return sha256.Sum256([]byte(key.Namespace + "\x00" + key.Name))
}

func (id fileID) name() string { return hex.EncodeToString(id[:nameID]) + suffix }

// isFileName reports whether a file of the folder is one of ours.
func isFileName(name string) bool {
	text, ok := strings.CutSuffix(name, suffix)
	if !ok || len(text) != 2*nameID {
		return false
	}
	_, err := hex.DecodeString(text)
	return err == nil
}

// header is the beginning of the file of a process.
func (id fileID) header() []byte {
	b := make([]byte, headerBytes-4, headerBytes)
	copy(b, magic)
	copy(b[len(magic):], id[:])
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// bufferBlocks is how many blocks are read or written at once: those of a coarse step.
const bufferBlocks = coarseStep / fineStep / blockSteps

// file is the open file of a process.
type file struct {
	*os.File
	buffer  [bufferBlocks * blockBytes]byte
	written int64
}

// openFile opens the file of a process for writing. It empties a file that is not the one of this process.
func openFile(dir *os.Root, id fileID) (*file, error) {
	f, err := dir.OpenFile(id.name(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open a history: %w", err)
	}

	if hasHeader(f, id) {
		return &file{File: f}, nil
	}

	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(id.header(), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot begin a history: %w", err), f.Close())
	}
	return &file{File: f}, nil
}

// openRead opens the file of a process for reading, nil if there is none that can be read as a history.
func openRead(dir *os.Root, id fileID) (*file, error) {
	f, err := dir.Open(id.name())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open a history: %w", err)
	}

	if !hasHeader(f, id) {
		return nil, f.Close()
	}
	return &file{File: f}, nil
}

func hasHeader(f *os.File, id fileID) bool {
	var b [headerBytes]byte
	_, err := f.ReadAt(b[:], 0)
	return err == nil && bytes.Equal(b[:], id.header())
}

// writeBlocks writes blocks that are side by side, and keeps what the file has of them already.
func (f *file) writeBlocks(r ring, blocks []block) error {
	b := f.buffer[:len(blocks)*blockBytes]
	at := r.offset(blocks[0].number)
	n, err := f.ReadAt(b, at)
	if err != nil && !errors.Is(err, io.EOF) {
		n = 0 // what cannot be read is replaced
	}

	for i := range blocks {
		if old, ok := decodeBlock(b[min(i*blockBytes, n):n], blocks[i].number); ok {
			blocks[i].merge(old)
		}
	}
	b = b[:0]
	for i := range blocks {
		b = blocks[i].encode(b)
	}

	n, err = f.WriteAt(b, at)
	f.written += int64(n)
	return err
}

// writeCoarse computes a coarse step from the fine ones and writes it.
func (f *file) writeCoarse(step int64) error {
	const blocks = bufferBlocks // they are side by side: their number divides that of the ring

	// Sum up.
	sum, first := newTotal(), step*blocks
	n, err := f.ReadAt(f.buffer[:blocks*blockBytes], fine.offset(first))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for i := range int64(blocks) {
		if b, ok := decodeBlock(f.buffer[min(int(i)*blockBytes, n):n], first+i); ok {
			for _, p := range b.points {
				sum.add(p)
			}
		}
	}

	// Write. The new value replaces the one of an earlier run of the agent.
	point := sum.point()
	if point.IsEmpty() {
		return nil
	}
	b := newBlock(step / blockSteps)
	b.points[step%blockSteps] = point
	return f.writeBlocks(coarse, []block{b})
}

// eachBlock calls fn with the blocks of a ring that the file has, from the first number to the last one.
func (f *file) eachBlock(r ring, first, last int64, fn func(*block)) error {
	all := make([]byte, ringBytes)
	n, err := f.ReadAt(all, r.start)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("cannot read a history: %w", err)
	}

	first = max(first, last-ringBlocks+1)
	for number := first; number <= last; number++ {
		at := int(number % ringBlocks * blockBytes)
		if b, ok := decodeBlock(all[min(at, n):n], number); ok {
			fn(&b)
		}
	}
	return nil
}
