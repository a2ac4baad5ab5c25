package main

import (
	"context"
	"encoding/base64"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// A red dot, and a moment of silence.
var (
	dotPNG, _ = base64.StdEncoding.DecodeString(
		"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
	silenceWAV, _ = base64.StdEncoding.DecodeString("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=")
)

// schemaOf2020 has what JSON Schema 2020-12 has beyond what Go types give.
const schemaOf2020 = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "$defs": {
    "address": {
      "$anchor": "addressDef",
      "type": "object",
      "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
    }
  },
  "properties": {
    "name": {"type": "string"},
    "address": {"$ref": "#/$defs/address"},
    "contactMethod": {"type": "string", "enum": ["phone", "email"]},
    "phone": {"type": "string"},
    "email": {"type": "string"}
  },
  "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
  "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
  "then": {"required": ["phone"]},
  "else": {"required": ["email"]},
  "additionalProperties": false
}`

type nothing struct{}

// addContentTools adds tools that give each kind of content.
func addContentTools(s *server.Server) {
	give := func(name, description string, content ...mcp.Content) {
		server.AddTool(s, mcp.Tool{Name: name, Description: description},
			func(context.Context, *server.Call, nothing) (mcp.Contents, error) { return content, nil })
	}
	text := &mcp.Text{Text: "This is a simple text response for testing."}
	picture := &mcp.Image{Data: dotPNG, MIMEType: "image/png"}
	embedded := "This is an embedded resource content."
	give("test_simple_text", "Gives a text.", text)
	give("test_image_content", "Gives an image.", picture)
	give("test_audio_content", "Gives a recording.", &mcp.Audio{Data: silenceWAV, MIMEType: "audio/wav"})
	give("test_embedded_resource", "Gives a resource.", &mcp.EmbeddedResource{Resource: mcp.ResourceContents{
		URI: "test://embedded-resource", MIMEType: "text/plain", Text: &embedded,
	}})
	mixed := `{"test":"data","value":123}`
	give("test_multiple_content_types", "Gives a text, an image and a resource.", text, picture,
		&mcp.EmbeddedResource{Resource: mcp.ResourceContents{
			URI: "test://mixed-content-resource", MIMEType: "application/json", Text: &mixed,
		}})
	server.AddTool(s, mcp.Tool{
		Name: "json_schema_2020_12_tool", Description: "Has a schema of many keywords.", InputSchema: mcp.JSON(schemaOf2020),
	}, func(_ context.Context, c *server.Call, _ mcp.JSON) (string, error) {
		return "Called with " + string(c.Arguments()), nil
	})
	server.AddTool(s, mcp.Tool{
		Name: "test_x_mcp_header", Description: "Has an argument that is mirrored into a header.",
		InputSchema: mcp.JSON(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`),
	}, func(_ context.Context, _ *server.Call, in struct {
		Region string `json:"region"`
	}) (string, error) {
		return "region: " + in.Region, nil
	})
}
