//go:build race

package rpc

const raceDetector = true
