package api

import (
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// sessionRoutes are the routes of the console's sessions.
func sessionRoutes() []Route {
	absent := []gozzard.ErrorKind{gozzard.ErrNotFound}
	opened := answers(http.StatusOK, client.Session{}, "The session. Its secret is in the cookie that the answer sets.")
	refused := []gozzard.ErrorKind{gozzard.ErrUnauthenticated, gozzard.ErrCodeRequired, gozzard.ErrUserForbidden,
		gozzard.ErrNotFound}
	csrf := inHeader(csrfHeader, "The value csrf of the session; needed with the cookie.")

	return []Route{
		{Method: http.MethodGet, Path: "/api/v1/session/ways", Access: AccessOpen, serve: (*api).getSessionWays,
			Summary: "List the ways to open a session of the console.",
			Answers: answers(http.StatusOK, client.SessionWays{}, "The ways.")},

		{Method: http.MethodPost, Path: "/api/v1/session", Access: AccessOpen, serve: (*api).postSession,
			Summary: "Open a session of the console with a password, in a cookie.", Body: jsonBody(client.LoginRequest{}),
			Answers: opened, Errors: refused},

		{Method: http.MethodGet, Path: "/api/v1/session", Access: AccessCaller, serve: (*api).getSession,
			Summary: "Read the session of the cookie.", Errors: absent,
			Answers: answers(http.StatusOK, client.Session{}, "The session.")},

		{Method: http.MethodGet, Path: "/api/v1/sessions", Access: AccessCaller, serve: (*api).getSessions,
			Summary: "List the sessions of the user of the cookie, those by a one-time link too. A session that a link of an app " +
				"opened lists the sessions of that app.", Errors: absent,
			Answers: answers(http.StatusOK, client.UserTokenList{}, "The sessions, without their secret texts.")},

		{Method: http.MethodDelete, Path: "/api/v1/session", Access: AccessCaller, serve: (*api).deleteSession,
			Summary: "End the session of the cookie.", Parameters: []Parameter{csrf}, Answers: nothing(http.StatusOK),
			Errors: absent},

		{Method: http.MethodDelete, Path: "/api/v1/session/others", Access: AccessCaller,
			serve:   (*api).deleteOtherSessions,
			Summary: "End all other sessions of the user.", Parameters: []Parameter{csrf},
			Answers: nothing(http.StatusOK), Errors: absent},

		{Method: http.MethodPost, Path: "/api/v1/session/link", Access: AccessCaller, serve: (*api).postSessionLink,
			Summary: "Make a link that opens the console once, within a minute, on the machine of the server.",
			Answers: answers(http.StatusOK, client.SessionLink{}, "The link. Only this answer has it."), Errors: absent},

		{Method: http.MethodPost, Path: "/api/v1/session/enter", Access: AccessOpen, serve: (*api).postSessionEnter,
			Summary: "Open a session of the console with the code of a link.", Body: jsonBody(client.SessionCode{}),
			Answers: opened, Errors: refused},
	}
}
