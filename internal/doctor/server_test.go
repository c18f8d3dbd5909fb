//go:build linux

package doctor

import (
	"errors"
	"testing"
	"time"
)

func TestServerDoctorWords(t *testing.T) {
	now := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)

	disk := func(kind int64) Level {
		if all := checkFileSystem(kind, "/d", "the record"); len(all) > 0 {
			return all[0].Level
		}
		return OK
	}

	for what, tt := range map[string]struct{ got, want Level }{
		"sync FULL":           {checkSync(2, "wal", nil).Level, OK},
		"sync EXTRA":          {checkSync(3, "WAL", nil).Level, OK},
		"sync NORMAL":         {checkSync(1, "wal", nil).Level, Warn},
		"sync OFF":            {checkSync(0, "wal", nil).Level, Warn},
		"another journal":     {checkSync(2, "delete", nil).Level, Warn},
		"cannot be read":      {checkSync(0, "", errors.New("no")).Level, Fail},
		"NFS":                 {disk(0x6969), Fail},
		"CIFS":                {disk(0xff534d42), Fail},
		"SMB":                 {disk(0xfe534d42), Fail},
		"FUSE":                {disk(0x65735546), Warn},
		"memory":              {disk(0x01021994), Warn},
		"ext4":                {disk(0xef53), OK},
		"certificate is over": {checkExpiry("API", now, now, time.Hour, "x").Level, Fail},
		"certificate ends":    {checkExpiry("API", now.Add(time.Minute), now, time.Hour, "x").Level, Warn},
		"certificate counts":  {checkExpiry("API", now.Add(2*time.Hour), now, time.Hour, "x").Level, OK},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %s, want %s", what, tt.got, tt.want)
		}
	}
}
