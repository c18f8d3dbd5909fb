package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// DeadLetters lists the newest messages that could not be delivered, with their titles as the receivers would have got them.
func (e *Engine) DeadLetters(ctx context.Context, caller gozzard.Caller) (list []record.DeadLetter, err error) {
	if err := checkAdmin(caller); err != nil {
		return nil, err
	}
	dead, err := e.o.Store.Dead(ctx, record.MaxDead)
	if err != nil {
		return nil, err
	}
	receivers, err := e.Receivers(ctx, caller)
	if err != nil {
		return nil, err
	}
	for i := range dead {
		d, language := record.DeadLetter{Notification: dead[i]}, english
		if at := slices.IndexFunc(receivers, func(r record.Receiver) bool { return r.ID == d.Receiver }); at >= 0 {
			d.ReceiverName, language = receivers[at].Name, receivers[at].Settings.Language
		}
		var m Message
		if err := json.Unmarshal(dead[i].Body, &m); err == nil {
			d.Title = title(wordsIn(language), &m, maxText)
		}
		list = append(list, d)
	}
	return list, nil
}

// RetryDead makes a dead letter a message that waits, and RemoveDead removes it.
func (e *Engine) RetryDead(ctx context.Context, caller gozzard.Caller, id int64) error {
	if err := checkAdmin(caller); err != nil {
		return err
	}
	return e.o.Store.RetryDead(ctx, id, e.o.Now(), e.row(caller, fmt.Sprint(auditRetry, id)))
}

// RemoveDead removes a dead letter.
func (e *Engine) RemoveDead(ctx context.Context, caller gozzard.Caller, id int64) error {
	if err := checkAdmin(caller); err != nil {
		return err
	}
	return e.o.Store.RemoveDead(ctx, id, e.row(caller, fmt.Sprint(auditDiscard, id)))
}
