package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newUserTOTPCommand is `gozzard user totp`.
func newUserTOTPCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "totp",
		Short: "Manage the second factor of a password",
		Long: `Manage the second factor of a user with a password: a code that an authenticator program shows and
that changes every 30 seconds (RFC 6238). Each code is accepted once. A recovery code replaces a code
when the device is lost. An admin can remove the factor of another user. Users of the login provider
have the second factor of the provider.`,
	}
	cmd.AddCommand(newTOTPEnrolCommand(env), newTOTPConfirmCommand(env), newTOTPRemoveCommand(env))
	return cmd
}

// newTOTPEnrolCommand is `gozzard user totp enrol`.
func newTOTPEnrolCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	var file string
	var request client.TOTPRequest
	cmd := &cobra.Command{
		Use:   "enrol NAME",
		Short: "Make a second factor and show it once",
		Long: `Make a second factor and show it once: the secret, an otpauth:// address for a QR code, and ten
recovery codes. It counts when you confirm it. Until then logins work as before. You need the
password and no session. If you have a second factor already, give a code of it.`,
		Example: `  gozzard user totp enrol alice --password-file - --url https://10.0.0.1:8443`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withPassword(cmd, file, func(c *client.Client, password string) error {
				request.User, request.Password = args[0], password
				e, err := c.EnrolTOTP(cmd.Context(), request)
				if err != nil {
					return err
				}
				if output.structured() {
					return output.write(env.out, e)
				}

				err = env.say("secret: %s\naddress: %s\nrecovery codes, each works once:\n", e.Secret, e.URI)
				for _, r := range e.Recovery {
					if err == nil {
						_, err = fmt.Fprintf(env.out, "  %s\n", r)
					}
				}
				env.remark("confirm it with \"gozzard user totp confirm %s --code CODE\"", args[0])
				return checkWrite(0, err)
			})
		},
	}

	cmd.Flags().StringVar(&file, "password-file", "-", "`FILE` with the password; - is standard input")
	registerCode(cmd.Flags(), &request.Code)
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// newTOTPConfirmCommand is `gozzard user totp confirm`.
func newTOTPConfirmCommand(env *cliEnv) *cobra.Command {
	var file string
	var request client.TOTPRequest
	cmd := &cobra.Command{
		Use:   "confirm NAME",
		Short: "Confirm a new second factor with a code of it",
		Long: `Confirm a new second factor with a code of it. From then on logins by password need a code. All
sessions of the user end.`,
		Example: `  gozzard user totp confirm alice --password-file alice.txt --code 123456`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withPassword(cmd, file, func(c *client.Client, password string) error {
				request.User, request.Password = args[0], password
				return c.ConfirmTOTP(cmd.Context(), request)
			})
		},
	}

	cmd.Flags().StringVar(&file, "password-file", "-", "`FILE` with the password; - is standard input")
	registerCode(cmd.Flags(), &request.Code)
	return cmd
}

// newTOTPRemoveCommand is `gozzard user totp remove`.
func newTOTPRemoveCommand(env *cliEnv) *cobra.Command {
	var file string
	var proof client.Proof
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove the second factor of a user",
		Long: `Remove the second factor of a user and end its sessions and tokens. An admin can do it for another
user. A user does it for itself with its password and a code.`,
		Example: `  gozzard user totp remove alice`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				var err error
				if proof.Password, err = env.readPasswordFile(cmd, file); err != nil {
					return err
				}
			}
			return env.withClient(func(c *client.Client) error { return c.RemoveTOTP(cmd.Context(), args[0], proof) })
		},
	}

	cmd.Flags().StringVar(&file, "password-file", "", "`FILE` with your password; - is standard input")
	registerCode(cmd.Flags(), &proof.Code)
	return cmd
}

// withPassword reads a password and calls f with a client that needs no credentials.
func (env *cliEnv) withPassword(cmd *cobra.Command, file string, f func(*client.Client, string) error) error {
	c, err := env.newClient(true)
	if err != nil {
		return err
	}
	defer c.Close()

	password, err := env.readPasswordFile(cmd, file)
	if err != nil {
		return err
	}
	return withExitCode(f(c, password))
}
