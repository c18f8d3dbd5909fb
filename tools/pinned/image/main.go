// Command image packs the program into an OCI image, as a tar file that container tools load. It needs no container
// daemon. The image has the program, two accounts and empty folders, and nothing else.
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The account of the program in the image, by number, so that a cluster can see that it is not root.
const (
	account = 65532
	data    = "/var/lib/gozzard"
)

func main() {
	version := flag.String("version", "dev", "version of the program")
	date := flag.Int64("date", 0, "time of all files and of the image, in seconds since 1970")
	out := flag.String("out", "", "tar file to write")
	flag.Parse()
	if *out == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: image -out FILE [-version V] [-date SECONDS] ARCH=PROGRAM...")
		os.Exit(2)
	}
	if err := run(*version, time.Unix(*date, 0).UTC(), *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run writes an image for every architecture, and an index of them.
func run(version string, date time.Time, out string, programs []string) error {
	var index v1.ImageIndex = empty.Index
	index = mutate.IndexMediaType(index, types.OCIImageIndex)
	for _, word := range programs {
		arch, program, ok := strings.Cut(word, "=")
		if !ok {
			return fmt.Errorf("%q is not ARCH=PROGRAM", word)
		}
		img, err := newImage(version, date, arch, program)
		if err != nil {
			return fmt.Errorf("cannot make the image for %s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}

	dir, err := os.MkdirTemp("", "gozzard-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()

	// The top of a layout names what a person loads: one index under the version.
	path, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	name := map[string]string{"org.opencontainers.image.ref.name": version, "io.containerd.image.name": "gozzard:" + version}
	if err := path.AppendIndex(index, layout.WithAnnotations(name)); err != nil {
		return err
	}
	return packFolder(dir, out, date)
}

// newImage is the image of one architecture.
func newImage(version string, date time.Time, arch, program string) (v1.Image, error) {
	files, err := content(date, program)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}

	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{
		CreatedBy: "make packages", Created: v1.Time{Time: date}}})
	if err != nil {
		return nil, err
	}

	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", arch, v1.Time{Time: date}
	file.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", account, account), WorkingDir: data,
		Entrypoint: []string{"/usr/bin/gozzard"}, Cmd: []string{"server", "--data", data},
		Env:          []string{"PATH=/usr/bin:/bin", "HOME=" + data},
		ExposedPorts: map[string]struct{}{"8443/tcp": {}, "4230/tcp": {}},
		Volumes:      map[string]struct{}{data: {}},
		Labels: map[string]string{"org.opencontainers.image.title": "gozzard", "org.opencontainers.image.version": version,
			"org.opencontainers.image.licenses": "Apache-2.0"},
	}
	return mutate.ConfigFile(img, file)
}

// content is the files of the image as a tar archive.
func content(date time.Time, program string) ([]byte, error) {
	binary, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	passwd := fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\ngozzard:x:%d:%d:Gozzard:%s:/sbin/nologin\n", account, account, data)
	group := fmt.Sprintf("root:x:0:\ngozzard:x:%d:\n", account)

	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []struct {
		name  string
		mode  int64
		owner int
		text  []byte
	}{
		{"etc/", 0o755, 0, nil}, {"etc/passwd", 0o644, 0, []byte(passwd)}, {"etc/group", 0o644, 0, []byte(group)},
		{"tmp/", 0o1777, 0, nil}, {"usr/", 0o755, 0, nil}, {"usr/bin/", 0o755, 0, nil},
		{"usr/bin/gozzard", 0o755, 0, binary}, {"var/", 0o755, 0, nil}, {"var/lib/", 0o755, 0, nil},
		{strings.TrimPrefix(data, "/") + "/", 0o700, account, nil},
	} {
		h := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.text)), ModTime: date,
			Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}

// packFolder writes a folder as a tar file, in the order of the names.
func packFolder(dir, out string, date time.Time) error {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	w := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(b)), ModTime: date, Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	})
	if err == nil {
		err = w.Close()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
