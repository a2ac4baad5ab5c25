package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/contest"
	"github.com/mcpsplice/mcpsplice/bench/internal/drive"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// Clients are compared over each transport on their own.
const (
	clientHTTP  = transport("client, HTTP")
	clientStdio = transport("client, stdio")
)

// clientCells returns the cells of clients over a transport.
func (m *meter) clientCells(t transport, r wire.Revision) []cell {
	var list []cell
	for _, size := range m.options.sizes.values {
		for _, n := range m.options.inFlight.values {
			if size <= medium && n <= mostClientCalls {
				list = append(list, cell{t, r, size, n})
			}
		}
	}
	return list
}

// mostClientCalls is how many calls one client makes at a time.
const mostClientCalls = 16

// measureClients has every client in turn call the floor.
func (m *meter) measureClients(ctx context.Context, rep int, r wire.Revision) {
	floor := contest.FloorOverHTTP()
	server, err := m.start(ctx, &floor, r, false)
	if err != nil {
		m.noteText(client, r, floor.Name, err)
		return
	}
	defer server.Stop()
	list := m.clients
	first := rep % max(1, len(list))
	list = append(list[first:len(list):len(list)], list[:first]...)
	for _, t := range []transport{clientHTTP, clientStdio} {
		for _, cl := range m.clientCells(t, r) {
			for i := range list {
				if c := &list[i]; c.Speaks(r) && c.Goes(t == clientHTTP) {
					m.noteText(t, r, c.Name, m.measureClient(ctx, rep, cl, c, server.Addr()))
				}
			}
		}
	}
}

func (m *meter) measureClient(ctx context.Context, rep int, cl cell, c *contest.Client, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, patience+m.options.time)
	defer cancel()
	task := drive.Task{Revision: cl.Revision, Size: cl.Size, InFlight: cl.InFlight, Time: m.options.time}
	if cl.Transport == clientHTTP {
		task.Addr = addr
	}
	r, err := c.Measure(ctx, m.paths, task, m.home)
	if err != nil {
		return fmt.Errorf("%d B, %d in flight: %w", cl.Size, cl.InFlight, err)
	}
	calls := float64(r.Calls)
	m.results.Loads = append(m.results.Loads, load{
		cell: cl, Rep: rep, Contestant: c.Name, Calls: r.Calls,
		PerSecond: calls / r.Elapsed.Seconds(), P50: microseconds(r.P50), P99: microseconds(r.P99),
		CPU: r.CPU.Seconds() / calls * 10_000, Peak: float64(r.Peak),
	})
	if rep == 0 && cl.InFlight == 1 && r.Bytes > 0 && c.Name != contest.RawClient {
		m.results.Heaps = append(m.results.Heaps, heap{
			Transport: cl.Transport, Revision: cl.Revision, Size: cl.Size, Contestant: c.Name,
			Bytes: float64(r.Bytes) / calls, Objects: float64(r.Objects) / calls, GCs: float64(r.GCs) / calls * 1000,
		})
	}
	return nil
}

// toTypedAt is the column of the processor time to that of the typed raw client.
const toTypedAt = 4

// renderClients writes the tables of clients.
func renderClients(b *bytes.Buffer, r *results) {
	for _, t := range []transport{clientHTTP, clientStdio} {
		var group cell
		for _, c := range r.cells(t) {
			if c.Revision != group.Revision || c.Size != group.Size {
				group = c
				fmt.Fprintf(b, "\n## Clients of `floor`, %s, %s, %s\n\nCPU is that of the client.\n\n", shortTitle(t), c.Revision, size(c.Size))
				head := []string{"in flight", "client", "CPU per call", "× raw", "× raw-typed", "p50", "× raw", "calls/s", "peak memory"}
				if t == clientHTTP {
					head = slices.Insert(head, toTypedAt+1, "× net-http")
				}
				row(b, head...)
				rule(b, "rl"+strings.Repeat("r", len(head)-2))
			}
			for _, k := range contest.Clients() {
				if r.spread(c, k.Name, perSecond).N == 0 {
					continue
				}
				cells := []string{
					strconv.Itoa(c.InFlight), k.Name,
					median(r.spread(c, k.Name, cpuPerCall), latency), between(r.ratio(c, k.Name, cpu), plain),
					between(r.toRawTyped(c, k.Name, cpu), plain),
					median(r.spread(c, k.Name, p50), latency), between(r.ratio(c, k.Name, p50), plain),
					median(r.spread(c, k.Name, perSecond), count), median(r.spread(c, k.Name, peak), mebibytes),
				}
				if t == clientHTTP {
					cells = slices.Insert(cells, toTypedAt+1, between(r.toNetHTTP(c, k.Name, cpu), plain))
				}
				row(b, cells...)
			}
		}
	}
}

// cpuPerCall is cpu in microseconds, for one call.
func cpuPerCall(l *load) float64 {
	return l.CPU / 10_000 * float64(time.Second/time.Microsecond)
}

// clientTargets returns the targets of clients. What no client can reach that looks at
// a text is to be told from what this one could: hence the same with the typed limit.
func clientTargets() []target {
	const ratio = 2
	var list []target
	for _, t := range []transport{clientHTTP, clientStdio} {
		for _, s := range []int{small, medium} {
			for _, n := range []int{1, mostClientCalls} {
				name := fmt.Sprintf("client, %s, %s, %d in flight: CPU to ", shortTitle(t), size(s), n)
				list = append(list,
					target{name + "`raw`", ratio, false, times, func(r *results, rev wire.Revision) spread {
						return r.ratio(cell{t, rev, s, n}, contest.SpliceClient, cpu)
					}},
					target{name + "`raw-typed`", ratio, false, times, func(r *results, rev wire.Revision) spread {
						return r.toRawTyped(cell{t, rev, s, n}, contest.SpliceClient, cpu)
					}})
			}
		}
	}
	return list
}
