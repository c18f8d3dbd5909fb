// Package docsite serves the documentation that is built into the program, in English and Chinese, with a search. It needs no other
// host, no sign-in and no script in the browser.
package docsite
