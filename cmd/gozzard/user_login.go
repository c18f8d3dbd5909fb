package main

import (
	"crypto/x509"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard/client"
)

// readPasswordFile reads the first line of a file. "-" is standard input.
func (env *cliEnv) readPasswordFile(cmd *cobra.Command, path string) (string, error) {
	const maxBytes = 4096
	in := cmd.InOrStdin()
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", usage("cannot read the password: %w", err)
		}
		defer f.Close()
		in = f
		if info, err := f.Stat(); err == nil && runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o044 != 0 {
			env.remark("warning: other accounts can read the password in %s: run chmod 600 %[1]s", printable(path))
		}
	}

	b, err := io.ReadAll(io.LimitReader(in, maxBytes))
	if err != nil {
		return "", usage("cannot read the password: %w", err)
	}

	line, _, _ := strings.Cut(string(b), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", usage("the password in %s is empty", path)
	}

	return line, nil
}

// newUserPasswordCommand is `gozzard user password`.
func newUserPasswordCommand(env *cliEnv) *cobra.Command {
	var file, old string
	var change client.PasswordChange
	cmd := &cobra.Command{
		Use:   "password NAME",
		Short: "Set the password of a user",
		Long: `Set the password of a user and end its sessions and tokens. A user without the role admin can change
only its own password. A user that changes its own password gives the present one with
--old-password-file, and a code of the second factor if it has one.`,
		Example: `  gozzard user password alice --password-file new.txt
  gozzard user password alice --password-file new.txt --old-password-file old.txt --credentials me.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if change.Password, err = env.readPasswordFile(cmd, file); err != nil {
				return err
			}
			if old != "" {
				if change.Old, err = env.readPasswordFile(cmd, old); err != nil {
					return err
				}
			}
			return env.withClient(func(c *client.Client) error { return c.ChangePassword(cmd.Context(), args[0], change) })
		},
	}

	cmd.Flags().StringVar(&file, "password-file", "-", "`FILE` with the new password; - is standard input")
	cmd.Flags().StringVar(&old, "old-password-file", "", "`FILE` with the present password")
	registerCode(cmd.Flags(), &change.Code)
	return cmd
}

// registerCode adds the flag of the second factor.
func registerCode(f *pflag.FlagSet, code *string) {
	f.StringVar(code, "code", "", "`CODE` of the second factor, or a recovery code")
}

// newUserLoginCommand is `gozzard user login`.
func newUserLoginCommand(env *cliEnv) *cobra.Command {
	var file, out, code, ca string
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Log in and write a credentials file",
		Long: `Log in with a password and write a credentials file that only its owner can read. It is valid for 12
hours. --url is the server; another credentials file with its URL works too. From another machine give
the certificate of the fleet's authority, too, with --ca-file: the file ca.pem in the data folder of the
server, which is no secret. The credentials file then has it. A user with a second factor
("gozzard user totp") gives its code with --code.`,
		Example: `  gozzard user login alice --url http://127.0.0.1:8080 --out me.json
  gozzard user login alice --url https://10.0.0.1:8443 --ca-file ca.pem --out me.json
  gozzard ps --credentials me.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := env.readAuthority(ca); err != nil {
				return err
			}
			c, err := env.newClient(true)
			if err != nil {
				return err
			}
			defer c.Close()

			password, err := env.readPasswordFile(cmd, file)
			if err != nil {
				return err
			}

			t, err := c.LoginWith(cmd.Context(), client.LoginRequest{User: args[0], Password: password, Code: code})
			if err != nil {
				return withExitCode(err)
			}
			if err := (credentials{URL: c.URL(), Token: t.Token, CA: env.ca}).Write(out); err != nil {
				return failed(err)
			}

			env.remark("logged in until %s, credentials are in %s", t.Expires.Local().Format(time.DateTime), out)
			return nil
		},
	}

	cmd.Flags().StringVar(&file, "password-file", "-", "`FILE` with the password; - is standard input")
	cmd.Flags().StringVar(&out, "out", "gozzard.json", "credentials `FILE` to write")
	cmd.Flags().StringVar(&ca, "ca-file", "", "`FILE` with the authority (PEM) of the server "+
		"(default: that of the credentials, or those of the system)")
	registerCode(cmd.Flags(), &code)
	return cmd
}

// readAuthority reads the authority of the server from a file. "" is no file.
func (env *cliEnv) readAuthority(path string) error {
	if path == "" {
		return nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return usage("cannot read --ca-file: %w", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(b) {
		return usage("--ca-file %s has no certificate in PEM: give ca.pem from the data folder of the server", path)
	}
	env.ca = string(b)
	return nil
}

// newUserWhoamiCommand is `gozzard user whoami`.
func newUserWhoamiCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:     "whoami",
		Short:   "Show your identity and your rights",
		Example: `  gozzard user whoami`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				caller, err := c.WhoAmI(cmd.Context())
				if err != nil {
					return err
				}
				if output.structured() {
					return output.write(env.out, caller)
				}
				t := newTable("APP", "USER", "PROVEN", "GRANTS")
				t.add(caller.App, caller.User, yesNo(!caller.Asserted), grantsText(caller.Grants))
				return t.write(env.out)
			})
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}
