// Command supply makes what goes with a release: the licences of everything that is built in, bills of materials,
// checksums and signatures.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

const usage = `usage:
  supply licences [-platforms "GOOS/GOARCH ..."] PACKAGE      list the licence of every module in the build; fails on one that is not allowed
  supply texts    [-platforms "GOOS/GOARCH ..."] PACKAGE      print the licence texts of everything in the build
  supply sbom     [-version VERSION] BINARY                   print the bill of materials of a binary as CycloneDX JSON
  supply manifest -version VERSION [-days N] FOLDER           write FOLDER/release.json, by which agents update themselves; it ends after a year, or N days
  supply signmanifest -key PRIVATE.pem FOLDER                 sign FOLDER/release.json with an Ed25519 key, before the sums are made
  supply sums     FOLDER                                      write FOLDER/SHA256SUMS over its files
  supply sign     -key PRIVATE.pem FOLDER                     sign FOLDER/SHA256SUMS with an Ed25519 key
  supply verify   -key PUBLIC.pem FOLDER                      check the signature and every checksum of a folder
`

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "supply:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("unknown command or arguments\n" + strings.TrimSpace(usage))

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}

	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	platforms := flags.String("platforms", "", "")
	version := flags.String("version", "", "")
	key := flags.String("key", "", "")
	days := flags.String("days", "365", "")

	if err := flags.Parse(args[1:]); err != nil || flags.NArg() != 1 {
		return errUsage
	}

	what := flags.Arg(0)
	switch args[0] {
	case "licences":
		return listLicences(out, strings.Fields(*platforms), what)
	case "texts":
		return printTexts(out, strings.Fields(*platforms), what)
	case "sbom":
		return printBill(out, *version, what)
	case "manifest":
		return writeManifest(*version, *days, what, out)
	case "signmanifest":
		return signManifest(*key, what)
	case "sums":
		return writeSums(what)
	case "sign":
		return sign(*key, what)
	case "verify":
		return verify(*key, what, out)
	}

	return errUsage
}
