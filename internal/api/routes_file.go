package api

import (
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// fileRoutes are the routes for files on hosts.
func fileRoutes() []Route {
	which := []Parameter{
		requiredText("namespace", "The namespace whose file it is."),
		requiredText("host", "The host: cloud:ip, an IP address, a host name or an agent id."),
		requiredText("path", "The path of the file, clean and absolute."),
		requiredText("account", "The account that the file belongs to. It is read with its rights."),
	}
	return []Route{
		{Method: http.MethodPut, Path: "/api/v1/files", Access: AccessCaller, serve: (*api).putFile,
			Summary: "Write a file on hosts, as a task. It needs the right configure for its account, and the policy of each host " +
				"must allow the path, the owner and the size.",
			Parameters: idempotency(), Body: jsonBody(client.FileRequest{}),
			Answers: answers(http.StatusAccepted, client.Accepted{},
				"The task is recorded. Location is the path of the task."), Errors: taskErrors()},

		{Method: http.MethodGet, Path: "/api/v1/files", Access: AccessCaller, serve: (*api).getFile,
			Summary: "Read a file of one host, or a former content of it. It needs the same rights as writing it.",
			Parameters: append(which,
				text("kept", "The sha256 of a former content that the host keeps; the file as it is when missing.")),
			Answers: answers(http.StatusOK, client.File{}, "The file."),
			Errors:  []gozzard.ErrorKind{gozzard.ErrNotFound}},

		{Method: http.MethodGet, Path: "/api/v1/files/versions", Access: AccessCaller, serve: (*api).getFileVersions,
			Summary:    "List the former contents of a file that its host keeps, the newest first.",
			Parameters: which[:len(which):len(which)],
			Answers:    answers(http.StatusOK, client.FileVersions{}, "The former contents."),
			Errors:     []gozzard.ErrorKind{gozzard.ErrNotFound}},
	}
}
