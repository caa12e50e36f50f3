// Package day keeps how the cards of a cluster stood in the last 24 hours.
//
// A point is the mean of the samples of ten minutes; there are 144 of them of the cluster and as many, shorter ones, of each
// node that has cards. So it takes 3 KB and 0.6 KB a node, whatever happens. A point of which there was no sample is unknown.
//
// It is kept in a file of the controller's directory, written once a point: what a crash takes is ten minutes. A controller
// that stands by samples nothing; after it has taken over, what it has not seen is unknown.
package day
