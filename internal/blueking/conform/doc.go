// Package conform compares a server with what is documented of the APIs of BlueKing GSE, Job and GSEKit. It sends the
// documented requests and says where an answer has another form. Requests and forms are data, in the folder requests.
package conform
