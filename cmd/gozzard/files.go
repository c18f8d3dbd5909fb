package main

import "github.com/gozzard/gozzard/internal/server"

// credentials is the file by which a caller finds and uses a server.
type credentials = server.Credentials
