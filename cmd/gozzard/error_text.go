package main

import (
	"crypto/x509"
	"errors"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/language"
)

// errorText is the text of an error. It comes as a finished text, from the server or from a layer below, or with a
// list. An error of the server has a message, faults and a cause: each of them is a text.
func errorText(chinese *language.Catalogue, err error) string {
	if list, ok := err.(*listError); ok && chinese != nil { // wrapped in another error it is a finished text
		return translate(chinese, list.format, list.args...)
	}
	if chinese == nil {
		return withUnit(err.Error())
	}
	var e *gozzard.Error
	if !errors.As(err, &e) {
		return chinese.Message(err.Error())
	}

	text := printable(err.Error())
	prefix, ok := strings.CutSuffix(text, printable(e.Error()))
	if !ok {
		return chinese.Message(text)
	}
	return strings.Replace(chinese.Message(prefix+innerError), innerError, printable(partsText(chinese, e)), 1)
}

// withUnit says what to write for a duration without a unit; the Chinese text of it does. A number alone could be meant as
// seconds or as days, so none is taken for one.
func withUnit(text string) string {
	if strings.Contains(text, "time: missing unit in duration") {
		text += `: write for example 30s, 10m or 24h`
	}
	return text
}

// adviceText is what a caller of the command line can do about an error of the server that every caller gets. "" is nothing.
func adviceText(chinese *language.Catalogue, err error) string {
	// The error of a database or of a login provider is not about a server of Gozzard.
	if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) && gozzard.KindOf(err) == gozzard.ErrUnavailable {
		return "\n" + translate(chinese, "give the authority of the server, which has it in ca.pem of its data folder: "+
			"gozzard user login NAME --url URL --ca-file ca.pem. The credentials file then has it as \"ca\"")
	}
	if gozzard.KindOf(err) == gozzard.ErrNotFound && strings.HasSuffix(err.Error(), noSuchTask) {
		return "\n" + translate(chinese, onlyOwnTasks)
	}
	if gozzard.KindOf(err) != gozzard.ErrOperatorRequired {
		return ""
	}
	return "\n" + translate(chinese, "an app acts for a user: add \"bk_username\": \"NAME\" to the credentials file if the app asserts users "+
		"(gozzard app list), else \"bk_token\" with a token of gozzard user token create NAME --for-app APP; or log in as a person: "+
		"gozzard user login NAME")
}

// onlyOwnTasks says why a caller does not see a task of another one.
const onlyOwnTasks = "an app sees its own tasks only, not even the app admin those of others: to see all, log in as a person " +
	"with the role admin for everything (gozzard user login NAME)"

// noSuchTask is the answer about a task that does not exist, and about one of another app: the server does not say which.
const noSuchTask = "no such task"

// innerError stands for the text of an error inside another one.
const innerError = "\x01"

// partsText is gozzard.Error.Error in Chinese.
func partsText(chinese *language.Catalogue, e *gozzard.Error) string {
	var parts []string
	if e.Message != "" {
		parts = append(parts, chinese.Message(e.Message))
	}
	for _, f := range e.Faults {
		parts = append(parts, faultText(chinese, f))
	}

	text := strings.Join(parts, "；")
	if e.Cause != nil {
		text += "：" + errorText(chinese, e.Cause)
	}
	return text
}

// faultText is a fault of a document or a request in the language of the reader, with its place.
func faultText(chinese *language.Catalogue, f gozzard.Fault) string {
	f.Text = chinese.Message(f.Text)
	if chinese != nil && strings.HasPrefix(f.Path, "line ") { // a place in a document, not a key
		line, path, _ := strings.Cut(f.Path, ": ")
		return chinese.Message(line) + "：" + gozzard.Fault{Path: path, Text: f.Text}.String()
	}
	return f.String()
}
