package schema

import "github.com/mcpsplice/mcpsplice/mcp"

// CheckBoth checks a value with the checker and with the library of schemas. Known
// says that the checker knows the schema.
func CheckBoth(schema, value []byte) (fast, slow error, known bool) {
	f, err := New(mcp.JSON(schema))
	if err != nil {
		return err, err, false
	}
	tree, err := decode(schema)
	if err != nil {
		return err, err, false
	}
	s, err := newSlow(mcp.JSON(schema), tree)
	if err != nil {
		return err, err, false
	}
	return f.Check(value), s.Check(value), f.fast != nil
}

// Check checks a value as a tool's arguments are.
func Check(schema, value []byte) error {
	s, err := New(mcp.JSON(schema))
	if err != nil {
		return err
	}
	return s.Check(value)
}
