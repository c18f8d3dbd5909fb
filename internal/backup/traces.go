package backup

import (
	"os"
	"path/filepath"

	"github.com/gozzard/gozzard/internal/enrol"
)

// Traces names the files in a data folder that a server makes only after its record: keys, secrets and credentials. If
// there are any and the record is missing, the record was lost.
func Traces(data string) (found []string) {
	for _, name := range []string{SigningFile, JoinFile, enrol.KeyFile, enrol.CertificateFile, "credentials.json", "dev.json"} {
		if _, err := os.Lstat(filepath.Join(data, name)); err == nil {
			found = append(found, name)
		}
	}
	return found
}
