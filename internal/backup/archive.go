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

// maxTail is how many bytes may follow the last file: the end of the tar archive.
const maxTail = 64 << 10

// pack writes the manifest and the files of a folder that it names. It calls progress with the number of bytes of every
// write.
func pack(w io.Writer, m *Manifest, dir string, progress func(int)) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}

	// Each file has a header with its size.
	tw := tar.NewWriter(w)
	put := func(name string, size int64, r io.Reader) error {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: m.Taken, Format: tar.FormatGNU,
		}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		_, err := io.Copy(tw, io.TeeReader(r, counter(progress)))
		return err
	}

	// Write the manifest, then the files.
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

// counter is a writer that calls a function with the number of bytes of every write.
type counter func(int)

func (c counter) Write(p []byte) (int, error) {
	if c != nil {
		c(len(p))
	}
	return len(p), nil
}

// unpack writes the files of a backup into a folder, which must exist and have none of them. It accepts only plain
// files with the names of a fixed list, and with the sizes and checksums of the manifest. It reads to the end, because
// only the end proves that nothing is missing. If it fails, the files in the folder must not be used.
func unpack(r io.Reader, dir string, progress func(int)) (m Manifest, err error) {
	// Read the manifest.
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

	// Extract the files in the order of the manifest.
	for _, f := range m.Files {
		h, err := next(tr, f.Name)
		if err != nil {
			return m, err
		}
		if h.Size != f.Size {
			return m, fmt.Errorf("%s has %d bytes, but %d in the manifest", f.Name, h.Size, f.Size)
		}
		if err := extract(tr, f, filepath.Join(dir, f.Name), progress); err != nil {
			return m, err
		}
	}

	// Check that nothing follows.
	if _, err := tr.Next(); err == nil {
		return m, errors.New("it has more files than its manifest names")
	} else if !errors.Is(err, io.EOF) {
		return m, damaged(err)
	}

	return m, checkEnd(r)
}

// next reads the header of the next file, which must have the given name.
func next(tr *tar.Reader, name string) (*tar.Header, error) {
	h, err := tr.Next()
	if err != nil {
		return nil, damaged(err)
	}
	if h.Name != name || h.Typeflag != tar.TypeReg || len(h.PAXRecords) > 0 || h.Linkname != "" {
		return nil, fmt.Errorf("it has %.100q where the file %s must be", h.Name, name)
	}
	return h, nil
}

// extract writes one file and checks its size and checksum.
func extract(r io.Reader, f File, path string, progress func(int)) error {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}

	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum, counter(progress)), io.LimitReader(r, f.Size))
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("cannot extract %s: %w", f.Name, err)
	}
	if n != f.Size || hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("%s does not match its checksum", f.Name)
	}

	return nil
}

// checkEnd reads the rest after the last file. It must be only the zeros at the end of a tar archive.
func checkEnd(r io.Reader) error {
	rest, err := io.ReadAll(io.LimitReader(r, maxTail+1))
	switch {
	case err != nil:
		return damaged(err)
	case len(rest) > maxTail || len(bytes.Trim(rest, "\x00")) > 0:
		return errors.New("unknown data follows its last file")
	}
	return nil
}

func damaged(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("it is damaged or truncated: %w", err)
}
