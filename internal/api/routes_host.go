package api

import (
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/enrol"
)

func enrolRoutes() []Route {
	conflict := []gozzard.ErrorKind{gozzard.ErrConflict}
	missing := []gozzard.ErrorKind{gozzard.ErrConflict, gozzard.ErrNotFound}
	return []Route{
		{Method: http.MethodPost, Path: enrol.JoinPath, Access: AccessHost, serve: (*api).postJoin,
			Summary: "Enrol a host with a token; the host gets its certificate.",
			Body:    jsonBody(enrol.JoinRequest{}), Errors: conflict,
			Answers: answers(http.StatusOK, enrol.Answer{}, "What the host needs to connect.")},

		{Method: http.MethodPost, Path: enrol.RenewPath, Access: AccessHost, serve: (*api).postRenew,
			Summary: "Renew the certificate of an enrolled host.",
			Body:    jsonBody(enrol.RenewRequest{}),
			Answers: answers(http.StatusOK, enrol.Answer{}, "What the host needs to connect.")},

		{Method: http.MethodPost, Path: enrol.LeavePath, Access: AccessHost, serve: (*api).postLeave,
			Summary: "Remove the host that asks from the fleet, for ever.",
			Body:    jsonBody(enrol.LeaveRequest{}),
			Answers: answers(http.StatusOK, enrol.Answer{}, "The host is removed.")},

		{Method: http.MethodGet, Path: "/join", Access: AccessOpen, serve: (*api).getJoin,
			Summary: "Read a shell script that installs the program on a host and adds the host to the fleet.",
			Answers: []Answer{{Status: http.StatusOK, Kinds: []string{"text/x-shellscript"}, Meaning: "The script."}},
			Errors:  []gozzard.ErrorKind{gozzard.ErrInvalid, gozzard.ErrNotFound}},

		{Method: http.MethodGet, Path: "/api/v1/enrol/program/{program}", Access: AccessOpen, serve: (*api).getJoinProgram,
			Summary:    "Download the program of the server, as the script of /join does.",
			Parameters: []Parameter{inPath("program", "Its name in the script, such as gozzard-linux-amd64.")},
			Answers:    []Answer{{Status: http.StatusOK, Kinds: []string{octets}, Meaning: "The program."}},
			Errors:     []gozzard.ErrorKind{gozzard.ErrNotFound}},

		{Method: http.MethodGet, Path: enrol.ReleasePath + "/{version}/{file}", Access: AccessHost,
			serve:   (*api).getReleaseFile,
			Summary: "Download a part of a release, as an enrolled host.",
			Parameters: []Parameter{
				inPath("version", "The version of the release."),
				inPath("file", "manifest, signature, or the SHA-256 digest of a program."),
				inHeader(enrol.MachineHeader, "The machine id that the host enrolled with."),
			},
			Answers: []Answer{{Status: http.StatusOK, Kinds: []string{octets}, Meaning: "The bytes of the file."}},
			Errors:  missing},

		{Method: http.MethodGet, Path: "/api/v1/enrol/tokens", Access: AccessCaller, serve: (*api).getEnrolTokens,
			Summary: "List the tokens with which hosts enrol, newest first; this needs the role enroller.",
			Answers: answers(http.StatusOK, client.EnrolTokenList{}, "The tokens, without their secret texts."),
			Errors:  conflict},

		{Method: http.MethodPost, Path: "/api/v1/enrol/tokens", Access: AccessCaller, serve: (*api).postEnrolToken,
			Summary: "Make a token with which hosts enrol; this needs the role enroller.",
			Body:    jsonBody(client.EnrolTokenRequest{}), Errors: conflict,
			Answers: answers(http.StatusCreated, client.EnrolToken{}, "The token. Only this answer has its secret text.")},

		{Method: http.MethodDelete, Path: "/api/v1/enrol/tokens/{id}", Access: AccessCaller,
			serve:      (*api).deleteEnrolToken,
			Summary:    "Revoke a token; hosts that enrolled with it stay members.",
			Parameters: []Parameter{inPath("id", "The id of the token.")}, Errors: missing,
			Answers: answers(http.StatusOK, client.RevokedEnrolToken{}, "The token is revoked.")},

		{Method: http.MethodGet, Path: "/api/v1/enrol/agents", Access: AccessCaller, serve: (*api).getMembers,
			Summary: "List the enrolled agents that the caller may see.",
			Answers: answers(http.StatusOK, client.MemberList{}, "The agents.")},

		{Method: http.MethodPut, Path: "/api/v1/enrol/agents/{agent}", Access: AccessCaller, serve: (*api).putMember,
			Summary: "Approve, revoke or remove an enrolled agent. An enroller may approve one that waits for its first " +
				"approval; everything else needs the role admin on all of its addresses.",
			Parameters: []Parameter{inPath("agent", "The id of the agent.")},
			Body:       jsonBody(client.MemberChange{}), Errors: missing,
			Answers: answers(http.StatusOK, client.Member{}, "The agent after the change.")},

		{Method: http.MethodPut, Path: "/api/v1/enrol/agents/{agent}/addresses", Access: AccessCaller,
			serve: (*api).putMemberAddrs,
			Summary: "Add and remove addresses of an enrolled agent; this needs the role admin on all of its addresses " +
				"and on the new ones.",
			Parameters: []Parameter{inPath("agent", "The id of the agent.")},
			Body:       jsonBody(client.MemberAddrsChange{}), Errors: missing,
			Answers: answers(http.StatusOK, client.Member{}, "The agent after the change.")},

		{Method: http.MethodGet, Path: "/api/v1/restore", Access: AccessAdmin, serve: (*api).getRestore,
			Summary: "Read whether the record was restored from a backup and waits for a confirmation.",
			Answers: answers(http.StatusOK, client.Restore{}, "The state of the restore.")},

		{Method: http.MethodPost, Path: "/api/v1/restore/confirm", Access: AccessAdmin, serve: (*api).postRestore,
			Summary: "Confirm a restore, so that the hosts of the restored record may connect.",
			Body:    jsonBody(client.RestoreConfirmation{}), Errors: conflict,
			Answers: answers(http.StatusOK, client.RestoreConfirmed{}, "The hosts may connect.")},
	}
}

func releaseRoutes() []Route {
	conflict := []gozzard.ErrorKind{gozzard.ErrConflict}
	missing := []gozzard.ErrorKind{gozzard.ErrConflict, gozzard.ErrNotFound}
	version := inPath("version", "The version of the release.")
	return []Route{
		{Method: http.MethodGet, Path: "/api/v1/releases", Access: AccessAdmin, serve: (*api).getReleases,
			Summary: "List the releases that were published, newest first.",
			Answers: answers(http.StatusOK, client.ReleaseList{}, "The releases."), Errors: conflict},

		{Method: http.MethodPost, Path: "/api/v1/releases", Access: AccessAdmin, serve: (*api).postRelease,
			Summary: "Publish the signed manifest of a release; its programs are uploaded afterwards.",
			Body:    jsonBody(client.PublishRequest{}), Errors: conflict,
			Answers: answers(http.StatusOK, client.Release{}, "The release, with the programs that are missing.")},

		{Method: http.MethodDelete, Path: "/api/v1/releases/{version}", Access: AccessAdmin,
			serve:      (*api).deleteRelease,
			Summary:    "Remove a release and its programs from the server.",
			Parameters: []Parameter{version}, Errors: missing,
			Answers: answers(http.StatusOK, client.RemovedRelease{}, "The release is removed.")},

		{Method: http.MethodPut, Path: "/api/v1/releases/{version}/files/{file}", Access: AccessAdmin,
			serve:      (*api).putReleaseFile,
			Summary:    "Upload a program of a published release.",
			Parameters: []Parameter{version, inPath("file", "The SHA-256 digest of the program, from the manifest.")},
			Body:       Body{Kinds: []string{octets}}, Errors: missing,
			Answers: answers(http.StatusOK, client.UploadedFile{}, "The program is stored.")},

		{Method: http.MethodGet, Path: "/api/v1/rolls", Access: AccessAdmin, serve: (*api).getUpgrades,
			Summary:    "List the newest upgrades, newest first.",
			Parameters: []Parameter{number("limit", "The largest number of upgrades, from 1 to 100; 1 when missing.")},
			Answers:    answers(http.StatusOK, client.UpgradeList{}, "The upgrades."), Errors: conflict},

		{Method: http.MethodPost, Path: "/api/v1/rolls", Access: AccessAdmin, serve: (*api).postUpgrade,
			Summary: "Bring a release to hosts, in stages.",
			Body:    jsonBody(client.NewUpgrade{}), Errors: missing,
			Answers: answers(http.StatusCreated, client.Upgrade{}, "The upgrade.")},

		{Method: http.MethodPut, Path: "/api/v1/rolls/{version}", Access: AccessAdmin, serve: (*api).putUpgrade,
			Summary:    "Approve or stop the open upgrade to a release.",
			Parameters: []Parameter{version},
			Body:       jsonBody(client.UpgradeChange{}), Errors: missing,
			Answers: answers(http.StatusOK, client.Upgrade{}, "The upgrade after the change.")},
	}
}
