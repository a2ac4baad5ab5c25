package mcp

import (
	"bytes"
	"errors"

	"github.com/mcpsplice/mcpsplice/jsonrpc"

	json "github.com/go-json-experiment/json"
)

// A Content is one block of what a tool or a prompt gives, or of a message of a
// conversation with a model: a *[Text], *[Image], *[Audio], *[ResourceLink] or
// *[EmbeddedResource]; in sampling also a *[ToolUse] or *[ToolOutcome]; and an
// *[UnknownContent] for types of other revisions (2026-07-28, schema,
// ContentBlock and SamplingMessageContentBlock).
type Content interface {
	// ContentType returns the member type of the block, such as "text".
	ContentType() string
}

// Contents are blocks of content; absent ones are encoded as an empty array.
type Contents []Content

// Text is text from or for a model.
type Text struct {
	Text        string       `json:"text"`
	Annotations *Annotations `json:"annotations,omitzero"`
	Meta        Object       `json:"_meta,omitzero"`
	Extra       Object       `json:",embed"` // other members
}

// Image is a picture.
type Image struct {
	Data        []byte       `json:"data"` // base64 on the wire
	MIMEType    string       `json:"mimeType"`
	Annotations *Annotations `json:"annotations,omitzero"`
	Meta        Object       `json:"_meta,omitzero"`
	Extra       Object       `json:",embed"` // other members
}

// Audio is a recording.
type Audio struct {
	Data        []byte       `json:"data"` // base64 on the wire
	MIMEType    string       `json:"mimeType"`
	Annotations *Annotations `json:"annotations,omitzero"`
	Meta        Object       `json:"_meta,omitzero"`
	Extra       Object       `json:",embed"` // other members
}

// A ResourceLink names a resource that the client may read.
type ResourceLink struct {
	Resource
}

// An EmbeddedResource is the contents of a resource.
type EmbeddedResource struct {
	Resource    ResourceContents `json:"resource"`
	Annotations *Annotations     `json:"annotations,omitzero"`
	Meta        Object           `json:"_meta,omitzero"`
	Extra       Object           `json:",embed"` // other members
}

// A ToolUse is a model's wish to call a tool (2025-11-25, client/sampling).
type ToolUse struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Input JSON   `json:"input"` // an object
	Meta  Object `json:"_meta,omitzero"`
	Extra Object `json:",embed"` // other members
}

// A ToolOutcome tells a model what came of its [ToolUse]: a ToolResultContent of
// the schema.
type ToolOutcome struct {
	ToolUseID         string   `json:"toolUseId"`
	Content           Contents `json:"content"`
	StructuredContent JSON     `json:"structuredContent,omitzero"`
	IsError           *bool    `json:"isError,omitzero"` // nil stands for false
	Meta              Object   `json:"_meta,omitzero"`
	Extra             Object   `json:",embed"` // other members
}

// UnknownContent is a block of a type that this library does not know.
type UnknownContent struct {
	Type string
	Raw  JSON // the whole block
}

// Annotations say whom a content or a resource is for.
type Annotations struct {
	Audience     []Role   `json:"audience,omitzero"`
	Priority     *float64 `json:"priority,omitzero"`     // 0 (optional) to 1 (required)
	LastModified string   `json:"lastModified,omitzero"` // ISO 8601
	Extra        Object   `json:",embed"`                // other members
}

// A Role is who says something in a conversation.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// ContentType implements [Content].
func (*Text) ContentType() string { return "text" }

// ContentType implements [Content].
func (*Image) ContentType() string { return "image" }

// ContentType implements [Content].
func (*Audio) ContentType() string { return "audio" }

// ContentType implements [Content].
func (*ResourceLink) ContentType() string { return "resource_link" }

// ContentType implements [Content].
func (*EmbeddedResource) ContentType() string { return "resource" }

// ContentType implements [Content].
func (*ToolUse) ContentType() string { return "tool_use" }

// ContentType implements [Content].
func (*ToolOutcome) ContentType() string { return "tool_result" }

// ContentType implements [Content].
func (c *UnknownContent) ContentType() string { return c.Type }

// newContent returns an empty block of a type, nil for a type that is unknown.
func newContent(kind string) Content {
	switch kind {
	case "text":
		return new(Text)
	case "image":
		return new(Image)
	case "audio":
		return new(Audio)
	case "resource_link":
		return new(ResourceLink)
	case "resource":
		return new(EmbeddedResource)
	case "tool_use":
		return new(ToolUse)
	case "tool_result":
		return new(ToolOutcome)
	}
	return nil
}

// MarshalJSON encodes the blocks as an array, each with its type.
func (c Contents) MarshalJSON() ([]byte, error) {
	array := []byte{'['}
	for i, block := range c {
		if i > 0 {
			array = append(array, ',')
		}
		var err error
		if array, err = appendContent(array, block); err != nil {
			return nil, err
		}
	}
	return append(array, ']'), nil
}

func appendContent(dst []byte, block Content) ([]byte, error) {
	if unknown, ok := block.(*UnknownContent); ok && unknown != nil {
		if len(unknown.Raw) == 0 {
			return nil, errors.New("a block of content is empty")
		}
		return append(dst, unknown.Raw...), nil
	}
	raw, err := NewJSON(block)
	if err != nil {
		return nil, err
	}
	if raw[0] != '{' {
		return nil, errors.New("a block of content is nil")
	}
	dst = append(dst, `{"type":"`...)
	dst = append(append(dst, block.ContentType()...), '"')
	if len(raw) > len("{}") {
		dst = append(dst, ',')
	}
	return append(dst, raw[1:]...), nil
}

// UnmarshalJSON decodes an array of blocks.
func (c *Contents) UnmarshalJSON(data []byte) error {
	array, err := jsonrpc.ParseValue(data)
	if err != nil {
		return err
	}
	if raw := array.Raw(); raw[0] != '[' && !array.IsNull() {
		return errors.New("an array of content was expected")
	}
	return c.read(array.Raw())
}

func readContent(data []byte) (Content, error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	block := newContent(head.Type)
	if block == nil {
		return &UnknownContent{Type: head.Type, Raw: bytes.Clone(data)}, nil
	}
	if err := decode(data, block); err != nil {
		return nil, err
	}
	forgetType(block)
	return block, nil
}

// forgetType drops the member type from the other members of a block, which its
// Go type stands for.
func forgetType(block Content) {
	var extra *Object
	switch b := block.(type) {
	case *Text:
		extra = &b.Extra
	case *Image:
		extra = &b.Extra
	case *Audio:
		extra = &b.Extra
	case *ResourceLink:
		extra = &b.Extra
	case *EmbeddedResource:
		extra = &b.Extra
	case *ToolUse:
		extra = &b.Extra
	case *ToolOutcome:
		extra = &b.Extra
	default:
		return
	}
	if delete(*extra, "type"); len(*extra) == 0 {
		*extra = nil
	}
}
