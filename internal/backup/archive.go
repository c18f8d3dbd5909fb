package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxTail is how much may follow the last file: the end marks of tar.
const maxTail = 64 << 10

// pack writes the manifest and the files of a folder as it names them. moved is told of every part that went.
func pack(w io.Writer, m *Manifest, dir string, moved func(int)) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}

	tw := tar.NewWriter(w)
	put := func(name string, size int64, r io.Reader) error {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600,
			ModTime: m.Taken, Format: tar.FormatGNU}); err != nil {
			return err
		}
		_, err := io.Copy(tw, io.TeeReader(r, counter(moved)))
		return err
	}

	if err := put(manifestName, int64(len(text)), bytes.NewReader(text)); err != nil {
		return err
	}

	for _, f := range m.Files {
		in, err := os.Open(filepath.Join(dir, f.Name))
		if err != nil {
			return err
		}
		if err := errors.Join(put(f.Name, f.Size, in), in.Close()); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}

	return tw.Close()
}

// counter is told how much was written to it.
type counter func(int)

func (c counter) Write(p []byte) (int, error) {
	if c != nil {
		c(len(p))
	}
	return len(p), nil
}

// unpack writes the files of a backup into a folder, which must be there and have none of them. It takes names from
// a fixed list only and nothing but plain files, each of the size and with the checksum that the manifest gives it,
// and reads to the end: only there it is known that nothing was cut off. What is in the folder when it fails is
// worth nothing.
func unpack(r io.Reader, dir string, moved func(int)) (m Manifest, err error) {
	tr := tar.NewReader(r)
	h, err := next(tr, manifestName)
	if err != nil {
		return m, err
	}
	if h.Size > maxManifest {
		return m, errors.New("its manifest is too large")
	}
	if m, err = readManifest(tr); err != nil {
		return m, err
	}

	for _, f := range m.Files {
		h, err := next(tr, f.Name)
		if err != nil {
			return m, err
		}
		if h.Size != f.Size {
			return m, fmt.Errorf("%s has %d bytes, its manifest says %d", f.Name, h.Size, f.Size)
		}
		if err := takeOut(tr, f, filepath.Join(dir, f.Name), moved); err != nil {
			return m, err
		}
	}

	if _, err := tr.Next(); err == nil {
		return m, errors.New("it has more files than its manifest names")
	} else if !errors.Is(err, io.EOF) {
		return m, broken(err)
	}

	return m, drain(r)
}

// next goes to the file that must come now.
func next(tr *tar.Reader, name string) (*tar.Header, error) {
	h, err := tr.Next()
	if err != nil {
		return nil, broken(err)
	}
	if h.Name != name || h.Typeflag != tar.TypeReg || len(h.PAXRecords) > 0 || h.Linkname != "" {
		return nil, fmt.Errorf("it has %.100q where the file %s must be", h.Name, name)
	}
	return h, nil
}

func takeOut(r io.Reader, f File, path string, moved func(int)) error {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}

	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum, counter(moved)), io.LimitReader(r, f.Size))
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("cannot take out %s: %w", f.Name, err)
	}
	if n != f.Size || hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("%s is not what its checksum says", f.Name)
	}

	return nil
}

// drain reads what follows the last file, which must be nothing but the zeros that end a tar.
func drain(r io.Reader) error {
	rest, err := io.ReadAll(io.LimitReader(r, maxTail+1))
	switch {
	case err != nil:
		return broken(err)
	case len(rest) > maxTail || len(bytes.Trim(rest, "\x00")) > 0:
		return errors.New("something follows its last file")
	}
	return nil
}

func broken(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("it is damaged or cut off: %w", err)
}
