// Package process starts child processes and makes sure that they end.
//
// [Start] runs a command by its argument vector, never through a shell, with
// an environment that is built up rather than inherited ([Environment]). The
// child leads a session and process group of its own, so that a Ctrl+C or a
// Ctrl+Z at our terminal does not reach it, and so that all that it starts
// can be ended with it. Its stderr is always drained: the last bytes are kept
// for error messages, and an optional sink gets all that it can take.
//
// # The end of a group
//
// [Process.Close] follows the shutdown of MCP's stdio binding: close stdin,
// wait, SIGTERM, wait, SIGKILL. What it waits for is the whole group, not the
// child alone: the real server is often a grandchild behind npx, uvx or a
// shell, and it keeps the pipes open. A child that ends by itself takes its
// group with it in the same way.
//
// A process group number may be used again as soon as the last process that
// bears it was reaped. On Linux the child is therefore left a zombie until
// the group was signalled and seen to be gone; a zombie holds its numbers.
// Members are found in /proc, by session, which also reaches those that left
// the group but not the session (timeout(1), shells with job control). Where
// /proc is not mounted the group is killed when the child has ended, without a
// look whether anybody is left. Other systems
// reap at once and signal only what kill(2) with signal 0 has just shown to
// exist. What calls setsid(2) itself leaves our reach on every system but
// Windows, whose job objects have no way out.
//
// # Our own end
//
// Nothing that runs inside a process survives its kill -9. Three things
// outside it end the children then:
//
//   - the kernel closes their stdin, which asks a well-behaved server to exit;
//   - Linux sends SIGTERM to the direct children (PR_SET_PDEATHSIG);
//   - a guardian, a second process of this program's own executable, holds
//     the read end of a pipe from us and knows the group numbers. When the
//     pipe ends it sends SIGTERM to every group, waits up to two seconds, and
//     sends SIGKILL to what is left.
//
// The guardian is started in the background with the first child and ends
// with the last one; [GuardianErr] tells whether it could be started. A group
// is registered right after its fork. Between the fork and the registration,
// and until the first guardian runs (some tens of milliseconds), only the
// first two measures stand.
//
// The guardian is recognised by its argv[0] in an init function of this
// package, which never returns there. Any program that links this package,
// test binaries included, therefore starts itself a second time; main and
// TestMain do not run in that second process, init functions of packages
// initialised earlier do.
//
// On Windows a job object per child does the work of group and guardian.
package process
