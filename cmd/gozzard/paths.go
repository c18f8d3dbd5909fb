package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// installedData is the data folder of the unit of the server as shipped.
const installedData = "/var/lib/gozzard"

// registerData adds the flag --data of a command about the folder of a server.
func registerData(cmd *cobra.Command, data *string) {
	cmd.Flags().StringVar(data, "data", "./data",
		"data `FOLDER` of the server; without this flag, and without ./data, /var/lib/gozzard if it exists")
}

// findData completes the flag of registerData.
func findData(cmd *cobra.Command, data *string) {
	if cmd.Flags().Changed("data") {
		return
	}
	_, missing := os.Lstat(*data)
	if _, err := os.Lstat(installedData); missing != nil && err == nil {
		*data = installedData
	}
}

// makeAbsolute replaces relative paths by absolute ones. An empty path stays empty. The check that no other account
// can write a file goes through all its folders from the root, so it needs an absolute path.
func makeAbsolute(paths ...*string) error {
	for _, p := range paths {
		if *p == "" {
			continue
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return fmt.Errorf("cannot find %s: %w", *p, err)
		}
		*p = abs
	}
	return nil
}
