// Package rounds kills servers, and disturbs the lines to them, while a client
// calls them, and looks at what becomes of the calls: that each ends, with what is
// true of it, by its deadline; that none is executed twice; that the client goes on
// afterwards; and that nothing is left behind. What happens in a round follows from
// a seed, save for the scheduling of processes.
package rounds
