// Package model goes through every order of events, to a depth, of the rules by which one of several controllers
// leads and a node may run what it was given: the seat ([leader.Seat]), the contact of a node ([session.DrivenNode])
// and the lease that a new leader grants, with their own code. Around it are a shared row, two controllers, a node
// with one process, and lines that lose and delay what they carry.
//
// The one property: no leader takes a gang for gone, and starts it elsewhere, while its process runs here.
//
// It takes no part in the product; package sim plays the whole at random, this a small part in full.
package model
