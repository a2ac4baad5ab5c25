package mcp

import (
	"bytes"
	"slices"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// ReadMetadata returns the metadata that meta, the _meta of a modern request,
// holds. A *jsonrpc.Error of CodeInvalidParams says what is missing or
// malformed (2026-07-28, basic, Per-request protocol fields).
func ReadMetadata(meta *jsonrpc.Value) (Metadata, *jsonrpc.Error) {
	var m Metadata
	raw, _ := meta.Lookup(MetaProtocolVersion)
	revision, ok := readRevision(raw)
	if !ok {
		return m, missingMeta(MetaProtocolVersion, "a string")
	}
	m.Revision = revision
	if m.Capabilities, ok = objectIn(meta, MetaClientCapabilities); !ok {
		return m, missingMeta(MetaClientCapabilities, "an object")
	}
	if raw, has := meta.Lookup(MetaClientInfo); has {
		if raw[0] != '{' {
			return m, missingMeta(MetaClientInfo, "an object")
		}
		m.Client = raw
	}
	if raw, has := meta.Lookup(MetaLogLevel); has {
		level, _ := jsonrpc.Unquote(raw)
		if m.LogLevel = Level(level); !m.LogLevel.Valid() {
			return m, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: _meta[%q] is not a log level", MetaLogLevel)
		}
	}
	m.ProgressToken = ReadProgressToken(meta)
	return m, nil
}

// readRevision returns the revision that a JSON string names, without
// allocating for the newest.
func readRevision(raw []byte) (Revision, bool) {
	if string(raw) == `"`+string(NewestModern)+`"` {
		return NewestModern, true
	}
	text, ok := jsonrpc.Unquote(raw)
	return Revision(text), ok
}

func missingMeta(key, want string) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: _meta[%q] must be %s", key, want)
}

func objectIn(v *jsonrpc.Value, name string) ([]byte, bool) {
	raw, ok := v.Lookup(name)
	return raw, ok && raw[0] == '{'
}

// ReadProgressToken returns the progress token in meta, absent if there is none
// or it is neither string nor integer.
func ReadProgressToken(meta *jsonrpc.Value) jsonrpc.ID {
	raw, ok := meta.Lookup(MetaProgressToken)
	if !ok {
		return jsonrpc.ID{}
	}
	// A copy: late progress is compared with it when the request is over.
	token, ok := jsonrpc.RawID(bytes.Clone(raw))
	if !ok {
		return jsonrpc.ID{}
	}
	return token
}

// HasReserved reports whether meta holds a key that only modern requests have.
func HasReserved(meta *jsonrpc.Value) bool {
	_, ok := meta.Lookup(MetaProtocolVersion)
	return ok
}

var (
	emptyObject = []byte("{}")
	legacyHead  = []byte(`{"` + MetaProgressToken + `":`)
	metaName    = "_meta"
)

// ForModern returns the params of req as a modern server needs them: with the
// reserved keys of _meta for revision, and progress under token, which may be
// absent. Bytes that need no change are not changed.
func ForModern(req *Request, revision Revision, token jsonrpc.ID) jsonrpc.Value {
	return jsonrpc.Edited(&req.Params, EditsForModern(req, revision, token)...)
}

// EditsForModern returns the edits that make the params of req what ForModern
// returns.
func EditsForModern(req *Request, revision Revision, token jsonrpc.ID) []jsonrpc.Edit {
	m := &req.Meta
	if m.Revision == revision && token.Key() == m.ProgressToken.Key() {
		return nil
	}
	edits := [5]jsonrpc.Edit{
		{Name: MetaProtocolVersion, Value: jsonrpc.AppendString(nil, string(revision))},
		{Name: MetaClientInfo, Value: m.Client},
		{Name: MetaClientCapabilities, Value: m.modernCapabilities()},
		{Name: MetaLogLevel},
		{Name: MetaProgressToken, Value: token.Raw()},
	}
	if m.LogLevel != "" {
		edits[3].Value = jsonrpc.AppendString(nil, string(m.LogLevel))
	}
	if m.Revision.Era() == Modern { // only the token differs
		return metaEdit(&req.Params, edits[4:]...)
	}
	return metaEdit(&req.Params, edits[:]...)
}

// ForLegacy returns the params of req as a legacy server needs them: without
// the reserved keys of _meta, and with progress under token, which may be
// absent. A _meta that this empties goes too.
func ForLegacy(req *Request, token jsonrpc.ID) jsonrpc.Value {
	return jsonrpc.Edited(&req.Params, EditsForLegacy(req, token)...)
}

// EditsForLegacy returns the edits that make the params of req what ForLegacy
// returns.
func EditsForLegacy(req *Request, token jsonrpc.ID) []jsonrpc.Edit {
	meta := req.Params.Get(metaName)
	switch {
	case !meta.IsObject() && token.IsZero():
		return nil
	case meta.IsZero():
		return newMeta(legacyHead, token)
	}
	if req.Meta.Revision.Era() == Legacy { // only the token differs
		if token.Key() == req.Meta.ProgressToken.Key() {
			return nil
		}
		return metaEdit(&req.Params, jsonrpc.Edit{Name: MetaProgressToken, Value: token.Raw()})
	}
	return metaEdit(&req.Params,
		jsonrpc.Edit{Name: MetaProtocolVersion},
		jsonrpc.Edit{Name: MetaClientInfo},
		jsonrpc.Edit{Name: MetaClientCapabilities},
		jsonrpc.Edit{Name: MetaLogLevel},
		jsonrpc.Edit{Name: MetaProgressToken, Value: token.Raw()},
	)
}

// editMeta returns params with edits made to their _meta, which goes if that
// leaves nothing of it.
func editMeta(params *jsonrpc.Value, edits ...jsonrpc.Edit) jsonrpc.Value {
	return jsonrpc.Edited(params, metaEdit(params, edits...)...)
}

// metaEdit returns the edit of params that makes edits to their _meta; none if that
// changes nothing.
func metaEdit(params *jsonrpc.Value, edits ...jsonrpc.Edit) []jsonrpc.Edit {
	meta := params.Get(metaName)
	wasEmpty := meta.IsObject() && meta.Len() == 0
	raw := jsonrpc.AppendEdited(make([]byte, 0, len(meta.Raw())+256), &meta, edits...)
	if string(raw) == "{}" && !wasEmpty {
		if meta.IsZero() {
			return nil
		}
		raw = nil
	}
	return []jsonrpc.Edit{{Name: metaName, Value: raw}}
}

// WithSubscription returns params, or a result, with the subscription id set in
// its _meta; an absent id removes it.
func WithSubscription(v *jsonrpc.Value, id jsonrpc.ID) jsonrpc.Value {
	return editMeta(v, jsonrpc.Edit{Name: MetaSubscriptionID, Value: id.Raw()})
}

// SubscriptionID returns the subscription id in the _meta of params, absent if
// there is none.
func SubscriptionID(params *jsonrpc.Value) jsonrpc.ID {
	meta := params.Get(metaName)
	raw, ok := meta.Lookup(MetaSubscriptionID)
	if !ok {
		return jsonrpc.ID{}
	}
	id, ok := jsonrpc.RawID(raw)
	if !ok {
		return jsonrpc.ID{}
	}
	return id
}

// WithProgressToken returns the params of a progress notification with another
// token.
func WithProgressToken(params *jsonrpc.Value, token jsonrpc.ID) jsonrpc.Value {
	return jsonrpc.Edited(params, jsonrpc.Edit{Name: MetaProgressToken, Value: token.Raw()})
}

// ProgressToken returns the token of a progress notification's params.
func ProgressToken(params *jsonrpc.Value) jsonrpc.ID { return ReadProgressToken(params) }

// ForModernClient returns a result of the method, indexed, and the edits that
// make it what a modern client must get: a resultType, and caching hints if the
// method has them.
func ForModernClient(method string, r Result) (Result, []jsonrpc.Edit) {
	r.Value = r.Indexed()
	_, typed := r.Lookup("resultType")
	if !IsCacheable(method) || r.Type() != Complete {
		if typed {
			return r, nil
		}
		return r, slices.Clip(modernEdits[:1])
	}
	_, ttl := r.Lookup("ttlMs")
	_, scope := r.Lookup("cacheScope")
	if !typed && !ttl && !scope {
		return r, modernEdits
	}
	edits := make([]jsonrpc.Edit, 0, len(modernEdits))
	for i, there := range [...]bool{typed, ttl, scope} {
		if !there {
			edits = append(edits, modernEdits[i])
		}
	}
	return r, edits
}

var modernEdits = []jsonrpc.Edit{
	{Name: "resultType", Value: []byte(`"complete"`)},
	{Name: "ttlMs", Value: []byte("0")},
	{Name: "cacheScope", Value: []byte(`"private"`)},
}
