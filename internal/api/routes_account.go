package api

import (
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// accountErrors are the errors of a change to an account, beside the common ones.
func accountErrors() []gozzard.ErrorKind {
	return []gozzard.ErrorKind{gozzard.ErrNotFound, gozzard.ErrConflict}
}

func appRoutes() []Route {
	code := inPath("code", "The code of the app.")
	absent := []gozzard.ErrorKind{gozzard.ErrNotFound}
	return []Route{
		{Method: http.MethodGet, Path: "/api/v1/apps", Access: AccessAdmin, serve: (*api).getApps,
			Summary: "List the apps, without their secrets.",
			Answers: answers(http.StatusOK, client.AppList{}, "The apps."), Errors: absent},

		{Method: http.MethodPost, Path: "/api/v1/apps", Access: AccessAdmin, serve: (*api).postApp,
			Summary: "Make an app.", Body: jsonBody(client.NewApp{}), Errors: accountErrors(),
			Answers: answers(http.StatusCreated, client.AppSecret{}, "The secret of the app. Only this answer has it.")},

		{Method: http.MethodPut, Path: "/api/v1/apps/{code}", Access: AccessAdmin, serve: (*api).putApp,
			Summary: "Change the flags of an app.", Parameters: []Parameter{code}, Body: jsonBody(client.AppChange{}),
			Answers: nothing(http.StatusOK), Errors: accountErrors()},

		{Method: http.MethodDelete, Path: "/api/v1/apps/{code}", Access: AccessAdmin, serve: (*api).deleteApp,
			Summary: "Delete an app.", Parameters: []Parameter{code}, Answers: nothing(http.StatusOK),
			Errors: accountErrors()},

		{Method: http.MethodPost, Path: "/api/v1/apps/{code}/secrets", Access: AccessAdmin, serve: (*api).postSecret,
			Summary:    "Make a new secret for an app; the older ones stay valid.",
			Parameters: []Parameter{code}, Errors: accountErrors(),
			Answers: answers(http.StatusCreated, client.AppSecret{}, "The secret. Only this answer has it.")},

		{Method: http.MethodDelete, Path: "/api/v1/apps/{code}/secrets", Access: AccessAdmin,
			serve:      (*api).deleteSecrets,
			Summary:    "Revoke every secret of an app but its newest.",
			Parameters: []Parameter{code}, Answers: nothing(http.StatusOK), Errors: accountErrors()},

		{Method: http.MethodGet, Path: "/api/v1/grants", Access: AccessAdmin, serve: (*api).getGrants,
			Summary: "List every grant with its holder.",
			Answers: answers(http.StatusOK, client.GrantList{}, "The grants."), Errors: absent},

		{Method: http.MethodPost, Path: "/api/v1/grants", Access: AccessAdmin, serve: (*api).postGrant,
			Summary: "Give a grant to an app, a user or a group of the login provider.", Body: jsonBody(client.HeldGrant{}),
			Answers: nothing(http.StatusOK), Errors: accountErrors()},

		{Method: http.MethodDelete, Path: "/api/v1/grants", Access: AccessAdmin, serve: (*api).deleteGrant,
			Summary: "Remove a grant from an app, a user or a group of the login provider.", Body: jsonBody(client.HeldGrant{}),
			Answers: nothing(http.StatusOK), Errors: accountErrors()},

		{Method: http.MethodGet, Path: "/api/v1/grants/check", Access: AccessAdmin, serve: (*api).getGrantCheck,
			Summary: "Ask whether an app or a user may do something, and because of which grant.",
			Parameters: []Parameter{
				text("app", "The code of the app."),
				text("user", "The name of the user. With app: the user behind that app."),
				text("action", "The action, such as stop."),
				text("host", "The host: an address, cloud:address, a host name or an agent id."),
				text("namespace", "The namespace of the process; without it, one that the grant covers."),
				text("account", "The account of the process; without it, one that the grant names."),
			},
			Answers: answers(http.StatusOK, client.GrantCheck{}, "The answer."), Errors: absent},
	}
}

func userRoutes() []Route {
	name := inPath("name", "The name of the user.")
	return []Route{
		{Method: http.MethodGet, Path: "/api/v1/users", Access: AccessAdmin, serve: (*api).getUsers,
			Summary: "List the users, without their passwords and tokens.", Parameters: pageParams(),
			Answers: answers(http.StatusOK, client.UserPage{}, "One page of the users."),
			Errors:  []gozzard.ErrorKind{gozzard.ErrNotFound}},

		{Method: http.MethodPost, Path: "/api/v1/users", Access: AccessAdmin, serve: (*api).postUser,
			Summary: "Make a user.", Body: jsonBody(client.NewUser{}), Answers: nothing(http.StatusCreated),
			Errors: accountErrors()},

		{Method: http.MethodPut, Path: "/api/v1/users/{name}", Access: AccessAdmin, serve: (*api).putUser,
			Summary:    "Disable or enable a user, or remove the user's id at the login provider.",
			Parameters: []Parameter{name}, Body: jsonBody(client.UserChange{}), Answers: nothing(http.StatusOK),
			Errors: accountErrors()},

		{Method: http.MethodDelete, Path: "/api/v1/users/{name}", Access: AccessAdmin, serve: (*api).deleteUser,
			Summary: "Delete a user with all tokens.", Parameters: []Parameter{name}, Answers: nothing(http.StatusOK),
			Errors: accountErrors()},

		{Method: http.MethodPut, Path: "/api/v1/users/{name}/password", Access: AccessCaller,
			serve:      (*api).putPassword,
			Summary:    "Set the password of a user: an admin for every user, a user for itself with the old password.",
			Parameters: []Parameter{name}, Body: jsonBody(client.PasswordChange{}), Answers: nothing(http.StatusOK),
			Errors: accountErrors()},

		{Method: http.MethodGet, Path: "/api/v1/users/{name}/tokens", Access: AccessCaller, serve: (*api).getTokens,
			Summary: "List the tokens of a user, without their secret texts.", Parameters: []Parameter{name},
			Answers: answers(http.StatusOK, client.UserTokenList{}, "The tokens."), Errors: accountErrors()},

		{Method: http.MethodPost, Path: "/api/v1/users/{name}/tokens", Access: AccessCaller, serve: (*api).postToken,
			Summary: "Make a token of a user.", Parameters: []Parameter{name}, Body: jsonBody(client.NewUserToken{}),
			Answers: answers(http.StatusCreated, client.UserToken{}, "The token. Only this answer has its secret text."),
			Errors:  accountErrors()},

		{Method: http.MethodDelete, Path: "/api/v1/users/{name}/tokens/{id}", Access: AccessCaller,
			serve:   (*api).deleteToken,
			Summary: "Revoke a token of a user.", Parameters: []Parameter{name, inPath("id", "The id of the token.")},
			Answers: nothing(http.StatusOK), Errors: accountErrors()},

		{Method: http.MethodDelete, Path: "/api/v1/users/{name}/totp", Access: AccessCaller, serve: (*api).deleteTOTP,
			Summary:    "Remove the second factor of a user: an admin for others, a user for itself with password and code.",
			Parameters: []Parameter{name}, Body: jsonBody(client.Proof{}), Answers: nothing(http.StatusOK),
			Errors: accountErrors()},

		{Method: http.MethodPost, Path: "/api/v1/users/{name}/offboard", Access: AccessAdmin, serve: (*api).postOffboard,
			Summary:    "End the sessions, tokens and grants of a user, and list what remains.",
			Parameters: []Parameter{name}, Errors: accountErrors(),
			Answers: answers(http.StatusOK, client.Offboarded{}, "What ended and what remains.")},
	}
}

func loginRoutes() []Route {
	refused := []gozzard.ErrorKind{gozzard.ErrUnauthenticated, gozzard.ErrCodeRequired, gozzard.ErrUserForbidden,
		gozzard.ErrNotFound}
	return []Route{
		{Method: http.MethodGet, Path: "/api/v1/whoami", Access: AccessCaller, serve: (*api).getWhoAmI,
			Summary: "Read how the server knows the caller, and the caller's grants.",
			Answers: answers(http.StatusOK, client.CallerInfo{}, "The caller.")},

		{Method: http.MethodPost, Path: "/api/v1/login", Access: AccessOpen, serve: (*api).postLogin,
			Summary: "Open a session with a password.", Body: jsonBody(client.LoginRequest{}), Errors: refused,
			Answers: answers(http.StatusOK, client.UserToken{}, "The token of the session. Only this answer has it.")},

		{Method: http.MethodPost, Path: "/api/v1/totp", Access: AccessOpen, serve: (*api).postTOTP,
			Summary: "Make a second factor of a user with a password.", Body: jsonBody(client.TOTPRequest{}),
			Answers: answers(http.StatusCreated, client.TOTPEnrolment{}, "The factor. Only this answer has it."),
			Errors:  refused},

		{Method: http.MethodPut, Path: "/api/v1/totp", Access: AccessOpen, serve: (*api).putTOTP,
			Summary: "Make the new second factor count, with a code of it.", Body: jsonBody(client.TOTPRequest{}),
			Answers: nothing(http.StatusOK), Errors: append(refused, gozzard.ErrConflict)},

		{Method: http.MethodPost, Path: "/api/v1/logout", Access: AccessCaller, serve: (*api).postLogout,
			Summary: "Revoke the token that the request carries.", Answers: nothing(http.StatusOK),
			Errors: []gozzard.ErrorKind{gozzard.ErrInvalid, gozzard.ErrNotFound}},

		{Method: http.MethodGet, Path: "/login/oidc", Access: AccessOpen, serve: (*api).getProviderLogin,
			Summary: "Send a browser to the login provider.", Errors: refused,
			Parameters: []Parameter{oneOf(text("to", "Where the login ends: in the console, with a cookie; missing: with a token."),
				[]string{toConsole})},
			Answers: []Answer{{Status: http.StatusFound, Meaning: "Location is the login provider."}}},

		{Method: http.MethodGet, Path: "/login/oidc/callback", Access: AccessOpen, serve: (*api).getProviderCallback,
			Summary: "Open a session for a browser that comes back from the login provider.", Errors: refused,
			Parameters: []Parameter{
				text("state", "The state of the login, from the provider."),
				text("code", "The code of the login, from the provider."),
				text("error", "Why the provider rejects the login."),
			},
			Answers: []Answer{{Status: http.StatusOK, Value: client.UserToken{},
				Meaning: "The token of the session. Only this answer has it."},
				{Status: http.StatusFound, Meaning: "Location is a page of the console, where the login began."}}},
	}
}
