package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// Notify sends alerts to receivers.
type Notify interface {
	Receivers(ctx context.Context, caller gozzard.Caller) ([]record.Receiver, error)
	AddReceiver(ctx context.Context, caller gozzard.Caller, r record.Receiver) (record.Receiver, error)
	ChangeReceiver(ctx context.Context, caller gozzard.Caller, id string, change record.ReceiverChange) (record.Receiver, error)
	RemoveReceiver(ctx context.Context, caller gozzard.Caller, id string) (record.Receiver, error)
	Test(ctx context.Context, caller gozzard.Caller, id string) (to record.Receiver, waiting int, err error)
	Backlogs(ctx context.Context, caller gozzard.Caller) (map[string]record.Backlog, error)
	Subscriptions(ctx context.Context, caller gozzard.Caller) ([]record.Subscription, error)
	Subscribe(ctx context.Context, caller gozzard.Caller, spec record.SubscriptionSpec) (record.Subscription, error)
	ChangeSubscription(ctx context.Context, caller gozzard.Caller, id string, change record.SubscriptionChange) (record.Subscription, error)
	Unsubscribe(ctx context.Context, caller gozzard.Caller, id string) (record.Subscription, error)
	DeadLetters(ctx context.Context, caller gozzard.Caller) ([]record.DeadLetter, error)
	RetryDead(ctx context.Context, caller gozzard.Caller, id int64) error
	RemoveDead(ctx context.Context, caller gozzard.Caller, id int64) error
}

// The limits of lists in the bodies of these routes.
const (
	maxNotifyBody = 128 << 10
	maxNotifyList = 1000
)

func notifyRoutes() []Route {
	conflict := []gozzard.ErrorKind{gozzard.ErrConflict}
	missing := []gozzard.ErrorKind{gozzard.ErrNotFound}
	named := answers(http.StatusOK, client.NamedID{}, "The change is recorded.")
	return []Route{
		{Method: http.MethodGet, Path: "/api/v1/receivers", Access: AccessCaller, serve: (*api).getReceivers,
			Summary: "List the receivers of alerts that the caller may use, without their secrets.",
			Answers: answers(http.StatusOK, client.ReceiverList{}, "The receivers, by name.")},

		{Method: http.MethodPost, Path: "/api/v1/receivers", Access: AccessAdmin, serve: (*api).postReceiver,
			Summary: "Make a receiver of alerts.", Body: jsonBody(client.ReceiverRequest{}), Errors: conflict,
			Answers: answers(http.StatusCreated, client.CreatedID{}, "The receiver is recorded.")},

		{Method: http.MethodPut, Path: "/api/v1/receivers/{receiver}", Access: AccessAdmin, serve: (*api).putReceiver,
			Summary: "Change settings of a receiver of alerts. What is missing stays, secrets included. A change of where messages go " +
				"needs the secrets again.",
			Parameters: []Parameter{inPath("receiver", "The id or the name of the receiver.")}, Body: jsonBody(client.ReceiverChange{}),
			Errors: []gozzard.ErrorKind{gozzard.ErrConflict, gozzard.ErrNotFound}, Answers: named},

		{Method: http.MethodDelete, Path: "/api/v1/receivers/{receiver}", Access: AccessAdmin, serve: (*api).deleteReceiver,
			Summary:    "Remove a receiver of alerts that no subscription uses, and what waits for it.",
			Parameters: []Parameter{inPath("receiver", "The id or the name of the receiver.")},
			Errors:     []gozzard.ErrorKind{gozzard.ErrConflict, gozzard.ErrNotFound}, Answers: named},

		{Method: http.MethodPost, Path: "/api/v1/receivers/{receiver}/test", Access: AccessAdmin, serve: (*api).postReceiverTest,
			Summary: "Send a test message to a receiver at once; the error says why it did not arrive. When it arrives, messages that " +
				"wait are sent at once, too.",
			Parameters: []Parameter{inPath("receiver", "The id or the name of the receiver.")}, Body: jsonBody(struct{}{}),
			Errors:  []gozzard.ErrorKind{gozzard.ErrConflict, gozzard.ErrNotFound},
			Answers: answers(http.StatusOK, client.ReceiverTested{}, "The message arrived.")},

		{Method: http.MethodGet, Path: "/api/v1/subscriptions", Access: AccessCaller, serve: (*api).getSubscriptions,
			Summary: "List the subscriptions of the caller; an admin of everything sees those of all.",
			Answers: answers(http.StatusOK, client.SubscriptionList{}, "The subscriptions, the oldest first.")},

		{Method: http.MethodPost, Path: "/api/v1/subscriptions", Access: AccessCaller, serve: (*api).postSubscription,
			Summary: "Subscribe to alerts about what the caller may see.", Body: jsonBody(client.SubscriptionRequest{}),
			Errors: conflict, Answers: answers(http.StatusCreated, client.CreatedID{}, "The subscription is recorded.")},

		{Method: http.MethodPut, Path: "/api/v1/subscriptions/{subscription}", Access: AccessCaller, serve: (*api).putSubscription,
			Summary: "Change settings of a subscription. What is missing stays. What waits for receivers that it does not use any more " +
				"is removed.",
			Parameters: []Parameter{inPath("subscription", "The id or the name of the subscription.")},
			Body:       jsonBody(client.SubscriptionChange{}),
			Errors:     []gozzard.ErrorKind{gozzard.ErrConflict, gozzard.ErrNotFound}, Answers: named},

		{Method: http.MethodDelete, Path: "/api/v1/subscriptions/{subscription}", Access: AccessCaller,
			serve: (*api).deleteSubscription, Summary: "Remove a subscription, and its messages that wait.",
			Parameters: []Parameter{inPath("subscription", "The id or the name of the subscription.")},
			Errors:     []gozzard.ErrorKind{gozzard.ErrConflict, gozzard.ErrNotFound}, Answers: named},

		{Method: http.MethodGet, Path: "/api/v1/dead-letters", Access: AccessAdmin, serve: (*api).getDeadLetters,
			Summary: "List the messages to receivers that could not be delivered, the newest first.",
			Answers: answers(http.StatusOK, client.DeadLetterList{}, "The messages.")},

		{Method: http.MethodPost, Path: "/api/v1/dead-letters/{letter}/retry", Access: AccessAdmin, serve: (*api).postDeadLetterRetry,
			Summary:    "Try to deliver a message again that could not be delivered.",
			Parameters: []Parameter{inPath("letter", "The number of the message.")}, Body: jsonBody(struct{}{}), Errors: missing,
			Answers: nothing(http.StatusOK)},

		{Method: http.MethodDelete, Path: "/api/v1/dead-letters/{letter}", Access: AccessAdmin, serve: (*api).deleteDeadLetter,
			Summary:    "Remove a message that could not be delivered.",
			Parameters: []Parameter{inPath("letter", "The number of the message.")}, Errors: missing,
			Answers: nothing(http.StatusOK)},
	}
}

// notify is what sends alerts.
func (a *api) notify() (Notify, error) {
	if a.Notify == nil {
		return nil, gozzard.Errorf(gozzard.ErrUnavailable, "this server sends no alerts")
	}
	return a.Notify, nil
}

// getDeadLetters lists messages that could not be delivered.
func (a *api) getDeadLetters(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	engine, err := a.notify()
	if err != nil {
		return err
	}
	list, err := engine.DeadLetters(r.Context(), caller)
	if err != nil {
		return err
	}
	out := client.DeadLetterList{DeadLetters: make([]client.DeadLetter, 0, len(list))}
	for i := range list {
		d := &list[i]
		out.DeadLetters = append(out.DeadLetters, client.DeadLetter{ID: d.ID, Receiver: d.Receiver, ReceiverName: d.ReceiverName,
			Subscription: d.Subscription, Title: d.Title, Tries: d.Tries, Error: d.Error, Created: client.At(d.Created)})
	}
	return answer(w, http.StatusOK, out)
}

func (a *api) postDeadLetterRetry(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	engine, err := a.notify()
	if err != nil {
		return err
	}
	if err := readFields[struct{}](w, r, maxShortBody, func(*strictjson.Value) {}); err != nil {
		return err
	}
	return changeDeadLetter(w, r, caller, engine.RetryDead)
}

func (a *api) deleteDeadLetter(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	engine, err := a.notify()
	if err != nil {
		return err
	}
	return changeDeadLetter(w, r, caller, engine.RemoveDead)
}

func changeDeadLetter(w http.ResponseWriter, r *http.Request, caller gozzard.Caller,
	change func(context.Context, gozzard.Caller, int64) error) error {
	id, err := strconv.ParseInt(r.PathValue("letter"), 10, 64)
	if err != nil {
		return gozzard.Errorf(gozzard.ErrNotFound, "there is no dead letter %.40q", r.PathValue("letter"))
	}
	if err := change(r.Context(), caller, id); err != nil {
		return err
	}
	return answer(w, http.StatusOK, struct{}{})
}
