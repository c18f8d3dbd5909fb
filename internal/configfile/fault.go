package configfile

import (
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// fault makes an error that callers of GSEKit know by a number.
func fault(kind record.ConfigFaultKind, name string, err error) error {
	return &record.ConfigFault{Kind: kind, Name: name, Err: err}
}

func noTemplate(biz int, id int64) error {
	return fault(record.ConfigNoTemplate, "", gozzard.Errorf(gozzard.ErrNotFound, "business %d has no configuration template %d", biz, id))
}

// asFault makes a fault of an error of the record if it has a kind.
func asFault(err error, kind gozzard.ErrorKind, as record.ConfigFaultKind, name string) error {
	if err != nil && gozzard.KindOf(err) == kind {
		return fault(as, name, err)
	}
	return err
}

func noProcess(id int) error {
	return fault(record.ConfigNoProcess, strconv.Itoa(id), gozzard.Errorf(gozzard.ErrNotFound, "there is no process %d", id))
}
