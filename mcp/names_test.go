package mcp_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// A definition is a schema, as far as the tests look at it.
type definition struct {
	Ref        string                `json:"$ref"`
	AnyOf      []definition          `json:"anyOf"`
	Const      any                   `json:"const"`
	Enum       []string              `json:"enum"`
	Required   []string              `json:"required"`
	Properties map[string]definition `json:"properties"`
}

// schema returns the definitions of the specification's schema.
func schema(t testing.TB) map[string]definition {
	t.Helper()
	raw, err := os.ReadFile("testdata/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Defs map[string]definition `json:"$defs"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Defs) < 50 {
		t.Fatalf("the schema has %d definitions only", len(file.Defs))
	}
	return file.Defs
}

func (d definition) refers(name string) bool {
	return d.Ref == "#/$defs/"+name || slices.ContainsFunc(d.AnyOf, func(of definition) bool { return of.refers(name) })
}

// requests returns the methods that the union of a name has, with the name of
// each without "Request".
func requests(t testing.TB, defs map[string]definition, union string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, of := range defs[union].AnyOf {
		name := strings.TrimPrefix(of.Ref, "#/$defs/")
		method, ok := defs[name].Properties["method"].Const.(string)
		if !ok {
			t.Fatalf("%s has no method", name)
		}
		all[method] = strings.TrimSuffix(name, "Request")
	}
	if len(all) == 0 {
		t.Fatalf("no methods in %s", union)
	}
	return all
}

func TestMethodsAreThoseOfTheSchema(t *testing.T) {
	defs := schema(t)
	for union, ours := range map[string][]string{
		"ClientRequest": {
			mcp.MethodDiscover, mcp.MethodListen, mcp.MethodListTools, mcp.MethodCallTool, mcp.MethodListResources,
			mcp.MethodListResourceTemplates, mcp.MethodReadResource, mcp.MethodListPrompts, mcp.MethodGetPrompt, mcp.MethodComplete,
		},
		"InputRequest": {mcp.MethodElicit, mcp.MethodCreateMessage, mcp.MethodListRoots},
		"ServerNotification": {
			mcp.NotificationCancelled, mcp.NotificationProgress, mcp.NotificationMessage, mcp.NotificationAcknowledged,
			mcp.NotificationToolsListChanged, mcp.NotificationPromptsListChanged, mcp.NotificationResourcesListChanged,
			mcp.NotificationResourceUpdated,
		},
	} {
		theirs := requests(t, defs, union)
		for _, method := range ours {
			if _, ok := theirs[method]; !ok {
				t.Errorf("%s has no %s", union, method)
			}
			if mcp.IsLegacyOnly(method) {
				t.Errorf("%s counts as legacy", method)
			}
			if got := mcp.IsNotificationName(method); got != (union == "ServerNotification") {
				t.Errorf("%s is named like a notification: %t", method, got)
			}
			delete(theirs, method)
		}
		if len(theirs) > 0 {
			t.Errorf("%s also has %v", union, theirs)
		}
	}
	for _, key := range []string{
		mcp.MetaProgressToken, mcp.MetaProtocolVersion, mcp.MetaClientInfo, mcp.MetaClientCapabilities, mcp.MetaLogLevel,
	} {
		if _, ok := defs["RequestMetaObject"].Properties[key]; !ok {
			t.Errorf("requests have no %s", key)
		}
	}
}

func TestPropertiesOfMethodsAreThoseOfTheSchema(t *testing.T) {
	defs := schema(t)
	seen := 0
	for method, name := range requests(t, defs, "ClientRequest") {
		result := defs[name+"ResultResponse"].Properties["result"]
		if got, want := mcp.MayNeedInput(method), result.refers("InputRequiredResult"); got != want {
			t.Errorf("%s may need input: %t, want %t", method, got, want)
		}
		required := defs[name+"Result"].Required
		if len(required) == 0 {
			t.Fatalf("the schema has no result of %s", method)
		}
		hints := slices.Contains(required, "ttlMs") && slices.Contains(required, "cacheScope")
		if got := mcp.IsCacheable(method); got != hints {
			t.Errorf("%s is cacheable: %t, want %t", method, got, hints)
		}
		var want string
		params := defs[strings.TrimPrefix(defs[name+"Request"].Properties["params"].Ref, "#/$defs/")]
		for _, member := range []string{"name", "uri"} {
			if slices.Contains(params.Required, member) {
				want = member
			}
		}
		if got, ok := mcp.NameParam(method); got != want || ok != (want != "") {
			t.Errorf("%s is named by %q, %t, want %q", method, got, ok, want)
		}
		if want != "" {
			seen++
		}
	}
	if seen != 3 {
		t.Errorf("%d methods have a name, want tools/call, prompts/get and resources/read", seen)
	}
	for _, method := range []string{mcp.MethodElicit, mcp.MethodCreateMessage, mcp.MethodListRoots, mcp.MethodInitialize, "tools/Call", ""} {
		if _, ok := mcp.NameParam(method); ok || mcp.MayNeedInput(method) || mcp.IsCacheable(method) {
			t.Errorf("%q counts as a request with a name, a question or hints", method)
		}
	}
}

func TestLegacyMethodsAreNotInTheSchema(t *testing.T) {
	defs := schema(t)
	for _, method := range []string{
		mcp.MethodInitialize, mcp.MethodPing, mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe,
		mcp.NotificationInitialized, mcp.NotificationRootsListChanged, mcp.NotificationElicitationComplete,
		mcp.MethodListTasks, mcp.MethodTaskResult, mcp.NotificationTaskStatus,
	} {
		if !mcp.IsLegacyOnly(method) {
			t.Errorf("%s does not count as legacy", method)
		}
		for _, union := range []string{"ClientRequest", "InputRequest", "ServerNotification"} {
			if _, ok := requests(t, defs, union)[method]; ok {
				t.Errorf("%s is in %s", method, union)
			}
		}
	}
}

func TestMethodNameDoesNotAllocateForKnownNames(t *testing.T) {
	known := []string{
		mcp.MethodInitialize, mcp.MethodPing, mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe,
		mcp.NotificationInitialized, mcp.NotificationRootsListChanged, mcp.NotificationElicitationComplete,
	}
	defs := schema(t)
	for _, union := range []string{"ClientRequest", "InputRequest", "ServerNotification"} {
		for method := range requests(t, defs, union) {
			known = append(known, method)
		}
	}
	for _, method := range known {
		b := []byte(method)
		if got := mcp.MethodName(b); got != method {
			t.Errorf("%s becomes %s", method, got)
		}
		if n := testing.AllocsPerRun(10, func() { _ = mcp.MethodName(b) }); n != 0 {
			t.Errorf("%s: %v allocations", method, n)
		}
	}
	for _, other := range []string{"x/vendor", "", "tools/Call", "é\x00"} {
		b := []byte(other)
		got := mcp.MethodName(b)
		clear(b)
		if got != other {
			t.Errorf("%q becomes %q", other, got)
		}
	}
}

// levels in rising severity (RFC 5424, section 6.2.1).
var levels = []mcp.Level{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

func TestLevelsAreThoseOfTheSchema(t *testing.T) {
	enum := schema(t)["LoggingLevel"].Enum
	if len(enum) != len(levels) {
		t.Errorf("the schema has %d levels", len(enum))
	}
	for _, level := range enum {
		if !mcp.Level(level).Valid() {
			t.Errorf("%s is not valid", level)
		}
	}
	for _, level := range []mcp.Level{"", "INFO", "warn", "trace", "7"} {
		if level.Valid() {
			t.Errorf("%q is valid", level)
		}
	}
}

func TestLevelIncludesWhatIsAtLeastAsSevere(t *testing.T) {
	for i, wanted := range levels {
		for j, message := range levels {
			if got := wanted.Includes(message); got != (j >= i) {
				t.Errorf("who wants %s wants %s: %t", wanted, message, got)
			}
		}
		if !wanted.Includes("loud") {
			t.Errorf("who wants %s does not want an unknown level", wanted)
		}
		if mcp.Level("").Includes(wanted) {
			t.Errorf("who wants nothing wants %s", wanted)
		}
	}
	if mcp.Level("").Includes("loud") {
		t.Error("who wants nothing wants an unknown level")
	}
}
