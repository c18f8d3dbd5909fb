//go:build linux

package main

import (
	"errors"
	"testing"
	"time"
)

func TestServerDoctorWords(t *testing.T) {
	now := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)

	disk := func(kind int64) verdictWord {
		if all := checkFileSystem(kind, "/d", "the record"); len(all) > 0 {
			return all[0].word
		}
		return findOK
	}

	for what, tt := range map[string]struct{ got, want verdictWord }{
		"sync FULL":           {checkSync(2, "wal", nil).word, findOK},
		"sync EXTRA":          {checkSync(3, "WAL", nil).word, findOK},
		"sync NORMAL":         {checkSync(1, "wal", nil).word, findWarn},
		"sync OFF":            {checkSync(0, "wal", nil).word, findWarn},
		"another journal":     {checkSync(2, "delete", nil).word, findWarn},
		"cannot be read":      {checkSync(0, "", errors.New("no")).word, findFail},
		"NFS":                 {disk(0x6969), findFail},
		"CIFS":                {disk(0xff534d42), findFail},
		"SMB":                 {disk(0xfe534d42), findFail},
		"FUSE":                {disk(0x65735546), findWarn},
		"memory":              {disk(0x01021994), findWarn},
		"ext4":                {disk(0xef53), findOK},
		"certificate is over": {checkExpiry("API", now, now, time.Hour, "x").word, findFail},
		"certificate ends":    {checkExpiry("API", now.Add(time.Minute), now, time.Hour, "x").word, findWarn},
		"certificate counts":  {checkExpiry("API", now.Add(2*time.Hour), now, time.Hour, "x").word, findOK},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %s, want %s", what, tt.got, tt.want)
		}
	}
}
