package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// ReceiverList is every receiver that the caller may use.
type ReceiverList struct {
	Receivers []Receiver `json:"receivers"`
}

// Receiver is where alerts go. Its secrets are in no answer.
type Receiver struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Kind      string            `json:"kind"`               // webhook, alertmanager, mail, command, wecom, dingtalk, feishu or slack
	Shared    bool              `json:"shared"`             // everybody's subscriptions may use it
	Settings  *ReceiverSettings `json:"settings,omitempty"` // only for admins of everything
	Backlog   *ReceiverBacklog  `json:"backlog,omitempty"`  // only for admins of everything
	Created   Time              `json:"created_at"`         // null for commands
	CreatedBy string            `json:"created_by,omitempty"`
}

// ReceiverSettings are the settings of a receiver. The URL of a robot is a secret, so an answer has only its host.
type ReceiverSettings struct {
	URL      string   `json:"url,omitempty"`
	Signed   bool     `json:"signed"` // it has a secret for signatures
	Language string   `json:"language,omitempty"`
	Server   string   `json:"server,omitempty"`
	TLS      string   `json:"tls,omitempty"`
	User     string   `json:"user,omitempty"`
	From     string   `json:"from,omitempty"`
	To       []string `json:"to,omitempty"`
}

// ReceiverBacklog is what was not delivered to a receiver. Messages are tried in their order: while one fails, the others
// wait behind it.
type ReceiverBacklog struct {
	Waiting     int    `json:"waiting"`
	Oldest      Time   `json:"oldest_at"`            // of those that wait; null when none does
	Tries       int    `json:"tries"`                // of the first one that failed
	LastError   string `json:"last_error,omitempty"` // of these tries
	NextTry     Time   `json:"next_try_at"`          // null when none has failed
	DeadLetters int    `json:"dead_letters"`
}

// ReceiverChange has the settings of a receiver that change. What is missing stays as it is, and an empty text removes a
// setting. A change of url, server, tls, user or ca needs the secrets of the receiver again.
type ReceiverChange struct {
	Name          *string  `json:"name,omitempty"`
	Shared        *bool    `json:"shared,omitempty"`
	URL           *string  `json:"url,omitempty"`
	Secret        *string  `json:"secret,omitempty"`        // of signatures; write-only
	Authorization *string  `json:"authorization,omitempty"` // the value of that header; write-only
	CA            *string  `json:"ca,omitempty"`            // PEM
	Language      *string  `json:"language,omitempty"`      // en or zh
	Server        *string  `json:"server,omitempty"`        // of mail, as host:port
	TLS           *string  `json:"tls,omitempty"`           // starttls, tls or none
	User          *string  `json:"user,omitempty"`
	Password      *string  `json:"password,omitempty"` // write-only
	From          *string  `json:"from,omitempty"`
	To            []string `json:"to,omitempty"`
}

// ReceiverTested is a test message that arrived.
type ReceiverTested struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	To      string `json:"to"`      // the addresses of mail, the host of a URL, or the command
	Waiting int    `json:"waiting"` // messages that waited: they are sent now
}

// ReceiverRequest describes a new receiver.
type ReceiverRequest struct {
	Name          string   `json:"name"`
	Kind          string   `json:"kind"`
	Shared        bool     `json:"shared,omitempty"`
	URL           string   `json:"url,omitempty"`
	Secret        string   `json:"secret,omitempty"`        // of signatures; write-only
	Authorization string   `json:"authorization,omitempty"` // the value of that header; write-only
	CA            string   `json:"ca,omitempty"`            // PEM; the authorities of the system when missing
	Language      string   `json:"language,omitempty"`      // en or zh; en when missing
	Server        string   `json:"server,omitempty"`        // of mail, as host:port
	TLS           string   `json:"tls,omitempty"`           // starttls, tls or none; starttls when missing
	User          string   `json:"user,omitempty"`
	Password      string   `json:"password,omitempty"` // write-only
	From          string   `json:"from,omitempty"`
	To            []string `json:"to,omitempty"`
}

// CreatedID is the answer to a creation.
type CreatedID struct {
	ID string `json:"id"`
}

// NamedID is a receiver or a subscription that was changed or removed.
type NamedID struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// SubscriptionList is every subscription of the caller, and for admins of everything those of all.
type SubscriptionList struct {
	Subscriptions []Subscription `json:"subscriptions"`
}

// Subscription says which alerts go where.
type Subscription struct {
	ID      string `json:"id"`
	Owner   string `json:"owner"` // app/user: the subscription gets what that one may see
	Created Time   `json:"created_at"`
	SubscriptionRequest
}

// SubscriptionRequest describes a new subscription. A list that is empty leaves out nothing.
type SubscriptionRequest struct {
	Name       string            `json:"name"`
	Receivers  []string          `json:"receivers"`       // ids or names
	Kinds      []string          `json:"kinds,omitempty"` // those that people are paged for when missing
	Businesses []int             `json:"businesses,omitempty"`
	Namespaces []string          `json:"namespaces,omitempty"` // patterns with * and ?
	Names      []string          `json:"names,omitempty"`      // patterns with * and ?
	Hosts      []string          `json:"hosts,omitempty"`      // networks, or patterns of agent ids, addresses and host names
	Labels     map[string]string `json:"labels,omitempty"`     // of processes; all must fit
	GroupBy    []string          `json:"group_by,omitempty"`   // kind, namespace, name, host; kind and namespace when missing
	Wait       string            `json:"wait,omitempty"`       // before the first message of a group; 5s when missing
	Interval   string            `json:"interval,omitempty"`   // between messages of a group with news; 1m when missing
	Repeat     string            `json:"repeat,omitempty"`     // before an alert that still fires is sent again; 4h when missing
}

// SubscriptionChange has the settings of a subscription that change. What is missing stays as it is; an empty list leaves out
// nothing, and an empty time is the default.
type SubscriptionChange struct {
	Name       *string           `json:"name,omitempty"`
	Receivers  []string          `json:"receivers,omitzero"` // ids or names
	Kinds      []string          `json:"kinds,omitzero"`     // those that people are paged for when empty
	Businesses []int             `json:"businesses,omitzero"`
	Namespaces []string          `json:"namespaces,omitzero"` // patterns with * and ?
	Names      []string          `json:"names,omitzero"`      // patterns with * and ?
	Hosts      []string          `json:"hosts,omitzero"`      // networks, or patterns of agent ids, addresses and host names
	Labels     map[string]string `json:"labels,omitzero"`     // of processes; all must fit
	GroupBy    []string          `json:"group_by,omitzero"`   // kind, namespace, name, host; kind and namespace when empty
	Wait       *string           `json:"wait,omitempty"`
	Interval   *string           `json:"interval,omitempty"`
	Repeat     *string           `json:"repeat,omitempty"`
}

// DeadLetterList has the newest messages that could not be delivered.
type DeadLetterList struct {
	DeadLetters []DeadLetter `json:"dead_letters"`
}

// DeadLetter is a message that could not be delivered.
type DeadLetter struct {
	ID           int64  `json:"id"`
	Receiver     string `json:"receiver"`      // its id
	ReceiverName string `json:"receiver_name"` // empty if it is gone
	Subscription string `json:"subscription"`
	Title        string `json:"title"`
	Tries        int    `json:"tries"`
	Error        string `json:"error"`
	Created      Time   `json:"created_at"`
}

// Receivers lists the receivers that the caller may use.
func (c *Client) Receivers(ctx context.Context) (list ReceiverList, err error) {
	return list, c.get(ctx, "/api/v1/receivers", nil, &list)
}

// CreateReceiver makes a receiver.
func (c *Client) CreateReceiver(ctx context.Context, r ReceiverRequest) (id CreatedID, err error) {
	return id, c.write(ctx, http.MethodPost, "/api/v1/receivers", r, &id)
}

// ChangeReceiver changes settings of a receiver.
func (c *Client) ChangeReceiver(ctx context.Context, id string, change ReceiverChange) (n NamedID, err error) {
	return n, c.write(ctx, http.MethodPut, "/api/v1/receivers/"+url.PathEscape(id), change, &n)
}

// RemoveReceiver removes a receiver that no subscription uses.
func (c *Client) RemoveReceiver(ctx context.Context, id string) (n NamedID, err error) {
	return n, c.write(ctx, http.MethodDelete, "/api/v1/receivers/"+url.PathEscape(id), nil, &n)
}

// TestReceiver sends a test message. It fails with the reason if the message does not arrive.
func (c *Client) TestReceiver(ctx context.Context, id string) (t ReceiverTested, err error) {
	return t, c.write(ctx, http.MethodPost, "/api/v1/receivers/"+url.PathEscape(id)+"/test", struct{}{}, &t)
}

// Subscriptions lists the subscriptions of the caller.
func (c *Client) Subscriptions(ctx context.Context) (list SubscriptionList, err error) {
	return list, c.get(ctx, "/api/v1/subscriptions", nil, &list)
}

// Subscribe makes a subscription.
func (c *Client) Subscribe(ctx context.Context, r SubscriptionRequest) (id CreatedID, err error) {
	return id, c.write(ctx, http.MethodPost, "/api/v1/subscriptions", r, &id)
}

// ChangeSubscription changes settings of a subscription.
func (c *Client) ChangeSubscription(ctx context.Context, id string, change SubscriptionChange) (n NamedID, err error) {
	return n, c.write(ctx, http.MethodPut, "/api/v1/subscriptions/"+url.PathEscape(id), change, &n)
}

// Unsubscribe removes a subscription.
func (c *Client) Unsubscribe(ctx context.Context, id string) (n NamedID, err error) {
	return n, c.write(ctx, http.MethodDelete, "/api/v1/subscriptions/"+url.PathEscape(id), nil, &n)
}

// DeadLetters lists the newest messages that could not be delivered.
func (c *Client) DeadLetters(ctx context.Context) (list DeadLetterList, err error) {
	return list, c.get(ctx, "/api/v1/dead-letters", nil, &list)
}

// RetryDeadLetter tries to deliver a message again.
func (c *Client) RetryDeadLetter(ctx context.Context, id int64) error {
	return c.write(ctx, http.MethodPost, "/api/v1/dead-letters/"+strconv.FormatInt(id, 10)+"/retry", struct{}{}, nil)
}

// RemoveDeadLetter removes a message.
func (c *Client) RemoveDeadLetter(ctx context.Context, id int64) error {
	return c.write(ctx, http.MethodDelete, "/api/v1/dead-letters/"+strconv.FormatInt(id, 10), nil, nil)
}
