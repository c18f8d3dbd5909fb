package api

import (
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// liveRoutes are the routes of the live data, which docs/live.md describes.
func liveRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Path: "/api/v1/live/snapshot", Access: AccessCaller, serve: (*api).getLiveSnapshot,
			Summary: "Read all processes that the caller may see, as binary columns. The live stream brings what changes then.",
			Answers: []Answer{{Status: http.StatusOK, Kinds: []string{liveType},
				Meaning: "The snapshot. It is compressed by gzip if the header Accept-Encoding allows it."}}},

		{Method: http.MethodGet, Path: "/api/v1/live/stream", Access: AccessCaller, serve: (*api).streamLive,
			Summary: "Stream the changes of a snapshot, and new events and tasks, as server-sent events.",
			Parameters: []Parameter{
				requiredText("epoch", "The epoch of the snapshot."),
				number("after", "The sequence number of the snapshot, or of the last batch that the client has."),
				number("events", "The id of the last event that the client has; only new events when missing."),
				text("lang", "The language of messages in events, en or zh; it replaces the header Accept-Language, which code in a "+
					"browser cannot set here."),
				inHeader("Last-Event-ID", "The sequence number of the last batch that the client has; it replaces after."),
			},
			Answers: []Answer{{Status: http.StatusOK, Kinds: []string{streamType},
				Meaning: `Events named "changes", "events" and "tasks". An event named "resnapshot" says that the client needs a ` +
					`new snapshot, "bye" that its session has ended; both end the stream.`}}},

		{Method: http.MethodPost, Path: "/api/v1/live/rows", Access: AccessCaller, serve: (*api).postLiveRows,
			Summary: "Read the details of processes by their ids in a snapshot.",
			Body:    jsonBody(client.LiveRowsRequest{}),
			Answers: answers(http.StatusOK, client.LiveRows{}, "The processes that exist. Ids without a process are left out."),
			Errors:  []gozzard.ErrorKind{gozzard.ErrConflict}},

		{Method: http.MethodGet, Path: "/api/v1/live/match", Access: AccessCaller, serve: (*api).getLiveMatch,
			Summary: "Find the processes of businesses that an expression selects, by their ids in a snapshot.",
			Parameters: []Parameter{
				requiredText("epoch", "The epoch of the snapshot."),
				requiredText("expression", `Five patterns with dots between them: set.module.service_instance.process_name.`+
					`process_id. A dot that belongs to a name is written \.`),
				number("biz", "Only processes of this business; all businesses that the caller may see when missing."),
			},
			Answers: []Answer{{Status: http.StatusOK, Kinds: []string{liveType},
				Meaning: "The ids in ascending order, each as four bytes, the lowest first."}},
			Errors: []gozzard.ErrorKind{gozzard.ErrConflict}},
	}
}
