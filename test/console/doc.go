// Package console drives the page of the real server in a real browser, for tests and benchmarks.
//
// A test starts a fleet and opens a page of it:
//
//	f := console.StartFleet(t, 1)
//	p := f.Open(t)                     // a tab with cookies and storage of its own, on the console
//	p.EnterByLink()                    // or SignIn(user, password)
//	p.Click("link", "Processes")       // by role and accessible name, as a screen reader has them
//	p.Fill("Filter", "web*")
//	p.WaitText("3 of 14")              // every wait has the limit Patience
//	p.Accessible()                     // fails with what axe-core finds
//
// A page fails its test at the end if it threw an exception, wrote an error to the console of the browser, or violated
// its Content-Security-Policy. A failed test leaves a picture of the page; its log names the file.
package console
