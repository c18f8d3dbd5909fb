package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/topology"
)

// The limits of a request's body, in bytes.
const (
	maxOperationBody = 4 << 20
	maxFileBody      = 32 << 20 // a content of gozzard.MaxFileBytes in base64, and the names of many hosts
	maxAccountBody   = 1 << 20
	maxTopologyBody  = topology.MaxDocument
	maxShortBody     = 32 << 10  // also of hosts that are not enrolled yet
	maxReleaseBody   = 128 << 10 // a manifest with its signature, in base64
	maxUpgradeBody   = 8 << 20   // large enough for the names of all hosts
)

// maxList is the largest number of names or hosts in a request.
const maxList = 100_000

// readBody reads the whole body of a request.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return nil, errEncoded()
	}

	if r.ContentLength > limit {
		return nil, errTooLong(r, limit)
	}

	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, errTooLong(r, long.Limit)
	case gozzard.KindOf(err) == gozzard.ErrRateLimited: // of package ratelimit
		return nil, err
	case err != nil:
		return nil, &gozzard.Error{Kind: gozzard.ErrInvalid, Message: "the body could not be read to its end", Cause: err}
	}

	return body, nil
}

// errTooLong rejects a body. The server reads and drops it before it answers (package ratelimit), however long it is.
func errTooLong(r *http.Request, limit int64) error {
	if b, ok := r.Body.(interface{ DropLong() }); ok {
		b.DropLong()
	}
	return gozzard.Errorf(gozzard.ErrInvalid, "the body has more than %s", sizeText(limit))
}

func sizeText(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

func errEncoded() error {
	return gozzard.Errorf(gozzard.ErrInvalid, "Content-Encoding is not accepted: send the body without compression")
}

// readValue reads a body into a value. It rejects fields that the value does not have.
func readValue(w http.ResponseWriter, r *http.Request, limit int64, out any) error {
	body, err := readBody(w, r, limit)
	if err != nil {
		return err
	}
	if _, err := strictjson.Parse(body); err != nil { // rejects deep nesting, duplicate keys and invalid text
		return err
	}

	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(out); err != nil {
		return &gozzard.Error{Kind: gozzard.ErrInvalid,
			Message: "the body is not a request of this kind: " + clip(err.Error()), Cause: err}
	}

	return nil
}

// readFields reads a body with the fields of type T and calls read with its object. All faults become one error.
func readFields[T any](w http.ResponseWriter, r *http.Request, limit int64, read func(root *strictjson.Value)) error {
	_, err := readRequest(w, r, limit, func(root *strictjson.Value) {
		root.Only(fieldNames(reflect.TypeFor[T]())...)
		read(root)
	})
	return err
}

// readRequest reads a body that must be one JSON object, and calls read with it. All faults become one error. It returns the body
// for those that hash it.
func readRequest(w http.ResponseWriter, r *http.Request, limit int64, read func(root *strictjson.Value)) ([]byte, error) {
	body, err := readBody(w, r, limit)
	if err != nil {
		return nil, err
	}

	var faults strictjson.Faults
	root, err := readObject(body, &faults)
	if err != nil {
		return nil, err
	}

	read(&root)
	return body, faults.Err()
}

// readObject parses a body that must be one JSON object.
func readObject(body []byte, f *strictjson.Faults) (strictjson.Value, error) {
	doc, err := strictjson.Parse(body)
	if err != nil {
		return strictjson.Value{}, err
	}
	return doc.Root(f)
}

// fieldNames lists the JSON names of the fields of a struct type, those of embedded structs included.
func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			names = append(names, fieldNames(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// requestHash identifies the content of a request. It covers method and path, so that a key of one call cannot be
// used for another.
func requestHash(r *http.Request, body []byte) (sum [32]byte) {
	h := sha256.New()
	_, _ = io.WriteString(h, r.Method+" "+r.URL.Path+"\n") // a hash never fails
	_, _ = h.Write(body)
	h.Sum(sum[:0])
	return sum
}
