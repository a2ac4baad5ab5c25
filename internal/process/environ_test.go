package process_test

import (
	"slices"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/process"
)

func TestEnvironmentPassesListedAndConfigured(t *testing.T) {
	for _, c := range []struct {
		name       string
		parent     []string
		configured map[string]string
		windows    bool
		want       []string
	}{
		{
			name: "unix",
			parent: []string{"PATH=/bin", "LC_ALL=C", "LANG=de", "SECRET=x", "NODE_OPTIONS=-r evil",
				"LD_PRELOAD=/x", "path=/y", "TERM=() { :; }; echo", "TZ", "USER=a=b"},
			configured: map[string]string{"LANG": "en", "KEY": "", "NODE_OPTIONS": "--trace"},
			want:       []string{"KEY=", "LANG=en", "LC_ALL=C", "NODE_OPTIONS=--trace", "PATH=/bin", "USER=a=b"},
		},
		{
			name:       "windows, where case does not count",
			parent:     []string{"Path=C:\\", "SystemRoot=C:\\Windows", "=C:=C:\\x", "Secret=x", "LC_ALL=C"},
			configured: map[string]string{"PATH": "D:\\", "Key": "v"},
			windows:    true,
			want:       []string{"Key=v", "PATH=D:\\", "SystemRoot=C:\\Windows"},
		},
		{name: "nothing", want: nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := process.BuildEnv(c.parent, c.configured, c.windows); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
