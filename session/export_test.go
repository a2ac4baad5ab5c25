package session

// Watched returns how many resources the client keeps count of.
func (c *Client) Watched() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.resources)
}

// Open returns how many questions of the server the client knows.
func (c *Client) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.questions)
}

// UnsubscribeTimeout and LevelTimeout are how long a silent server is waited for.
const (
	UnsubscribeTimeout = unsubscribeTimeout
	LevelTimeout       = levelTimeout
)

// TaskCancelWait is how long a server that does not answer is told of a
// cancellation.
const TaskCancelWait = taskCancelWait

// TaskNameWait is how long a question about a task that is not known waits.
const TaskNameWait = taskNameWait

// ToolListTimeout and TaskCreateWait are how long a server is waited for that does
// not list its tools, or does not say which task it has made.
const (
	ToolListTimeout = toolListTimeout
	TaskCreateWait  = taskCreateWait
)

// Tasks returns how many tasks of the server the client knows.
func (c *Client) Tasks() int {
	c.tasks.mu.Lock()
	defer c.tasks.mu.Unlock()
	return len(c.tasks.byID)
}

// Early returns how many messages about tasks wait, their bytes, and what messages are about
// that go on.
func (c *Client) Early() (waiting, size, going int) {
	c.tasks.mu.Lock()
	defer c.tasks.mu.Unlock()
	return len(c.tasks.waiting), c.tasks.size, len(c.tasks.going)
}

// Know has a task be known, and not yet go on what has waited for that.
func (c *Client) Know(id, owner string) {
	c.tasks.mu.Lock()
	defer c.tasks.mu.Unlock()
	c.tasks.add(&knownTask{id: id, owner: owner})
}

// LateStep is how long a call waits at a time for late log messages, LateWait how long in
// all, and MaxVain how many do so in vain.
const (
	LateStep = lateStep
	LateWait = lateSteps * lateStep
	MaxVain  = maxVain
)
