package calibrate

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/simccl/simccl/coll"
)

// SettingsFile is the name of a folder's file with the settings of measurements that do not state their own.
// A line is a pattern of file names (path.Match), then words NCCL_NAME=VALUE or type=TYPE; later lines add to
// earlier ones.
const SettingsFile = "settings.txt"

type settings []settingsLine

type settingsLine struct {
	pattern string
	words   []string
}

var settingWord = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(NCCL_[A-Z0-9_]+=\S*|type=\w+)$`)
})

func parseSettings(text []byte) (settings, error) {
	var out settings
	scan := bufio.NewScanner(bytes.NewReader(text))
	for line := 1; scan.Scan(); line++ {
		body, _, _ := strings.Cut(scan.Text(), "#")
		f := strings.Fields(body)
		if len(f) == 0 {
			continue
		}
		if _, err := path.Match(f[0], ""); err != nil {
			return nil, &FileError{SettingsFile, line, fmt.Sprintf("%q is no pattern of file names: %v", f[0],
				err)}
		}
		for _, w := range f[1:] {
			if !settingWord().MatchString(w) {
				return nil, &FileError{SettingsFile, line,
					fmt.Sprintf("%q: write NCCL_NAME=VALUE or type=TYPE", w)}
			}
		}
		out = append(out, settingsLine{f[0], f[1:]})
	}
	return out, scanned(SettingsFile, scan.Err())
}

// of collects the words of all lines that match a file.
func (s settings) of(name string) (words []string, found bool) {
	for _, l := range s {
		if ok, _ := path.Match(l.pattern, name); ok {
			words, found = append(words, l.words...), true
		}
	}
	return words, found
}

// settingInText finds what a command line in a comment set.
var settingInText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(NCCL_[A-Z0-9_]+)=([^\s"']+)`)
})

// ignored reports whether a variable only changes what NCCL prints or writes.
func ignored(name string) bool {
	return strings.HasPrefix(name, "NCCL_DEBUG") || strings.HasSuffix(name, "_DUMP_FILE") ||
		strings.HasPrefix(name, "NCCL_TESTS_") ||
		name == "NCCL_TOPO_FILE" || name == "NCCL_VERSION" || name == "NCCL_COMM_ID" ||
		strings.HasPrefix(name, "NCCL_PROFILE")
}

func settingsInText(lines []string) []string {
	var out []string
	for _, l := range lines {
		for _, m := range settingInText().FindAllStringSubmatch(l, -1) {
			if !ignored(m[1]) {
				out = append(out, m[0])
			}
		}
	}
	return out
}

// Parts of file names that denote settings: algorithm, protocol, a number
// of channels (of rings, of trees, of send/recv), transport, element type.
var (
	nameWord     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^_]+`) })
	nameChannels = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(tree|p2p)?ch(?:an)?(\d+)$`)
	})
	nameAlgo = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(Ring|Tree|NVLSTree|NVLS|PAT)(?:x|2)?$`)
	})
	nameTypes = map[string]string{"f16": "half", "bf16": "bfloat16", "f64": "double"}
)

// settingsInName reads a file's name by the custom of testdata/measured:
// words between underscores, as in Ring_LL128, ch4_Simple, p2pch8, dt_f16, shm.
func settingsInName(file string) []string {
	var out []string
	set := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	base := path.Base(file)
	words := nameWord().FindAllString(strings.TrimSuffix(base, path.Ext(base)), -1)
	for i, w := range words {
		if m := nameAlgo().FindStringSubmatch(w); m != nil {
			set("NCCL_ALGO=%s", m[1])
		}
		if w == "chan" && i+1 < len(words) { // chan_4
			w += words[i+1]
		}
		if m := nameChannels().FindStringSubmatch(w); m != nil {
			switch m[1] {
			case "p2p":
				set("NCCL_MIN_P2P_NCHANNELS=%s", m[2])
				set("NCCL_MAX_P2P_NCHANNELS=%s", m[2])
			case "tree":
				set("NCCL_ALGO=Tree")
				set("NCCL_MAX_NCHANNELS=%s", m[2])
			default:
				set("NCCL_ALGO=Ring")
				set("NCCL_MAX_NCHANNELS=%s", m[2])
			}
		}
		switch {
		case w == "LL" || w == "LL128" || w == "Simple":
			set("NCCL_PROTO=%s", w)
		case w == "shm":
			set("NCCL_P2P_DISABLE=1")
		case w == "dt" && i+1 < len(words) && nameTypes[words[i+1]] != "":
			set("type=%s", nameTypes[words[i+1]])
		}
	}
	return out
}

// provenance is the settings and element type of a file's measurements, and the source of this knowledge.
type provenance struct {
	env  []string
	typ  coll.DataType
	from string
}

// provenanceOf combines a file's own settings, else those that its name contains by convention, with the
// folder's SettingsFile; the file's own settings take precedence.
func provenanceOf(file string, own []string, s settings) (provenance, error) {
	var from []string
	words, listed := s.of(path.Base(file))
	if listed {
		from = append(from, SettingsFile)
	}
	if len(own) > 0 {
		from = append(from, "the file")
	} else if own = settingsInName(file); len(own) > 0 {
		from = append(from, "the file's name")
	}
	t := provenance{typ: coll.Float32, from: strings.Join(from, " and ")}
	last := map[string]string{}
	for _, w := range append(words, own...) {
		k, v, _ := strings.Cut(w, "=")
		last[k] = v
	}
	if v, ok := last["type"]; ok {
		var err error
		if t.typ, err = coll.ParseDataType(v); err != nil {
			return t, err
		}
		delete(last, "type")
	}
	for _, k := range slices.Sorted(maps.Keys(last)) {
		t.env = append(t.env, k+"="+last[k])
	}
	return t, nil
}
