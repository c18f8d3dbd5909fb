package docsite

// Read serves the pages of a folder.
var Read = read
