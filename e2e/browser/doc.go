// Package browser opens the page of a real cluster in a real Chromium.
//
// A bounded share runs in CI, all of it in `make browser`. Without chromium the tests are skipped and
// say so. Every flow fails on a request to another host and on an error in the console.
package browser
