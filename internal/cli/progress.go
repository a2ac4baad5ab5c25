package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// barWidth is how many characters a bar of progress has.
const barWidth = 20

// progressLine says how far a call has come.
func progressLine(p *mcp.ProgressParams, took time.Duration) string {
	var line strings.Builder
	if p.Total != nil && *p.Total > 0 {
		part := min(max(p.Progress/(*p.Total), 0), 1)
		done := int(part * barWidth)
		fmt.Fprintf(&line, "[%s%s] %3.0f%%", strings.Repeat("=", done), strings.Repeat(" ", barWidth-done), part*100)
	} else {
		line.WriteString(strconv.FormatFloat(p.Progress, 'g', 6, 64))
	}
	if p.Message != "" {
		line.WriteString("  " + p.Message)
	}
	fmt.Fprintf(&line, "  (%v)", took.Round(time.Second))
	return line.String()
}
