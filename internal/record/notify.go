package record

import (
	"reflect"
	"time"

	"github.com/gozzard/gozzard"
)

// ReceiverKind says how alerts reach a receiver. The values are stored.
type ReceiverKind string

// The kinds of receivers. A command is a file of the server's machine: it is not in the record.
const (
	ReceiverWebhook      ReceiverKind = "webhook"
	ReceiverAlertmanager ReceiverKind = "alertmanager"
	ReceiverMail         ReceiverKind = "mail"
	ReceiverCommand      ReceiverKind = "command"
	ReceiverWeCom        ReceiverKind = "wecom"
	ReceiverDingTalk     ReceiverKind = "dingtalk"
	ReceiverFeishu       ReceiverKind = "feishu"
	ReceiverSlack        ReceiverKind = "slack"
)

// Receiver is where alerts go.
type Receiver struct {
	ID       string
	Name     string
	Kind     ReceiverKind
	Shared   bool // subscriptions of everybody may use it; otherwise only those of admins of everything
	Settings ReceiverSettings
	Creator  gozzard.Caller
	Created  time.Time
}

// Same reports whether two receivers have the same settings.
func (r *Receiver) Same(o *Receiver) bool {
	return r.ID == o.ID && r.Name == o.Name && r.Kind == o.Kind && r.Shared == o.Shared && reflect.DeepEqual(r.Settings, o.Settings)
}

// ReceiverChange has the settings of a receiver that change. What is nil stays as it is; an empty text removes a setting.
type ReceiverChange struct {
	Name, URL, Secret, Authorization, CA, Language, Server, TLS, User, Password, From *string

	Shared *bool
	To     []string
}

// ReceiverSettings are stored as JSON. Secret, Authorization and Password are in no answer of the API.
type ReceiverSettings struct {
	URL           string `json:"url,omitempty"`
	Secret        string `json:"secret,omitempty"`        // of signatures
	Authorization string `json:"authorization,omitempty"` // the value of that header
	CA            string `json:"ca,omitempty"`            // PEM: the authorities of the receiver's certificate; "": those of the system
	Language      string `json:"language,omitempty"`      // en or zh

	// Of mail.
	Server   string   `json:"server,omitempty"` // HOST:PORT
	TLS      string   `json:"tls,omitempty"`    // starttls, tls or none
	User     string   `json:"user,omitempty"`
	Password string   `json:"password,omitempty"`
	From     string   `json:"from,omitempty"`
	To       []string `json:"to,omitempty"`
}

// Subscription says which alerts go where. Its owner gets only what it may see when a message is sent.
type Subscription struct {
	ID      string         `json:"-"`
	Owner   gozzard.Caller `json:"-"`
	Created time.Time      `json:"-"`
	SubscriptionSpec
}

// SubscriptionSpec is the part of a subscription that its owner chooses. A list that is empty leaves out nothing.
type SubscriptionSpec struct {
	Name       string            `json:"name"`
	Receivers  []string          `json:"receivers"`
	Kinds      []string          `json:"kinds,omitempty"`
	Businesses []int             `json:"businesses,omitempty"`
	Namespaces []string          `json:"namespaces,omitempty"` // patterns with * and ?
	Names      []string          `json:"names,omitempty"`      // patterns with * and ?
	Hosts      []string          `json:"hosts,omitempty"`      // networks, or patterns of agents and addresses
	Labels     map[string]string `json:"labels,omitempty"`     // all must fit
	GroupBy    []string          `json:"group_by,omitempty"`
	Wait       time.Duration     `json:"wait,omitempty"`     // before the first message of a group
	Interval   time.Duration     `json:"interval,omitempty"` // between messages of a group with news
	Repeat     time.Duration     `json:"repeat,omitempty"`   // before an alert that still fires is sent again
}

// SubscriptionChange has the settings of a subscription that change. What is nil stays as it is; an empty list leaves out nothing.
type SubscriptionChange struct {
	Name                                                *string
	Receivers, Kinds, Namespaces, Names, Hosts, GroupBy []string

	Businesses             []int
	Labels                 map[string]string
	Wait, Interval, Repeat *time.Duration // 0: the default
}

// Alert is a condition of a process or a host, or something that happened to it, for one subscription.
type Alert struct {
	Fingerprint string            `json:"fingerprint"`
	Kind        string            `json:"kind"`
	Agent       gozzard.AgentID   `json:"agent,omitempty"`
	Addr        gozzard.HostAddr  `json:"addr"`
	Hostname    string            `json:"hostname,omitempty"`
	Key         gozzard.Key       `json:"key"`
	Labels      map[string]string `json:"labels,omitempty"` // of the process
	Task        string            `json:"task,omitempty"`
	App         string            `json:"app,omitempty"`  // of the task
	User        string            `json:"user,omitempty"` // of the task
	Message     string            `json:"message,omitempty"`
	Starts      time.Time         `json:"starts"`
	Ends        time.Time         `json:"ends,omitzero"`    // zero: it fires
	Moment      bool              `json:"moment,omitempty"` // it happened, and has no end
	Changed     time.Time         `json:"changed"`          // when the server learned the newest of it
	News        bool              `json:"news,omitempty"`   // since the last message
	NewsAt      time.Time         `json:"news_at,omitzero"` // the oldest news
	Sent        time.Time         `json:"sent,omitzero"`    // in the last message; zero: in none
}

// Firing reports whether the alert has not ended.
func (a *Alert) Firing() bool { return a.Ends.IsZero() }

// AlertKey names an alert of a subscription.
type AlertKey struct{ Subscription, Fingerprint string }

// SubscribedAlert is an alert with its subscription.
type SubscribedAlert struct {
	Subscription string
	Alert
}

// Notification is a message that waits for its receiver, or that could not be delivered.
type Notification struct {
	ID           int64
	Receiver     string
	Subscription string
	Body         []byte // JSON of package notify
	Created      time.Time
	Tries        int
	Next         time.Time // not before
	Dead         bool      // it is not tried any more
	Error        string    // of the last try
}

// Backlog is what was not delivered to a receiver. Messages are tried in their order, so the first one that waits has the
// last error.
type Backlog struct {
	Waiting int
	Oldest  time.Time // of those that wait
	Tries   int       // of the first one that failed
	Error   string    // of the last of these tries
	Next    time.Time // when the first one is tried
	Dead    int       // messages that are not tried any more
}

// DeadLetter is a message that could not be delivered, as admins see it.
type DeadLetter struct {
	Notification
	ReceiverName string // "" if the receiver is gone
	Title        string
}

// NotifyState is what the record has of the work on alerts.
type NotifyState struct {
	Event  uint64 // number of the newest event that was looked at
	Audit  int64  // the same of the audit, for tasks that ended
	Known  bool   // false: nothing was looked at so far
	Alerts []SubscribedAlert
	Lost   map[gozzard.AgentID]time.Time // hosts that are lost, and since when
}

// NotifyChange is recorded in one transaction.
type NotifyChange struct {
	Event    uint64
	Audit    int64
	Alerts   []SubscribedAlert
	Gone     []AlertKey
	Messages []Notification // without their IDs
}

// The bounds of what is recorded for receivers.
const (
	MaxReceivers     = 200
	MaxSubscriptions = 1000
	MaxOwnedSubs     = 50   // of one owner
	MaxWaiting       = 1000 // messages of one receiver
	MaxDead          = 1000 // messages that could not be delivered, of all receivers
)
