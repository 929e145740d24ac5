// Package report keeps the results of runs and campaigns in folders, reads
// them back, and shows them: as the text summary that k6 users know, as one
// table over a campaign, and in forms for machines. Everything that it shows
// can be made again from a folder.
//
// The promise of a folder: a file is there as a whole or not at all, whatever
// kills the process, and no result is ever written over. A folder that was cut
// short can still be read.
//
// It computes no percentile and passes no verdict: those come with the
// Result. It measures nothing and talks to no server.
package report
