package settle

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDerivedIDsDependOnEachPart(t *testing.T) {
	id := func(parts ...string) ID {
		var b [][]byte
		for _, p := range parts {
			b = append(b, []byte(p))
		}
		return DeriveID(b...)
	}
	if id("a", "bc") == id("ab", "c") || id("a") == id("a", "") || id() == id("") {
		t.Error("parts run into each other")
	}
	if first, again := id("a", "bc"), id("a", "bc"); first != again {
		t.Errorf("the same parts lead to %s and %s", first, again)
	}
	if v := id("x").String(); v[14] != '8' || !strings.ContainsRune("89ab", rune(v[19])) {
		t.Errorf("%s is no UUIDv8", v)
	}
	if v := NewID().String(); v[14] != '7' {
		t.Errorf("%s is no UUIDv7", v)
	}
}

func TestZeroIDIsAnEmptyText(t *testing.T) {
	b, err := json.Marshal(map[string]ID{"id": {}})
	if err != nil || string(b) != `{"id":""}` {
		t.Errorf("%s, %v", b, err)
	}
	id := NewID()
	if err := json.Unmarshal([]byte(`""`), &id); err != nil || !id.IsZero() {
		t.Errorf("%s, %v", id, err)
	}
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"", "0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a", "0190B7C4-8A2E-7C3D-9F10-2B6C5D4E3F2A",
		"0190b7c48a2e7c3d9f102b6c5d4e3f2a", "{0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a}",
		"urn:uuid:0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a", "00000000-0000-0000-0000-000000000000",
		"0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2\xff", strings.Repeat("é", 18)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err != nil {
			if !id.IsZero() {
				t.Fatalf("%q: %v, and yet %s", s, err, id)
			}
			if strings.ContainsFunc(err.Error(), unprintable) {
				t.Fatalf("the error shows what it was given: %q", err.Error())
			}
			return
		}
		if id.String() != strings.ToLower(s) {
			t.Fatalf("%q was read as %s", s, id)
		}
		b, err := id.MarshalText()
		var back ID
		if err != nil || back.UnmarshalText(b) != nil || back != id {
			t.Fatalf("%q: round trip %s, %v", s, back, err)
		}
	})
}
