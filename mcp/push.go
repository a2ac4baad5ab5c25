package mcp

// ProgressParams are the params of notifications/progress (2026-07-28,
// basic/patterns/progress).
type ProgressParams struct {
	ProgressToken JSON     `json:"progressToken"` // a string or an integer
	Progress      float64  `json:"progress"`      // grows
	Total         *float64 `json:"total,omitzero"`
	Message       string   `json:"message,omitzero"`
	Meta          Object   `json:"_meta,omitzero"`
	Extra         Object   `json:",embed"` // other members
}

// LogParams are the params of notifications/message (2026-07-28,
// server/utilities/logging).
type LogParams struct {
	Level  Level  `json:"level"`
	Logger string `json:"logger,omitzero"`
	Data   JSON   `json:"data"`
	Meta   Object `json:"_meta,omitzero"`
	Extra  Object `json:",embed"` // other members
}

// CancelledParams are the params of notifications/cancelled.
type CancelledParams struct {
	RequestID JSON   `json:"requestId,omitzero"` // a string or an integer
	Reason    string `json:"reason,omitzero"`
	Meta      Object `json:"_meta,omitzero"`
	Extra     Object `json:",embed"` // other members
}
