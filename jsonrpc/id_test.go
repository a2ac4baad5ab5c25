package jsonrpc_test

import (
	"math"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

func TestIDsKeepTypeAndText(t *testing.T) {
	// B020, in one session: all of them are different ids.
	ids := []string{
		`1`, `"1"`, `"001"`, `"1e3"`, `""`, `"init-α"`, `0`, `-0`, `"0"`, `-1`, `1000`, `"null"`,
		`9007199254740993`, `9007199254740992`, `-9223372036854775808`, `123456789012345678901234567890`,
		`"` + strings.Repeat("x", jsonrpc.MaxIDBytes-2) + `"`, strings.Repeat("1", jsonrpc.MaxIDBytes),
	}
	keys := make(map[string]string)
	for _, raw := range ids {
		var m jsonrpc.Message
		if err := jsonrpc.Scan([]byte(`{"jsonrpc":"2.0","id":`+raw+`,"method":"m"}`), &m); err != nil {
			t.Errorf("B020 id %s: %v", raw, err)
			continue
		}
		if got := m.ID.String(); got != raw || string(m.ID.Raw()) != raw || m.ID.IsZero() {
			t.Errorf("B020 id %s was read as %s", raw, got)
		}
		if other, ok := keys[m.ID.Key()]; ok {
			t.Errorf("B020 ids %s and %s have one key", raw, other)
		}
		keys[m.ID.Key()] = raw
		want := `{"jsonrpc":"2.0","id":` + raw + `,"result":{}}`
		if got := string(jsonrpc.AppendResult(nil, m.ID, &jsonrpc.Value{})); got != want {
			t.Errorf("B020 answered with %s", got)
		}
	}
}

func TestIDsAreTheSameHoweverTheyWereEscaped(t *testing.T) {
	for _, same := range [][]string{
		{`"a"`, `"\u0061"`},
		{`"/"`, `"\/"`, `"\u002f"`, `"\u002F"`},
		{`"😀é"`, `"\ud83d\ude00\u00e9"`, `"\uD83D\uDE00é"`},
		{`"\n\""`, `"\u000a\u0022"`},
		{`"\b"`, `"\u0008"`},
		{`"\ud800"`, `"\ufffd"`},
	} {
		want := rawID(t, same[0]).Key()
		for _, raw := range same[1:] {
			if got := rawID(t, raw).Key(); got != want {
				t.Errorf("the key of %s is %s, that of %s is %s", raw, got, same[0], want)
			}
		}
	}
}

func rawID(t *testing.T, raw string) jsonrpc.ID {
	t.Helper()
	id, ok := jsonrpc.RawID([]byte(raw))
	if !ok {
		t.Fatalf("%s is no id", raw)
	}
	return id
}

func TestRawIDRefusesWhatIsNoID(t *testing.T) {
	for _, raw := range []string{
		``, `-`, `1.0`, `1.5`, `1e3`, `1e400`, `01`, `+1`, ` 1`, `1 `, `null`, `true`, `{}`, `[1]`, `x`,
		`"`, `"a`, `a"`, `"a"b"`, `"a" `, `"\x"`, "\"\xff\"", "\"a\nb\"", `1"`,
		`"` + strings.Repeat("x", jsonrpc.MaxIDBytes-1) + `"`, strings.Repeat("1", jsonrpc.MaxIDBytes+1),
	} {
		if id, ok := jsonrpc.RawID([]byte(raw)); ok || !id.IsZero() {
			t.Errorf("%.40q is the id %.40s", raw, id)
		}
	}
}

func TestIDsAreMade(t *testing.T) {
	for _, c := range []struct {
		id   jsonrpc.ID
		want string
	}{
		{jsonrpc.IntID(0), `0`},
		{jsonrpc.IntID(math.MinInt64), `-9223372036854775808`},
		{jsonrpc.StringID(""), `""`},
		{jsonrpc.StringID("a\"\n\xff"), `"a\"\n` + "\ufffd" + `"`},
		{jsonrpc.ID{}, `none`},
	} {
		if got := c.id.String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestIDsOfResponsesCanBeMatchedLoosely(t *testing.T) {
	for _, c := range []struct {
		raw        string
		exact      bool // Int gives want
		loose      bool // LooseInt gives want
		want       int64
		notRequest bool // only a response may have this id
	}{
		{raw: `1`, exact: true, loose: true, want: 1},
		{raw: `0`, exact: true, loose: true, want: 0},
		{raw: `-7`, exact: true, loose: true, want: -7},
		{raw: `9007199254740993`, exact: true, loose: true, want: 9007199254740993},
		{raw: `9223372036854775807`, exact: true, loose: true, want: math.MaxInt64},
		{raw: `-9223372036854775808`, exact: true, loose: true, want: math.MinInt64},
		{raw: `9223372036854775808`},
		{raw: `-9223372036854775809`},
		{raw: strings.Repeat("1", jsonrpc.MaxIDBytes)},
		{raw: `"0"`, loose: true, want: 0},
		{raw: `"1"`, loose: true, want: 1},
		{raw: `"\u0031"`, loose: true, want: 1},
		{raw: `"1.0"`, loose: true, want: 1},
		{raw: `1.0`, loose: true, want: 1, notRequest: true},
		{raw: `1e0`, loose: true, want: 1, notRequest: true},
		{raw: `10E-1`, loose: true, want: 1, notRequest: true},
		{raw: `-0.0`, loose: true, want: 0, notRequest: true},
		{raw: `9007199254740991.0`, loose: true, want: 9007199254740991, notRequest: true},
		{raw: `9007199254740993.0`, notRequest: true},
		{raw: `1.5`, notRequest: true},
		{raw: `1e400`, notRequest: true},
		{raw: `1e18`, notRequest: true},
		{raw: `""`}, {raw: `"a"`}, {raw: `"1a"`}, {raw: `" 1"`}, {raw: `"+1"`}, {raw: `"001"`}, {raw: `"0x1p0"`}, {raw: `"1_0"`}, {raw: `"Inf"`}, {raw: `"NaN"`}, {raw: `"-"`},
	} {
		t.Run("B020 B023 "+c.raw[:min(len(c.raw), 30)], func(t *testing.T) {
			var m jsonrpc.Message
			if err := jsonrpc.Scan([]byte(`{"jsonrpc":"2.0","id":`+c.raw+`,"result":{}}`), &m); err != nil {
				t.Fatal(err)
			}
			if n, ok := m.ID.Int(); ok != c.exact || ok && n != c.want {
				t.Errorf("Int is %d, %v", n, ok)
			}
			if n, ok := m.ID.LooseInt(); ok != c.loose || ok && n != c.want {
				t.Errorf("LooseInt is %d, %v", n, ok)
			}
			if _, ok := jsonrpc.RawID([]byte(c.raw)); ok == c.notRequest {
				t.Errorf("it can be the id of a request: %v", ok)
			}
		})
	}
	if _, ok := (jsonrpc.ID{}).Int(); ok {
		t.Error("an absent id is an integer")
	}
	if _, ok := (jsonrpc.ID{}).LooseInt(); ok {
		t.Error("an absent id is loosely an integer")
	}
}
