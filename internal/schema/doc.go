// Package schema checks JSON values against JSON Schemas that somebody else has
// written: tools' input and output schemas, and those of forms. What it takes to
// read a schema, and to check a value, is bounded before it is done, and nothing is
// ever fetched.
package schema
